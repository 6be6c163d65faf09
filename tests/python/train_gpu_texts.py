"""Whether `eval/train_gpu.py` trains on the texts that drift writes, for the conformers of the corpus `small`.

    python tests/python/train_gpu_texts.py target/release/drift

Prints how many documents of `prepare` have the tokens of `drift encode`'s texts, and what `drift audit` says of the same conformers
in random orders of their atoms, mirrored where the molecule has no enantiomer. The exit code is 1 if a document differs. Needs RDKit,
tokenizers and PyTorch.
"""

import gzip
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy
import tokenizers
import torch

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "eval"))
import train_gpu

CORPUS, MODEL, BINS = ROOT / "corpora/small.jsonl.gz", ROOT / "eval/small-bins", "binned-v2:-9.525,9.525,0.05"


def main():
    drift = pathlib.Path(sys.argv[1]).resolve()
    tokenizer = tokenizers.Tokenizer.from_file(str(MODEL / "tokenizer.json"))
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        prepare = [sys.executable, ROOT / "eval/train_gpu.py", "prepare", CORPUS, MODEL, "-o", work / "data.npz"]
        subprocess.run(prepare, check=True, stderr=subprocess.DEVNULL)
        encode = [drift, "encode", CORPUS, "--frame", "first-atoms", "--encoding", BINS, "-o", work / "texts.jsonl", "--quiet"]
        subprocess.run(encode, check=True)
        data = train_gpu.Templates(numpy.load(work / "data.npz"), torch.device("cpu"), 10_000, 3)
        texts = [json.loads(line) for line in (work / "texts.jsonl").read_text().splitlines()]
        # `prepare` groups conformers by molecule.
        by_molecule = {}
        with gzip.open(CORPUS, "rt") as rows:
            for row, text in zip(map(json.loads, rows), texts, strict=True):
                by_molecule.setdefault(row["canonical_smiles"], []).append(text)
        conformers = torch.arange(len(data.molecules))
        same = 0
        written, _ = data.written(conformers)
        for tokens, row in zip(written.tolist(), (row for rows in by_molecule.values() for row in rows), strict=True):
            parts = [f"[SMILES]{row['canonical_smiles']}[/SMILES]", f"[CONFORMER]{row['embedded_smiles']}[/CONFORMER]"]
            expected = [token for part in parts for token in tokenizer.encode(part).ids] + [data.end]
            same += tokens[: len(expected)] == expected
        print(f"{same} of {len(texts)} documents are drift's")
        torch.manual_seed(0)
        order = torch.randint(data.per_molecule, (len(conformers),))
        turned, _ = data.filled(conformers, order, torch.zeros(len(conformers), data.most, 3), torch.ones_like(conformers).bool())
        with (work / "orders.jsonl").open("w") as out:
            for tokens in turned.tolist():
                text = tokenizer.decode(tokens, skip_special_tokens=False)
                smiles, answer = re.match(r"\[SMILES\](.*)\[/SMILES\]\[CONFORMER\](.*)\[/CONFORMER\]", text).groups()
                out.write(json.dumps({"canonical_smiles": smiles, "embedded_smiles": answer}) + "\n")
        subprocess.run([drift, "audit", work / "orders.jsonl", "--encoding", BINS], check=True)
    return same != len(texts)


if __name__ == "__main__":
    sys.exit(main())
