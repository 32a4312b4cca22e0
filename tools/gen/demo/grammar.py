"""A tiny template language: `[one|two|three]` picks one, `{name}` looks a word up, and both nest.

Lookups go to the story's own bindings first (the hero's name, pronouns) and then to the word
lists, of which a fresh member is drawn each time. Articles and capitals are put right at the end.
"""

import random
import re

_SLOT = re.compile(r"\{([A-Za-z0-9_^]+)\}")
_CHOICE = re.compile(r"\[([^\[\]]*)\]")
_AN = re.compile(r"\b([Aa]) (?=[aeiouAEIOU])(?!(?:one|uni|use|usu|eu))")
_START = re.compile(r"((?:^|[.!?] |\n|\.\" )\"?)([a-z])")


def capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def choose(text: str, rng: random.Random) -> str:
    """The template with one alternative taken for every choice, innermost first."""
    while (m := _CHOICE.search(text)) is not None:
        text = text[: m.start()] + rng.choice(m.group(1).split("|")) + text[m.end() :]
    return text


def expand(text: str, bindings: dict, words: dict, rng: random.Random) -> str:
    """The template with every choice made and every slot filled; `{^name}` capitalises."""
    text = choose(text, rng)

    def fill(m: re.Match) -> str:
        name = m.group(1)
        big = name.startswith("^")
        name = name.lstrip("^")
        value = bindings[name] if name in bindings else rng.choice(words[name])
        value = expand(value, bindings, words, rng)
        return capital(value) if big else value

    return _SLOT.sub(fill, text)


def polish(text: str) -> str:
    """Articles before vowels, one blank at a time, capitals at the start of sentences."""
    text = re.sub(r" +", " ", text).strip()
    text = re.sub(r" ([.,!?])", r"\1", text)
    text = _AN.sub(r"\1n ", text)
    return _START.sub(lambda m: m.group(1) + m.group(2).upper(), text)
