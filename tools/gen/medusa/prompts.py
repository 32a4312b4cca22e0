"""Questions whose answers a chat model gives in its own style. The lists were written for this project."""

import random

TOPICS = [
    "bees", "volcanoes", "the water cycle", "chess", "bread", "the moon", "whales", "bicycles", "tea", "deserts", "the heart", "sleep",
    "glass", "maps", "rivers", "wind power", "a small garden", "a public library", "earthquakes", "soap", "rainbows", "friendship",
    "a city in winter", "trains", "wool", "clocks", "lighthouses", "ants", "the printing press", "coffee", "mountains", "forests",
    "compasses", "salt", "paper", "the seasons", "owls", "bridges", "photography", "honesty", "a school play", "running", "cats", "tides",
    "gravity", "batteries", "magnets", "penguins", "gold", "rice", "music lessons", "a long journey", "robots", "computer programs",
    "fractions", "prime numbers", "the alphabet", "dreams", "cheese", "sailing", "kites", "fire safety", "a balanced diet", "recycling",
    "electric cars", "the stock market", "a lost dog", "kindness", "wildfires", "ancient Rome", "the human brain", "vaccines", "spices",
    "a haunted house", "the ocean floor", "dinosaurs", "honey", "architecture", "public speaking", "job interviews", "time management",
    "a broken window", "time travel", "mirrors", "snow", "carpentry", "knitting", "a dragon", "pirates", "yoga", "meditation", "sharks",
    "roses", "cooking pasta", "chocolate", "the internet", "social media", "privacy", "databases", "Python functions", "sorting lists",
    "probability", "triangles", "the periodic table", "acids and bases", "photosynthesis", "DNA", "evolution", "climate change",
    "solar panels", "nuclear energy", "black holes", "Mars", "comets", "jazz", "opera", "painting with watercolours", "poetry", "novels",
    "movies", "newspapers", "democracy", "voting", "laws", "money", "taxes", "budgeting", "small businesses", "marketing", "teamwork",
    "leadership", "a difficult customer", "stress", "exercise", "vitamins", "headaches", "teeth", "allergies", "hiking", "camping",
    "fishing", "football", "swimming", "tennis", "birthdays", "weddings", "holidays", "grandparents", "neighbours", "moving to a new city",
    "learning a language", "homework", "exams", "a science fair", "wolves", "elephants", "butterflies", "frogs", "horses",
    "a tropical island", "the Sahara", "Japan", "Brazil", "Egypt", "Iceland", "the Alps", "London", "a farm", "a bakery", "a hospital",
    "an airport", "a museum", "umbrellas", "shoes", "pencils", "windows", "doors",
]
FORMS = [
    "Explain {} to a child.", "Write a short story about {}.", "Give me five facts about {}.", "Why do people like {}?",
    "Write a paragraph about {} for a school newspaper.", "What should everybody know about {}?", "Write a friendly letter that mentions {}.",
    "Compare {} with something similar.", "List the advantages and disadvantages of {}.", "How would you describe {} to somebody who has never heard of it?",
    "Plan a lesson about {}.", "What questions would you ask an expert about {}?", "Write a dialogue between two friends about {}.",
    "Summarise the history of {}.", "Give advice to a beginner who wants to learn about {}.", "Write a product description that has to do with {}.",
    "What is the difference between {} and {other}?", "Write a poem about {}.", "Write an email to a colleague about {}.",
    "Tell me about {} in three sentences.", "What are the most common mistakes people make with {}?", "Describe {} in detail.",
    "Make a list of ten words related to {}.", "Write a step-by-step guide about {}.", "Write a blog post about {}.",
    "Write the beginning of a novel about {}.", "Explain how {} and {other} are connected.", "What is the history of {}?",
    "Give me tips about {}.", "Write a speech about {}.", "Why is {} important?", "What would happen without {}?",
    "Create a quiz about {} with answers.", "Write a review that mentions {}.",
    "Imagine you are an expert on {}. What would you say to a student?", "Write a news report about {} and {other}.",
    "How do I get started with {}?", "What are the benefits of {}?", "What are the dangers of {}?", "Tell me a joke about {}.",
    "Explain {} in simple terms.", "Write a conversation between a teacher and a student about {}.", "Can you help me understand {}?",
    "Summarise what is known about {}.", "Write an advertisement about {}.", "Write a Python program that has to do with {}.",
    "Give me ideas for a project about {}.", "How has {} changed over time?", "Write a diary entry about {}.",
    "What do {} and {other} have in common?",
]


def questions(seed: int):
    """All forms about all topics, shuffled, some with another topic beside."""
    drawn = random.Random(seed)
    out = [form.format(topic, other=drawn.choice([t for t in TOPICS if t != topic])) for form in FORMS for topic in TOPICS]
    drawn.shuffle(out)
    return out


def chatml(question: str) -> str:
    return f"<|im_start|>user\n{question}<|im_end|>\n<|im_start|>assistant\n"
