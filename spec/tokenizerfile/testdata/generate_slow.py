"""Writes slow.json: folders without tokenizer.json, as transformers reads them.

Usage: python generate_slow.py   (needs what generate.py needs)
Every folder holds one small SentencePiece model or vocab.txt and says in config.json or tokenizer_config.json
which class reads it, nothing else.
"""
import base64, json, pathlib, tempfile

import transformers as tf

import generate as g

TEXTS = ["", "Hello,  world! ", "the <mask> dog  <mask>", "a  [MASK] b</s> <unk> x[CLS]", "El niño comió pan; \u0130 12, 3,",
         "<extra_id_1> a <mask_1>b <unk_5>", "``q'' don't … ﬁ\n天", "__java__ en_XX x </s>NOTUSED"]

MODELS = {
    "fairseq": g.sentencepiece("unigram", 130, character_coverage=0.98),
    "t5": g.sentencepiece("unigram", 130, character_coverage=0.98, pad_id=0, eos_id=1, unk_id=2, bos_id=-1),
    "albert": g.sentencepiece("unigram", 130, character_coverage=0.98, pad_id=0, unk_id=1, bos_id=-1, eos_id=-1, control_symbols="[CLS],[SEP],[MASK]"),
    "rembert": g.sentencepiece("bpe", 150, character_coverage=0.98, pad_id=0, eos_id=1, unk_id=2, bos_id=3, user_defined_symbols="[CLS],[SEP],[MASK]"),
    "mpnet": "\n".join(["<s>", "<pad>", "</s>", "<unk>", "[UNK]", *"abcdehlnot.,!'", "##e", "##l", "##o", "the", "<mask>"]).encode() + b"\n",
}

# name: (model, file, config.json, tokenizer_config.json)
BPE, PIECES = "sentencepiece.bpe.model", "spiece.model"
FOLDERS = {
    "albert": ("albert", PIECES, {"model_type": "albert"}, None),
    "camembert": ("fairseq", BPE, {"model_type": "camembert"}, None),
    "pegasus": ("t5", PIECES, {"model_type": "pegasus"}, None),
    "big_bird": ("rembert", PIECES, {"model_type": "big_bird"}, None),
    "rembert": ("rembert", "sentencepiece.model", {"model_type": "rembert"}, None),
    "t5": ("t5", PIECES, {"model_type": "t5"}, None),
    "xlm-roberta": ("fairseq", BPE, {"model_type": "xlm-roberta"}, None),
    "mbart": ("fairseq", BPE, {"model_type": "mbart"}, None),
    "mbart50": ("fairseq", BPE, None, {"tokenizer_class": "MBart50Tokenizer", "src_lang": "de_DE"}),
    "nllb": ("fairseq", BPE, {"model_type": "nllb-moe"}, None),
    "plbart": ("fairseq", BPE, {"model_type": "plbart"}, None),
    "plbart-multi": ("fairseq", BPE, None, {"tokenizer_class": "PLBartTokenizer", "language_codes": "multi", "src_lang": "java"}),
    "bert-generation": ("rembert", PIECES, {"model_type": "bert-generation"}, None),
    "mpnet": ("mpnet", "vocab.txt", {"model_type": "mpnet"}, None),
}


def folder(name):
    model, file, config, tokenizer = FOLDERS[name]
    with tempfile.TemporaryDirectory() as tmp:
        path = pathlib.Path(tmp)
        (path / file).write_bytes(MODELS[model])
        files = {}
        for key, value in (("config.json", config), ("tokenizer_config.json", tokenizer)):
            if value:
                files[key] = json.dumps(value)
                (path / key).write_text(files[key])
        tok = tf.AutoTokenizer.from_pretrained(path)
        ids = [tok(t)["input_ids"] for t in TEXTS]
        pair = tok(TEXTS[1], TEXTS[2])
        return {"name": name, "model": model, "file": file, "files": files, "size": len(tok), "ids": ids,
                "decoded": [tok.decode(i) for i in ids], "skipped": [tok.decode(i, skip_special_tokens=True) for i in ids],
                "pair": pair["input_ids"], "types": pair.get("token_type_ids")}


if __name__ == "__main__":
    g.write(g.HERE / "slow.json", {"texts": TEXTS, "models": {k: base64.b64encode(v).decode() for k, v in MODELS.items()},
                                   "folders": [folder(name) for name in FOLDERS]})
