"""Uses the chat page of a running server in a real Chromium: example prompts, Markdown, code and formulas of hostile text,
copying, stopping, files, what a reload keeps, faults, settings, phones, both themes, and requests to nothing but the server.
Exits 1 if a check fails.

    pip install -r tools/check/browser/requirements.txt      # the browser is the system's chromium
    BIN serve --port 8080 &
    python tools/check/browser/chat_page.py http://127.0.0.1:8080 [--plain] [--shots FOLDER] [--chromium /usr/bin/chromium]

--plain is for a model without a chat template: it checks only what differs there.
"""

import argparse
import json
import pathlib
import re
import shutil
import sys
import time

from common import check, comes, contrasts, failures, no_overflow, watch
from playwright.sync_api import expect, sync_playwright

HOSTILE = """# Heading <script>window.pwned = 1</script>

Some **bold**, *italic*, `code <b>` and ~~old~~ text. <img src="http://evil.example/a.png" onerror="window.pwned = 2">
![pixel](http://evil.example/b.png) [run](javascript:window.pwned=3) [data](data:text/html,<script>pwned=4</script>)
[tab](java\tscript:window.pwned=5) [entity](javascript&colon;pwned=6) <svg onload="window.pwned=7"></svg> [good](https://example.com/a_(b))

1. first
   - nested
2. second

> quoted
> text

| name | count |
|:-----|------:|
| `a`  | 1 |
| <iframe src="//evil.example"></iframe> | 22 |

```python
print("<script>window.pwned = 8</script>")
""" + "x = 1  # " + "wide " * 60 + "\n```\n\n" + "w" * 300 + "\n"

RICH = r"""Code and formulas:

```python
# a comment
def f(x: int) -> str:
    return "<b>" + str(x + 1)
```

```nolanguage
def g(): pass
```

Inline $e^{i\pi}+1=0$ and \(\frac{a}{b}\). It costs $5 and $6, or \$7. Wrong: $\frac{$.

$$\int_0^\infty e^{-x^2}\,dx = \frac{\sqrt{\pi}}{2}$$

\[
\begin{aligned}
a &= b + c \\
- d &= \begin{pmatrix} 1 & 2 \\ 3 & 4 \end{pmatrix}
\end{aligned}
\]

Hostile: $\href{javascript:pwned=1}{x}$ $\label{key}y$ $\class{main}{z}$ $\raisebox{-900em}{over}$ $\def\a{\a\a}\a$ \(\includegraphics{http://evil.example/a.png}\)

```python
print("not closed")
"""

# Answers the page's next request with events of these pieces; the last one ends the stream only if it is to end. A signal
# that aborts ends it as the network does.
ANSWER = """([pieces, ends]) => {
  const real = window.fetch;
  window.fetch = async (url, options) => {
    window.fetch = real;
    const body = new ReadableStream({async start(out) {
      options.signal.addEventListener("abort", () => out.error(options.signal.reason));
      for (const content of pieces) {
        out.enqueue(new TextEncoder().encode("data: " + JSON.stringify({choices: [{delta: {content}}]}) + "\\n\\n"));
        await new Promise(done => setTimeout(done, 4));
      }
      if (ends) out.close();
    }});
    return new Response(body);
  };
}"""


def shot(page, folder, name):
    if folder:
        page.screenshot(path=str(folder / (name + ".png")))


def done(page):
    expect(page.locator("#send")).to_be_visible(timeout=120_000)


def scripted(page, text, size=7, ends=True):
    """Sends a message that text answers, in pieces."""
    page.evaluate(ANSWER, [[text[i : i + size] for i in range(0, len(text), size)], ends])
    page.fill("#text", "Go on.")
    page.keyboard.press("Enter")


