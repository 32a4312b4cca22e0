"""Asks the documentation site's search for every flag, key, field and metric of the reference pages."""

import html
import re

NAMES = """() => [...document.querySelectorAll("article tr[id]")].map(r => [r.id, r.querySelector("code").textContent])"""

# Starts the site's own worker with its own index, and answers queries with the locations of the first page's hits, best first.
SEARCH = """async queries => {
  const config = JSON.parse(document.getElementById("__config").textContent), base = new URL(config.base + "/", location);
  const index = await (await fetch(new URL("search/search_index.json", base))).json();
  const worker = new Worker(new URL(config.search, base));
  const ask = message => new Promise(done => { worker.onmessage = m => done(m.data); worker.postMessage(message); });
  await ask({type: 0, data: {...index, options: {suggest: true}}});
  const found = {};
  for (const q of queries) found[q] = ((await ask({type: 2, data: q})).data.items[0] || []).map(hit => hit.location);
  return found;
}"""


def check(page, root, folder):
    """Returns how many queries were asked, and what is wrong with the answers."""
    rows, problems = {}, []
    for path in sorted((folder / "reference").glob("*.html")):
        name = f"reference/{path.name}"
        page.goto(root + name)
        for row, code in page.evaluate(NAMES):
            for part in code.split(", "):
                rows.setdefault(part.split("=")[0], set()).add(f"{name}#{row}")
    flags = [name for name in rows if name.startswith("-")]
    others = [name for name in rows if re.fullmatch(r"\w\S*[_.\[]\S*", name)]
    if len(flags) < 100:
        return 0, [f"{len(flags)} flags in the reference pages: their rows have no names"]
    texts = {str(p.relative_to(folder)): html.unescape(re.sub(r"<[^>]*>", "", p.read_text(encoding="utf-8"))) for p in folder.rglob("*.html")}
    words = {flag.lstrip("-"): flag for flag in flags if flag.startswith("--")}
    found = page.evaluate(SEARCH, flags + others + list(words))
    for name in flags + others:  # first comes a row of its own
        if not found[name] or found[name][0] not in rows[name]:
            problems.append(f"search for {name} finds {found[name][:2]}, not one of {sorted(rows[name])[:2]}")
    for word, name in words.items():  # first comes a page that has the flag
        if not found[word] or not re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", texts[found[word][0].split("#")[0]]):
            problems.append(f"search for {word} finds {found[word][:1]}, a page without {name}")
    return len(found), problems + follow(page, "--memory", rows)


def follow(page, flag, rows):
    """Types a flag as a reader does, follows the first hit, and sees its row."""
    box = page.locator('[data-md-component="search-query"]')
    box.press_sequentially(flag)
    page.locator(f'.md-search-result__link[href*="#"]:has-text("{flag}")').first.wait_for()
    box.press("Enter")
    page.wait_for_url(re.compile(r"#.*memory$"))
    there = "/".join(page.url.split("/")[3:])
    seen = page.evaluate("() => { const r = document.querySelector(':target').getBoundingClientRect(); return r.top >= 0 && r.bottom <= innerHeight; }")
    return [] if there in rows[flag] and seen else [f"{flag}, typed and entered, leads to {there}, seen: {seen}"]
