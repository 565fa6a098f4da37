const [given, written] = data.sides;
const LAST = written.reads.length, ROWS = Math.max(LAST, given.reads.length);
const { step, mark, still } = stepper({
  min: 0, max: LAST, value: data.passes, show: t => `${t} of ${LAST}`,
}, { name: "decoder passes", unit: "pass", every: 1100 });
const marked = slider("marked position", {
  min: 1, max: Math.min(LAST, given.reads.length), value: data.position + 1,
});
let before = data.passes;

const percent = share => `${Math.round(100 * share)}%`;
const chip = (text, kind) => make("span", { class: `chip ${kind}` }, text);

// One side: the rows up to `known` have their input, those up to `done` their prediction.
function side(name, said, found, known, done, heads) {
  const head = make("tr", {}, ...heads.map(text => make("th", { scope: "col" }, text)));
  const body = make("tbody"), chosen = marked.value - 1;
  for (let i = 0; i < ROWS; i++) {
    const there = i < found.reads.length;
    const row = make("tr", { class: there && i === chosen ? "here" : "" });
    const seen = i <= chosen ? "seen" : "unseen";
    row.append(make("td", {}, there && i < known ? chip(found.reads[i], seen) : "\u00a0"));
    row.append(make("td", {}, ...(there && i < done
      ? [chip(found.predicts[i], "made"), make("small", {}, percent(found.sure[i]))] : [])));
    if (heads.length > 2) {
      const label = make("td", {});
      if (there) label.append(chip(found.labels[i], "label"));
      if (there && i < done) label.append(make("small", {}, percent(found.right[i])));
      row.append(label);
    }
    body.append(row);
  }
  const table = make("table", {}, make("caption", {}, make("b", {}, name), ` ${said}`),
    make("thead", {}, head), body);
  return make("div", { class: "side" }, table);
}

function update() {
  const t = step.value;
  mark();
  const once = t ? given.reads.length : 0;
  const left = side("Training", t ? "1 pass: finished" : "0 passes",
    given, given.reads.length, once, ["reads", "predicts", "label"]);
  const right = side("Generating", `${t} pass${t === 1 ? "" : "es"}${t === LAST ? ": finished" : ""}`,
    written, t + 1, t, ["reads", "predicts"]);
  stage.replaceChildren(make("div", { class: "sides" }, left, right));
  if (t === before + 1 && !still.matches) fly(right, t);
  before = t;

  const words = [], m = marked.value - 1;
  if (!t) words.push("In training the decoder reads the true translation from the start. "
    + "When generating, it reads only <bos>.");
  else {
    words.push(`Training: one pass predicts all ${given.reads.length} tokens; `
      + `the loss is ${fixed(data.loss)} nats per token.`);
    words.push(`Generating: pass ${t} predicts \u201c${written.predicts[t - 1]}\u201d`
      + (t < LAST ? ", the next input." : ", and the translation is finished."));
  }
  const sees = given.reads.slice(0, m + 1).join(" ");
  words.push(`Position ${m + 1} in training sees \u201c${sees}\u201d and has to predict `
    + `\u201c${given.labels[m]}\u201d.`);
  spoken.textContent = words.join(" ");
  root.dataset.passes = t;
  root.dataset.loss = data.loss;
}

// The new word goes from its prediction to the input of the next row.
function fly(panel, t) {
  const rows = panel.querySelectorAll("tbody tr");
  const from = rows[t - 1]?.querySelector(".made"), to = rows[t]?.querySelector(".chip");
  if (!from || !to) return;
  const a = from.getBoundingClientRect(), b = to.getBoundingClientRect();
  const start = `translate(${a.left - b.left}px, ${a.top - b.top}px)`;
  to.animate([{ transform: start }, { transform: start, offset: .35 }, { transform: "none" }],
    { duration: 800, easing: "ease-in-out" });
}
start();
