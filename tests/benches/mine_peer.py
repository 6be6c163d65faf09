"""The peer of `drift mine`: the same store from 3DMolGen JSONL, as a competent Python user would write it.

    python mine_peer.py IN.jsonl[.gz] OUT.h5 [--level 3]

json, re and h5py; streaming, memory bounded; the same datasets, chunks and filters as drift's store. Needs h5py, numpy.
"""

import argparse
import gzip
import hashlib
import json
import re
import sys
import time
from pathlib import Path

import h5py
import numpy

CHUNK_BYTES = 768 << 10
BATCH = 1 << 20
BLOCK = re.compile(r"<([^<>]*)>")
# Four decimals at most; the point is taken out and zeros are filled in, so no float is involved.
NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d{1,4})?")


def fixed(text):
    """A coordinate in units of 0.0001 Å."""
    if not NUMBER.fullmatch(text):
        raise ValueError(f"not a number: {text!r}")
    integer, _, decimals = text.partition(".")
    return int(integer + decimals.ljust(4, "0"))


def parse(text):
    """The skeleton, the coordinates, and the flags of one enriched SMILES."""
    numbers = ",".join(BLOCK.findall(text)).split(",")
    skeleton = BLOCK.sub("<>", text)
    if len(numbers) != 3 * skeleton.count("<>") or skeleton.count("<>") != skeleton.count("["):
        raise ValueError("blocks and atoms do not agree")
    is_fixed = all(len(n) > 5 and n[-5] == "." for n in numbers)
    is_stripped = not any("." in n and n[-1] == "0" for n in numbers)
    return skeleton, [fixed(n) for n in numbers], 1 | is_fixed << 1 | is_stripped << 2


class Column:
    """A growing dataset with a buffer."""

    def __init__(self, store, path, dtype, level, width=None):
        tail = (width,) if width else ()
        rows = CHUNK_BYTES // (numpy.dtype(dtype).itemsize * (width or 1))
        self.data = store.create_dataset(
            path, (0, *tail), dtype, maxshape=(None, *tail), chunks=(rows, *tail), shuffle=True, compression=level
        )
        self.buffer, self.tail, self.width = [], tail, width or 1

    def extend(self, values):
        self.buffer.extend(values)
        if len(self.buffer) >= BATCH:
            self.flush()

    def flush(self):
        values = numpy.array(self.buffer, dtype=self.data.dtype).reshape(-1, *self.tail)
        start = self.data.shape[0]
        self.data.resize(start + len(values), axis=0)
        self.data[start:] = values
        self.buffer.clear()


def mine(source, store, level):
    """Fills the store and returns the number of conformers and of skipped lines."""
    columns = {
        path: Column(store, path, dtype, level, width)
        for path, dtype, width in [
            ("coordinates", "i4", 3),
            ("conformers/offset", "u8", None),
            ("conformers/molecule", "u4", None),
            ("conformers/flags", "u1", None),
            ("molecules/smiles", "u1", None),
            ("molecules/smiles_offset", "u8", None),
            ("molecules/skeleton", "u1", None),
            ("molecules/skeleton_offset", "u8", None),
        ]
    }
    for path in ("conformers/offset", "molecules/smiles_offset", "molecules/skeleton_offset"):
        columns[path].extend([0])
    molecules, lengths = {}, {"smiles": 0, "skeleton": 0}
    blocks = conformers = skipped = rows = 0
    with (gzip.open if source.suffix == ".gz" else open)(source, "rt", encoding="utf-8") as lines:
        for line in lines:
            try:
                row = json.loads(line)
                smiles = row["canonical_smiles"]
                skeleton, numbers, flags = parse(row["embedded_smiles"])
            except (ValueError, KeyError):
                skipped += 1
                continue
            molecule = molecules.get((smiles, skeleton))
            if molecule is None:
                if len(molecules) >= 1 << 16:
                    molecules.clear()
                molecule, rows = rows, rows + 1
                molecules[smiles, skeleton] = molecule
                for name, text in (("smiles", smiles), ("skeleton", skeleton)):
                    data = text.encode()
                    lengths[name] += len(data)
                    columns[f"molecules/{name}"].extend(data)
                    columns[f"molecules/{name}_offset"].extend([lengths[name]])
            blocks += len(numbers) // 3
            conformers += 1
            columns["coordinates"].extend(numbers)
            columns["conformers/offset"].extend([blocks])
            columns["conformers/molecule"].extend([molecule])
            columns["conformers/flags"].extend([flags])
    for column in columns.values():
        column.flush()
    return conformers, skipped


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path)
    parser.add_argument("store", type=Path)
    parser.add_argument("--level", type=int, default=3)
    options = parser.parse_args()
    start = time.perf_counter()
    with h5py.File(options.store, "w") as store:
        conformers, skipped = mine(options.source, store, options.level)
        with open(options.source, "rb") as source:
            sha256 = hashlib.file_digest(source, "sha256").hexdigest()
        store.attrs["schema"] = "drift.corpus/1"
        store.attrs["unit"] = "1e-4 angstrom"
        store.attrs["provenance"] = json.dumps({"inputs": [{"name": options.source.name, "sha256": sha256}]})
        store.attrs["skipped"] = str(skipped)
    seconds = time.perf_counter() - start
    json.dump({"conformers": conformers, "skipped": skipped, "seconds": round(seconds, 2)}, sys.stdout)
    print()


main()
