"""Energies of heavy-atom conformers by xtb, for `drift audit --energy 'python eval/energy/xtb.py'`; see docs/energy.md.

Reads XYZ frames from standard input, each with its SMILES as the comment and the atoms in the order of the SMILES, and writes a line a frame,
in kcal/mol: the energy with the heavy atoms where they are, and with --relax behind it that of the conformer once all atoms have relaxed.
`nan` stands where xtb or RDKit gives up; why is said on standard error.

The texts hold heavy atoms alone, so hydrogens are made here: RDKit adds those of the SMILES, MMFF (UFF where it lacks parameters) puts them
in place, and xtb relaxes them with the heavy atoms fixed ($fix). The energy is that of this geometry: the best that these heavy atoms can
have. Stereo of the coordinates is kept, whatever the SMILES says.

Needs RDKit and xtb (Debian: apt-get install xtb). --method takes what xtb's command line does: `--gfn 2` (the default), `--gfnff`.
"""

import argparse
import math
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from rdkit import Chem, RDLogger
from rdkit.Chem import rdForceFieldHelpers as forces
from rdkit.Geometry import Point3D

KCAL_PER_MOL = 627.5094740631


def frames(lines):
    """SMILES, symbols and positions of each frame."""
    for line in lines:
        count = int(line)
        smiles = next(lines).strip()
        atoms = [next(lines).split() for _ in range(count)]
        yield (
            smiles,
            [atom[0] for atom in atoms],
            [tuple(map(float, atom[1:4])) for atom in atoms],
        )


def with_hydrogens(smiles, symbols, positions):
    """The molecule with all hydrogens in place, and how many atoms came from the frame."""
    settings = Chem.SmilesParserParams()
    settings.removeHs = False
    mol = Chem.MolFromSmiles(smiles, settings)
    if mol is None or [atom.GetSymbol() for atom in mol.GetAtoms()] != symbols:
        raise ValueError("the atoms are not those of the SMILES")
    heavy = mol.GetNumAtoms()
    conformer = Chem.Conformer(heavy)
    for at, (x, y, z) in enumerate(positions):
        conformer.SetAtomPosition(at, Point3D(x, y, z))
    mol.AddConformer(conformer)
    # By the stereo of the coordinates: hydrogens are put where there is room.
    mol = Chem.AddHs(mol, addCoords=True)
    if forces.MMFFHasAllMoleculeParams(mol):
        field = forces.MMFFGetMoleculeForceField(
            mol, forces.MMFFGetMoleculeProperties(mol)
        )
    else:
        field = forces.UFFGetMoleculeForceField(mol)
    field.Initialize()
    for at in range(heavy):
        field.AddFixedPoint(at)
    field.Minimize(maxIts=500)
    return mol, heavy


def run(method, folder, mol, name, options, timeout):
    """The energy that xtb says, in hartree, and the folder's geometry of the end."""
    Chem.MolToXYZFile(mol, str(folder / name))
    charge = str(Chem.GetFormalCharge(mol))
    unpaired = str(sum(atom.GetNumRadicalElectrons() for atom in mol.GetAtoms()))
    command = ["xtb", name, *method, "--chrg", charge, "--uhf", unpaired, *options]
    threads = {
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "OMP_STACKSIZE": "1G",
        **os.environ,
    }
    done = subprocess.run(
        command,
        cwd=folder,
        env=threads,
        capture_output=True,
        text=True,
        timeout=timeout,
    )
    found = [
        line.split()[3] for line in done.stdout.splitlines() if "TOTAL ENERGY" in line
    ]
    if done.returncode != 0 or not found:
        last = (done.stderr.strip() or done.stdout.strip() or "no word").splitlines()[
            -1
        ]
        raise ValueError(f"xtb: {last}")
    return float(found[-1])


def moved(mol, path):
    """The molecule where xtb left it."""
    mol = Chem.Mol(mol)
    for at, line in enumerate(path.read_text().splitlines()[2 : 2 + mol.GetNumAtoms()]):
        mol.GetConformer().SetAtomPosition(at, Point3D(*map(float, line.split()[1:4])))
    return mol


def energies(options, smiles, symbols, positions):
    mol, heavy = with_hydrogens(smiles, symbols, positions)
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        call = lambda name, more: run(
            options.method, folder, mol, name, more, options.timeout
        )
        if mol.GetNumAtoms() > heavy:
            (folder / "fix.inp").write_text(f"$fix\n  atoms: 1-{heavy}\n$end\n")
            call("heavy.xyz", ["--opt", "--input", "fix.inp"])
            mol = moved(mol, folder / "xtbopt.xyz")
        found = [call("held.xyz", [])]
        if options.relax:
            found.append(
                call("free.xyz", ["--opt"]) if mol.GetNumAtoms() > 1 else found[0]
            )
    return [energy * KCAL_PER_MOL for energy in found]


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument(
        "--relax",
        action="store_true",
        help="write the energy of the relaxed conformer too",
    )
    options.add_argument(
        "--method", type=shlex.split, default="--gfn 2", help="as xtb takes it"
    )
    options.add_argument(
        "--timeout",
        type=float,
        default=300,
        metavar="SECONDS",
        help="of one call of xtb",
    )
    options = options.parse_args()
    RDLogger.DisableLog("rdApp.*")
    for number, frame in enumerate(frames(iter(sys.stdin)), 1):
        try:
            found = energies(options, *frame)
        except (ValueError, RuntimeError, OSError, subprocess.TimeoutExpired) as error:
            print(f"frame {number} ({frame[0]}): {error}", file=sys.stderr)
            found = [math.nan] * (2 if options.relax else 1)
        print(*(f"{energy:.4f}" for energy in found), flush=True)


main()
