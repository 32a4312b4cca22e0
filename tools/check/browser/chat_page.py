"""Uses the chat page of a running service in a real Chromium, as people do: with the keyboard, in both colors, and with
nothing but the service to talk to. Exits 1 when anything is not as it should be.

    pip install -r tools/check/browser/requirements.txt      # the browser is the system's chromium
    BIN serve --port 8080 &
    python tools/check/browser/chat_page.py http://127.0.0.1:8080 [--shots FOLDER] [--chromium /usr/bin/chromium]
"""

import argparse
import pathlib
import re
import shutil
import sys

from playwright.sync_api import expect, sync_playwright

failures = []


def check(name, good, found=""):
    print(("ok   " if good else "FAIL ") + name + (f": {found}" if not good else ""))
    if not good:
        failures.append(name)


def shot(page, folder, name):
    if folder:
        page.screenshot(path=str(folder / (name + ".png")))


def contrast(page, selector):
    """The contrast of a text with its background (WCAG 2.2, 1.4.3)."""
    script = """s => {
      const luminance = c => { const v = c.match(/[\\d.]+/g).slice(0, 3).map(x => x / 255).map(x => x <= .04045 ? x / 12.92 : ((x + .055) / 1.055) ** 2.4); return .2126 * v[0] + .7152 * v[1] + .0722 * v[2]; };
      const e = document.querySelector(s);
      let b = e; while (b && getComputedStyle(b).backgroundColor === "rgba(0, 0, 0, 0)") b = b.parentElement;
      const [x, y] = [getComputedStyle(e).color, getComputedStyle(b).backgroundColor].map(luminance).sort((p, q) => q - p);
      return (x + .05) / (y + .05); }"""
    return page.evaluate(script, selector)


def talk(page, folder):
    """One question and its answer, sent by the keyboard."""
    page.keyboard.type("Write one short sentence about the sea.")
    check("the focus is in the text field", page.evaluate("document.activeElement.id") == "text")
    page.keyboard.press("Shift+Enter")
    page.keyboard.press("Enter")
    answer = page.locator(".assistant div").first
    expect(answer).not_to_be_empty(timeout=60_000)
    expect(page.locator("#send")).to_be_enabled(timeout=120_000)
    check("the answer has text", len(answer.inner_text().strip()) > 0)
    facts = page.locator(".assistant .facts").first.inner_text()
    check("the token speed is shown", re.search(r"\d+ tokens", facts) is not None, facts)
    check("screen readers are told", "answer" in page.locator("#status").inner_text())
    shot(page, folder, "answer")


# The next answer has no end: its events are passed on, but neither [DONE] nor the end of the stream. A fast model would
# otherwise have said everything before a key can be pressed.
ENDLESS = """() => {
  const real = window.fetch;
  window.fetch = async (url, options) => {
    window.fetch = real;
    const reply = await real(url, options), reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
    const body = new ReadableStream({async start(out) {
      options.signal.addEventListener("abort", () => out.error(options.signal.reason));
      let rest = "";
      for (;;) {
        const {value, done} = await reader.read();
        if (done) return;
        const events = (rest + value).split("\\n\\n");
        rest = events.pop();
        for (const e of events) if (e !== "data: [DONE]") out.enqueue(new TextEncoder().encode(e + "\\n\\n"));
      }
    }});
    return new Response(body, {status: reply.status});
  };
}"""


def stop(page):
    """An answer that does not end, stopped by Escape."""
    page.evaluate(ENDLESS)
    page.fill("#text", "Count from one to one thousand in words, and then write a very long story.")
    page.keyboard.press("Enter")
    expect(page.locator(".assistant div").nth(2)).not_to_be_empty(timeout=60_000)
    check("an answer can be stopped while it comes", page.locator("#stop").is_enabled() and page.locator("#send").is_disabled())
    page.keyboard.press("Escape")
    expect(page.locator("#send")).to_be_enabled(timeout=60_000)
    facts = page.locator(".assistant .facts").last.inner_text()
    check("Escape stops the answer", "stopped" in facts, facts)


def settings(page, folder):
    page.keyboard.press("Alt+s")
    check("Alt+S opens the settings", page.evaluate("document.getElementById('settings').open"))
    page.fill("#max_tokens", "5")
    page.fill("#temperature", "0")
    page.select_option("#theme", "dark")
    shot(page, folder, "settings")
    page.keyboard.press("Escape")
    page.keyboard.press("Alt+n")
    check("Alt+N begins anew", page.locator(".turn").count() == 0)
    page.fill("#text", "Hello <b>there</b>")
    page.keyboard.press("Enter")
    expect(page.locator("#send")).to_be_enabled(timeout=60_000)
    check("text stays text", "<b>" in page.locator(".user div").first.inner_text())
    facts = page.locator(".assistant .facts").last.inner_text()
    check("the most tokens are kept", re.match(r"[1-5] tokens", facts) is not None, facts)
    for theme in ("light", "dark"):
        page.evaluate("t => document.documentElement.dataset.theme = t", theme)
        for selector in (".user div", ".assistant div", ".facts", "#send", "#open"):
            ratio = contrast(page, selector)
            check(f"contrast of {selector} in {theme}", ratio >= 4.5, f"{ratio:.2f}")
        shot(page, folder, theme)
    page.reload()
    check("settings last", page.input_value("#max_tokens") == "5")


def names(page):
    """Every control has a name for those who do not see it."""
    for e in page.locator("button, input, select, textarea").all():
        name = e.evaluate("e => (e.labels?.[0]?.textContent || e.textContent || e.ariaLabel || '').trim()")
        check("a name for #" + (e.get_attribute("id") or "close"), name != "")


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("url")
    args.add_argument("--shots", type=pathlib.Path)
    args.add_argument("--chromium", default=shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome"))
    given = args.parse_args()
    if given.shots:
        given.shots.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as p:
        browser = p.chromium.launch(executable_path=given.chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 900, "height": 700})
        outside, wrong = [], []
        page.on("request", lambda r: outside.append(r.url) if not r.url.startswith((given.url, "data:")) else None)
        page.on("console", lambda m: wrong.append(m.text) if m.type == "error" else None)
        page.on("pageerror", lambda e: wrong.append(str(e)))
        page.goto(given.url)
        expect(page.locator("#name")).not_to_have_text("Chat")
        names(page)
        page.evaluate("document.getElementById('temperature').value = 0")  # the same answers every time, and none of them empty
        talk(page, given.shots)
        page.fill("#text", "And one about hills.")
        page.keyboard.press("Enter")
        expect(page.locator("#send")).to_be_enabled(timeout=120_000)
        stop(page)
        settings(page, given.shots)
        page.set_viewport_size({"width": 360, "height": 640})
        check("nothing is wider than a phone", page.evaluate("document.documentElement.scrollWidth <= innerWidth"))
        shot(page, given.shots, "phone")
        check("nothing but the service is asked", not outside, outside)
        check("no errors in the console", not wrong, wrong)
        browser.close()
    print(f"{len(failures)} failed")
    sys.exit(1 if failures else 0)


main()