def welcome(page, sent, folder):
    """The empty page: its examples are sent by a click, with the default token limit."""
    check("the input has the focus", page.evaluate("document.activeElement.id") == "text")
    examples = page.locator("#examples button")
    check("the empty page has examples", examples.count() >= 3 and page.locator("#welcome").is_visible())
    shot(page, folder, "welcome")
    text = examples.nth(1).inner_text()
    examples.nth(1).click()
    done(page)
    check("an example is sent", page.locator(".user .body").inner_text() == text and sent[-1]["messages"][-1]["content"] == text)
    check("the default token limit is sent", sent[-1]["max_tokens"] == 1024, sent[-1])
    check("the examples go", page.locator("#welcome").is_hidden())
    check("the answer has text", len(page.locator(".assistant .body").inner_text().strip()) > 0)
    facts = page.locator(".assistant .facts").inner_text()
    check("tokens per second are shown", re.search(r"^\d+ tokens · [\d.]+ tokens per second", facts) is not None, facts)
    check("screen readers are told", page.locator("#status").inner_text().startswith("Answer: "))
    shot(page, folder, "answer")


def keyboard(page, sent):
    page.focus("#text")
    page.keyboard.type("one")
    page.keyboard.press("Shift+Enter")
    page.keyboard.type("two <b>")
    check("Shift+Enter starts a line", page.input_value("#text") == "one\ntwo <b>")
    page.keyboard.press("Enter")
    done(page)
    check("Enter sends", sent[-1]["messages"][-1]["content"] == "one\ntwo <b>" and page.input_value("#text") == "")
    check("a message stays text", page.locator(".user .body").last.inner_text() == "one\ntwo <b>")


def markdown(page, folder):
    """Markdown becomes elements, and hostile text runs and loads nothing. Finished blocks keep their nodes."""
    scripted(page, HOSTILE)
    body = page.locator(".assistant .md").last
    expect(body.locator("p strong")).to_be_visible()
    body.locator("h3").evaluate("e => { e.kept = true; }")
    done(page)
    check("finished blocks are not drawn again", body.locator("h3").evaluate("e => e.kept === true"))
    for selector, count in {"h3": 1, "strong": 1, "em": 1, "del": 1, "ol > li": 2, "ol ul > li": 1, "blockquote": 1, "td": 4, "th.right": 1, ".code pre code": 1}.items():
        check(f"Markdown makes {count} {selector}", body.locator(selector).count() == count, body.locator(selector).count())
    check("HTML stays text", "<script>window.pwned = 1</script>" in body.locator("h3").inner_text() and "onerror=" in body.inner_text())
    check("hostile elements are not made", body.locator("img, script, svg, iframe, object, [onerror], [onload]").count() == 0)
    links = body.locator("a").evaluate_all("list => list.map(a => [a.getAttribute('href'), a.rel, a.target])")
    check("links are safe", all(h.startswith(("http://", "https://", "mailto:")) and "noopener" in rel and target == "_blank" for h, rel, target in links), links)
    check("a link keeps its parentheses", any(h == "https://example.com/a_(b)" for h, _, _ in links), links)
    check("no text was run", page.evaluate("window.pwned === undefined"))
    made = page.evaluate("(() => { try { document.createElement('div').innerHTML = '<b>x</b>'; return true; } catch { return false; } })()")
    check("the policy refuses HTML of text", not made)
    no_overflow(page, "wide code")
    shot(page, folder, "markdown")


