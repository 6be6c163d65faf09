#!/usr/bin/env python3
"""Measure how a tokenizer cuts the punctuation and the atom symbols of enriched SMILES.

    python borders.py REFERENCE…

A reference is a `tokenizer.json`, plain or `.gz`. Each is used as a black box: only `encode` is called, neither its
vocabulary nor its merges are read. Every string of `strings()` is encoded on its own; then `fit` searches an ordered list of
merges that cuts all of them as the reference does, and `prune` drops what is not needed. The first reference gets the
whole list; for each further one only the difference is printed. `BORDERS` in build.py was found this way.
"""

import gzip
import itertools
import json
import sys

from tokenizers import Tokenizer

BONDS = ["", "-", "=", "#", ":", "$", "/", "\\", "~", "."]
CHARGES = ["", "+", "-", "++", "--", "+++", "---"]
ELEMENTS = """H He Li Be B C N O F Ne Na Mg Al Si P S Cl Ar K Ca Sc Ti V Cr Mn Fe Co Ni Cu Zn Ga Ge As Se Br Kr Rb Sr Y Zr
    Nb Mo Tc Ru Rh Pd Ag Cd In Sn Sb Te I Xe Cs Ba La Ce Pr Nd Pm Sm Eu Gd Tb Dy Ho Er Tm Yb Lu Hf Ta W Re Os Ir Pt Au Hg Tl
    Pb Bi Po At Rn Fr Ra Ac Th Pa U Np Pu Am Cm Bk Cf Es Fm Md No Lr b c n o p s as se si te""".split()
STEREO = ["TH", "AL", "SP", "TB", "OH"]


def strings():
    """The pre-tokens of enriched and of plain SMILES that hold punctuation or letters, sorted.

    Numbers are also taken as a placeholder may spell them: up to four of `.,-` in a row, up to three next to a bracket.
    """
    numbers = ["".join(p) for n in range(5) for p in itertools.product(".,-", repeat=n)]
    starts = [n for n in numbers if len(n) < 4]
    # What stands between an atom's symbol or its digits and the closing bracket: `@@+]`, `*]`, `+:` (an atom map).
    tails = [s + c + e for s in ("", "@", "@@") for c in CHARGES for e in ("]", ":")]
    tails += ["*" + c + e for c in CHARGES for e in ("]", ":")]
    close = [t for t in tails if t.endswith("]")]
    dummies = ["[" + t + "<" * t.endswith("]") for t in tails if t.startswith("*")]
    found = set(numbers) | set(tails) | {"@", "@@", "+", "-"}
    found |= {t + "<" + n for t in close for n in starts}
    found |= {d + n for d in dummies if d.endswith("<") for n in starts}
    # What follows a block, a ring digit or, in plain SMILES, an atom: closed branches, an open one, a bond, the next atom.
    for depth, branch, bond in itertools.product(range(7), ("", "("), BONDS):
        link = ")" * depth + branch + bond
        for end in ["", "[", "%"] + dummies + [d + "-" for d in dummies if d.endswith("<")]:
            found.add(link + end)
            found.add(">" + link + end)
            found |= {t + link + end for t in close if len(end) < 2}
        if depth < 2:
            found |= {n + ">" + link + "[" for n in starts}
    found |= {p + e + h for p in ("", "[") for e in ELEMENTS for h in ("", "H")}
    found |= {"@" + s for s in ["H"] + STEREO}
    found.discard("")
    return sorted(found, key=lambda s: (len(s), s))


def load(path):
    opened = gzip.open(path, "rt", encoding="utf-8") if path.endswith(".gz") else open(path, encoding="utf-8")
    with opened as file:
        text = file.read()
    json.loads(text)  # a readable error for what is no JSON
    return Tokenizer.from_str(text)


def cut(tokenizer, text):
    return tuple(text[a:b] for a, b in tokenizer.encode(text, add_special_tokens=False).offsets)


