"""Writes the golden files of this folder, and runtime/text/tokenizer/testdata/components.json, with Hugging Face tokenizers and sentencepiece.

Usage: python generate.py   (needs tools/gen/reference/requirements.txt and sentencepiece 0.2)
Tokenizers are trained on CORPUS, single-threaded; only suffix-bpe may differ from run to run (its trainer
breaks ties by hash order), which is why every folder is saved, loaded again and recorded together.
"""
import base64, io, json, os, pathlib, shutil, struct

os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["RAYON_NUM_THREADS"] = "1"

import sentencepiece as spm
import transformers as tf
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

HERE = pathlib.Path(__file__).parent

CORPUS = [
    "The compiler reads a description of the computation and writes a program.",
    "the quick brown fox jumps over the lazy dog and then it runs away from the dog",
    "A harbour in the morning is quiet; the boats wait for wind, the gulls for bread.",
    "def add(a, b):\n    return a + b", "for i in range(10):\n\tprint(i, i * 2)", "x1 = 12 + 345; y2 = 6789",
    "Der Hafen war still, bevor die Sonne aufging. Größe, Straße, Übung.", "El niño comió pan; la niña bebió café.",
    "Гавань была тиха перед рассветом", "天亮以前港口很安静，只有海鸥看见船回来了。", "日の出前の港は静かで、カモメだけが見ていた。",
    "it's what we're saying, they've said I'll do it, don't you", "one two three four five six seven eight nine ten",
] * 4

TEXTS = [
    "", " ", "Hello, world!", "  two  spaces   three ", "tab\tand\r\nnew\n\n\nlines \n end\n ", "It's we're I'LL THEY'VE don't 'q'",
    "12345 6,789.01 1e-5 ²³½ ٣٤", "Größe STRASSE İstanbul ǅ ſtraße", "e\u0301 A\u030angstro\u0308m \u1e9b\u0323", "Гавань ТИХА",
    "天亮以前ｶﾅかな한국어", "हिन्दी ﷺ العربية", "😀 👍🏽 👨‍👩‍👧‍👦 🇩🇪 ❤️ end", "a\u200bb\u00a0c\u3000d\ufeffe\u2028f\u0085g",
    "ctl \x01\x02\x7f\x00 \ufffd \u00ad", "a=b+c; x[i]+=y_j**2 // #1 $5 <b> ~^|`", "https://x.invalid/p?q=a%20b&x=1#f u@x",
    "ﬁ ﬂ ™ … “q” – — ‘s’ «»", "▁under ▁▁ ##ing <0x41> [UNK]", "<s>x</s> <mask> a<mask>b[MASK] <|sp|>y <|sp|> z", "aaaaaaaaaaaa bbbbbb ababab",
    "ß𐐀𐑏 𝒜𝓁 Ꮭꮽ ß ΑΣ ΟΔΟΣ", "snake_case CamelCaseXMLThing iPhone15Pro", "¿Qué? ¡Sí! a.b,c:d;e",
]


def flat(component):
    return json.loads(component.__getstate__())


def decode(decoder, tokens):
    try:
        return decoder.decode(tokens)
    except BaseException:  # Strip fails on tokens shorter than what it strips
        return None


