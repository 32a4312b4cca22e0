"""Hooks of the documentation site: what MkDocs renders otherwise than GitHub. Links from docs/ to files of the repository outside
docs/ become links to the repository's page; one to a file that does not exist is a warning, which --strict turns into a failure. A
code block's line "```sh STAGE" names a stage of .ci/run; Python-Markdown takes only the language. It keeps the backslash of `a\\|b`
in a table, which GitHub needs and does not show."""

import logging
import pathlib
import posixpath
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^(\s*```\w+) .*")
LINK = re.compile(r"(\]\()([^)\s#:]+)(#[^)\s]*)?(\))")
CELL = re.compile(r"<td.*?</td>", re.S)
log = logging.getLogger("mkdocs.hooks.repository_links")


def on_page_markdown(markdown, page, config, **_):
    here = posixpath.join("docs", posixpath.dirname(page.file.src_uri))

    def replace(match):
        target = posixpath.normpath(posixpath.join(here, match[2]))
        if target.startswith("docs/") and (ROOT / target).is_file():
            return match[0]
        if not (ROOT / target).exists():
            log.warning("%s links to %s, which does not exist", page.file.src_uri, match[2])
            return match[0]
        kind = "tree" if (ROOT / target).is_dir() else "blob"
        return f"{match[1]}{config.extra['repository']}/{kind}/main/{target}{match[3] or ''}{match[4]}"

    lines, fenced = [], False
    for line in markdown.split("\n"):
        fenced ^= line.lstrip().startswith("```")
        lines.append(FENCE.sub(r"\1", line) if fenced else LINK.sub(replace, line))
    return "\n".join(lines)


def on_page_content(content, **_):
    return CELL.sub(lambda cell: cell[0].replace(r"\|", "|"), content)
