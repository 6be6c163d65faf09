"""The judge in memory beside PoseBusters and RDKit: the same verdicts and figures, and what they cost.

    python python/benches/judge.py posebusters CONFORMERS.jsonl.gz [TEXTS.jsonl …] [--texts 4000]
    python python/benches/judge.py rollouts CONFORMERS.jsonl.gz
    python python/benches/judge.py covmat CONFORMERS.jsonl.gz

CONFORMERS are rows of 3DMolGen's JSONL (`canonical_smiles`, `embedded_smiles`, four decimals), TEXTS what
`drift eval --texts` wrote. It needs moldrift, RDKit and PoseBusters. Seconds are CPU seconds of all threads and
processes, so that others on the machine count little; set RAYON_NUM_THREADS=1 and OMP_NUM_THREADS=1 to measure one core.
"""

from __future__ import annotations

import argparse
import gzip
import json
import multiprocessing
import re
import resource
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import posebusters
import yaml
from posebusters.modules.distance_geometry import check_geometry
from posebusters.modules.flatness import check_flatness
from rdkit import Chem, RDLogger
from rdkit.Chem import rdMolAlign
from rdkit.Geometry import Point3D

import moldrift

RDLogger.DisableLog("rdApp.*")

#: How far figures may be from RDKit's, in Å and as a share.
TOLERANCE = 1e-6


def rows(path: str) -> list[dict[str, Any]]:
    """The rows of a file of JSON Lines, plain or gzipped."""
    opened: Any = gzip.open if path.endswith(".gz") else open
    with opened(path, "rt") as lines:
        return [json.loads(line) for line in lines]


def points_of(text: str) -> np.ndarray:
    """The coordinates of a text, float [atoms, 3] in Å."""
    return np.array([[float(x) for x in block.split(",")] for block in re.findall(r"<([^>]*)>", text)])


def with_points(text: str, points: np.ndarray) -> str:
    """A text between its tags, with other coordinates."""
    numbers = iter(points)
    blocks = re.sub(r"<[^>]*>", lambda _: "<{:.4f},{:.4f},{:.4f}>".format(*next(numbers)), text)
    return f"[CONFORMER]{blocks}[/CONFORMER]"


def molecule_of(smiles: str, points: np.ndarray) -> Chem.Mol:
    """The molecule of a SMILES with coordinates, without stereo, as PoseBusters reads a file."""
    molecule = Chem.MolFromSmiles(smiles)
    Chem.RemoveStereochemistry(molecule)
    conformer = Chem.Conformer(molecule.GetNumAtoms())
    for atom, point in enumerate(points):
        conformer.SetAtomPosition(atom, Point3D(*map(float, point)))
    molecule.AddConformer(conformer)
    return molecule


def by_molecule(path: str) -> dict[str, list[str]]:
    """The texts of a file of conformers by SMILES."""
    found: dict[str, list[str]] = {}
    for row in rows(path):
        found.setdefault(row["canonical_smiles"], []).append(row["embedded_smiles"])
    return found


CONFIG = yaml.safe_load((Path(posebusters.__file__).parent / "config" / "mol.yml").read_text())
CONFIG["modules"] = [module for module in CONFIG["modules"] if module["function"] != "energy_ratio"]
LIMITS = {module["name"]: module.get("parameters", {}) for module in CONFIG["modules"]}
AROMATIC = [Chem.MolFromSmarts(text) for text in ("a1aaaa1", "a1aaaaa1")]
PUCKERED = [Chem.MolFromSmarts(text) for text in LIMITS["Ring non-flatness"]["flat_systems"].values()]


def from_plane(points: np.ndarray) -> float:
    """The largest distance of a point to either side of the plane through all."""
    points = points - points.mean(axis=0)
    return float(np.abs(points @ np.linalg.svd(points)[2][-1]).max())


