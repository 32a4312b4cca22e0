"""Hooks of the documentation site's search. Each row of a table below reference/ that begins with code, such as a flag, a key or a
metric, gets an anchor and an entry of its own in the index. search.js finds it by its name."""

import html
import json
import pathlib
import re

ROW = re.compile(r'<h[2-6] id="(?P<id>[^"]*)">(?P<heading>.*?)<a |<tr>\s*<td><code>(?P<code>.*?)</code>(?P<rest>.*?)</tr>', re.S)
TAG = re.compile(r"<[^>]*>")
NAME = re.compile(r"(--?[A-Za-z][\w-]*=?)")  # of a flag, which no line of a narrow table cuts
FLAG = re.compile(r"(?<![\w-])--?[A-Za-z][\w-]*")

BOOSTS = {"decisions/": 0.1, "benchmarks/": 0.3}  # of pages that use a guide's words

entries = []


def on_pre_build(**_):
    entries.clear()


def on_page_content(content, page, **_):
    if not page.file.src_uri.startswith("reference/"):
        return content
    section, heading = "", page.title

    def anchor(match):
        nonlocal section, heading
        if match["code"] is None:
            section, heading = match["id"], TAG.sub("", match["heading"])
            return match[0]
        names = [html.unescape(part.split("=")[0]) for part in match["code"].split(", ")]
        row = ".".join(filter(None, (section, re.sub(r"\W+", "-", " ".join(names)).strip("-"))))
        entries.append({"location": f"{page.url}#{row}", "title": f"{html.escape(', '.join(names), quote=False)} ({heading})",
                        "text": f"<code>{match['code']}</code>{match['rest']}", "rows": words("row_", names),
                        "mentions": words("in_row_", filter(FLAG.fullmatch, names)), "boost": 0.1})
        whole = NAME.sub(r'<span style="white-space: nowrap">\1</span><wbr>', match["code"]).replace("|", "|<wbr>")
        return f'<tr id="{row}" data-search-exclude>\n<td><code>{whole}</code>{match["rest"]}</tr>'

    return ROW.sub(anchor, content)


def on_post_build(config, **_):
    site = pathlib.Path(config.site_dir)
    path = site / "search/search_index.json"
    index = json.loads(path.read_text(encoding="utf-8"))
    known = {word for entry in entries for word in entry["mentions"].split()}
    for doc in index["docs"]:
        mentioned = words("in_row_", FLAG.findall(html.unescape(TAG.sub(" ", doc["text"]))))
        doc["mentions"] = " ".join(word for word in mentioned.split() if word in known)
        doc["boost"] = next((boost for start, boost in BOOSTS.items() if doc["location"].startswith(start)), 1)
    index["docs"] += entries
    index["config"]["fields"] |= {"rows": {"boost": 1e7}, "mentions": {"boost": 1e5}}
    path.write_text(json.dumps(index, separators=(",", ":")), encoding="utf-8")
    before = pathlib.Path(__file__).with_suffix(".js").read_text(encoding="utf-8")
    for worker in site.glob("assets/javascripts/workers/search.*.min.js"):
        worker.write_text(before + worker.read_text(encoding="utf-8"), encoding="utf-8")


def words(prefix, names):
    """The names as words for the search, which search.js makes of a query's names too."""
    return " ".join(sorted({prefix + re.sub(r"\W", "_", name.lower()) for name in names}))
