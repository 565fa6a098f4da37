const place = choice("layer norm", [
  "post-norm", "pre-norm", "none",
]);
place.input.value = data.place;
const layers = slider("layers N", { min: 1, max: data.deepest, value: data.layers, show: String });
const residual = tick("residual connection", data.residual);

const say = (x, y, text, more = {}) => make("text", { x, y, ...more }, text);
const line = (x1, y1, x2, y2, more = {}) => make("line", { x1, y1, x2, y2, ...more });
const DIGITS = { "-": "\u207b", 0: "\u2070", 1: "\u00b9", 2: "\u00b2", 3: "\u00b3", 4: "\u2074",
  5: "\u2075", 6: "\u2076", 7: "\u2077", 8: "\u2078", 9: "\u2079" };
const power = n => n === 0 ? "1" : "10" + [...String(n)].map(digit => DIGITS[digit]).join("");
function short(value) {
  if (value >= .01 && value < 1000) return fixed(value, value < 10 ? 2 : value < 100 ? 1 : 0);
  const exponent = Math.floor(Math.log10(value));
  return `${fixed(value / 10 ** exponent, 1)} \u00b7 ${power(exponent)}`;
}

// The stream from the input to layer N: boxes are layers, brown marks are norms.
function stream(svg, kind, n, x, cell, top) {
  const way = top + 16, floor = top + 34, high = 20, wide = Math.max(4, Math.min(cell * .5, 34));
  const ink = { stroke: "var(--soft)", "stroke-width": 1.5, fill: "none" };
  const road = { stroke: "var(--soft)", "stroke-width": 4, "stroke-linecap": "round" };
  const norm = (cx, cy) => make("rect", {
    x: cx - Math.min(3, cell / 5), y: cy - 7, width: Math.min(6, cell / 2.5), height: 14, rx: 2,
    fill: "var(--brown)",
  });
  if (kind.residual) svg.append(line(x(0), way, x(n), way, road));
  for (let i = 1; i <= n; i++) {
    const right = x(i) - cell * .18, middle = x(i) - cell / 2, from = x(i - 1) + cell * .08;
    if (kind.residual) svg.append(
      make("path", { d: `M${from} ${way}V${floor + high / 2}H${right}V${way}`, ...ink }));
    else svg.append(line(x(i - 1), floor + high / 2, x(i), floor + high / 2, ink));
    svg.append(make("rect", { x: middle - wide / 2, y: floor, width: wide, height: high, rx: 3,
      fill: "var(--well)", stroke: "var(--soft)" }));
    const row = kind.residual ? way : floor + high / 2;
    if (kind.place === 0) svg.append(norm(x(i) - cell * .05, row));
    if (kind.place === 1) svg.append(
      norm(kind.residual ? from : x(i - 1) + cell * .12, floor + high / 2));
  }
  if (kind.place === 1) svg.append(norm(x(n) + 6, kind.residual ? way : floor + high / 2));
}

// One row of bars; a number beside the last bar.
function bars(svg, { title, values, first, x, cell, top, high, at, ticks, colour, base, right }) {
  svg.append(say(0, top - 13, title, { "font-weight": 600 }));
  for (const [value, name] of ticks) svg.append(
    line(x(0) - cell * .4, at(value), right, at(value), { stroke: "var(--rule)" }),
    say(x(0) - cell * .4 - 6, at(value) + 4, name, { "text-anchor": "end", class: "soft" }));
  const thick = Math.max(3, Math.min(cell * .55, 18));
  values.forEach((value, i) => {
    const y = at(value), zero = at(base);
    svg.append(make("rect", {
      x: x(i + first) - thick / 2, y: Math.min(y, zero) - .75, width: thick,
      height: Math.abs(y - zero) + 1.5, rx: 1.5, fill: colour,
    }));
  });
}

const kindNow = () =>
  data.kinds.find(kind => kind.residual === residual.value && kind.place === place.value);

function update() {
  const kind = kindNow(), n = layers.value, wide = stage.clientWidth || 600;
  const left = 46, right = wide - 8, cell = (right - left - 14) / (n + .8);
  const x = i => left + cell * (i + .4);
  const size = kind.size.slice(0, n + 1), alike = kind.likeness.slice(0, n + 1);
  const slope = kind.gradients[n - 1], high = 72, gap = 42;
  const tops = [100, 100 + high + gap, 100 + 2 * (high + gap)], height = tops[2] + high + 24;
  const svg = make("svg", { "aria-hidden": "true", viewBox: `0 0 ${wide} ${height}`, height });
  stream(svg, kind, n, x, cell, 2);
  const log = (top, low, up) => value => {
    const share = (Math.log10(Math.max(value, 1e-30)) - low) / (up - low);
    return top + high * (1 - Math.min(Math.max(share, 0), 1));
  };
  const common = { x, cell, high, right };
  // The axis of a measure spans all wrappers at this depth, in powers of ten, and 1.
  const span = values => {
    const logs = data.kinds.flatMap(values).map(value => Math.log10(Math.max(value, 1e-8)));
    return [Math.min(0, Math.floor(Math.min(...logs))), Math.max(1, Math.ceil(Math.max(...logs)))];
  };
  const powers = (low, up) => {
    const step = Math.ceil((up - low) / 4), first = -step * Math.floor(-low / step);
    return Array.from({ length: Math.floor((up - first) / step) + 1 }, (_, i) => first + i * step)
      .map(p => [10 ** p, power(p)]);
  };
  const sizes = span(each => each.size.slice(0, n + 1));
  const slopes = span(each => each.gradients[n - 1]);
  bars(svg, { ...common, title: `size of the vectors: ${short(size[0])} to ${short(size[n])}`,
    values: size, first: 0, top: tops[0], at: log(tops[0], ...sizes), ticks: powers(...sizes),
    colour: "var(--purple)", base: 1 });
  bars(svg, { ...common, title: `similarity of positions: ${fixed(alike[0])} to ${fixed(alike[n])}`,
    values: alike, first: 0, top: tops[1], at: value => tops[1] + high * (1 - value),
    ticks: [[0, "0"], [.5, "0.5"], [1, "1"]], colour: "var(--brown)", base: 0 });
  bars(svg, { ...common,
    title: `gradient: ${short(slope[0])} in layer 1` +
      (n > 1 ? `, ${short(slope[n - 1])} in layer ${n}` : ""),
    values: slope, first: 1, top: tops[2], at: log(tops[2], ...slopes), ticks: powers(...slopes),
    colour: "var(--grey)", base: 1 });
  svg.append(say(x(0), height - 4, "input", { "text-anchor": "middle", class: "soft" }),
    say(x(n), height - 4, n > 1 ? `layer ${n}` : "layer 1", { "text-anchor": "end", class: "soft" }));
  stage.replaceChildren(svg);
  const known = kind.recognised[n] * data.tokens;
  spoken.textContent = `${n} ${n === 1 ? "layer" : "layers"}, ${kind.name === "neither" ? "neither residual connection nor norm" : kind.name}: two positions have a ` +
    `cosine of ${fixed(alike[n])} on average, and ${fixed(known, 1)} of ${data.tokens} tokens are ` +
    `still closest to their own input. The vectors have size ${short(size[n])}. The gradient is ` +
    `${short(slope[0])} in the first layer and ${short(slope[n - 1])} in the last.`;
  root.dataset.size = size[n];
  root.dataset.likeness = alike[n];
  root.dataset.gradients = slope.join(" ");
}
start();