def components():
    N, P, D = normalizers, pre_tokenizers, decoders
    sets = {"normalizers": [], "pre_tokenizers": [], "decoders": []}
    for n in [
        N.NFC(), N.NFD(), N.NFKC(), N.NFKD(), N.Lowercase(), N.Sequence([N.NFD(), N.StripAccents()]), N.Nmt(), N.Strip(left=True, right=False),
        N.Strip(), N.Prepend("▁"), N.Replace(" ", "▁"), N.Replace(Regex(r"\s{2,}|[aeiou](?=n)"), "·"), N.ByteLevel(), N.BertNormalizer(),
        N.BertNormalizer(clean_text=False, handle_chinese_chars=False, strip_accents=True, lowercase=False), N.Precompiled(charsmap()),
    ]:
        sets["normalizers"].append({"config": flat(n), "out": [n.normalize_str(t) for t in TEXTS]})
    behaviours = ["removed", "isolated", "merged_with_previous", "merged_with_next", "contiguous"]
    patterns = [GPT2, LLAMA3, O200K, BLOOM, KIMI, DEEPSEEK, r"\s?\p{P}+", r"(?<=[a-z])(?=[A-Z])|_", r"(?>a+)b|\bt|[[:upper:]&&[^A]]+?[a-z]", r"\w{2,3}+|\h\h"]
    pre = [P.Split(Regex(p), "isolated") for p in patterns]
    pre += [P.Split(Regex(r"\s"), b) for b in behaviours] + [P.Split(Regex(r"\p{L}+"), b, invert=True) for b in behaviours]
    pre += [P.Split("a", b) for b in behaviours] + [P.Punctuation(b) for b in behaviours]
    pre += [
        P.ByteLevel(add_prefix_space=True), P.ByteLevel(add_prefix_space=False, use_regex=False), P.Whitespace(), P.WhitespaceSplit(), P.BertPreTokenizer(),
        P.Metaspace(), P.Metaspace(prepend_scheme="first", split=False), P.Metaspace(prepend_scheme="never"), P.Digits(True), P.Digits(False),
        P.CharDelimiterSplit(","), P.UnicodeScripts(), P.FixedLength(3), P.Sequence([P.WhitespaceSplit(), P.Metaspace(prepend_scheme="first")]),
        P.Sequence([P.Punctuation("contiguous"), P.ByteLevel(add_prefix_space=False), P.Digits(False), P.Split(Regex("[0-9][0-9][0-9]"), "isolated")]),
    ]
    for p in pre:
        sets["pre_tokenizers"].append({"config": flat(p), "out": [[s for s, _ in p.pre_tokenize_str(t)] for t in TEXTS]})
    tokens = [
        [], ["▁Hello", "▁wor", "ld", "▁", "!"], ["▁▁a", "▁"], ["<0xE4>", "<0xBD>", "<0xA0>", "▁a", "<0xFF>", "<0x41>", "b"], ["<0xE4>", "<0xBD>"],
        ["Ġhel", "lo", "âĤ", "¬", "Ġð", "x", "ï»"], ["un", "##der", "##stand", ".", "do", "not", "it", "'s", "n't", "'", "a"], ["a</w>", "b", "c</w>", "d</w>"],
        ["h", "h", "<pad>", "e", "e", "|", "<pad>", "|", "y"], [" ", "  a ", " b  "], ["é", "中", "Ġ中"],
    ]
    for d in [
        D.ByteLevel(), D.Metaspace(), D.Metaspace(prepend_scheme="never"), D.WordPiece(), D.WordPiece(prefix="##", cleanup=False), D.BPEDecoder(), D.CTC(),
        D.ByteFallback(), D.Fuse(), D.Strip(" ", 2, 0), D.Strip(" ", 0, 1), D.Replace("▁", " "), D.Replace(Regex("[aeiou]+"), "_"),
        D.Sequence([D.Replace("▁", " "), D.ByteFallback(), D.Fuse(), D.Strip(" ", 1, 0)]), D.Sequence([D.Fuse(), D.Replace("lo", "LO"), D.Strip(" ", 0, 2)]),
    ]:
        sets["decoders"].append({"config": flat(d), "tokens": tokens, "out": [decode(d, t) for t in tokens]})
    write(HERE.parents[2] / "runtime/text/tokenizer/testdata/components.json", {"texts": TEXTS, **sets})


GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_UP, _LOW, _C = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]", r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
O200K = rf"[^\r\n\p{{L}}\p{{N}}]?{_UP}*{_LOW}+{_C}|[^\r\n\p{{L}}\p{{N}}]?{_UP}+{_LOW}*{_C}|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
KIMI = r"[\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lo}\p{M}&&[^\p{Han}]]+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
BLOOM = r" ?[^(\s|[.,!?…。，、।۔،])]+"
DEEPSEEK = "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"

RULES = {"ﬁ": "fi", "ﬂ": "fl", "™": "TM", "\t": " ", "\n": " ", "\r": " ", "\u3000": " ", "\u00a0": " ", "e\u0301": "é", "A": "a", "…": "...", "\u200b": "", "\x01": "", "½": "1⁄2", "ｶ": "カ"}


