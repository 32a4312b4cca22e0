
"use strict";
/* Markdown as DOM nodes. The text comes from a model and is untrusted: only the elements named here are ever made, text is
 * set as text, HTML stays visible as it was written, images become links, and links lead to http, https and mailto alone. */
function el(name, attrs, ...kids) {
  const e = document.createElement(name);
  for (const [key, value] of Object.entries(attrs)) if (value !== "") e.setAttribute(key, value);
  e.append(...kids);
  return e;
}

const markdownDepth = 8; // of blocks in blocks and of emphasis in emphasis; deeper text stays plain
const inlineLimit = 50000; // characters of a paragraph; a longer one stays plain
const fence = /^( {0,3})(`{3,}(?!`)|~{3,}(?!~))([^`]*)$/;
const heading = /^ {0,3}(#{1,6})\s+(.*)$/;
const item = /^(\s*)([-*+]|\d{1,9}[.)])(?:\s+|$)/;
const rule = /^ {0,3}(?:(?:\*\s*){3,}|(?:-\s*){3,}|(?:_\s*){3,})$/;
const cells = line => line.trim().replace(/^\|/, "").replace(/(?<!\\)\|$/, "").split(/(?<!\\)\|/).map(c => c.trim().replaceAll("\\|", "|"));
const isTable = (lines, i) => lines[i].includes("|") && i + 1 < lines.length && lines[i + 1].includes("|") && cells(lines[i + 1]).every(c => /^:?-+:?$/.test(c));
const starts = (lines, i) => fence.test(lines[i]) || heading.test(lines[i]) || item.test(lines[i]) || rule.test(lines[i]) || /^ {0,3}>/.test(lines[i]) || isTable(lines, i) || mathEnd(lines, i) > i;
const indent = line => line.length - line.trimStart().length;
const ordered = line => /\d/.test(item.exec(line)[2]);

/* blocksOf cuts a text into blocks: their kind and their lines. */
function blocksOf(text) {
  const lines = text.replace(/\r\n?/g, "\n").replaceAll("\t", "    ").split("\n"), out = [];
  for (let i = 0; i < lines.length;) {
    const from = i, open = fence.exec(lines[i]);
    let kind = "p";
    if (!lines[i].trim()) { i++; continue; }
    const formula = mathEnd(lines, i);
    if (open) {
      kind = "code";
      for (i++; i < lines.length; i++) {
        const line = lines[i].trim();
        if (line.length >= open[2].length && line === open[2][0].repeat(line.length)) { i++; break; }
      }
    } else if (formula > i) i = formula;
    else if (heading.test(lines[i])) { kind = "h"; i++; }
    else if (rule.test(lines[i])) { kind = "hr"; i++; }
    else if (/^ {0,3}>/.test(lines[i])) {
      kind = "quote";
      for (i++; i < lines.length && lines[i].trim() && (/^ {0,3}>/.test(lines[i]) || !starts(lines, i));) i++;
    } else if (isTable(lines, i)) {
      kind = "table";
      for (i += 2; i < lines.length && lines[i].includes("|");) i++;
    } else if (item.test(lines[i])) {
      kind = "list";
      i = listEnd(lines, i);
    } else for (i++; i < lines.length && lines[i].trim() && !starts(lines, i);) i++;
    out.push({kind, lines: lines.slice(from, i)});
  }
  return out;
}

/* listEnd is the line behind a list: its items, lines indented below them, and text that goes on without a blank line. */
function listEnd(lines, from) {
  const least = indent(lines[from]), kind = ordered(lines[from]);
  let i = from + 1, end = i;
  for (let blank = false; i < lines.length; i++) {
    const line = lines[i];
    if (!line.trim()) { blank = true; continue; }
    const inside = indent(line) >= least + 2;
    if (!inside && (rule.test(line) || (item.test(line) ? ordered(line) !== kind : blank || starts(lines, i)))) break;
    blank = false;
    end = i + 1;
  }
  return end;
}

/* listOf makes the list of a block's lines; what stands below an item's text is rendered by itself. */
function listOf(lines, depth) {
  const first = item.exec(lines[0]), least = indent(lines[0]), items = [];
  for (const line of lines) {
    const mark = item.exec(line);
    if (mark && indent(line) < least + 2) items.push({width: mark[0].length, lines: [line.slice(mark[0].length)]});
    else {
      const last = items[items.length - 1];
      last.lines.push(line.slice(Math.min(indent(line), Math.max(last.width, 2))));
    }
  }
  const list = ordered(lines[0]) ? el("ol", {start: String(parseInt(first[2], 10))}) : el("ul", {});
  for (const one of items) {
    const li = el("li", {}), blocks = blocksOf(one.lines.join("\n"));
    blocks.forEach((b, i) => li.append(...(b.kind === "p" && i === 0 ? inline(textOf(b), depth) : [build(b, depth + 1)])));
    list.append(li);
  }
  return list;
}
const textOf = block => block.lines.map(line => line.trim()).join("\n");

function tableOf(lines, depth) {
  const sides = cells(lines[1]).slice(0, 100).map(c => c.endsWith(":") ? (c.startsWith(":") ? "center" : "right") : "");
  const row = (line, name) => {
    const texts = cells(line);
    return el("tr", {}, ...sides.map((side, i) => el(name, {class: side}, ...inline(texts[i] ?? "", depth))));
  };
  const table = el("table", {}, el("thead", {}, row(lines[0], "th")), el("tbody", {}, ...lines.slice(2).map(line => row(line, "td"))));
  return el("div", {class: "scroll", tabindex: "0", role: "region", "aria-label": "Table"}, table);
}

/* fillCode shows a code block's text, colored once it has ended. */
function fillCode(code, lines) {
  const open = fence.exec(lines[0]), last = lines[lines.length - 1].trim();
  const closed = lines.length > 1 && last.length >= open[2].length && last === open[2][0].repeat(last.length);
  const text = lines.slice(1, closed ? -1 : undefined).map(line => line.slice(Math.min(indent(line), open[1].length))).join("\n");
  code.replaceChildren(...(closed ? colored(text, languageOf(lines)) : [text]));
}
const languageOf = lines => /^[\w+#.-]*/.exec(fence.exec(lines[0])[3].trim())[0].toLowerCase();

function codeOf(lines) {
  const code = el("code", {});
  fillCode(code, lines);
  const copy = el("button", {type: "button", class: "quiet", "aria-label": "Copy code"}, "Copy");
  copy.addEventListener("click", () => copyText(copy, code.textContent));
  return el("div", {class: "code"}, el("div", {}, el("span", {}, languageOf(lines) || "text"), copy), el("pre", {tabindex: "0"}, code));
}

function build(block, depth) {
  const lines = block.lines;
  if (depth > markdownDepth) return el("p", {}, lines.join("\n"));
  switch (block.kind) {
    case "code": return codeOf(lines);
    case "h": { const [, marks, text] = heading.exec(lines[0]); return el("h" + Math.min(marks.length + 2, 6), {}, ...inline(text.trimEnd().replace(/ #+$/, ""), depth)); }
    case "hr": return el("hr", {});
    case "quote": return el("blockquote", {}, ...blocksOf(lines.map(line => line.replace(/^ {0,3}> ?/, "")).join("\n")).map(b => build(b, depth + 1)));
    case "list": return listOf(lines, depth);
    case "table": return tableOf(lines, depth);
  }
  return el("p", {}, ...inline(textOf(block), depth));
}

/* linkOf is a link that opens elsewhere; a text where its scheme is not one of the three. */
function linkOf(url, kids) {
  let to;
  try { to = new URL(url); } catch { return kids; }
  if (!["http:", "https:", "mailto:"].includes(to.protocol)) return kids;
  return [el("a", {href: to.href, target: "_blank", rel: "noopener noreferrer", title: to.href}, ...kids)];
}

/* inline makes the nodes of a text in a block: code, emphasis, links. A mark without its other half stays text; it is
 * looked for once only, so that the work grows with the text's length and not with its square. */
function inline(text, depth) {
  const out = [], dead = new Set();
  let plain = "", i = 0;
  const push = nodes => { if (plain) out.push(plain); plain = ""; out.push(...nodes); };
  if (depth > markdownDepth || text.length > inlineLimit) return [text];
  while (i < text.length) {
    const c = text[i], found =
      (c === "$" || c === "\\") && mathSpan(text, i, dead) || (
      c === "\\" && /[!-/:-@[-`{-~]/.test(text[i + 1] ?? "") ? {end: i + 2, text: text[i + 1]} :
      c === "`" ? codeSpan(text, i, dead) :
      c === "*" || c === "_" || c === "~" ? emphasis(text, i, dead, depth) :
      c === "[" || c === "!" && text[i + 1] === "[" ? linkSpan(text, i, depth) :
      c === "<" || c === "h" ? bareLink(text, i) : null);
    if (!found) plain += c;
    else if (found.nodes) push(found.nodes);
    else plain += found.text;
    i = found ? found.end : i + 1;
  }
  push([]);
  return out;
}

