#!/usr/bin/env python3
"""What transformers computes from ANNalog's weights in float32: the reference of script/compare-reference.

    annalog.py FOLDER --package WHEEL --out PATH

FOLDER is that of the model spec which script/fetch-annalog prints. Its Python code is what bentrevett's tutorial on
"Attention Is All You Need" builds: transformers' Marian, with learned positions in the place of sines. WHEEL is the unpacked
Python package; both must give the same logits, and its tokenizer the same ids, before anything is written.
"""

import argparse
import importlib
import pathlib
import sys
import types

import torch
import transformers as tf

from record import Record, tokenizer_case

WIDTH, HEADS, FFN, LAYERS, VOCAB, POSITIONS = 256, 8, 512, 3, 59, 102
PAD, BOS, EOS = 1, 2, 3
LAST, BEAMS = 3, 4
MOLECULES = {
    "aspirin": "CC(=O)Oc1ccccc1C(=O)O", "caffeine": "Cn1cnc2c1c(=O)n(C)c(=O)n2C", "paracetamol": "CC(=O)Nc1ccc(O)cc1",
    "ibuprofen": "CC(C)Cc1ccc(C(C)C(=O)O)cc1", "nicotine": "CN1CCC[C@H]1c1cccnc1", "penicillin G": "CC1(C)S[C@@H]2[C@H](NC(=O)Cc3ccccc3)C(=O)N2[C@H]1C(=O)O",
    "diazepam": "CN1C(=O)CN=C(c2ccccc2)c2cc(Cl)ccc21", "fluoxetine": "CNCCC(Oc1ccc(C(F)(F)F)cc1)c1ccccc1", "bromide": "O=C(O)c1cc(Br)ccc1[N+](=O)[O-]",
    "sildenafil": "CCCc1nn(C)c2c1nc([nH]c2=O)-c1cc(ccc1OCC)S(=O)(=O)N1CCN(C)CC1",
}
ODD = ["", "C", "%10%11C1CC1", "[Xx]C", "BrBCl", "N#N", "C/C=C\\C", "[C@@H][C@H][n+]", "c1ccccc1 ethanol", "[unclosed"]

_ATTENTION = {"fc_q": "q_proj", "fc_k": "k_proj", "fc_v": "v_proj", "fc_o": "out_proj"}
_PARTS = {
    "self_attention": "self_attn", "encoder_attention": "encoder_attn", "positionwise_feedforward.fc_1": "fc1", "positionwise_feedforward.fc_2": "fc2",
    "self_attn_layer_norm": "self_attn_layer_norm", "enc_attn_layer_norm": "encoder_attn_layer_norm", "ff_layer_norm": "final_layer_norm",
    "tok_embedding": "embed_tokens", "pos_embedding": "embed_positions",
}


def name(stored: str) -> str:
    """The name in transformers of a stored tensor."""
    if stored.startswith("decoder.fc_out."):
        return "final_logits_bias" if stored.endswith("bias") else "lm_head.weight"
    for part, theirs in (_PARTS | _ATTENTION).items():
        stored = stored.replace(f".{part}.", f".{theirs}.")
    return "model." + stored


def marian(state: dict) -> tf.MarianMTModel:
    config = tf.MarianConfig(
        vocab_size=VOCAB, decoder_vocab_size=VOCAB, share_encoder_decoder_embeddings=False, tie_word_embeddings=False, d_model=WIDTH, encoder_layers=LAYERS,
        decoder_layers=LAYERS, encoder_attention_heads=HEADS, decoder_attention_heads=HEADS, encoder_ffn_dim=FFN, decoder_ffn_dim=FFN, activation_function="relu",
        scale_embedding=True, max_position_embeddings=POSITIONS, pad_token_id=PAD, bos_token_id=BOS, eos_token_id=EOS, decoder_start_token_id=BOS, forced_eos_token_id=None)
    model = tf.MarianMTModel(config)
    missing, unexpected = model.load_state_dict({name(k): v[None] if k == "decoder.fc_out.bias" else v for k, v in state.items()}, strict=False)
    if unexpected or missing:
        raise SystemExit(f"missing {missing}, unexpected {unexpected}")
    return model.eval()


