const position = slider("position p", {
  min: data.reach, max: data.last, value: data.position, show: String,
});
const offset = slider("offset k", {
  min: -data.reach, max: data.reach, value: data.offset, show: k => minus(k > 0 ? `+${k}` : k),
});
const model = choice("columns of the table", data.widths.map(String));
model.input.value = data.widths.indexOf(data.width);

// Radians per position, one for each pair of columns: the paper's formula.
const rates = width => Array.from({ length: width / 2 }, (_, i) => 10000 ** (-2 * i / width));
const row = (p, width) => rates(width).flatMap(rate => [Math.sin(rate * p), Math.cos(rate * p)]);
const product = (p, q, width) => {
  const other = row(q, width);
  return row(p, width).reduce((total, x, i) => total + x * other[i], 0);
};
const degrees = turn => {
  const angle = turn * 180 / Math.PI;
  return `${angle < 10 && turn ? fixed(angle, angle < 1 ? 2 : 1)
    : Math.round(angle).toLocaleString("en")}°`;
};
const say = (x, y, text, more = {}) => make("text", { x, y, ...more }, text);

function clocks(p, k, width) {
  const wide = stage.clientWidth, across = wide < 520 ? 4 : 8, cell = wide / across;
  const r = Math.min(cell / 2 - 7, 46), high = 2 * r + 62, rows = Math.ceil(data.faces / across);
  const svg = make("svg", {
    "aria-hidden": "true", viewBox: `0 0 ${wide} ${high * rows}`, height: high * rows,
  });
  const all = rates(width);
  for (let n = 0; n < data.faces; n++) {
    const pair = Math.round(n * (all.length - 1) / (data.faces - 1)), rate = all[pair];
    const cx = cell * (n % across + .5), cy = high * Math.floor(n / across) + r + 4;
    const at = (q, radius) => [cx + radius * Math.sin(rate * q), cy - radius * Math.cos(rate * q)];
    svg.append(make("circle", {
      cx, cy, r, fill: "var(--well)", stroke: "var(--rule)", "stroke-width": 1.5,
    }));
    // The way from p to p + k, unless it is more than a turn.
    const turn = Math.abs(rate * k);
    if (turn >= 2 * Math.PI) svg.append(make("circle", {
      cx, cy, r: r * .55, fill: "none", stroke: "var(--soft)", "stroke-width": 4, opacity: .45,
    }));
    else if (k) {
      const [x1, y1] = at(p, r * .55), [x2, y2] = at(p + k, r * .55);
      svg.append(make("path", {
        d: `M${x1} ${y1}A${r * .55} ${r * .55} 0 ${+(turn > Math.PI)} ${+(k > 0)} ${x2} ${y2}`,
        fill: "none", stroke: "var(--soft)", "stroke-width": 4, opacity: .45,
      }));
    }
    for (const [q, colour, thick] of [[p, "var(--query)", 4.5], [p + k, "var(--key)", 2.5]]) {
      const [x, y] = at(q, r - 5);
      svg.append(
        make("line", { x1: cx, y1: cy, x2: x, y2: y, stroke: colour, "stroke-width": thick,
          "stroke-linecap": "round" }),
        make("circle", { cx: x, cy: y, r: thick === 2.5 ? 3.6 : 5.2, fill: colour }),
      );
    }
    const turnsIn = 2 * Math.PI / rate, middle = { "text-anchor": "middle" };
    const digits = turnsIn < 100 ? turnsIn.toFixed(1) : Math.round(turnsIn).toLocaleString("en");
    svg.append(
      make("circle", { cx, cy, r: 2.5, fill: "var(--ink)" }),
      say(cx, cy + r + 17, `pair ${pair}`, middle),
      say(cx, cy + r + 33, degrees(turn),
        { ...middle, "font-weight": 700 }),
      say(cx, cy + r + 49, digits, { ...middle, class: "soft", "font-size": 12 }),
    );
  }
  return svg;
}

