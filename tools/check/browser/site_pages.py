"""Checks the built documentation site. Opens its pages, or every Nth, in Chromium, on a desk and on a phone. A page fails if it has no
heading, logs an error, fetches from elsewhere, lacks a picture, or is wider than its window. All pages are read (site_text.py), all
pictures measured (site_pictures.py), and all flags searched for (site_search.py).

    site_pages.py FOLDER [N]"""

import functools
import http.server
import pathlib
import shutil
import sys
import threading

import site_pictures
import site_search
import site_text
from playwright.sync_api import sync_playwright

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
WINDOWS = {"a desk": {"color_scheme": "light", "viewport": {"width": 1280, "height": 800}},
           "a phone": {"color_scheme": "dark", "viewport": {"width": 360, "height": 740}}}


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def look(page, name, root):
    """Opens a page and returns what is wrong with it."""
    problems = []
    page.on("console", lambda m: problems.append(m.text) if m.type == "error" else None)
    page.on("pageerror", lambda e: problems.append(str(e)))
    page.on("request", lambda r: None if r.url.startswith((root, "data:", "blob:")) else problems.append(f"fetches {r.url}"))
    page.goto(root + name)
    if not page.locator("h1").count():
        problems.append("no heading")
    page.evaluate("Promise.all([...document.images].map(i => i.decode().catch(() => 0)))")
    for source in page.evaluate("[...document.images].filter(i => !i.naturalWidth).map(i => i.src)"):
        problems.append(f"picture {source} does not show")
    wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
    if wide > 0:
        problems.append(f"{wide} pixels wider than its window")
    page.close()
    return problems


def main() -> None:
    folder = pathlib.Path(sys.argv[1]).resolve()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    root = f"http://127.0.0.1:{server.server_address[1]}/"
    pages = sorted(str(p.relative_to(folder)) for p in folder.rglob("*.html") if p.name != "404.html")
    if len(pages) < 20:
        sys.exit(f"{folder}: {len(pages)} pages are no site")
    opened = pages[:: int(sys.argv[2]) if len(sys.argv) > 2 else 1]
    problems = site_text.check(folder)
    with sync_playwright() as p:
        browser = p.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for where, window in WINDOWS.items():
            context = browser.new_context(**window)
            for name in opened:
                problems += [f"{name} on {where}: {line}" for line in look(context.new_page(), name, root)]
            context.close()
        pictures, wrong = site_pictures.check(browser, folder)
        problems += wrong
        queries, wrong = site_search.check(browser.new_page(), root, folder)
        problems += wrong
        browser.close()
    for line in problems:
        print(line)
    print(f"{len(opened)} of {len(pages)} pages in two windows, {pictures} pictures, {queries} searches, {len(problems)} problems")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
