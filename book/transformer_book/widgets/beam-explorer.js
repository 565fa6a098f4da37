let last = data.searches[0].steps.length;
const { step, go, mark } = stepper({
  min: 0, max: last, value: data.step, show: t => `${t} of ${last}`,
});
const sentence = choice("sentence", data.searches.map(search => search.source));
const penalty = choice("length penalty", data.penalties);
const lists = make("div", { class: "lists" });
spoken.after(lists);  // they grow with the search, so nothing below them moves

sentence.input.addEventListener("change", () => go(-step.value));

const FILL = { alive: "var(--purple)", ended: "var(--brown)", dropped: "none" };
const say = (x, y, text, more = {}) => make("text", { x, y, ...more }, text);

function tree(search, t) {
  const wide = stage.clientWidth, phone = wide < 520, margin = 46, cell = phone ? 88 : 101;
  const shown = Math.max(Math.floor((wide - margin) / cell), 2);
  const rows = Math.max(...search.steps.map(found => found.length)), high = 30;
  const first = Math.max(0, t - shown + 1), across = (wide - margin) / shown, pill = across - 26;
  const height = 26 + rows * high;
  const svg = make("svg", {
    "aria-hidden": "true", viewBox: `0 0 ${wide} ${height}`, height,
  });
  const left = column => (column - first) * across, middle = row => 26 + (row + .5) * high;
  const lines = make("g", { fill: "none" }), pills = make("g");
  svg.append(lines, pills);
  const start = [{ parent: -1, token: "start", fate: "alive" }];
  const found = column => column === 0 ? start : search.steps[column - 1];
  // The way to the best text of this step that is alive or, at the end, to the best that ended.
  const path = new Set();
  let place = t ? Math.max(found(t).findIndex(one => one.fate === "alive"), 0) : 0;
  for (let column = t; column >= 0; column--) {
    path.add(`${column} ${place}`);
    place = column > 1 ? found(column)[place].parent : 0;
  }
  for (let column = first; column <= t; column++) {
    pills.append(say(left(column) + pill / 2, 12, column ? `step ${column}` : "",
      { "text-anchor": "middle", class: "soft", "font-weight": column === t ? 700 : 400 }));
    found(column).forEach((one, row) => {
      const x = left(column), y = middle(row), dropped = one.fate === "dropped";
      const on = path.has(`${column} ${row}`);
      if (column > first) {
        const x1 = left(column - 1) + pill, y1 = middle(column > 1 ? one.parent : 0);
        lines.append(make("path", {
          d: `M${x1} ${y1}C${x1 + 14} ${y1} ${x - 14} ${y} ${x} ${y}`,
          stroke: dropped ? "var(--soft)" : FILL[one.fate], opacity: dropped ? .55 : 1,
          "stroke-width": on ? 3.5 : dropped ? 1 : 1.6,
          ...(dropped ? { "stroke-dasharray": "3 3" } : {}),
        }));
      }
      pills.append(
        make("rect", {
          x, y: y - 11, width: pill, height: 22, rx: 7, fill: FILL[one.fate],
          ...(dropped ? { stroke: "var(--soft)", "stroke-dasharray": "3 3" } : {}),
        }),
        say(x + pill / 2, y + 4.5, short(one.token, pill - 6), {
          "text-anchor": "middle", style: `fill: var(--${dropped ? "soft" : "on"})`,
          "font-weight": on ? 700 : 400,
        }),
      );
      if (column === t && column) pills.append(say(x + pill + 5, y + 4.5, fixed(one.log), {
        class: dropped ? "soft" : "", "font-size": 12,
      }));
    });
  }
  return svg;
}
function short(token, room) {
  const most = Math.floor(room / 7.6);
  return token.length <= most ? token : token.slice(0, most - 1) + "\u2026";
}

function table(caption, heads, rows, best) {
  const cell = (tag, text, number, more = {}) =>
    make(tag, { ...more, ...(number ? { class: "number" } : {}) }, text);
  const head = make("tr", { class: "beam-row" },
    ...heads.map((text, i) => cell("th", text, i, { scope: "col" })));
  return make("table", {}, make("caption", {}, caption), make("thead", {}, head),
    make("tbody", {}, ...rows.map((row, place) => make("tr", {
      class: place === best ? "beam-row best" : "beam-row",
    }, ...row.map((text, i) => cell("td", text, i))))));
}

function update() {
  const search = data.searches[sentence.value];
  last = search.steps.length;
  step.input.max = last;
  step.tell();
  const t = step.value, which = penalty.value, now = t ? search.steps[t - 1] : [];
  mark();
  const alive = t ? now.filter(one => one.fate === "alive") : [{ text: "(nothing yet)", log: 0 }];
  const ended = search.steps.slice(0, t).flat().filter(one => one.fate === "ended")
    .sort((a, b) => b.scores[which] - a.scores[which]);
  const key = make("p", { class: "key", "aria-hidden": "true" });
  for (const [fate, words] of [
    ["alive", "lives on (bold: the most probable)"], ["ended", "has ended"], ["dropped", "dropped"],
  ]) key.append(make("span", {}, make("i", { class: fate }), words));
  stage.replaceChildren(key, tree(search, t));
  lists.replaceChildren(
    table("Alive", ["prefix", "log p"], alive.map(one => [one.text, fixed(one.log)])),
    table("Finished so far", ["translation", "log p", "score"], ended.length
      ? ended.map(one => [one.text, fixed(one.log), fixed(one.scores[which], 3)])
      : [["(none)", "", ""]], ended.length ? 0 : -1));

  const count = fate => now.filter(one => one.fate === fate).length;
  const settled = t >= search.settled[which];
  const words = [t ? `Step ${t} of ${last}: ${count("alive")} live on, ${count("ended")} ended, ` +
    `${count("dropped")} dropped.` : `\u201c${search.source}\u201d: the search begins with nothing.`];
  if (t && alive.length) words.push(`Most probable prefix: \u201c${alive[0].text}\u201d.`);
  if (ended.length) words.push(
    `Best that ended, by ${data.penalties[which]}: \u201c${ended[0].text}\u201d, ` +
    `score ${fixed(ended[0].scores[which], 3)}.`);
  if (ended.length) words.push(settled
    ? "Nothing alive can beat it: the search may stop." : "It may still be beaten.");
  spoken.textContent = words.join(" ");
  root.dataset.step = t;
  root.dataset.best = ended.length ? ended[0].text : "";
}
start();
