const [layers, heads] = [data.weights[0].length, data.weights[0][0].length];
const image = choice("digit", data.labels.map((label, i) => `${i + 1}: a ${label}`));
const attending = choice("head", Array.from({ length: layers * heads }, (_, i) =>
  `layer ${Math.floor(i / heads) + 1}, head ${i % heads + 1}`));
const patch = slider("patch", { min: 0, max: 15, value: data.patch,
  show: i => `row ${Math.floor(i / 4) + 1}, column ${i % 4 + 1}` });

function update() {
  const weights = data.weights[image.value][Math.floor(attending.value / heads)][attending.value % heads]
    [patch.value];
  const svg = make("svg", { "aria-hidden": "true", viewBox: "0 0 340 162" });
  data.images[image.value].forEach((row, y) => row.forEach((value, x) => svg.append(make("rect", {
    x: 1 + 20 * x, y: 1 + 20 * y, width: 20, height: 20, fill: "var(--ink)", opacity: value / 16 }))));
  let chosen;
  for (let i = 0; i < 16; i++) {
    const x = 40 * (i % 4), y = 40 * Math.floor(i / 4), here = i === patch.value;
    const frame = make("rect", { x: x + 1, y: y + 1, width: 40, height: 40, fill: "transparent",
      stroke: here ? "var(--query)" : "var(--rule)", "stroke-width": here ? 4 : 1 });
    frame.style.cursor = "pointer";
    frame.addEventListener("click", () => { patch.input.value = i; patch.tell(); update(); });
    svg.append(frame, make("rect", { x: x + 178, y: y + 1, width: 38, height: 38, rx: 4,
      fill: "var(--key)", opacity: weights[i] * .55 }), make("text", { x: x + 197, y: y + 25, "text-anchor": "middle",
      "font-weight": weights[i] >= .1 ? 700 : 400 }, fixed(weights[i])));
    if (here) chosen = frame;
  }
  svg.append(chosen); // above its neighbours
  stage.replaceChildren(svg);
  const most = weights.indexOf(Math.max(...weights)), at = i =>
    `row ${Math.floor(i / 4) + 1}, column ${i % 4 + 1}`;
  spoken.textContent = `This patch attends most to ${at(most)}, with weight ${fixed(weights[most])}.`
    + ` The model reads the ${data.labels[image.value]} as ${data.read[image.value]}`
    + ` (probability ${fixed(data.chance[image.value])}).`;
  root.dataset.weights = weights.map(weight => weight.toFixed(2)).join(" ");
}
start();
