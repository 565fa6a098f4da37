const last = data.written.length - 1;
const step = slider("step of the decoder", {
  min: 0, max: last, value: data.step, show: i => `${i + 1} of ${last + 1}`,
});
const warmth = slider("temperature", {
  min: 0, max: data.temperatures.length - 1, value: data.temperatures.indexOf(1),
  show: i => fixed(data.temperatures[i]),
});

function bars(names, logits, shares) {
  const width = stage.clientWidth, row = 27, top = 24, height = top + row * names.length;
  const left = width < 480 ? 96 : 130, number = 52, start = left + 58;
  const room = width - start - number;
  const svg = make("svg", { "aria-hidden": "true", viewBox: `0 0 ${width} ${height}`, height });
  const say = (x, y, text, more = {}) => svg.append(make("text",
    { x, y, "dominant-baseline": "central", ...more }, text));
  say(left + 40, 8, "logit", { class: "soft", "text-anchor": "end" });
  say(start, 8, "probability", { class: "soft" });
  names.forEach((name, i) => {
    const y = top + row * i, middle = y + row / 2, bold = i ? {} : { "font-weight": 700 };
    svg.append(
      make("rect", { x: start, y: y + 4, width: room, height: row - 8, rx: 4, fill: "var(--well)" }),
      make("rect", {
        x: start, y: y + 4, width: room * shares[i], height: row - 8, rx: 4,
        fill: i < logits.length ? "var(--purple)" : "var(--soft)",
      }));
    say(0, middle, name, bold);
    if (i < logits.length) say(left + 40, middle, fixed(logits[i], 1), { "text-anchor": "end", ...bold });
    say(start + room + 8, middle, fixed(shares[i], shares[i] < .01 ? 3 : 2), bold);
  });
  return svg;
}

function update() {
  const now = step.value, shares = data.shares[now][warmth.value];
  const names = [...data.tokens[now], "all others"];
  const written = make("p", { class: "written", "aria-hidden": "true" },
    data.written[now] || "(nothing yet)", " ", make("b", {}, "?"));
  stage.replaceChildren(written, bars(names, data.logits[now], shares));
  spoken.textContent = `After “${data.written[now] || "nothing"}”, at temperature ` +
    `${fixed(data.temperatures[warmth.value])}: “${names[0]}” has ${fixed(shares[0])}, ` +
    `“${names[1]}” has ${fixed(shares[1], 3)}, and the ${names.length - 1} tokens shown have ` +
    `${fixed(1 - shares.at(-1))} together.`;
  root.dataset.shares = shares.join(" ");
}
start();
