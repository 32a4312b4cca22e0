"""Writes an encoder for the baselines: export_encoder.py MODEL_DIR OUT_DIR. model.onnx (f32, by torch), model_int8.onnx
(onnxruntime's dynamic quantization), and what CTranslate2's converter needs. Run with a Python that has torch and transformers;
`export_encoder.py --int8 OUT_DIR` with one that has onnxruntime."""

import pathlib
import sys


def export(source: str, out: pathlib.Path) -> None:
    import torch
    from transformers import AutoModel

    model = AutoModel.from_pretrained(source, attn_implementation="eager").eval()

    class Hidden(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, input_ids, attention_mask):
            return self.model(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state

    ids = torch.ones(2, 8, dtype=torch.long)
    axes = {0: "batch", 1: "length"}
    torch.onnx.export(Hidden(), (ids, ids), str(out / "model.onnx"), input_names=["input_ids", "attention_mask"],
                      output_names=["hidden"], dynamic_axes={"input_ids": axes, "attention_mask": axes, "hidden": axes},
                      opset_version=17, dynamo=False)


def to_int8(out: pathlib.Path) -> None:
    from onnxruntime.quantization import QuantType, quantize_dynamic

    quantize_dynamic(str(out / "model.onnx"), str(out / "model_int8.onnx"), weight_type=QuantType.QInt8, per_channel=True)


if __name__ == "__main__":
    target = pathlib.Path(sys.argv[2])
    target.mkdir(parents=True, exist_ok=True)
    if sys.argv[1] == "--int8":
        to_int8(target)
    else:
        export(sys.argv[1], target)
