const last = data.tokens.length - 1, V = data.vocabulary;
const step = slider("position", {
  min: 0, max: last, value: data.step, show: i => `${i + 1} of ${last + 1}: ${data.tokens[i][0]}`,
});
const smoothing = slider("smoothing ε", {
  min: 0, max: .4, step: .02, value: data.epsilon, show: fixed,
});

const target = epsilon => [1 - epsilon + epsilon / V, epsilon / V];
const term = q => q > 0 ? -q * Math.log(q) : 0;
const floor = epsilon => term(target(epsilon)[0]) + (V - 1) * term(target(epsilon)[1]);
const loss = (i, epsilon) => -(1 - epsilon) * data.logP[i][0] - epsilon * data.meanLogP[i];
const share = number => number > 0 && number < .005 ? "<0.01" : fixed(number);

function bars(names, p, q) {
  const width = stage.clientWidth, row = 32, top = 24, height = top + row * names.length;
  const left = width < 480 ? 84 : 120, numbers = 154, room = width - left - numbers;
  const svg = make("svg", { "aria-hidden": "true", viewBox: `0 0 ${width} ${height}`, height });
  const say = (x, y, text, more = {}) => svg.append(make("text",
    { x, y, "dominant-baseline": "central", ...more }, text));
  const columns = [46, 98, 154].map(x => left + room + x), end = { "text-anchor": "end" };
  say(columns[0], 8, "p", { ...end, "font-weight": 700, style: "fill: var(--brown)" });
  say(columns[1], 8, "q", { ...end, "font-weight": 700, style: "fill: var(--purple)" });
  say(columns[2], 8, "p \u2212 q", { ...end, "font-weight": 700 });
  names.forEach((name, i) => {
    const y = top + row * i, middle = y + row / 2, bold = i ? {} : { "font-weight": 700 };
    const bar = (from, value, colour) => make("rect", {
      x: left, y: from, width: Math.max(0, room * value), height: 10, rx: 3, fill: `var(--${colour})`,
    });
    svg.append(
      make("rect", { x: left, y: y + 4, width: room, height: row - 8, rx: 4, fill: "var(--well)" }),
      bar(y + 5, p[i], "brown"), bar(y + 17, q[i], "purple"));
    say(0, middle, name, bold);
    say(columns[0], middle, share(p[i]), { ...end, ...bold });
    say(columns[1], middle, share(q[i]), { ...end, ...bold });
    say(columns[2], middle, fixed(p[i] - q[i]), { ...end, ...bold });
  });
  return svg;
}

// The loss by the lead g of the right logit, all others equal: -log p + (1 - q) g.
function chart(epsilon) {
  const width = stage.clientWidth, height = 190, left = 34, right = 14, top = 46, bottom = 40;
  const most = 24, high = 9;
  const x = g => left + (width - left - right) * g / most;
  const y = value => top + (height - top - bottom) * (1 - Math.min(value, high) / high);
  const svg = make("svg", {
    class: "chart", "aria-hidden": "true", viewBox: `0 0 ${width} ${height}`, height,
  });
  const say = (px, py, text, more = {}) => svg.append(make("text", { x: px, y: py, ...more }, text));
  say(0, 12, "loss, in nats", { "font-weight": 600 });
  say(0, 30, "dashed: without smoothing", { class: "soft" });
  for (const tick of [0, 3, 6, 9]) {
    svg.append(make("line", { x1: left, x2: width - right, y1: y(tick), y2: y(tick), stroke: "var(--rule)" }));
    say(left - 6, y(tick) + 4, String(tick), { "text-anchor": "end", class: "soft" });
  }
  for (const tick of [0, 6, 12, 18, 24])
    say(x(tick), height - bottom + 17, String(tick), { "text-anchor": "middle", class: "soft" });
  say(x(most / 2), height - 5, "lead of the right logit over all others", { "text-anchor": "middle", class: "soft" });
  const at = (g, e) => Math.log(1 + (V - 1) * Math.exp(-g)) + (1 - target(e)[0]) * g;
  const path = e => Array.from({ length: 97 }, (_, i) => i / 4)
    .map((g, i) => `${i ? "L" : "M"}${x(g)} ${y(at(g, e))}`).join("");
  svg.append(
    make("path", { d: path(0), fill: "none", stroke: "var(--soft)", "stroke-width": 2, "stroke-dasharray": "5 4" }),
    make("path", { d: path(epsilon), fill: "none", stroke: "var(--ink)", "stroke-width": 3 }));
  if (!epsilon) return { svg, lead: null };
  const [q, other] = target(epsilon), lead = Math.log(q / other);
  svg.append(make("circle", {
    cx: x(lead), cy: y(at(lead, epsilon)), r: 6, fill: "var(--ink)", stroke: "var(--ground)", "stroke-width": 2,
  }));
  say(x(lead), y(at(lead, epsilon)) - 14, `best: ${fixed(lead, 1)}`, { "text-anchor": "middle",
    "font-weight": 700, stroke: "var(--ground)", "stroke-width": 4, "paint-order": "stroke" });
  return { svg, lead };
}

function update() {
  const i = step.value, epsilon = smoothing.value, [right, other] = target(epsilon);
  const p = data.logP[i].map(Math.exp), q = p.map((_, k) => k ? other : right);
  const rest = shares => Math.max(0, 1 - shares.reduce((a, b) => a + b, 0));
  const fact = (value, name) => make("div", { class: "fact" }, make("b", {}, fixed(value)), name);
  const seen = loss(i, epsilon), least = floor(epsilon), curve = chart(epsilon);
  stage.replaceChildren(
    bars([...data.tokens[i], "all others"], [...p, rest(p)], [...q, rest(q)]),
    make("div", { class: "facts", "aria-hidden": "true" },
      fact(-data.logP[i][0], "loss without smoothing"), fact(seen, "loss with smoothing"),
      fact(least, "its minimum")),
    curve.svg);
  const push = p[0] - right > .005 ? "pushes its logit down" : p[0] - right < -.005
    ? "pushes its logit up" : "hardly changes its logit";
  spoken.textContent = `“${data.tokens[i][0]}” has probability ${fixed(p[0])}, its target is ` +
    `${fixed(right)}: training ${push}. The smoothed loss is ${fixed(seen)}, ` +
    `its minimum ${fixed(least)}. ` + (curve.lead === null
    ? "Without smoothing, a larger lead always reduces the loss."
    : `If all other logits are equal, the best lead is ${fixed(curve.lead, 1)}.`);
  root.dataset.loss = seen;
  root.dataset.least = least;
}
start();
