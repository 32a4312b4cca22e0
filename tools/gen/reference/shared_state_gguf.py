"""Writes folders of Gemma 4, DBRX and DeepSeek-V4 models as GGUF files, with the names and keys that llama.cpp's converter gives them,
beside what transformers computes. The converter itself needs the tokenizers of the published models.

    python shared_state_gguf.py IN OUT [NAME…]        needs gguf, safetensors
    go run ./tools/check/breadth OUT

IN holds folders of breadth.py, or is spec/testdata/families; OUT for it is spec/testdata/gguf.
"""

import json
import re
import shutil

import gguf
import gguf_folders
import numpy as np
from safetensors.numpy import load_file

GEMMA4 = {
    "input_layernorm.weight": "attn_norm.weight", "post_attention_layernorm.weight": "post_attention_norm.weight", "pre_feedforward_layernorm.weight": "ffn_norm.weight",
    "post_feedforward_layernorm.weight": "post_ffw_norm.weight", "post_feedforward_layernorm_1.weight": "post_ffw_norm_1.weight", "post_feedforward_layernorm_2.weight": "post_ffw_norm_2.weight",
    "pre_feedforward_layernorm_2.weight": "pre_ffw_norm_2.weight", "router.scale": "ffn_gate_inp.scale", "router.proj.weight": "ffn_gate_inp.weight", "router.per_expert_scale": "ffn_down_exps.scale",
    "experts.gate_up_proj": "ffn_gate_up_exps.weight", "experts.down_proj": "ffn_down_exps.weight", "layer_scalar": "layer_output_scale.weight", "per_layer_input_gate.weight": "inp_gate.weight",
    "per_layer_projection.weight": "proj.weight", "post_per_layer_input_norm.weight": "post_norm.weight", "mlp.gate_proj.weight": "ffn_gate.weight", "mlp.up_proj.weight": "ffn_up.weight",
    "mlp.down_proj.weight": "ffn_down.weight", "self_attn.q_norm.weight": "attn_q_norm.weight", "self_attn.k_norm.weight": "attn_k_norm.weight", "self_attn.q_proj.weight": "attn_q.weight",
    "self_attn.k_proj.weight": "attn_k.weight", "self_attn.v_proj.weight": "attn_v.weight", "self_attn.o_proj.weight": "attn_output.weight",
}
DBRX = {
    "norm_attn_norm.norm_1.weight": "attn_norm.weight", "norm_attn_norm.norm_2.weight": "attn_output_norm.weight", "norm_attn_norm.attn.Wqkv.weight": "attn_qkv.weight",
    "norm_attn_norm.attn.out_proj.weight": "attn_output.weight", "ffn.router.layer.weight": "ffn_gate_inp.weight", "ffn.experts.mlp.w1": "ffn_gate_exps.weight",
    "ffn.experts.mlp.v1": "ffn_up_exps.weight", "ffn.experts.mlp.w2": "ffn_down_exps.weight",
}
DEEPSEEK4 = {
    "hc_attn_fn": "hc_attn_fn.weight", "hc_attn_base": "hc_attn_base.weight", "hc_attn_scale": "hc_attn_scale.weight", "hc_ffn_fn": "hc_ffn_fn.weight", "hc_ffn_base": "hc_ffn_base.weight",
    "hc_ffn_scale": "hc_ffn_scale.weight", "attn.attn_sink": "attn_sinks.weight", "attn.wq_a.weight": "attn_q_a.weight", "attn.wq_b.weight": "attn_q_b.weight", "attn.q_norm.weight": "attn_q_a_norm.weight",
    "attn.wkv.weight": "attn_kv.weight", "attn.norm.weight": "attn_kv_a_norm.weight", "attn.wo_a.weight": "attn_output_a.weight", "attn.wo_b.weight": "attn_output_b.weight",
    "attn.compressor.ape": "attn_compressor_ape.weight", "attn.compressor.wkv.weight": "attn_compressor_kv.weight", "attn.compressor.wgate.weight": "attn_compressor_gate.weight",
    "attn.compressor.norm.weight": "attn_compressor_norm.weight", "attn.indexer.wq_b.weight": "indexer.attn_q_b.weight", "attn.indexer.weights_proj.weight": "indexer.proj.weight",
    "attn.indexer.compressor.ape": "indexer_compressor_ape.weight", "attn.indexer.compressor.wkv.weight": "indexer_compressor_kv.weight", "attn.indexer.compressor.wgate.weight": "indexer_compressor_gate.weight",
    "attn.indexer.compressor.norm.weight": "indexer_compressor_norm.weight", "attn_norm.weight": "attn_norm.weight", "ffn_norm.weight": "ffn_norm.weight", "ffn.gate.weight": "ffn_gate_inp.weight",
    "ffn.gate.bias": "exp_probs_b.bias", "ffn.gate.tid2eid": "ffn_gate_tid2eid.weight", "ffn.shared_experts.w1.weight": "ffn_gate_shexp.weight", "ffn.shared_experts.w2.weight": "ffn_down_shexp.weight",
    "ffn.shared_experts.w3.weight": "ffn_up_shexp.weight", "w1": "ffn_gate_exps.weight", "w2": "ffn_down_exps.weight", "w3": "ffn_up_exps.weight",
}
RATIOS = {"sliding_attention": 0, "compressed_sparse_attention": 4, "heavily_compressed_attention": 128}
OTHERS = {
    "model.embed_tokens.weight": "token_embd.weight", "model.norm.weight": "output_norm.weight", "lm_head.weight": "output.weight", "model.embed_tokens_per_layer.weight": "per_layer_token_embd.weight",
    "model.per_layer_model_projection.weight": "per_layer_model_proj.weight", "model.per_layer_projection_norm.weight": "per_layer_proj_norm.weight", "transformer.wte.weight": "token_embd.weight",
    "transformer.norm_f.weight": "output_norm.weight", "head.weight": "output.weight", "model.hc_head.hc_fn": "output_hc_fn.weight", "model.hc_head.hc_base": "output_hc_base.weight",
    "model.hc_head.hc_scale": "output_hc_scale.weight",
}


