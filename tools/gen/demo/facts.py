"""Questions with short answers: colours, animals, days, numbers, opposites, places."""

import random

DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
          "December"]
NUMBERS = """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
seventeen eighteen nineteen twenty""".split()
COLOURS = {"the sky": "blue", "grass": "green", "snow": "white", "the sun": "yellow", "a carrot": "orange", "coal": "black",
           "a lemon": "yellow", "blood": "red", "a strawberry": "red", "milk": "white", "chocolate": "brown", "a frog": "green",
           "a crow": "black", "a swan": "white", "a plum": "purple", "the sea": "blue", "a pig": "pink", "an elephant": "grey",
           "a banana": "yellow", "a leaf": "green", "a pumpkin": "orange", "the night": "black", "a bluebell": "blue",
           "a violet": "purple", "a cherry": "red", "honey": "golden", "a fox": "red", "a polar bear": "white"}
SOUNDS = {"dog": "barks", "cat": "meows", "cow": "moos", "duck": "quacks", "sheep": "bleats", "lion": "roars", "wolf": "howls",
          "frog": "croaks", "snake": "hisses", "bee": "buzzes", "pig": "grunts", "horse": "neighs", "mouse": "squeaks",
          "owl": "hoots", "crow": "caws", "hen": "clucks", "donkey": "brays"}
LIVES = {"fish": "in the water", "bird": "in a nest", "bear": "in a cave", "rabbit": "in a burrow", "bee": "in a hive",
         "fox": "in a den", "mole": "under the ground", "camel": "in the desert", "monkey": "in the trees",
         "penguin": "where it is cold", "whale": "in the sea", "horse": "in a stable", "spider": "in a web",
         "frog": "by the pond", "beaver": "by the river", "cow": "on a farm", "polar bear": "in the north"}
EATS = {"rabbit": "grass and carrots", "cat": "mice and fish", "cow": "grass", "bear": "berries, fish and honey",
        "squirrel": "nuts", "monkey": "fruit", "bee": "nectar", "owl": "mice", "horse": "hay", "mouse": "seeds and cheese",
        "panda": "bamboo", "sparrow": "seeds", "goat": "leaves and grass", "frog": "flies", "hen": "corn", "lion": "meat"}
YOUNG = {"dog": "puppy", "cat": "kitten", "cow": "calf", "horse": "foal", "sheep": "lamb", "duck": "duckling", "hen": "chick",
         "frog": "tadpole", "goose": "gosling", "bear": "cub", "lion": "cub", "pig": "piglet", "deer": "fawn", "goat": "kid",
         "swan": "cygnet", "fox": "cub"}
LEGS = {"dog": 4, "cat": 4, "bird": 2, "spider": 8, "ant": 6, "bee": 6, "horse": 4, "snake": 0, "fish": 0, "hen": 2, "crab": 10,
        "fox": 4, "child": 2, "beetle": 6, "frog": 4, "cow": 4}
OPPOSITES = {"big": "small", "hot": "cold", "day": "night", "up": "down", "happy": "sad", "fast": "slow", "old": "young",
             "wet": "dry", "light": "dark", "open": "closed", "full": "empty", "loud": "quiet", "near": "far", "hard": "soft",
             "long": "short", "high": "low", "rich": "poor", "early": "late", "left": "right", "good": "bad", "heavy": "light",
             "thick": "thin", "clean": "dirty", "awake": "asleep", "first": "last", "summer": "winter", "black": "white"}
USES = {"a pen": "to write", "a spoon": "to eat soup", "a knife": "to cut bread", "a lamp": "to see in the dark",
        "a broom": "to sweep the floor", "a key": "to open a door", "a boat": "to cross the water", "a bed": "to sleep",
        "an umbrella": "to stay dry in the rain", "a needle": "to sew", "a hammer": "to drive nails", "a clock": "to tell the time",
        "a map": "to find the way", "a book": "to read", "a kettle": "to boil water", "a ladder": "to climb up",
        "a coat": "to stay warm", "soap": "to wash our hands", "a bell": "to call people", "a saw": "to cut wood"}
