"""What scripts that write folders as GGUF files share."""

import pathlib
import sys


def finish(w, vocab):
    """Adds a vocabulary that nothing reads, and writes the file."""
    w.add_tokenizer_model("gpt2")
    w.add_tokenizer_pre("default")
    w.add_token_list([f"t{i}" for i in range(vocab)])
    w.add_token_types([1] * vocab)
    w.add_token_merges(["t 0"])
    for write in (w.write_header_to_file, w.write_kv_data_to_file, w.write_tensors_to_file, w.close):
        write()


def main(convert):
    """Converts the folders that the command line names; without names all with an expected.json."""
    src, dst, *names = sys.argv[1:]
    for name in names or sorted(p.parent.name for p in pathlib.Path(src).glob("*/expected.json")):
        convert(pathlib.Path(src) / name, pathlib.Path(dst) / name)
