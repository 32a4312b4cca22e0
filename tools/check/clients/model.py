"""Writes the folder of a tiny model for conversations of 32,768 tokens, without weights.

    python3 model.py OUT

The model is a Llama of two layers. Its tokenizer is byte-level BPE with 8,192 tokens, trained on the repository's
documentation and Go code, so that prompts in English, JSON and code have few tokens. Its chat template, qwen.jinja, has
tools and reasoning in the form of Qwen's models. model.safetensors is a header with a hole behind it: BIN weights --random
writes the weights."""

import json
import pathlib
import struct
import sys

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent.parent
VOCAB, WIDTH, HEADS, KV_HEADS, FFN, LAYERS, CONTEXT = 8192, 128, 2, 1, 256, 2, 32768
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]


def tokenizer(out):
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    t.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=VOCAB, special_tokens=[AddedToken(s, special=True) for s in SPECIAL], initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
    files = sorted([*ROOT.glob("docs/*.md"), *ROOT.glob("runtime/http/**/*.go"), *ROOT.glob("docs/reference/*.md")])
    t.train([str(f) for f in files], trainer)
    if t.get_vocab_size() != VOCAB:
        sys.exit(f"the tokenizer has {t.get_vocab_size()} tokens, {VOCAB} expected: train it on more text")
    t.save(str(out / "tokenizer.json"))
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|im_end|>", "chat_template": (HERE / "qwen.jinja").read_text()}
    (out / "tokenizer_config.json").write_text(json.dumps(settings))


def shapes():
    head = WIDTH // HEADS
    yield "model.embed_tokens.weight", [VOCAB, WIDTH]
    for layer in range(LAYERS):
        for name, shape in {
            "input_layernorm": [WIDTH], "self_attn.q_proj": [WIDTH, WIDTH], "self_attn.k_proj": [KV_HEADS * head, WIDTH], "self_attn.v_proj": [KV_HEADS * head, WIDTH],
            "self_attn.o_proj": [WIDTH, WIDTH], "post_attention_layernorm": [WIDTH], "mlp.gate_proj": [FFN, WIDTH], "mlp.up_proj": [FFN, WIDTH], "mlp.down_proj": [WIDTH, FFN],
        }.items():
            yield f"model.layers.{layer}.{name}.weight", shape
    yield "model.norm.weight", [WIDTH]


def tensors(out):
    header, at = {}, 0
    for name, shape in shapes():
        size = 2
        for n in shape:
            size *= n
        header[name] = {"dtype": "F16", "shape": shape, "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    with open(out / "model.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(8 + len(text) + at)


def main():
    out = pathlib.Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    config = {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu", "hidden_size": WIDTH, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS,
        "num_key_value_heads": KV_HEADS, "intermediate_size": FFN, "vocab_size": VOCAB, "max_position_embeddings": CONTEXT, "rms_norm_eps": 1e-5, "rope_theta": 500000.0,
        "tie_word_embeddings": True, "bos_token_id": 0, "eos_token_id": 2,
    }
    (out / "config.json").write_text(json.dumps(config))
    tokenizer(out)
    tensors(out)


main()
