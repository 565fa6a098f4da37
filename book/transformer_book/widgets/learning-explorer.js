const LAST = data.steps.length - 1, SHOWN = 12, LONGEST = 26;
const comma = number => number.toLocaleString("en-US");
const step = slider("training step", {
  min: 0, max: LAST, value: data.step, show: i => comma(data.steps[i]),
});

function chips(words, kept) {
  const line = make("dd");
  words.slice(0, SHOWN).forEach((word, i) => line.append(make("span",
    { class: kept[i] ? "kept" : "new" },
    word.length > LONGEST ? `${word.slice(0, LONGEST - 1)}\u2026` : word)));
  if (words.length > SHOWN)
    line.append(make("span", { class: "more" }, `and ${words.length - SHOWN} more`));
  if (!words.length) line.append(make("span", { class: "more" }, "(nothing)"));
  return line;
}

// The share of the words of the final translations, step by step.
function curve(now) {
  const width = stage.clientWidth || 600, top = 22, high = 64, height = top + high + 22;
  const left = 40, right = width - 12;
  const x = i => left + (right - left) * data.steps[i] / data.steps[LAST];
  const y = share => top + high * (1 - share);
  const svg = make("svg", { "aria-hidden": "true", viewBox: `0 0 ${width} ${height}`, height });
  const say = (x, y, text, more = {}) => svg.append(make("text", { x, y, ...more }, text));
  say(0, 11, "share of the words of the final translations", { class: "soft" });
  for (const [share, name] of [[0, "0%"], [1, "100%"]]) {
    svg.append(make("line", { x1: left, x2: right, y1: y(share), y2: y(share), stroke: "var(--rule)" }));
    say(left - 5, y(share) + 4, name, { "text-anchor": "end", class: "soft" });
  }
  const path = data.shares.map((share, i) => `${i ? "L" : "M"}${x(i)} ${y(share)}`).join("");
  svg.append(make("path", { d: path, fill: "none", stroke: "var(--value)", "stroke-width": 2 }),
    make("circle", { cx: x(now), cy: y(data.shares[now]), r: 6, fill: "var(--value)" }));
  say(left, height - 3, "0", { class: "soft" });
  say(right, height - 3, `step ${comma(data.steps[LAST])}`, { "text-anchor": "end", class: "soft" });
  return svg;
}

function update() {
  const now = step.value, list = make("dl");
  step.tell();
  data.sources.forEach((source, i) => list.append(
    make("dt", {}, source), chips(data.words[now][i], data.kept[now][i])));
  stage.replaceChildren(list, curve(now));
  const measured = Object.keys(data.scores).map(Number).filter(at => at <= data.steps[now]);
  const at = measured.at(-1);
  spoken.textContent = `Step ${comma(data.steps[now])}: ${Math.round(100 * data.shares[now])}% of ` +
    `the words of the final translations are present, in the same order.` +
    (at === undefined ? "" : ` BLEU on validation sentences at step ${comma(at)}: ${fixed(data.scores[at], 1)}.`);
  root.dataset.share = data.shares[now];
}
start();
