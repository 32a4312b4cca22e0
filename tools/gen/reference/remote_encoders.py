"""Encoders whose code is published beside their weights and not in transformers, written down from their papers and
published configurations, to be run in float64: Jina Embeddings v2 (Günther et al. 2023, arXiv:2310.19923) with its variant
for code, NeoBERT (Le Breton et al. 2025, arXiv:2502.19587), Nomic Embed v2 (Nussbaum and Duderstadt 2025, arXiv:2502.07972)."""

import math

import torch
import torch.nn.functional as F
from torch import nn
from transformers import PretrainedConfig, PreTrainedModel
from transformers.activations import ACT2FN


def attend(q, k, v, heads, bias=None):
    """Attention of [T, heads·d], with a bias [heads, T, T] on the scaled scores."""
    q, k, v = (x.view(len(x), heads, -1).transpose(0, 1) for x in (q, k, v))
    s = q @ k.transpose(1, 2) / math.sqrt(q.shape[-1])
    return ((s if bias is None else s + bias).softmax(-1) @ v).transpose(0, 1).reshape(q.shape[1], -1)


def slopes(n):
    """ALiBi's slopes (Press et al. 2021, §3)."""
    p = 2 ** math.floor(math.log2(n))
    return [2 ** (-8 * (i + 1) / p) for i in range(p)] + [2 ** (-4 * (2 * i + 1) / p) for i in range(n - p)]


class Remote(PreTrainedModel):
    def get_input_embeddings(self):
        return None

    def output(self, logits):
        return type("Output", (), {"logits": logits})()


class JinaBertConfig(PretrainedConfig):
    model_type = "bert"

    def __init__(self, vocab_size=30528, hidden_size=768, num_hidden_layers=12, num_attention_heads=12, intermediate_size=3072, hidden_act="gelu", max_position_embeddings=8192, type_vocab_size=2,
                 layer_norm_eps=1e-12, feed_forward_type="geglu", position_embedding_type="alibi", for_code=False, tie_word_embeddings=True, **kw):
        super().__init__(tie_word_embeddings=tie_word_embeddings, **kw)
        self.vocab_size, self.hidden_size, self.num_hidden_layers, self.num_attention_heads, self.intermediate_size = vocab_size, hidden_size, num_hidden_layers, num_attention_heads, intermediate_size
        self.hidden_act, self.max_position_embeddings, self.type_vocab_size, self.layer_norm_eps, self.feed_forward_type, self.position_embedding_type = hidden_act, max_position_embeddings, type_vocab_size, layer_norm_eps, feed_forward_type, position_embedding_type
        self.for_code = for_code


def bag(**parts):
    m = nn.Module()
    for k, v in parts.items():
        setattr(m, k, v)
    return m


class JinaBertLayer(nn.Module):
    def __init__(self, c):
        super().__init__()
        d, norm = c.hidden_size, lambda: nn.LayerNorm(c.hidden_size, c.layer_norm_eps)
        inner = bag(query=nn.Linear(d, d), key=nn.Linear(d, d), value=nn.Linear(d, d), **(dict(layer_norm_q=norm(), layer_norm_k=norm()) if c.for_code else {}))
        self.attention = bag(self=inner, output=bag(dense=nn.Linear(d, d), LayerNorm=norm()))
        self.c, act = c, {"geglu": F.gelu, "reglu": F.relu}[c.feed_forward_type]
        self.act = act
        up = nn.Linear(d, 2 * c.intermediate_size, bias=False)
        if c.for_code:
            self.layer_norm_1, self.layer_norm_2 = norm(), norm()
            self.mlp = bag(up_gated_layer=up, down_layer=nn.Linear(c.intermediate_size, d))
        else:
            self.mlp = bag(gated_layers=up, wo=nn.Linear(c.intermediate_size, d), layernorm=norm())

    def forward(self, x, bias):
        a, m, n = self.attention.self, self.mlp, self.c.intermediate_size
        q, k, v = a.query(x), a.key(x), a.value(x)
        if self.c.for_code:
            q, k = a.layer_norm_q(q), a.layer_norm_k(k)
        h = self.attention.output.LayerNorm(self.attention.output.dense(attend(q, k, v, self.c.num_attention_heads, bias)) + x)
        if not self.c.for_code:
            y = m.gated_layers(h)
            return m.layernorm(m.wo(self.act(y[:, :n]) * y[:, n:]) + h)
        h = self.layer_norm_1(x + h)
        y = m.up_gated_layer(h)
        return self.layer_norm_2(h + m.down_layer(y[:, :n] * self.act(y[:, n:])))


