"""Draws wide variants of models with draft layers, in the form of spec/testdata/draft.

    draft_variants.py OUT [--count N] [--seed 1]

Each folder of OUT gets a model, a reference (see spec/testdata/draft/draft_layers.py) and section, the section draft of its spec.
Check them with IFLOWC_DRAFTS=OUT go test ./spec -run TestDraftLayers.
"""

import argparse
import os
import random
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "..", "..", "spec", "testdata", "draft")]
import draft_layers as draft  # noqa: E402
from draft_layers import EAGLE, FULL, LINEAR, MTP, hybrids  # noqa: E402

families = draft.make  # spec/testdata/families/make.py


def options(rng, **choices):
    return {k: rng.choice(v) for k, v in choices.items()}


def deepseek(rng):
    n = rng.choice([1, 2, 3])
    groups = rng.choice([(1, 1), (2, 1), (2, 2)])
    yarn = dict(rope_type="yarn", rope_theta=10000.0, factor=4.0, original_max_position_embeddings=32, mscale=1.0, mscale_all_dim=rng.choice([0.0, 0.7]))
    extra = options(rng, q_lora_rank=[None, 8], n_shared_experts=[1, 2], norm_topk_prob=[True, False], routed_scaling_factor=[1.0, 2.5], rms_norm_eps=[1e-6, 1e-3], tie_word_embeddings=[True, False],
                    rope_interleave=[True, False], n_routed_experts=[4, 6], attention_bias=[True, False], hidden_act=["silu", "gelu"], rope_parameters=[None, yarn])
    base = {**MTP["deepseek_v3"][2], **extra}
    return ("DeepseekV3ForCausalLM", "DeepseekV3Config", {**base, "num_hidden_layers": n, "first_k_dense_replace": rng.choice(range(n + 1)), "n_group": groups[0], "topk_group": groups[1], "num_experts": None})


def indexed(rng, name):
    n = rng.choice([1, 2, 3])
    cls, config, params = MTP["deepseek_v32"]
    extra = options(rng, n_shared_experts=[1, 2], norm_topk_prob=[True, False], rms_norm_eps=[1e-6, 1e-3], index_topk=[5, 7, 30], index_n_heads=[14, 20])
    if name == "deepseek_v32":
        return cls, config, {**params, **extra, "num_hidden_layers": n, "first_k_dense_replace": rng.choice(range(n + 1))}
    kinds = ["full"] + [rng.choice(["full", "shared"]) for _ in range(n - 1)]
    return "GlmMoeDsaForCausalLM", "GlmMoeDsaConfig", {**params, **extra, "num_hidden_layers": n, "first_k_dense_replace": None, "indexer_types": kinds, "mlp_layer_types": [rng.choice(["dense", "sparse"]) for _ in range(n)]}


def glm(rng):
    n = rng.choice([1, 2, 3])
    extra = options(rng, use_qk_norm=[True, False], attention_bias=[True, False], n_shared_experts=[1, 2], norm_topk_prob=[True, False], routed_scaling_factor=[1.0, 1.5], rms_norm_eps=[1e-5, 1e-3],
                    tie_word_embeddings=[True, False], num_key_value_heads=[1, 2], num_attention_heads=[2, 4], head_dim=[8, 12], hidden_act=["silu", "gelu"])
    rope = dict(rope_type="default", rope_theta=rng.choice([10000.0, 500.0]), partial_rotary_factor=rng.choice([0.5, 1.0]))
    return ("Glm4MoeForCausalLM", "Glm4MoeConfig", {**MTP["glm4_moe"][2], **extra, "num_hidden_layers": n, "first_k_dense_replace": rng.choice(range(n + 1)), "rope_parameters": rope})


