const which = choice("translation", data.translations.map(([name]) => name));
const longest = Math.max(...data.translations.map(([, tokens]) => tokens.length));
const order = slider("length of the runs", {
  min: 1, max: 4, value: 2, show: n => n === 1 ? "1 token" : `${n} tokens`,
});
const cut = slider("tokens kept", { min: 4, max: longest, value: longest });

const runs = (tokens, n) => tokens.slice(n - 1).map((_, i) => tokens.slice(i, i + n));
function match(tokens, n) {
  const left = runs(data.reference, n).map(run => run.join(" "));
  return runs(tokens, n).map(run => {
    const place = left.indexOf(run.join(" "));
    if (place >= 0) left.splice(place, 1);
    return place >= 0;
  });
}

function update() {
  const whole = data.translations[which.value][1];
  const tokens = whole.slice(0, cut.value);
  const n = order.value, c = tokens.length, r = data.reference.length;
  const found = match(tokens, n), lit = tokens.map(() => false);
  found.forEach((hit, i) => { if (hit) lit.fill(true, i, i + n); });
  const line = (name, list, look) => make("div", { class: "line" }, make("p", {}, name),
    make("div", { class: "tokens" }, ...list.map((token, i) =>
      make("span", { class: look(i) }, token))));
  const chips = make("div", { class: "line" },
    make("p", {}, `runs of ${n}: ${found.filter(Boolean).length} of ${found.length} in the reference`),
    make("div", { class: "tokens" }, ...runs(tokens, n).map((run, i) =>
      make("span", { class: found[i] ? "run hit" : "run miss" }, run.join(" ")))));
  const shares = [1, 2, 3, 4].map(size => {
    const hits = match(tokens, size);
    return hits.filter(Boolean).length / hits.length;
  });
  const brevity = Math.min(1, Math.exp(1 - r / c));
  const bleu = 100 * brevity * shares.reduce((a, b) => a * b, 1) ** .25;
  const bars = make("div", { class: "shares", "aria-hidden": "true" },
    ...[...shares.map((share, i) => [`p${i + 1}`, share]), ["brevity", brevity]].map(([name, share]) =>
      make("div", {}, make("span", {}, name), make("i", {}, make("span", { style: `width: ${100 * share}%` })),
        make("b", {}, fixed(share)))));
  stage.replaceChildren(
    line("reference", data.reference, () => ""),
    line("translation", tokens, i => lit[i] ? "hit" : ""),
    chips, bars);
  spoken.textContent = `BLEU of this sentence: ${fixed(bleu, 1)}. Precisions `
    + shares.map(share => fixed(share)).join(", ")
    + `; brevity ${fixed(brevity)}, with ${c} tokens against ${r}.`;
  root.dataset.bleu = bleu;
}
start();
