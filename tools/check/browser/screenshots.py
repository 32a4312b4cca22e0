"""Makes the screenshots of script/screenshots: a conversation with a running server, and the report of iflowc view, in both
themes. Colors are reduced to a palette, so that each file stays below 150 KB.

    python tools/check/browser/screenshots.py URL page.html FOLDER [--chromium /usr/bin/chromium]
"""

import argparse
import io
import pathlib
import shutil
import sys

from PIL import Image
from playwright.sync_api import expect, sync_playwright

MESSAGES = ["Write a function in Python that checks whether a number is even.", "Name three benefits of reading books."]
SIZE = {"width": 1200, "height": 800}
LIMIT = 150_000  # bytes


def save(page, path):
    """Saves what the window shows, with a palette as large as the limit allows."""
    image = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    for colors in (256, 128, 64):
        out = io.BytesIO()
        image.quantize(colors, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE).save(out, "png", optimize=True)
        if out.tell() < LIMIT:
            break
    else:
        sys.exit(f"{path}: {out.tell()} bytes, limit {LIMIT}")
    path.write_bytes(out.getvalue())
    print(f"{path}: {out.tell() / 1000:.0f} KB, {colors} colors")


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
    parser.add_argument("--chromium", default=shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome"))
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as p:
        browser = p.chromium.launch(executable_path=args.chromium, args=["--no-sandbox"])
        for theme in ("light", "dark"):
            page = browser.new_context(viewport=SIZE, color_scheme=theme).new_page()
            chat(page, args.url, MESSAGES)
            save(page, args.folder / f"chat-{theme}.png")
            page.goto(args.view.resolve().as_uri())
            expect(page.locator("svg.graph")).to_be_visible()
            save(page, args.folder / f"view-{theme}.png")
        browser.close()


main()