function curve(p, k, width) {
  const wide = stage.clientWidth, height = 200, left = 40, right = 10, top = 34, bottom = 40;
  const steps = Array.from({ length: 2 * data.reach + 1 }, (_, i) => i - data.reach);
  const values = steps.map(step => product(p, p + step, width) / (width / 2));
  const low = Math.min(0, Math.floor(Math.min(...values) * 4) / 4);
  const x = step => left + (wide - left - right) * (step + data.reach) / (2 * data.reach);
  const y = value => top + (height - top - bottom) * (1 - (value - low) / (1 - low));
  const svg = make("svg", {
    class: "curve", "aria-hidden": "true", viewBox: `0 0 ${wide} ${height}`, height,
  });
  svg.append(say(0, 12, wide < 420 ? "dot product, share of largest"
    : "dot product, as a share of the largest (drag along it)", { "font-weight": 600 }));
  for (let v = low; v <= 1; v += .25) svg.append(
    make("line", { x1: left, x2: wide - right, y1: y(v), y2: y(v),
      stroke: v ? "var(--rule)" : "var(--soft)" }),
    say(left - 7, y(v) + 4, minus(v), { "text-anchor": "end", class: "soft" }),
  );
  for (let step = -data.reach; step <= data.reach; step += 10) svg.append(
    say(x(step), height - bottom + 18, minus(step > 0 ? `+${step}` : step),
      { "text-anchor": "middle", class: "soft" }));
  const value = values[k + data.reach], toTheLeft = k > data.reach / 2;
  svg.append(
    say(left, height - 4, "offset k", { class: "soft" }),
    make("line", { x1: x(k), x2: x(k), y1: y(low), y2: y(value), stroke: "var(--ink)",
      "stroke-width": 1.5, "stroke-dasharray": "4 3" }),
    make("path", { d: values.map((v, i) => `${i ? "L" : "M"}${x(steps[i])} ${y(v)}`).join(""),
      fill: "none", stroke: "var(--key)", "stroke-width": 3, "stroke-linejoin": "round" }),
    make("circle", { cx: x(k), cy: y(value), r: 7, fill: "var(--ink)", stroke: "var(--ground)",
      "stroke-width": 2.5 }),
    say(x(k) + (toTheLeft ? -12 : 12), y(value) + (value > .9 ? 5 : -7), fixed(value), {
      "text-anchor": toTheLeft ? "end" : "start", "font-weight": 700, stroke: "var(--ground)",
      "stroke-width": 4, "paint-order": "stroke",
    }),
  );
  return svg;
}

function update() {
  const p = position.value, k = offset.value, width = data.widths[model.value];
  const key = make("p", { class: "key", "aria-hidden": "true" },
    make("span", { class: "p" }, make("b", {}, `thick hand: query at p = ${p}`)),
    make("span", { class: "q" }, make("b", {}, `thin hand: key at p + k = ${p + k}`)),
    make("span", {}, "below each face: angle between the hands, and positions per full turn"));
  stage.replaceChildren(key, clocks(p, k, width), curve(p, k, width));
  const dot = product(p, p + k, width), degrees = Math.round(Math.abs(k) * 180 / Math.PI);
  const turn = k === 0 ? "Both hands of every pair point the same way."
    : `The fastest pair turns by ${degrees.toLocaleString("en")} degrees, ` +
      `the slowest by ${fixed(Math.abs(k) * rates(width).at(-1) * 180 / Math.PI)}, ` +
      "and that is the same at every p.";
  spoken.textContent = `Positions ${p} and ${p + k}, ${width} columns: the dot product is ` +
    `${fixed(dot)} of ${width / 2}. ${turn} Offset ${minus(-k || 0)} has the same dot product.`;
  root.dataset.product = dot;
  root.dataset.row = row(p, width).slice(0, 64).join(" ");
}
// The curve is a slider, too: drag along it to choose the offset. Its picture is drawn anew while
// it is dragged, so that the stage listens.
function drag(event) {
  const svg = stage.querySelector(".curve"), box = svg.getBoundingClientRect();
  const left = 40, right = 10; // margins of the curve
  const share = (event.clientX - box.left - left) / (box.width - left - right);
  const k = Math.round((2 * share - 1) * data.reach);
  offset.input.value = Math.max(-data.reach, Math.min(data.reach, k));
  offset.tell();
  update();
}
stage.addEventListener("pointerdown", event => {
  if (!event.target.closest(".curve")) return;
  stage.setPointerCapture(event.pointerId);
  drag(event);
});
stage.addEventListener("pointermove", event => {
  if (stage.hasPointerCapture(event.pointerId)) drag(event);
});
start();
