#!/usr/bin/env python3
"""Writes the training corpus of the demo model: stories, dialogues and facts made by a grammar.

The text comes only from the templates and word lists beside this file, so it is free of other
people's rights. One document per line of JSON: {"text": ...}. The same seed gives the same bytes.
"""

import argparse
import json
import random
import re

import facts
import plots
from grammar import capital, choose, expand, polish
from words import BOYS, BY_SEASON, GIRLS, WORDS

PRONOUNS = {"f": ("she", "her", "her", "herself"), "m": ("he", "him", "his", "himself")}
DARK = ["attic", "cellar", "barn", "old well", "kitchen", "garden", "chimney", "cave"]
INSTRUMENTS = ["flute", "drum", "violin", "guitar", "trumpet", "harp", "horn", "whistle"]


def _pronouns(out: dict, tag: str, sex: str) -> None:
    for key, word in zip(("he", "him", "his", "himself"), PRONOUNS[sex]):
        out[key + tag] = word


def _hero(b: dict, rng: random.Random, names: set) -> None:
    """A child, an animal with a name, or an animal without one."""
    size, nature, kind = rng.choice(WORDS["size"]), rng.choice(WORDS["nature"]), rng.choice(WORDS["animal"])
    sex = rng.choice("fm")
    look = rng.choice([size, size, nature, f"{size} {rng.choice(WORDS['colour'])}", f"{nature} {size}"])
    match rng.randrange(3):
        case 0:
            name = rng.choice(GIRLS if sex == "f" else BOYS)
            child = "girl" if sex == "f" else "boy"
            b |= {"hero": name, "a_hero": f"a {look if look in (size, nature) else size} {child} [named|called] {name}",
                  "the_hero": name, "a_kind": f"a {size} {child}", "name_or": name}
        case 1:
            name = rng.choice(WORDS["pet"])
            b |= {"hero": name, "a_hero": f"a {look} {kind} [named|called] {name}",
                  "the_hero": rng.choice([f"{name} the {kind}", f"the {look} {kind} {name}", name]),
                  "a_kind": f"a {look} {kind}", "name_or": name}
        case _:
            name = rng.choice(WORDS["pet"])
            b |= {"hero": f"the {kind}", "a_hero": f"a {look} {kind}", "the_hero": f"the {look} {kind}",
                  "name_or": name, "a_kind": f"a {look} {kind} who was called {name}"}
            if rng.random() < 0.3:
                b["hero"] = f"the {size} {kind}"
    names |= {name, kind}
    _pronouns(b, "", sex)


def _friend(b: dict, rng: random.Random, names: set) -> None:
    sex = rng.choice("fm")
    size, nature = rng.choice(WORDS["size"]), rng.choice(WORDS["nature"])
    kind = rng.choice([k for k in WORDS["animal"] if k not in names])
    if rng.random() < 0.5:
        name = rng.choice([n for n in (GIRLS if sex == "f" else BOYS) if n not in names])
        child = "girl" if sex == "f" else "boy"
        b |= {"friend": name, "a_friend": f"a {rng.choice([size, nature])} {child} [named|called] {name}", "friend_as_friend": name}
    elif rng.random() < 0.5:
        name = rng.choice([n for n in WORDS["pet"] if n not in names])
        b |= {"friend": name, "a_friend": f"a {rng.choice([size, nature])} {kind} [named|called] {name}",
              "friend_as_friend": f"{name} the {kind}"}
    else:
        name = kind
        b |= {"friend": f"the {kind}", "a_friend": f"a {rng.choice([size, nature])} {kind}",
              "friend_as_friend": f"{{his}} {nature} friend the {kind}"}
    names |= {name, kind}
    _pronouns(b, "2", sex)


def _helper(b: dict, rng: random.Random, names: set) -> None:
    sex = rng.choice("fm")
    kind = rng.choice([k for k in WORDS["wise"] if k not in names] if rng.random() < 0.6 else WORDS["job"])
    b |= {"helper": f"the {kind}", "a_helper": rng.choice([f"a {rng.choice(WORDS['oldadj'])} {kind}", f"a {kind}"])}
    other = rng.choice([k for k in WORDS["animal"] if k not in names and k != kind])
    b |= {"a_helper2": f"a {rng.choice(WORDS['nature'])} {other}"}
    b["the_job"] = "the " + rng.choice([j for j in WORDS["job"] if j != kind])
    _pronouns(b, "3", sex)


def cast(rng: random.Random) -> dict:
    """Everything that must stay the same through one story."""
    b, names = {}, set()
    _hero(b, rng, names)
    _friend(b, rng, names)
    _helper(b, rng, names)
    for key, source, n in (("spot", "spot", 3), ("weekday", "weekday", 2), ("food", "food", 2), ("material", "material", 3),
                           ("ingredient", "ingredient", 2), ("gift", "gift", 2), ("colour", "colour", 2), ("game", "game", 2)):
        for i, value in enumerate(rng.sample(WORDS[source], n)):
            b[f"{key}{i + 1}"] = value
    b["place"], b["place2"] = rng.sample(WORDS["place"], 2)
    b["like"], b["like2"] = rng.sample(WORDS["like"], 2)
    b["nature"], b["nature2"] = rng.sample(WORDS["nature"], 2)
    for key in ("shine", "danger", "noise", "afraid", "tired", "season", "kin"):
        b[key + "1"] = rng.choice(WORDS[key])
    b["daytime1"] = rng.choice(["morning", "afternoon", "evening", "day"])
    b["kin"] = b["kin1"]
    b["season"] = b["season1"]
    weather, sky = (x.replace(", ", ",").split(",") for x in BY_SEASON[b["season1"]])
    b["weather"], b["sky"], b["sky1"] = (f"[{'|'.join(x)}]" for x in (weather, sky, sky))
    for key in ("skill", "craft", "fear", "plant", "tree", "moral", "home"):
        b[key] = rng.choice(WORDS[key])
    b["thing"] = rng.choice(WORDS["treasure"])
    b["dark_place"], b["instrument"] = rng.choice(DARK), rng.choice(INSTRUMENTS)
    b["friend_enters"] = plots.FRIEND_ENTERS
    b["on_the_way"] = rng.choice(["on the way", "on the road", "in the meadow", "at the gate", "by the stream"])
    return b


