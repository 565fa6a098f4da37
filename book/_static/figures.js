// A figure enlarges in a dialog by a tap, a click or the Enter key; Escape closes it.
(() => {
  const dialog = document.createElement("dialog");
  dialog.className = "enlarged";
  dialog.setAttribute("aria-label", "Enlarged figure");
  const close = document.createElement("button");
  close.textContent = "Close";
  close.type = "button";
  dialog.append(close);
  const frame = document.createElement("div");
  frame.className = "drawn";
  dialog.append(frame);
  let shown = null, placeholder = null;

  const open = svg => {
    const box = svg.getBoundingClientRect();
    placeholder = document.createElement("div");
    placeholder.style.height = `${box.height}px`;
    shown = svg;
    svg.replaceWith(placeholder); // the figure itself moves, so that its ids stay unique
    const {width, height} = svg.viewBox.baseVal;
    svg.classList.toggle("tall", height > 1.2 * width);
    frame.append(svg);
    dialog.showModal();
  };
  dialog.addEventListener("close", () => {
    placeholder.replaceWith(shown);
    shown.focus({preventScroll: true});
  });
  close.onclick = () => dialog.close();
  frame.onclick = () => dialog.close();
  dialog.onclick = event => { if (event.target === dialog) dialog.close(); };
  document.body.append(dialog);

  for (const svg of document.querySelectorAll(".bd-article .drawn > svg")) {
    svg.setAttribute("tabindex", "0");
    svg.setAttribute("role", "button");
    svg.setAttribute("aria-label", `Enlarge the figure. ${svg.getAttribute("aria-label")}`);
    svg.addEventListener("click", () => { if (svg.parentElement !== frame) open(svg); });
    svg.addEventListener("keydown", event => {
      if (svg.parentElement !== frame && (event.key === "Enter" || event.key === " ")) {
        event.preventDefault();
        open(svg);
      }
    });
  }
})();
