const COUNTED = data.pairs.length;
const whole = n => n.toLocaleString("en");
const { step, mark } = stepper({
  min: 0, max: data.stops.length - 1, value: data.first, show: i => `${whole(data.stops[i])} of ${whole(data.total)}`,
}, { name: "merges", unit: "merge", every: 900 });

// A table of five rows: the most frequent pairs with their counts, or the merges that come next.
function pairs(at) {
  const counted = at < COUNTED;
  const rows = counted ? data.pairs[at] : data.after[at - COUNTED];
  const body = make("tbody");
  const most = counted ? rows[0][2] : 1;
  for (let i = 0; i < 5; i++) {
    const [left, right, n] = rows[i] || [];
    const row = make("tr", { class: i ? "" : "here" },
      make("td", {}, left === undefined ? "\u00a0" : `${left} + ${right}`));
    if (counted && n !== undefined) row.append(make("td", { class: "bar" },
      make("i", { style: `width:${(60 * n / most).toFixed(1)}%` }), make("span", {}, whole(n))));
    else row.append(make("td", {}));
    body.append(row);
  }
  const name = counted ? "Most frequent pairs" : rows.length ? "Merges that follow" : "No merge left";
  const head = counted ? ["pair", "count"] : ["pair"];
  const titles = head.map(title => make("th", { scope: "col", colspan: 3 - head.length }, title));
  return make("table", {}, make("caption", {}, name), make("thead", {}, make("tr", {}, ...titles)), body);
}

function update() {
  const at = step.value, stop = data.stops[at];
  mark();
  const joins = at ? data.joins[at - 1] : [], made = joins.join("");
  const single = at && data.stops[at - 1] === stop - 1;
  const lines = data.pieces[at].map(line => make("p", { class: "line" },
    ...line.map(piece => make("span", { class: single && piece === made ? "made" : "" }, piece)),
    make("small", {}, `${line.length} tokens`)));
  stage.replaceChildren(make("div", { class: "board" }, pairs(at), make("div", {}, ...lines)));
  const words = [];
  if (!at) words.push("Before the first merge, every byte is a token.");
  else if (single) words.push(
    `Merge ${whole(stop)} joins \u201c${joins[0]}\u201d and \u201c${joins[1]}\u201d into \u201c${made}\u201d.`);
  else words.push(`${whole(stop)} merges are learned; the last one makes \u201c${made}\u201d.`);
  words.push(`The sentences have ${data.pieces[at].map(line => line.length).join(" and ")} tokens.`);
  if (at < COUNTED) {
    const [left, right, n] = data.pairs[at][0];
    words.push(`The most frequent pair is now \u201c${left}\u201d and \u201c${right}\u201d, ${whole(n)} times.`);
  }
  spoken.textContent = words.join(" ");
  root.dataset.merges = stop;
  root.dataset.pieces = data.pieces[at].map(line => line.join("|")).join("\n");
}
start();
