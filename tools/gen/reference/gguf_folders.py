"""What scripts that write folders as GGUF files share."""

import pathlib
import sys

import gguf


def decoder(w, c, kv_heads, dim):
    """Adds the sizes of a decoder of config.json, with KV heads and a head size of its own."""
    w.add_block_count(c["num_hidden_layers"])
    w.add_context_length(c["max_position_embeddings"])
    w.add_embedding_length(c["hidden_size"])
    w.add_head_count(c["num_attention_heads"])
    w.add_head_count_kv(kv_heads)
    w.add_key_length(dim)
    w.add_value_length(dim)
    w.add_layer_norm_rms_eps(c["rms_norm_eps"])


def yarn(w, rope):
    """Adds the keys of rope's scaling, if it is YaRN."""
    if rope.get("rope_type") == "yarn":
        w.add_rope_scaling_type(gguf.RopeScalingType.YARN)
        w.add_rope_scaling_factor(rope["factor"])
        w.add_rope_scaling_orig_ctx_len(rope["original_max_position_embeddings"])


def finish(w, vocab):
    """Adds a vocabulary that nothing reads, and writes the file."""
    w.add_tokenizer_model("gpt2")
    w.add_tokenizer_pre("default")
    w.add_token_list([f"t{i}" for i in range(vocab)])
    w.add_token_types([1] * vocab)
    for write in (w.write_header_to_file, w.write_kv_data_to_file, w.write_tensors_to_file, w.close):
        write()


def main(convert):
    """Converts the folders that the command line names; without names all with an expected.json."""
    src, dst, *names = sys.argv[1:]
    for name in names or sorted(p.parent.name for p in pathlib.Path(src).glob("*/expected.json")):
        convert(pathlib.Path(src) / name, pathlib.Path(dst) / name)