def qwen(rng, name):
    types = rng.choice([[LINEAR, FULL], [FULL, LINEAR], [LINEAR], [FULL], [LINEAR, LINEAR, FULL]])
    rope = dict(rope_type="default", rope_theta=rng.choice([10000.0, 300.0]), partial_rotary_factor=rng.choice([0.25, 0.5]))
    extra = options(rng, tie_word_embeddings=[True, False], rms_norm_eps=[1e-6, 1e-3], num_key_value_heads=[1, 2], head_dim=[8, 16], hidden_act=["silu", "gelu"], attention_bias=[True, False])
    cls, config, params = {"qwen3_next": MTP["qwen3_next"], "qwen3_5": MTP["qwen3_5"],
                           "qwen3_5_moe": ("Qwen3_5MoeForCausalLM", "Qwen3_5MoeTextConfig", hybrids.delta(intermediate_size=None, **hybrids.EXPERTS))}[name]
    if name == "qwen3_next":
        extra["norm_topk_prob"] = rng.choice([True, False])
    return cls, config, {**params, **extra, "layer_types": types, "num_hidden_layers": len(types), "rope_parameters": rope}


def eagle(rng):
    layers = rng.choice([5, 7, 8])
    cls, config = rng.choice([("LlamaForCausalLM", "LlamaConfig"), ("Qwen3ForCausalLM", "Qwen3Config"), ("Qwen2ForCausalLM", "Qwen2Config"), ("MistralForCausalLM", "MistralConfig"), ("Glm4ForCausalLM", "Glm4Config")])
    target = hybrids.llm(num_hidden_layers=layers, **options(rng, num_attention_heads=[2, 4], num_key_value_heads=[1, 2], tie_word_embeddings=[True, False], head_dim=[8]))
    own = rng.random() < 0.5
    hidden = rng.choice([16, 32]) if own else 24
    heads = rng.choice([2, 4])
    head = dict(hidden_size=hidden, intermediate_size=rng.choice([20, 40]), num_attention_heads=heads, num_key_value_heads=rng.choice([1, heads]), head_dim=rng.choice([6, 8, 16]),
                rope_theta=rng.choice([10000.0, 500.0]), attention_bias=rng.random() < 0.3, mlp_bias=rng.random() < 0.3, hidden_act=rng.choice(["silu", "gelu_pytorch_tanh"]), rms_norm_eps=rng.choice([1e-5, 1e-3]))
    if rng.random() < 0.3:
        head["rope_scaling"] = dict(rope_type="linear", factor=2.0)
    form = rng.choice(["speculators", "midlayer"])
    spec = dict(model=(cls, config), target=target, head=head, vocab=rng.choice([None, 16, 32, 27]), names=rng.choice(["midlayer", "layers.0"]), own_embed=own, norm_before_residual=rng.random() < 0.4, form=form)
    if rng.random() < 0.6:
        spec["taps"] = sorted(rng.sample(range(layers), 3))
        if form != "speculators" and 0 in spec["taps"]:
            spec["taps"][0] = 1 if 1 not in spec["taps"] else 0
    return spec


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("out")
    p.add_argument("--count", type=int, default=8, help="variants of each kind")
    p.add_argument("--seed", type=int, default=1)
    args = p.parse_args()
    draft.tf.logging.set_verbosity_error()
    rng = random.Random(args.seed)
    os.makedirs(args.out, exist_ok=True)
    for i in range(args.count):
        families.VOCAB = rng.choice([40, 43, 64])
        for name, make in (("deepseek_v3", deepseek), ("glm4_moe", glm), *((n, lambda r, n=n: qwen(r, n)) for n in ("qwen3_next", "qwen3_5", "qwen3_5_moe")),
                           *((n, lambda r, n=n: indexed(r, n)) for n in ("deepseek_v32", "glm_moe_dsa"))):
            out = os.path.join(args.out, f"{name}_{args.seed}_{i}")
            draft.mtp(name, make(rng), own=rng.random() < 0.5, seed=args.seed * 100 + i, out=out)
            section(out, "{kind: mtp}")
        out = os.path.join(args.out, f"eagle3_{args.seed}_{i}")
        draft.eagle("eagle3", eagle(rng), seed=args.seed * 100 + i, out=out)
        section(out, "{file: head}")


def section(out, text):
    with open(os.path.join(out, "section"), "w") as f:
        f.write(text)


if __name__ == "__main__":
    main()
