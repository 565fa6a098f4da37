// Checks the answers on a page as book/transformer_book/exercises.py does, and remembers them.
(() => {
  const hints = JSON.parse(document.getElementById("exercise-hints")?.textContent ?? "null");
  if (!hints) return;

  // The right answer, the tolerance and the known mistakes: JSON, turned round, in base 64.
  const decoded = key => JSON.parse(new TextDecoder().decode(
    Uint8Array.from(atob(key), letter => letter.charCodeAt(0)).reverse()));

  // "12,500", "1/8", "3.2e-4", "12.5 %"; NaN for anything else.
  const number = text => {
    let plain = text.replace(/[\s_]/g, "").replace("−", "-");
    const share = plain.endsWith("%") ? 100 : 1;
    plain = plain.replace(/%$/, "");
    if (/^-?[1-9]\d{0,2}(,\d{3})+(\.\d+)?$/.test(plain)) plain = plain.replaceAll(",", "");
    const parts = plain.split("/").map(part =>
      /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(part) ? Number(part) : NaN);
    if (parts.length > 2) return NaN;
    return parts.reduce((above, below) => above / below) / share;
  };

  const near = (answer, value, absolute, relative) =>
    Math.abs(answer - value) <= absolute + relative * Math.abs(value);

  const sizeHint = (got, right) => {
    if (got * right < 0) return hints.sign;
    if (!(got * right)) return got === 0 ? hints.zero : hints["not zero"];
    const ratio = got / right;
    for (const [distance, hint] of hints.close) if (Math.abs(ratio - 1) < distance) return hint;
    return hints[ratio > 0.1 && ratio < 10 ? "tenfold" : "far"];
  };

  // What is wrong with an answer, or "" if nothing is.
  const fault = (kind, text, [right, tolerance, mistakes]) => {
    if (kind === "number") {
      const got = number(text);
      if (!Number.isFinite(got)) return "Write a number, such as 0.125, 1/8, 12,500 or 3.2e-4.";
      if (near(got, right, tolerance, tolerance)) return "";
      // The relative part is PyTorch's own, as in the notebook.
      const known = mistakes.find(([, wrong]) => near(got, wrong, tolerance, 1e-5));
      const size = `${Number(got.toPrecision(6))} is too ${got > right ? "large" : "small"}.`;
      return `${size} ${known ? known[0] : sizeHint(got, right)}`;
    }
    const plain = word => word.trim().toLowerCase();
    if (plain(text) === plain(right)) return "";
    const known = mistakes.find(([, wrong]) => plain(wrong) === plain(text));
    const shown = kind === "truth" ? text : `'${text}'`;
    return `not ${shown}. ${known ? known[0] : hints[kind]}`;
  };

  const store = {
    get: name => { try { return localStorage.getItem(name); } catch { return null; } },
    set: (name, text) => { try { localStorage.setItem(name, text); } catch { /* not kept */ } },
  };

  for (const form of document.querySelectorAll("form.exercise-answer")) {
    const {name, kind, key} = form.dataset, output = form.querySelector("output");
    const field = form.querySelector('input[type="text"]');
    const radios = [...form.querySelectorAll('input[type="radio"]')];
    const given = () => field ? field.value : radios.find(radio => radio.checked)?.value ?? "";

    const check = () => {
      const text = given();
      if (!text.trim()) {
        form.dataset.state = "open";
        output.textContent = field ? "Write an answer first." : "Choose an answer first.";
        return;
      }
      const wrong = fault(kind, text, decoded(key));
      form.dataset.state = wrong ? "wrong" : "right";
      output.textContent = wrong ? `✗ ${wrong[0].toUpperCase()}${wrong.slice(1)}` : "✓ Right.";
      store.set(name, text);
    };

    form.addEventListener("submit", event => { event.preventDefault(); check(); });
    form.addEventListener("input", () => { form.dataset.state = "open"; output.textContent = ""; });
    form.hidden = false;
    const before = store.get(name);
    if (before === null) continue;
    if (field) field.value = before;
    for (const radio of radios) radio.checked = radio.value === before;
    if (given()) check();
  }
})();
