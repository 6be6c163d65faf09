"""Generates large inputs for timing `drift mine`.

    python generate.py jsonl   OUT.jsonl   [--bytes 1000000000] [--rows FILE.jsonl[.gz]]
    python generate.py csv     OUT.csv     [--bytes 1000000000] [--rows FILE.jsonl[.gz]]
    python generate.py msgpack OUT.tar.gz  [--bytes 1000000000]

jsonl: the rows of --rows (default: ../../corpora/default.jsonl.gz) again and again, each time with other numbers: the
last three digits of every coordinate are drawn anew, so that the store cannot profit from the repetition.
csv: the same texts in the columns of 3DMolGen's merged files; a name in a hundred has a comma and is quoted.
msgpack: GEOM's layout (maps of 1,000 molecules, 30 conformers of 45 atoms on average, doubles), random coordinates.
--bytes counts before compression. Seeds are fixed. Needs numpy and msgpack.
"""

import argparse
import gzip
import io
import json
import re
import tarfile
from pathlib import Path

import msgpack
import numpy

HERE = Path(__file__).parent
NUMBER = re.compile(r"(\.\d)\d{3}(?=[,>])")


def rows_of(path):
    with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def texts(source):
    """Rows without end: the canonical SMILES, and the text with new digits."""
    random = numpy.random.default_rng(1)
    rows = rows_of(source)
    while True:
        for row in rows:
            text = row["embedded_smiles"]
            digits = iter(random.integers(0, 1000, text.count(".")))
            yield row["canonical_smiles"], NUMBER.sub(lambda match: f"{match[1]}{next(digits):03d}", text)


def jsonl(out, size, source):
    """Rows with `canonical_smiles` and `embedded_smiles`, as 3DMolGen writes them."""
    written = 0
    for smiles, text in texts(source):
        line = json.dumps({"canonical_smiles": smiles, "embedded_smiles": text}) + "\n"
        out.write(line.encode())
        written += len(line)
        if written >= size:
            break


#: The columns of 3DMolGen's `merged_train.csv`.
COLUMNS = "name,enriched_text,dataset,source_name,source_file_id,source_row_index,inchikey,test_subset"


def csv(out, size, source):
    """The same texts in the columns of `merged_train.csv`."""
    out.write(COLUMNS.encode() + b"\n")
    written = len(COLUMNS) + 1
    for number, (_, text) in enumerate(texts(source)):
        name = f'"mol_{number},a"' if number % 100 == 99 else f"mol_{number}"
        dataset = ("PubChem3D", "ZINC", "GEOM")[number % 3]
        key = f"{number % 500_000:014d}-UHFFFAOYSA-N"
        line = f'{name},"{text}",{dataset},part,{number // 100_000},{number},{key},\n'
        out.write(line.encode())
        written += len(line)
        if written >= size:
            break


def molecule(random):
    """One molecule of GEOM's layout."""
    heavy = int(random.integers(15, 36))
    elements = random.choice([6.0, 7.0, 8.0, 16.0], heavy, p=[0.72, 0.13, 0.13, 0.02]).tolist()
    elements += [1.0] * int(heavy * 0.8)
    conformers = []
    for index in range(int(random.integers(1, 60))):
        positions = random.normal(0.0, [4.0, 2.0, 1.2], (len(elements), 3)).tolist()
        conformers.append(
            {
                "geom_id": 120_000_000 + index,
                "set": 1,
                "degeneracy": 1,
                "totalenergy": -79.39,
                "relativeenergy": 0.31,
                "boltzmannweight": 0.02,
                "conformerweights": [0.01, 0.01],
                "xyz": [[z, *position] for z, position in zip(elements, positions)],
            }
        )
    properties = {"totalconfs": len(conformers), "uniqueconfs": len(conformers), "charge": 0, "temperature": 298.15}
    return {"conformers": conformers, **properties, "datasets": ["plates"]}


def crude(size):
    """The content of a `*_crude.msgpack`, map by map."""
    random = numpy.random.default_rng(2)
    written = number = 0
    while written < size:
        part = {}
        for _ in range(1000):
            number += 1
            part[f"CC(=O)N{number}c1ccc(Cl)cc1"] = molecule(random)
        packed = msgpack.packb(part)
        written += len(packed)
        yield packed


def archive(out, size):
    """The .tar.gz with one member, level 6; tar wants the size first, so the member is made twice."""
    with tarfile.open(fileobj=out, mode="w:gz", compresslevel=6) as tar:
        member = tarfile.TarInfo("drugs_crude.msgpack")
        member.size = sum(map(len, crude(size)))
        tar.addfile(member, io.BufferedReader(Chunks(crude(size)), 1 << 20))


class Chunks(io.RawIOBase):
    """A file made of pieces."""

    def __init__(self, pieces):
        self.pieces, self.rest = pieces, b""

    def readable(self):
        return True

    def readinto(self, buffer):
        if not self.rest:
            self.rest = memoryview(next(self.pieces, b""))
        n = min(len(buffer), len(self.rest))
        buffer[:n] = self.rest[:n]
        self.rest = self.rest[n:]
        return n


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["jsonl", "csv", "msgpack"])
    parser.add_argument("out", type=Path)
    parser.add_argument("--bytes", type=int, default=1_000_000_000)
    parser.add_argument("--rows", type=Path, default=HERE / "../../corpora/default.jsonl.gz")
    options = parser.parse_args()
    with open(options.out, "wb") as out:
        if options.what in ("jsonl", "csv"):
            {"jsonl": jsonl, "csv": csv}[options.what](out, options.bytes, options.rows)
        else:
            archive(out, options.bytes)


main()
