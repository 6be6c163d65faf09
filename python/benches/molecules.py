"""Texts as molecules of RDKit, and the rules of PoseBusters by which they are checked."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import posebusters
import yaml
from rdkit import Chem
from rdkit.Geometry import Point3D

#: PoseBusters `mol` without energy, which needs hydrogens.
CONFIG = yaml.safe_load((Path(posebusters.__file__).parent / "config" / "mol.yml").read_text())
CONFIG["modules"] = [module for module in CONFIG["modules"] if module["function"] != "energy_ratio"]


def rows(path: str) -> list[dict[str, Any]]:
    """The rows of a file of JSON Lines, plain or gzipped."""
    opened: Any = gzip.open if path.endswith(".gz") else open
    with opened(path, "rt") as lines:
        return [json.loads(line) for line in lines]


def points_of(text: str) -> np.ndarray:
    """The coordinates of a text, float [atoms, 3] in Å."""
    return np.array([[float(x) for x in block.split(",")] for block in re.findall(r"<([^>]*)>", text)])


def molecule_of(smiles: str, points: np.ndarray) -> Chem.Mol:
    """The molecule of a SMILES with coordinates, without stereo, as PoseBusters reads a file."""
    # Hydrogens that the SMILES spells are atoms of the text.
    settings = Chem.SmilesParserParams()
    settings.removeHs = False
    molecule = Chem.MolFromSmiles(smiles, settings)
    Chem.RemoveStereochemistry(molecule)
    conformer = Chem.Conformer(molecule.GetNumAtoms())
    for atom, point in enumerate(points):
        conformer.SetAtomPosition(atom, Point3D(*map(float, point)))
    molecule.AddConformer(conformer)
    return molecule
