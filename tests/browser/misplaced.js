// Words outside of the figure, and controls that are too small for a finger.
() => {
    const box = document.querySelector(".explorer").getBoundingClientRect();
    const all = selector => [...document.querySelectorAll(".explorer " + selector)]
        .map(element => [element, element.getBoundingClientRect()]);
    return [
        ...all("svg text").filter(([_, r]) => r.left < box.left || r.right > box.right),
        ...all(":is(input, select, button)").filter(([_, r]) => Math.min(r.width, r.height) < 24),
    ].map(([element]) => element.outerHTML);
}
