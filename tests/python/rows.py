"""Runs the script of a model card that loads rows to begin with, and looks at what it did.

    python rows.py MODEL.safetensors FOLDER

MODEL.safetensors holds tables of F32; FOLDER was written by `drift train-tokenizer --model MODEL.safetensors`. Without torch
the script runs on NumPy, with a stand-in for the model; of it the script uses no more than a table's `weight.data`.
"""

import os
import re
import sys
from types import SimpleNamespace

import numpy
from safetensors.numpy import load_file

try:
    import torch
except ImportError:
    torch = None


def table(array):
    """A table of the model, as torch.nn.Embedding holds it."""
    return SimpleNamespace(weight=SimpleNamespace(data=torch.from_numpy(array) if torch else array))


def main(model_file, folder):
    before = load_file(model_file)
    rows = load_file(os.path.join(folder, "embedding_rows.safetensors"))
    with open(os.path.join(folder, "MODEL_CARD.md"), encoding="utf-8") as file:
        script = re.search(r"```python\n(.*?)```", file.read(), re.DOTALL).group(1)
    heads = "lm_head.weight" in before
    if len(script.splitlines()) != 3 + heads:
        sys.exit(f"a script of {len(script.splitlines())} lines")
    if not torch:
        script = script.replace("safetensors.torch", "safetensors.numpy")
    # Resized, as the card says.
    size = max(len(before["model.embed_tokens.weight"]), rows["ids"].max() + 1)
    tables = {}
    for name, tensor in before.items():
        if name.endswith(("embed_tokens.weight", "lm_head.weight")):
            tables[name.split(".")[-2]] = numpy.resize(tensor, (size, tensor.shape[1])).copy()
    kept = {name: array.copy() for name, array in tables.items()}
    embedding, head = table(tables["embed_tokens"]), table(tables.get("lm_head", tables["embed_tokens"]))
    model = SimpleNamespace(get_input_embeddings=lambda: embedding, get_output_embeddings=lambda: head)
    os.chdir(folder)
    exec(script, {"model": model})
    for name, array in tables.items():
        new, old = rows["ids"], numpy.delete(numpy.arange(size), rows["ids"])
        if not (array[new] == rows[f"{name}.digits"]).all() or not (array[old] == kept[name][old]).all():
            sys.exit(f"{name}: not the rows of the file")
        if rows[f"{name}.mean"].shape != rows[f"{name}.digits"].shape:
            sys.exit(f"{name}: variants of different shapes")
    print(f"{len(rows['ids'])} rows loaded into {len(tables)} tables with {'torch' if torch else 'NumPy'}")


main(*sys.argv[1:])
