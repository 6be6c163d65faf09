"""Coordinate encodings once more, from their rules alone: NumPy, and no line of drift.

    encodings.py bins IN.jsonl OUT.json MODE       a file of 256 bins of MODE `uniform` or `quantile`, as its users make it
    encodings.py edges NAME OUT.xyz                atoms on all edges, an ulp beside them, between them and far outside
    encodings.py check NAME IN OUT.jsonl BACK.jsonl
                                                   OUT is IN written as NAME, BACK is OUT read back with six decimals
    encodings.py loss NAME IN                      what the text of NAME alone loses, as JSON

NAME is that of an encoding, `v1:LOW,HIGH,STEP[,WIDTH]`, `v2:LOW,HIGH,STEP` or `integers:SCALE,WIDTH,MOST`, or the path of a file of bins.
"""

import decimal
import gzip
import json
import re
import sys

import numpy

SLOT = re.compile(r"(\[[^\]]+\])<([^>]*)>")


def rows(path):
    opened = gzip.open(path, "rt") if path.endswith(".gz") else open(path)
    with opened as lines:
        return [json.loads(line) for line in lines]


def positions(path):
    """The atoms of each conformer with text around them: [(skeleton, [[x, y, z]])]."""
    if path.endswith(".xyz"):
        lines = open(path).read().splitlines()
        found = []
        for at in range(0, len(lines), 3):
            _, *numbers = lines[at + 2].split()
            found.append(("[Ne]<>", [[float(number) for number in numbers]]))
        return found
    texts = [row["embedded_smiles"] for row in rows(path)]
    split = lambda text: [[float(n) for n in block.split(",")] for _, block in SLOT.findall(text)]
    return [(SLOT.sub(r"\1<>", text), split(text)) for text in texts]


class Encoding:
    """What UPSTREAM's rules say of an encoding."""

    def __init__(self, name):
        self.fitted = None
        if ":" in name:
            version, values = name.split(":")
            values = values.split(",")
            low, high, step = (float(value) for value in values[:3])
            self.edges = numpy.arange(low, high, step)
            self.step = step
            self.width = int(values[3]) if len(values) > 3 else max(3, len(str(len(self.edges))))
            self.brackets = version == "v1"
        else:
            file = json.load(open(name))
            self.edges = numpy.array(file["edges"])
            self.fitted = (file["L"], file["H"], file["n_bins"])
            self.width = max(3, len(str(file["n_bins"] + 1)))
            self.brackets = False

    def index(self, x):
        if self.fitted is None:
            return int(numpy.digitize(x, self.edges))
        low, high, bins = self.fitted
        if x < low:
            return 0
        if x > high:
            return bins + 1
        return 1 + min(bins - 1, int(numpy.searchsorted(self.edges, x, side="right")) - 1)

    def is_tail(self, index):
        return index in (0, self.index(1e9))

    def value(self, index):
        edges = self.edges
        if self.fitted is not None:
            low, high, bins = self.fitted
            return low if index == 0 else high if index == bins + 1 else (edges[index - 1] + edges[index]) / 2
        if self.brackets:
            index = max(index, 1)
            right = edges[-1] + self.step if index == len(edges) else edges[index]
            return (edges[index - 1] + right) / 2
        if index == 0:
            return edges[0]
        return edges[-1] + self.step if index >= len(edges) else (edges[index - 1] + edges[index]) / 2

    def slot(self, indices):
        numbers = [f"{index:0{self.width}d}" for index in indices]
        return f"<{','.join(numbers)}>" if self.brackets else "".join(numbers) + ";"


class Integers:
    """Whole numbers: `integers:SCALE,WIDTH,MOST`."""

    def __init__(self, name):
        scale, self.width, self.most = (int(value) for value in name.split(":")[1].split(","))
        self.scale = scale
        self.edges = (numpy.arange(-self.most, self.most + 1) - 0.5) / scale

    def index(self, x):
        # A product of doubles may lie on the other side of a half than the number that the file has.
        exact = decimal.Decimal(repr(float(x))) * self.scale
        return int(numpy.clip(int(exact.to_integral_value(decimal.ROUND_HALF_EVEN)), -self.most, self.most))

    def is_tail(self, index):
        return abs(index) >= self.most

    def value(self, index):
        return index / self.scale

    def slot(self, indices):
        return f"<{','.join(('-' if index < 0 else '') + str(abs(index)).zfill(self.width) for index in indices)}>"


