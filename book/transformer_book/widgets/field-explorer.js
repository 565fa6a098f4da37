const kind = choice("layer", data.kinds);
kind.input.value = 2;
const depth = slider("layers", { min: 1, max: data.reads[0].length, value: 3 });
const place = slider("output at", {
  min: 0, max: data.words.length - 1, value: data.position, show: i => data.words[i],
});

function field() {
  const rows = [new Set([place.value])];
  for (let level = depth.value - 1; level >= 0; level--) {
    const below = new Set();
    for (const i of rows[0]) for (const j of data.reads[kind.value][level][i]) below.add(j);
    rows.unshift(below);
  }
  return rows;
}

function update() {
  const n = data.words.length, rows = field();
  const width = Math.max(stage.clientWidth, 200), left = 14, step = (width - left) / n;
  const size = Math.min(14, Math.max(11, step * .42)), foot = 74;
  const rise = 190 / depth.value, height = 190 + foot + 12;
  const x = i => left + step * (i + .5), y = level => height - foot - rise * level;
  const svg = make("svg", { "aria-hidden": "true", viewBox: `0 0 ${width} ${height}`,
    style: `font-size: ${size}px` });
  rows.slice(1).forEach((row, level) => {
    for (const i of row) for (const j of data.reads[kind.value][level][i])
      svg.append(make("line", { x1: x(i), y1: y(level + 1), x2: x(j), y2: y(level),
        stroke: "var(--grey)", "stroke-width": 1.2, opacity: .55 }));
  });
  for (let level = 0; level <= depth.value; level++) for (let i = 0; i < n; i++) {
    const lit = rows[level].has(i), last = level === depth.value;
    const dot = make("circle", { cx: x(i), cy: y(level), r: Math.min(8, step * .3),
      fill: lit ? last ? "var(--purple)" : "var(--grey)" : "var(--well)",
      stroke: lit ? "none" : "var(--rule)" });
    if (last) {
      dot.style.cursor = "pointer";
      dot.addEventListener("click", () => { place.input.value = i; place.tell(); update(); });
    }
    svg.append(dot);
  }
  data.words.forEach((word, i) => {
    const lit = rows[0].has(i);
    svg.append(make("text", { x: x(i), y: y(0) + 18, "text-anchor": "end",
      transform: `rotate(-50 ${x(i)} ${y(0) + 18})`, class: lit ? "" : "soft",
      "font-weight": lit ? 700 : 400 }, word));
  });
  stage.replaceChildren(svg);
  const count = rows[0].size, source = data.words[data.source];
  const layers = depth.value === 1 ? "1 layer" : `${depth.value} layers`;
  const arrived = place.value === data.source ? "" : rows[0].has(data.source)
    ? ` “${source}” is among them.` : ` “${source}” is not among them.`;
  spoken.textContent = `After ${layers}, ${count} of ${n} inputs reach the output at `
    + `“${data.words[place.value]}”.${arrived}`;
  root.dataset.reached = [...rows[0]].sort((a, b) => a - b).join(" ");
}
start();
