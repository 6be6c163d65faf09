"""How many stereocentres of generated texts are right, by their order in the text.

    drift eval --model eval/small-bins --corpus small --generations 4 --samples 423 --lp automaton --texts texts.jsonl
    python tests/python/handedness.py texts.jsonl --low -9.525 --step 0.05

In the frame of the first atoms the first stereocentre is nearly always decided by the sign of one z. Any later one is decided by
the signed volume of atoms that lie anywhere. Reads bins of three digits (`--low`, `--step`) or decimals between `<` and `>`.
Needs RDKit and NumPy.
"""

import argparse
import collections
import json
import pathlib
import re

import numpy
from rdkit import Chem

ATOM = re.compile(r"(\[[^\]]*\])(?:<([^>]*)>|(\d{9});)|([^\[])")
# RDKit's limit for three bonds that lie in a plane, in Å³.
FLAT = 0.1


def read(text, low, step):
    """The SMILES of a text and the positions of its atoms, in Å."""
    smiles, places = "", []
    for match in ATOM.finditer(re.search(r"\[CONFORMER\](.*?)\[/CONFORMER\]", text).group(1)):
        atom, decimals, bins, other = match.groups()
        smiles += atom or other
        if decimals:
            places.append([float(number) for number in decimals.split(",")])
        elif bins:
            places.append([low + step * (int(bins[at : at + 3]) + 0.5) for at in (0, 3, 6)])
    return smiles, numpy.array(places)


def verdict(atom, places):
    """`right`, `wrong` or `flat`, by the signed volume of the neighbours in the order of the text."""
    arms = [places[bond.GetOtherAtomIdx(atom.GetIdx())] - places[atom.GetIdx()] for bond in atom.GetBonds()]
    if len(arms) == 4:
        arms = [arm - arms[3] for arm in arms[:3]]
    volume = numpy.dot(arms[0], numpy.cross(arms[1], arms[2]))
    if abs(volume) < FLAT:
        return "flat"
    counterclockwise = atom.GetChiralTag() == Chem.ChiralType.CHI_TETRAHEDRAL_CCW
    return "right" if (volume > 0) == counterclockwise else "wrong"


def main():
    """Prints a line for the first, second, third … centre of a text, and one by how many atoms stand before it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("texts", help="written by `drift eval --texts`")
    parser.add_argument("--low", type=float, default=0.0, help="the lowest edge of the bins, in Å")
    parser.add_argument("--step", type=float, default=1.0, help="the width of a bin, in Å")
    options = parser.parse_args()
    counts = collections.defaultdict(collections.Counter)
    for line in pathlib.Path(options.texts).read_text().splitlines():
        smiles, places = read(json.loads(line)["text"], options.low, options.step)
        molecule = Chem.MolFromSmiles(smiles, sanitize=False)
        if molecule is None or len(places) != molecule.GetNumAtoms():
            continue
        tags = (Chem.ChiralType.CHI_TETRAHEDRAL_CW, Chem.ChiralType.CHI_TETRAHEDRAL_CCW)
        centres = [atom for atom in molecule.GetAtoms() if atom.GetChiralTag() in tags and atom.GetDegree() >= 3]
        for order, atom in enumerate(centres, 1):
            found = verdict(atom, places)
            for key in ("all centres", f"centre {order} of its text", f"behind {atom.GetIdx()} atoms"):
                counts[key][found] += 1
    for key, found in sorted(counts.items()):
        total = sum(found.values())
        print(f"{key:24}{total:6}" + "".join(f"  {name} {found[name] / total:6.1%}" for name in ("right", "wrong", "flat")))


if __name__ == "__main__":
    main()