class JinaBertModel(Remote):
    config_class = JinaBertConfig
    base_model_prefix = "bert"

    def __init__(self, c):
        super().__init__(c)
        d = c.hidden_size
        self.embeddings = bag(word_embeddings=nn.Embedding(c.vocab_size, d), token_type_embeddings=nn.Embedding(c.type_vocab_size, d), LayerNorm=nn.LayerNorm(d, c.layer_norm_eps))
        self.encoder = bag(layer=nn.ModuleList(JinaBertLayer(c) for _ in range(c.num_hidden_layers)))
        self.post_init()

    def forward(self, input_ids, token_type_ids=None):
        e, ids = self.embeddings, input_ids[0]
        x = e.LayerNorm(e.word_embeddings(ids) + e.token_type_embeddings(torch.zeros_like(ids) if token_type_ids is None else token_type_ids[0]))
        at = torch.arange(len(ids))
        bias = -torch.tensor(slopes(self.config.num_attention_heads), dtype=x.dtype)[:, None, None] * (at[None] - at[:, None]).abs()
        for layer in self.encoder.layer:
            x = layer(x, bias)
        return (x[None],)


class JinaBertForMaskedLM(Remote):
    config_class = JinaBertConfig
    base_model_prefix = "bert"

    def __init__(self, c):
        super().__init__(c)
        d = c.hidden_size
        self.bert = JinaBertModel(c)
        self.cls = bag(predictions=bag(transform=bag(dense=nn.Linear(d, d), LayerNorm=nn.LayerNorm(d, c.layer_norm_eps))))
        self.cls.predictions.bias = nn.Parameter(torch.zeros(c.vocab_size))
        self.post_init()

    def forward(self, input_ids, token_type_ids=None):
        p = self.cls.predictions
        h = p.transform.LayerNorm(ACT2FN[self.config.hidden_act](p.transform.dense(self.bert(input_ids, token_type_ids)[0])))
        return self.output(h @ self.bert.embeddings.word_embeddings.weight.T + p.bias)


class NeoBERTConfig(PretrainedConfig):
    model_type = "neobert"

    def __init__(self, vocab_size=30522, hidden_size=768, num_hidden_layers=28, num_attention_heads=12, intermediate_size=3072, norm_eps=1e-6, **kw):
        super().__init__(**kw)
        self.vocab_size, self.hidden_size, self.num_hidden_layers, self.num_attention_heads, self.intermediate_size, self.norm_eps = vocab_size, hidden_size, num_hidden_layers, num_attention_heads, intermediate_size, norm_eps


class NeoBERT(Remote):
    config_class = NeoBERTConfig
    base_model_prefix = "model"

    def __init__(self, c):
        super().__init__(c)
        d, n = c.hidden_size, 8 * ((int(2 * c.intermediate_size / 3) + 7) // 8)
        norm, linear = lambda: nn.RMSNorm(d, c.norm_eps), lambda i, o: nn.Linear(i, o, bias=False)
        self.encoder = nn.Embedding(c.vocab_size, d)
        self.transformer_encoder = nn.ModuleList(bag(attention_norm=norm(), qkv=linear(d, 3 * d), wo=linear(d, d), ffn_norm=norm(), ffn=bag(w12=linear(d, 2 * n), w3=linear(n, d))) for _ in range(c.num_hidden_layers))
        self.layer_norm = norm()
        self.post_init()

    def forward(self, input_ids):
        x, c = self.encoder(input_ids[0]), self.config
        d = c.hidden_size // c.num_attention_heads
        angles = torch.outer(torch.arange(len(x), dtype=torch.float64), 10000 ** (-torch.arange(0, d, 2, dtype=torch.float64) / d))[:, None]
        cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)

        def turn(y):
            a, b = y[..., 0::2], y[..., 1::2]
            return torch.stack((a * cos - b * sin, a * sin + b * cos), -1).flatten(1)

        for l in self.transformer_encoder:
            q, k, v = l.qkv(l.attention_norm(x)).view(len(x), c.num_attention_heads, 3 * d).chunk(3, -1)
            x = x + l.wo(attend(turn(q), turn(k), v.reshape(len(x), -1), c.num_attention_heads))
            gate, up = l.ffn.w12(l.ffn_norm(x)).chunk(2, -1)
            x = x + l.ffn.w3(F.silu(gate) * up)
        return (self.layer_norm(x)[None],)


class NeoBERTForMaskedLM(Remote):
    config_class = NeoBERTConfig
    base_model_prefix = "model"

    def __init__(self, c):
        super().__init__(c)
        self.model, self.decoder = NeoBERT(c), nn.Linear(c.hidden_size, c.vocab_size)
        self.post_init()

    def forward(self, input_ids):
        return self.output(self.decoder(self.model(input_ids)[0]))


