"""Opens the pages of the built documentation site in Chromium, or every Nth, in both themes. A page fails if it has no heading,
logs an error, fetches from elsewhere, lacks a picture, shows a fence that did not become a code block, or is wider than its window.
All SVG pictures are measured (site_pictures.py).

    site_pages.py FOLDER [N]"""

import functools
import http.server
import pathlib
import shutil
import sys
import threading

import site_pictures
from playwright.sync_api import sync_playwright

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def main() -> None:
    folder = pathlib.Path(sys.argv[1]).resolve()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    root = f"http://127.0.0.1:{server.server_address[1]}/"
    pages = sorted(str(p.relative_to(folder)) for p in folder.rglob("*.html") if p.name != "404.html")
    if len(pages) < 20:
        sys.exit(f"{folder}: {len(pages)} pages are no site")
    opened = pages[:: int(sys.argv[2]) if len(sys.argv) > 2 else 1]
    problems = []
    with sync_playwright() as p:
        browser = p.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for scheme in ("light", "dark"):
            context = browser.new_context(color_scheme=scheme, viewport={"width": 1280, "height": 800})
            for name in opened:
                page = context.new_page()
                page.on("console", lambda m, name=name: problems.append(f"{name}: {m.text}") if m.type == "error" else None)
                page.on("pageerror", lambda e, name=name: problems.append(f"{name}: {e}"))
                page.on("request", lambda r, name=name: None if r.url.startswith((root, "data:", "blob:")) else problems.append(f"{name} fetches {r.url}"))
                page.goto(root + name)
                if not page.locator("h1").count():
                    problems.append(f"{name}: no heading")
                page.evaluate("Promise.all([...document.images].map(i => i.decode().catch(() => 0)))")
                for source in page.evaluate("[...document.images].filter(i => !i.naturalWidth).map(i => i.src)"):
                    problems.append(f"{name}: picture {source} does not show")
                if "```" in page.locator("article").inner_text():
                    problems.append(f"{name}: a code block's fence is text")
                if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
                    problems.append(f"{name}: wider than its window")
                page.close()
            context.close()
        pictures, wrong = site_pictures.check(browser, folder)
        problems += wrong
        browser.close()
    for line in dict.fromkeys(problems):
        print(line)
    print(f"{len(opened)} of {len(pages)} pages in two themes, {pictures} pictures, {len(problems)} problems")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