def gemma4(w, c):
    layers, shared, width = c["num_hidden_layers"], c.get("num_kv_shared_layers", 0), c["intermediate_size"]
    sliding = [word == "sliding_attention" for word in c["layer_types"]]
    full = c["per_layer_config"][str(sliding.index(False))]
    dim, rope = full["head_dim"], c["rope_parameters"]
    heads = c["num_key_value_heads"]
    gguf_folders.decoder(w, c, [heads if s else full["num_key_value_heads"] for s in sliding] if "num_key_value_heads" in full else heads, dim)
    w.add_feed_forward_length([width if i < layers - shared else 2 * width for i in range(layers)] if c.get("use_double_wide_mlp") else width)
    w.add_sliding_window(c["sliding_window"])
    w.add_array("gemma4.attention.sliding_window_pattern", sliding)
    for key, n in {"attention.key_length_swa": c["head_dim"], "attention.value_length_swa": c["head_dim"], "attention.shared_kv_layers": shared,
                   "embedding_length_per_layer_input": c["hidden_size_per_layer_input"] or 0, "rope.dimension_count": dim, "rope.dimension_count_swa": c["head_dim"]}.items():
        w.add_uint32("gemma4." + key, n)
    w.add_rope_freq_base(rope["full_attention"]["rope_theta"])
    w.add_float32("gemma4.rope.freq_base_swa", rope["sliding_attention"]["rope_theta"])
    if c.get("final_logit_softcapping"):
        w.add_final_logit_softcapping(c["final_logit_softcapping"])
    if c.get("enable_moe_block"):
        w.add_expert_count(c["num_experts"])
        w.add_expert_used_count(c["top_k_experts"])
    rotated = int(dim * rope["full_attention"]["partial_rotary_factor"] / 2)
    w.add_tensor("rope_freqs.weight", np.array([1.0] * rotated + [1e30] * (dim // 2 - rotated), dtype=np.float32))


def dbrx(w, c):
    attn, ffn = c["attn_config"], c["ffn_config"]
    w.add_block_count(c["n_layers"])
    w.add_context_length(c["max_seq_len"])
    w.add_embedding_length(c["d_model"])
    w.add_feed_forward_length(ffn["ffn_hidden_size"])
    w.add_head_count(c["n_heads"])
    w.add_head_count_kv(attn["kv_n_heads"])
    w.add_rope_freq_base(c["rope_parameters"]["rope_theta"])
    w.add_clamp_kqv(attn["clip_qkv"])
    w.add_expert_count(ffn["moe_num_experts"])
    w.add_expert_used_count(ffn["moe_top_k"])
    w.add_layer_norm_eps(1e-5)


def deepseek4(w, c):
    layers, rope = c["num_hidden_layers"], c["rope_parameters"]
    if c["compress_rates"] != {k: v for k, v in RATIOS.items() if v}:
        raise SystemExit(f"windows of {c['compress_rates']} rows: the format has 4 and 128")
    gguf_folders.decoder(w, c, 1, c["head_dim"])
    w.add_rope_freq_base(rope["main"]["rope_theta"])
    w.add_rope_dimension_count(int(c["head_dim"] * c["partial_rotary_factor"]))
    w.add_q_lora_rank(c["q_lora_rank"])
    w.add_sliding_window(c["sliding_window"])
    w.add_expert_count(c["n_routed_experts"])
    w.add_expert_used_count(c["num_experts_per_tok"])
    w.add_expert_shared_count(1)
    w.add_expert_feed_forward_length(c["moe_intermediate_size"])
    w.add_expert_weights_scale(c["routed_scaling_factor"])
    w.add_expert_weights_norm(True)
    w.add_uint32("deepseek4.expert_gating_func", 4)
    for name in ("exp", "shexp"):
        w.add_array("deepseek4.swiglu_clamp_" + name, [c["swiglu_limit"]] * layers)
    w.add_array("deepseek4.attention.compress_ratios", [RATIOS[t] for t in c["layer_types"]])
    for key, n in {"attention.indexer.head_count": c["index_n_heads"], "attention.indexer.key_length": c["index_head_dim"], "attention.indexer.top_k": c["index_topk"], "attention.output_group_count": c["o_groups"],
                   "attention.output_lora_rank": c["o_lora_rank"], "hyper_connection.count": c["hc_mult"], "hyper_connection.sinkhorn_iterations": c["hc_sinkhorn_iters"],
                   "hash_layer_count": c["mlp_layer_types"].count("hash_moe")}.items():
        w.add_uint32("deepseek4." + key, n)
    w.add_float32("deepseek4.attention.compress_rope_freq_base", rope["compress"]["rope_theta"])
    w.add_float32("deepseek4.hyper_connection.epsilon", c["hc_eps"])
    gguf_folders.yarn(w, rope["compress"])
    if rope["compress"]["rope_type"] == "yarn":
        w.add_float32("deepseek4.rope.scaling.yarn_beta_fast", rope["compress"]["beta_fast"])
        w.add_float32("deepseek4.rope.scaling.yarn_beta_slow", rope["compress"]["beta_slow"])


def stacked(weights):
    """The weights, with the experts of a layer in one tensor."""
    out, experts = {}, {}
    for name, x in weights.items():
        if one := re.match(r"(.*)\.experts\.(\d+)\.(w\d)\.weight", name):
            experts.setdefault(f"{one[1].removesuffix('.ffn')}.{one[3]}", {})[int(one[2])] = x
        else:
            out[name] = x
    return out | {name: np.stack([some[i] for i in range(len(some))]) for name, some in experts.items()}


def convert(folder, out):
    c = json.loads((folder / "config.json").read_text())
    arch, names, keys = {"gemma4_text": ("gemma4", GEMMA4, gemma4), "dbrx": ("dbrx", DBRX, dbrx), "deepseek_v4": ("deepseek4", DEEPSEEK4, deepseek4)}[c["model_type"]]
    out.mkdir(parents=True, exist_ok=True)
    w = gguf.GGUFWriter(out / "model.gguf", arch)
    keys(w, c)
    for name, x in stacked(load_file(folder / "model.safetensors")).items():
        x = x.astype(np.int32 if x.dtype == np.int64 else np.float32)
        if "experts.mlp" in name:
            x = x.reshape(c["ffn_config"]["moe_num_experts"], -1, c["d_model"])
            x = x.transpose(0, 2, 1) if name.endswith("w2") else x
        layer = re.match(r"(?:model\.layers|transformer\.blocks)\.(\d+)\.(.*)", name)
        w.add_tensor(f"blk.{layer[1]}.{names[layer[2]]}" if layer else OTHERS[name], np.ascontiguousarray(x))
    gguf_folders.finish(w, c["vocab_size"])
    shutil.copy(folder / "expected.json", out / "expected.json")


if __name__ == "__main__":
    gguf_folders.main(convert)
