"""The text models of vision-language models, for breadth.py: whole models that read text alone, so that
all axes of their rope have the same position."""

import json
import re

import torch
import transformers as tf
from safetensors.torch import load_file, save_file

FULL, SLIDE = "full_attention", "sliding_attention"
QWEN = dict(depth=1, hidden_size=16, intermediate_size=16, num_heads=2, patch_size=4, out_hidden_size=48)


def whole(name, audio=None, **vision):
    """A function that makes the configuration of a whole model from the text's parameters."""
    def config(**params):
        tied = {k: v for k, v in params.items() if k == "tie_word_embeddings"}
        return getattr(tf, name)(text_config=params, vision_config=vision, **tied, **({"audio_config": audio} if audio else {}))
    return config


def rope(section, **kw):
    return dict(rope_parameters=dict(dict(rope_type="default", rope_theta=10000.0, mrope_section=section), **kw))


def rewritten(config=lambda c: c, name=lambda n: n):
    """Rewrites config.json and the names of a folder's tensors; a tensor without a name is dropped."""
    def after(out):
        path = out / "config.json"
        path.write_text(json.dumps(config(json.loads(path.read_text())), indent=2) + "\n")
        weights = {name(k): t for k, t in load_file(out / "model.safetensors").items()}
        save_file({k: t for k, t in weights.items() if k}, out / "model.safetensors", metadata={"format": "pt"})
    return after


def alone(c):
    return dict(c["text_config"], tie_word_embeddings=c["tie_word_embeddings"])


def text_name(n):
    """The name in a text model with an output matrix."""
    return None if "visual" in n else re.sub(r"^model\.(language_model\.)?", "", n)


def flat(c):
    """What was published before transformers 4.52: the text's keys at the top level."""
    text = dict(c.pop("text_config"), model_type=c["model_type"])
    parameters = text.pop("rope_parameters")
    scaling = {k: v for k, v in parameters.items() if k not in ("rope_theta", "rope_type", "partial_rotary_factor")}
    kind = parameters["rope_type"]
    text.update(rope_theta=parameters["rope_theta"], rope_scaling=dict(scaling, type="mrope" if kind == "default" else kind))
    return {**text, **c}


def copies(c):
    """What transformers 4.52 wrote: the text's keys in both places."""
    return {**c["text_config"], **c}


def older_name(n):
    return re.sub(r"^model\.visual\.", "visual.", re.sub(r"^model\.language_model\.", "model.", n))


def nested_name(n):
    return re.sub(r"^(model|lm_head)\.", r"language_model.\1.", n.replace("model.language_model.", "model."))


ALONE, FLAT, COPIES = rewritten(alone, text_name), rewritten(flat, older_name), rewritten(copies)


def add(family, llm):
    """Adds the families with breadth_variants' functions."""
    qwen(family, llm)
    glm(family, llm)
    paddle(family, llm)
    ernie(family, llm)
    others(family, llm)


