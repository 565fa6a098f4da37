// Level 5, the output: logits, temperature, and beam search as a tree.

(() => {
  "use strict";
  const { chapter, choice, code, el, number, percent, placeOf, plain, sources, waiting } =
    LiveParts;

  function output(c) {
    const { data, go, force } = c;
    if (!data.values) return { view: waiting(), inspector: el("div", {}) };
    const t = placeOf(c);
    const logits = data.values.logits[t];
    const table = el("tbody", {});
    const slider = el("input", {
      type: "range",
      min: -1,
      max: 1,
      step: 0.05,
      value: Math.log2(c.temperature) / 2,
      "data-key": "temperature",
    });
    const readout = el("b", {});
    const fill = () => {
      const T = 4 ** +slider.value;
      c.temperature = T;
      readout.textContent = `${T.toFixed(2)}${Math.abs(T - 1) < 0.01 ? ", the model’s own" : ""}`;
      slider.setAttribute("aria-valuetext", readout.textContent);
      const top = Math.max(...logits);
      let sum = 0;
      for (const logit of logits) sum += Math.exp((logit - top) / T);
      table.replaceChildren(
        ...data.steps[t].best.map(({ id, label }, i) => {
          const p = Math.exp((logits[id] - top) / T) / sum;
          return el(
            "tr",
            { class: id === data.steps[t].id ? "selected" : "" },
            el(
              "th",
              { scope: "row", lang: "de" },
              el(
                "button",
                {
                  type: "button",
                  class: "live-link",
                  "data-key": `out-${i}`,
                  onclick: () => id !== data.steps[t].id && force(t, id),
                },
                plain(label),
              ),
            ),
            el("td", {}, number(logits[id])),
            el(
              "td",
              { class: "live-weight", style: `--share: ${(100 * p).toFixed(1)}%` },
              percent(p),
            ),
          );
        }),
      );
    };
    slider.addEventListener("input", () => {
      fill();
      c.keep(c.temperature);
    });
    fill();
    const view = el(
      "div",
      {},
      el(
        "div",
        { class: "live-choices" },
        choice(
          "Token",
          t,
          data.steps.map(({ label }, i) => [i, `${i + 1}: ${plain(label)}`]),
          (i) => go({ t: +i }),
          "out-t",
        ),
        el(
          "label",
          { class: "live-choice live-range" },
          el("span", {}, "Temperature ", readout),
          slider,
        ),
      ),
      el(
        "table",
        { class: "live-scores" },
        el(
          "thead",
          {},
          el(
            "tr",
            {},
            ["Token", "Logit", "Probability"].map((text) => el("th", { scope: "col" }, text)),
          ),
        ),
        table,
      ),
      el("h3", {}, "Beam search: four translations at a time"),
      data.beams
        ? beamTree(data.beams)
        : el("p", { class: "live-waiting live-tree-wait" }, "Searching …"),
    );
    const inspector = el(
      "div",
      {},
      el("h3", {}, "From vector to word"),
      el(
        "p",
        {},
        "A logit is the product of the decoder’s top vector with a token’s embedding. The " +
          "softmax of all logits, divided by the temperature, gives the probabilities. Greedy " +
          "search takes the first row.",
      ),
      el(
        "p",
        {},
        "A temperature below 1 favours the first rows, one above 1 evens them out. The model " +
          "was trained at 1.",
      ),
      el(
        "p",
        {},
        "Beam search keeps the four most probable beginnings. A finished translation is " +
          "ranked by its log-probability divided by a length penalty, otherwise short ones " +
          "would win.",
      ),
      sources(
        code("model/transformer", "Transformer.logits"),
        code("inference/decoding", "beam_search"),
        chapter(10),
        chapter(17),
      ),
    );
    return { view, inspector };
  }

  /** Every step's best four beginnings as a tree, and the results as a table. */
  function beamTree({ steps, hypotheses }) {
    const best = hypotheses[0]?.tokens ?? [];
    const [gap, line] = [104, 34];
    const kept = steps.map((step) => step.filter((each) => each.kept || each.ended));
    const alive = steps.map((step) => step.filter((each) => each.kept));
    const height = Math.max(...kept.map((step) => step.length)) * line + 20;
    const svg = el("svg", {
      class: "live-tree",
      width: (steps.length + 1) * gap,
      height,
      role: "img",
      "aria-label": `Beam search of ${steps.length} steps; the results are in the table below`,
    });
    const y = (i) => 24 + i * line;
    steps.forEach((_, step) => {
      kept[step].forEach((each, i) => {
        const parent = step ? alive[step - 1][each.parent] : null;
        const from = step ? kept[step - 1].indexOf(parent) : 0;
        const tokens = [...(parent?.path ?? []), each.id];
        each.path = tokens;
        const ids = each.ended ? tokens.slice(0, -1) : tokens;
        const isBest =
          ids.every((id, place) => id === best[place]) &&
          (!each.ended || ids.length === best.length);
        const x = (step + 1) * gap;
        const start =
          step * gap + Math.min(8 + 8.6 * (parent ? plain(parent.label) : "<bos>").length, 88);
        svg.append(
          el("path", {
            d: `M${start},${y(from)} C${x - 8},${y(from)} ${x - 20},${y(i)} ${x},${y(i)}`,
            class: isBest ? "best" : "",
          }),
          el("text", { x: x + 4, y: y(i) + 4, class: isBest ? "best" : "" }, plain(each.label)),
          el("text", { x: x + 4, y: y(i) + 16, class: "score" }, number(each.total)),
        );
      });
    });
    svg.append(el("text", { x: 4, y: y(0) + 4, class: "best" }, "<bos>"));
    return el(
      "div",
      {},
      el(
        "div",
        {
          class: "live-scroll",
          tabindex: 0,
          role: "group",
          "aria-label": "The beam as a tree, which scrolls sideways",
        },
        svg,
      ),
      el(
        "table",
        { class: "live-scores" },
        el(
          "thead",
          {},
          el(
            "tr",
            {},
            ["Translation", "log-probability", "score"].map((text) =>
              el("th", { scope: "col" }, text),
            ),
          ),
        ),
        el(
          "tbody",
          {},
          hypotheses.map(({ text, total, score, finished }, i) =>
            el(
              "tr",
              { class: i ? "" : "selected" },
              el("th", { scope: "row", lang: "de" }, text, finished ? "" : " …"),
              el("td", {}, number(total)),
              el("td", {}, number(score)),
            ),
          ),
        ),
      ),
    );
  }

  LiveViews.output = output;
})();
