const last = data.steps.length - 1;
const { step, go, mark } = stepper({
  min: 0, max: last, value: data.step, show: t => `${t + 1} of ${last + 1}`,
});
const named = side => data.tokens[side].map((token, i) => `${i + 1}: ${token}`);
const rows = { source: choice("source token", named("source")),
  target: choice("target position", named("target")) };
for (const [side, row] of Object.entries(rows)) row.input.value = data.row[side];
const say = (x, y, text, more = {}) => make("text", { x, y, ...more }, text);
const HALF = (data.levels.length - 1) / 2, SHADES = 12;
const level = Object.fromEntries([...data.levels].map((letter, i) => [letter, (i - HALF) / HALF]));
const colourOf = s => `var(--${s.colour})`;

// Cells of a matrix as one path per shade, which keeps the page small; at most 12 shades a sign.
function cells(values, columns, left, top, width, height, colour) {
  const paths = {};
  values.forEach((value, n) => {
    const shade = Math.round(Math.min(Math.abs(value), 1) * SHADES) * (value < 0 ? -1 : 1);
    if (!shade) return;
    const x = left + (n % columns + .5) * width, y = top + Math.floor(n / columns) * height + .5;
    paths[shade] = (paths[shade] || "") + `M${x.toFixed(2)} ${y.toFixed(1)}v${height - 1}`;
  });
  return Object.entries(paths).map(([shade, d]) => make("path", {
    d, stroke: shade < 0 ? "var(--soft)" : colour, "stroke-width": (width * 1.03).toFixed(2),
    "stroke-opacity": (Math.abs(shade) / SHADES).toFixed(2), fill: "none",
  }));
}
const frame = (x, y, width, height, more = {}) =>
  make("rect", { x, y, width, height, fill: "none", stroke: "var(--rule)", ...more });
const drawing = (height, ...children) => make("svg", {
  "aria-hidden": "true", viewBox: `0 0 ${stage.clientWidth} ${height}`, height,
}, ...children);
const shades = (s, row) => {
  const columns = s.shades.length / data.tokens[s.side].length;
  const text = row === undefined ? s.shades : s.shades.slice(row * columns, (row + 1) * columns);
  return [[...text].map(letter => level[letter]), columns];
};
const NAMES = 82, ROW = 15;

// Names of the rows; a click follows that token.
function names(side, chosen, top) {
  return data.tokens[side].map((token, i) => {
    const name = say(NAMES - 6, top + (i + .5) * ROW + 4, token, { "text-anchor": "end",
      class: i === chosen ? "here" : "soft", style: "cursor: pointer" });
    name.addEventListener("click", () => { rows[side].input.value = i; update(); });
    return name;
  });
}

function matrix(s, chosen) {
  const [values, columns] = shades(s), wide = stage.clientWidth - NAMES - 2;
  const height = values.length / columns * ROW;
  return drawing(height + 4, ...names(s.side, chosen, 2),
    ...cells(values, columns, NAMES, 2, wide / columns, ROW, colourOf(s)),
    frame(NAMES, 2, wide, height),
    frame(NAMES, 2 + chosen * ROW, wide, ROW, { stroke: "var(--ink)", "stroke-width": 2 }));
}

// One vector with 64 numbers per line, which are those of one head.
function vector(s, chosen) {
  const [values, columns] = shades(s, chosen), across = 64, high = 20;
  const wide = stage.clientWidth - 2, height = values.length / across * high;
  return drawing(height + 3,
    ...cells(values, across, 1, 1, wide / across, high, colourOf(s)),
    frame(1, 1, wide, height, { stroke: "var(--ink)" }));
}

function maps(s, chosen) {
  const heads = s.weights.length, wide = stage.clientWidth, phone = wide < 560;
  const keys = s.weights[0][0].length, queries = s.weights[0].length;
  const across = phone ? 2 : heads, gap = 12, left = phone ? 0 : NAMES;
  const size = Math.min((wide - left - gap * (across - 1)) / across, ROW * keys);
  const cell = size / keys, high = phone ? cell : ROW, top = 22;
  const block = top + queries * high + 8;
  const parts = phone ? [] : names(s.side, chosen, top);
  s.weights.forEach((map, h) => {
    const x = left + (h % across) * (size + gap), y = Math.floor(h / across) * block;
    const masked = s.name.startsWith("masked");
    parts.push(say(x, y + 13, `head ${h + 1}`, { class: "soft" }));
    if (masked) map.forEach((_, q) => {
      const hidden = (keys - 1 - q) * cell;
      if (hidden > 0) parts.push(make("rect", { x: x + (q + 1) * cell, y: y + top + q * high,
        width: hidden, height: high, fill: "var(--hidden)" }));
    });
    parts.push(...cells(map.flat().map(w => w / 1000), keys, x, y + top, cell, high,
      colourOf(s)), frame(x, y + top, size, queries * high),
      frame(x, y + top + chosen * high, size, high, { stroke: "var(--ink)", "stroke-width": 2 }));
  });
  return drawing(Math.ceil(heads / across) * block, ...parts);
}

