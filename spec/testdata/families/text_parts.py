"""The text models of vision-language models for make.py, in the same form as its tables."""

import newer_encoders  # noqa: F401  which adds the folder of the next to the path
from text_part_variants import flat, rope, whole

VISION = dict(depth=1, hidden_size=4, intermediate_size=4, num_heads=1, patch_size=1, out_hidden_size=16)
TEXT = dict(hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=1, max_position_embeddings=64)

MODELS = {
    "qwen2_5_vl": ("Qwen2_5_VLForConditionalGeneration", whole("Qwen2_5_VLConfig", fullatt_block_indexes=[0], **VISION), dict(TEXT, **rope([1, 2, 1]))),
    "qwen3_vl_moe": ("Qwen3VLMoeForConditionalGeneration", whole("Qwen3VLMoeConfig", num_position_embeddings=4, deepstack_visual_indexes=[0], **VISION), dict(TEXT, head_dim=8, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=12, **rope([24, 20, 20], mrope_interleaved=True))),
    "ernie4_5_vl_moe": ("Ernie4_5_VLMoeForConditionalGeneration", whole("Ernie4_5_VLMoeConfig", depth=1, hidden_size=4, num_heads=1, patch_size=1, intermediate_size=4), dict(TEXT, moe_num_experts=4, moe_k=2, moe_intermediate_size=[12, 8], **rope([1, 1, 2]))),
}


def published_config(name, config):
    """Qwen2.5-VL's configuration as it was published, without a text_config."""
    if name == "qwen2_5_vl":
        config.update(flat(config))
