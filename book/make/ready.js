// Solutions and asides are opened; scaffolding is left out, as in the reading view of a page.
async () => {
  document.querySelectorAll("details:not(.fold)").forEach(details => details.open = true);
  await document.fonts.ready;
  await Promise.all([...document.images].map(image => image.decode().catch(() => 0)));
}
