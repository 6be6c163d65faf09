"""What PoseBusters and RDKit say of conformers.

Reads a JSON object a line, {"smiles", "points"}, heavy atoms in SMILES order; writes one a line: of each rule whether PoseBusters
holds it for broken, and the stereo as RDKit has it. The limits are those of the configuration `mol` that comes with PoseBusters.
"""

import json
import sys
from pathlib import Path

import numpy as np
import posebusters
import yaml
from posebusters.modules.distance_geometry import check_geometry
from posebusters.modules.flatness import check_flatness
from rdkit import Chem, RDLogger
from rdkit.Chem import rdchem
from rdkit.Geometry import Point3D

CONFIG = yaml.safe_load((Path(posebusters.__file__).parent / "config" / "mol.yml").read_text())
LIMITS = {module["name"]: module.get("parameters", {}) for module in CONFIG["modules"]}
# Of flat systems PoseBusters takes the largest distance to one side of the plane; and a ring of six that shares an atom with one
# of five is none of its aromatic rings of six.
AROMATIC = [Chem.MolFromSmarts(text) for text in ("a1aaaa1", "a1aaaaa1")]
PUCKERED = [Chem.MolFromSmarts(text) for text in LIMITS["Ring non-flatness"]["flat_systems"].values()]
MOST_MATCHES = 500


def can_pucker(molecule, ring):
    """Whether two saturated atoms of a ring lie side by side; without these nothing keeps it from being flat."""
    saturated = [molecule.GetAtomWithIdx(atom).GetHybridization() == Chem.HybridizationType.SP3 for atom in ring]
    bonded = lambda a, b: molecule.GetBondBetweenAtoms(ring[a], ring[b]) is not None
    pairs = [(a, b) for a in range(len(ring)) for b in range(a) if bonded(a, b)]
    return any(saturated[a] and saturated[b] for a, b in pairs)



def placed(molecule, points):
    molecule = Chem.Mol(molecule)
    conformer = rdchem.Conformer(molecule.GetNumAtoms())
    for atom, point in enumerate(points):
        conformer.SetAtomPosition(atom, Point3D(*point))
    molecule.RemoveAllConformers()
    molecule.AddConformer(conformer)
    return molecule


def from_plane(points):
    points = points - points.mean(axis=0)
    return np.abs(points @ np.linalg.svd(points)[2][-1]).max()


def tags(molecule):
    molecule = Chem.Mol(molecule)
    Chem.AssignAtomChiralTagsFromStructure(molecule, replaceExistingTags=True)
    return [atom.GetChiralTag() for atom in molecule.GetAtoms()]


def stereo(asked, plain, points):
    """Marked centres and those that are right, in the order of equal atoms in which most are; whether the SMILES is the same."""
    unmarked = Chem.ChiralType.CHI_UNSPECIFIED
    marked = {atom.GetIdx(): atom.GetChiralTag() for atom in asked.GetAtoms() if atom.GetChiralTag() != unmarked}

    def right(order):
        found = tags(placed(plain, [points[atom] for atom in order]))
        return sum(found[atom] == tag for atom, tag in marked.items())

    most = right(range(len(points)))
    if most < len(marked):
        matches = plain.GetSubstructMatches(plain, uniquify=False, maxMatches=MOST_MATCHES)
        most = max(right(order) for order in matches)
    bonds = {bond.GetIdx(): bond.GetStereo() for bond in asked.GetBonds() if bond.GetStereo() > Chem.BondStereo.STEREOANY}
    solid = placed(plain, points)
    Chem.AssignStereochemistryFrom3D(solid, replaceExistingTags=True)
    right_bonds = sum(solid.GetBondWithIdx(bond).GetStereo() == kind for bond, kind in bonds.items())
    # What the SMILES leaves open may be anything.
    for atom in solid.GetAtoms():
        if atom.GetIdx() not in marked:
            atom.SetChiralTag(unmarked)
    for bond in solid.GetBonds():
        if bond.GetIdx() not in bonds:
            bond.SetStereo(Chem.BondStereo.STEREONONE)
    Chem.AssignStereochemistry(solid, cleanIt=True, force=True)
    same = Chem.MolToSmiles(solid) == Chem.MolToSmiles(asked)
    return {"centres": len(marked), "centres_right": most, "double_bonds": len(bonds), "double_bonds_right": right_bonds, "same": same}


def judged(row):
    asked = Chem.MolFromSmiles(row["smiles"])
    plain = Chem.Mol(asked)
    # As PoseBusters reads a file: without stereo.
    Chem.RemoveStereochemistry(plain)
    points = np.array(row["points"])
    molecule = placed(plain, points)
    geometry = check_geometry(molecule, **LIMITS["Geometry"])["results"]
    flat = lambda name: not check_flatness(molecule, **LIMITS[name])["results"]["flatness_passes"]
    rings = [list(ring) for pattern in AROMATIC for ring in molecule.GetSubstructMatches(pattern)]
    limit = LIMITS["Ring flatness"]["threshold_flatness"]
    puckered = [list(ring) for pattern in PUCKERED for ring in molecule.GetSubstructMatches(pattern) if can_pucker(molecule, ring)]
    least = LIMITS["Ring non-flatness"]["threshold_flatness"]
    return {
        "clash": not geometry["no_internal_clash"],
        "bonds": not geometry["bond_lengths_within_bounds"],
        "angles": not geometry["bond_angles_within_bounds"],
        "aromatic_ring": flat("Ring flatness"),
        "aromatic_ring_either_side": any(from_plane(points[ring]) > limit for ring in rings),
        "flat_ring": flat("Ring non-flatness"),
        "flat_ring_either_side": any(from_plane(points[ring]) < least for ring in puckered),
        "double_bond": flat("Double bond flatness"),
        **stereo(asked, plain, points),
    }


RDLogger.DisableLog("rdApp.*")
for line in sys.stdin:
    print(json.dumps({key: value if isinstance(value, int) else bool(value) for key, value in judged(json.loads(line)).items()}))