def qwen(family, llm):
    base = llm(**rope([2, 3, 1]))
    window = dict(use_sliding_window=True, sliding_window=8, max_window_layers=1)
    def variants(**kw):
        return dict(plain={}, tied=dict(tie_word_embeddings=True), alone=dict(_after=ALONE), alonetied=dict(_after=ALONE, tie_word_embeddings=True), yarn=rope([2, 3, 1], rope_type="yarn", factor=4.0, original_max_position_embeddings=32), linear=rope([2, 3, 1], rope_type="linear", factor=4.0),
                    dynamic=dict(rope([2, 3, 1], rope_type="dynamic", factor=2.0), max_position_embeddings=32, _cached=True), mha=dict(num_key_value_heads=4), mqa=dict(num_key_value_heads=1), act=dict(hidden_act="gelu"), eps=dict(rms_norm_eps=1e-2), theta=rope([2, 3, 1], rope_theta=500.0), long=dict(_prompt=150, _steps=4, max_position_embeddings=256), **kw)
    older = dict(window=window, types=dict(window, layer_types=[SLIDE, FULL]), flat=dict(_after=FLAT), flatyarn=dict(rope([2, 3, 1], rope_type="yarn", factor=4.0, original_max_position_embeddings=32), _after=FLAT), copies=dict(_after=COPIES), nested=dict(_after=rewritten(name=nested_name)), many=rope([1, 1, 1, 1, 1, 1]))
    family("qwen2_vl", "Qwen2VLForConditionalGeneration", whole("Qwen2VLConfig", depth=1, embed_dim=16, hidden_size=48, num_heads=2, patch_size=4), base, **variants(**older))
    family("qwen2_5_vl", "Qwen2_5_VLForConditionalGeneration", whole("Qwen2_5_VLConfig", fullatt_block_indexes=[0], **QWEN), base, **variants(**older))
    three = whole("Qwen3VLConfig", num_position_embeddings=16, deepstack_visual_indexes=[0], **QWEN)
    newer = dict(bias=dict(attention_bias=True), wide=dict(head_dim=20, **rope([4, 3, 3])), flag=rope([2, 2, 2], mrope_interleaved=True), real=rope([24, 20, 20], mrope_interleaved=True), none=dict(rope_parameters=dict(rope_type="default", rope_theta=10000.0)), unset=dict(rope_parameters=None))
    family("qwen3_vl", "Qwen3VLForConditionalGeneration", three, dict(base, head_dim=12), **variants(**newer))
    experts = dict(num_hidden_layers=3, num_experts=6, num_experts_per_tok=2, moe_intermediate_size=20)
    three = whole("Qwen3VLMoeConfig", num_position_embeddings=16, deepstack_visual_indexes=[0], **QWEN)
    def in_out(out):
        path = out / "model.safetensors"
        save_file({k: t.transpose(1, 2).contiguous() if ".mlp.experts." in k else t for k, t in load_file(path).items()}, path, metadata={"format": "pt"})
    family("qwen3_vl_moe", "Qwen3VLMoeForConditionalGeneration", three, dict(base, head_dim=12, **experts), **variants(step=dict(decoder_sparse_step=2), dense=dict(mlp_only_layers=[0]), published=dict(_after=in_out), derived=dict(head_dim=None, **rope([3, 3, 0])), square=dict(moe_intermediate_size=24), all=dict(num_experts_per_tok=6), bias=dict(attention_bias=True)))


def glm(family, llm):
    base = llm(num_hidden_layers=3, **rope([2, 3, 1]))
    vision = dict(QWEN, image_size=16)
    half = rope([1, 1, 1], partial_rotary_factor=0.5)
    common = dict(plain={}, half=half, tied=dict(tie_word_embeddings=True), alone=dict(_after=ALONE), alonehalf=dict(half, _after=ALONE), mha=dict(num_key_value_heads=4), yarn=rope([2, 3, 1], rope_type="yarn", factor=4.0, original_max_position_embeddings=32), eps=dict(rms_norm_eps=1e-2), theta=rope([2, 3, 1], rope_theta=500.0), mqa=dict(num_key_value_heads=1), long=dict(_prompt=150, _steps=4, max_position_embeddings=256))
    def scaling(c):
        parameters = c["text_config"].pop("rope_parameters")
        c["text_config"].update(rope_theta=parameters.pop("rope_theta"), partial_rotary_factor=parameters.pop("partial_rotary_factor", 1.0), rope_scaling=dict(parameters, type=parameters["rope_type"]))
        return c
    published = dict(published=dict(half, _after=rewritten(scaling)))
    family("glm4v", "Glm4vForConditionalGeneration", whole("Glm4vConfig", **vision), base, **common, **published, act=dict(hidden_act="gelu"))
    family("glm_ocr", "GlmOcrForConditionalGeneration", whole("GlmOcrConfig", **vision), base, **common, **published, wide=dict(head_dim=16, **rope([4, 2, 2])))
    moe = dict(n_routed_experts=8, num_experts_per_tok=3, moe_intermediate_size=24, first_k_dense_replace=1)
    sections = rope([1, 1, 1])
    family("glm4v_moe", "Glm4vMoeForConditionalGeneration", whole("Glm4vMoeConfig", **vision), dict(base, **moe, **sections), **{**common, "half": {}, "yarn": rope([1, 1, 1], rope_type="yarn", factor=4.0, original_max_position_embeddings=32), "theta": rope([1, 1, 1], rope_theta=500.0)}, **published,
           full=rope([2, 3, 1], partial_rotary_factor=1.0), groups=dict(n_group=4, topk_group=2, routed_scaling_factor=2.5), raw=dict(norm_topk_prob=False), shared=dict(n_shared_experts=2), nobias=dict(attention_bias=False), dense=dict(first_k_dense_replace=2), sparse=dict(first_k_dense_replace=0), wide=dict(head_dim=16, **rope([2, 1, 1])))