def can_pucker(molecule: Chem.Mol, ring: list[int]) -> bool:
    """Whether two saturated atoms of a ring lie side by side."""
    sp3 = Chem.HybridizationType.SP3
    saturated = {atom for atom in ring if molecule.GetAtomWithIdx(atom).GetHybridization() == sp3}
    pairs = [(a, b) for a in ring for b in ring if a < b and molecule.GetBondBetweenAtoms(a, b)]
    return any(saturated.issuperset(pair) for pair in pairs)


def has_aromatic_bonds(molecule: Chem.Mol, ring: list[int]) -> bool:
    """Whether all bonds of a ring are aromatic; in `c1-2`, between two rings, that of the hyphen is none."""
    bonds = [molecule.GetBondBetweenAtoms(a, b) for a, b in zip(ring, ring[1:] + ring[:1], strict=True)]
    return all(bond.GetIsAromatic() for bond in bonds)


def of_posebusters(task: tuple[str, np.ndarray]) -> dict[str, bool]:
    """Which rules PoseBusters `mol` holds for broken, and which by the definitions where drift leaves it on purpose."""
    smiles, points = task
    molecule = molecule_of(smiles, points)
    geometry = check_geometry(molecule, **LIMITS["Geometry"])["results"]

    def bent(name: str) -> bool:
        return not check_flatness(molecule, **LIMITS[name])["results"]["flatness_passes"]

    rings = [list(ring) for pattern in AROMATIC for ring in molecule.GetSubstructMatches(pattern)]
    puckered = [list(ring) for pattern in PUCKERED for ring in molecule.GetSubstructMatches(pattern)]
    most, least = (LIMITS[name]["threshold_flatness"] for name in ("Ring flatness", "Ring non-flatness"))
    return {
        "clashing": not geometry["no_internal_clash"],
        "bad_bonds": not geometry["bond_lengths_within_bounds"],
        "bad_angles": not geometry["bond_angles_within_bounds"],
        "bent_aromatic_rings": bent("Ring flatness"),
        "flat_rings": bent("Ring non-flatness"),
        "bent_double_bonds": bent("Double bond flatness"),
        "aromatic, either side": any(from_plane(points[ring]) > most for ring in rings),
        "aromatic, bonds too": any(
            from_plane(points[ring]) > most for ring in rings if has_aromatic_bonds(molecule, ring)
        ),
        "flat, either side": any(
            from_plane(points[ring]) < least for ring in puckered if can_pucker(molecule, ring)
        ),
        "parts": "." in smiles,
    }


RULES = ("clashing", "bad_bonds", "bad_angles", "bent_aromatic_rings", "flat_rings", "bent_double_bonds")


