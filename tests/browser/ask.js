// The files of the weights call this.
const parts = [];
let header;
function liveWeights(k, value) {
  if (k) parts[k - 1] = value;
  else header = value;
}
let engine, model, tokenizer;
const ask = {
  load() {
    engine = makeEngine();
    ({ model, tokenizer } = engine.load({ ...header, parts }));
  },
  // Some values of a trace, by the names of the package; every tenth of the vocabulary.
  trace: ([source, target, broken, names]) => {
    const values = engine.trace(model, source, target, broken);
    const step = name => name === "logits" ? 10 : 1;
    return Object.fromEntries(names.map(name =>
      [name, values[name].map(row => [...row].filter((_, i) => i % step(name) === 0))]));
  },
  search: sources => sources.map(source => {
    const greedy = [...engine.greedy(model, source, { broken: {} })].map(step => step.id);
    const search = engine.beamSearch(model, source);
    for (;;) {
      const { done, value } = search.next();
      if (done) return [greedy.filter(id => id !== 2), value[0].tokens];
    }
  }),
  encode: texts => texts.map(text => {
    const ids = tokenizer.encode(text);
    return [ids, tokenizer.decode(ids), ids.map(id => tokenizer.label(id))];
  }),
};
