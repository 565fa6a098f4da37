const order = choice("order of the sentences", data.orders.map(([name]) => name));
order.input.value = data.order;
const [least, most, by] = data.budgets;
const budget = slider("budget of a batch", {
  min: least, max: most, step: by, value: data.budget, show: n => `${n} positions`,
});

// Windows of sentences, each sorted by length; a batch ends where one more row would be too much.
function plan(width, limit) {
  const batches = [];
  let longest = 0;
  for (let i = 0; i < data.lengths.length; i += width) {
    const window_ = data.lengths.slice(i, i + width).sort((a, b) => a - b);
    for (const length of window_) {
      const last = batches.at(-1);
      if (!last || Math.max(longest, length) * (last.length + 1) > limit) {
        batches.push([]);
        longest = 0;
      }
      batches.at(-1).push(length);
      longest = Math.max(longest, length);
    }
  }
  return batches;
}

function update() {
  const batches = plan(data.orders[order.value][1], budget.value);
  const room = Math.max(240, stage.clientWidth || 600), unit = room < 480 ? 2.5 : 3, row = 3, gap = 10;
  const shapes = [];
  let x = 0, y = 0, tall = 0, real = 0, area = 0;
  for (const batch of batches) {
    const longest = Math.max(...batch), wide = longest * unit, high = batch.length * row;
    if (x && x + wide > room) { x = 0; y += tall + gap; tall = 0; }
    shapes.push(make("rect", { x, y, width: wide, height: high, class: "pad" }));
    const bars = batch.map((n, i) => `M${x} ${y + i * row + 1.3}h${(n * unit).toFixed(1)}`).join("");
    shapes.push(make("path", { d: bars, class: "real" }));
    x += wide + gap;
    tall = Math.max(tall, high);
    real += batch.reduce((sum, n) => sum + n, 0);
    area += longest * batch.length;
  }
  const height = y + tall;
  const drawn = make("svg", { viewBox: `0 0 ${room} ${height}`, "aria-hidden": "true" }, ...shapes);
  drawn.style.height = `${height}px`;
  stage.replaceChildren(drawn);
  const rows = batches.map(batch => batch.length);
  const share = 1 - real / area;
  spoken.textContent = `${data.lengths.length} sentences, ${real.toLocaleString("en")} tokens, in `
    + `${batches.length} batches of ${Math.min(...rows)} to ${Math.max(...rows)} sentences: `
    + `${area.toLocaleString("en")} positions, ${Math.round(100 * share)}% padding.`;
  root.dataset.batches = batches.length;
  root.dataset.padding = share.toFixed(6);
}
start();