const runAt = (text, i) => { let n = 1; while (text[i + n] === text[i]) n++; return n; };

function codeSpan(text, i, dead) {
  const n = runAt(text, i), all = {end: i + n, text: text.slice(i, i + n)};
  if (dead.has("`" + n)) return all;
  for (let j = text.indexOf("`", i + n); j >= 0; j = text.indexOf("`", j)) {
    const m = runAt(text, j);
    const code = text.slice(i + n, j);
    if (m === n) return {end: j + n, nodes: [el("code", {}, code.startsWith(" ") && code.endsWith(" ") && code.trim() ? code.slice(1, -1) : code)]};
    j += m;
  }
  dead.add("`" + n);
  return all;
}

function emphasis(text, i, dead, depth) {
  const c = text[i], run = runAt(text, i), n = c === "~" ? 2 : Math.min(run, 3), all = {end: i + run, text: text.slice(i, i + run)};
  const word = k => /[\p{L}\p{N}]/u.test(text[k] ?? ""), space = k => /\s/.test(text[k] ?? " ");
  if (run > 3 || c === "~" && run !== 2 || dead.has(c + n) || space(i + run) || c === "_" && word(i - 1)) return all;
  for (let j = text.indexOf(c, i + n); j >= 0; j = text.indexOf(c, j)) {
    const m = runAt(text, j);
    if ((m === n || m === 3) && !space(j - 1) && !(c === "_" && word(j + m))) {
      const end = m === n ? j : j + m - n, kids = inline(text.slice(i + n, end), depth + 1);
      return {end: end + n, nodes: [c === "~" ? el("del", {}, ...kids) : n === 3 ? el("strong", {}, el("em", {}, ...kids)) : el(n === 2 ? "strong" : "em", {}, ...kids)]};
    }
    j += m;
  }
  dead.add(c + n);
  return all;
}

