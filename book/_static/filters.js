// The rows of a page's tables that fit its menus. The choice is kept in the address.
(() => {
  "use strict";
  const form = document.querySelector("form.row-filters");
  if (!form) return;
  const menus = [...form.querySelectorAll("select")];
  const rows = [...document.querySelectorAll("table.filtered tbody tr")];
  const output = form.querySelector("output");

  const fits = (row, menu) => !menu.value || row.dataset[menu.name].split("|").includes(menu.value);

  // Hide what is left without rows: a table with the line that names it, and a section of such tables.
  function hideEmpty() {
    const empty = (place) => !place.querySelector("table.filtered tbody tr:not([hidden])");
    for (const table of document.querySelectorAll("table.filtered")) {
      const box = table.closest(".pst-scrollable-table-container") ?? table;
      const fold = table.closest("details");
      (fold ?? box).hidden = empty(table);
      const name = box.previousElementSibling;
      if (name?.matches("p:has(> strong:first-child)")) name.hidden = empty(table);
    }
    for (const section of document.querySelectorAll("article section section")) {
      if (section.querySelector("table.filtered")) section.hidden = empty(section);
    }
  }

  function show() {
    for (const row of rows) row.hidden = !menus.every((menu) => fits(row, menu));
    const shown = rows.filter((row) => !row.hidden).length;
    output.textContent = `${shown} of ${rows.length} ${form.dataset.noun}`;
    for (const menu of menus) {
      const others = menus.filter((other) => other !== menu);
      const left = rows.filter((row) => others.every((other) => fits(row, other)));
      for (const option of menu.options) {
        option.dataset.name ??= option.textContent;
        const count = left.filter((row) => fits(row, { name: menu.name, value: option.value })).length;
        option.textContent = `${option.dataset.name} (${count})`;
      }
    }
    hideEmpty();
  }

  function keep() {
    const address = new URL(location);
    for (const menu of menus) {
      if (menu.value) address.searchParams.set(menu.name, menu.value);
      else address.searchParams.delete(menu.name);
    }
    history.replaceState(null, "", address);
  }

  form.addEventListener("change", () => { show(); keep(); });
  form.addEventListener("reset", () => setTimeout(() => { show(); keep(); }));
  form.addEventListener("submit", (event) => event.preventDefault());
  const asked = new URL(location).searchParams;
  for (const menu of menus) {
    const value = asked.get(menu.name) ?? "";
    if ([...menu.options].some((option) => option.value === value)) menu.value = value;
  }
  show();
})();
