"""Judges generated texts by the rules of 3DMolGen's validation, with RDKit for molecules; rebuilt from what their code does.

    python judge.py CASES.jsonl VERDICTS.jsonl

A line of CASES.jsonl is {"prompt": SMILES, "text": TEXT}, whose verdict is "no_eos", "graph_mismatch", "parse_failure" or "pass",
or {"a": SMILES, "b": SMILES}, whose verdict says whether both are one molecule. VERDICTS.jsonl gets a verdict a line.
"""

import functools
import json
import re
import sys

from rdkit import Chem, RDLogger, rdBase

RDLogger.DisableLog("rdApp.*")

ORGANIC = {"B", "C", "N", "O", "P", "S", "F", "Cl", "Br", "I", "b", "c", "n", "o", "p", "s"}
NUMBER = re.compile(r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?")
ATOM = re.compile(r"(\[[^\]]+\])<([^>]+)>")
OTHER = re.compile(r"%\d{2,}|[=#:/\\\-().]|\d")
SPECIAL = ("<|begin_of_text|>", "<|end_of_text|>", "<|endoftext|>")


@functools.lru_cache(maxsize=None)
def canonical(smiles):
    """The canonical SMILES without stereo and isotopes; None for what is no molecule."""
    molecule = Chem.MolFromSmiles(smiles)
    if molecule is None:
        return None
    return Chem.MolToSmiles(Chem.RemoveHs(molecule), canonical=True, isomericSmiles=False)


def same(a, b):
    first, second = canonical(a), canonical(b)
    return first is not None and first == second


def between(text, tag):
    opened = text.partition(f"[{tag}]")
    if not opened[1]:
        return ""
    closed = opened[2].partition(f"[/{tag}]")
    return closed[0] if closed[1] else ""


def stripped(conformer):
    """The SMILES that the graph is taken from."""
    text = "".join(conformer.split())
    text = re.sub(r"(\[[^\]]+\])<[^>]*>", r"\1", text)
    text = re.sub(r"<[^>]*>", "", text)

    def bare(match):
        inside = match.group(1)
        if re.fullmatch(r"[Cc]H\d*", inside):
            return inside[0]
        return inside if inside in ORGANIC else match.group(0)

    return re.sub(r"\[([^\]]+)\]", bare, text)


def decodes(conformer):
    """Whether a molecule with a position for each atom can be made."""
    smiles, atoms, at = "", 0, 0
    while at < len(conformer):
        atom = ATOM.match(conformer, at)
        other = atom or OTHER.match(conformer, at)
        if other is None:
            return False
        if atom:
            parts = atom.group(2).split(",")
            if len(parts) != 3:
                return False
            for part in parts:
                numbers = NUMBER.findall(part.strip())
                if not numbers:
                    return False
                float(numbers[-1])
            inside = atom.group(1)[1:-1]
            smiles += inside if inside in ORGANIC else atom.group(1)
            atoms += 1
        else:
            smiles += other.group(0)
        at = other.end()
    molecule = Chem.MolFromSmiles(smiles, sanitize=False)
    if molecule is None or molecule.GetNumAtoms() != atoms:
        return False
    try:
        Chem.SanitizeMol(molecule)
    except Exception:
        return False
    return True


def verdict(prompt, text):
    for token in SPECIAL:
        text = text.replace(token, "")
    conformer = between(text, "CONFORMER")
    if not conformer:
        return "no_eos"
    if not same(prompt, stripped(conformer)):
        return "graph_mismatch"
    return "pass" if decodes(conformer) else "parse_failure"


def judged(case):
    return same(case["a"], case["b"]) if "a" in case else verdict(case["prompt"], case["text"])


def main(cases, verdicts):
    with open(cases, encoding="utf-8") as read, open(verdicts, "w", encoding="utf-8") as write:
        for line in read:
            write.write(json.dumps(judged(json.loads(line))) + "\n")
    print(f"RDKit {rdBase.rdkitVersion}")


main(*sys.argv[1:])
