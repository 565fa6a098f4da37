// Level 1, the sentence: tokens of both languages, arcs of cross-attention, alternatives.

(() => {
  "use strict";
  const { chapter, choice, code, crossRow, el, number, percent, placeOf, plain, sources } =
    LiveParts;

  function sentence(c) {
    const { state, data, config, go } = c;
    const t = placeOf(c);
    const step = data.steps[t];
    const row = step ? crossRow(step, state, config) : [];
    const sourceItems = data.source.map(({ label }, s) => {
      const weight = row[s] ?? 0;
      return el(
        "li",
        {
          class: "live-token",
          style: `--weight: ${weight.toFixed(3)}`,
          title: step ? `${percent(weight)} of the attention for “${plain(step.label)}”` : null,
        },
        plain(label),
      );
    });
    const targetItems = data.steps.map((each, i) =>
      el(
        "li",
        {
          class: `live-token${each.chosen ? " forced" : ""}`,
        },
        el(
          "button",
          {
            type: "button",
            "data-key": `token-${i}`,
            "aria-pressed": String(i === t),
            "aria-label":
              `${plain(each.label)}, token ${i + 1} of the output, ` +
              `${percent(each.probability)}${each.chosen ? ", you chose it" : ""}`,
            onclick: () => go({ t: i }),
            onkeydown: (event) => {
              const to = { ArrowLeft: i - 1, ArrowRight: i + 1 }[event.key];
              if (to === undefined || !data.steps[to]) return;
              event.preventDefault();
              go({ t: to }, `token-${to}`);
            },
          },
          plain(each.label),
        ),
      ),
    );
    const pair = el(
      "div",
      { class: "live-pair" },
      el(
        "div",
        { class: "live-side" },
        el("h3", { id: "live-source-title" }, "English"),
        el("ol", { class: "live-source", "aria-labelledby": "live-source-title" }, sourceItems),
      ),
      el(
        "div",
        { class: "live-side" },
        el("h3", { id: "live-target-title" }, "German"),
        el(
          "ol",
          { class: "live-target", "aria-labelledby": "live-target-title", lang: "de" },
          targetItems,
        ),
      ),
    );
    const shown = state.h < 0 ? `${state.l}` : `${state.l}.${state.h}`;
    const options = [];
    for (let l = config.num_layers - 1; l >= 0; l--) {
      options.push([`${l}`, `layer ${l + 1}, mean of its heads`]);
      for (let h = 0; h < config.num_heads; h++)
        options.push([`${l}.${h}`, `layer ${l + 1}, head ${h + 1}`]);
    }
    const view = el(
      "div",
      {},
      pair,
      el(
        "div",
        { class: "live-choices" },
        choice(
          "The arcs are the cross-attention of",
          shown,
          options,
          (value) => {
            const [l, h = -1] = value.split(".").map(Number);
            go({ l, h, a: "cross" });
          },
          "arcs",
        ),
      ),
      step && row.length ? weightTable(data, step, row) : null,
    );
    pair.arcs = () => drawArcs(pair, data, state, config, t);
    return { view, inspector: alternatives(c, t), after: () => pair.arcs() };
  }

  function weightTable(data, step, row) {
    const order = [...row.keys()].sort((a, b) => row[b] - row[a]);
    return el(
      "details",
      { class: "live-table", "data-key": "weights" },
      el("summary", {}, `The weights for “${plain(step.label)}” as a table`),
      el(
        "table",
        {},
        el(
          "thead",
          {},
          el(
            "tr",
            {},
            el("th", { scope: "col" }, "English token"),
            el("th", { scope: "col" }, "Weight"),
          ),
        ),
        el(
          "tbody",
          {},
          order.map((s) =>
            el(
              "tr",
              {},
              el("th", { scope: "row" }, plain(data.source[s].label)),
              el("td", {}, number(row[s], 3)),
            ),
          ),
        ),
      ),
    );
  }

  /** Draw the weights between the two columns of tokens. */
  function drawArcs(pair, data, state, config, selected) {
    pair.querySelector("svg")?.remove();
    const box = pair.getBoundingClientRect();
    if (!box.width || !data.steps.length) return;
    const keys = [...pair.querySelectorAll(".live-source li")].map((each) =>
      each.getBoundingClientRect(),
    );
    const queries = [...pair.querySelectorAll(".live-target li")].map((each) =>
      each.getBoundingClientRect(),
    );
    const left = Math.max(...keys.map((key) => key.right)) - box.left + 4;
    const right = Math.min(...queries.map((query) => query.left)) - box.left - 4;
    const middle = (at) => at.top + at.height / 2 - box.top;
    const svg = el("svg", {
      class: "live-arcs",
      width: box.width,
      height: box.height,
      "aria-hidden": "true",
    });
    // From the colour of keys to that of queries.
    const shade = el("linearGradient", {
      id: "live-arc",
      gradientUnits: "userSpaceOnUse",
      x1: left,
      x2: right,
    });
    shade.append(
      el("stop", { offset: 0.1, class: "key" }),
      el("stop", { offset: 0.9, class: "query" }),
    );
    svg.append(shade);
    const draw = (t, isSelected) => {
      crossRow(data.steps[t], state, config).forEach((weight, s) => {
        if (weight < (isSelected ? 0.02 : 0.2)) return;
        const [y0, y1, bend] = [middle(keys[s]), middle(queries[t]), (left + right) / 2];
        svg.append(
          el("path", {
            d: `M${left},${y0} C${bend},${y0} ${bend},${y1} ${right},${y1}`,
            class: isSelected ? "selected" : "",
            "stroke-width": (1 + 6 * weight).toFixed(1),
            opacity: (isSelected ? 0.25 + 0.75 * weight : 0.3 * weight).toFixed(2),
          }),
        );
      });
    };
    data.steps.forEach((_, t) => t !== selected && draw(t, false));
    draw(selected, true);
    pair.prepend(svg);
  }

  /** What else could have come here, with probabilities; a click decodes on from there. */
  function alternatives(c, t) {
    const { data, go, force } = c;
    const step = data.steps[t];
    if (!step) return el("div", {});
    const before = data.steps
      .slice(0, t)
      .map((each) => each.label.replace(/^▁/, " "))
      .join("")
      .trim();
    const listed = step.best.some(({ id }) => id === step.id) ? step.best : [step, ...step.best];
    return el(
      "div",
      {},
      el("h3", {}, "What could come here"),
      el(
        "p",
        { class: "live-hint" },
        before ? "After " : "At the beginning, ",
        before
          ? el("q", { lang: "de" }, before.length > 40 ? `… ${before.slice(-38)}` : before)
          : null,
        before
          ? " the model gives these tokens the most probability."
          : "the model gives these tokens the most probability.",
        " Choose one, and it writes on from there.",
      ),
      el(
        "ol",
        { class: "live-alternatives", lang: "de" },
        listed.map(({ id, label, probability }, i) =>
          el(
            "li",
            {},
            el(
              "button",
              {
                type: "button",
                "data-key": `alternative-${i}`,
                "aria-current": id === step.id ? "true" : null,
                style: `--share: ${(100 * probability).toFixed(1)}%`,
                onclick: () => id !== step.id && force(t, id),
              },
              el(
                "span",
                { class: "live-word" },
                label.startsWith("▁") || label.startsWith("<") ? plain(label) : `·${plain(label)}`,
              ),
              el("span", { class: "live-share" }, percent(probability)),
            ),
          ),
        ),
      ),
      data.steps.some((each) => each.chosen)
        ? el(
            "p",
            {},
            el(
              "button",
              {
                type: "button",
                class: "live-quiet",
                "data-key": "back",
                onclick: () => go({ f: [], t: -1 }),
              },
              "Back to the model’s own choice",
            ),
          )
        : null,
      sources(code("inference/decoding", "greedy_search"), chapter(17)),
    );
  }

  LiveViews.sentence = sentence;
})();