def sentencepiece(kind, size, **options):
    rules = HERE / "rules.tsv"
    rules.write_text("".join(" ".join("%X" % ord(c) for c in k) + "\t" + " ".join("%X" % ord(c) for c in v) + "\n" for k, v in RULES.items()))
    out = io.BytesIO()
    spm.SentencePieceTrainer.train(
        sentence_iterator=iter(CORPUS), model_writer=out, model_type=kind, vocab_size=size, hard_vocab_limit=False, num_threads=1,
        minloglevel=2, shuffle_input_sentence=False, **{"normalization_rule_tsv": str(rules), **options},
    )
    rules.unlink()
    return out.getvalue()


def charsmap():
    from sentencepiece import sentencepiece_model_pb2 as pb
    m = pb.ModelProto()
    m.ParseFromString(sentencepiece("unigram", 300))
    return m.normalizer_spec.precompiled_charsmap


def write(path, value):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n")


def record(folder, tok):
    cases = []
    for t in TEXTS[::2] + TEXTS[13:14] + TEXTS[19:20]:
        ids = tok(t)["input_ids"]
        cases.append({
            "text": t, "ids": ids, "ids_plain": tok(t, add_special_tokens=False)["input_ids"], "decoded": tok.decode(ids),
            "decoded_skip_special": tok.decode(ids, skip_special_tokens=True),
        })
    pair = tok("Hello, world!", "12 dogs")
    special = {t: tok.convert_tokens_to_ids(t) for t in tok.all_special_tokens}
    write(HERE / folder / "expected.json", {"tokenizer": {"class": type(tok).__name__, "size": len(tok), "special_tokens": special, "pair": {"ids": pair["input_ids"], "types": pair.get("token_type_ids")}, "cases": cases}})


KEEP = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.json", "merges.txt", "vocab.txt", "added_tokens.json",
        "tokenizer.model", "sentencepiece.bpe.model", "source.spm", "target.spm", "spiece.model", "chat_template.jinja")


def save(folder, tok, drop=(), compact=True):
    """Saves, drops files, loads again as users do, records."""
    path = HERE / folder
    shutil.rmtree(path, ignore_errors=True)
    tok.save_pretrained(path)
    for f in path.iterdir():
        if f.name in drop or f.name not in KEEP:
            f.unlink()
        elif f.suffix == ".json" and compact:
            f.write_text(json.dumps(json.loads(f.read_text()), ensure_ascii=False, separators=(",", ":")) + "\n")
    record(folder, tf.AutoTokenizer.from_pretrained(path))


def bpe(pattern, size=330, **model):
    tok = Tokenizer(models.BPE())
    tok.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(pattern), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tok.train_from_iterator(CORPUS, trainers.BpeTrainer(vocab_size=size, show_progress=False, initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet())))
    state = json.loads(tok.to_str())["model"]
    return state["vocab"], [tuple(m) for m in state["merges"]]


def byte_level():
    vocab, merges = bpe(LLAMA3, 480)
    tok = Tokenizer(models.BPE(vocab=vocab, merges=merges, ignore_merges=True))
    tok.normalizer = normalizers.NFC()
    tok.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(LLAMA3), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tok.decoder = decoders.ByteLevel()
    tok.add_special_tokens([AddedToken("<s>"), AddedToken("</s>"), AddedToken("<mask>", lstrip=True), AddedToken("<|sp|>", rstrip=True)])
    tok.add_tokens([AddedToken("a", single_word=True), AddedToken("   ", normalized=True), AddedToken("e\u0301", normalized=True), AddedToken("aaa", normalized=False)])
    ids = {t: tok.token_to_id(t) for t in ("<s>", "</s>")}
    tok.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), processors.TemplateProcessing(single="<s> $A </s>", pair="<s> $A $B </s>", special_tokens=list(ids.items()))])
    fast = tf.PreTrainedTokenizerFast(tokenizer_object=tok, bos_token="<s>", eos_token="</s>", mask_token=AddedToken("<mask>", lstrip=True, special=True))
    fast.chat_template = "{% for m in messages %}{{ m['content'] }}{% endfor %}"
    save("models/byte-level", fast)
    return fast


def gpt2_files():
    vocab, merges = bpe(GPT2, 440)
    for name, cls, extra in (("gpt2-files", "GPT2TokenizerFast", ["<|endoftext|>"]), ("roberta-files", "RobertaTokenizerFast", ["<s>", "<pad>", "</s>", "<unk>", "<mask>"])):
        v = {t: i for i, t in enumerate(list(vocab) + extra)}
        tmp = HERE / "tmp"
        tmp.mkdir(exist_ok=True)
        (tmp / "vocab.json").write_text(json.dumps(v))
        (tmp / "merges.txt").write_text("#version: 0.2\n" + "".join(f"{a} {b}\n" for a, b in merges))
        save("models/" + name, getattr(tf, cls)(str(tmp / "vocab.json"), str(tmp / "merges.txt")), drop=("tokenizer.json",))
        shutil.rmtree(tmp)


