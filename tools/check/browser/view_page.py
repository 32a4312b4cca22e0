"""Uses the report of iflowc view in a real Chromium: every tab, the keyboard, search, addresses, labels, tables, both themes.

    pip install -r tools/check/browser/requirements.txt
    iflowc view SPEC -o page.html
    python tools/check/browser/view_page.py [--layout] [--shots FOLDER] [--chromium /usr/bin/chromium] page.html…

--layout checks only that the page opens on the graph, and labels and tables.
"""

import argparse
import pathlib
import shutil
import sys
import time

from common import PATIENCE, check, comes, contrasts, failures, no_overflow, watch
from playwright.sync_api import sync_playwright

# Pairs of labels that intersect, labels outside of their drawing or box, and shortened ones without a tooltip.
LABELS = """() => {
  const wrong = [], name = e => [...e.childNodes].filter(n => n.nodeName !== "title").map(n => n.textContent).join(""), tight = r => ({left: r.left + .5, right: r.right - .5, top: r.top + 1.5, bottom: r.bottom - 1.5});
  const meet = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
  const inside = (a, b) => a.left >= b.left - 1 && a.right <= b.right + 1 && a.top >= b.top - 1 && a.bottom <= b.bottom + 1;
  for (const svg of document.querySelectorAll("#main svg")) {
    const labels = [...svg.querySelectorAll("text")].map(e => [e, tight(e.getBoundingClientRect())]).sort((p, q) => p[1].top - q[1].top);
    labels.forEach(([e, r], i) => {
      for (let k = i + 1; k < labels.length && labels[k][1].top < r.bottom; k++) if (meet(r, labels[k][1])) wrong.push(name(e) + " meets " + name(labels[k][0]));
      if (!inside(r, svg.getBoundingClientRect())) wrong.push(name(e) + " leaves its drawing");
      const group = e.closest("a, svg g"), box = group && group.querySelector("rect.box");
      if (box && !inside(r, box.getBoundingClientRect())) wrong.push(name(e) + " leaves its box");
      if (name(e).includes("…") && !(e.querySelector("title") || group && group.querySelector("title"))) wrong.push(name(e) + " has no tooltip");
    });
  }
  const html = [...document.querySelectorAll("header button, header input, h1, #main button, #main th, .facts dt, .facts dd")].map(e => [e, e.getBoundingClientRect()]).filter(([, r]) => r.width);
  html.forEach(([e, r], i) => { for (let k = i + 1; k < html.length && k < i + 40; k++) if (e.closest("header") === html[k][0].closest("header") && meet(tight(r), tight(html[k][1]))) wrong.push(name(e) + " meets " + name(html[k][0])); });
  return [document.querySelectorAll("#main svg text").length, wrong.slice(0, 20)];
}"""

# Cells of numbers that are not aligned as numbers are.
NUMBERS = """() => [...document.querySelectorAll("#main td")].filter(e => e.cellIndex && /^[\\d.,]+$/.test(e.textContent)).filter(e => { const s = getComputedStyle(e); return s.textAlign !== "right" || !s.fontVariantNumeric.includes("tabular-nums"); }).map(e => e.textContent)"""

LONG = """() => {
  const long = "a_very_long_name_".repeat(12), walk = ops => ops.forEach(op => { op.results = op.results.map(r => r + long); op.args = op.args.map(a => a + long); op.type = op.type && op.type + long; walk(op.body || []); });
  data.graphs.forEach(g => walk(g.ops));
  (data.slots || []).forEach(s => s.lives.forEach(l => { l.value += long; }));
  (data.regions || []).forEach(r => { r.function += long; });
  (data.matmuls || []).forEach(m => { if (m.measured) { m.measured.m1 = 2; m.measured.m2 = 3; } });
  address = null;
  show();
}"""


def address(page):
    """The page's own address: page.url is what Playwright has heard, and it hears nothing while comes() sleeps."""
    return page.evaluate("location.href")


def key_of(page, title):
    """The number key of a tab."""
    return str(page.locator("#tabs button").all_inner_texts().index(title) + 1)


def opens(page):
    """Without an address the page shows the graph; an address leads to a view."""
    check("the page opens on the graph", page.locator("#tabs [aria-selected=true]").inner_text() == "Graph" and page.locator("svg.graph a").count() > 1)
    check("the graph is the first tab", key_of(page, "Graph") == "1")
    for old, title in {"choices": "Kernels", "time": "Profile", "memory": "Memory"}.items():
        page.goto(address(page).split("#")[0] + "#" + old)
        comes(f"#{old} leads to {title}", lambda: page.locator("#tabs [aria-selected=true]").inner_text() == title)


def tabs(page, shots):
    """Opens each tab by its number key. Prints the time: less than 0.2 s for a model of 100 layers."""
    buttons = page.locator("#tabs button")
    for i in range(buttons.count()):
        start = time.monotonic()
        page.keyboard.press(str(i + 1))
        name = buttons.nth(i).inner_text()
        comes(f"{name} is chosen by its key", lambda: buttons.nth(i).get_attribute("aria-selected") == "true")
        took = time.monotonic() - start
        comes(f"{name} shows something ({took:.2f} s)", lambda: len(page.locator("#main").inner_text()) > 20)
        if shots:
            page.screenshot(path=str(shots / f"view-{name}.png"))


