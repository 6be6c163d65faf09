"""Generates two corpora for timing `drift mine --against`: small molecules, many of them, of which some stand in both.

    python against.py OUT [--csv] [--rows 10000000] [--others 30000] [--molecules 200000]

With --csv the same rows also stand in OUT/train.csv and OUT/test.csv, with the columns name,enriched_text. OUT/train.jsonl has --rows rows of --molecules chains of four to nine atoms with branches, OUT/test.jsonl --others rows of one molecule in a
hundred of them. Coordinates are random. One row of train in a hundred is a row of test in another pose, cut to four decimals anew;
the last line on stdout says how many. Seeds are fixed; 10,000,000 rows take about 3 GB.
"""

import argparse
import json
import pathlib

import numpy as np

CHUNK = 20_000
HEAD, TAIL = '{"embedded_smiles": "', '"}\n'


def molecules(count, random):
    """Skeletons with %s in each block, and how many blocks they have."""
    atoms = [
        "[C]<%s>",
        "[C]<%s>",
        "[C]<%s>",
        "[O]<%s>",
        "[N]<%s>",
        "[C]<%s>([F]<%s>)",
        "[C]<%s>(=[O]<%s>)",
        "[C]<%s>([Cl]<%s>)",
        "[C]<%s>([C]<%s>)[C]<%s>",
    ]
    found = set()
    while len(found) < count:
        found.add(
            "".join(
                atoms[at]
                for at in random.integers(len(atoms), size=int(random.integers(4, 8)))
            )
        )
    return [(skeleton, skeleton.count("%s")) for skeleton in sorted(found)]


def turned(points, random):
    """Points in random poses: [conformers, atoms, 3]."""
    q, r = np.linalg.qr(random.normal(size=(len(points), 3, 3)))
    q *= np.sign(np.einsum("cii->ci", r))[:, None, :]
    q[:, :, 0] *= np.linalg.det(q)[:, None]
    return np.einsum("cax,cyx->cay", points, q) + random.normal(
        size=(len(points), 1, 3)
    )


def lines(skeletons, points):
    """A row for each: points are cut to four decimals, toward zero."""
    cut = (np.trunc(points * 1e4) / 1e4 + 0.0).tolist()
    for (skeleton, atoms), places in zip(skeletons, cut):
        blocks = tuple("%.4f,%.4f,%.4f" % tuple(place) for place in places[:atoms])
        yield HEAD + skeleton % blocks + TAIL


class Rows:
    """A file of rows as JSONL, and as CSV where wanted."""

    def __init__(self, path, with_csv):
        self.jsonl = open(path.with_suffix(".jsonl"), "w")
        self.csv = open(path.with_suffix(".csv"), "w") if with_csv else None
        self.count = 0
        if self.csv:
            self.csv.write("name,enriched_text\n")

    def write(self, skeletons, points):
        for line in lines(skeletons, points):
            self.jsonl.write(line)
            if self.csv:
                self.csv.write(f'm{self.count},"{line[len(HEAD) : -len(TAIL)]}"\n')
            self.count += 1

    def close(self):
        self.jsonl.close()
        if self.csv:
            self.csv.close()


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("out", type=pathlib.Path)
    options.add_argument("--csv", action="store_true")
    options.add_argument("--rows", type=int, default=10_000_000)
    options.add_argument("--others", type=int, default=30_000)
    options.add_argument("--molecules", type=int, default=200_000)
    options = options.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(0)
    known = molecules(options.molecules, random)
    most = max(atoms for _, atoms in known)
    shared = known[::100]
    which = random.integers(len(shared), size=options.others)
    places = random.normal(size=(options.others, most, 3)) * 2
    test = Rows(options.out / "test", options.csv)
    test.write([shared[at] for at in which], places)
    test.close()
    train = Rows(options.out / "train", options.csv)
    copies = 0
    for begin in range(0, options.rows, CHUNK):
        count = min(CHUNK, options.rows - begin)
        points = random.normal(size=(count, most, 3)) * 2
        skeletons = [known[at] for at in random.integers(len(known), size=count)]
        copied = np.flatnonzero(random.random(count) < 0.01)
        others = random.integers(options.others, size=len(copied))
        points[copied] = turned(places[others], random)
        for at, other in zip(copied, others):
            skeletons[at] = shared[which[other]]
        copies += len(copied)
        train.write(skeletons, points)
    train.close()
    print(json.dumps({"rows": options.rows, "copies": copies}))


main()