def rich(page, folder):
    """Code has colors and formulas are MathML, made of nothing but what the page allows."""
    scripted(page, RICH)
    done(page)
    body = page.locator(".assistant .md").last
    code = body.locator(".code code")
    check("code has colors", [code.nth(0).locator(f".hl-{kind}").count() > 0 for kind in ("comment", "keyword", "string", "number", "title")] == [True] * 5, code.nth(0).evaluate("e => [...e.querySelectorAll('*')].map(e => e.className)"))
    check("colored code keeps its text", code.nth(0).inner_text() == RICH.split("```")[1].removeprefix("python\n").rstrip("\n"), code.nth(0).inner_text())
    check("code of an unknown language and code without an end stay plain", all(code.nth(n).locator("*").count() == 0 for n in (1, 2)))
    check("formulas are made", body.locator("math").count() >= 4 and body.locator(".math.display math").count() == 2 and body.locator("mfrac").count() == 2 and body.locator("mtable").count() == 2, body.locator("math").count())
    check("money is text", "It costs $5 and $6, or $7." in body.inner_text(), body.inner_text())
    check("a wrong formula stays as it was written", body.locator("code").filter(has_text="$\\frac{$").count() == 1)
    odd = body.evaluate("e => [...e.querySelectorAll('[id], [href], img, a, .main')].map(e => e.outerHTML)")
    check("formulas make no links, images or names", not odd, odd)
    check("formulas do not blow up the page", body.bounding_box()["height"] < 1500, body.bounding_box())
    check("no formula was run", page.evaluate("window.pwned === undefined"))
    no_overflow(page, "formulas")
    shot(page, folder, "rich")


def long(page):
    """A text of a megabyte is shown, and the page can be used while it comes."""
    text = "a *b* `c` " * 20000 + "\n\n```python\n" + 'x = "a" + 1  # b\n' * 50000 + "```\n"
    start = time.monotonic()
    scripted(page, text, size=4000)
    done(page)
    check("a megabyte is drawn in time", time.monotonic() - start < 15, time.monotonic() - start)
    check("all of it is shown", page.locator(".assistant .md").last.evaluate("e => e.textContent.length") > 1_000_000)
    page.keyboard.press("Alt+N")
    expect(page.locator("#examples button").first).to_be_visible()


def attach(page, sent, folder):
    """Text files become part of the message; others, and too much, are refused with a reason."""
    page.keyboard.press("Alt+n")
    give = lambda *files: page.set_input_files("#file", [{"name": name, "mimeType": "text/plain", "buffer": data} for name, data in files])
    give(("notes.txt", "naïve ``` text\n".encode()), ("a.py", b"print(1)\n"))
    expect(page.locator("#files li")).to_have_count(2)
    give(("b.bin", b"\xff\xfe\x00\x01"))
    expect(page.locator("#banner")).to_contain_text("b.bin is not a text file")
    give(("big.txt", b"x" * 600_000))
    expect(page.locator("#banner")).to_contain_text("big.txt has 600 kB")
    page.evaluate("""() => { const d = new DataTransfer(); d.items.add(new File(["dropped"], "c.md"));
      document.querySelector("main").dispatchEvent(new DragEvent("drop", {dataTransfer: d, bubbles: true, cancelable: true})); }""")
    expect(page.locator("#files li")).to_have_count(3)
    page.get_by_role("button", name="Remove a.py").click()
    check("a file can be removed", page.locator("#files li").count() == 2)
    shot(page, folder, "files")
    page.fill("#text", "Sum up.")
    page.keyboard.press("Enter")
    done(page)
    said = sent[-1]["messages"][-1]["content"]
    check("files are in the prompt", said == "notes.txt:\n````txt\nnaïve ``` text\n````\n\nc.md:\n```md\ndropped\n```\n\nSum up.", said)
    check("files are named in the message", page.locator(".user .body .files li").count() == 2 and page.locator("#files").is_hidden())