function strongest(s, chosen) {
  // Keys are the source's tokens unless the target attends to itself.
  const keys = data.tokens[s.name.startsWith("masked") ? "target" : "source"];
  return s.weights.map((map, h) => {
    const row = map[chosen], best = row.map((_, k) => k).sort((a, b) => row[b] - row[a]);
    return `head ${h + 1} ` +
      best.slice(0, 2).filter((k, n) => !n || row[k] >= 50).map(k => `\u201c${keys[k]}\u201d ${Math.round(row[k] / 10)}\u00a0%`).join(", ");
  });
}

function bars(s, chosen) {
  const wide = stage.clientWidth, best = s.tops[chosen], high = 26, left = 104;
  const most = Math.max(...best.map(pair => pair[1])), share = s.name === "probabilities";
  return drawing(best.length * high + 4, ...best.flatMap(([token, value], i) => [
    say(left - 8, i * high + 18, token, { "text-anchor": "end", class: i ? "" : "here" }),
    make("rect", { x: left, y: i * high + 4, height: high - 8, rx: 3,
      width: Math.max(1, (wide - left - 74) * value / (share ? 1 : most)),
      fill: "var(--blue)" }),
    say(left + (wide - left - 74) * value / (share ? 1 : most) + 8, i * high + 18,
      share ? `${fixed(100 * value, 1)}%` : fixed(value, 1), { class: "soft" }),
  ]));
}

function tokenIds(s, chosen) {
  return make("div", { class: "ids" }, ...s.ids.map((id, i) => make("span", {
    class: i === chosen ? "here" : "" }, make("b", {}, data.tokens[s.side][i]), String(id))));
}

// The progress bar: one mark per step, grouped by part.
function track(now) {
  const groups = [];
  data.steps.forEach((s, i) => {
    if (groups.at(-1)?.part !== s.part) groups.push({ part: s.part, marks: [] });
    const mark = make("i", { class: i === now ? "now" : i < now ? "past" : "" });
    mark.addEventListener("click", () => go(i - step.value));
    groups.at(-1).marks.push(mark);
  });
  const short = part => part.replace("Encoder layer", "Enc.").replace("Decoder layer", "Dec.")
    .replace("Target so far", "Target");
  return make("div", { class: "track", "aria-hidden": "true" }, ...groups.map(({ part, marks }) =>
    make("div", { class: part === data.steps[now].part ? "at" : "" },
      make("div", {}, ...marks), make("span", {}, short(part)))));
}

function update() {
  const now = step.value, s = data.steps[now], chosen = rows[s.side].value;
  const token = data.tokens[s.side][chosen];
  mark();
  const title = make("p", { class: "title" }, make("b", {}, `${s.part}: ${s.name}`),
    make("span", {}, s.shape));
  const note = text => make("p", { class: "note", "aria-hidden": "true" }, text);
  const shown = [], whole = [];
  if (s.ids) {
    shown.push(tokenIds(s, chosen));
    whole.push(`\u201c${token}\u201d is token ${s.ids[chosen].toLocaleString("en")}.`);
  } else if (s.weights) {
    shown.push(maps(s, chosen), note("Rows: queries. Columns: keys, in the order of their tokens. " +
      "The stronger the colour, the larger the weight."));
    whole.push(`The largest weights of \u201c${token}\u201d: ${strongest(s, chosen).join("; ")}.`);
  } else if (s.tops) {
    shown.push(note(`Position \u201c${token}\u201d: the ${s.tops[chosen].length} largest of ` +
      `${s.shape.split(" \u00d7 ")[1]} numbers`), bars(s, chosen));
    whole.push(`After \u201c${token}\u201d, the most probable token is ` +
      `\u201c${s.tops[chosen][0][0]}\u201d.`);
  } else {
    const first = s.first[chosen].map(value => fixed(value)).join(", ");
    shown.push(matrix(s, chosen), note(`The row of \u201c${token}\u201d, 64 numbers per line. ` +
      `Grey is negative; the strongest shade is \u00b1${fixed(s.largest, 1)}.`), vector(s, chosen));
    whole.push(`The row of \u201c${token}\u201d begins ${first}; its length is ` +
      `${fixed(s.length[chosen], 1)}.`);
  }
  stage.replaceChildren(track(now), title, ...shown);
  spoken.textContent = `${s.says} ${whole.join(" ")}`;
  root.dataset.step = now;
}
start();
