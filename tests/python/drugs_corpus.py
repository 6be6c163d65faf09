"""Whether `corpora/drugs.py` writes the same bytes for one worker, for two, and after an interruption.

    python tests/python/drugs_corpus.py [--molecules 24]

Writes drugs-train.jsonl.gz and drugs-test.jsonl.gz of the run with one worker into the current folder, with excluded.csv, molecules that
it was told to leave out. The exit code is 1 if a run differs, a molecule is excluded, or both parts have a graph. Needs RDKit.
"""

import argparse
import gzip
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from rdkit import Chem

SCRIPT = pathlib.Path(__file__).resolve().parent.parent.parent / "corpora/drugs.py"
FILES = ["drugs-train.jsonl.gz", "drugs-test.jsonl.gz", "drugs.json"]


def command(work, workers, molecules, *more):
    options = ["--work", work, "--workers", workers, "--molecules", molecules, "--test-molecules", molecules // 6, "--part", 4, "--nice", 0]
    return [sys.executable, str(SCRIPT), *map(str, options), *map(str, more)]


def interrupted(line, work):
    """Ends the run as soon as it has written conformers."""
    process = subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    while process.poll() is None and not list(work.glob("train-*.json")):
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    # A part that a killed worker had begun.
    (work / "train-00001.json.part").write_text("[")


def graphs(path):
    """The molecular graphs of a corpus, without stereo."""
    with gzip.open(path, "rt") as lines:
        mols = [Chem.MolFromSmiles(json.loads(line)["canonical_smiles"]) for line in lines]
    for mol in mols:
        Chem.RemoveStereochemistry(mol)
    return {Chem.MolToSmiles(mol) for mol in mols}


def at_the_time_limit():
    """What becomes of an embedding that takes longer than it may."""
    sys.path.insert(0, str(SCRIPT.parent))
    import drugs

    drugs.LIMIT_SECONDS, drugs.TRIES, drugs.RANDOM_TRIES = 1, 10**6, 10**6
    return drugs.embedded("C" * 60, 50, 1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--molecules", type=int, default=24)
    molecules = parser.parse_args().molecules
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        first, one, two = (pathlib.Path(folder) / name for name in ("first", "one", "two"))
        subprocess.run(command(first, 2, molecules), check=True, capture_output=True)
        left_out = sorted(graphs(first / FILES[1]))
        excluded = pathlib.Path("excluded.csv")
        excluded.write_text("smiles,count\n" + "".join(f"{smiles},1\n" for smiles in left_out))
        subprocess.run(command(one, 1, molecules, "--exclude", excluded), check=True, capture_output=True)
        line = command(two, 2, molecules, "--exclude", excluded)
        interrupted(line, two)
        subprocess.run(line, check=True, capture_output=True)
        wrong += [f"{name} differs" for name in FILES if (one / name).read_bytes() != (two / name).read_bytes()]
        train, test = graphs(one / FILES[0]), graphs(one / FILES[1])
        if train & test or not train or not test:
            wrong.append(f"{len(train & test)} graphs in both parts, {len(train)} and {len(test)} in each")
        if (train | test) & set(left_out):
            wrong.append("a molecule was excluded")
        refused = subprocess.run(command(one, 1, molecules), capture_output=True, text=True, check=False)
        if "another recipe" not in refused.stderr:
            wrong.append("a folder of another recipe is not refused")
        for name in FILES[:2]:
            shutil.copy(one / name, ".")
    if at_the_time_limit() != "time limit":
        wrong.append("an embedding at the time limit is not counted as one")
    print("; ".join(wrong) or f"equal: {len(train)} graphs to train on, {len(test)} to test")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