def paddle(family, llm):
    base = llm(head_dim=12, **rope([2, 3, 1]))
    config = whole("PaddleOCRVLConfig", hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2, image_size=16, patch_size=4)
    family("paddleocr_vl", "PaddleOCRVLForConditionalGeneration", config, base, plain={}, untied=dict(tie_word_embeddings=False), bias=dict(use_bias=True), flat=dict(_after=FLAT), alone=dict(_after=rewritten(alone, lambda n: None if n.startswith("mlp_AR") else text_name(n))), mha=dict(num_key_value_heads=4), wide=dict(head_dim=20, **rope([4, 3, 3])), yarn=rope([2, 3, 1], rope_type="yarn", factor=4.0, original_max_position_embeddings=32), eps=dict(rms_norm_eps=1e-2), act=dict(hidden_act="gelu"))


def ernie(family, llm):
    base = llm(num_hidden_layers=4, moe_num_experts=6, moe_k=2, moe_intermediate_size=[24, 16], **rope([2, 2, 2]))
    config = whole("Ernie4_5_VLMoeConfig", depth=1, hidden_size=16, num_heads=2, patch_size=4, intermediate_size=16)
    def published(c):
        """The keys of the authors' code: one number each for text and for images."""
        c = flat(c)
        del c["mlp_layer_types"], c["rope_scaling"]
        return dict(c, model_type="ernie4_5_moe_vl", moe_num_experts=[6, 6], moe_layer_start_index=[2, 2], moe_layer_end_index=[5, 4], moe_layer_interval=1, rope_3d=True, freq_allocation=2)
    def text(out):
        """As transformers saves the text model, with an output matrix."""
        path = out / "model.safetensors"
        w = {re.sub(r"^model\.", "", k): t for k, t in load_file(path).items() if "vision" not in k and "resampler" not in k}
        saved = {k: t for k, t in w.items() if not re.search(r"mlp\.(experts|gate|moe_statics)\.", k)}
        for i in (k.split(".")[1] for k in w if k.endswith("mlp.gate.weight")):
            mlp = f"layers.{i}.mlp."
            expert = lambda j, part: w[f"{mlp}experts.{j}.{part}_proj.weight"]
            saved[mlp + "text_moe.gate.weight"] = w[mlp + "gate.weight"].T.contiguous()
            saved[mlp + "text_moe.gate.moe_statics.e_score_correction_bias"] = w[mlp + "moe_statics.e_score_correction_bias"][:1].contiguous()
            saved[mlp + "text_moe.experts.gate_up_proj"] = torch.stack([torch.cat([expert(j, "gate"), expert(j, "up")]) for j in range(6)])
            saved[mlp + "text_moe.experts.down_proj"] = torch.stack([expert(j, "down") for j in range(6)])
        save_file(saved, path, metadata={"format": "pt"})
        path = out / "config.json"
        path.write_text(json.dumps(alone(json.loads(path.read_text())), indent=2) + "\n")
    family("ernie4_5_vl_moe", "Ernie4_5_VLMoeForConditionalGeneration", config, base, plain={}, untied=dict(tie_word_embeddings=False), bias=dict(use_bias=True), none=dict(moe_num_shared_experts=0), types=dict(mlp_layer_types=["sparse", "dense", "sparse", "dense"]), sections=rope([1, 1, 4]), wide=dict(head_dim=20, **rope([4, 4, 2])), mha=dict(num_key_value_heads=4), eps=dict(rms_norm_eps=1e-2), act=dict(hidden_act="gelu"),
           same=dict(moe_intermediate_size=[24, 24]), all=dict(moe_k=6), one=dict(moe_k=1), published=dict(mlp_layer_types=["dense", "dense", "sparse", "sparse"], _after=rewritten(published)), alone=dict(_after=text), alonebias=dict(use_bias=True, tie_word_embeddings=False, _after=text), long=dict(_prompt=150, _steps=4, max_position_embeddings=256))


