"""Writes adapters and models as GGUF files, with the names and the order of rows of llama.cpp's converters."""

import gguf
import gguf_folders
import numpy as np

ARCHITECTURES = {"llama": gguf.MODEL_ARCH.LLAMA, "qwen2": gguf.MODEL_ARCH.QWEN2, "phi3": gguf.MODEL_ARCH.PHI3}


def pairs(w, heads):
    """Rows of a q or k matrix of Llama from transformers' halves of a head to adjacent pairs of rope."""
    return w.reshape(heads, 2, w.shape[0] // heads // 2, w.shape[1]).swapaxes(1, 2).reshape(w.shape)


def ordered(name, key, w, c):
    """The matrix, or its factor B, with rows in the order of GGUF."""
    if name == "llama" and key.endswith(("q_proj", "k_proj")):
        return pairs(w, c.num_attention_heads if key.endswith("q_proj") else c.num_key_value_heads)
    return w


def array(p, dtype):
    return np.ascontiguousarray(p.detach().numpy().astype(dtype))


def write(name, model, folder, dtype=np.float32):
    """Writes the adapter beside its folder."""
    c, arch = model.base_model.config, ARCHITECTURES[name]
    config = model.peft_config["default"]
    if config.use_rslora or config.alpha_pattern:
        raise ValueError("a GGUF file has one alpha, and the scale is alpha/rank")
    names = gguf.get_tensor_name_map(arch, c.num_hidden_layers)
    w = gguf.GGUFWriter(folder + ".gguf", gguf.MODEL_ARCH_NAMES[arch])
    w.add_type(gguf.GGUFType.ADAPTER)
    w.add_string(gguf.Keys.Adapter.TYPE, "lora")
    w.add_float32(gguf.Keys.Adapter.LORA_ALPHA, float(config.lora_alpha))
    for key in model.targeted_module_names:
        module, to = model.base_model.model.get_submodule(key), names.get_name(key)
        w.add_tensor(to + ".weight.lora_a", array(module.lora_A["default"].weight, dtype))
        w.add_tensor(to + ".weight.lora_b", array(ordered(name, key, module.lora_B["default"].weight, c), dtype))
    for step in (w.write_header_to_file, w.write_kv_data_to_file, w.write_tensors_to_file, w.close):
        step()


def write_llama(model, path):
    """Writes a whole Llama."""
    c = model.config
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, c.num_hidden_layers)
    w = gguf.GGUFWriter(path, "llama")
    gguf_folders.decoder(w, c.to_dict(), c.num_key_value_heads, c.head_dim)
    w.add_feed_forward_length(c.intermediate_size)
    w.add_rope_dimension_count(c.head_dim)
    w.add_rope_freq_base(c.rope_parameters["rope_theta"])
    w.add_vocab_size(c.vocab_size)
    for key, p in model.named_parameters():
        key = key.removesuffix(".weight")
        w.add_tensor(names.get_name(key) + ".weight", array(ordered("llama", key, p, c), np.float16 if p.ndim > 1 else np.float32))
    gguf_folders.finish(w, c.vocab_size)