def candidates(target, single):
    """Every way to make a token of the targets from two shorter ones; `single` says whether a string is one token."""
    todo = sorted({t for cuts in target.values() for t in cuts if len(t) > 1}, key=lambda t: (len(t), t))
    known, pairs = set(todo), []
    for token in todo:  # grows while it is walked
        for i in range(1, len(token)):
            a, b = token[:i], token[i:]
            if single(a) and single(b):
                pairs.append((a, b))
                for part in (a, b):
                    if len(part) > 1 and part not in known:
                        known.add(part)
                        todo.append(part)
    return sorted(set(pairs), key=lambda m: (len(m[0] + m[1]), m))


def step(symbols, rank):
    """Index and rank of the next merge, or None."""
    best = None
    for i in range(len(symbols) - 1):
        r = rank.get((symbols[i], symbols[i + 1]))
        if r is not None and (best is None or r < best[1]):
            best = (i, r)
    return best


def merge(text, rank, used=None):
    symbols = list(text)
    while (found := step(symbols, rank)) is not None:
        i = found[0]
        if used is not None:
            used.add((symbols[i], symbols[i + 1]))
        symbols[i : i + 2] = [symbols[i] + symbols[i + 1]]
    return tuple(symbols)


def fit(target, single):
    """An ordered list of merges that cuts every string as `target` says.

    Where the list so far merges across a cut of the target, that merge moves behind the one that should have come first; if
    none should, it goes.
    """
    order = candidates(target, single)
    for _ in range(100):
        moved = 0
        rank = {m: i for i, m in enumerate(order)}
        for text, cuts in target.items():
            ends = set(itertools.accumulate(map(len, cuts)))
            symbols = list(text)
            while (found := step(symbols, rank)) is not None:
                i, r = found
                at = len("".join(symbols[: i + 1]))
                if at in ends:
                    beside = [(i - 1, at - len(symbols[i])), (i + 1, at + len(symbols[i + 1]))]
                    inside = [
                        rank[symbols[j], symbols[j + 1]]
                        for j, end in beside
                        if 0 <= j < len(symbols) - 1 and end not in ends and (symbols[j], symbols[j + 1]) in rank
                    ]
                    wrong = order.pop(r)
                    if inside:
                        order.insert(min(inside), wrong)
                    rank = {m: i for i, m in enumerate(order)}
                    moved += 1
                    break
                symbols[i : i + 2] = [symbols[i] + symbols[i + 1]]
        if not moved:
            break
    rank = {m: i for i, m in enumerate(order)}
    wrong = [t for t, cuts in target.items() if merge(t, rank) != cuts]
    if wrong:
        sys.exit(f"no list found: {len(wrong)} of {len(target)} strings differ, such as {wrong[:5]}")
    return order


def prune(order, target):
    """Drops merges, the last first, as long as no cut changes."""
    used = set()
    rank = {m: i for i, m in enumerate(order)}
    for text in target:
        merge(text, rank, used)
    order = [m for m in order if m in used]
    for m in reversed(list(order)):
        rank = {k: i for i, k in enumerate(order) if k != m}
        touched = (t for t in target if m[0] + m[1] in t)
        if all(merge(t, rank) == target[t] for t in touched):
            order.remove(m)
    return order


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    first = None
    for path in sys.argv[1:]:
        tokenizer = load(path)
        target = {s: cut(tokenizer, s) for s in strings()}
        print(f"# {path}: {len(target)} strings", file=sys.stderr)
        if first is None:
            order = prune(fit(target, lambda s: len(cut(tokenizer, s)) == 1), target)
            print(f"# {len(order)} merges", file=sys.stderr)
            first = order
            line = ""
            for a, b in order:
                if len(line) + len(a) + len(b) > 105:
                    print("    " + line.rstrip())
                    line = ""
                line += f"{a}|{b} "
            print("    " + line.rstrip())
            continue
        rank = {m: i for i, m in enumerate(first)}
        differ = {s: c for s, c in target.items() if merge(s, rank) != c}
        print(f"# {len(differ)} strings differ from the first", file=sys.stderr)
        for m in first:
            less = {k: i for k, i in rank.items() if k != m}
            if differ and all(merge(s, less) == target[s] for s in differ):
                left = sum(merge(s, less) != c for s, c in target.items())
                print(f"# without {m[0]}|{m[1]}: {left} strings differ", file=sys.stderr)


if __name__ == "__main__":
    main()