def suffix_bpe():
    tok = Tokenizer(models.BPE(unk_token="<unk>", end_of_word_suffix="</w>", fuse_unk=False))
    tok.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Lowercase()])
    tok.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tok.train_from_iterator(CORPUS, trainers.BpeTrainer(vocab_size=260, show_progress=False, end_of_word_suffix="</w>", special_tokens=["<unk>", "<s>", "</s>"], limit_alphabet=60))
    tok.decoder = decoders.BPEDecoder("</w>")
    tok.post_processor = processors.BertProcessing(("</s>", 2), ("<s>", 1))
    save("models/suffix-bpe", tf.PreTrainedTokenizerFast(tokenizer_object=tok, unk_token="<unk>", bos_token="<s>", eos_token="</s>"))


def byte_fallback():
    data = sentencepiece("bpe", 420, byte_fallback=True, split_digits=True, normalization_rule_name="identity", normalization_rule_tsv="", remove_extra_whitespaces=False, character_coverage=0.98)
    tmp = HERE / "tmp"
    tmp.mkdir(exist_ok=True)
    (tmp / "tokenizer.model").write_bytes(data)
    save("models/byte-fallback", tf.LlamaTokenizerFast(vocab_file=str(tmp / "tokenizer.model"), legacy=True, add_prefix_space=True))
    shutil.rmtree(tmp)
    # the same vocabulary as llama2.c and GGUF hold it
    sp = spm.SentencePieceProcessor(model_proto=data)
    out = io.BytesIO()
    pieces = [({1: "\n<s>\n", 2: "\n</s>\n"}.get(i, sp.id_to_piece(i)).replace("▁", " ").encode(), sp.get_score(i)) for i in range(sp.get_piece_size())]
    out.write(struct.pack("<I", max(len(b) for b, _ in pieces)) + b"".join(struct.pack("<fI", s, len(b)) + b for b, s in pieces))
    kinds = [2 if sp.is_unknown(i) else 3 if sp.is_control(i) else 6 if sp.is_byte(i) else 1 for i in range(sp.get_piece_size())]
    meta = {"tokenizer.ggml.model": "llama", "tokenizer.ggml.tokens": [sp.id_to_piece(i) for i in range(sp.get_piece_size())],
            "tokenizer.ggml.scores": [sp.get_score(i) for i in range(sp.get_piece_size())], "tokenizer.ggml.token_type": kinds,
            "tokenizer.ggml.bos_token_id": 1, "tokenizer.ggml.eos_token_id": 2, "tokenizer.ggml.unknown_token_id": 0, "tokenizer.ggml.add_bos_token": True}
    for folder in ("llama2c", "gguf"):
        (HERE / folder / "byte-fallback").mkdir(parents=True, exist_ok=True)
    (HERE / "llama2c/byte-fallback/tokenizer.bin").write_bytes(out.getvalue())
    gguf(HERE / "gguf/byte-fallback/model.gguf", meta)


