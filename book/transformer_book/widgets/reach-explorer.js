const N = data.tokens.length, all = [...Array(N).keys()];
const pattern = choice("pattern", data.patterns);
const width = slider("neighbourhood r", { min: 1, max: 9, step: 2, value: data.width });
const layers = slider("layers", { min: 1, max: 4, value: data.layers });
const query = slider("query", {
  min: 1, max: N, value: data.query + 1, show: q => data.tokens[q - 1],
});
const causal = tick("causal: hide the future", false);

const near = (q, k) => Math.abs(q - k) <= (width.value - 1) / 2;
const RULES = [
  near,
  (q, k) => near(q, k) || (q - k) % width.value === 0,
  (q, k) => near(q, k) || q === 0 || k === 0,
  (q, k) => Math.floor(q / width.value) === Math.floor(k / width.value),
  () => true,
];
const mayAttend = (q, k) => RULES[pattern.value](q, k) && (!causal.value || k <= q);

// Layers that information needs from a key to a query; -1 if there are too few.
function hops() {
  const found = all.map(q => all.map(k => (q === k ? 0 : -1)));
  for (let layer = 1; layer <= layers.value; layer++) {
    const before = found.map(row => row.map(hop => hop >= 0));
    for (const q of all) for (const k of all)
      if (found[q][k] < 0 && all.some(via => mayAttend(q, via) && before[via][k])) found[q][k] = layer;
  }
  return found;
}

function update() {
  query.tell();
  const found = hops(), chosen = query.value - 1;
  const words = hop => hop < 0 ? "not reached" : hop === 1 ? "1 layer" : `${hop} layers`;
  stage.replaceChildren(grid(data.tokens, query, {
    cell: (q, k) => [`hop${q === k ? 1 : found[q][k]}`, found[q][k] > 1 ? found[q][k] : "",
      words(found[q][k])],
    lit: k => found[chosen][k] >= 0,
  }));
  const scores = all.reduce((sum, q) => sum + all.filter(k => mayAttend(q, k)).length, 0);
  const reached = all.filter(k => found[chosen][k] >= 0).length;
  const missing = all.reduce((sum, q) => sum + all.filter(k =>
    found[q][k] < 0 && (!causal.value || k <= q)).length, 0);
  const much = layers.value === 1 ? "one layer" : `${layers.value} layers`;
  spoken.textContent = `${scores} of ${N * N} scores per layer. `
    + `In ${much}, \u201c${data.tokens[chosen]}\u201d gets information from ${reached} of ${N} tokens. `
    + (missing ? `${missing} pairs remain unconnected.` : "Every pair is connected.");
  root.dataset.hops = found.flat().join(" ");
}
start();