def published(package: pathlib.Path, state: dict):
    """The authors' model and tokenizer, without what their package imports for drawing molecules."""
    stub = types.ModuleType("annalog")
    stub.__path__ = [str(package / "annalog")]
    sys.modules["annalog"] = stub
    code = importlib.import_module("annalog.model_files.seq2seq_attention")
    sizes = (VOCAB, WIDTH, LAYERS, HEADS, FFN, 0.1, torch.device("cpu"), POSITIONS)
    model = code.Seq2Seq(code.Encoder(*sizes), code.Decoder(*sizes), PAD, PAD, torch.device("cpu"))
    model.load_state_dict(state)
    return model.eval(), importlib.import_module("annalog.model_files.vocabulary").SMILESTokenizer().tokenize


@torch.no_grad()
def main() -> None:
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("folder", type=pathlib.Path)
    ap.add_argument("--package", type=pathlib.Path, required=True)
    ap.add_argument("--out", type=pathlib.Path, required=True)
    args = ap.parse_args()
    torch.set_num_threads(1)
    tf.logging.set_verbosity_error()
    state = torch.load(args.folder / "Lev_extended.pt", map_location="cpu", weights_only=True)
    model, (theirs, split) = marian(state), published(args.package, state)
    tok = tf.PreTrainedTokenizerFast(tokenizer_file=str(args.folder / "tokenizer.json"), unk_token="<unk>", pad_token="<pad>", bos_token="<sos>",
                                     eos_token="<eos>", clean_up_tokenization_spaces=False)
    vocabulary = tok.get_vocab()
    for text in [*MOLECULES.values(), *ODD]:
        want = [BOS, *(vocabulary.get(t, 0) for t in split(text)), EOS]
        if tok(text).input_ids != want:
            raise SystemExit(f"{text!r}: tokenizer.json gives {tok(text).input_ids}, the package {want}")
    sources = [tok(s).input_ids for s in MOLECULES.values()]
    target = sources[1][:-1]
    logits = model(torch.tensor([sources[0]]), decoder_input_ids=torch.tensor([target])).logits[0]
    distance = float((logits - theirs(torch.tensor([sources[0]]), torch.tensor([target]))[0][0]).abs().max())
    print(f"transformers and the published code: largest difference of the logits {distance:.1e}")
    if distance > 1e-4:
        raise SystemExit("they are not the same model")

    rec = Record(family="annalog", variant="Lev_extended", task="seq2seq", model_class="MarianMTModel", weights={"format": "pickle", "file": "Lev_extended.pt"},
                 versions={"torch": torch.__version__.split("+")[0], "transformers": tf.__version__})
    rec.doc["inputs"] = {"texts": list(MOLECULES.values()), "sources": sources, "decoder": target}
    rec.array("decoder.logits", logits[-LAST:])
    settings = dict(max_new_tokens=POSITIONS - 2, do_sample=False, early_stopping=False, length_penalty=1.0)
    beams, scores = [], []
    for ids in sources:
        best = model.generate(torch.tensor([ids]), num_beams=BEAMS, return_dict_in_generate=True, output_scores=True, **settings)
        beams.append(best.sequences[0].tolist())
        scores.append(float(best.sequences_scores[0]))
    rec.doc["ids"] = {"greedy": [model.generate(torch.tensor([s]), num_beams=1, max_new_tokens=POSITIONS - 2, do_sample=False)[0].tolist() for s in sources], "beam4": beams}
    rec.array("beam4.scores", torch.tensor(scores))
    rec.doc["facts"] = {"beam4_texts": [tok.decode(b, skip_special_tokens=True).replace(" ", "") for b in beams]}
    rec.doc["tokenizer"] = {"cases": [tokenizer_case(tok, s) for s in [*MOLECULES.values(), *ODD]]}
    rec.write(args.out)
    for source, found in zip(MOLECULES.items(), rec.doc["facts"]["beam4_texts"]):
        print(*source, "->", found)


if __name__ == "__main__":
    main()
