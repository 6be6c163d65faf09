"""How many conformers of RDKit lie inside the mask of `moldrift.GeometryAutomaton`.

    python geometry_inside.py DRIFT SMILES [--conformers 2] [--bounds 0.2]

SMILES has one a line. Each gets conformers by ETKDG (seed 7) and MMFF94. `DRIFT encode` writes them in the frame of the first
atoms and bins of 0.05 Å, the tokens of `eval/small-bins`. A conformer whose tokens are not legal is listed with the reason.
Needs moldrift and rdkit.
"""

import argparse
import json
import pathlib
import subprocess
import tempfile

import moldrift
from rdkit import Chem, RDLogger
from rdkit.Chem import AllChem

RDLogger.DisableLog("rdApp.*")
MODEL = pathlib.Path(__file__).resolve().parents[2] / "eval" / "small-bins"
ENCODING = "binned-v2:-9.525,9.525,0.05"


def write(smiles, count, path):
    """An SDF of conformers; returns how many molecules have none."""
    without = 0
    with Chem.SDWriter(str(path)) as file:
        for one in smiles:
            molecule = Chem.MolFromSmiles(one)
            molecule = molecule and Chem.AddHs(molecule)
            ids = molecule and list(AllChem.EmbedMultipleConfs(molecule, count, randomSeed=7, maxAttempts=20))
            if not ids:
                without += 1
                continue
            AllChem.MMFFOptimizeMoleculeConfs(molecule, maxIters=1000)
            for conformer in ids:
                molecule.SetProp("_Name", one)
                file.write(molecule, confId=conformer)
    return without


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("drift")
    options.add_argument("smiles", type=pathlib.Path)
    options.add_argument("--conformers", type=int, default=2)
    options.add_argument("--bounds", type=float, default=0.2)
    options = options.parse_args()
    automaton = moldrift.GeometryAutomaton(str(MODEL), bounds=options.bounds)
    counts = {"inside": 0, "outside": 0}
    with tempfile.TemporaryDirectory() as folder:
        sdf, texts = pathlib.Path(folder) / "all.sdf", pathlib.Path(folder) / "all.jsonl"
        counts["molecules_without_conformer"] = write(options.smiles.read_text().split(), options.conformers, sdf)
        words = ["encode", sdf, "--frame", "first-atoms", "--encoding", ENCODING, "-o", texts, "-q"]
        # Conformers whose stereo reads otherwise are skipped.
        subprocess.run([options.drift, *words], check=False, stderr=subprocess.DEVNULL)
        for row in map(json.loads, texts.read_text().splitlines()):
            ids = automaton.source.tokenizer.answer_ids(f"[CONFORMER]{row['embedded_smiles']}[/CONFORMER]")
            try:
                automaton.legal(row["canonical_smiles"], ids)
            except moldrift.ForbiddenToken as error:
                counts["outside"] += 1
                print(row["canonical_smiles"], error)
            else:
                counts["inside"] += 1
    print(json.dumps(counts))


main()