function linkSpan(text, i, depth) {
  const from = text[i] === "!" ? i + 2 : i + 1, close = balanced(text, from, "[", "]", 500);
  if (close < 0 || text[close + 1] !== "(") return null;
  const end = balanced(text, close + 2, "(", ")", 2000);
  if (end < 0) return null;
  const url = text.slice(close + 2, end).trim().replace(/\s+["'(][^]*$/, "").replace(/^<|>$/g, ""), label = text.slice(from, close);
  return {end: end + 1, nodes: linkOf(url, inline(label || url, depth + 1).map(n => n.nodeName === "A" ? n.textContent : n))};
}

function balanced(text, from, open, close, most) {
  for (let i = from, deep = 0; i < text.length && i < from + most; i++) {
    if (text[i] === "\\") i++;
    else if (text[i] === open) deep++;
    else if (text[i] === close && deep-- === 0) return i;
  }
  return -1;
}

function bareLink(text, i) {
  if (text[i] === "h" && (/\w/.test(text[i - 1] ?? "") || !text.startsWith("http", i))) return null;
  const found = /^(?:<((?:https?:|mailto:)[^\s<>]{1,2000})>|(https?:\/\/[^\s<>"'`)\]]{1,2000}[^\s<>"'`)\].,;:!?*_]))/.exec(text.slice(i, i + 2100));
  return found && {end: i + found[0].length, nodes: linkOf(found[1] ?? found[2], [found[1] ?? found[2]])};
}

/* renderMarkdown brings an element up to date with a text that grows: blocks that are as they were keep their nodes, so that
 * nothing flickers, a selection stays, and an open code block keeps its scroll position. */
function renderMarkdown(body, text) {
  const blocks = blocksOf(text), old = body.blocks ?? [];
  let same = 0;
  while (same < blocks.length && same < old.length && blocks[same].lines.join("\n") === old[same].lines.join("\n")) same++;
  for (let i = same; i < blocks.length; i++) {
    const before = body.children[i];
    if (before && blocks[i].kind === "code" && old[i].kind === "code" && blocks[i].lines[0] === old[i].lines[0]) fillCode(before.querySelector("code"), blocks[i].lines);
    else if (before) before.replaceWith(build(blocks[i], 0));
    else body.append(build(blocks[i], 0));
  }
  while (body.children.length > blocks.length) body.lastElementChild.remove();
  body.blocks = blocks;
}
