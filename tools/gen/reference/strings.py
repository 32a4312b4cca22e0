"""Strings on which tokenizers are compared: prose, code, many scripts, emoji, odd spaces, special tokens."""

import random

_PIECES = [
    "", " ", "  ", "   leading and trailing   ", "\n", "\n\n\n", "\t", "\r\n", " \n ", "\n  \n", "a\n", "\na", " a", "a ",
    "two  spaces   three    four", "tab\tand\nnewline\r\ncarriage\n\n\nthree newlines", "trailing spaces   \n   next",
    "Hello, world!", "The quick brown fox jumps over the lazy dog.", "Once upon a time", "HELLO WORLD", "hElLo WoRlD",
    "It's we're I'll THEY'VE don't 'quoted' I'm you'd", "it's 'twas ''double'' `back` \"quotes\"", "'s 't 're 've 'm 'll 'd", "'S'T'RE",
    "1234567890 12 345 6,789.01 1e-5 $3.50 100%", "3.14159", "2024-02-29T12:34:56Z", "0x1F 0b101 1_000_000", "12abc34", "v1.2.3-rc4",
    "½ ² ³ ٣ ४ Ⅷ ①", "１２３ full width", "a1b2c3", "007", "1 2  3   4",
    "Größe Straße naïve café Zażółć gęślą jaźń", "Cafe\u0301 A\u030angstro\u0308m", "ÀÉÎÕÜ àéîõü ß ẞ ŒœÆæ", "ñandú ¿qué? ¡sí!",
    "Гавань была тиха перед рассветом", "Съешь же ещё этих мягких французских булок", "Το λιμάνι ήταν ήσυχο", "Ξεσκεπάζω την ψυχοφθόρα",
    "天亮以前港口很安静，只有海鸥看见船回来了。", "日の出前の港は静かで、カモメだけが見ていた。", "ｶﾀｶﾅ ひらがな カタカナ 漢字", "우리는 내일 아침에 도서관에 갑니다",
    "繁體中文測試", "你好，世界！", "。、「」『』（）", "中 文 空 格", "한 국 어", "ㄱㄴㄷㅏㅑ", "كان الميناء هادئا قبل شروق الشمس", "שלום עולם",
    "हम कल सुबह पुस्तकालय जाएंगे।", "สวัสดีชาวโลก", "Xin chào thế giới", "გამარჯობა მსოფლიო", "Բարեւ աշխարհ", "አማርኛ", "བོད་སྐད", "ᏣᎳᎩ",
    "mixed 中文 and English 和 русский 한국어", "a中b文c", "naïve中文café", "emoji 😀 👍🏽 👨‍👩‍👧‍👦 🇩🇪 ❤️ end", "😀😀😀", "👩🏿‍🚀", "🏳️‍🌈", "☺ ☹ ♥ ★ ☃",
    "🇩🇪🇫🇷🇯🇵", "1️⃣ 2️⃣ #️⃣", "😀a😀 b 😀", " 🙂", "rare \U00010348 \U0001F9FF 𝒜𝓁𝑔𝑒𝒷𝓇𝒶 ﬁ ﬂ ™ …", "𠜎𠜱𠝹𠱓", "zero\u200bwidth\u00a0nbsp\u3000ideographic\ufeffbom",
    "\u00a0", "\u2003em\u2009thin\u202fnarrow", "\u2028line\u2029paragraph", "\u0085next line", "\u200d\u200c\u200b", "soft\u00adhyphen", "\u202eright to left\u202c",
    "control \x01\x02\x7f chars\x00nul", "\x0b\x0c vertical and form feed", "\x1b[31mred\x1b[0m", "\ufffd replacement \ufffe", "a\u0300\u0301\u0302\u0303 stacked",
    "def add(a, b):\n    return a + b\n\tx[i] += y_j ** 2;", "for (int i = 0; i < n; i++) {\n\tsum += x[i] * y[i];\n}\n",
    "func main() {\n\tfmt.Println(\"hello, world\")\n}\n", "SELECT name, age FROM people WHERE age >= 21 ORDER BY name;",
    "{\"key\": [1, 2.5, -3e-7], \"ok\": true, \"none\": null}", "<html><body class=\"x\">&nbsp;&lt;</body></html>", "#include <stdio.h>\nint main(void) { return 0; }",
    "if x != y && z <= w || !v { x <<= 2; y ->z; a::b(); }", "print(f'{x:>10.3f}')  # comment", "git commit -m \"fix: off-by-one\" && git push", "/usr/local/bin:/usr/bin",
    "C:\\Windows\\System32", "\\n \\t \\\\ \\u0041", "let mut v: Vec<&'static str> = vec![];", "SELECT\t*\nFROM\tt;", "a=b;c=d", "__init__ __name__ _x x_ snake_case camelCase PascalCase kebab-case",
    "https://example.invalid/path?q=a%20b&x=1#frag user@example.invalid", "antidisestablishmentarianism supercalifragilisticexpialidocious",
    "!!!???...---___***((([[[{{{<<<>>>}}}]]])))", "…—–-‒", "“curly” ‘quotes’ „low“ «guillemets»", "a,b;c:d.e!f?g", "...", ". . .", "?!", "$100 €200 £300 ¥400", "± × ÷ ≠ ≤ ∞ √ ∑ ∫",
    "{0}", "{0}{0} doubled and {2} spaced {1}", "special {0} in the middle {1}end", "{1}user\nHi{2}\n{1}assistant\n", " {1} ", "{1}{2}", "<|im_start", "im_start|>", "<|IM_START|>", "< |im_start|>",
    "<|unknown|>", "[INST] x [/INST]", "<s></s><unk><pad>", "▁underscore ▁▁ two ## wordpiece ##ing <unk> [UNK] <0x41>", "Ġspace Ċ newline", "Ġ", "ĠĠ Ċ ĉ",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "abababababababababababababab", "                                ", "\n\n\n\n\n\n\n\n\n\n", "................................",
    "The harbour was quiet before sunrise, and only the gulls were awake to see the boats come in.",
    "In 1987 the town had 12,450 people, three bakeries, two schools and one very old clock tower.",
    "“What color is the sky?” asked the fox. “The sky is blue,” said the owl.",
]


def cases(count: int, specials: list[str], seed: int = 7) -> list[str]:
    """The fixed strings with the special tokens put in, then random joins of them until there are `count`."""
    fixed = [p.replace("{0}", specials[0]).replace("{1}", specials[1]).replace("{2}", specials[2]) for p in _PIECES]
    rng, out = random.Random(seed), list(dict.fromkeys(fixed))[:count]
    while len(out) < count:
        out.append(rng.choice(["", " ", "\n", "  "]).join(rng.sample(fixed, rng.randrange(2, 5))))
    return out
