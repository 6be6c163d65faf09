#!/usr/bin/env python3
"""Compare the embedded tokenizers with the real ones that they stand for.

    python check.py --real DIR --conformers DIR [--every N]

DIR of --real holds `qwen3-custom/` and `llama-3.2-chem/`, each with a `tokenizer.json` or `tokenizer.json.gz`; DIR of
--conformers holds `*.jsonl` or `*.jsonl.gz` with the fields `canonical_smiles`, `embedded_smiles` and, if
present, `embedded_smiles_stripped`. Without arguments only the round trips run. --every takes one of N conformers and texts of the
grid, for a quick run. Prints counts; exit status 1 if anything that must be equal is not.

A token is FREE if all its characters stand strictly between a `<` and the next `>`, the brackets not included.
"""

import argparse
import glob
import gzip
import itertools
import json
import os
import pathlib
import random
import re
import sys
import unicodedata

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
from tokenizers import Tokenizer  # noqa: E402

import borders  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
PAIRS = [("qwen-like", "qwen3-custom"), ("llama-like", "llama-3.2-chem")]
FIELDS = ("embedded_smiles", "embedded_smiles_stripped")
BLOCK = re.compile(r"<([^<>]*)>")
PUNCTUATION = re.compile(r"[^\sA-Za-z0-9]+")
failed = []


def verdict(name, wrong, total, must, example=None):
    share = 1 - wrong / total if total else 1.0
    print(f"  {name}: {total - wrong} of {total} equal ({share:.4%}){'' if must or not wrong else ', for information'}")
    if wrong and example is not None:
        print(f"    first difference: {example}")
    if wrong and must:
        failed.append(name)


def spans(tokenizer, text):
    return tokenizer.encode(text, add_special_tokens=False).offsets


def free_counts(text, cut):
    """FREE tokens of each block. Both lists run in text order."""
    counts, i = [], 0
    for block in BLOCK.finditer(text):
        a, b = block.span(1)
        while i < len(cut) and cut[i][0] < a:
            i += 1
        n = 0
        while i < len(cut) and cut[i][1] <= b:
            n += 1
            i += 1
        counts.append(n)
    return counts


def border_spans(text, cut):
    return [(a, b) for a, b in cut if "<" in text[a:b] or ">" in text[a:b]]


class Tally:
    def __init__(self):
        self.texts = self.blocks = self.free = self.edges = self.border = self.runs = self.run = self.whole = 0
        self.example = {}

    def add(self, text, ours, real):
        self.texts += 1
        a, b = free_counts(text, ours), free_counts(text, real)
        self.blocks += len(b)
        wrong = sum(x != y for x, y in zip(a, b))
        self.free += wrong
        if wrong:
            self.example.setdefault("free", text)
        x, y = border_spans(text, ours), border_spans(text, real)
        self.edges += len(y)
        self.border += len(set(y) ^ set(x))
        if x != y:
            self.example.setdefault("border", text)
        # The cuts inside of a run of punctuation, its two ends included.
        x, y = {b for _, b in ours}, {b for _, b in real}
        differ = sorted(x ^ y)
        self.whole += bool(differ)
        if differ:
            self.example.setdefault("whole", text)
            for run in PUNCTUATION.finditer(text):
                self.run += any(run.start() <= d <= run.end() for d in differ)
        self.runs += sum(1 for _ in PUNCTUATION.finditer(text))

    def print(self, name, must=True, whole=True):
        print(f" {name}: {self.texts} texts, {self.blocks} blocks")
        if self.blocks:
            verdict("FREE tokens of a block", self.free, self.blocks, must, self.example.get("free"))
            verdict("spans of tokens with < or >", self.border, self.edges, must, self.example.get("border"))
        verdict("runs of punctuation", self.run, self.runs, whole, self.example.get("whole"))
        verdict("whole texts, every token", self.whole, self.texts, whole)


