"""Rotatable bonds, heavy atoms and torsions by RDKit.

    python rotors.py NCI RANDOM SEED   prints a JSON line {smiles, rotatable_bonds, heavy_atoms, torsions} for each molecule

The molecules are the first of NCI's that RDKit comes with, and those of `random_molecules.py`, without isotope labels. Torsions are the
bonds of the users' pattern whose atoms have another heavy neighbour each.
"""

import json
import random
import sys

from rdkit import Chem, RDLogger
from rdkit.Chem import rdMolDescriptors

from scaffolds import grown, nci

PATTERN = Chem.MolFromSmarts("[!$(*#*)&!D1]-!@[!$(*#*)&!D1]")


def unlabelled(molecule):
    for atom in molecule.GetAtoms():
        atom.SetIsotope(0)
    return Chem.MolFromSmiles(Chem.MolToSmiles(molecule))


def has_further(molecule, atom):
    return sum(beside.GetAtomicNum() > 1 for beside in molecule.GetAtomWithIdx(atom).GetNeighbors()) > 1


def main():
    RDLogger.DisableLog("rdApp.*")
    count, grow, seed = map(int, sys.argv[1:])
    molecules = [*nci(count), *grown(grow, random.Random(seed))]
    for molecule in molecules:
        molecule = molecule and unlabelled(molecule)
        if molecule is None:
            continue
        smiles = Chem.MolToSmiles(molecule)
        molecule = Chem.MolFromSmiles(smiles)
        if molecule is None:
            continue
        bonds = {tuple(sorted(match)) for match in molecule.GetSubstructMatches(PATTERN)}
        row = {
            "smiles": smiles,
            "rotatable_bonds": rdMolDescriptors.CalcNumRotatableBonds(molecule),
            "heavy_atoms": molecule.GetNumHeavyAtoms(),
            "torsions": sorted(bond for bond in bonds if all(has_further(molecule, atom) for atom in bond)),
        }
        print(json.dumps(row))


if __name__ == "__main__":
    main()
