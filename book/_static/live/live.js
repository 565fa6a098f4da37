// The live page: input, levels of zoom, broken parts and the tour, on one state.

(() => {
  "use strict";
  const root = document.getElementById("live");
  if (!root || typeof Worker === "undefined") return;
  const { ATTENTIONS, chapter, el } = LiveParts;
  const $ = (selector) => root.querySelector(selector);
  const folder = new URL(".", document.currentScript.src).href;
  const { version, bytes } = root.dataset;
  const MOST_TOKENS = 100;
  const UNFINISHED = ". No end after the input’s length plus 50 tokens: the search stopped.";
  const LEVELS = ["sentence", "stack", "layer", "head", "output"];

  const model = new LiveModel(folder, version);
  let state = LiveState.read(location.hash);
  let data = null; // of the present translation
  let asked = null; // what the data belongs to
  let whole = { s: null, text: "" }; // the translation with nothing broken
  let temperature = 1;
  let prediction = null; // { part, guess }, until the reader lets it happen

  const size = `${(bytes / 1e6).toFixed(1)} MB`;
  const input = $("#live-text");
  const note = $(".live-note");
  const view = $(".live-view");
  const inspector = $(".live-inspector > div");

  // --- Parts that can be switched off ----------------------------------------------------------

  const { PARTS, GUESSES } = LiveBroken;
  const broken = () => {
    const parts = Object.fromEntries(
      state.b.filter((each) => PARTS[each]).map((each) => [each, true]),
    );
    const heads = state.b.filter((each) => each.includes("."));
    return heads.length ? { ...parts, heads } : parts;
  };
  const headName = (each) => {
    const [module, layer, part, head] = each.split(".");
    const kind = module === "encoder" ? "encoder" : part === "self_attention" ? "decoder" : "cross";
    return `${ATTENTIONS[kind].name}, layer ${+layer + 1}, head ${+head + 1}`;
  };
  const partName = (each) => PARTS[each]?.name ?? headName(each);

  // --- State -----------------------------------------------------------------------------------

  /** Change the state, and compute and show what follows. @param {string} [focus] a data-key */
  function go(changes, focus) {
    if (changes.t >= 0 && state.z === "sentence") sheet(true);
    state = { ...state, ...changes };
    history.replaceState(null, "", LiveState.write(state));
    compute();
    render(focus);
  }

  /** Show or hide the inspector where it is a sheet. */
  function sheet(isOpen) {
    root.classList.toggle("live-open", isOpen);
    $(".live-handle").setAttribute("aria-expanded", String(isOpen));
  }

  /** Let the output begin as it does before place t, and continue with a token of the reader's. */
  function force(t, id) {
    go({ f: [...data.steps.slice(0, t).map((step) => step.id), id], t });
  }

  function toggle(name) {
    const b = state.b.includes(name) ? state.b.filter((each) => each !== name) : [...state.b, name];
    go({ b, f: [] });
  }

  // --- Computing -------------------------------------------------------------------------------

  /** @returns {[string?, boolean?]} what to say about a text, and whether it is not translated */
  function remarks(text) {
    if (!text.trim()) return ["Type an English sentence.", true];
    const strange = text.match(
      /[^\p{Script=Latin}\p{Script=Common}\p{Script=Inherited}]|\p{Extended_Pictographic}/u,
    );
    if (strange) {
      return [
        `“${strange[0]}” hardly occurs in the text that the model was trained on, ` +
          "so do not expect much of it.",
        false,
      ];
    }
    return [];
  }

  function compute() {
    if (!model.config) return;
    const [remark, refused] = remarks(state.s);
    if (refused) {
      model.drop("translate");
      model.drop("beam");
      asked = data = null;
      say(remark);
      return;
    }
    const key = JSON.stringify([state.s, state.f, state.b]);
    if (asked !== key) {
      asked = key;
      translate(key, remark);
    }
    if (state.b.length && whole.s !== state.s) {
      whole = { s: state.s, text: "" };
      model.ask(
        "whole",
        { text: state.s },
        {
          text({ text }) {
            whole.text = text;
            renderBroken();
          },
        },
      );
    }
    if (state.z === "output" && data?.key === key && !data.isSearched) {
      data.isSearched = true;
      const mine = data;
      model.ask(
        "beam",
        { text: state.s, broken: broken() },
        {
          beams(beams) {
            mine.beams = beams;
            if (data === mine) render();
          },
        },
      );
    }
  }

  function translate(key, remark) {
    const fresh = { key, source: [], steps: [], values: null, text: "", beams: null };
    const forced = state.f;
    model.ask(
      "translate",
      { text: state.s, forced, broken: broken() },
      {
        source({ source }) {
          if (source.length > MOST_TOKENS + 1) {
            model.drop("translate");
            data = null;
            say(
              `This is ${source.length - 1} tokens long. The page translates up to ` +
                `${MOST_TOKENS}: one sentence at a time.`,
            );
            return render();
          }
          fresh.source = source;
          say(remark ?? "");
        },
        token({ step, text }) {
          fresh.steps.push({ ...step, chosen: step.forced && step.id !== step.best[0].id });
          fresh.text = text;
          data = fresh;
          render();
        },
        finished({ finished, milliseconds }) {
          const perToken = milliseconds / fresh.steps.length;
          fresh.time =
            `${fresh.steps.length} tokens in ${Math.round(milliseconds)} ms, ` +
            `${perToken.toFixed(0)} ms per token`;
          fresh.finished = finished;
          const sure = fresh.steps.map((each) => each.best[0].probability);
          fresh.focus = sure.indexOf(Math.min(...sure));
          if (!state.b.length && !forced.length) whole = { s: state.s, text: fresh.text };
          announce(fresh.text);
        },
        trace({ values }) {
          fresh.values = values;
          compute();
          render();
        },
        failed({ message }) {
          say(`The engine stopped: ${message}`);
        },
      },
    );
  }

  /** Load the model, with a bar, and translate. */
  async function begin() {
    const bar = $("progress");
    try {
      if (!model.config) {
        say(`Loading the model, ${size} …`);
        bar.hidden = false;
        await model.load((done, count) => {
          bar.max = count;
          bar.value = done;
        });
        localStorage.setItem("live", version); // on the next visit it comes from the cache
        say("");
      }
      compute();
      render();
    } catch (error) {
      say(`The model did not load: ${error.message}. Press Translate to try again.`);
    } finally {
      bar.hidden = true;
    }
  }

  const say = (text) => (note.textContent = text);
  const announce = (text) => ($(".live-announce").textContent = text);

  // --- Showing ---------------------------------------------------------------------------------

  let arcs = null;

  /** Replace what a part of the page holds; the focus and open details stay. */
  function replace(parent, nodes, focus) {
    const active = parent.contains(document.activeElement)
      ? document.activeElement.dataset.key
      : null;
    const open = [...parent.querySelectorAll("details[open][data-key]")].map(
      (each) => each.dataset.key,
    );
    const scrolled = parent.querySelector(".live-scroll")?.scrollLeft;
    parent.replaceChildren(...nodes);
    for (const key of open) {
      const details = parent.querySelector(`details[data-key="${key}"]`);
      if (details) details.open = true;
    }
    const key = focus ?? active;
    if (key) parent.querySelector(`[data-key="${key}"]`)?.focus({ preventScroll: true });
    if (scrolled) parent.querySelector(".live-scroll").scrollLeft = scrolled;
  }

  function render(focus) {
    if (document.activeElement !== input && input.value !== state.s) input.value = state.s;
    for (const tab of root.querySelectorAll("[role=tab]")) {
      const isOn = tab.dataset.level === state.z;
      tab.setAttribute("aria-selected", String(isOn));
      tab.tabIndex = isOn ? 0 : -1;
      if (isOn) view.setAttribute("aria-labelledby", tab.id);
    }
    renderTour();
    renderBroken();
    $(".live-german").textContent = data?.text ?? "";
    $(".live-time").textContent = data
      ? `${data.time ?? ""}${data.finished === false ? UNFINISHED : ""}`
      : "";
    root.classList.toggle("live-empty", !data);
    if (!data) {
      view.replaceChildren();
      inspector.replaceChildren();
      return;
    }
    const keep = (value) => (temperature = value);
    const context = { state, data, config: model.config, go, force, toggle, temperature, keep };
    const shown = LiveViews[state.z](context);
    replace(view, [shown.view], focus);
    replace(inspector, [shown.inspector], focus);
    arcs = shown.after;
    arcs?.();
  }

  // --- Break it --------------------------------------------------------------------------------

  function renderBroken() {
    const banner = $(".live-banner");
    banner.hidden = !state.b.length;
    if (state.b.length) {
      replace(banner, [
        el("span", {}, "Switched off: ", el("b", {}, state.b.map(partName).join("; "))),
        el(
          "button",
          {
            type: "button",
            "data-key": "repair",
            onclick: () => {
              prediction = null;
              go({ b: [], f: [] }, "repair");
              input.focus();
            },
          },
          "Repair",
        ),
      ]);
    }
    const list = Object.entries(PARTS).map(([part, { name }]) =>
      el(
        "button",
        {
          type: "button",
          "data-key": `part-${part}`,
          "aria-pressed": String(prediction?.part === part || state.b.includes(part)),
          onclick: () => {
            prediction = { part, guess: null };
            if (state.b.length) go({ b: [], f: [] });
            else renderBroken();
          },
        },
        name,
      ),
    );
    replace($(".live-parts"), list);
    replace($(".live-question"), question());
  }

  function question() {
    const isDone = state.b.length > 0;
    const part = isDone ? state.b.find((each) => PARTS[each]) : prediction?.part;
    if (!model.config) return [el("p", { class: "live-hint" }, "Translate a sentence first.")];
    if (!part && !isDone)
      return [
        el(
          "p",
          { class: "live-hint" },
          "Choose a part. Single heads are muted at the level “Layer”.",
        ),
      ];
    if (!isDone) {
      return [
        el("p", {}, el("b", {}, PARTS[part].name), ". ", PARTS[part].what),
        el(
          "fieldset",
          {},
          el("legend", {}, "What will happen to the translation?"),
          GUESSES.map(([guess, text]) =>
            el(
              "label",
              {},
              el("input", {
                type: "radio",
                name: "guess",
                value: guess,
                "data-key": `guess-${guess}`,
                checked: prediction.guess === guess,
                onchange: () => {
                  prediction.guess = guess;
                  renderBroken();
                },
              }),
              " ",
              text,
            ),
          ),
        ),
        el(
          "button",
          {
            type: "button",
            class: "live-main-button",
            "data-key": "break",
            disabled: !prediction.guess,
            onclick: () => go({ b: [part], f: [], t: -1 }, "break"),
          },
          "Switch it off",
        ),
      ];
    }
    const now = data?.key === asked ? data : null; // until then the last one is still shown
    const isReady = now?.time && whole.text;
    const isSame = isReady && now.text === whole.text;
    const verdict = () => {
      if (!isReady) return "Computing …";
      const fact = isSame ? "The translation is the same." : "The translation has changed.";
      if (!prediction?.guess || prediction.part !== part) return fact;
      const guess = GUESSES.find(([each]) => each === prediction.guess)[1];
      if (isSame || prediction.guess === "same") {
        const isRight = isSame === (prediction.guess === "same");
        return `${fact} Your guess was ${isRight ? "right" : "different"}: “${guess}”`;
      }
      return `${fact} You said: “${guess}” Read it, and judge.`;
    };
    return [
      el(
        "dl",
        { class: "live-compare" },
        el("dt", {}, "Whole model"),
        el("dd", { lang: "de" }, whole.text || "…"),
        el("dt", {}, `Without: ${state.b.map(partName).join("; ")}`),
        el("dd", { lang: "de", class: isSame ? "" : "changed" }, now?.text || "…"),
      ),
      el("p", { class: "live-verdict" }, verdict()),
      part
        ? el("p", {}, PARTS[part].why, " More in ", chapter(PARTS[part].chapter), ".")
        : el("p", {}, "What each head of this model is worth is measured in ", chapter(22), "."),
    ];
  }

  // --- The tour --------------------------------------------------------------------------------

  const SENTENCE = "The animal didn't cross the street because it was too tired.";
  const STOPS = LiveTour.stops;

  function renderTour() {
    const card = $(".live-tour");
    const stop = STOPS[state.stop];
    $(".live-start-tour").hidden = Boolean(stop);
    card.hidden = !stop;
    if (!stop) return;
    replace(
      card,
      [
        el("p", { class: "live-hint" }, `Stop ${state.stop + 1} of ${STOPS.length}`),
        el("h3", { tabindex: -1, "data-key": "tour-title" }, stop.title),
        el("p", {}, stop.text),
        stop.task ? el("p", { class: "live-task" }, stop.task) : null,
        el(
          "p",
          { class: "live-hint" },
          "Read ",
          ...stop.chapters.flatMap((each, i) => [i ? " and " : "", chapter(each)]),
          ".",
        ),
        el(
          "div",
          { class: "live-buttons" },
          el(
            "button",
            {
              type: "button",
              "data-key": "tour-back",
              disabled: state.stop === 0,
              onclick: () => visit(state.stop - 1, "tour-back"),
            },
            "Back",
          ),
          state.stop + 1 < STOPS.length
            ? el(
                "button",
                {
                  type: "button",
                  class: "live-main-button",
                  "data-key": "tour-next",
                  onclick: () => visit(state.stop + 1, "tour-next"),
                },
                "Next stop",
              )
            : null,
          el(
            "button",
            {
              type: "button",
              class: "live-quiet",
              "data-key": "tour-end",
              onclick: () => {
                go({ stop: -1 });
                $(".live-start-tour").focus();
              },
            },
            "End the tour",
          ),
        ),
      ].filter(Boolean),
    );
  }

  function visit(stop, focus) {
    prediction = null;
    const standard = LiveState.defaults;
    go({ ...standard, s: SENTENCE, ...STOPS[stop].state, stop });
    const card = $(".live-tour");
    card.querySelector(`[data-key="${focus}"]`)?.focus({ preventScroll: true });
    const isCalm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    card.scrollIntoView({ behavior: isCalm ? "instant" : "smooth" });
    if (!model.config) begin();
  }

  // --- Events ----------------------------------------------------------------------------------

  $(".live-ask").addEventListener("submit", (event) => {
    event.preventDefault();
    if (input.value !== state.s) go({ s: input.value, f: [], t: -1, k: -1 });
    const [remark, refused] = remarks(state.s);
    if (refused) say(remark);
    else begin();
  });
  let typing;
  input.addEventListener("input", () => {
    clearTimeout(typing);
    if (!model.config) return;
    typing = setTimeout(() => go({ s: input.value, f: [], t: -1, k: -1 }), 120);
  });
  for (const example of root.querySelectorAll(".live-examples button")) {
    example.addEventListener("click", () => {
      input.value = example.textContent;
      go({ s: input.value, f: [], t: -1, k: -1 });
      begin();
    });
  }
  const tabs = [...root.querySelectorAll("[role=tab]")];
  tabs.forEach((tab, i) => {
    tab.addEventListener("click", () => go({ z: tab.dataset.level }));
    tab.addEventListener("keydown", (event) => {
      const to = { ArrowRight: i + 1, ArrowLeft: i - 1, Home: 0, End: tabs.length - 1 }[event.key];
      if (to === undefined) return;
      event.preventDefault();
      const next = tabs[(to + tabs.length) % tabs.length];
      go({ z: next.dataset.level });
      next.focus();
    });
  });
  $(".live-handle").addEventListener("click", () => sheet(!root.classList.contains("live-open")));
  $(".live-start-tour").addEventListener("click", () => visit(0, "tour-title"));
  $(".live-share").addEventListener("click", async () => {
    history.replaceState(null, "", LiveState.write(state));
    try {
      await navigator.clipboard.writeText(location.href);
      say("The link is copied. It opens this sentence at this place.");
    } catch {
      say("Copy the address of this page: it opens this sentence at this place.");
    }
  });
  window.addEventListener("hashchange", () => {
    state = checked(LiveState.read(location.hash));
    input.value = state.s;
    compute();
    render();
  });
  new ResizeObserver(() => arcs?.()).observe(view);
  new MutationObserver(() => data && render()).observe(document.documentElement, {
    attributes: true,
    attributeFilter: ["data-theme"],
  });
  document.fonts?.ready.then(() => arcs?.());

  /** A state whose parts exist: an address can hold anything. */
  function checked(read) {
    const z = LEVELS.includes(read.z) ? read.z : "sentence";
    const a = ATTENTIONS[read.a] ? read.a : "cross";
    const b = read.b.filter(
      (each) => PARTS[each] || /^(en|de)coder\.[0-2]\.(self|cross)_attention\.[0-3]$/.test(each),
    );
    const within = (value, low, high) => Math.min(Math.max(value, low), high);
    return {
      ...read,
      z,
      a,
      b,
      l: within(read.l, 0, 2),
      h: within(read.h, -1, 3),
      stop: STOPS[read.stop] ? read.stop : -1,
    };
  }

  // In a frame of a chapter (ask.js): only the view, in the chapter's theme, as high as it is.
  if (new URLSearchParams(location.search).has("embed")) {
    document.documentElement.classList.add("live-embedded");
    document.head.append(el("base", { target: "_top" }));
    new ResizeObserver(() => {
      parent.postMessage({ height: Math.ceil(root.getBoundingClientRect().height) }, "*");
    }).observe(root);
    window.addEventListener("message", ({ source, data }) => {
      if (source === parent && data.theme) document.documentElement.dataset.theme = data.theme;
    });
  }

  state = checked(state);
  // The start page sends a sentence with "run"; a reader who was here before has the model at hand.
  const isSent = new URLSearchParams(location.hash.slice(1)).has("run");
  if (state.s) input.value = state.s;
  else state.s = input.value;
  render();
  if (isSent || localStorage.getItem("live") === version) begin();
  root.dataset.ready = "";
})();