class Teller:
    """Expands templates in order; a friend or helper is introduced where first mentioned."""

    def __init__(self, rng: random.Random, b: dict):
        self.rng, self.b, self.known = rng, b, set()

    def tell(self, template: str) -> str:
        text = choose(self.b["friend_enters"].join(template.split("{friend_enters}")), self.rng)
        text = re.sub(r"\{(\^?)(a_)?(friend|helper)\}", self._mention, text)
        return capital(expand(text, self.b, WORDS, self.rng))

    def knows(self, template: str) -> bool:
        """Whether everyone the template names has been met."""
        return all(who in self.known or who not in template for who in ("friend", "helper"))

    def _mention(self, m: re.Match) -> str:
        big, new, who = m.group(1), m.group(2), m.group(3)
        if who in self.known:
            return "{" + big + who + "}"
        self.known.add(who)
        if new or who == "helper":
            return "{" + big + "a_" + who + "}"
        return self.rng.choice(["{^his} friend {friend}" if big else "{his} friend {friend}", "{" + big + "friend_as_friend}"])


def story(rng: random.Random, b: dict | None = None) -> str:
    """One story: an opening, a plot beat by beat, an ending, in one to three paragraphs."""
    teller = Teller(rng, b or cast(rng))
    beats = [rng.choice(plots.OPENINGS)]
    for beat in rng.choice(list(plots.PLOTS.values())):
        beats.append(rng.choice(getattr(plots, beat) if isinstance(beat, str) else beat))
        if rng.random() < 0.06:
            beats.append(rng.choice(plots.ASIDES))
    parts = [t for t in (teller.tell(x) for x in beats) if t]
    parts.append(teller.tell(rng.choice([x for x in plots.ENDINGS if teller.knows(x)])))
    if rng.random() < 0.15:
        parts.append("The end.")
    breaks = set(rng.sample(range(1, len(parts)), rng.choice([0, 1, 2, 2])))
    text = "".join(("\n" if i in breaks else " ") * (i > 0) + p for i, p in enumerate(parts))
    return polish(text)


def dialogue(rng: random.Random) -> str:
    """Two characters talk about a few facts."""
    b = cast(rng)
    teller = Teller(rng, b)
    lines = [teller.tell(rng.choice(plots.OPENINGS[:12])), teller.tell(rng.choice(plots.MEETINGS))]
    x, y = b["hero"], b["friend"]
    for i in range(rng.randrange(2, 5)):
        q, ans = facts.question(rng)
        if q[-1] != "?" or ans[-1] != "." or "you" in q:
            continue
        tag = rng.choice([f"asked {x}", f"{b['he']} asked {y}", f"asked {x} {'again' if i else 'first'}"])
        lines.append(f'"{q}" {tag}. "{ans[:-1]}," {rng.choice(["said", "answered", "replied"])} {y}.')
    lines.append(teller.tell(rng.choice(plots.KNOWING)))
    lines.append(teller.tell(rng.choice([x for x in plots.ENDINGS if teller.knows(x)])))
    return polish(" ".join(capital(t) for t in lines))


def letter(rng: random.Random) -> str:
    """A short letter from one character to another."""
    b = cast(rng)
    me, you = rng.sample(GIRLS + BOYS, 2)
    body = [expand(rng.choice(beat), b, WORDS, rng) for beat in plots.LETTER]
    return f"Dear {you},\n" + polish(" ".join(capital(x) for x in body)) + f"\n{rng.choice(['Your friend', 'With love', 'Yours', 'See you soon'])},\n{me}"


def chat(rng: random.Random) -> str:
    """A ChatML exchange: questions with answers, or a request for a story."""
    turns = []
    if rng.random() < 0.5:
        b = cast(rng)
        about = expand(rng.choice(["{a_hero}", "{a_hero} and {a_friend}"]), b, WORDS, rng)
        ask = rng.choice(["Tell me a story about {}.", "Write a story about {}.", "Please tell me about {}.",
                          "I want to hear a story about {}."])
        turns.append((polish(ask.format(about)), story(rng, b)))
    else:
        turns = [facts.question(rng) for _ in range(rng.randrange(1, 4))]
    return "".join(f"<|im_start|>user\n{q}<|im_end|>\n<|im_start|>assistant\n{a}<|im_end|>\n" for q, a in turns)


def document(rng: random.Random) -> str:
    x = rng.random()
    if x < 0.70:
        return story(rng)
    if x < 0.76:
        return dialogue(rng)
    if x < 0.79:
        return rng.choice([letter, facts.description])(rng)
    if x < 0.90:
        return chat(rng)
    if x < 0.98:
        return "\n".join(" ".join(facts.question(rng)) for _ in range(rng.randrange(2, 9)))
    return facts.listing(rng)


def main() -> None:
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--bytes", type=int, default=24_000_000, help="least size of the text")
    ap.add_argument("--out", required=True)
    args = ap.parse_args()
    rng, size = random.Random(args.seed), 0
    with open(args.out, "w", encoding="utf-8") as f:
        while size < args.bytes:
            text = document(rng)
            size += len(text)
            f.write(json.dumps({"text": text}) + "\n")


if __name__ == "__main__":
    main()