def rows(folder):
    paths = sorted(glob.glob(os.path.join(folder, "*.jsonl")) + glob.glob(os.path.join(folder, "*.jsonl.gz")))
    if not paths:
        sys.exit(f"{folder}: no .jsonl or .jsonl.gz")
    for path in paths:
        opened = gzip.open(path, "rt", encoding="utf-8") if path.endswith(".gz") else open(path, encoding="utf-8")
        with opened as file:
            for line in file:
                yield json.loads(line)


ATOMS = """[C] [c] [N] [n] [O] [S] [F] [Cl] [Br] [I] [P] [B] [Si] [Se] [se] [H] [2H] [3H] [O-] [S-] [N-] [n-] [C-] [NH-] [CH-] [N+]
    [n+] [nH] [nH+] [NH+] [NH2+] [NH3+] [NH2] [OH] [CH3] [CH2] [OH2+] [P+] [PH] [SiH2] [C@] [C@@] [C@H] [C@@H] [S@] [S@@] [S@+]
    [S@@+] [N@+] [N@@+] [N@H+] [N@@H+] [P@@] [P@@+] [C@-] [13C] [13CH3] [13C@@H] [13C@] [15NH2+] [18F] [Na+] [K+] [Mg+2] [Fe+2] [Fe+3]
    [Fe++] [Fe] [Zn+2] [Cu+] [Pt] [Pt+4] [Al-3] [B-] [BH3-] [O--] [*] [1*] [12*] [*+] [*-] [*H] [C:1] [CH3:12] [O-:3] [N+:4]
    [C@:5] [C@@H:6] [*:1] [Pt@SP1] [Fe@OH12] [Co@TB3]""".split()
# What stands between a block and the next atom, or the end.
AFTER = [
    "".join(p)
    for p in itertools.product(
        ["", "1", "12", "%12", "1%10", "=1", "/1", "-1"], ["", ")", "))", ")))"], ["", "("], ["", "-", "=", "#", "/", "\\", ".", ":"]
    )
] + ["))))", ")))))", "))))))", ")))))(", "))))(=", "(=%10)", "%11%12", "1)=2", "12)(", ")))))))"]
ENDS = ["", ")", "))", "1", "%12", "1)", "2)3"]


def grid():
    """Texts of one or two atoms: every spelling, what may follow a block, every sign, length and number of decimals."""

    def number(negative, whole, decimals, salt):
        digits = "".join(str((salt * 7 + i * 3) % 9 + 1) for i in range(whole))
        part = "." + "".join(str((salt * 5 + i) % 9 + 1) for i in range(decimals)) if decimals else ""
        return "-" * negative + digits + part

    def block(signs, shape, salt):
        return "<" + ",".join(number(s, w, d, salt + i) for i, (s, (w, d)) in enumerate(zip(signs, shape))) + ">"

    signs = list(itertools.product((0, 1), repeat=3))
    shapes = [(w, d) for w in (1, 2, 3) for d in range(5)]
    same = [(x, x, x) for x in shapes]
    mixed = [tuple(shapes[(i * a + b) % 15] for a, b in ((1, 0), (4, 7), (7, 3))) for i in range(15)]
    salt = 0
    # every sign with every shape on each axis, before and behind a plain atom
    for s, three in itertools.product(signs, itertools.product(shapes, repeat=3)):
        salt += 1
        yield "[C]" + block(s, three, salt) + "[N]" + block(s[::-1], three[::-1], salt)
    # every atom with every sign and shape, after a tag and after a block
    for atom, s, three in itertools.product(ATOMS, signs, same + mixed):
        salt += 1
        yield atom + block(s, three, salt) + atom + block(s, three, salt)
    # every atom before and behind everything that may stand between two blocks
    for link, atom, s in itertools.product(AFTER, ATOMS, (signs[0], signs[7])):
        salt += 1
        yield atom + block(s, mixed[salt % 15], salt) + link + atom + block(s, mixed[salt % 13], salt)
    for atom, end, s, three in itertools.product(ATOMS, ENDS, signs, same):
        salt += 1
        yield atom + block(s, three, salt) + end


