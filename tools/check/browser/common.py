"""What the tests of both pages share: checks that are counted, patience, contrast of text."""

import time

failures = []
PATIENCE = 120  # seconds to wait for what normally happens at once: the machine may be busy


def check(name, good, found=""):
    print(("ok   " if good else "FAIL ") + name + (f": {found}" if not good else ""))
    if not good:
        failures.append(name)


def comes(name, condition, found=lambda: ""):
    """Waits until the condition holds, and checks that it does."""
    end = time.monotonic() + PATIENCE
    while not (good := condition()) and time.monotonic() < end:
        time.sleep(0.02)
    check(name, good, "" if good else found())


# The contrast of a text with what is behind it (WCAG 2.2, 1.4.3). SVG text is on the box of its group.
CONTRAST = """e => {
  const rgb = c => c.match(/[\\d.]+/g).slice(0, 3).map(x => x / 255);
  const light = c => { const v = rgb(c).map(x => x <= .04045 ? x / 12.92 : ((x + .055) / 1.055) ** 2.4); return .2126 * v[0] + .7152 * v[1] + .0722 * v[2]; };
  const svg = e instanceof SVGElement, box = svg && e.closest("a, g")?.querySelector("rect.box");
  let b = svg ? e.closest("svg").parentElement : e;
  while (b && getComputedStyle(b).backgroundColor === "rgba(0, 0, 0, 0)") b = b.parentElement;
  const back = box ? getComputedStyle(box).fill : b ? getComputedStyle(b).backgroundColor : "rgb(255, 255, 255)";
  const [x, y] = [svg ? getComputedStyle(e).fill : getComputedStyle(e).color, back].map(light).sort((p, q) => q - p);
  return (x + .05) / (y + .05); }"""


def contrasts(page, where, selectors):
    """Checks the first visible element of each selector."""
    for selector in selectors:
        e = page.locator(f"{selector} >> visible=true").first
        ratio = e.evaluate(CONTRAST) if e.count() else 0
        check(f"{where}: contrast of {selector} is 4.5 or more", ratio >= 4.5, f"{ratio:.2f}")


def watch(page, own):
    """Returns two lists that fill: requests to other addresses than own, and errors of the page."""
    outside, wrong = [], []
    page.on("request", lambda r: outside.append(r.url) if not r.url.startswith((own, "data:")) else None)
    page.on("console", lambda m: wrong.append(m.text) if m.type == "error" else None)
    page.on("pageerror", lambda e: wrong.append(str(e)))
    return outside, wrong


def no_overflow(page, where):
    """Checks that the page does not scroll sideways."""
    wide, view = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    check(f"{where}: no horizontal scroll", wide <= view, f"{wide} px in {view} px")
