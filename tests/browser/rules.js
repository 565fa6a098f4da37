// Words in the same colours, size and weight are as legible everywhere, and axe takes a minute for
// all words of a long page: it checks one place of each look that no page before has had. Both kinds
// of rules share a run, because axe's model of the page is most of the work.
async ([tags, colours, known]) => {
  const looks = new Map();
  const grounds = new Map();
  const groundOf = node => {
    if (!node) return "";
    if (!grounds.has(node)) {
      const { backgroundColor, backgroundImage, opacity } = getComputedStyle(node);
      const own = [backgroundColor, backgroundImage, opacity].join();
      const isClear = own === "rgba(0, 0, 0, 0),none,1";
      const isWhole = /^rgb\(.*,none,1$/.test(own);
      const behind = isWhole ? "" : groundOf(node.parentElement);
      grounds.set(node, isClear ? behind : own + behind);
    }
    return grounds.get(node);
  };
  for (const node of document.body.querySelectorAll("*")) {
    if (![...node.childNodes].some(child => child.nodeType === 3 && child.data.trim())) continue;
    if (!node.checkVisibility({ visibilityProperty: true })) continue;
    const { color, fontSize, fontWeight, textDecorationLine } = getComputedStyle(node);
    const parts = [color, fontSize, fontWeight, groundOf(node)];
    if (node.matches("a")) {
      parts.push(textDecorationLine, getComputedStyle(node.parentElement).color);
    }
    const look = parts.join();
    if (!known.includes(look) && !looks.has(look)) looks.set(look, node);
  }
  if (!tags && !looks.size) return [[], []];
  for (const node of looks.values()) node.dataset.look = "";
  axe.configure({ rules: Object.entries(colours).map(([id, selector]) => ({ id, selector })) });
  const ids = Object.keys(colours);
  const rules = Object.fromEntries(ids.map(id => [id, { enabled: looks.size > 0 }]));
  const runOnly = tags ? { type: "tag", values: tags } : { type: "rule", values: ids };
  const { violations } =
    await axe.run({ resultTypes: ["violations"], preload: false, runOnly, rules });
  for (const node of looks.values()) delete node.dataset.look;
  const found = violations.map(
    rule => `${rule.id}, ${rule.nodes.length} times, first ${rule.nodes[0].html.slice(0, 150)}`);
  return [found, [...looks.keys()]];
}