def keeps(page, sent):
    """A reload keeps the conversation, and the API key in this tab only."""
    turns = page.locator(".turn").all_inner_texts()
    page.click("#open")
    page.fill("#key", "secret")
    page.keyboard.press("Escape")
    page.reload()
    comes("a reload keeps the conversation", lambda: page.locator(".turn").count() == len(turns))
    check("its texts are the same", page.locator(".turn").all_inner_texts() == turns, page.locator(".turn").all_inner_texts())
    check("the key is kept in the tab", page.input_value("#key") == "secret" and page.evaluate("!JSON.stringify(localStorage).includes('secret')"))
    page.evaluate("() => { sessionStorage.clear(); document.getElementById('key').value = ''; }")
    before = sent[-1]["messages"]
    page.fill("#text", "And now?")
    page.keyboard.press("Enter")
    done(page)
    check("it goes on where it was", sent[-1]["messages"][: len(before)] == before and len(sent[-1]["messages"]) == len(before) + 2, sent[-1])
    scripted(page, "Half an answer. ", ends=False)
    expect(page.locator(".assistant .body").last).to_contain_text("Half an answer.")
    page.reload()
    expect(page.locator(".assistant .body").last).to_contain_text("Half an answer.")
    page.keyboard.press("Alt+n")
    page.reload()
    check("a new chat forgets it", page.locator(".turn").count() == 0)
    page.evaluate("localStorage.setItem('iflowc.chat', '{\"mode\": \"chat\", \"turns\": [{\"role\": 1}, null, 5]}')")
    page.reload()
    expect(page.locator("#examples button").first).to_be_visible()


def faults(browser, url, folder):
    """A dead server, one that dies, a missing key and a wrong one: the page says what happened and what to do."""
    context = browser.new_context(viewport={"width": 900, "height": 700})
    page = context.new_page()
    page.goto(url)
    expect(page.locator("#examples button").first).to_be_visible()
    answer = page.locator(".assistant").last

    def ask():
        page.fill("#text", "Hello")
        page.keyboard.press("Enter")
        done(page)

    for fault, words in (
        (lambda r: r.abort("connectionrefused"), "does not answer. It may have stopped"),
        (lambda r: r.fulfill(status=401, json={"error": {"message": "no key"}}), "This server asks for an API key"),
        (lambda r: r.fulfill(status=503, headers={"Retry-After": "7"}, json={"error": {"message": "The queue is full."}}), "The queue is full. Try again in 7 seconds."),
    ):
        page.route("**/v1/chat/completions", fault)
        ask()
        check(f"a fault says: {words}", words in answer.inner_text(), answer.inner_text())
        if "API key" in words:
            shot(page, folder, "key")
            page.get_by_role("button", name="Enter API key").click()
            check("the key can be entered at once", page.evaluate("document.activeElement.id") == "key")
            page.keyboard.type("wrong")
            page.keyboard.press("Escape")
            page.keyboard.press("Escape")
            page.get_by_role("button", name="Regenerate").click()
            done(page)
            check("a wrong key is named", "does not accept this API key" in answer.inner_text(), answer.inner_text())
        page.unroute("**/v1/chat/completions")
    page.evaluate("""() => { const real = window.fetch; window.fetch = async () => { window.fetch = real; return new Response(new ReadableStream({async start(out) {
      out.enqueue(new TextEncoder().encode('data: {"choices": [{"delta": {"content": "So far"}}]}\\n\\n'));
      setTimeout(() => out.error(new TypeError("network error")), 50); }})); }; }""")
    ask()
    check("an answer that breaks off is kept, and named", "So far" in answer.inner_text() and "ended before the answer did" in answer.inner_text(), answer.inner_text())
    page.get_by_role("button", name="Regenerate").click()
    done(page)
    page.route("**/props", lambda r: r.abort("connectionrefused"))
    page.reload()
    expect(page.locator("#banner")).to_contain_text("does not answer")
    page.unroute("**/props")
    page.get_by_role("button", name="Try again").click()
    expect(page.locator("#banner")).to_be_hidden()
    page.keyboard.press("Alt+n")
    page.route("**/props", lambda r: r.fulfill(status=401, json={}))
    page.reload()
    expect(page.locator("#welcome")).to_contain_text("API key required")
    check("the empty page leads to the key", page.get_by_role("button", name="Enter API key").count() == 1)
    context.close()


