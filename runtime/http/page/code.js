
/* Colors of code and formulas as DOM nodes. The libraries parse; the nodes are made here, so that only the elements,
 * attributes and styles named here are ever made, and no HTML of text. */
const codeLimit = 50000, mathLimit = 4000; // characters: longer ones stay plain

/* Spans takes highlight.js's scopes and makes nodes of them. */
class Spans {
  constructor() { this.root = el("code", {}); this.open = [this.root]; }
  addText(text) { if (text) this.open[this.open.length - 1].append(text); }
  startScope(scope) { const e = el("span", {class: "hl-" + scope.split(/[.:]/)[0]}); this.open[this.open.length - 1].append(e); this.open.push(e); }
  endScope() { if (this.open.length > 1) this.open.pop(); }
  openNode(scope) { this.startScope(scope); }
  closeNode() { this.endScope(); }
  __addSublanguage(other) { this.open[this.open.length - 1].append(...other.root.childNodes); }
  finalize() {}
  toHTML() { return ""; }
}
hljs.configure({__emitter: Spans});

/* colored returns the nodes of a code; a text where its language is unknown. */
function colored(code, language) {
  if (!language || code.length > codeLimit || !hljs.getLanguage(language)) return [code];
  try {
    const {root} = hljs.highlight(code, {language, ignoreIllegals: true})._emitter;
    if (root.textContent === code) return [...root.childNodes];
  } catch { /* a code that the library cannot parse stays plain */ }
  return [code];
}

const mathNames = new Set(("math merror menclose mfrac mi mn mo mover mpadded mphantom mroot mrow ms mspace msqrt mstyle msub msubsup msup mtable mtd mtext mtr " +
  "munder munderover mmultiscripts mprescripts none").split(" "));
const mathAttributes = new Set(("accent accentunder columnalign columnlines columnspacing columnspan depth display displaystyle fence form height largeop linethickness " +
  "lspace lquote mathbackground mathvariant maxsize minsize movablelimits notation rowalign rowlines rowspacing rowspan rquote rspace scriptlevel separator stretchy symmetric voffset width").split(" "));
/* bounded refuses lengths over 30em: a formula of a hostile text would blow up the page. */
const ems = {em: 1, ex: .5, px: .06, pt: .08, "%": .1};
function bounded(value) {
  for (const [, n, unit] of String(value).matchAll(/([\d.]+)([a-z%]+)/gi)) if (n * (ems[unit] ?? 3) > 30) throw new Error("a length of " + n + unit);
  return value;
}
const mathStyles = new Set("border borderBottom borderLeft borderRight borderTop color fontWeight mathDepth padding paddingLeft paddingRight textAlign".split(" "));

/* mathNodes makes the nodes of Temml's tree. */
function mathNodes(n) {
  if (n.text !== undefined) return [n.text];
  const kids = (n.children ?? []).flatMap(mathNodes);
  if (!mathNames.has(n.type)) return kids;
  const e = document.createElementNS("http://www.w3.org/1998/Math/MathML", n.type);
  for (const [key, value] of Object.entries(n.attributes)) if (mathAttributes.has(key)) e.setAttribute(key, bounded(value));
  for (const [key, value] of Object.entries(n.style)) if (mathStyles.has(key)) e.style[key] = bounded(value);
  const classes = n.classes.filter(c => /^tml-[a-z]+$/.test(c));
  if (classes.length) e.setAttribute("class", classes.join(" "));
  e.append(...kids);
  return [e];
}

/* mathOf is a formula; its source where it is not one. */
function mathOf(tex, display, source) {
  if (tex.length > mathLimit) return el("code", {}, source);
  try {
    const tree = temml.__renderToMathMLTree(tex, {displayMode: display, throwOnError: true, maxExpand: 200});
    return el("span", {class: display ? "math display" : "math", ...(display ? {tabindex: "0", role: "region", "aria-label": "Formula"} : {})}, ...mathNodes(tree));
  } catch { return el("code", {}, source); }
}

/* mathSpan is the formula that begins at a place of a text: $x$, $$x$$, \(x\) or \[x\]. A dollar before a space, and one that
 * a digit follows, are money. */
const mathMarks = {"$$": "$$", "$": "$", "\\(": "\\)", "\\[": "\\]"};
function mathSpan(text, i, dead) {
  const open = Object.keys(mathMarks).find(mark => text.startsWith(mark, i)), close = mathMarks[open], from = i + open?.length;
  if (!open || dead.has(open) || open === "$" && /\s/.test(text[from] ?? " ")) return null;
  for (let j = text.indexOf(close, from); j >= 0 && j - from <= mathLimit; j = text.indexOf(close, j + 1)) {
    const tex = text.slice(from, j), end = j + close.length;
    if (open[0] === "$" && text[j - 1] === "\\") continue;
    if (open === "$" && (/\s$/.test(tex) || /\d/.test(text[end] ?? ""))) return null;
    return tex.trim() ? {end, nodes: [mathOf(tex, open === "$$" || open === "\\[", text.slice(i, end))]} : null;
  }
  dead.add(open);
  return null;
}

/* mathEnd is the line behind a formula that has lines of its own; the line itself where none begins there. */
function mathEnd(lines, i) {
  const open = /^ {0,3}(\$\$|\\\[)/.exec(lines[i])?.[1], close = mathMarks[open];
  if (!open) return i;
  for (let j = i; j < lines.length && j < i + 100; j++) {
    const rest = j === i ? lines[j].trim().slice(2) : lines[j].trim();
    if (rest.endsWith(close) && rest.indexOf(close) === rest.length - 2) return j + 1;
    if (rest.includes(close)) return i;
  }
  return i;
}