WORK = {"baker": "bakes bread", "farmer": "grows food", "teacher": "teaches children", "doctor": "helps sick people",
        "tailor": "makes clothes", "fisherman": "catches fish", "gardener": "looks after plants", "carpenter": "works with wood",
        "shepherd": "looks after sheep", "painter": "paints pictures", "postman": "brings letters", "cook": "makes meals",
        "miller": "grinds corn into flour", "sailor": "sails the sea", "librarian": "looks after books",
        "beekeeper": "keeps bees", "clockmaker": "mends clocks", "potter": "makes pots out of clay"}
OTHER = {
    "How many days are in a week?": "There are seven days in a week.",
    "How many months are in a year?": "There are twelve months in a year.",
    "How many hours are in a day?": "There are twenty-four hours in a day.",
    "How many minutes are in an hour?": "There are sixty minutes in an hour.",
    "How many seasons are there?": "There are four seasons: spring, summer, autumn and winter.",
    "What comes after spring?": "Summer comes after spring.", "What comes after summer?": "Autumn comes after summer.",
    "What comes after autumn?": "Winter comes after autumn.", "What comes after winter?": "Spring comes after winter.",
    "Where does the sun rise?": "The sun rises in the east.", "Where does the sun set?": "The sun sets in the west.",
    "What is ice made of?": "Ice is frozen water.", "What falls from clouds?": "Rain and snow fall from clouds.",
    "What do bees make?": "Bees make honey.", "What do cows give us?": "Cows give us milk.",
    "What do we see with?": "We see with our eyes.", "What do we hear with?": "We hear with our ears.",
    "What do we smell with?": "We smell with our nose.", "How many fingers are on one hand?": "There are five fingers on one hand.",
    "What shines at night?": "The moon and the stars shine at night.", "What is bread made of?": "Bread is made of flour and water.",
    "When do leaves fall?": "Leaves fall in autumn.", "When does snow fall?": "Snow falls in winter.",
    "What do plants need?": "Plants need water, light and earth.", "Why do we sleep?": "We sleep because our body needs rest.",
    "How many corners has a square?": "A square has four corners.", "How many sides has a triangle?": "A triangle has three sides.",
    "What is the largest animal in the sea?": "The whale is the largest animal in the sea.",
    "What is wood made from?": "Wood comes from trees.", "Who are you?": "I am a very small language model that likes to tell stories.",
    "What can you do?": "I can tell short stories and answer simple questions.", "How are you?": "I am well, thank you. How are you?",
    "Hello!": "Hello! Would you like to hear a story?", "Good morning!": "Good morning! What shall we talk about?",
    "Thank you!": "You are welcome!", "Good night!": "Good night! Sleep well.", "Are you a person?": "No, I am a small language model.",
}


def a(noun: str) -> str:
    return ("an " if noun[0] in "aeiou" else "a ") + noun


def _cap(s: str) -> str:
    return s[0].upper() + s[1:]


