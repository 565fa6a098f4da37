const S = data.keys.length;
const query = slider("query", {
  min: 1, max: data.scores.length, value: data.query + 1, show: q => `${q} of ${data.scores.length}`,
});
const size = slider(["vector length ", ...keySize()], {
  min: 0, max: data.sizes.length - 1, value: data.size, show: i => String(data.sizes[i]),
});
const warmth = slider("temperature", {
  min: -8, max: 8, value: 0, show: t => fixed(2 ** (t / 4)),
});
const divide = tick(["divide by \u221a", ...keySize()], data.divide);

const factor = (i, divided) => 2 ** (-warmth.value / 4) / (divided ? Math.sqrt(data.sizes[i]) : 1);
function look(i, divided, q = query.value - 1) {
  const scores = data.scores[q][i].map(s => s * factor(i, divided));
  const top = Math.max(...scores), powers = scores.map(s => Math.exp(s - top));
  const total = powers.reduce((a, b) => a + b), weights = powers.map(p => p / total);
  const mean = scores.reduce((a, b) => a + b) / S;
  const spread = Math.sqrt(scores.reduce((a, s) => a + (s - mean) ** 2, 0) / S);
  // The root of the sum of the squares of p_i (d_ij - p_j), without its S x S entries.
  const two = weights.reduce((a, p) => a + p ** 2, 0);
  const three = weights.reduce((a, p) => a + p ** 3, 0);
  return { scores, weights, spread, slope: Math.sqrt(Math.max(two - 2 * three + two ** 2, 0)) };
}

function bars({ scores, weights }) {
  const width = stage.clientWidth, row = 27, top = 24, best = weights.indexOf(Math.max(...weights));
  const left = width < 480 ? 44 : 64, gap = width < 480 ? 10 : 28, half = (width - left - gap) / 2;
  const svg = make("svg", {
    "aria-hidden": "true", viewBox: `0 0 ${width} ${top + row * S}`, height: top + row * S,
  });
  const number = 44, arm = (half - 2 * number) / 2, zero = left + number + arm;
  const right = left + half + gap, room = half - number;
  const far = Math.log1p(data.farthest);  // the scale of scores: logarithmic, from -far to far
  const say = (x, y, text, more = {}) => make("text",
    { x, y, "dominant-baseline": "central", ...more }, text);
  svg.append(
    say(zero, 8, "scores, log scale", { "text-anchor": "middle", class: "soft" }),
    say(right, 8, "weights", { class: "soft" }),
    make("line", { x1: zero, x2: zero, y1: top - 4, y2: top + row * S, stroke: "var(--rule)" }),
  );
  for (let s = 0; s < S; s++) {
    const y = top + row * s, middle = y + row / 2, bold = s === best ? { "font-weight": 700 } : {};
    const shade = { fill: "var(--key)", opacity: s === best ? 1 : .6 };
    const long = Math.log1p(Math.abs(scores[s])) / far * arm, back = scores[s] < 0;
    svg.append(
      make("rect", { x: right, y: y + 4, width: room, height: row - 8, rx: 4, fill: "var(--well)" }),
      make("rect", { x: back ? zero - long : zero, y: y + 4, width: long, height: row - 8, rx: 3, ...shade }),
      make("rect", { x: right, y: y + 4, width: room * weights[s], height: row - 8, rx: 4, ...shade }),
      say(0, middle, data.keys[s], bold),
      say(back ? zero - long - 5 : zero + long + 5, middle, fixed(scores[s], 1),
        { "text-anchor": back ? "end" : "start", ...bold }),
      say(right + room + 8, middle, fixed(weights[s]), bold),
    );
  }
  return svg;
}

function median(numbers) {
  const sorted = [...numbers].sort((a, b) => a - b), half = sorted.length >> 1;
  return sorted.length % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}
