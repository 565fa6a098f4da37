// Level 3, a layer: the attention of all its heads, as tables.

(() => {
  "use strict";
  const {
    ATTENTIONS,
    attentionName,
    axes,
    attentionChoices,
    chapter,
    code,
    el,
    number,
    placeOf,
    sources,
    waiting,
  } = LiveParts;

  function layer(c) {
    const { state, data, config } = c;
    if (!data.values) return { view: waiting(), inspector: el("div", {}) };
    const { queries, keys } = axes(c);
    const t = placeOf(c, queries.length);
    const muted = new Set(state.b.filter((each) => each.includes(".")));
    const silent = !data.values[`${attentionName(state.a, state.l)}.weights.0`];
    const maps = Array.from({ length: config.num_heads }, (_, h) => {
      const name = `${attentionName(state.a, state.l)}.${h}`;
      return el(
        "figure",
        { class: `live-map${muted.has(name) ? " muted" : ""}` },
        el(
          "figcaption",
          {},
          el(
            "button",
            {
              type: "button",
              class: "live-link",
              "data-key": `open-${h}`,
              onclick: () => c.go({ z: "head", h }),
            },
            `Head ${h + 1}`,
          ),
          el(
            "label",
            {},
            el("input", {
              type: "checkbox",
              "data-key": `mute-${h}`,
              checked: muted.has(name),
              onchange: () => c.toggle(name),
            }),
            " mute",
          ),
        ),
        silent ? el("p", {}, "switched off") : heatTable(c, h, queries, keys, t),
      );
    });
    const view = el("div", {}, attentionChoices(c), el("div", { class: "live-maps" }, maps));
    return { view, inspector: layerInspector(c, queries, keys, t, silent) };
  }

  /** One head's weights as a table; a cell is the share of one query's attention for one key. */
  function heatTable(c, h, queries, keys, t) {
    const { state, data, go } = c;
    const name = `${attentionName(state.a, state.l)}.weights.${h}`;
    const rows = data.values[name];
    const table = el(
      "table",
      { class: "live-heat", "aria-label": `Head ${h + 1}: weights of each query, by key` },
      el(
        "thead",
        {},
        el(
          "tr",
          {},
          el("td", {}),
          keys.map((key) => el("th", { scope: "col" }, el("span", {}, key))),
        ),
      ),
      el(
        "tbody",
        {},
        queries.map((query, i) =>
          el(
            "tr",
            { class: i === t ? "selected" : "" },
            el("th", { scope: "row" }, query),
            keys.map((_, j) => {
              const weight = rows[i][j];
              if (weight === undefined)
                return el(
                  "td",
                  { class: "hidden", "data-i": i, "data-j": j, tabindex: -1 },
                  el("span", {}, "hidden"),
                );
              return el(
                "td",
                {
                  style: `--weight: ${(100 * weight).toFixed(1)}%`,
                  "data-i": i,
                  "data-j": j,
                  tabindex: i === t && j === 0 ? 0 : -1,
                },
                el("span", {}, number(weight)),
              );
            }),
          ),
        ),
      ),
    );
    table.addEventListener("click", (event) => {
      const cell = event.target.closest("[data-i]");
      if (cell && !cell.classList.contains("hidden"))
        go({ z: "head", h, t: +cell.dataset.i, k: +cell.dataset.j });
    });
    const show = (event) => {
      const cell = event.target.closest("[data-i]");
      if (cell) highlight(table.closest(".live-maps"), +cell.dataset.i, +cell.dataset.j);
    };
    table.addEventListener("pointerover", show);
    table.addEventListener("focusin", show);
    table.addEventListener("keydown", (event) => {
      const cell = event.target.closest("[data-i]");
      const move = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[
        event.key
      ];
      if (cell && event.key === "Enter") cell.click();
      if (!cell || !move) return;
      event.preventDefault();
      const next = table.querySelector(
        `[data-i="${+cell.dataset.i + move[0]}"][data-j="${+cell.dataset.j + move[1]}"]`,
      );
      if (!next) return;
      cell.tabIndex = -1;
      next.tabIndex = 0;
      next.focus();
    });
    return table;
  }

  /** Mark one query and one key in every map, and say their weights. */
  function highlight(maps, i, j) {
    if (!maps) return;
    const words = [];
    for (const table of maps.querySelectorAll("table")) {
      for (const row of table.tBodies[0].rows)
        row.classList.toggle("hover", row.rowIndex - 1 === i);
      for (const head of table.tHead.rows[0].cells)
        head.classList.toggle("hover", head.cellIndex - 1 === j);
      for (const cell of table.querySelectorAll("td.here")) cell.classList.remove("here");
      const cell = table.querySelector(`[data-i="${i}"][data-j="${j}"]`);
      cell?.classList.add("here");
      words.push(cell?.textContent ?? "");
    }
    const readout = maps.closest(".live").querySelector(".live-readout");
    const table = maps.querySelector("table");
    if (!readout || !table) return;
    const query = table.tBodies[0].rows[i].cells[0].textContent;
    const key = table.tHead.rows[0].cells[j + 1].textContent;
    readout.replaceChildren(
      el("b", { class: "query" }, query),
      " attends to ",
      el("b", { class: "key" }, key),
      ": ",
      words.map((word, h) => `head ${h + 1} ${word}`).join(", "),
    );
  }

  function layerInspector({ state, config }, queries, keys, t, silent) {
    const about = {
      encoder: "Every English token asks all English tokens. A row is one query and sums to 1.",
      decoder:
        "A position of the German reads its token and may look back, never ahead: the upper " +
        "right is masked.",
      cross:
        "A row is the German token being written. Its query asks the keys that the encoder " +
        "made of the English.",
    };
    return el(
      "div",
      {},
      el("h3", {}, ATTENTIONS[state.a].name, `, layer ${state.l + 1}`),
      el("p", {}, about[state.a]),
      el(
        "p",
        { class: "live-readout", "aria-live": "off" },
        silent
          ? ""
          : "Point at a cell, or move through a map with the arrow keys, and see the same pair in all heads.",
      ),
      el(
        "p",
        {},
        `${config.num_heads} heads of ${config.d_model / config.num_heads} numbers run side by side. `,
        "Open one to see where its numbers come from, or mute it: its output becomes zero, " +
          "and the sentence is translated again.",
      ),
      sources(
        code("model/attention", "MultiHeadAttention"),
        chapter(5),
        state.a === "decoder" ? chapter(6) : chapter(22),
      ),
    );
  }

  LiveViews.layer = layer;
})();
