#!/usr/bin/env python3
"""Conformers of RDKit's ETKDG beside those of a model: etkdg.py SMILES OUT.sdf [--conformers 4]

SMILES has one a line, and names the conformers in OUT. `drift encode OUT.sdf -o texts.jsonl` writes them as texts, which `drift audit`
judges as it judges a model's. They are not relaxed. Needs rdkit.
"""

import argparse

from rdkit import Chem
from rdkit.Chem import rdDistGeom

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("smiles", type=argparse.FileType())
parser.add_argument("out")
parser.add_argument("--conformers", type=int, default=4)
parser.add_argument("--seed", type=int, default=11)
arguments = parser.parse_args()
without = 0
with Chem.SDWriter(arguments.out) as out:
    for smiles in arguments.smiles.read().split():
        molecule = Chem.AddHs(Chem.MolFromSmiles(smiles))
        molecule.SetProp("_Name", smiles)
        numbers = rdDistGeom.EmbedMultipleConfs(molecule, arguments.conformers, randomSeed=arguments.seed, maxAttempts=20)
        without += not len(numbers)
        for number in numbers:
            out.write(molecule, confId=number)
print(f"{without} molecules without a conformer")