function chart() {
  const width = stage.clientWidth, height = 186, left = 44, right = 12, top = 46, bottom = 36;
  const x = i => left + (width - left - right) * i / (data.sizes.length - 1);
  const y = slope => top + (height - top - bottom) * (1 - slope / .5);
  const svg = make("svg", {
    class: "chart", "aria-hidden": "true", viewBox: `0 0 ${width} ${height}`, height,
  });
  const say = (px, py, text, more) => make("text", { x: px, y: py, ...more }, text);
  svg.append(
    say(0, 12, "slope of the softmax", { "font-weight": 600 }),
    say(0, 30, `thick: median of ${data.scores.length} queries, dashed: this query`, { class: "soft" }),
    say(x(0) - 12, height - bottom + 18, "d", { class: "soft", "font-style": "italic",
      "text-anchor": "end" }),
    say(x(0) - 12, height - bottom + 21, "k", { class: "soft", "font-size": 9 }),
  );
  for (const tick of [0, .25, .5]) svg.append(
    make("line", { x1: left, x2: width - right, y1: y(tick), y2: y(tick), stroke: "var(--rule)" }),
    say(left - 6, y(tick) + (tick ? 4 : -2), String(tick), { "text-anchor": "end", class: "soft" }),
  );
  data.sizes.forEach((d, i) => svg.append(
    say(x(i), height - bottom + 18, String(d), { "text-anchor": "middle", class: "soft" })));
  const ends = [!divide.value, divide.value].map(divided => {
    const all = data.sizes.map((_, i) => data.scores.map((_, q) => look(i, divided, q).slope));
    const colour = divided ? "var(--blue)" : "var(--vermilion)", here = divided === divide.value;
    const path = slopes => slopes.map((s, i) => `${i ? "L" : "M"}${x(i)} ${y(s)}`).join("");
    const middle = all.map(median), own = all.map(slopes => slopes[query.value - 1]);
    const line = { fill: "none", stroke: colour, "stroke-linejoin": "round" };
    svg.append(make("path", { d: path(middle), ...line, "stroke-width": 3.5 }));
    if (here) svg.append(
      make("path", { d: path(own), ...line, "stroke-width": 1.5, "stroke-dasharray": "4 3" }),
      make("circle", {
        cx: x(size.value), cy: y(own[size.value]), r: 7,
        fill: colour, stroke: "var(--ground)", "stroke-width": 2.5,
      }),
    );
    const near = middle.filter((_, i) => x(i) > width - right - 76);  // under the line's name
    return { colour, end: y(Math.max(...near)), name: divided ? "divided" : "undivided" };
  });
  ends.sort((a, b) => b.end - a.end);  // the lower line's name first; the other stays above it
  let baseline = Infinity;
  for (const { colour, end, name } of ends) {
    baseline = Math.min(Math.max(end - 12, top + 10), baseline - 15);
    svg.append(say(width - right, baseline, name, {
      "text-anchor": "end", "font-weight": 700, style: `fill: ${colour}`,
      stroke: "var(--ground)", "stroke-width": 4, "paint-order": "stroke",
    }));
  }
  return svg;
}

function fact(value, most, name, alarm, digits) {
  const bar = make("i", { style: `width: ${100 * Math.min(value / most, 1)}%` });
  return make("div", { class: alarm ? "fact alarm" : "fact" },
    make("b", {}, fixed(value, digits)), name, make("div", { class: "meter" }, bar));
}

function update() {
  const d = data.sizes[size.value], seen = look(size.value, divide.value);
  const largest = Math.max(...seen.weights), best = data.keys[seen.weights.indexOf(largest)];
  const facts = make("div", { class: "facts", "aria-hidden": "true" },
    fact(seen.spread, 16, "spread of the scores", seen.spread > 4, 1),
    fact(largest, 1, "largest weight", largest > .9, 2),
    fact(seen.slope, .5, "slope of the softmax", seen.slope < .1, 3));
  stage.replaceChildren(bars(seen), facts, chart());
  const moral = seen.slope < .1 ? (largest > .9
    ? "Nearly a hard choice: little gradient gets through."
    : "Nearly even: a change of the scores changes little.")
    : largest > .9 ? "Almost a hard choice." : "A soft choice: the gradient gets through.";
  spoken.textContent = `d_k = ${d}, ${divide.value ? "divided by its root" : "undivided"}, ` +
    `temperature ${fixed(2 ** (warmth.value / 4))}: the scores spread by ${fixed(seen.spread, 1)}, ` +
    `${best} gets ${fixed(largest)} of the weight, the slope is ${fixed(seen.slope, 3)}. ${moral}`;
  root.dataset.weights = seen.weights.join(" ");
  root.dataset.slope = seen.slope;
}
start();
