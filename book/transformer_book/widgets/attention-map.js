// A table whose cells are one tab stop: the arrow keys move through it.
const bytes = Uint8Array.from(atob(data.weights), c => c.charCodeAt(0));
const all = new Uint16Array(bytes.buffer), T = data.queries.length, S = data.keys.length;
const menu = data.names.length > 1 ? choice("map", data.names) : { value: 0 };
const weight = (t, s) => all[(menu.value * T + t) * S + s] / 65535;
let row = data.row, column = -1;

const sides = make("td", { class: "corner", "aria-hidden": "true" },
  make("b", {}, "key \u2192"), make("b", {}, "query \u2193"));
const heads = data.keys.map(key => make("th", { scope: "col" }, make("span", {}, key)));
const cells = data.queries.map(() => data.keys.map(() => make("td")));
const names = data.queries.map(query => make("th", { scope: "row" }, query));
const lines = cells.map((line, t) => make("tr", {}, names[t], ...line));
const first = make("col"), top_ = make("tr", {}, sides, ...heads);
const table = make("table", { role: "grid", "aria-label": data.title },
  make("colgroup", {}, first), make("thead", {}, top_), make("tbody", {}, ...lines));
const frame = make("div", { class: "map" }, table);
stage.append(frame);

// Black or white, whichever is easier to read on the background.
const legible = cell => {
  const colour = getComputedStyle(cell).backgroundColor; // "color(srgb 0 0.5 1)" or "rgb(0, 128, 255)"
  const parts = colour.match(/[\d.]+/g).map(c => colour.startsWith("rgb") ? c / 255 : +c)
    .map(c => c <= .04045 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4);
  return .2126 * parts[0] + .7152 * parts[1] + .0722 * parts[2] > .179 ? "black" : "white";
};

// The labels of the queries as wide as they are, the cells as wide as there is room, at most 72.
function fit() {
  top_.className = table.className = first.style.width = "";
  table.style.tableLayout = "auto";
  const left = Math.ceil(Math.max(...[sides, ...names].map(each => {
    const range = document.createRange();
    range.selectNodeContents(each);
    return range.getBoundingClientRect().width;
  }))) + 12;
  const wide = Math.min((frame.clientWidth - 6 - left) / S, 72);
  const longest = Math.max(...heads.map(head => head.firstChild.getBoundingClientRect().width));
  table.style.tableLayout = "";
  first.style.width = `${left}px`;
  table.style.width = `${left + S * wide}px`;
  top_.className = longest > wide - 4 ? "upright" : "";
  table.className = wide < 34 ? "small" : "";
}

function paint() {
  cells.forEach((line, t) => line.forEach((cell, s) => {
    const share = 5 + 95 * weight(t, s);
    cell.style.background = `color-mix(in srgb, var(--key) ${share}%, var(--ground))`;
    cell.textContent = weight(t, s).toFixed(2);
  }));
  for (const cell of cells.flat()) cell.style.color = legible(cell);
}

function mark() {
  cells.forEach((line, t) => line.forEach((cell, s) => {
    const here = t === row && s === Math.max(column, 0);
    cell.tabIndex = here ? 0 : -1;
    cell.className = here && column >= 0 ? "here" : "";
  }));
  lines.forEach((line, t) => { line.className = t === row ? "here" : ""; });
  heads.forEach((head, s) => { head.className = s === column ? "lit" : ""; });
  const order = [...Array(S).keys()].sort((a, b) => weight(row, b) - weight(row, a));
  const even = weight(row, order[0]) - weight(row, order[S - 1]) < 1e-3 && S > 1;
  const most = even ? "all keys" : order.slice(0, 3)
    .filter((s, i) => i === 0 || weight(row, s) >= .05)
    .map(s => `${data.keys[s]} ${fixed(weight(row, s))}`).join(", ");
  const text = `Query \u201c${data.queries[row]}\u201d looks ${even ? "equally" : "most"} at ${most}.`;
  // A screen reader reads the cell itself.
  const here = column < 0 ? "" : ` Here: ${data.keys[column]} ${fixed(weight(row, column))}.`;
  spoken.replaceChildren(text, make("span", { "aria-hidden": "true" }, here));
}

function place(cell) {
  const t = lines.indexOf(cell?.parentElement), s = cells[t]?.indexOf(cell) ?? -1;
  if (s >= 0 && (t !== row || s !== column)) { row = t; column = s; mark(); }
}
for (const event of ["pointermove", "pointerdown", "focusin"])
  table.addEventListener(event, found => place(found.target.closest("td")));
table.addEventListener("keydown", event => {
  const [t, s] = {
    ArrowUp: [row - 1, column], ArrowDown: [row + 1, column],
    ArrowLeft: [row, column - 1], ArrowRight: [row, column + 1],
    Home: [event.ctrlKey ? 0 : row, 0], End: [event.ctrlKey ? T - 1 : row, S - 1],
  }[event.key] ?? [];
  if (t === undefined) return;
  event.preventDefault();
  cells[Math.min(Math.max(t, 0), T - 1)][Math.min(Math.max(s, 0), S - 1)].focus();
});
new MutationObserver(paint).observe(root, { attributes: true, attributeFilter: ["data-theme"] });

function update() { fit(); paint(); mark(); }
start();
