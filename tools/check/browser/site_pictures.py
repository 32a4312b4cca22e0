"""Measures the texts of SVG pictures in Chromium, in the reader's font and in the widest of the usual ones: none leaves its
picture, crosses the edge of a box, or meets another text."""

FONTS = ("", "text { font-family: Verdana, 'DejaVu Sans', sans-serif } .mono { font-family: 'DejaVu Sans Mono', monospace }")

# Boxes on the screen: those of rotated texts too. A text of a line is as high as its font, which is more than its letters.
MEASURE = """() => {
  const svg = document.documentElement, out = [];
  const shown = e => !e.closest("clipPath, defs") && getComputedStyle(e).opacity > 0;
  const rect = e => { const r = e.getBoundingClientRect(); return {x0: r.left + 1, x1: r.right - 1, y0: r.top + 2.5, y1: r.bottom - 2.5}; };
  const meet = (a, b) => a.x0 < b.x1 && b.x0 < a.x1 && a.y0 < b.y1 && b.y0 < a.y1;
  const inside = (a, b) => a.x0 >= b.x0 && a.x1 <= b.x1 && a.y0 >= b.y0 && a.y1 <= b.y1;
  const page = svg.getBoundingClientRect(), bounds = {x0: page.left, x1: page.right, y0: page.top, y1: page.bottom};
  const texts = [...svg.querySelectorAll("text")].filter(e => e.textContent.trim() && shown(e)).map(e => ({at: rect(e), says: e.textContent.trim()}));
  const boxes = [...svg.querySelectorAll("rect")].filter(shown).map(e => e.getBoundingClientRect()).map(r => ({x0: r.left, x1: r.right, y0: r.top, y1: r.bottom}));
  texts.forEach((t, i) => {
    if (!inside(t.at, bounds)) out.push(`"${t.says}" leaves the picture`);
    if (boxes.some(b => meet(t.at, b) && !inside(t.at, b))) out.push(`"${t.says}" crosses the edge of a box`);
    for (const u of texts.slice(i + 1)) if (meet(t.at, u.at)) out.push(`"${t.says}" meets "${u.says}"`);
  });
  return [texts.length, out];
}"""


def check(browser, folder):
    """Returns how many pictures of the folder have texts, and what is wrong with them."""
    page, pictures, problems = browser.new_page(reduced_motion="reduce"), 0, []
    for path in sorted(folder.rglob("*.svg")):
        for font in FONTS:
            page.goto(path.as_uri())
            if font:
                page.evaluate("css => document.documentElement.append(Object.assign(document.createElementNS('http://www.w3.org/2000/svg', 'style'), {textContent: css}))", font)
            texts, wrong = page.evaluate(MEASURE)
            problems += [f"{path.relative_to(folder)}: {line}" for line in wrong]
        pictures += texts > 0
    page.close()
    return pictures, list(dict.fromkeys(problems))