def copies(page):
    read = "navigator.clipboard.readText()"
    button = page.locator(".assistant .code button").last
    button.click()
    expect(button).to_have_text("Copied")
    check("a code block is copied", page.evaluate(read).startswith('print("<script>'), page.evaluate(read)[:80])
    button = page.get_by_role("button", name="Copy message").last
    button.click()
    expect(button).to_have_text("Copied")
    check("a message is copied as Markdown", page.evaluate(read) == HOSTILE)
    expect(button).to_have_text("Copy", timeout=10_000)
    page.evaluate("Object.defineProperty(navigator, 'clipboard', {value: undefined, configurable: true})")
    page.get_by_role("button", name="Copy message").first.click()
    expect(page.get_by_role("button", name="Copy message").first).to_have_text("Copied")
    page.evaluate("delete navigator.clipboard")
    check("without a secure context it is copied too", page.evaluate(read) == page.locator(".user .body").first.inner_text())


def stop(page, sent, folder):
    """An answer without an end, stopped by Esc and by the button, and then written anew. In a new chat: the demo model has
    a context of 512 tokens."""
    page.keyboard.press("Alt+n")
    for way in ("Esc", "the button"):
        scripted(page, "And then he walked on. ", ends=False)
        expect(page.locator(".assistant .body").last).to_contain_text("walked on.")
        check("while it comes it can be stopped", page.locator("#stop").is_visible() and page.locator("#send").is_hidden())
        shot(page, folder, "writing")
        page.keyboard.press("Escape") if way == "Esc" else page.click("#stop")
        done(page)
        facts = page.locator(".assistant .facts").last.inner_text()
        check(f"{way} stops the answer", "stopped" in facts, facts)
    before, answers = page.locator(".assistant").count(), len(sent)
    check("only the last answer can be written anew", page.get_by_role("button", name="Regenerate").count() == 1)
    page.get_by_role("button", name="Regenerate").click()
    done(page)
    check("Regenerate replaces the answer", page.locator(".assistant").count() == before and "walked on" not in page.locator(".assistant .body").last.inner_text())
    check("Regenerate asks the same", len(sent) == answers + 1 and sent[-1]["messages"][-1] == {"role": "user", "content": "Go on."})


def settings(page, sent, folder):
    page.keyboard.press("Alt+s")
    check("Alt+S opens the settings", page.evaluate("document.getElementById('settings').open"))
    labels = page.locator("#settings label").all_inner_texts()
    check("settings have standard names", all(any(l.startswith(name) for l in labels) for name in ("System prompt", "Max tokens", "Temperature", "Top-p", "Seed")), labels)
    page.fill("#max_tokens", "5")
    page.fill("#system", "Be brief.")
    page.select_option("#theme", "dark")
    shot(page, folder, "settings")
    page.keyboard.press("Escape")
    page.keyboard.press("Alt+n")
    check("Alt+N starts a new chat", page.locator(".turn").count() == 0 and page.locator("#welcome").is_visible())
    page.fill("#text", "Hello")
    page.keyboard.press("Enter")
    done(page)
    check("the settings are sent", sent[-1]["max_tokens"] == 5 and sent[-1]["messages"][0] == {"role": "system", "content": "Be brief."}, sent[-1])
    facts = page.locator(".assistant .facts").last.inner_text()
    check("the token limit holds", re.match(r"[1-5] tokens?\b", facts) is not None, facts)
    check("a chosen theme wins", page.evaluate("getComputedStyle(document.body).colorScheme") == "dark")
    page.reload()
    check("settings last", page.input_value("#max_tokens") == "5")
    page.fill("#text", "Hello")
    page.evaluate("document.getElementById('max_tokens').value = ''")
    page.evaluate(ANSWER, [["x"], True])  # what an unlimited answer says does not matter
    page.evaluate("() => { const f = window.fetch; window.fetch = (url, o) => { window.asked = o.body; return f(url, o); }; }")
    page.keyboard.press("Enter")
    done(page)
    check("an empty limit is none", "max_tokens" not in json.loads(page.evaluate("window.asked")))