def layout(page, where):
    """Each view at two widths: labels apart, numbers aligned, no sideways scrolling of the page."""
    addresses = page.evaluate("Object.keys(views).flatMap(v => v === 'graph' ? data.graphs.map(g => ref(v, g.name)) : ['#' + v])")
    for width in (1280, 800):
        page.set_viewport_size({"width": width, "height": 900})
        labels, good = 0, True
        for view in addresses:
            count, wrong = page.evaluate("view => { location.hash = view; address = null; show(); return (" + LABELS + ")(); }", view)
            labels += count
            wrong += [n + " is not aligned" for n in page.evaluate(NUMBERS)]
            if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
                wrong.append("the page scrolls sideways")
            if wrong:
                good = False
                check(f"{where}, {view} at {width} px", False, wrong)
        check(f"{where} at {width} px: {labels} labels", labels > 10 and good)


def passes(page):
    page.goto(address(page).split("#")[0] + "#ir")
    comes("there are passes", lambda: page.locator("#main [role=group] button").count() > 3)
    page.keyboard.press("[")
    comes("[ goes to the previous pass", lambda: address(page).endswith("#ir/select-kernels"), lambda: address(page))
    page.keyboard.press("]")
    comes("] goes to the next pass", lambda: address(page).endswith("#ir/plan-buffers"), lambda: address(page))
    page.goto(address(page).split("#")[0] + "#ir/fuse-regions")
    comes("an address leads to a pass", lambda: page.locator("[aria-pressed=true]").first.inner_text().endswith("fuse-regions"))
    comes("its changes are marked", lambda: page.locator(".diff .add").count() > 0 and page.locator(".diff .del").count() > 0)


def find(page):
    found = page.locator("#found")
    page.keyboard.press("/")
    page.keyboard.type("matmul")
    comes("search marks and counts", lambda: page.locator("mark").count() > 0 and "1 of" in found.inner_text(), found.inner_text)
    page.keyboard.press("Enter")
    comes("Enter goes to the next match", lambda: found.inner_text().startswith("2 of"), found.inner_text)
    page.keyboard.press("Escape")
    comes("Esc ends the search", lambda: page.locator("mark").count() == 0)


def links(page):
    page.keyboard.press("1")
    comes("the graph has boxes", lambda: page.locator("svg a").count() > 1)
    page.locator("svg a").nth(1).focus()
    page.keyboard.press("Enter")
    comes("a box leads to its source", lambda: "#source/r" in address(page) and "static void" in page.locator("pre").inner_text(), lambda: address(page))


def partition(page):
    """Of a page made with --devices: ranks, their communication, and the shards of a rank by its address."""
    if not page.locator("#tabs button", has_text="Partition").count():
        return
    main = page.locator("#main")
    page.goto(address(page).split("#")[0] + "#partition")
    comes("partition shows its ranks", lambda: page.locator("#main svg a").count() > 1 and page.locator("#main svg .edge").count() > 0)
    page.locator("#main svg a").nth(1).focus()
    page.keyboard.press("Enter")
    comes("a rank leads to its shards", lambda: address(page).endswith("#partition/1") and "Rank 1 of" in main.inner_text(), lambda: address(page))
    page.keyboard.press("[")
    comes("[ goes to the previous rank", lambda: address(page).endswith("#partition/0"), lambda: address(page))


def colors(page, theme):
    page.keyboard.press("1")
    contrasts(page, theme, ["#tabs [aria-selected=true]", "#tabs [aria-selected=false]", "#main p", ".facts dt", "svg.graph .op", "svg.graph .weight", "svg.graph .dim"])
    page.keyboard.press(key_of(page, "Weights"))
    contrasts(page, theme, ["th", "td.num", "td code"])
    page.keyboard.press(key_of(page, "Memory"))
    contrasts(page, theme, ["svg .dim", "svg g text"])


def uses(page, file, theme, args):
    page.goto(file.resolve().as_uri())
    opens(page)
    if args.layout:
        layout(page, f"{file.stem}, {theme}")
        return
    tabs(page, args.shots / theme if args.shots else None)
    passes(page)
    find(page)
    links(page)
    partition(page)
    colors(page, theme)
    layout(page, f"{file.stem}, {theme}")
    page.evaluate(LONG)
    layout(page, f"{file.stem} with long names, {theme}")
    page.keyboard.press("1")
    comes("long labels end in an ellipsis", lambda: page.locator("svg.graph text", has_text="…").count() > 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="+", type=pathlib.Path)
    parser.add_argument("--layout", action="store_true")
    parser.add_argument("--shots", type=pathlib.Path)
    parser.add_argument("--chromium", default=shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome"))
    args = parser.parse_args()
    if args.shots:
        args.shots.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as p:
        browser = p.chromium.launch(executable_path=args.chromium, args=["--no-sandbox"])
        for file in args.pages:
            for theme in ["light"] if args.layout else ["light", "dark"]:
                context = browser.new_context(color_scheme=theme, viewport={"width": 1280, "height": 900}, offline=True)
                page = context.new_page()
                page.set_default_timeout(1000 * PATIENCE)
                outside, wrong = watch(page, "file:")
                uses(page, file, theme, args)
                check(f"{file.stem}: no errors and no requests", not wrong and not outside, wrong + outside)
                context.close()
        browser.close()
    print(f"{len(failures)} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
