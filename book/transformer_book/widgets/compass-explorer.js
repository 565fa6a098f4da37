const turn = slider("direction of the query", {
  min: 0, max: 360 - data.step, value: data.direction, step: data.step, show: d => `${d}\u00b0`,
});
const stretch = slider("length of the query", {
  min: 0, max: data.longest, value: data.length, step: .25, show: l => fixed(l),
});

const N = data.names.length, SIDE = 288, MIDDLE = SIDE / 2, RADIUS = 100;
const unit = RADIUS / data.longest;
const vector = (degrees, length) => {
  const angle = degrees * Math.PI / 180;
  return [length * Math.sin(angle), length * Math.cos(angle)];
};
const keys = data.names.map((_, i) => vector(360 * i / N, 1));
function look(direction, length) {
  const [x, y] = vector(direction, length);
  const scores = keys.map(key => (key[0] * x + key[1] * y) / Math.SQRT2);
  const powers = scores.map(Math.exp), total = powers.reduce((a, b) => a + b);
  const weights = powers.map(power => power / total);
  const output = data.columns.map((_, c) =>
    weights.reduce((sum, weight, i) => sum + weight * data.values[i][c], 0));
  return { scores, weights, output };
}
const say = (x, y, text, more = {}) => make("text",
  { x, y, "dominant-baseline": "central", ...more }, text);

// The rose stays the same element while it is dragged, so that the pointer keeps hold of it.
const rose = make("svg", {
  class: "rose", "aria-hidden": "true", viewBox: `0 0 ${SIDE} ${SIDE}`, height: SIDE,
});
function arrow(length, colour, width) {
  const shaft = make("line", { stroke: colour, "stroke-width": width });
  const head = make("path", { fill: colour });
  const point = (degrees, long) => {
    const [x, y] = vector(degrees, long * unit), [dx, dy] = vector(degrees, 1);
    const back = Math.min(3.2 * width, long * unit), side = back * .5;
    const [ex, ey] = [MIDDLE + x, MIDDLE - y], [bx, by] = [ex - dx * back, ey + dy * back];
    for (const [name, value] of Object.entries({ x1: MIDDLE, y1: MIDDLE, x2: bx, y2: by }))
      shaft.setAttribute(name, value);
    head.setAttribute("d", `M${ex} ${ey}L${bx + dy * side} ${by + dx * side}` +
      `L${bx - dy * side} ${by - dx * side}Z`);
    return [ex, ey];
  };
  return { parts: [shaft, head], point };
}
rose.append(make("circle", {
  cx: MIDDLE, cy: MIDDLE, r: RADIUS, fill: "var(--well)", stroke: "var(--rule)",
}));
data.names.forEach((name, i) => {
  const key = arrow(1, "var(--key)", 3.5), degrees = 360 * i / N;
  key.point(degrees, 1);
  const [x, y] = vector(degrees, RADIUS + 12);
  const anchor = x > 20 ? "start" : x < -20 ? "end" : "middle";
  rose.append(...key.parts, say(MIDDLE + x - Math.sign(Math.round(x)) * 5, MIDDLE - y, name,
    { "text-anchor": anchor, style: "fill: var(--key)", "font-weight": 600 }));
});
const query = arrow(1, "var(--query)", 5);
const handle = make("g", { class: "handle" },
  make("circle", { r: 20, fill: "transparent" }),
  make("circle", { r: 8, fill: "var(--query)", stroke: "var(--ground)", "stroke-width": 2.5 }));
rose.append(...query.parts, handle);

function aim(event) {
  const box = rose.getBoundingClientRect();
  const x = (event.clientX - box.left) * SIDE / box.width - MIDDLE;
  const y = MIDDLE - (event.clientY - box.top) * SIDE / box.height;
  const length = Math.min(Math.hypot(x, y) / unit, data.longest);
  stretch.input.value = length;
  if (stretch.value > 0) {  // a query of length zero keeps its direction
    const degrees = Math.round(Math.atan2(x, y) * 180 / Math.PI / data.step) * data.step;
    turn.input.value = (degrees + 360) % 360;
  }
  turn.tell();
  stretch.tell();
  update();
}
let dragged = null;
handle.addEventListener("pointerdown", event => {
  dragged = event.pointerId;
  rose.setPointerCapture(dragged);
  event.preventDefault();
});
rose.addEventListener("pointermove", event => { if (event.pointerId === dragged) aim(event); });
for (const end of ["pointerup", "pointercancel"])
  rose.addEventListener(end, () => { dragged = null; });
rose.addEventListener("click", aim);

const measured = (numbers, exact) => numbers.map((number, c) => {
  const [name, digits] = data.columns[c];
  return fixed(number, exact ? digits : 0) + (name.startsWith("%") ? "" : "\u00a0") + name;
});
function bars({ scores, weights, output }) {
  const whole = stage.clientWidth, beside = whole > 600, side = 240;  // px of the rose beside the bars
  rose.style.width = rose.style.height = beside ? `${side}px` : "";
  const width = beside ? whole - side - 20 : whole;
  const row = 32, top = 26, height = top + row * (N + 1) + 12;
  const svg = make("svg", {
    class: "bars", "aria-hidden": "true", viewBox: `0 0 ${width} ${height}`, height,
  });
  const small = width < 360, score = small ? 88 : 98, bar = score + (small ? 10 : 12);
  const value = width, number = value - (small ? 136 : 142);
  const room = Math.max(number - 38 - bar, 8), end = { "text-anchor": "end" };
  const green = { ...end, style: "fill: var(--value)" };
  svg.append(
    say(score, 8, "score", { ...end, class: "soft" }),
    say(bar, 8, "weight", { class: "soft" }),
    say(value, 8, "value", { ...end, class: "soft" }));
  data.names.forEach((name, i) => {
    const y = top + row * i, middle = y + row / 2;
    svg.append(
      say(0, middle, name, { style: "fill: var(--key)", "font-weight": 600 }),
      say(score, middle, fixed(scores[i]), end),
      make("rect", { x: bar, y: y + 6, width: room, height: row - 12, rx: 4, fill: "var(--well)" }),
      make("rect", { x: bar, y: y + 6, width: room * weights[i], height: row - 12, rx: 4,
        fill: "var(--purple)" }),
      say(number, middle, fixed(weights[i]), { ...end, "font-weight": 600 }),
      say(value, middle, measured(data.values[i], false).join(", "), green));
  });
  const y = top + row * N;
  svg.append(
    make("line", { x1: 0, x2: width, y1: y + 4, y2: y + 4, stroke: "var(--rule)" }),
    say(0, y + 24, "output", { "font-weight": 700 }),
    say(number, y + 24, fixed(weights.reduce((a, b) => a + b)), { ...end, class: "soft" }),
    say(value, y + 24, measured(output, true).join(", "), { ...green, "font-weight": 700 }));
  return svg;
}

function update() {
  const direction = turn.value, length = stretch.value, seen = look(direction, length);
  const [x, y] = query.point(direction, length);
  handle.setAttribute("transform", `translate(${x} ${y})`);
  if (rose.parentNode !== stage) stage.replaceChildren(rose);
  rose.nextSibling?.remove();
  rose.after(bars(seen));
  const shares = data.names.map((name, i) => `${name} ${fixed(seen.weights[i])}`).join(", ");
  spoken.textContent = `Query at ${direction}\u00b0, length ${fixed(length)}. Weights: ${shares}. ` +
    `Output: ${measured(seen.output, true).join(", ")}.`;
  root.dataset.weights = seen.weights.join(" ");
  root.dataset.output = seen.output.join(" ");
}
start();
