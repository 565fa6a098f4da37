// Level 2, the stack: one vector of the encoder and one of the decoder on their way up.

(() => {
  "use strict";
  const {
    CELLS,
    chapter,
    choice,
    code,
    crossRow,
    el,
    largestPlace,
    number,
    placeOf,
    plain,
    sources,
    spread,
    strip,
    waiting,
  } = LiveParts;

  const SUBLAYERS = {
    self_attention: ["self-attention", 5],
    cross_attention: ["cross-attention", 2],
    feed_forward: ["feed-forward", 8],
  };

  function stack(c) {
    const { state, data, config, go } = c;
    if (!data.values) return { view: waiting(), inspector: el("div", {}) };
    const t = placeOf(c);
    const row = crossRow(data.steps[t], { l: config.num_layers - 1, h: -1 }, config);
    const s =
      state.k >= 0 && state.k < data.source.length ? state.k : row.length ? largestPlace(row) : 0;
    const read = t ? plain(data.steps[t - 1].label) : "<bos>";
    const view = el(
      "div",
      {},
      el(
        "div",
        { class: "live-choices" },
        choice(
          "English token",
          s,
          data.source.map(({ label }, i) => [i, plain(label)]),
          (k) => go({ k: +k }),
          "stack-k",
        ),
        choice(
          "German token to write",
          t,
          data.steps.map(({ label }, i) => [i, plain(label)]),
          (i) => go({ t: +i }),
          "stack-t",
        ),
      ),
      el(
        "div",
        { class: "live-stacks" },
        tower(
          c,
          "encoder",
          s,
          ["self_attention", "feed_forward"],
          `Encoder, at “${plain(data.source[s].label)}”`,
        ),
        tower(
          c,
          "decoder",
          t,
          ["self_attention", "cross_attention", "feed_forward"],
          `Decoder, reading “${read}”`,
        ),
      ),
    );
    const inspector = el(
      "div",
      {},
      el("h3", {}, "One vector on its way"),
      el(
        "p",
        {},
        "As in Figure 1, read from the bottom up. A strip is one vector of ",
        `${config.d_model} numbers in rows of ${CELLS}: `,
        el("span", { class: "live-sample positive" }, "positive"),
        " and ",
        el("span", { class: "live-sample negative" }, "negative"),
        ", strong where they are large. The number is their spread, the standard deviation.",
      ),
      el(
        "p",
        {},
        "Each sub-layer ",
        el("b", {}, "adds"),
        " its output to the stream. The ",
        el("b", {}, "sum"),
        " still resembles what came in, which is the residual connection; the layer norm " +
          "brings its spread back to the same size.",
      ),
      el(
        "p",
        {},
        "The encoder’s top vectors become keys and values of every cross-attention. The " +
          "decoder’s top vector is compared with all ",
        `${config.vocab_size.toLocaleString("en")} token embeddings; the best is `,
        el("b", { lang: "de" }, plain(data.steps[t].best[0].label)),
        ".",
      ),
      sources(
        code("model/layers", "Residual"),
        code("model/transformer", "Transformer"),
        chapter(9),
        chapter(11),
      ),
    );
    return { view, inspector };
  }

  function tower({ data, config }, module, place, parts, title) {
    const { values } = data;
    const vector = (name) => values[name]?.[place];
    const line = (label, v) =>
      v
        ? el(
            "div",
            { class: "live-line" },
            el("span", {}, label),
            strip(v, "--purple", "--brown", 2.5 * Math.max(spread(v), 1e-6)),
            el("b", {}, number(spread(v))),
          )
        : el(
            "div",
            { class: "live-line" },
            el("span", {}, label),
            el("em", {}, "nothing: switched off"),
          );
    const boxes = [
      el(
        "div",
        { class: "live-box embedding" },
        el("h4", {}, chapter(10, "embedding"), " and ", chapter(7, "position")),
        line("token", vector(`${module}.embedding`)),
        line("+ position", vector(`${module}.input`)),
      ),
    ];
    for (let layer = 0; layer < config.num_layers; layer++) {
      for (const part of parts) {
        const [name, number_] = SUBLAYERS[part];
        const full = `${module}.${layer}.${part}`;
        const text = module === "decoder" && part === "self_attention" ? `masked ${name}` : name;
        boxes.push(
          el(
            "div",
            { class: `live-box ${part}` },
            el(
              "h4",
              {},
              `${layer + 1} `,
              chapter(module === "decoder" && part === "self_attention" ? 6 : number_, text),
            ),
            line("adds", vector(`${full}.sublayer`)),
            line("sum", vector(`${full}.sum`)),
            line("norm", vector(`${full}.norm`)),
          ),
        );
      }
    }
    return el(
      "section",
      { class: "live-tower" },
      el("h3", {}, title),
      el("div", { class: "live-flow" }, boxes),
    );
  }

  LiveViews.stack = stack;
})();
