// What every page does: the switch Reading / Code, a search that loads its index when it is used,
// columns that keep the present entry in view, and light colours on paper.
(() => {
  "use strict";
  const root = document.documentElement;
  const folds = () => document.querySelectorAll("details.fold");

  // --- Reading or code -----------------------------------------------------------------------

  function show(mode) {
    root.dataset.code = mode;
    for (const fold of folds()) fold.open = mode === "code";
    for (const input of document.querySelectorAll(".code-switch input")) {
      input.checked = input.value === mode;
    }
  }

  // What the reader looks at stays where it is, while code above it opens or closes.
  function switchTo(mode) {
    const seen = [...document.querySelectorAll("article :is(h1, h2, h3, p, .cell_output, li)")].find(
      (node) => node.getBoundingClientRect().top >= 60 && node.checkVisibility(),
    );
    const before = seen?.getBoundingClientRect().top;
    localStorage.setItem("code", mode);
    show(mode);
    if (seen) window.scrollBy({ top: seen.getBoundingClientRect().top - before, behavior: "instant" });
  }

  // --- Search --------------------------------------------------------------------------------

  // The theme's search as you type asks this for results. The real one replaces it.
  const script = document.currentScript.src;
  const place = (name) => new URL(`../${name}`, script).href;
  const load = (name) =>
    new Promise((resolve, reject) => {
      const element = document.createElement("script");
      Object.assign(element, { src: place(name), onload: resolve, onerror: reject });
      document.head.append(element);
    });
  let loaded;
  window.Search = {
    async performSearch(query) {
      const input = document.querySelector("#pst-search-dialog input");
      loaded ??= (async () => {
        for (const name of ["_static/searchtools.js", "_static/language_data.js", "searchindex.js"]) {
          await load(name);
        }
      })();
      await loaded;
      const typed = input.value || query;
      input.value = typed; // the search tools empty it when they start
      Search.performSearch(typed); // by now the one of the search tools
      document.querySelector("#search-results")?.classList.remove("empty");
    },
  };

  // --- Columns -------------------------------------------------------------------------------

  function keepInView(entry, column) {
    if (!entry || !column) return;
    const box = column.getBoundingClientRect();
    const place = entry.getBoundingClientRect();
    const above = place.top - Math.max(box.top, 0);
    const below = place.bottom - Math.min(box.bottom, innerHeight);
    if (above < 0 || below > 0) column.scrollTop += above - box.height / 3;
  }

  function columns() {
    const list = document.querySelector(".sidebar-primary-item:has(.bd-links)");
    keepInView([...(list?.querySelectorAll("a.current") ?? [])].pop(), list);

    const contents = document.querySelector("#pst-page-toc-nav");
    const column = document.querySelector("#pst-secondary-sidebar");
    if (!contents) return;
    new MutationObserver(() => {
      keepInView([...contents.querySelectorAll("a.active")].pop(), column);
    }).observe(contents, { attributes: true, attributeFilter: ["class"], subtree: true });
  }

  // --- Paper ---------------------------------------------------------------------------------

  let theme;
  addEventListener("beforeprint", () => {
    theme = root.dataset.theme;
    root.dataset.theme = "light";
  });
  addEventListener("afterprint", () => {
    root.dataset.theme = theme;
  });

  document.addEventListener("DOMContentLoaded", () => {
    show(root.dataset.code);
    for (const input of document.querySelectorAll(".code-switch input")) {
      input.addEventListener("change", () => switchTo(input.value));
    }
    columns();
  });
})();
