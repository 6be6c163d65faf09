"""Random ring systems, fused, spiro and bridged, in several spellings, with the bonds that RDKit finds aromatic in each.

    python aromaticity.py --count 200 --spellings 5 --seed 1

A line of the output is {"smiles", "aromatic"}: a Kekulé structure with its atoms in a random order, and the pairs of atoms whose bond
is aromatic. The first line of a system also has its canonical SMILES, `canonical`. Systems have heteroatoms, charges, radicals,
triple bonds and large rings with ethers. Needs RDKit.
"""

import argparse
import json
import random

from rdkit import Chem, RDLogger

RDLogger.DisableLog("rdApp.*")

SINGLE, DOUBLE, TRIPLE = Chem.BondType.SINGLE, Chem.BondType.DOUBLE, Chem.BondType.TRIPLE
VALENCE = {5: 3, 6: 4, 7: 3, 8: 2, 15: 3, 16: 2, 34: 2}


def bridge(molecule, draw):
    """Joins two atoms by a path of 0 to 5 atoms: neighbours, so that a ring is fused, or any."""
    most = 2 if draw.random() < 0.9 else 3
    free = [atom.GetIdx() for atom in molecule.GetAtoms() if atom.GetDegree() <= most]
    bonds = [bond for bond in molecule.GetBonds() if bond.GetBeginAtomIdx() in free and bond.GetEndAtomIdx() in free]
    length = draw.randint(0, 5)
    if draw.random() < 0.6 and bonds:
        bond = draw.choice(bonds)
        start, end = bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()
    elif len(free) >= 2:
        start, end = draw.sample(free, 2)
    else:
        return
    if length == 0 and molecule.GetBondBetweenAtoms(start, end):
        return
    path = [start, *(molecule.AddAtom(Chem.Atom(6)) for _ in range(length)), end]
    for first, second in zip(path, path[1:]):
        molecule.AddBond(first, second, SINGLE)


def inserted(molecule, draw):
    """Puts atoms into single bonds, so that rings grow."""
    for _ in range(draw.randint(1, 4)):
        bonds = [bond for bond in molecule.GetBonds() if bond.GetBondType() == SINGLE]
        if not bonds:
            return
        bond = draw.choice(bonds)
        start, end = bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()
        molecule.RemoveBond(start, end)
        atoms = [molecule.AddAtom(Chem.Atom(element)) for element in draw.choice([[8], [16], [7], [34], [5], [6, 6]])]
        for first, second in zip([start, *atoms], [*atoms, end]):
            molecule.AddBond(first, second, DOUBLE if (first, second) == tuple(atoms) else SINGLE)


def substituted(molecule, draw):
    """Puts on atoms outside of rings, and other elements and charges inside."""
    for _ in range(draw.randint(0, 2)):
        atom = draw.choice(list(molecule.GetAtoms()))
        if atom.GetDegree() < 3:
            other = molecule.AddAtom(Chem.Atom(draw.choice([6, 6, 7, 8, 16])))
            molecule.AddBond(atom.GetIdx(), other, draw.choice([SINGLE, DOUBLE]))
    for atom in molecule.GetAtoms():
        if draw.random() < 0.22 and atom.GetDegree() in (2, 3):
            atom.SetAtomicNum(draw.choice([7, 7, 7, 8, 16, 5, 15, 34] if atom.GetDegree() == 2 else [7, 7, 5, 15]))
        if draw.random() < 0.03:
            atom.SetFormalCharge(draw.choice([1, -1]))


def room(atom):
    """The number of bonds that an atom still takes."""
    element, charge = atom.GetAtomicNum(), atom.GetFormalCharge()
    most = VALENCE[element] - abs(charge) if element == 6 else VALENCE[element] + (-charge if element == 5 else charge)
    return most - sum(round(bond.GetBondTypeAsDouble()) for bond in atom.GetBonds())


def unsaturated(molecule, draw):
    """Makes single bonds double where there is room, at most one at an atom."""
    share = draw.choice([0.5, 0.8, 1, 1, 1])
    bonds = list(molecule.GetBonds())
    draw.shuffle(bonds)
    for bond in bonds:
        ends = [bond.GetBeginAtom(), bond.GetEndAtom()]
        is_single = all(other.GetBondType() == SINGLE for end in ends for other in end.GetBonds())
        if is_single and draw.random() < share and all(room(end) > 0 for end in ends):
            bond.SetBondType(DOUBLE)


def odd(molecule, draw):
    """Sets triple bonds, charges or radicals anywhere."""
    kind = draw.choice(["triple", "charge", "radical"])
    for bond in molecule.GetBonds():
        if kind == "triple" and bond.GetBondType() == DOUBLE and draw.random() < 0.2:
            bond.SetBondType(TRIPLE)
    for atom in molecule.GetAtoms():
        if kind == "charge" and draw.random() < 0.2:
            atom.SetFormalCharge(draw.choice([1, -1, 2]))
        if kind == "radical" and draw.random() < 0.1:
            atom.SetNoImplicit(True)
            atom.SetNumExplicitHs(draw.choice([0, 1]))


def system(draw):
    """A Kekulé structure that RDKit reads; none if the draw gives none."""
    molecule = Chem.RWMol()
    size = draw.randint(3, 8)
    for _ in range(size):
        molecule.AddAtom(Chem.Atom(6))
    for atom in range(size):
        molecule.AddBond(atom, (atom + 1) % size, SINGLE)
    for _ in range(draw.randint(1, 4)):
        bridge(molecule, draw)
    substituted(molecule, draw)
    unsaturated(molecule, draw)
    kind = draw.random()
    if kind < 0.3:
        inserted(molecule, draw)
    elif kind < 0.5:
        odd(molecule, draw)
    try:
        smiles = Chem.MolToSmiles(molecule, kekuleSmiles=True)
    except RuntimeError:
        return None
    return smiles if Chem.MolFromSmiles(smiles) is not None else None


def spelled(smiles, draw):
    """The same double bonds, the atoms in another order."""
    options = Chem.SmilesParserParams()
    options.sanitize = False
    molecule = Chem.MolFromSmiles(smiles, options)
    order = list(range(molecule.GetNumAtoms()))
    draw.shuffle(order)
    return Chem.MolToSmiles(Chem.RenumberAtoms(molecule, order), canonical=False, kekuleSmiles=True)


def aromatic(smiles):
    """The pairs of atoms with an aromatic bond, the smaller number first."""
    bonds = [bond for bond in Chem.MolFromSmiles(smiles).GetBonds() if bond.GetIsAromatic()]
    return sorted(sorted([bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()]) for bond in bonds)


def main():
    """Prints the spellings."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--spellings", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    draw = random.Random(options.seed)
    made = 0
    while made < options.count:
        smiles = system(draw)
        if smiles is None:
            continue
        made += 1
        canonical = Chem.CanonSmiles(smiles)
        print(json.dumps({"smiles": smiles, "aromatic": aromatic(smiles), "canonical": canonical}))
        for _ in range(options.spellings):
            other = spelled(smiles, draw)
            print(json.dumps({"smiles": other, "aromatic": aromatic(other)}))


main()
