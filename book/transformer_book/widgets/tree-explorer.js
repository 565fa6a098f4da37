const example = choice("sentence", data.examples.map(each => each.title));
const now = () => data.examples[example.value];
const { step, mark } = stepper({
  min: 0, max: now().events.length, value: data.step, show: i => `${i} of ${now().events.length}`,
});

// A phrase is a frame with its label; whatever is inside it, is inside the frame.
function phrase(label) {
  const frame = make("span", { class: "phrase open" }, make("b", {}, label));
  frame.first = null;
  return frame;
}

// Build the tree of the first events; return it, the open phrases and the number of words in it.
function build({ words, pieces, events, gold }, count) {
  const root = make("div", { class: "tree", "aria-hidden": "true" });
  const open = [];
  let used = 0;
  const inner = () => open.at(-1) || root;
  const place = box => {
    box.append(make("span", { class: "word" }, words[used]));
    used += 1;
  };
  const close = () => {
    const frame = open.pop();
    const inside = frame.querySelectorAll(".word").length;
    frame.classList.remove("open");
    if (!inside) return frame.remove();
    const known = gold.some(([label, first, end]) =>
      label === frame.label && first === frame.start && end === frame.start + inside);
    frame.classList.add(known ? "right" : "wrong");
  };
  events.slice(0, count).forEach(([what, number], i) => {
    if (what === "open") {
      const frame = phrase(pieces[i].slice(1));
      frame.label = pieces[i].slice(1);
      frame.start = used;
      inner().append(frame);
      open.push(frame);
    } else if (what === "word") place(inner());
    else if (what === "close") for (let n = 0; n < number; n++) close();
    else if (what === "end") {
      // Missing words go to the end of the root, which is opened again for them.
      const only = root.children.length === 1 && root.firstElementChild.label ? root.firstElementChild : root;
      if (number && only !== root && !open.includes(only)) {
        only.classList.remove("right", "wrong");
        open.unshift(only);
      }
      while (open.length > 1) close();
      for (let n = 0; n < number; n++) place(only);
      while (open.length) close();
    }
  });
  return { root, open, used };
}

const quoted = text => `\u201c${text}\u201d`;
function update() {
  const chosen = now(), { events, pieces, words } = chosen;
  step.input.max = events.length;
  step.tell();
  mark();
  const t = step.value, { root: tree, open, used } = build(chosen, t);
  const line = make("p", { class: "pieces", "aria-hidden": "true" }, ...pieces.map((piece, i) =>
    make("span", { class: i === t - 1 ? "here" : i < t ? "read" : "" }, piece)));
  const rest = make("p", { class: "rest", "aria-hidden": "true" },
    used < words.length ? "words left: " : "no word left",
    ...words.slice(used).map(word => make("span", { class: "word" }, word)));
  stage.replaceChildren(line, tree, rest);

  const said = [];
  if (!t) said.push(`The parser has written ${pieces.length} pieces for ${words.length} words.`);
  else {
    const [what, number] = events[t - 1], piece = pieces[t - 1];
    if (what === "open") said.push(`${quoted(piece)} opens a phrase.`);
    else if (what === "word") said.push(`${quoted(piece)} takes the next word, ${quoted(words[used - 1])}.`);
    else if (what === "close") said.push(number === 1 ? `${quoted(piece)} closes the phrase.`
      : `${quoted(piece)} closes ${number} phrases, because inner ones are still open.`);
    else if (what === "skip") said.push(piece === "XX" ? "No word is left for this XX: it is left out."
      : `No phrase of that label is open: ${quoted(piece)} is left out.`);
    else {
      const [matched, gold, predicted] = chosen.counts;
      if (number) said.push(`${number} word${number > 1 ? "s are" : " is"} left, and `
        + `go${number > 1 ? "" : "es"} to the end of the root.`);
      said.push(chosen.faults.length ? `Faults: ${chosen.faults.join(", ")}.` : "The output was a tree.");
      said.push(`${matched} phrase${matched === 1 ? " is" : "s are"} right, of ${gold} in the right tree and ${predicted} here: `
        + `F1 ${chosen.f1}%.`);
    }
  }
  if (open.length) said.push(`Open: ${open.map(frame => frame.label).join(", ")}.`);
  spoken.textContent = said.join(" ");
  root.dataset.step = t;
  root.dataset.phrases = [...tree.querySelectorAll(".phrase")].map(frame =>
    `${frame.label}:${[...frame.querySelectorAll(".word")].map(w => w.textContent).join(" ")}`).join("|");
}
example.input.addEventListener("change", () => {
  step.input.max = now().events.length;
  step.input.value = 0;
  update();
});
start();