def others(family, llm):
    audio = dict(d_model=16, encoder_layers=1, encoder_attention_heads=2, encoder_ffn_dim=16, output_dim=48, num_mel_bins=8)
    base = llm(**rope([2, 3, 1]))
    spoken = rewritten(lambda c: dict(model_type=c["model_type"].removesuffix("_thinker"), thinker_config=c, talker_config={"model_type": "none"}), lambda n: "thinker." + n)
    omni = dict(plain={}, tied=dict(tie_word_embeddings=True), spoken=dict(_after=spoken), alone=dict(_after=rewritten(alone, lambda n: None if "audio" in n else text_name(n))), mha=dict(num_key_value_heads=4), yarn=rope([2, 3, 1], rope_type="yarn", factor=4.0, original_max_position_embeddings=32), eps=dict(rms_norm_eps=1e-2), act=dict(hidden_act="gelu"))
    family("qwen2_5_omni", "Qwen2_5OmniThinkerForConditionalGeneration", whole("Qwen2_5OmniThinkerConfig", audio, fullatt_block_indexes=[0], **QWEN), base, **omni, window=dict(use_sliding_window=True, sliding_window=8, max_window_layers=1))
    family("qwen3_omni_moe", "Qwen3OmniMoeThinkerForConditionalGeneration", whole("Qwen3OmniMoeThinkerConfig", dict(audio, downsample_hidden_size=8), num_position_embeddings=16, deepstack_visual_indexes=[0], **QWEN), dict(base, num_hidden_layers=3, num_experts=6, num_experts_per_tok=2, moe_intermediate_size=20), **omni,
           raw=dict(norm_topk_prob=False), step=dict(decoder_sparse_step=2), dense=dict(mlp_only_layers=[1]), bias=dict(attention_bias=True), wide=dict(head_dim=20), window=dict(sliding_window=8, _cached=False))
    static = dict(rope_type="dynamic", alpha=8.0, factor=1.0)
    def xdrope(c):
        c = flat(c)
        c["rope_scaling"].update(type="xdrope", xdrope_section=c["rope_scaling"].pop("mrope_section"))
        return c
    config = whole("HunYuanVLConfig", hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2, patch_size=4, out_hidden_size=48)
    family("hunyuan_vl", "HunYuanVLForConditionalGeneration", config, dict(base, head_dim=12), plain={}, untied=dict(tie_word_embeddings=False), alpha=rope([1, 2, 1, 2], **static), published=dict(rope([1, 2, 1, 2], **static), _after=rewritten(xdrope)), bias=dict(attention_bias=True), alone=dict(_after=rewritten(alone, lambda n: None if n.startswith(("vit", "model.vision")) else text_name(n))), mha=dict(num_key_value_heads=4), eps=dict(rms_norm_eps=1e-2), act=dict(hidden_act="gelu"), wide=dict(head_dim=20, **rope([4, 3, 3])))
    angles = rope([2, 3, 1])["rope_parameters"]
    layers = dict(num_hidden_layers=4, sliding_window=8, layer_types=[SLIDE, FULL, SLIDE, SLIDE])
    base = llm(**layers, rope_parameters={FULL: None, SLIDE: angles})
    kinds = dict(plain={}, both=dict(rope_parameters={FULL: dict(angles, rope_theta=500.0), SLIDE: angles}), full=dict(rope_parameters={FULL: dict(angles, rope_theta=500.0), SLIDE: None}), windows=dict(layer_types=[SLIDE] * 4, rope_parameters={SLIDE: angles}), none=dict(layer_types=None, rope_parameters={FULL: dict(angles, rope_theta=500.0)}), scaled=dict(rope_parameters={FULL: dict(angles, rope_type="yarn", factor=4.0, original_max_position_embeddings=32), SLIDE: dict(angles, rope_type="linear", factor=4.0)}),
                 scale=dict(logit_scale=0.25), bias=dict(attention_bias=True), mha=dict(num_key_value_heads=4), eps=dict(layer_norm_eps=1e-2), act=dict(hidden_act="gelu"))
    three = whole("CohereCompassConfig", num_position_embeddings=16, deepstack_visual_indexes=[0], **QWEN)
    family("cohere_compass", "CohereCompassForConditionalGeneration", three, base, **kinds, tied=dict(tie_word_embeddings=True))
    family("cohere_compass_text", "CohereCompassForCausalLM", "CohereCompassTextConfig", base, **kinds, untied=dict(tie_word_embeddings=False))
