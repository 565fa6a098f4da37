const grouped = number => number.toLocaleString("en-US");
const length = slider("tokens per sequence", {
  min: 5, max: 15, value: data.power, show: power => grouped(2 ** power),
});
const sequences = slider("sequences per step", {
  min: 0, max: 10, value: 0, show: power => grouped(2 ** power),
});
const parts = slider("accumulated in parts", {
  min: 0, max: 5, value: 0, show: power => grouped(Math.min(2 ** power, 2 ** sequences.value)),
});
const fused = tick("fused attention", false);
const again = tick("checkpointing", false);
const half = tick("all activations in 16 bits", false);

function pieces() {
  const n = 2 ** length.value, together = 2 ** sequences.value;
  const size = (half.value ? 2 : 4) * together / Math.min(2 ** parts.value, together);
  const vectors = (10 * data.dModel + data.dFf) * n * size;
  const squares = data.heads * n * (fused.value ? 1 : n) * size;
  const inputs = data.layers * data.dModel * n * size;
  const times = again.value ? 1 : data.layers;
  return [
    ["parameters, gradients, Adam", 16 * data.parameters, "soft"],
    ["activations", times * vectors + (again.value ? inputs : 0), "value"],
    [fused.value ? "row sums" : "attention weights", times * squares, "key"],
  ];
}
const bytes = number => {
  const [unit, name] = number >= 1e12 ? [1e12, "TB"] : number >= 1e9 ? [1e9, "GB"] : [1e6, "MB"];
  const value = number / unit;
  return `${fixed(value, value < 10 ? 2 : value < 100 ? 1 : 0)} ${name}`;
};

function update() {
  parts.tell();
  const found = pieces(), total = found.reduce((sum, [, size]) => sum + size, 0);
  let scale = 1e9;
  while (scale < total) scale *= 10;
  const row = (name, parts_, size) => make("div", { class: "row" },
    make("span", { class: "name" }, name),
    make("div", { class: "bar" }, ...parts_.map(([part, colour]) =>
      make("i", { style: `width: ${100 * part / scale}%; background: var(--${colour})` }))),
    make("b", {}, bytes(size)));
  stage.replaceChildren(make("div", { class: "rows", "aria-hidden": "true" },
    ...found.map(([name, size, colour]) => row(name, [[size, colour]], size)),
    row("together", found.map(([, size, colour]) => [size, colour]), total),
    make("div", { class: "scale" }, make("span", {}, "0"), make("span", {}, bytes(scale)))));
  const n = 2 ** length.value, many = 2 ** sequences.value;
  const most = found.reduce((a, b) => (b[1] > a[1] ? b : a));
  spoken.textContent = `${many === 1 ? "One sequence" : `${grouped(many)} sequences`} of ${grouped(n)} `
    + `tokens: ${bytes(total)}. The largest piece, ${most[0]}, has ${bytes(most[1])}, `
    + `${fixed(100 * most[1] / total, 0)}% of it.`;
  root.dataset.bytes = total;
}
start();