def placeholders(number, longest_run, seed):
    """Random strings over `0123456789.,-`, as a search over placeholders meets them."""
    draw = random.Random(seed)
    while number:
        text = "".join("0123456789.,-.,-"[int(draw.random() * 16)] for _ in range(1 + int(draw.random() * 24)))
        if all(len(r) <= longest_run for r in re.findall(r"[.,-]+", text)):
            number -= 1
            yield f"[C]<{text}>[N]<{text}>(=[O-]<{text}>)[C@@H]<{text}>1"


def utf8(seed):
    """Any text: every code point once, and random mixtures."""
    points = [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000]
    for i in range(0, len(points), 4096):
        yield "".join(points[i : i + 4096])
    draw = random.Random(seed)
    for _ in range(2000):
        yield "".join(points[int(draw.random() ** 4 * len(points))] for _ in range(1 + int(draw.random() * 60)))


def round_trips(name, tokenizer, texts):
    wrong = total = 0
    example = None
    for text in texts:
        total += 1
        back = tokenizer.decode(tokenizer.encode(text, add_special_tokens=False).ids, skip_special_tokens=False)
        if back != text:
            wrong += 1
            example = example or repr(text[:80])
    verdict(f"decode(encode(text)), {name}", wrong, total, True, example)


def real_path(folder, name):
    for file in ("tokenizer.json", "tokenizer.json.gz"):
        path = os.path.join(folder, name, file)
        if os.path.exists(path):
            return path
    sys.exit(f"{folder}: no {name}/tokenizer.json or tokenizer.json.gz")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--real", help="folder of the real tokenizers")
    parser.add_argument("--conformers", help="folder of the conformers")
    parser.add_argument("--every", default=1, type=int, help="take one of so many conformers and texts of the grid")
    parser.add_argument("--ours", default=HERE, type=pathlib.Path, help="folder of the tokenizers to check")
    args = parser.parse_args()
    sample = lambda texts: itertools.islice(texts, 0, None, args.every)
    found = list(sample(rows(args.conformers))) if args.conformers else []
    for name, real_name in PAIRS:
        print(name)
        ours = Tokenizer.from_file(str(args.ours / name / "tokenizer.json"))
        nfc = name == "qwen-like"
        round_trips("any UTF-8", ours, (unicodedata.normalize("NFC", t) if nfc else t for t in utf8(1)))
        units = [
            f"[SMILES]{r['canonical_smiles']}[/SMILES][CONFORMER]{r[k]}[/CONFORMER]"
            for r in found
            for k in FIELDS
            if k in r
        ]
        if units:
            round_trips("training units", ours, units)
        if not args.real:
            continue
        real = borders.load(real_path(args.real, real_name))
        listed = borders.strings()
        wrong = [s for s in listed if borders.cut(ours, s) != borders.cut(real, s)]
        verdict("strings of borders.py", len(wrong), len(listed), True, wrong[:1])
        for k in FIELDS:
            tally = Tally()
            for r in found:
                if k in r:
                    text = f"[CONFORMER]{r[k]}[/CONFORMER]"
                    tally.add(text, spans(ours, text), spans(real, text))
            if tally.texts:
                tally.print(f"conformers, {k}")
        tally = Tally()
        for text in sample(grid()):
            text = f"[CONFORMER]{text}[/CONFORMER]"
            tally.add(text, spans(ours, text), spans(real, text))
        tally.print("grid of atoms, links and numbers")
        for longest, must in ((3, True), (24, False)):
            tally = Tally()
            for text in placeholders(5000, longest, 2):
                text = f"[CONFORMER]{text}[/CONFORMER]"
                tally.add(text, spans(ours, text), spans(real, text))
            tally.print(f"random placeholders, at most {longest} of `.,-` in a row", must, must)
        if found:
            tally = Tally()
            for text in sorted({r["canonical_smiles"] for r in found}):
                text = f"[SMILES]{text}[/SMILES]"
                tally.add(text, spans(ours, text), spans(real, text))
            tally.print("plain SMILES", whole=False)
    if failed:
        sys.exit(f"differences in: {', '.join(dict.fromkeys(failed))}")


if __name__ == "__main__":
    main()
