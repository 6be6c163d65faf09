#!/usr/bin/env python3
"""The bond error of a perfect student: conformers made as those of the training set, judged beside the references of the test set.

    bond_floor.py TEST.jsonl.gz OUT.jsonl
    drift encode OUT.jsonl --frame first-atoms --encoding E -o BINS.jsonl; drift audit BINS.jsonl --encoding E --references TEST.jsonl.gz

OUT.jsonl has ETKDGv3 and MMFF94 conformers of the molecules of TEST.jsonl.gz, as `corpora/small.py train` makes them; the references are
relaxed by GFN2-xTB. A model that learned its training set perfectly still has the difference of the two methods, and the rounding of its
encoding.
"""

import gzip
import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "corpora"))
import small  # noqa: E402


def main():
    with gzip.open(sys.argv[1], "rt") as lines:
        molecules = dict.fromkeys(json.loads(line)["canonical_smiles"] for line in lines)
    with open(sys.argv[2], "w") as out:
        for smiles in molecules:
            for row in small.train_rows(smiles):
                if row["canonical_smiles"] == smiles:
                    out.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
