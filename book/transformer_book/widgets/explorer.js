// What every explorer begins with. It runs inside a function of its own, once for each element.
const root = document.querySelector('[id="%ID%"]:not([data-ready])');
if (!root) return;
root.dataset.ready = "yes";
const data = JSON.parse(root.querySelector("script").textContent);

const DRAWN = ["svg", "g", "path", "line", "rect", "circle", "text"];
function make(tag, attributes = {}, ...children) {
  const element = DRAWN.includes(tag)
    ? document.createElementNS("http://www.w3.org/2000/svg", tag)
    : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

// The size of a key, as it is printed.
const keySize = () => [make("i", {}, "d"), make("sub", {}, "k")];

// A slider, a box, a menu: the browser's own, so that keys and readers know them.
function slider(label, { min, max, value, step = 1, show = String }) {
  const input = make("input", { type: "range", min, max, step, value });
  const shown = make("b", { "aria-hidden": "true" });
  const tell = () => {
    shown.textContent = show(+input.value);
    input.setAttribute("aria-valuetext", shown.textContent);
  };
  input.addEventListener("input", () => { tell(); update(); });
  tell();
  const name = make("label", {}, make("span", {}, ...[label].flat()), input);
  controls.append(make("div", { class: "control range" }, name, shown));
  return { input, tell, get value() { return +input.value; } };
}
function tick(label, checked) {
  const input = make("input", { type: "checkbox" });
  input.checked = checked;
  input.addEventListener("change", () => update());
  controls.append(make("div", { class: "control tick" },
    make("label", {}, input, make("span", {}, ...[label].flat()))));
  return { input, get value() { return input.checked; } };
}
function choice(label, names) {
  const select = make("select");
  names.forEach((name, i) => select.add(new Option(name, i)));
  select.addEventListener("change", () => {
    if (narrow.matches) root.style.minHeight = "";  // another figure, with a height of its own
    update();
  });
  controls.append(make("div", { class: "control choice" }, make("label", {}, label, select)));
  return { input: select, get value() { return +select.value; } };
}

const picture = root.querySelector("img");
root.setAttribute("role", "group");
root.setAttribute("aria-label", data.title);
const head = make("p", { class: "head", "aria-hidden": "true" }, data.title);
const stage = make("div", { class: "stage" });
const controls = make("div", { class: "controls" });
const spoken = make("output", { "aria-live": "polite" });
picture.replaceWith(head, make("p", { class: "words" }, picture.alt), stage, controls, spoken);

const minus = text => String(text).replace("-", "\u2212");
const fixed = (number, digits = 2) => {
  const text = number.toFixed(digits);
  return minus(+text === 0 ? text.replace("-", "") : text);
};

// Colours follow the ink of the page, whoever sets it: the book, Jupyter, Colab, the system.
function follow() {
  root.removeAttribute("data-theme");
  const ink = getComputedStyle(root.parentElement).color.match(/[\d.]+/g).slice(0, 3).map(Number);
  root.dataset.theme = ink.reduce((a, b) => a + b) > 382 ? "dark" : "light";
}
follow();
const themes = new MutationObserver(follow);
for (const element of [document.documentElement, document.body])
  themes.observe(element, { attributes: true });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", follow);

// What a reader does below the figure does not move the text after it: as high as it gets. On a
// phone this would leave much of the screen empty; there it only grows, until a menu changes it
// (see start).
const narrow = matchMedia("(max-width: 600px)");
const rootHeight = () => Math.ceil(root.getBoundingClientRect().height);
function reserve() {
  if (narrow.matches) return;
  const inputs = [...controls.querySelectorAll("input, select")];
  const state = inputs.map(input => [input.value, input.checked]);
  const restore = () => inputs.forEach((input, i) => { [input.value, input.checked] = state[i]; });
  root.style.minHeight = "";
  let most = 0;
  const measure = () => { update(); most = Math.max(most, rootHeight()); };
  for (const input of inputs) {
    const [from, to] = input.type === "range" ? [+input.min, +input.max] : [0, 1];
    const each = input.type === "range" ? Math.max(+input.step, Math.ceil((to - from) / 24)) : 1;
    if (input.options) for (const { value } of input.options) { input.value = value; measure(); }
    else for (let value = from; value <= to; value += each) {
      if (input.type === "range") input.value = value; else input.checked = value === 1;
      measure();
    }
    restore();
  }
  update();
  restore(); // what one control has done to another
  update();
  root.style.minHeight = `${most}px`;
}

// Every explorer defines update(): read the controls, draw, say it in words; and ends in start().
function start() {
  let width = 0;
  const near = new IntersectionObserver(entries => {
    if (entries.some(entry => entry.isIntersecting)) { near.disconnect(); reserve(); }
  }, { rootMargin: "1500px" });
  new ResizeObserver(() => {
    if (stage.clientWidth && stage.clientWidth !== width) {
      width = stage.clientWidth;
      root.style.minHeight = "";
      update();
      near.observe(root);
    }
  }).observe(stage);
  const keep = () => {
    if (narrow.matches && stage.clientWidth === width) root.style.minHeight = `${rootHeight()}px`;
  };
  const grown = new ResizeObserver(keep);
  for (const touched of ["pointerdown", "keydown", "input"])
    root.addEventListener(touched, () => { keep(); grown.observe(root); }, { capture: true, once: true });
  update();
}
