"""Records what transformers' generate does with a table of logits: beams.json.

The model's logits depend on the position and the last token only: table[position % P][token]. Needs
tools/gen/reference/requirements.txt: python record_beams.py > beams.json
"""
import itertools
import json
import random

import torch
from transformers import GenerationConfig, GenerationMixin, PretrainedConfig, PreTrainedModel
from transformers.modeling_outputs import CausalLMOutput

V, P = 13, 5


class Config(PretrainedConfig):
    model_type = "table"

    def __init__(self, **kw):
        super().__init__(vocab_size=V, hidden_size=1, num_hidden_layers=1, **kw)


class Table(PreTrainedModel, GenerationMixin):
    config_class = Config
    main_input_name = "input_ids"

    def __init__(self, config, table):
        super().__init__(config)
        self.table = torch.nn.Parameter(table)

    def forward(self, input_ids, attention_mask=None, **_):
        at = torch.arange(input_ids.shape[1]) % P
        return CausalLMOutput(logits=self.table[at, input_ids])

    def prepare_inputs_for_generation(self, input_ids, attention_mask=None, **_):
        return {"input_ids": input_ids}


def record(cases, tables, table, prompt, s):
    """Appends what generate does with settings; nothing where hypotheses are equally good."""
    model, beams = Table(Config(), tables[table]).eval(), s["num_beams"]
    out = model.generate(torch.tensor([prompt]), attention_mask=torch.ones(1, len(prompt), dtype=torch.long), pad_token_id=0, use_cache=False,
                         num_return_sequences=beams, return_dict_in_generate=True, output_scores=True, **s)
    rows = out.sequences.tolist()
    ends = s["eos_token_id"] if isinstance(s["eos_token_id"], list) else [s["eos_token_id"]]
    for row in rows:  # padding follows the end
        for at in range(len(prompt), len(row)):
            if row[at] in ends:
                del row[at + 1:]
                break
    case = {"table": table, "prompt": prompt, "settings": {n: v for n, v in s.items() if n != "do_sample"}, "sequences": rows}
    if beams > 1:
        case["scores"] = out.sequences_scores.tolist()
        if min(a - b for a, b in zip(case["scores"], case["scores"][1:])) < 1e-5:
            return  # equals: their order says nothing
    cases.append(case)


def record_rarer(cases, tables, others):
    """Settings that look at the prompt (the source of an encoder-decoder), biases, and a likelier end."""
    draw = random.Random(5)
    rarer = {"encoder_repetition_penalty": [1.5, 0.7], "encoder_no_repeat_ngram_size": [1, 2, 3], "renormalize_logits": [True],
             "remove_invalid_values": [True], "exponential_decay_length_penalty": [[2, 1.2], [5, 1.05], [0, 2.0]],
             "sequence_bias": [[[[4], 1.5], [[6, 8], -2.0], [[1, 3, 5], 3.0]], [[[2], -1.5], [[7, 7], 4.0]]]}
    for i in range(96):
        s = {"num_beams": 1 + i % 4, "max_length": draw.choice((12, 20, 30)), "eos_token_id": draw.choice((2, [2, 5])), "do_sample": False}
        for name in draw.sample(sorted(rarer), draw.choice((1, 1, 2, 3))):
            s[name] = draw.choice(rarer[name])
        name = draw.choice(sorted(others))
        if draw.random() < 0.5 and not (name.startswith("min_") and "exponential_decay_length_penalty" in s):
            s[name] = others[name]  # a forbidden end that gets likelier is no number in transformers
        record(cases, tables, i % 3, [1] + [draw.randrange(3, V) for _ in range(draw.choice((0, 3, 7)))], s)


def main():
    draw = random.Random(3)
    tables = [torch.randn(P, V, V, generator=torch.Generator().manual_seed(s)) * scale for s, scale in ((1, 1.0), (2, 2.0), (3, 0.6))]
    for t in tables[:2]:
        t[:, :, 2] += 1.0  # sequences that end
    tables = [(t * 1e4).round() / 1e4 for t in tables]  # as written
    cases = []
    extra = {"forced_bos_token_id": 7, "forced_eos_token_id": 2, "no_repeat_ngram_size": 2, "bad_words_ids": [[4], [6, 8], [2]],
             "min_length": 5, "min_new_tokens": 4, "repetition_penalty": 1.3, "suppress_tokens": [3, 9], "begin_suppress_tokens": [2, 1]}
    for i, (beams, penalty, early) in enumerate(itertools.product((1, 2, 3, 4), (1.0, 0.0, 2.0, -0.5), (False, True, "never"))):
        for k in range(2):
            s = {"num_beams": beams, "max_length": draw.choice((6, 12, 20)), "eos_token_id": draw.choice((2, [2, 5])), "do_sample": False}
            if beams > 1:
                s |= {"length_penalty": penalty, "early_stopping": early}
            for name in draw.sample(sorted(extra), draw.choice((0, 1, 2, 3))):
                s[name] = extra[name]
            prompt = [1] if draw.random() < 0.7 else [1, 10, 3]
            record(cases, tables, (i + k) % 3, prompt, s)
    record_rarer(cases, tables, extra)
    print(json.dumps({"tables": [[round(x, 4) for x in t.flatten().tolist()] for t in tables], "cases": cases}).replace('{"table"', '\n{"table"'))


if __name__ == "__main__":
    torch.manual_seed(0)
    main()
