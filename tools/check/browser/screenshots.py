"""Makes or checks the screenshots of script/pictures: a conversation with a running server, and the report of iflowc view, in both
themes. Colors are reduced to a palette, so that each file stays below 150 KB.

    python tools/check/browser/screenshots.py URL page.html FOLDER [--check]

A picture carries a list of what it shows: the page's elements with their texts and styles. --check compares the lists in FOLDER with
the pages' and writes nothing. Lists have no sizes, which differ with fonts, no numbers, and of a model's answers only the styles."""

import argparse
import io
import pathlib
import shutil
import sys

from PIL import Image
from PIL.PngImagePlugin import PngInfo
from playwright.sync_api import expect, sync_playwright

MESSAGES = ["Write a function in Python that checks whether a number is even.", "Name three benefits of reading books."]
SIZE = {"width": 1200, "height": 800}
LIMIT = 150_000  # bytes
KEY = "Shows"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

SHOWS = """() => {
  const styles = ["color", "backgroundColor", "fill", "stroke", "fontSize", "fontWeight", "padding", "borderRadius", "borderTopWidth"];
  const list = [...document.body.querySelectorAll("*")].filter(e => e.checkVisibility({opacityProperty: true, visibilityProperty: true})).map(e => {
    const text = [...e.childNodes].filter(n => n.nodeType === 3).map(n => n.data).join(" ") + (e.placeholder || "");
    const says = e.closest(".assistant .body") ? "" : text.replace(/\\s+/g, " ").replace(/\\d+(\\.\\d+)?/g, "N").trim();
    return [e.tagName.toLowerCase(), e.getAttribute("class") || "", says, ...styles.map(s => getComputedStyle(e)[s])].join("\\t");
  });
  return [...new Set(list)].sort().join("\\n");
}"""


def save(page, path):
    """Saves what the window shows, with a palette as large as the limit allows."""
    image = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    shows = PngInfo()
    shows.add_itxt(KEY, page.evaluate(SHOWS), zip=True)
    for colors in (256, 128, 64):
        out = io.BytesIO()
        image.quantize(colors, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(out, "png", optimize=True, pnginfo=shows)
        if out.tell() < LIMIT:
            break
    else:
        sys.exit(f"{path}: {out.tell()} bytes, limit {LIMIT}")
    path.write_bytes(out.getvalue())
    print(f"{path}: {out.tell() / 1000:.0f} KB, {colors} colors")
    return True


def same(page, path):
    """Reports whether a picture shows the page, and prints the difference."""
    before = set(Image.open(path).text.get(KEY, "").split("\n"))
    now = set(page.evaluate(SHOWS).split("\n"))
    lines = [f"  {sign} {' '.join(line.split())}" for sign, some in (("-", before - now), ("+", now - before)) for line in sorted(some)]
    if lines:
        print(f"{path} is stale: run script/pictures and commit. Elements, with texts and styles:", *lines[:12], sep="\n")
    return not lines


def chat(page, url, messages):
    """Has a conversation with greedy decoding."""
    page.add_init_script("localStorage.setItem('iflowc.temperature', '0')")
    page.goto(url)
    expect(page.locator("#examples button").first).to_be_visible()
    for message in messages:
        page.fill("#text", message)
        page.keyboard.press("Enter")
        expect(page.locator("#stop")).to_be_visible()
        expect(page.locator("#send")).to_be_visible(timeout=120_000)
    page.evaluate("document.activeElement.blur()")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("view", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    good = True
    with sync_playwright() as p:
        browser = p.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport=SIZE)
        for name in ("chat", "view"):
            if name == "chat":
                chat(page, args.url, MESSAGES)
            else:
                page.goto(args.view.resolve().as_uri())
                expect(page.locator("svg.graph")).to_be_visible()
            for theme in ("light", "dark"):
                page.emulate_media(color_scheme=theme, reduced_motion="reduce")
                good &= (same if args.check else save)(page, args.folder / f"{name}-{theme}.png")
        browser.close()
    sys.exit(0 if good else 1)


main()