def posebusters_verdicts(conformers: str, written: list[str], count: int) -> None:
    """Verdicts beside PoseBusters, each difference with its reason."""
    random = np.random.default_rng(0)
    texts = [(row["smiles"], row["text"]) for path in written for row in rows(path)]
    by_model = len(texts)
    known = list(by_molecule(conformers).items())
    for at in range(count):
        smiles, own = known[at % len(known)]
        base = points_of(own[at // len(known) % len(own)])
        texts.append(
            (
                smiles,
                with_points(own[0], base + random.normal(0, [0.0, 0.05, 0.1, 0.2, 0.4][at % 5], base.shape)),
            )
        )
    scores = moldrift.Judge().score([smiles for smiles, _ in texts], [text for _, text in texts])
    checked = np.flatnonzero(scores.checked)
    tasks = [(texts[at][0], points_of(texts[at][1].split("[CONFORMER]")[-1])) for at in checked]
    with multiprocessing.Pool() as pool:
        theirs = pool.map(of_posebusters, tasks, chunksize=20)
    reasons: Counter[str] = Counter()
    equal = 0
    for at, their in zip(checked, theirs, strict=True):
        own = {rule: bool(getattr(scores, rule)[at]) for rule in RULES}
        differ = [rule for rule in RULES if own[rule] != their[rule]]
        equal += not differ
        for rule in differ:
            reasons[reason(rule, own, their)] += 1
    print(
        f"{len(texts)} texts, {by_model} of a model; {len(checked)} pass and were checked, {equal} with the same "
        "verdict by each rule"
    )
    same = sum(
        any(their[rule] for rule in RULES) != scores.valid_geometry[at]
        for at, their in zip(checked, theirs, strict=True)
    )
    print(f"valid for PoseBusters and drift alike: {same} of {len(checked)}")
    for why, times in reasons.most_common():
        print(f"{times:6} {why}")
    assert "unexplained" not in " ".join(reasons), reasons


def reason(rule: str, own: dict[str, bool], their: dict[str, bool]) -> str:
    """Why a rule is broken for one and not for the other."""
    if rule == "bent_aromatic_rings" and own[rule] == their["aromatic, either side"]:
        return "aromatic ring: distance to either side of the plane, and rings of six beside rings of five"
    if rule == "bent_aromatic_rings" and own[rule] == their["aromatic, bonds too"]:
        return "aromatic ring: of aromatic atoms, but with a bond that is not aromatic"
    if rule == "flat_rings" and own[rule] == their["flat, either side"]:
        return "flat ring: distance to either side of the plane, and rings that nothing puckers"
    if rule == "bent_double_bonds" and own[rule]:
        return "double bond: those with hydrogens, and trigonal carbons, are looked at too"
    return f"unexplained: {rule}, drift {own[rule]}, PoseBusters {their[rule]}"


def in_a_process(work: Callable[[], Any]) -> tuple[Any, float, float, float]:
    """What work gives in a process of its own; CPU seconds with those of its children, seconds, and megabytes."""
    receive, send = multiprocessing.Pipe(duplex=False)

    def run() -> None:
        before = memory()
        begun = time.perf_counter()
        result = work()
        seconds = time.perf_counter() - begun
        used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        cpu = sum(one.ru_utime + one.ru_stime for one in used)
        send.send((result, cpu, seconds, max(one.ru_maxrss for one in used) / 1024 - before))

    process = multiprocessing.get_context("fork").Process(target=run)
    process.start()
    received = receive.recv()
    process.join()
    return received


def memory() -> float:
    """The memory of this process, in megabytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 2**20


def rollouts(conformers: str, molecules: int = 64, group: int = 8, references: int = 30) -> None:
    """Milliseconds a rollout: the judge, and PoseBusters with RDKit's GetBestRMS."""
    random = np.random.default_rng(1)
    known = list(by_molecule(conformers).items())[:molecules]

    def moved(base: np.ndarray, width: float) -> np.ndarray:
        return base + random.normal(0, width, base.shape)

    prompts, texts, beside = [], [], {}
    for smiles, own in known:
        bases = [points_of(text) for text in own]
        beside[smiles] = np.array([moved(bases[at % len(bases)], 0.2) for at in range(references)])
        for at in range(group):
            prompts.append(smiles)
            texts.append(with_points(own[0], moved(bases[at % len(bases)], 0.05)))

    def judged(given: Any) -> Callable[[], Any]:
        # Each process begins with nothing: molecules are read and rules are made too.
        return lambda: [
            float(row.min(initial=np.inf)) for row in moldrift.Judge(given).score(prompts, texts).rmsd
        ]

    def theirs(with_references: bool) -> Callable[[], Any]:
        def run() -> list[float]:
            buster = posebusters.PoseBusters(config=CONFIG, max_workers=0)
            nearest = []
            for smiles, text in zip(prompts, texts, strict=True):
                molecule = molecule_of(smiles, points_of(text))
                buster.bust([molecule], None, None, full_report=False)
                if with_references:
                    others = [molecule_of(smiles, points) for points in beside[smiles]]
                    nearest.append(min(rdMolAlign.GetBestRMS(molecule, other) for other in others))
            return nearest

        return run

    print(f"{len(known)} molecules x {group} rollouts, {references} references each; CPU ms a rollout")
    for name, given in (("without references", None), ("with references", beside)):
        ours, our_cpu, *_ = in_a_process(judged(given))
        other, their_cpu, *_ = in_a_process(theirs(given is not None))
        if other:
            assert np.allclose(ours, other, atol=TOLERANCE)
        a, b = 1e3 * our_cpu / len(texts), 1e3 * their_cpu / len(texts)
        print(f"{name:20} drift {a:.3f}, PoseBusters + RDKit {b:.1f}: {b / a:.0f} times")


def rmsd_matrix(task: tuple[str, np.ndarray, list[str]]) -> np.ndarray:
    """GetBestRMS of all pairs, [references, texts]."""
    smiles, references, texts = task
    probes = [molecule_of(smiles, points_of(text)) for text in texts]
    return np.array(
        [
            [rdMolAlign.GetBestRMS(probe, one) for probe in probes]
            for one in (molecule_of(smiles, r) for r in references)
        ]
    )


def covmat(conformers: str, references: int = 10) -> None:
    """COV and MAT of a test set with 2k texts: the judge, and an RDKit script on all cores."""
    random = np.random.default_rng(2)

    def moved(base: np.ndarray, width: float) -> np.ndarray:
        return np.trunc((base + random.normal(0, width, base.shape)) * 1e4) / 1e4

    tasks = []
    for smiles, own in by_molecule(conformers).items():
        bases = [points_of(text) for text in own]
        beside = np.array([moved(bases[at % len(bases)], 0.3) for at in range(references)])
        texts = [with_points(own[0], moved(bases[at % len(bases)], 0.3)) for at in range(2 * references)]
        tasks.append((smiles, beside, texts))

    def figures(nearest: list[tuple[np.ndarray, np.ndarray]]) -> list[float]:
        sides = [[pair[side] for pair in nearest] for side in (0, 1)]
        shares = [float(np.mean([(side < 0.75).mean() for side in one])) for one in sides]
        return shares + [float(np.mean([side.mean() for side in one])) for one in sides]

    def ours() -> list[float]:
        judge = moldrift.Judge({smiles: beside for smiles, beside, _ in tasks}, duplicates=0)
        prompts = [smiles for smiles, _, texts in tasks for _ in texts]
        scores = judge.score(prompts, [text for *_, texts in tasks for text in texts])
        return [
            float(np.mean(one))
            for one in (
                scores.coverage_recall,
                scores.coverage_precision,
                scores.matching_recall,
                scores.matching_precision,
            )
        ]

    def theirs() -> list[float]:
        with multiprocessing.get_context("fork").Pool() as pool:
            matrices = pool.map(rmsd_matrix, tasks, chunksize=4)
        return figures([(matrix.min(axis=1), matrix.min(axis=0)) for matrix in matrices])

    found, our_cpu, our_seconds, our_memory = in_a_process(ours)
    other, their_cpu, their_seconds, their_memory = in_a_process(theirs)
    pairs = sum(len(beside) * len(texts) for _, beside, texts in tasks)
    print(f"{len(tasks)} molecules, {references} references and {2 * references} texts each, {pairs} pairs")
    print("COV-R, COV-P at 0.75 Å, MAT-R, MAT-P:", *(f"{value:.6f}" for value in found))
    print("RDKit:                               ", *(f"{value:.6f}" for value in other))
    assert np.allclose(found, other, atol=TOLERANCE)
    print(f"drift {our_cpu:.2f} CPU s, {our_seconds:.2f} s, {our_memory:.0f} MB")
    print(
        f"RDKit {their_cpu:.2f} CPU s, {their_seconds:.2f} s, {their_memory:.0f} MB a process: {their_cpu / our_cpu:.1f} times"
    )


def main() -> None:
    """Does one of the three."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("posebusters", "rollouts", "covmat"))
    parser.add_argument("conformers")
    parser.add_argument("written", nargs="*")
    parser.add_argument("--texts", type=int, default=4000)
    given = parser.parse_args()
    if given.what == "posebusters":
        posebusters_verdicts(given.conformers, given.written, given.texts)
    elif given.what == "rollouts":
        rollouts(given.conformers)
    else:
        covmat(given.conformers)


if __name__ == "__main__":
    main()
