"""A Llama model in a GGUF file as transformers' own class and tokenizer, with float32 weights."""

import numpy as np
import torch
from gguf import GGUFReader
from gguf.quants import dequantize
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

CONTROL = 3  # token type of special tokens in GGUF

_LAYER = {
    "attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj", "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


def _name(gguf: str) -> str:
    """The transformers name of a GGUF tensor."""
    if gguf.startswith("blk."):
        _, layer, kind, _ = gguf.split(".")
        return f"model.layers.{layer}.{_LAYER[kind]}.weight"
    return {"token_embd.weight": "model.embed_tokens.weight", "output_norm.weight": "model.norm.weight",
            "output.weight": "lm_head.weight"}[gguf]


def _halves(w: np.ndarray, heads: int) -> np.ndarray:
    """Rows of a q or k matrix [heads * dim, hidden] from adjacent rope pairs to the two halves transformers turns."""
    rows, cols = w.shape
    return w.reshape(heads, rows // heads // 2, 2, cols).swapaxes(1, 2).reshape(rows, cols)


def load(path: str) -> tuple[LlamaForCausalLM, PreTrainedTokenizerFast]:
    """The model (float32) and its tokenizer."""
    reader = GGUFReader(path)
    field = lambda key: reader.fields[key].contents()
    config = LlamaConfig(
        vocab_size=field("llama.vocab_size"), hidden_size=field("llama.embedding_length"), num_hidden_layers=field("llama.block_count"),
        intermediate_size=field("llama.feed_forward_length"), num_attention_heads=field("llama.attention.head_count"),
        num_key_value_heads=field("llama.attention.head_count_kv"), max_position_embeddings=field("llama.context_length"),
        rms_norm_eps=field("llama.attention.layer_norm_rms_epsilon"), rope_theta=field("llama.rope.freq_base"),
        tie_word_embeddings=all(t.name != "output.weight" for t in reader.tensors),
        bos_token_id=field("tokenizer.ggml.bos_token_id"), eos_token_id=field("tokenizer.ggml.eos_token_id"))
    state = {}
    for t in reader.tensors:
        w = dequantize(t.data, t.tensor_type).astype(np.float32)
        if t.name.endswith("attn_q.weight"):
            w = _halves(w, config.num_attention_heads)
        elif t.name.endswith("attn_k.weight"):
            w = _halves(w, config.num_key_value_heads)
        state[_name(t.name)] = torch.from_numpy(np.ascontiguousarray(w))
    with torch.device("meta"):
        model = LlamaForCausalLM._from_config(config)
    model = model.to_empty(device="cpu")
    model.model.rotary_emb.__init__(config)  # to_empty dropped its frequencies
    missing, unexpected = model.load_state_dict(state, strict=False)
    model.tie_weights()
    if unexpected or set(missing) - {"lm_head.weight"}:
        raise ValueError(f"{path}: missing {missing}, unexpected {unexpected}")
    tok = tokenizer(field)
    if "tokenizer.chat_template" in reader.fields:
        tok.chat_template = field("tokenizer.chat_template")
    return model.float().eval(), tok


def tokenizer(field) -> PreTrainedTokenizerFast:
    """SmolLM's: every digit alone, then GPT-2's byte-level BPE; no token is added in front."""
    if field("tokenizer.ggml.pre") != "smollm":
        raise ValueError(f"pre-tokenizer is {field('tokenizer.ggml.pre')}, only smollm is known here")
    tokens, types = field("tokenizer.ggml.tokens"), field("tokenizer.ggml.token_type")
    merges = [tuple(m.split(" ")) for m in field("tokenizer.ggml.merges")]
    tok = Tokenizer(models.BPE(vocab={t: i for i, t in enumerate(tokens)}, merges=merges))
    tok.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True),
                                                 pre_tokenizers.ByteLevel(add_prefix_space=False)])
    tok.decoder = decoders.ByteLevel()
    tok.add_special_tokens([AddedToken(t, normalized=False, special=True) for t, kind in zip(tokens, types) if kind == CONTROL])
    name = lambda key: tokens[field(f"tokenizer.ggml.{key}_token_id")]
    return PreTrainedTokenizerFast(tokenizer_object=tok, bos_token=name("bos"), eos_token=name("eos"), unk_token=name("unknown"),
                                   pad_token=name("padding"), clean_up_tokenization_spaces=False)