def unigram():
    for name, opts in (("unigram", {}), ("unigram-bytes", {"byte_fallback": True})):
        data = sentencepiece("unigram", 620 if opts else 330, character_coverage=0.99, **opts)
        from sentencepiece import sentencepiece_model_pb2 as pb
        m = pb.ModelProto()
        m.ParseFromString(data)
        tok = Tokenizer(models.Unigram([(p.piece, p.score) for p in m.pieces], unk_id=0, byte_fallback=bool(opts)))
        scheme = "first" if opts else "always"
        tok.normalizer = normalizers.Sequence([normalizers.Precompiled(m.normalizer_spec.precompiled_charsmap), normalizers.Strip(left=bool(opts), right=True), normalizers.Replace(Regex(" {2,}"), "▁")])
        tok.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme)
        tok.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace(prepend_scheme=scheme)]) if opts else decoders.Metaspace()
        tok.add_special_tokens(["<unk>", "<s>", "</s>"])
        tok.post_processor = processors.TemplateProcessing(single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", 2)])
        save("models/" + name, tf.PreTrainedTokenizerFast(tokenizer_object=tok, unk_token="<unk>", eos_token="</s>"))


def wordpiece():
    words = sorted({w for line in CORPUS for w, _ in pre_tokenizers.BertPreTokenizer().pre_tokenize_str(normalizers.BertNormalizer().normalize_str(line))})
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] + sorted({c for w in words for c in w} | {"##" + c for w in words for c in w}) + [w for w in words if len(w) > 3][::2] + ["##ing", "##ed", "##s"]
    pieces = list(dict.fromkeys(pieces))
    tmp = HERE / "tmp"
    tmp.mkdir(exist_ok=True)
    (tmp / "vocab.txt").write_text("".join(p + "\n" for p in pieces))
    save("models/wordpiece-files", tf.BertTokenizerFast(vocab_file=str(tmp / "vocab.txt"), clean_up_tokenization_spaces=True), drop=("tokenizer.json",))
    save("models/wordpiece", tf.BertTokenizerFast(vocab_file=str(tmp / "vocab.txt"), do_lower_case=False, clean_up_tokenization_spaces=True), drop=("vocab.txt",))
    shutil.rmtree(tmp)
    tok = tf.AutoTokenizer.from_pretrained(HERE / "models/wordpiece-files")
    shown = [p if p.startswith("[") and p.endswith("]") and len(p) > 2 else p[2:] if p.startswith("##") and len(p) > 2 else "▁" + p for p in pieces]
    folder = HERE / "gguf/wordpiece-files"
    folder.mkdir(parents=True, exist_ok=True)
    gguf(folder / "model.gguf", {"tokenizer.ggml.model": "bert", "tokenizer.ggml.tokens": shown, "tokenizer.ggml.token_type": [3 if i < 5 else 1 for i in range(len(pieces))],
         "tokenizer.ggml.bos_token_id": 2, "tokenizer.ggml.seperator_token_id": 3, "tokenizer.ggml.unknown_token_id": 1, "tokenizer.ggml.padding_token_id": 0})


def wordlevel():
    words = sorted({w for line in CORPUS for w, _ in pre_tokenizers.Whitespace().pre_tokenize_str(line)})
    tok = Tokenizer(models.WordLevel({w: i for i, w in enumerate(["<unk>"] + words)}, unk_token="<unk>"))
    tok.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Strip()])
    tok.pre_tokenizer = pre_tokenizers.Whitespace()
    save("models/wordlevel", tf.PreTrainedTokenizerFast(tokenizer_object=tok, unk_token="<unk>"))


def slow():
    tmp = HERE / "tmp"
    tmp.mkdir(exist_ok=True)
    data = sentencepiece("bpe", 300, character_coverage=0.99, user_defined_symbols="<b>,**")
    (tmp / "sp.model").write_bytes(data)
    sp = spm.SentencePieceProcessor(model_proto=data)
    vocab = {t: i for i, t in enumerate(["<s>", "<pad>", "</s>", "<unk>"])}
    for i in range(sp.get_piece_size()):
        vocab.setdefault(sp.id_to_piece(i), len(vocab))
    (tmp / "vocab.json").write_text(json.dumps(vocab))
    save("models/m2m100", tf.M2M100Tokenizer(str(tmp / "vocab.json"), str(tmp / "sp.model"), src_lang="de", tgt_lang="en"))
    src, tgt = sentencepiece("unigram", 200, bos_id=-1, eos_id=0, unk_id=1), sentencepiece("unigram", 240, bos_id=-1, eos_id=0, unk_id=1, normalization_rule_name="identity", normalization_rule_tsv="")
    vocab = {"</s>": 0, "<unk>": 1, ">>de<<": 2}
    for data in (src, tgt):
        p = spm.SentencePieceProcessor(model_proto=data)
        for i in range(p.get_piece_size()):
            vocab.setdefault(p.id_to_piece(i), len(vocab))
    vocab["<pad>"] = len(vocab)
    for name, value in (("source.spm", src), ("target.spm", tgt), ("vocab.json", json.dumps(vocab).encode())):
        (tmp / name).write_bytes(value)
    save("models/marian", tf.MarianTokenizer(*(str(tmp / n) for n in ("source.spm", "target.spm", "vocab.json")), source_lang="eng", target_lang="deu"))
    shutil.rmtree(tmp)


