"""Bond lengths of generated texts by the place of the bond: python ring_bonds.py CONFORMERS.jsonl.gz TEXTS.jsonl...

TEXTS are of `drift eval --texts`. A bond closes a ring if it stands in the text as a number, is in a ring, or is in a chain. Its error is the difference from the median length of the bonds of
CONFORMERS between the same elements, of the same order and smallest ring. Printed for each place: bonds, mean error in Å, share of errors above 0.2 Å.
"""

import collections
import gzip
import json
import re
import statistics
import sys

import numpy as np
from rdkit import Chem

UNIT = re.compile(r"\[([^\]]*)\]<([^>]*)>|\(|\)|%\d\d|.")


def read(text):
    """Positions, and for each atom the one before it that it is bonded to."""
    positions, parents, branches, last = [], [], [], None
    for unit in UNIT.finditer(text):
        token = unit.group(0)
        if token[0] == "[":
            positions.append([float(x) for x in unit.group(2).split(",")])
            parents.append(last)
            last = len(positions) - 1
        elif token == "(":
            branches.append(last)
        elif token == ")":
            last = branches.pop()
        elif token == ".":
            last = None
    return np.array(positions), parents


def bonds(smiles, text):
    """Kind, place and length of each bond."""
    mol = Chem.MolFromSmiles(smiles)
    positions, parents = read(text)
    if mol is None or mol.GetNumAtoms() != len(positions):
        return
    written = {frozenset((atom, parent)) for atom, parent in enumerate(parents) if parent is not None}
    for bond in mol.GetBonds():
        ends = bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()
        elements = tuple(sorted(mol.GetAtomWithIdx(end).GetSymbol() for end in ends))
        ring = next((size for size in range(3, 10) if bond.IsInRingSize(size)), 0)
        place = "closes a ring" if frozenset(ends) not in written else "in a ring" if ring else "in a chain"
        yield (
            (elements, str(bond.GetBondType()), ring),
            place,
            float(np.linalg.norm(positions[ends[0]] - positions[ends[1]])),
        )


def main(conformers, *files):
    lengths = collections.defaultdict(list)
    for row in map(json.loads, gzip.open(conformers, "rt")):
        for kind, _, length in bonds(row["canonical_smiles"], row["embedded_smiles"]):
            lengths[kind].append(length)
    usual = {kind: statistics.median(known) for kind, known in lengths.items()}
    for file in files:
        errors, unread = collections.defaultdict(list), 0
        for row in map(json.loads, open(file)):
            text = re.sub(r".*\[CONFORMER\]|\[/CONFORMER\].*", "", row["text"])
            try:
                found = list(bonds(row["smiles"], text))
            except (ValueError, IndexError):
                unread += 1
                continue
            for kind, place, length in found:
                if kind in usual:
                    errors[place].append(abs(length - usual[kind]))
        print(f"{file}: {unread} texts without three numbers in every block")
        for place, all_errors in sorted(errors.items()):
            print(
                f"  {place:<14} {len(all_errors):>6}  {np.mean(all_errors):.3f} Å  {np.mean(np.array(all_errors) > 0.2):.1%}"
            )


if __name__ == "__main__":
    main(*sys.argv[1:])