def names(page):
    """Every control has a name for people who cannot see it."""
    for e in page.locator("button, input, select, textarea").all():
        name = e.evaluate("e => (e.labels?.[0]?.textContent || e.textContent || e.ariaLabel || '').trim()")
        check("a name for #" + (e.get_attribute("id") or name), name != "")


def phones(browser, url, folder):
    """Small screens: nothing is too wide or too small to touch, and the input stays above the keyboard."""
    for width in (320, 360, 400):
        page = browser.new_context(viewport={"width": width, "height": 640}, is_mobile=True, has_touch=True, color_scheme="dark").new_page()
        page.goto(url)
        expect(page.locator("#examples button").first).to_be_visible()
        no_overflow(page, f"examples at {width} px")
        scripted(page, HOSTILE, size=200)
        done(page)
        no_overflow(page, f"answer at {width} px")
        sizes = page.locator("button >> visible=true").evaluate_all("list => list.map(e => [e.textContent, e.offsetWidth, e.offsetHeight])")
        small = [s for s in sizes if s[1] < 44 or s[2] < 44]
        check(f"buttons at {width} px are 44 px or more", len(sizes) > 4 and not small, small)
        page.tap("#open")
        no_overflow(page, f"settings at {width} px")
        small = page.locator("#settings :is(input, select, textarea):visible").evaluate_all("list => list.map(e => [e.id, e.offsetHeight, e.getBoundingClientRect().right]).filter(e => e[1] < 44 || e[2] > innerWidth)")
        check(f"settings at {width} px can be touched", not small, small)
        page.keyboard.press("Escape")
        page.set_viewport_size({"width": width, "height": 300})  # the on-screen keyboard leaves this much
        page.wait_for_function("() => innerHeight <= 300")  # the browser resizes the page a little later
        for _ in range(50):  # and lays it out later still
            bottom = page.locator("#text").bounding_box()
            if bottom["y"] + bottom["height"] <= 300:
                break
            page.wait_for_timeout(100)
        check(f"the input at {width} px stays above the keyboard", bottom["y"] >= 0 and bottom["y"] + bottom["height"] <= 300, bottom)
        shot(page, folder, f"phone-{width}")
        page.context.close()


def themes(browser, url, folder):
    """Both themes, as the system asks for them."""
    for theme in ("light", "dark"):
        page = browser.new_context(viewport={"width": 900, "height": 1200}, color_scheme=theme).new_page()
        page.goto(url)
        expect(page.locator("#examples button").first).to_be_visible()
        contrasts(page, theme, ["#examples button", "#welcome p", "#open", "#send", "#keys"])
        scripted(page, HOSTILE, size=200)
        done(page)
        scripted(page, RICH, size=200)
        done(page)
        contrasts(page, theme, [".hl-comment", ".hl-keyword", ".hl-string", ".hl-number", ".hl-title", ".math"])
        contrasts(page, theme, [".user .body", ".md p", ".md p code", ".md a", ".md blockquote", ".md th", ".code code", ".code span", ".code button", ".facts", ".again"])
        dark = page.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).every(x => x < 64)")
        check(f"{theme} is {theme}", dark == (theme == "dark"))
        shot(page, folder, theme)
        page.context.close()


def schema(page, sent):
    """A schema in the settings restricts the answer; one that is not JSON is an error below the answer."""
    for text, what in (('{"enum": ["yes"]}', '"yes"'), ("{", "The answer schema in Settings is not JSON")):
        page.click("#open")
        page.fill("#schema", text)
        page.locator("#settings button.main").click()
        page.fill("#text", "Answer.")
        page.keyboard.press("Enter")
        done(page)
        answer = page.locator(".assistant").last.inner_text()
        check(f"the schema {text} is used", what in answer, answer)
    page.evaluate("localStorage.removeItem('iflowc.schema')")
    page.evaluate("document.getElementById('schema').value = ''")


