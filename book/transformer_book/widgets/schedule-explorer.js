const comma = number => Math.round(number).toLocaleString("en-US");
const among = (label, values, first, show = comma) => slider(label, {
  min: 0, max: values.length - 1, value: values.indexOf(first), show: i => show(values[i]),
});
const size = among([make("i", {}, "d"), make("sub", {}, "model")], data.sizes, 512);
const warmup = among("warm-up steps", data.warmups, 4000);
const factor = among("factor", data.factors, 1, String);
const batches = tick("count batches, ten per step", false);
const far = tick("show 100,000 steps", false);

const rate = (n, d, w, f) => f * d ** -.5 * Math.min(n ** -.5, n * w ** -1.5);
const base = n => rate(n, 512, 4000, 1);
const yours = n => rate(batches.value ? 10 * n : n,
  data.sizes[size.value], data.warmups[warmup.value], data.factors[factor.value]);
const small = value => {
  const [mantissa, power] = value.toExponential(1).split("e");
  const raised = [...String(+power)].map(c => "⁰¹²³⁴⁵⁶⁷⁸⁹"[c] ?? "⁻").join("");
  return `${mantissa} · 10${raised}`;
};
const times = ratio => `${+ratio.toPrecision(2)} × the paper's`;

function chart(peak) {
  const width = stage.clientWidth, height = 250, left = 12, right = 14, top = 54, bottom = 40;
  const most = far.value ? 100000 : 20000, high = 1.12 * Math.max(yours(peak), base(4000));
  const x = n => left + (width - left - right) * n / most;
  const y = value => top + (height - top - bottom) * (1 - value / high);
  const svg = make("svg", { "aria-hidden": "true", viewBox: `0 0 ${width} ${height}`, height });
  const say = (px, py, text, more = {}) => svg.append(make("text", { x: px, y: py, ...more }, text));
  say(0, 12, "learning rate", { "font-weight": 600 });
  say(0, 30, "dashed: the paper's base model", { class: "soft" });
  svg.append(make("line", { x1: left, x2: width - right, y1: y(0), y2: y(0), stroke: "var(--rule)" }));
  for (const part of width < 480 ? [0, .5, 1] : [0, .25, .5, .75, 1])
    say(x(most * part), y(0) + 18, comma(most * part), { class: "soft",
      "text-anchor": part === 0 ? "start" : part === 1 ? "end" : "middle" });
  say(x(most / 2), height - 4, "step", { "text-anchor": "middle", class: "soft" });
  const path = of => [...new Set([1, peak, 4000, ...Array.from({ length: 400 }, (_, i) => (i + 1) * most / 400)])]
    .filter(n => n >= 1 && n <= most).sort((a, b) => a - b)
    .map((n, i) => `${i ? "L" : "M"}${x(n)} ${y(of(n))}`).join("");
  svg.append(
    make("path", { d: path(yours), fill: "none", stroke: "var(--purple)", "stroke-width": 3.5, "stroke-linejoin": "round" }),
    make("path", { d: path(base), fill: "none", stroke: "var(--ink)", "stroke-width": 1.8, "stroke-dasharray": "5 4" }));
  if (peak <= most) svg.append(make("circle", {
    cx: x(peak), cy: y(yours(peak)), r: 6, fill: "var(--purple)", stroke: "var(--ground)", "stroke-width": 2,
  }));
  return svg;
}

function update() {
  const peak = Math.max(1, data.warmups[warmup.value] / (batches.value ? 10 : 1));
  const fact = (name, n) => make("div", { class: "fact" },
    make("b", {}, small(yours(n))), `${name}: ${times(yours(n) / base(n))}`);
  stage.replaceChildren(chart(peak), make("div", { class: "facts", "aria-hidden": "true" },
    make("div", { class: "fact" }, make("b", {}, small(yours(peak))), `highest, at step ${comma(peak)}`),
    fact("step 1,000", 1000), fact("step 100,000", 100000)));
  spoken.textContent = `The learning rate rises to ${small(yours(peak))} at step ${comma(peak)}; at ` +
    `step 100,000 it is ${times(yours(100000) / base(100000))}.`;
  root.dataset.peak = yours(peak);
  root.dataset.end = yours(100000);
}
start();
