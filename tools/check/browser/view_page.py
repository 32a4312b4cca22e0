"""Uses the page of iflowc view in a real Chromium: every tab, the keyboard, search, addresses, both colors.

    pip install -r tools/check/browser/requirements.txt
    iflowc view SPEC -o page.html
    python tools/check/browser/view_page.py page.html [--shots FOLDER] [--chromium /usr/bin/chromium]
"""

import argparse
import pathlib
import shutil
import sys
import time

from playwright.sync_api import sync_playwright

failures = []
PATIENCE = 120  # seconds until what should come at once is given up: the machine may do something else


def check(name, good, found=""):
    print(("ok   " if good else "FAIL ") + name + (f": {found}" if not good else ""))
    if not good:
        failures.append(name)


def comes(name, condition, found=lambda: ""):
    """Checks what a key or a click brings about, as soon as it is there."""
    end = time.monotonic() + PATIENCE
    while not (good := condition()) and time.monotonic() < end:
        time.sleep(0.02)
    check(name, good, "" if good else found())


def address(page):
    """Where the page is, by its own word: page.url is what Playwright has heard, and it hears nothing while comes() sleeps."""
    return page.evaluate("location.href")


def tabs(page, shots):
    """Each tab by its number key; each shows something. Prints how long it took: on a model of 100 layers less than 0.2 s."""
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


def passes(page):
    page.keyboard.press("1")
    comes("there are passes", lambda: page.locator("#main [role=group] button").count() > 3)
    page.keyboard.press("[")
    comes("[ goes to the pass before", lambda: address(page).endswith("#ir/select-kernels"), lambda: address(page))
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
    comes("Enter goes to the next", lambda: found.inner_text().startswith("2 of"), found.inner_text)
    page.keyboard.press("Escape")
    comes("Escape ends it", lambda: page.locator("mark").count() == 0)


def links(page):
    page.keyboard.press("2")
    comes("the graph has boxes", lambda: page.locator("svg a").count() > 1)
    page.locator("svg a").nth(1).focus()
    page.keyboard.press("Enter")
    comes("a box leads to its source", lambda: "#source/r" in address(page) and "static void" in page.locator("pre").inner_text(), lambda: address(page))


def partition(page):
    """Of a page made with --devices: ranks, what they tell one another, and each one's shards by its address."""
    if not page.locator("#tabs button", has_text="Partition").count():
        return
    main = page.locator("#main")
    page.goto(address(page).split("#")[0] + "#partition")
    comes("partition shows its ranks", lambda: page.locator("#main svg a").count() > 1 and page.locator("#main svg .edge").count() > 0)
    page.locator("#main svg a").nth(1).focus()
    page.keyboard.press("Enter")
    comes("a rank leads to its shards", lambda: address(page).endswith("#partition/1") and "Rank 1 of" in main.inner_text(), lambda: address(page))
    page.keyboard.press("[")
    comes("[ goes to the rank before", lambda: address(page).endswith("#partition/0"), lambda: address(page))


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
        for color in ["light", "dark"]:
            context = browser.new_context(color_scheme=color, viewport={"width": 1400, "height": 900}, offline=True)
            page = context.new_page()
            page.set_default_timeout(1000 * PATIENCE)
            page.on("pageerror", lambda e: errors.append(str(e)))
            page.on("console", lambda m: errors.append(m.text) if m.type == "error" else None)
            page.goto(pathlib.Path(args.page).resolve().as_uri())
            tabs(page, args.shots / color if args.shots else None)
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
