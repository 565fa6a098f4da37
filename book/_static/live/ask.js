// In a chapter: show the reader's sentence in the live page's own view, below the input box.

(() => {
  "use strict";
  const form = document.querySelector(".live-hero[data-state]");
  if (!form) return;
  let frame, link;

  function show(event) {
    event.preventDefault();
    const state = new URLSearchParams(form.dataset.state);
    state.set("s", form.elements.s.value);
    if (!frame) {
      frame = document.createElement("iframe");
      frame.title = "Your sentence in the model";
      frame.addEventListener("load", tellTheme);
      link = document.createElement("a");
      link.textContent = "Open this on a page of its own, with all levels";
      const line = document.createElement("p");
      line.append(link);
      form.append(frame, line);
    }
    link.href = `${form.action}#${state}`;
    state.set("run", 1);
    // Once the page is there, only the part after # changes, and it is not loaded again. Sphinx's
    // script of the page writes its address anew, with this "=".
    frame.src = `${form.action}?embed=#${state}`;
  }

  function tellTheme() {
    frame?.contentWindow.postMessage({ theme: document.documentElement.dataset.theme }, "*");
  }

  form.addEventListener("submit", show);
  window.addEventListener("message", ({ source, data }) => {
    if (frame && source === frame.contentWindow && data.height > 0)
      frame.style.height = `${data.height}px`;
  });
  new MutationObserver(tellTheme).observe(document.documentElement, {
    attributes: true,
    attributeFilter: ["data-theme"],
  });
})();