def byte_level_gguf():
    vocab, merges = bpe(GPT2, 440)
    tok = Tokenizer(models.BPE(vocab=vocab, merges=merges))
    tok.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)])
    tok.decoder = decoders.ByteLevel()
    tok.add_special_tokens(["<s>", "<mask>"])
    names = [tok.id_to_token(i) for i in range(tok.get_vocab_size())]
    folder = HERE / "gguf/smollm"
    shutil.rmtree(folder, ignore_errors=True)
    record("gguf/smollm", tf.PreTrainedTokenizerFast(tokenizer_object=tok, clean_up_tokenization_spaces=False))
    gguf(folder / "model.gguf", {"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "smollm", "tokenizer.ggml.tokens": names, "tokenizer.ggml.merges": [" ".join(m) for m in merges],
         "tokenizer.ggml.token_type": [3 if n in ("<s>", "<mask>") else 1 for n in names], "tokenizer.ggml.bos_token_id": names.index("<s>"), "tokenizer.ggml.add_bos_token": False})


def gguf(path, meta):
    """A GGUF file that holds metadata only."""
    def text(s):
        b = s.encode()
        return struct.pack("<Q", len(b)) + b

    def value(v):
        if isinstance(v, bool):
            return 7, struct.pack("<?", v)
        if isinstance(v, int):
            return 4, struct.pack("<I", v)
        if isinstance(v, float):
            return 6, struct.pack("<f", v)
        if isinstance(v, str):
            return 8, text(v)
        items = [value(x) for x in v]
        return 9, struct.pack("<IQ", items[0][0], len(items)) + b"".join(b for _, b in items)

    out = struct.pack("<IIQQ", 0x46554747, 3, 0, len(meta))
    for k, v in meta.items():
        kind, data = value(v)
        out += text(k) + struct.pack("<I", kind) + data
    path.write_bytes(out)


def edges():
    """Whole tokenizers on what tells apart readings of a component that agree on ordinary text."""
    vocab = {"<unk>": 0, "▁a": 1, "a": 2, "b": 3, "▁": 4, "\u1c90": 5, "\u200c": 6, "ab": 7}
    words = {"type": "WordLevel", "vocab": vocab, "unk_token": "<unk>"}
    pieces = {"<unk>": 0, "a": 1, **{f"<0x{b:02X}>": b + 2 for b in range(256)}}
    bpe = {"type": "BPE", "dropout": None, "unk_token": "<unk>", "continuing_subword_prefix": None, "end_of_word_suffix": "</w>",
           "fuse_unk": False, "byte_fallback": True, "ignore_merges": False, "vocab": pieces, "merges": []}
    meta = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": True}
    clean = {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": False, "strip_accents": False, "lowercase": False}
    cases = [
        ("first word behind a dropped blank", words, {"type": "Strip", "strip_left": True, "strip_right": False}, meta, ["a", " a"]),
        ("first word behind a dropped mark", words, {"type": "StripAccents"}, meta, ["a", "\u0301a"]),
        ("first word behind a dropped control", words, {"type": "Nmt"}, meta, ["a", "\x01a"]),
        ("first word behind what BERT drops", words, clean, meta, ["a", "\x01a"]),
        ("scripts newer than the tables", words, None, {"type": "UnicodeScripts"}, ["a\u1c90b", "a\ufffeb", "ab"]),
        ("joiners at edges of words", words, None, {"type": "Split", "pattern": {"Regex": "\\b"}, "behavior": "Isolated", "invert": False},
         ["a\u200cb", "a b"]),
        ("byte fallback of the spelled alphabet", bpe, None, {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True,
                                                             "use_regex": False}, ["a", "é a"]),
    ]
    out = []
    for name, model, normalizer, pre, texts in cases:
        d = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": normalizer, "pre_tokenizer": pre,
             "post_processor": None, "decoder": None, "model": model}
        tok = Tokenizer.from_str(json.dumps(d))
        out.append({"name": name, "tokenizer": d, "texts": texts, "ids": [tok.encode(t).ids for t in texts]})
    write(HERE / "edges.json", out)


if __name__ == "__main__":
    for make in (components, edges, byte_level, gpt2_files, suffix_bpe, byte_fallback, unigram, wordpiece, wordlevel, slow, byte_level_gguf):
        print(make.__name__)
        make()
