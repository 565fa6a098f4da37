// A table of queries and keys; a tap on a row chooses its query. `cell` tells the class, the mark
// and the words of a pair, `lit` which keys are bold, `kind` the class of a token.
function grid(names, query, { cell, lit, kind = () => "" }) {
  const head = make("tr", {}, make("td", { class: "corner", style: "all: unset" }),
    ...names.map((name, k) => make("th", {
      scope: "col", class: `${kind(k)} ${lit(k) ? "lit" : ""}`,
    }, make("span", {}, name))));
  const rows = names.map((name, q) => {
    const row = make("tr", { class: q === query.value - 1 ? "here" : "" },
      make("th", { scope: "row", class: kind(q) }, name),
      ...names.map((_, k) => {
        const [look, mark, words] = cell(q, k);
        return make("td", { class: look }, make("span", { "aria-hidden": "true" }, mark),
          make("span", { class: "words" }, words));
      }));
    row.addEventListener("pointerdown", () => { query.input.value = q + 1; query.tell(); update(); });
    return row;
  });
  return make("table", { class: "grid" }, make("caption", {}, "keys \u2192, queries \u2193"),
    make("thead", {}, head), make("tbody", {}, ...rows));
}