class NomicMoEConfig(PretrainedConfig):
    model_type = "nomic_bert"

    def __init__(self, vocab_size=30528, n_embd=768, n_layer=12, n_head=12, n_inner=3072, type_vocab_size=1, num_experts=8, moe_top_k=2, moe_every_n_layers=2, activation_function="gelu", layer_norm_epsilon=1e-5, rotary_emb_base=10000, moe_normalize_expert_weights=False, **kw):
        super().__init__(**kw)
        self.vocab_size, self.n_embd, self.n_layer, self.n_head, self.n_inner, self.type_vocab_size = vocab_size, n_embd, n_layer, n_head, n_inner, type_vocab_size
        self.num_experts, self.moe_top_k, self.moe_every_n_layers, self.activation_function, self.layer_norm_epsilon, self.rotary_emb_base, self.moe_normalize_expert_weights = num_experts, moe_top_k, moe_every_n_layers, activation_function, layer_norm_epsilon, rotary_emb_base, moe_normalize_expert_weights


class NomicMoEModel(Remote):
    config_class = NomicMoEConfig
    base_model_prefix = "nomic_bert"

    def __init__(self, c):
        super().__init__(c)
        d, norm = c.n_embd, lambda: nn.LayerNorm(c.n_embd, c.layer_norm_epsilon)
        self.embeddings, self.emb_ln = bag(word_embeddings=nn.Embedding(c.vocab_size, d), token_type_embeddings=nn.Embedding(c.type_vocab_size, d)), norm()

        def ffn(i):
            if i % c.moe_every_n_layers != 1:
                return bag(fc1=nn.Linear(d, c.n_inner), fc2=nn.Linear(c.n_inner, d))
            weight = lambda: nn.Parameter(torch.zeros(c.num_experts * c.n_inner, d))
            return bag(router=bag(layer=nn.Linear(d, c.num_experts, bias=False)), experts=bag(mlp=bag(w1=weight(), w2=weight()), bias=nn.Parameter(torch.zeros(d))))

        self.encoder = bag(layers=nn.ModuleList(bag(attn=bag(Wqkv=nn.Linear(d, 3 * d), out_proj=nn.Linear(d, d)), norm1=norm(), norm2=norm(), mlp=ffn(i)) for i in range(c.n_layer)))
        self.post_init()

    def forward(self, input_ids, token_type_ids=None):
        c, ids = self.config, input_ids[0]
        x = self.emb_ln(self.embeddings.word_embeddings(ids) + self.embeddings.token_type_embeddings(torch.zeros_like(ids) if token_type_ids is None else token_type_ids[0]))
        d = c.n_embd // c.n_head
        angles = torch.outer(torch.arange(len(x), dtype=torch.float64), c.rotary_emb_base ** (-torch.arange(0, d, 2, dtype=torch.float64) / d))[:, None]
        cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)

        def turn(y):
            a, b = y.view(len(x), c.n_head, d).chunk(2, -1)
            return torch.cat((a * cos - b * sin, b * cos + a * sin), -1).flatten(1)

        for l in self.encoder.layers:
            q, k, v = l.attn.Wqkv(x).chunk(3, -1)
            x = l.norm1(x + l.attn.out_proj(attend(turn(q), turn(k), v, c.n_head)))
            x = l.norm2(x + (l.mlp.fc2(F.gelu(l.mlp.fc1(x))) if hasattr(l.mlp, "fc1") else self.routed(l.mlp, x)))
        return (x[None],)

    def routed(self, mlp, x):
        c = self.config
        best, at = mlp.router.layer(x).softmax(-1).topk(c.moe_top_k)
        if c.moe_normalize_expert_weights:
            best = best / best.sum(-1, keepdim=True)
        w1, w2 = (w.view(c.num_experts, c.n_inner, -1) for w in (mlp.experts.mlp.w1, mlp.experts.mlp.w2))
        every = torch.einsum("ten,end->ted", F.gelu(torch.einsum("td,end->ten", x, w1)), w2)
        return (every[torch.arange(len(x))[:, None], at] * best[..., None]).sum(1) + mlp.experts.bias


class NomicMoEForMaskedLM(Remote):
    config_class = NomicMoEConfig
    base_model_prefix = "nomic_bert"

    def __init__(self, c):
        super().__init__(c)
        d = c.n_embd
        self.nomic_bert = NomicMoEModel(c)
        self.cls = bag(predictions=bag(transform=bag(dense=nn.Linear(d, d), layer_norm=nn.LayerNorm(d, c.layer_norm_epsilon)), decoder=nn.Linear(d, c.vocab_size)))
        self.post_init()

    def forward(self, input_ids, token_type_ids=None):
        p = self.cls.predictions
        return self.output(p.decoder(p.transform.layer_norm(F.gelu(p.transform.dense(self.nomic_bert(input_ids, token_type_ids)[0])))))
