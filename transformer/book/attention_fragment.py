"""Style and script of the interactive attention map, without a library or the network.

The script draws on a canvas in the colours of the page and reacts to the pointer, arrow keys, and
changes of width and theme. Without scripts the picture inside remains.
"""

import json

from transformer.book.palette import DARK_GROUND, INK, ROLES, on_dark

STYLE = """
.attention-map{max-width:44rem;font:inherit;text-align:left}
.attention-map canvas{display:block;width:100%;touch-action:pan-y;cursor:crosshair}
.attention-map canvas:focus-visible{outline:2px solid currentColor;outline-offset:3px}
.attention-map img{max-width:100%;height:auto}
.attention-map select{font:inherit;color:inherit;background:transparent;
border:1px solid currentColor;border-radius:4px;padding:.1em .4em;max-width:100%;margin-bottom:.5em}
.attention-map option{color:%INK%;background:#fff}
.attention-map output{display:block;min-height:3.2em;margin-top:.4em}
""".replace("%INK%", INK)

_SHADES = {
    "light": {"query": ROLES["query"], "key": ROLES["key"], "ground": "#ffffff"},
    "dark": {"query": on_dark(ROLES["query"]), "key": on_dark(ROLES["key"]), "ground": DARK_GROUND},
}

SCRIPT = """(() => {
const root = document.querySelector('[id="%ID%"]:not([data-ready])');
if (!root) return;
root.dataset.ready = "yes";
const data = JSON.parse(root.querySelector("script").textContent);
const bytes = Uint8Array.from(atob(data.weights), c => c.charCodeAt(0));
const all = new Uint16Array(bytes.buffer), T = data.queries.length, S = data.keys.length;
let map = 0, row = data.row, column = -1, box = {};
const weight = (t, s) => all[(map * T + t) * S + s] / 65535;

const canvas = document.createElement("canvas"), label = document.createElement("output");
canvas.tabIndex = 0;
canvas.setAttribute("role", "img");
canvas.setAttribute("aria-label", root.querySelector("img").alt + " Arrow keys move through it.");
label.setAttribute("aria-live", "polite");
if (data.names.length > 1) {
  const select = document.createElement("select");
  select.setAttribute("aria-label", "Which map");
  data.names.forEach((name, i) => select.add(new Option(name, i)));
  select.onchange = () => { map = +select.value; show(); };
  root.append(select);
}
root.querySelector("img").remove();
root.append(canvas, label);

const shades = %SHADES%;
const channels = colour => colour[0] === "#"
  ? [1, 3, 5].map(i => parseInt(colour.slice(i, i + 2), 16))
  : colour.match(/[\\d.]+/g).slice(0, 3).map(Number);
// Black or white, whichever is easier to read on a colour.
const legible = colour => {
  const parts = colour.map(c => (c /= 255) <= .04045 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4);
  return .2126 * parts[0] + .7152 * parts[1] + .0722 * parts[2] > .179 ? "#000" : "#fff";
};
function draw() {
  const ink = getComputedStyle(root).color, dark = channels(ink).reduce((a, b) => a + b) > 382;
  const width = root.clientWidth, ratio = window.devicePixelRatio || 1, c = canvas.getContext("2d");
  if (!width) return;
  const size = width < 480 ? 12 : 14, font = weight => weight + size + "px system-ui, sans-serif";
  c.font = font("600 ");
  const widest = words => Math.max(...words.map(word => c.measureText(word).width));
  const left = widest(data.queries) + 14, top0 = size + 10;
  const long = widest(data.keys), fit = room => Math.min((width - left - 2 - room) / S, 72);
  const slant = long > fit(0) - 6, w = fit(slant ? c.measureText(data.keys[S - 1]).width * .6 : 0);
  const h = Math.max(Math.min(w, 34), 8), top = top0 + (slant ? long * .8 : size) + 12;
  const height = top + h * T + 4;
  box = { left, top, w, h };
  canvas.width = width * ratio; canvas.height = height * ratio; canvas.style.height = height + "px";
  c.scale(ratio, ratio);
  c.textBaseline = "middle"; c.fillStyle = ink; c.font = font("");
  const { query, key, ground } = shades[dark ? "dark" : "light"];
  c.font = font("600 "); c.fillStyle = key; c.fillText("key \\u2192", left, top0 / 2);
  c.textAlign = "right"; c.fillStyle = query;
  c.fillText("query \\u2193", left - 8, Math.max(top - size, top0 / 2));
  c.fillStyle = ink; c.font = font("");
  for (let s = 0; s < S; s++) {
    c.save(); c.font = font(s === column ? "700 " : ""); c.fillStyle = s === column ? key : ink;
    c.translate(left + (s + .5) * w, top - 8);
    if (slant) c.rotate(-Math.PI / 4);
    c.textAlign = slant ? "left" : "center"; c.fillText(data.keys[s], 0, slant ? 0 : -size / 2);
    c.restore();
  }
  for (let t = 0; t < T; t++) {
    c.fillStyle = t === row ? query : ink; c.font = font(t === row ? "700 " : "");
    c.textAlign = "right";
    c.fillText(data.queries[t], left - 8, top + (t + .5) * h);
    for (let s = 0; s < S; s++) {
      const value = weight(t, s);
      const share = .05 + .95 * value, from = channels(ground), to = channels(key);
      const colour = to.map((part, i) => Math.round(share * part + (1 - share) * from[i]));
      c.fillStyle = `rgb(${colour})`;
      c.fillRect(left + s * w + .5, top + t * h + .5, w - 1, h - 1);
      if (w >= 34 && h >= 20) {
        c.textAlign = "center"; c.font = font("");
        c.fillStyle = legible(colour);
        c.fillText(value.toFixed(2), left + (s + .5) * w, top + (t + .5) * h);
      }
    }
  }
  c.strokeStyle = query; c.lineWidth = 2.5;
  c.strokeRect(left, top + row * h, S * w, h);
  c.strokeStyle = ink; c.lineWidth = 3;
  if (column >= 0) c.strokeRect(left + column * w + 1, top + row * h + 1, w - 2, h - 2);
}
function show() {
  draw();
  const order = [...Array(S).keys()].sort((a, b) => weight(row, b) - weight(row, a));
  const even = weight(row, order[0]) - weight(row, order[S - 1]) < 1e-3 && S > 1;
  const most = even ? "all alike" : order.slice(0, 3)
    .filter((s, i) => i === 0 || weight(row, s) >= .05)
    .map(s => `${data.keys[s]} ${weight(row, s).toFixed(2)}`).join(", ");
  const here = column < 0 ? "" :
    ` Here: ${data.keys[column]} ${weight(row, column).toFixed(2)}.`;
  const looks = even ? "looks at" : "looks most at";
  label.textContent = `Query \\u201c${data.queries[row]}\\u201d ${looks} ${most}.${here}`;
}
canvas.onpointermove = canvas.onpointerdown = event => {
  const at = canvas.getBoundingClientRect();
  const s = Math.floor((event.clientX - at.left - box.left) / box.w);
  const t = Math.floor((event.clientY - at.top - box.top) / box.h);
  if (t < 0 || t >= T || s >= S || (t === row && s === column)) return;
  row = t; column = Math.max(s, -1); show();
};
canvas.onkeydown = event => {
  const step = {
    ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1],
  }[event.key];
  if (!step) return;
  event.preventDefault();
  row = Math.min(Math.max(row + step[0], 0), T - 1);
  column = Math.min(Math.max(column + step[1], 0), S - 1);
  show();
};
new ResizeObserver(draw).observe(root);
new MutationObserver(draw).observe(document.documentElement, { attributes: true });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
show();
})();""".replace("%SHADES%", json.dumps(_SHADES))
