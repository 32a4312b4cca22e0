"""Reads the pages of the built documentation site for Markdown and HTML that show as text."""

import html.parser
import re

VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}

# What a reader sees only if a page was not rendered as meant: in text, and in code too.
TEXT = {r"```": "a code block's fence", r"\]\(": "a link", r"\*\*": "bold text", r"</?[a-z]+[ >/]": "HTML", r"^#+ ": "a heading", r"^\|.*\|$": "a row of a table"}
CODE = {r"\\\|": r"the backslash of \|"}


class Page(html.parser.HTMLParser):
    """Collects what is wrong with a page: its article's text outside code, code outside blocks, pictures and anchors."""

    def __init__(self):
        super().__init__()
        self.open, self.ids, self.wrong = [], set(), []

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        if "id" in values and values["id"] in self.ids:
            self.wrong.append(f"two elements are called {values['id']}")
        self.ids.add(values.get("id"))
        if tag == "img" and "article" in self.open and not values.get("alt"):
            self.wrong.append(f"picture {values.get('src')} has no alt text")
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        while tag in self.open and self.open.pop() != tag:
            pass

    def handle_data(self, data):
        if "article" not in self.open or {"pre", "script", "style"} & set(self.open):
            return
        for pattern, what in (CODE if "code" in self.open else CODE | TEXT).items():
            if re.search(pattern, data, re.M):
                self.wrong.append(f"{what} shows as text: {data.strip()[:80]}")


def check(folder):
    """Returns what is wrong with all pages."""
    problems = []
    for path in sorted(folder.rglob("*.html")):
        page = Page()
        page.feed(path.read_text(encoding="utf-8"))
        problems += [f"{path.relative_to(folder)}: {line}" for line in page.wrong]
    return problems