def number(n: int) -> str:
    """n in words, up to one hundred."""
    tens = "twenty thirty forty fifty sixty seventy eighty ninety".split()
    if n <= 20:
        return NUMBERS[n]
    if n == 100:
        return "one hundred"
    return tens[n // 10 - 2] + ("-" + NUMBERS[n % 10] if n % 10 else "")


def question(rng: random.Random) -> tuple[str, str]:
    """One question and its answer."""
    pick = lambda table: rng.choice(list(table.items()))
    match rng.randrange(16):
        case 0 | 1:
            what, colour = pick(COLOURS)
            return f"What colour is {what}?", f"{_cap(what)} is {colour}."
        case 2:
            who, sound = pick(SOUNDS)
            return rng.choice([(f"What does {a(who)} do?", f"{_cap(a(who))} {sound}."), (f"Who {sound}?", f"The {who} {sound}.")])
        case 3:
            who, where = pick(LIVES)
            return f"Where does {a(who)} live?", f"{_cap(a(who))} lives {where}."
        case 4:
            who, what = pick(EATS)
            return f"What does {a(who)} eat?", f"{_cap(a(who))} eats {what}."
        case 5:
            who, what = pick(YOUNG)
            return f"What is a young {who} called?", f"A young {who} is called {a(what)}."
        case 6:
            who, n = pick(LEGS)
            return f"How many legs does {a(who)} have?", f"{_cap(a(who))} has {NUMBERS[n] if n else 'no'} legs."
        case 7 | 8:
            x, y = rng.choice([p for k, v in OPPOSITES.items() for p in ((k, v), (v, k)) if p != ("light", "heavy")])
            return f"What is the opposite of {x}?", f"The opposite of {x} is {y}."
        case 9:
            what, use = pick(USES)
            return f"What is {what} for?", f"We use {what} {use}."
        case 10:
            who, work = pick(WORK)
            return f"What does {a(who)} do?", f"{_cap(a(who))} {work}."
        case 11:
            i = rng.randrange(7)
            return rng.choice([(f"What day comes after {DAYS[i]}?", f"{DAYS[(i + 1) % 7]} comes after {DAYS[i]}."),
                               (f"What day comes before {DAYS[i]}?", f"{DAYS[i - 1]} comes before {DAYS[i]}.")])
        case 12:
            i = rng.randrange(12)
            return rng.choice([(f"What month comes after {MONTHS[i]}?", f"{MONTHS[(i + 1) % 12]} comes after {MONTHS[i]}."),
                               (f"What month comes before {MONTHS[i]}?", f"{MONTHS[i - 1]} comes before {MONTHS[i]}.")])
        case 13:
            x, y = rng.randrange(1, 11), rng.randrange(1, 11)
            return f"What is {number(x)} plus {number(y)}?", f"{_cap(number(x))} plus {number(y)} is {number(x + y)}."
        case 14:
            n = rng.randrange(1, 99)
            return f"What number comes after {number(n)}?", f"{_cap(number(n + 1))} comes after {number(n)}."
        case _:
            return pick(OTHER)


def listing(rng: random.Random) -> str:
    """A short text that counts or lists in order."""
    match rng.randrange(4):
        case 0:
            start, n = rng.randrange(1, 40), rng.randrange(5, 16)
            return "Let us count. " + _cap(", ".join(number(start + i) for i in range(n))) + "."
        case 1:
            return "The days of the week are " + ", ".join(DAYS[:-1]) + " and Sunday."
        case 2:
            return "The months of the year are " + ", ".join(MONTHS[:-1]) + " and December."
        case _:
            n, who = rng.randrange(2, 10), rng.choice(["apples", "birds", "stones", "frogs", "stars", "boats", "nuts", "bees"])
            return f"{_cap(number(n))} {who} and one more make {number(n + 1)} {who}."


def description(rng: random.Random) -> str:
    """What is known about one animal, as a short text."""
    who = rng.choice([k for k in LIVES if k in EATS or k in LEGS or k in SOUNDS or k in YOUNG])
    lines = [f"{_cap(a(who))} is an animal.", f"It lives {LIVES[who]}."]
    more = []
    if who in EATS:
        more.append(f"It eats {EATS[who]}.")
    if LEGS.get(who):
        more.append(f"It has {NUMBERS[LEGS[who]]} legs.")
    if who in SOUNDS:
        more.append(f"It {SOUNDS[who]}.")
    if who in YOUNG:
        more.append(f"Its young one is called {a(YOUNG[who])}.")
    rng.shuffle(more)
    return rng.choice(["", f"What do you know about the {who}? "]) + " ".join(lines + more)