def ranking(browser, url):
    """A model that ranks documents: the first line is the query, the others are documents. The server's part is played here."""
    page = browser.new_context(viewport={"width": 900, "height": 700}).new_page()
    asked = []

    def answer(route):
        asked.append(route.request.post_data_json)
        documents = asked[-1]["documents"]
        route.fulfill(json={"results": [{"index": i, "relevance_score": 1 / (i + 2), "document": {"text": d}} for i, d in enumerate(documents)], "usage": {"prompt_tokens": 9}})

    page.route("**/props", lambda route: route.fulfill(json={"model": {"id": "ranker"}, "endpoints": ["/v1/rerank"]}))
    page.route("**/v1/rerank", answer)
    page.goto(url)
    page.locator("#examples button").first.click()
    done(page)
    body = page.locator(".assistant .body").inner_text().split("\n")
    check("the query and the documents are sent", len(asked) == 1 and asked[0]["query"].endswith("?") and len(asked[0]["documents"]) == 2, asked)
    check("documents are shown with their scores", body[0] == "0.5000  " + asked[0]["documents"][0] and len(body) == 2, body)
    page.fill("#text", "a query alone")
    page.keyboard.press("Enter")
    done(page)
    check("a query without documents is an error", "line of its own" in page.locator(".assistant").last.inner_text())
    page.context.close()


def plain(page, sent):
    """A model without a chat template continues a text and shows it as it is."""
    example = page.locator("#examples button").first
    expect(example).to_be_visible()
    text = example.inner_text()
    check("the examples are beginnings of texts", not text.endswith("?"), text)
    example.click()
    done(page)
    check("the example is continued", sent[-1].get("prompt") == text and sent[-1]["max_tokens"] == 1024, sent[-1])
    body = page.locator(".assistant .body")
    check("the continuation is plain text", body.evaluate("e => e.classList.contains('plain') && !e.children.length && e.textContent.length > 0"))


def chat(browser, url, page, sent, shots):
    expect(page.locator("#examples button").first).to_be_visible()
    names(page)
    welcome(page, sent, shots)
    keyboard(page, sent)
    markdown(page, shots)
    copies(page)
    rich(page, shots)
    attach(page, sent, shots)
    keeps(page, sent)
    long(page)
    faults(browser, url, shots)
    stop(page, sent, shots)
    settings(page, sent, shots)
    schema(page, sent)
    ranking(browser, url)
    phones(browser, url, shots)
    themes(browser, url, shots)


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("url")
    args.add_argument("--plain", action="store_true")
    args.add_argument("--shots", type=pathlib.Path)
    args.add_argument("--chromium", default=shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome"))
    given = args.parse_args()
    if given.shots:
        given.shots.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as p:
        browser = p.chromium.launch(executable_path=given.chromium, args=["--no-sandbox"])
        context = browser.new_context(viewport={"width": 900, "height": 700}, color_scheme="light", permissions=["clipboard-read", "clipboard-write"])
        page = context.new_page()
        outside, wrong = watch(page, given.url)
        sent = []
        page.on("request", lambda r: sent.append(r.post_data_json) if "/v1/" in r.url else None)
        page.add_init_script("localStorage.getItem('iflowc.temperature') ?? localStorage.setItem('iflowc.temperature', '0')")  # the same answers every time, and none of them empty
        page.goto(given.url)
        if given.plain:
            plain(page, sent)
        else:
            chat(browser, given.url, page, sent, given.shots)
        check("nothing but the server is asked", not outside, outside)
        refused = [w for w in wrong if "TrustedHTML" not in w]  # of the test's own attempt
        check("no errors in the console", not refused, refused)
        browser.close()
    print(f"{len(failures)} failed")
    sys.exit(1 if failures else 0)


main()
