// What the views of the live page share: elements, links to chapters and code, choices, strips.
//
// A view is a function of { state, data, config, go, force, toggle, ... } to { view, inspector }.
// Every number that it shows comes from the worker's values.

/** The views by level; the other scripts of this folder add them. */
const LiveViews = {};

const LiveParts = (() => {
  "use strict";

  /** Make an element. Names of attributes that begin with "on" are listeners. */
  function el(tag, attributes = {}, ...children) {
    const svg = [
      "svg",
      "path",
      "rect",
      "text",
      "line",
      "polyline",
      "linearGradient",
      "stop",
    ].includes(tag);
    const node = svg
      ? document.createElementNS("http://www.w3.org/2000/svg", tag)
      : document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (value === undefined || value === false || value === null) continue;
      if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
      else node.setAttribute(name, value === true ? "" : value);
    }
    node.append(...children.flat(3).filter((child) => child !== null && child !== undefined));
    return node;
  }

  const CHAPTERS = {
    1: "01_why_attend",
    2: "02_attention",
    4: "04_scaling",
    5: "05_heads",
    6: "06_masks",
    7: "07_positions",
    8: "08_feed_forward",
    9: "09_depth",
    10: "10_embeddings",
    11: "11_assembly",
    13: "13_tokens",
    17: "17_decoding",
    22: "22_heads_learned",
  };
  const chapter = (number, text = `chapter ${number}`) =>
    el("a", { href: `../notebooks/${CHAPTERS[number]}.html` }, text);
  const code = (module, name) =>
    el("a", { href: `../_modules/transformer/${module}.html#${name}` }, el("code", {}, name));
  const sources = (...links) => {
    const parts = links.flatMap((link, i) => (i ? [" · ", link] : [link]));
    return el("p", { class: "live-sources" }, ...parts);
  };

  const plain = (label) => label.replace(/^▁/, "") || "␣";
  const percent = (p) =>
    p >= 0.9995 ? "> 99.9%" : p < 0.0005 ? "< 0.1%" : `${(100 * p).toFixed(1)}%`;
  const number = (value, digits = 2) => value.toFixed(digits).replace(/^-/, "−");
  /** The place that the reader looks at: the selected one, or where the model was least certain. */
  const placeOf = ({ state, data }, count = data.steps.length) => {
    const place = state.t < 0 ? (data.focus ?? count - 1) : state.t;
    return Math.min(place, count - 1);
  };

  // --- What the views have in common -----------------------------------------------------------

  const ATTENTIONS = {
    encoder: { name: "Encoder self-attention", module: "encoder", part: "self_attention" },
    decoder: { name: "Masked self-attention", module: "decoder", part: "self_attention" },
    cross: { name: "Cross-attention", module: "decoder", part: "cross_attention" },
  };
  const attentionName = (a, layer) => `${ATTENTIONS[a].module}.${layer}.${ATTENTIONS[a].part}`;

  /** Labels of the queries and the keys of an attention. */
  function axes({ state, data }) {
    const source = data.source.map((each) => plain(each.label));
    const written = data.steps.map((each) => plain(each.label));
    const read = ["<bos>", ...written.slice(0, -1)];
    if (state.a === "encoder") return { queries: source, keys: source };
    if (state.a === "decoder") return { queries: read, keys: read };
    return { queries: written, keys: source };
  }

  const largestPlace = (row) => row.reduce((best, v, i) => (v > row[best] ? i : best), 0);

  /** A native select with its label. */
  function choice(label, value, options, onchange, key) {
    return el(
      "label",
      { class: "live-choice" },
      el("span", {}, label),
      el(
        "select",
        { "data-key": key, onchange: (event) => onchange(event.target.value) },
        options.map(([name, text]) =>
          el("option", { value: name, selected: String(name) === String(value) }, text),
        ),
      ),
    );
  }

  const layers = (config) =>
    Array.from({ length: config.num_layers }, (_, l) => [l, `${l + 1} of ${config.num_layers}`]);
  const heads = (config) =>
    Array.from({ length: config.num_heads }, (_, h) => [h, `${h + 1} of ${config.num_heads}`]);

  function attentionChoices(c, { head = false } = {}) {
    const { state, config, go } = c;
    return el(
      "div",
      { class: "live-choices" },
      choice(
        "Attention",
        state.a,
        Object.entries(ATTENTIONS).map(([name, { name: text }]) => [name, text]),
        (a) => go({ a, k: -1 }),
        "a",
      ),
      choice("Layer", state.l, layers(config), (l) => go({ l: +l, k: -1 }), "l"),
      head
        ? choice("Head", Math.max(state.h, 0), heads(config), (h) => go({ h: +h, k: -1 }), "h")
        : null,
    );
  }

  const colourOf = (name) => getComputedStyle(document.documentElement).getPropertyValue(name);

  const CELLS = 64; // of a strip; a longer vector takes several rows

  /** A vector as a strip of coloured cells: one hue for positive numbers, one for negative ones. */
  function strip(vector, positive, negative, largest) {
    const canvas = el("canvas", { class: "live-strip", "aria-hidden": "true" });
    canvas.width = Math.min(vector.length, CELLS);
    canvas.height = Math.ceil(vector.length / CELLS);
    const context = canvas.getContext("2d");
    vector.forEach((v, j) => {
      context.globalAlpha = Math.min(1, Math.abs(v) / largest);
      context.fillStyle = colourOf(v < 0 ? negative : positive);
      context.fillRect(j % CELLS, Math.floor(j / CELLS), 1, 1);
    });
    return canvas;
  }

  const spread = (vector) => {
    const mean = vector.reduce((sum, v) => sum + v, 0) / vector.length;
    return Math.sqrt(vector.reduce((sum, v) => sum + (v - mean) ** 2, 0) / vector.length);
  };

  const waiting = () => el("p", { class: "live-waiting" }, "Computing …");

  /** Cross-attention of one step: of one head, or the mean of a layer's heads. */
  function crossRow(step, state, config) {
    const rows = step.cross[Math.min(state.l, config.num_layers - 1)];
    if (!rows[0].length) return [];
    if (state.h >= 0) return [...rows[state.h]];
    return [...rows[0]].map((_, s) => rows.reduce((sum, row) => sum + row[s], 0) / rows.length);
  }

  return {
    ATTENTIONS,
    attentionName,
    CELLS,
    axes,
    attentionChoices,
    chapter,
    choice,
    code,
    crossRow,
    el,
    largestPlace,
    number,
    percent,
    placeOf,
    plain,
    sources,
    spread,
    strip,
    waiting,
  };
})();
