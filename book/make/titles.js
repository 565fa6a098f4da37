// Chromium's own bookmarks garble a title of two lines.
() => [...document.querySelectorAll("article :is(h1, h2)")].map(node =>
  [...node.childNodes].filter(child => !child.matches?.(".headerlink"))
    .map(child => child.textContent).join("").trim().replace(/\s+/g, " "))
