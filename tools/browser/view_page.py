"""Uses the page of iflowc view in a real Chromium: every tab, the keyboard, search, addresses, both colours.

    pip install -r tools/browser/requirements.txt
    iflowc view SPEC -o page.html
    python tools/browser/view_page.py page.html [--shots FOLDER] [--chromium /usr/bin/chromium]
"""

import argparse
import pathlib
import shutil
import sys
import time

from playwright.sync_api import sync_playwright

failures = []


def check(name, good, found=""):
    print(("ok   " if good else "FAIL ") + name + (f": {found}" if not good else ""))
    if not good:
        failures.append(name)


def tabs(page, shots):
    """Each tab by its number key; each shows something, within a fifth of a second."""
    for i in range(page.locator("#tabs button").count()):
        start = time.monotonic()
        page.keyboard.press(str(i + 1))
        page.wait_for_function("i => document.querySelectorAll('#tabs button')[i].getAttribute('aria-selected') === 'true'", arg=i)
        took = time.monotonic() - start
        name = page.locator("#tabs button").nth(i).inner_text()
        check(f"{name} shows something", len(page.locator("#main").inner_text()) > 20)
        check(f"{name} comes at once", took < 1, f"{took:.2f} s")
        if shots:
            page.screenshot(path=str(shots / f"view-{name}.png"))


def passes(page):
    page.keyboard.press("1")
    names = page.locator("#main [role=group] button")
    page.keyboard.press("[")
    page.wait_for_timeout(50)
    before = page.evaluate("location.hash")
    page.keyboard.press("]")
    page.wait_for_timeout(50)
    check("[ and ] go from pass to pass", before != page.evaluate("location.hash") and names.count() > 3, before)
    page.goto(page.url.split("#")[0] + "#ir/fuse-regions")
    page.wait_for_timeout(50)
    check("an address leads to a pass", page.locator("[aria-pressed=true]").first.inner_text().endswith("fuse-regions"))
    check("its changes are marked", page.locator(".diff .add").count() > 0 and page.locator(".diff .del").count() > 0)


def find(page):
    page.keyboard.press("/")
    page.keyboard.type("matmul")
    check("search marks and counts", page.locator("mark").count() > 0 and "1 of" in page.locator("#found").inner_text(), page.locator("#found").inner_text())
    page.keyboard.press("Enter")
    check("Enter goes to the next", page.locator("#found").inner_text().startswith("2 of"), page.locator("#found").inner_text())
    page.keyboard.press("Escape")
    check("Escape ends it", page.locator("mark").count() == 0)


def links(page):
    page.keyboard.press("2")
    page.locator("svg a").nth(1).focus()
    page.keyboard.press("Enter")
    page.wait_for_timeout(50)
    check("a box leads to its source", "#source/r" in page.url and "static void" in page.locator("pre").inner_text(), page.url)


def partition(page):
    """Of a page made with --devices: ranks, what they tell one another, and each one's shards by its address."""
    if not page.locator("#tabs button", has_text="Partition").count():
        return
    page.goto(page.url.split("#")[0] + "#partition")
    page.wait_for_timeout(50)
    ranks = page.locator("#main svg a").count()
    check("partition shows its ranks", ranks > 1 and page.locator("#main svg .edge").count() > 0, ranks)
    page.locator("#main svg a").nth(1).focus()
    page.keyboard.press("Enter")
    page.wait_for_timeout(50)
    check("a rank leads to its shards", page.url.endswith("#partition/1") and "Rank 1 of" in page.locator("#main").inner_text(), page.url)
    page.keyboard.press("[")
    page.wait_for_timeout(50)
    check("[ goes to the rank before", page.url.endswith("#partition/0"), page.url)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("page")
    parser.add_argument("--shots", type=pathlib.Path)
    parser.add_argument("--chromium", default=shutil.which("chromium") or shutil.which("chromium-browser"))
    args = parser.parse_args()
    if args.shots:
        args.shots.mkdir(parents=True, exist_ok=True)
    errors = []
    with sync_playwright() as p:
        browser = p.chromium.launch(executable_path=args.chromium, args=["--no-sandbox"])
        for colour in ["light", "dark"]:
            context = browser.new_context(color_scheme=colour, viewport={"width": 1400, "height": 900}, offline=True)
            page = context.new_page()
            page.on("pageerror", lambda e: errors.append(str(e)))
            page.on("console", lambda m: errors.append(m.text) if m.type == "error" else None)
            page.goto(pathlib.Path(args.page).resolve().as_uri())
            tabs(page, args.shots / colour if args.shots else None)
            passes(page)
            find(page)
            links(page)
            partition(page)
            context.close()
        browser.close()
    check("nothing went wrong in the page", not errors, "; ".join(errors))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
