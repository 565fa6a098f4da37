const [firstAngle, firstShift, firstStrength] = data.first;
const angle = slider("direction", {
  min: -180, max: 180, step: 15, value: firstAngle, show: degrees => `${minus(degrees)}°`,
});
const shift = slider("shift of the line", {
  min: -1.5, max: 1.5, step: .25, value: firstShift, show: fixed,
});
const NAMES = { 0: "0: nothing", 1: "1: flatten", 2: "2: fold" };
const strength = slider("strength", {
  min: 0, max: 2, step: .25, value: firstStrength, show: value => NAMES[value] ?? fixed(value),
});

const letter = i => "ABCDEFGH"[i];
function direction() {
  const turn = angle.value * Math.PI / 180;
  return [Math.cos(turn), Math.sin(turn)];
}
function active([x, y]) {
  const [dx, dy] = direction();
  return Math.max(0, x * dx + y * dy - shift.value);
}
function moved(point) {
  const unit = active(point), [dx, dy] = direction();
  return [point[0] - strength.value * unit * dx, point[1] - strength.value * unit * dy];
}
function gap(points) {
  let best = { gap: -Infinity };
  for (let degrees = 0; degrees < 360; degrees++) {
    const turn = degrees * Math.PI / 180, dx = Math.cos(turn), dy = Math.sin(turn);
    const along = points.map(([x, y]) => x * dx + y * dy);
    const ones = Math.min(...along.filter((_, i) => data.kinds[i]));
    const others = Math.max(...along.filter((_, i) => !data.kinds[i]));
    if (ones - others > best.gap + 1e-9)
      best = { gap: ones - others, dx, dy, at: (ones + others) / 2 };
  }
  return best;
}

// A plane from -1 to 2. Far points of a wild setting leave the frame.
function plane(title, place, best) {
  const size = 240, scale = size / 3;
  const x = a => (a + 1) * scale, y = b => size - (b + 1) * scale;
  const letters = 15 * size / Math.max((stage.clientWidth - 13) / 2, 100);
  const svg = make("svg", {
    "aria-hidden": "true", viewBox: `0 0 ${size} ${size}`,
    style: `overflow: hidden; font-size: ${letters}px`,
  });
  const dots = [];
  for (let i = 0; i <= 12; i++) for (let j = 0; j <= 12; j++) {
    const point = [-1 + i / 4, -1 + j / 4];
    dots.push([point, active(point) > 1e-9]);
  }
  dots.sort((a, b) => b[1] - a[1]);
  for (const [point, lit] of dots) {
    const [a, b] = place(point);
    svg.append(make("circle", {
      cx: x(a), cy: y(b), r: lit ? 3.6 : 1.7, fill: lit ? "var(--purple)" : "var(--soft)",
      opacity: lit ? .55 : 1,
    }));
  }
  const across = (dx, dy, at, look) => svg.append(make("line", {
    x1: x(dx * at - 4 * dy), y1: y(dy * at + 4 * dx), x2: x(dx * at + 4 * dy), y2: y(dy * at - 4 * dx), ...look,
  }));
  const [dx, dy] = direction();
  across(dx, dy, shift.value, { stroke: "var(--ink)", "stroke-width": 2 });
  if (best && best.gap > .01)
    across(best.dx, best.dy, best.at, { stroke: "var(--brown)", "stroke-width": 3.5 });
  const taken = {};
  data.points.forEach((point, i) => {
    const [a, b] = place(point), one = data.kinds[i], key = `${Math.round(a * 99) + 0} ${Math.round(b * 99) + 0}`;
    const twice = taken[key] = (taken[key] ?? -1) + 1;
    const fill = one ? "var(--brown)" : "var(--ink)", line = { stroke: "var(--ground)", "stroke-width": 2 };
    svg.append(one
      ? make("circle", { cx: x(a), cy: y(b), r: 9, fill, ...line })
      : make("rect", { x: x(a) - 8, y: y(b) - 8, width: 16, height: 16, rx: 2, fill, ...line }),
      make("text", {
        x: x(a) + 11 + letters * twice, y: y(b) - 9, "font-weight": 700, style: `fill: ${fill}`,
        stroke: "var(--well)", "stroke-width": 4, "paint-order": "stroke",
      }, letter(i)));
  });
  return make("div", {}, make("p", {}, title), svg);
}

function update() {
  const after = data.points.map(moved), best = gap(after);
  const list = make("ul", { class: "list", "aria-hidden": "true" }, ...data.labels.map((label, i) =>
    make("li", { class: data.kinds[i] ? "one" : "" }, make("b", {}, letter(i)), label)));
  stage.replaceChildren(make("div", { class: "planes" },
    plane("before", point => point), plane("after", moved, best)), list);
  const wide = best.gap > .01;
  spoken.textContent = wide
    ? `A straight line separates the two kinds; the widest gap it leaves is ${fixed(best.gap)}.`
    : "No straight line separates circles from squares.";
  root.dataset.gap = best.gap;
}
start();
