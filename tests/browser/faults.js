// What a page must not have, by the name of the fault.
async () => {
  const texts = nodes => [...nodes].map(node => node.outerHTML.slice(0, 120));
  const all = selector => [...document.querySelectorAll(selector)];
  const shown = selector => all(selector).filter(node => node.checkVisibility());
  // The whole program stands before the numbered chapters.
  const here = /\/notebooks\/(?!00_)/.test(location.pathname);
  const titles = shown("h1");
  const wide = document.documentElement.scrollWidth - innerWidth;
  const isCut = node => node.scrollWidth > node.clientWidth + 1
    && getComputedStyle(node).overflowX !== "visible";
  const numbers = [document.title, titles[0]?.innerText ?? "",
    all(".bd-links a.current").pop()?.textContent ?? ""];
  const inView = (node, top) => {
    const box = node?.getBoundingClientRect();
    return !node || box.top >= top && box.bottom <= innerHeight + 1;
  };
  let shift = 0;
  new PerformanceObserver(list => list.getEntries().filter(each => !each.hadRecentInput)
    .forEach(each => shift += each.value))
    .observe({ type: "layout-shift", buffered: true });
  await new Promise(done => setTimeout(done, 60));
  const desk = innerWidth > 1000;
  const active = all(".bd-sidebar-primary .bd-links a.current").pop();
  const pinned = document.querySelector(".pinned")?.getBoundingClientRect().bottom ?? 0;
  return {
    "scrolls sideways by": wide > 1 ? [wide] : [],
    "cut": texts(shown("article :is(pre, .math, .themed, .pst-scrollable-table-container)")
      .filter(isCut)),
    "code without a copy button": texts(shown(".cell_input .highlight")
      .filter(node => node.querySelector(".copybtn")?.checkVisibility({ opacityProperty: true })
        !== true)),
    "id twice in figures": texts(all(".drawn [id]")
      .filter(node => document.getElementById(node.id) !== node)),
    "picture without alt": texts(all("img:not([alt])")),
    "formula not set": texts(all(".math").filter(node => !node.querySelector("math"))),
    "formula with a tab stop": texts(all(".math[tabindex], .math [tabindex]")),
    "table without a header": texts(all("article table")
      .filter(table => !table.querySelector("th"))),
    "waits for": texts(all("head script[src]:not([defer], [async])")),
    "third style sheet": texts(all("link[rel=stylesheet]").slice(2)),
    "titles shown": titles.length === 1 ? [] : [titles.length],
    "chapter without its number": here
      ? numbers.filter(text => !/^\d+\s+\D/.test(text.trim())) : [],
    "number twice": texts(all(".prev-next-title").filter(
      node => /^\d+\s+\d/.test(node.innerText))),
    "present entry out of view": desk && !inView(active, pinned) ? texts([active]) : [],
    "layout shift": shift < 0.05 ? [] : [shift],
  };
}
