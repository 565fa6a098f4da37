// Heights of the figure at first and while each slider goes to its ends and back.
async () => {
    const root = document.querySelector(".explorer");
    const frame = () => new Promise(requestAnimationFrame);
    const found = [root.getBoundingClientRect().height];
    for (const input of root.querySelectorAll("input[type=range]")) {
        for (const value of [input.min, input.max, input.value]) {
            input.value = value;
            input.dispatchEvent(new Event("input", { bubbles: true }));
            await frame();
            found.push(root.getBoundingClientRect().height);
        }
    }
    return found;
}
