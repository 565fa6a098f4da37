// Level 4, a head: one query and one key, from the product to the weighted values.

(() => {
  "use strict";
  const {
    ATTENTIONS,
    attentionName,
    axes,
    attentionChoices,
    chapter,
    choice,
    code,
    el,
    largestPlace,
    number,
    placeOf,
    strip,
    waiting,
  } = LiveParts;

  function head(c) {
    const { state, data, config, go } = c;
    const name = attentionName(state.a, state.l);
    const h = Math.max(state.h, 0);
    if (!data.values) return { view: waiting(), inspector: el("div", {}) };
    if (!data.values[`${name}.query`]) {
      return {
        view: el(
          "div",
          {},
          attentionChoices(c, { head: true }),
          el("p", {}, "This attention is switched off."),
        ),
        inspector: el("div", {}),
      };
    }
    const { queries, keys } = axes(c);
    const t = placeOf(c, queries.length);
    const size = config.d_model / config.num_heads;
    const slice = (row) => row.slice(h * size, (h + 1) * size);
    const weights = data.values[`${name}.weights.${h}`][t];
    const k = state.k >= 0 && state.k < weights.length ? state.k : largestPlace(weights);
    const query = slice(data.values[`${name}.query`][t]);
    const allKeys = data.values[`${name}.key`].slice(0, weights.length).map(slice);
    const values = data.values[`${name}.value`].slice(0, weights.length).map(slice);
    const products = query.map((q, j) => q * allKeys[k][j]);
    const scores = allKeys.map((key) => key.reduce((sum, v, j) => sum + v * query[j], 0));
    const root = state.b.includes("scale") ? 1 : Math.sqrt(size);
    const total = scores.reduce(
      (sum, score) => sum + Math.exp((score - Math.max(...scores)) / root),
      0,
    );
    const output = new Float32Array(size);
    values.forEach((v, s) => v.forEach((x, j) => (output[j] += weights[s] * x)));
    const largest = Math.max(...values.flatMap((v) => [...v].map(Math.abs)), 1e-6);
    const one = Math.max(...query.map(Math.abs), ...allKeys[k].map(Math.abs));
    const selects = el(
      "div",
      { class: "live-choices" },
      choice(
        "Query",
        t,
        queries.map((text, i) => [i, text]),
        (i) => go({ t: +i, k: -1 }),
        "head-t",
      ),
      choice(
        "Key",
        k,
        weights.length < keys.length
          ? keys.slice(0, weights.length).map((text, i) => [i, text])
          : keys.map((text, i) => [i, text]),
        (i) => go({ k: +i }),
        "head-k",
      ),
    );
    const step = (index, title, ...content) =>
      el(
        "section",
        { class: "live-step" },
        el("h3", {}, el("b", {}, index), " ", title),
        ...content,
      );
    const view = el(
      "div",
      {},
      attentionChoices(c, { head: true }),
      selects,
      step(
        "1",
        "The query meets the key",
        el(
          "div",
          { class: "live-line query" },
          el("span", {}, "q of ", el("b", {}, queries[t])),
          strip(query, "--query", "--soft", one),
        ),
        el(
          "div",
          { class: "live-line key" },
          el("span", {}, "k of ", el("b", {}, keys[k])),
          strip(allKeys[k], "--key", "--soft", one),
        ),
        productChart(products),
        el(
          "p",
          {},
          `${size} products, added from left to right: `,
          el("b", {}, `q · k = ${number(scores[k])}`),
          ". Colour: positive; grey: negative.",
        ),
        numbersTable(query, allKeys[k], products),
      ),
      step(
        "2",
        root === 1 ? "Not divided: you switched it off" : `Divided by √${size} = ${root}`,
        el(
          "p",
          {},
          root === 1 ? "The score stays " : `${number(scores[k])} / ${root} = `,
          el("b", {}, number(scores[k] / root)),
          ". Long vectors have large products; the division keeps the softmax from becoming " +
            "a hard choice.",
        ),
      ),
      step(
        "3",
        "The softmax turns the scores of all keys into weights",
        el(
          "table",
          { class: "live-scores" },
          el(
            "thead",
            {},
            el(
              "tr",
              {},
              ["Key", "q · k", `/ ${root === 1 ? 1 : root}`, "weight"].map((text) =>
                el("th", { scope: "col" }, text),
              ),
            ),
          ),
          el(
            "tbody",
            {},
            weights.length
              ? [...weights.keys()].map((s) =>
                  el(
                    "tr",
                    { class: s === k ? "selected" : "" },
                    el(
                      "th",
                      { scope: "row" },
                      el(
                        "button",
                        {
                          type: "button",
                          class: "live-link",
                          "data-key": `key-${s}`,
                          onclick: () => go({ k: s }),
                        },
                        keys[s],
                      ),
                    ),
                    el("td", {}, number(scores[s])),
                    el("td", {}, number(scores[s] / root)),
                    el(
                      "td",
                      { class: "live-weight", style: `--share: ${(100 * weights[s]).toFixed(1)}%` },
                      number(weights[s], 3),
                    ),
                  ),
                )
              : [],
          ),
        ),
      ),
      step(
        "4",
        "The values are added, each times its weight",
        [...weights.keys()]
          .sort((a, b) => weights[b] - weights[a])
          .filter((s, i) => !i || (i < 4 && weights[s] >= 0.005))
          .map((s) =>
            el(
              "div",
              { class: "live-line value" },
              el("span", {}, `${number(weights[s])} × v of `, el("b", {}, keys[s])),
              strip(
                values[s].map((v) => v * weights[s]),
                "--value",
                "--soft",
                largest,
              ),
            ),
          ),
        el(
          "div",
          { class: "live-line value total" },
          el("span", {}, "sum over all keys"),
          strip(output, "--value", "--soft", largest),
        ),
        el(
          "p",
          {},
          "This sum is the head’s output. W",
          el("sup", {}, "O"),
          " mixes it with those of the other heads.",
        ),
      ),
    );
    const check = Math.abs(Math.exp((scores[k] - Math.max(...scores)) / root) / total - weights[k]);
    const inspector = el(
      "div",
      {},
      el("h3", {}, `${ATTENTIONS[state.a].name}, layer ${state.l + 1}, head ${h + 1}`),
      el(
        "p",
        {},
        state.a === "cross" ? "The position that writes " : "",
        el("b", { class: "query" }, queries[t]),
        " gives ",
        el("b", { class: "key" }, keys[k]),
        " a weight of ",
        el("b", { "data-check": check.toExponential(1) }, number(weights[k], 3)),
        ".",
      ),
      el(
        "p",
        {},
        "The query says what this position looks for, a key what another position offers. " +
          "Both are the stream’s vectors times a matrix that was learned.",
      ),
      el(
        "ol",
        { class: "live-links" },
        el(
          "li",
          {},
          "q = x W",
          el("sup", {}, "Q"),
          ": ",
          code("model/attention", "MultiHeadAttention.project_query"),
          ", ",
          chapter(2),
        ),
        el(
          "li",
          {},
          "q · k / √d",
          el("sub", {}, "k"),
          ": ",
          code("model/attention", "scaled_dot_product_attention"),
          ", ",
          chapter(4),
        ),
        el(
          "li",
          {},
          "softmax: ",
          code("model/attention", "masked_softmax"),
          ", ",
          chapter(state.a === "decoder" ? 6 : 2),
        ),
        el(
          "li",
          {},
          "weights times values: ",
          code("model/attention", "scaled_dot_product_attention"),
          ", ",
          chapter(2),
        ),
      ),
    );
    return { view, inspector };
  }

  /** The products of one query and one key as bars, and their running sum as a line. */
  function productChart(products) {
    const [width, height] = [640, 120];
    const sums = [];
    products.reduce((sum, p, j) => (sums[j] = sum + p), 0);
    const high = Math.max(0, ...sums, ...products);
    const low = Math.min(0, ...sums, ...products);
    const y = (v) => 4 + ((high - v) / (high - low || 1)) * (height - 8);
    const zero = y(0);
    const w = width / products.length;
    return el(
      "svg",
      {
        class: "live-products",
        viewBox: `0 0 ${width} ${height}`,
        role: "img",
        "aria-label":
          `${products.length} products and their running sum, ` +
          `which ends at ${number(sums.at(-1))}`,
      },
      el("line", { x1: 0, x2: width, y1: zero, y2: zero, class: "zero" }),
      [...products].map((p, j) =>
        el("rect", {
          x: j * w + 1,
          width: w - 2,
          y: Math.min(y(p), zero),
          height: Math.abs(y(p) - zero),
          class: p < 0 ? "negative" : "",
        }),
      ),
      el("polyline", {
        points: sums
          .map((sum, j) => `${((j + 0.5) * w).toFixed(1)},${y(sum).toFixed(1)}`)
          .join(" "),
      }),
    );
  }

  function numbersTable(query, key, products) {
    const details = el(
      "details",
      { class: "live-table", "data-key": "numbers" },
      el("summary", {}, "All numbers as a table"),
    );
    details.addEventListener("toggle", () => {
      if (!details.open || details.querySelector("table")) return;
      details.append(
        el(
          "table",
          {},
          el(
            "thead",
            {},
            el(
              "tr",
              {},
              ["i", "q", "k", "q × k"].map((text) => el("th", { scope: "col" }, text)),
            ),
          ),
          el(
            "tbody",
            {},
            [...products].map((p, j) =>
              el(
                "tr",
                {},
                el("th", { scope: "row" }, j + 1),
                el("td", {}, number(query[j])),
                el("td", {}, number(key[j])),
                el("td", {}, number(p)),
              ),
            ),
          ),
        ),
      );
    });
    return details;
  }

  LiveViews.head = head;
})();
