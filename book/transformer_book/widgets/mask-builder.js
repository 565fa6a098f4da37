const N = data.tokens.length;
let pads = data.padding;
const token = n => (n < N - pads ? data.tokens[n] : "<pad>");
const query = slider("query", {
  min: 1, max: N, value: data.query + 1, show: q => `${q}: ${token(q - 1)}`,
});
const padding = slider("padding at the end", {
  min: 0, max: N - 1, value: data.padding, show: n => `${n} of ${N}`,
});
const window_ = slider("window", {
  min: 1, max: N, value: data.window, show: w => (w === N ? "all" : `${w} wide`),
});
const causal = tick("causal: hide the future", data.causal);

// True = may attend. The window reaches back, and where the future is open, forward as far.
const mayAttend = (q, k) =>
  k < N - padding.value &&
  (!causal.value || k <= q) &&
  Math.abs(q - k) < window_.value;

function update() {
  pads = padding.value;
  query.tell();
  const chosen = query.value - 1, keys = [...Array(N).keys()];
  const seen = keys.filter(k => mayAttend(chosen, k));
  const parts = [];
  if (padding.value) parts.push("padding_mask(ids)");
  if (causal.value) parts.push(`causal_mask(${N})`);
  if (window_.value < N) parts.push(
    causal.value ? `local_mask(${N}, ${window_.value})` : `((i - j).abs() < ${window_.value})`);
  const blind = keys.filter(q => !keys.some(k => mayAttend(q, k)));
  const said = make("div", { class: "said", "aria-hidden": "true" },
    make("code", { class: "code" }, `mask = ${parts.join("\n     & ") || "None"}`),
    `\u201c${token(chosen)}\u201d sees ${seen.length} of ${N}:`,
    make("div", { class: "chips" }, ...keys.map(k =>
      make("span", { class: mayAttend(chosen, k) ? "seen" : "" }, token(k)))));
  if (blind.length) said.append(make("p", { class: "blind" },
    blind.length === 1 ? "One row sees nothing: its output is zero."
      : `${blind.length} rows see nothing: their output is zero.`));
  const table = grid(keys.map(token), query, {
    cell: (q, k) => mayAttend(q, k) ? ["seen", "\u2713", "may attend"] : ["", "", "hidden"],
    lit: k => mayAttend(chosen, k),
    kind: n => (n < N - padding.value ? "" : "pad"),
  });
  stage.replaceChildren(make("div", { class: "board" }, table, said));
  const total = keys.reduce((sum, q) => sum + keys.filter(k => mayAttend(q, k)).length, 0);
  const which = seen.length === N ? "all positions"
    : seen.length ? seen.map(k => `${k + 1} ${token(k)}`).join(", ") : "nothing";
  const words = [`Query ${chosen + 1}, \u201c${token(chosen)}\u201d, may attend to ${which}.`];
  words.push(`${total} of ${N * N} pairs are open.`);
  if (blind.length) words.push(blind.length === 1
    ? `Query ${blind[0] + 1} sees nothing, so its output is zero.`
    : `Queries ${blind.map(q => q + 1).join(", ")} see nothing, so their output is zero.`);
  spoken.textContent = words.join(" ");
  root.dataset.mask = keys.flatMap(q => keys.map(k => +mayAttend(q, k))).join("");
}
start();