def named(name):
    return Integers(name) if name.startswith("integers:") else Encoding(name)


def six(x):
    """A double with six decimals, cut toward zero by its shortest spelling."""
    cut = decimal.Decimal(repr(float(x))).quantize(decimal.Decimal("0.000001"), rounding=decimal.ROUND_DOWN)
    return f"{cut:f}" if cut else "0.000000"


def check(name, given, out, back):
    encoding = named(name)
    written, again = rows(out), rows(back)
    conformers = positions(given)
    assert len(conformers) == len(written) == len(again), (len(conformers), len(written), len(again))
    tails = 0
    for at, ((skeleton, atoms), row, read) in enumerate(zip(conformers, written, again)):
        indices = [[encoding.index(x) for x in atom] for atom in atoms]
        tails += any(encoding.is_tail(index) for atom in indices for index in atom)
        filled = iter(indices)
        expected = re.sub("<>", lambda _: encoding.slot(next(filled)), skeleton)
        assert row["embedded_smiles"] == expected, f"conformer {at}: {row['embedded_smiles']} is not {expected}"
        filled = iter(indices)
        decoded = lambda _: "<" + ",".join(six(encoding.value(index)) for index in next(filled)) + ">"
        expected = re.sub("<>", decoded, skeleton)
        assert read["embedded_smiles"] == expected, f"conformer {at}: {read['embedded_smiles']} is not {expected}"
    print(f"{len(conformers)} conformers, {tails} with a tail")


def bins(given, out, mode):
    values = numpy.array([x for _, atoms in positions(given) for atom in atoms for x in atom])
    low, high = (float(q) for q in numpy.quantile(values, [0.001, 0.999]))
    # Flat rings have many coordinates of exactly zero, and edges must rise.
    inside = values[(values >= low) & (values <= high) & (values != 0)]
    edges = numpy.linspace(low, high, 257) if mode == "uniform" else numpy.quantile(inside, numpy.linspace(0, 1, 257))
    edges[0], edges[-1] = low, high
    made = {"mode": mode, "L": low, "H": high, "n_bins": 256, "edges": [float(edge) for edge in edges]}
    json.dump(made, open(out, "w"))


def edges(name, out):
    encoding = named(name)
    values = []
    for edge in encoding.edges:
        values += [edge, numpy.nextafter(edge, -numpy.inf), numpy.nextafter(edge, numpy.inf)]
    values += list((encoding.edges[:-1] + encoding.edges[1:]) / 2)
    values += [0.0, -0.0, 1e-300, 99.0, -99.0, encoding.edges[-1] + 1e-9, 12345.0, -12345.0]
    values += [0.0] * (-len(values) % 3)
    with open(out, "w") as file:
        for at in range(0, len(values), 3):
            numbers = " ".join(repr(float(value)) for value in values[at : at + 3])
            file.write(f"1\nsmiles=[Ne]\nNe {numbers}\n")


def superposed(a, b):
    """The points of a on those of b: Kabsch, by singular values."""
    a, b = numpy.array(a), numpy.array(b)
    from_, to = a.mean(axis=0), b.mean(axis=0)
    u, _, v = numpy.linalg.svd((a - from_).T @ (b - to))
    turn = numpy.diag([1, 1, numpy.sign(numpy.linalg.det(u @ v))])
    return (a - from_) @ u @ turn @ v + to - b


def loss(name, given):
    encoding = named(name)
    rmsds, worst, tails, nats = [], 0.0, 0, []
    for _, atoms in positions(given):
        indices = [[encoding.index(x) for x in atom] for atom in atoms]
        off = superposed([[encoding.value(index) for index in atom] for atom in indices], atoms)
        rmsds.append(numpy.sqrt((off**2).sum() / len(atoms)))
        worst = max(worst, numpy.sqrt((off**2).sum(axis=1)).max())
        flat = [index for atom in indices for index in atom]
        is_tail = [encoding.is_tail(index) for index in flat]
        tails += any(is_tail)
        widths = [encoding.edges[i] - encoding.edges[i - 1] for i, tail in zip(flat, is_tail) if not tail]
        nats.append(numpy.log(widths).sum())
    mean = lambda values: float(numpy.mean(values))
    print(json.dumps({"rmsd": mean(rmsds), "worst": float(worst), "out_of_range": tails, "nats": mean(nats)}))


if __name__ == "__main__":
    {"check": check, "loss": loss, "bins": bins, "edges": edges}[sys.argv[1]](*sys.argv[2:])
