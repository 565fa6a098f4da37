// Two buttons and a slider for the steps of a figure; with `every`, in milliseconds, a third that
// plays them. On a button, the arrow keys step, too; a slider and a menu use them themselves.
function stepper(options, { name = "step", unit = "step", every = 0 } = {}) {
  const back = make("button", { type: "button" }, "\u2190 Back");
  const next = make("button", { type: "button", class: "next" }, `Next ${unit} \u2192`);
  const play = make("button", { type: "button" }, "Play");
  const buttons = make("div", { class: "steps" }, back, next);
  controls.classList.add("stepped");
  controls.append(buttons);
  const step = slider(name, options);
  const go = by => {
    step.input.value = step.value + by;
    step.tell();
    update();
  };

  let timer = 0;
  const pause = () => {
    clearInterval(timer);
    timer = 0;
    play.textContent = "Play";
  };
  const turn = by => { pause(); go(by); };
  back.addEventListener("click", () => turn(-1));
  next.addEventListener("click", () => turn(1));
  for (const touched of ["pointerdown", "input"]) step.input.addEventListener(touched, pause);
  root.addEventListener("keydown", event => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!by || !event.target.matches("button") || event.altKey || event.ctrlKey || event.metaKey)
      return;
    event.preventDefault();
    turn(by);
  });
  const ended = () => step.input.value === step.input.max;
  play.addEventListener("click", () => {
    if (timer) return pause();
    if (ended()) go(-step.value);
    play.textContent = "Pause";
    timer = setInterval(() => { go(1); if (ended()) pause(); }, every);
  });
  // Nothing moves for readers who ask for that: then there is no Play.
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  const calm = () => {
    if (every && !still.matches) return buttons.append(play);
    pause();
    play.remove();
  };
  calm();
  still.addEventListener("change", calm);

  // Not the attribute disabled: it would take the focus away, and with it the arrow keys.
  const mark = () => {
    back.setAttribute("aria-disabled", step.input.value === step.input.min);
    next.setAttribute("aria-disabled", ended());
  };
  return { step, go, mark, still };
}

