"""The judge in memory beside PoseBusters and RDKit: the same verdicts and figures, and what they cost.

    python python/benches/judge.py written TEXTS.jsonl …
    python python/benches/judge.py posebusters CONFORMERS.jsonl.gz [TEXTS.jsonl …] [--texts 4000]
    python python/benches/judge.py rollouts CONFORMERS.jsonl.gz
    python python/benches/judge.py covmat CONFORMERS.jsonl.gz

CONFORMERS are rows of 3DMolGen's JSONL (`canonical_smiles`, `embedded_smiles`, four decimals), TEXTS what
`drift eval --texts` wrote. It needs moldrift, RDKit and PoseBusters. Seconds are CPU seconds of all threads and
processes, so that others on the machine count little; set RAYON_NUM_THREADS=1 and OMP_NUM_THREADS=1 to measure one core.
"""

from __future__ import annotations

import argparse
import functools
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
from molecules import CONFIG, molecule_of, points_of, rows
from rdkit import Chem, RDLogger
from rdkit.Chem import rdMolAlign

import moldrift

RDLogger.DisableLog("rdApp.*")

#: How far figures may be from RDKit's, in Å and as a share.
TOLERANCE = 1e-6


def with_points(text: str, points: np.ndarray) -> str:
    """A text between its tags, with other coordinates."""
    numbers = iter(points)
    blocks = re.sub(r"<[^>]*>", lambda _: "<{:.4f},{:.4f},{:.4f}>".format(*next(numbers)), text)
    return f"[CONFORMER]{blocks}[/CONFORMER]"


def by_molecule(path: str) -> dict[str, list[str]]:
    """The texts of a file of conformers by SMILES."""
    found: dict[str, list[str]] = {}
    for row in rows(path):
        found.setdefault(row["canonical_smiles"], []).append(row["embedded_smiles"])
    return found


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


#: Atoms that drift wants flat with what is bonded to them: carbons with three neighbours, and both ends of a C=C.
TRIGONAL = Chem.MolFromSmarts("[#6;X3;^2]")
DOUBLE = Chem.MolFromSmarts("[C;X3;^2]=[C;X3;^2]")

#: What PoseBusters calls the rules, by what drift calls them.
RULES = {
    "clashing": "internal_steric_clash",
    "bad_bonds": "bond_lengths",
    "bad_angles": "bond_angles",
    "bent_aromatic_rings": "aromatic_ring_flatness",
    "flat_rings": "non-aromatic_ring_non-flatness",
    "bent_double_bonds": "double_bond_flatness",
}


def trigonal_planes(molecule: Chem.Mol) -> list[list[int]]:
    """The atoms around each carbon with three heavy neighbours, and around each C=C with two at each end, as drift has them."""

    def around(atom: int) -> set[int]:
        return {neighbour.GetIdx() for neighbour in molecule.GetAtomWithIdx(atom).GetNeighbors()}

    planes = [{at} | around(at) for (at,) in molecule.GetSubstructMatches(TRIGONAL) if len(around(at)) == 3]
    for a, b in molecule.GetSubstructMatches(DOUBLE):
        if len(around(a)) > 1 and len(around(b)) > 1:
            planes.append({a, b} | around(a) | around(b))
    return [sorted(plane) for plane in planes if len(plane) > 3]


@functools.cache
def buster() -> posebusters.PoseBusters:
    """PoseBusters `mol` without energy, once a process."""
    return posebusters.PoseBusters(config=CONFIG, max_workers=0)


def of_posebusters(task: tuple[str, np.ndarray]) -> dict[str, bool]:
    """Which rules PoseBusters `mol` holds for broken, and which by the definitions where drift leaves it on purpose."""
    smiles, points = task
    molecule = molecule_of(smiles, points)
    passed = {name: bool(value) for name, value in buster().bust([molecule], None, None).iloc[0].items()}
    rings = [list(ring) for pattern in AROMATIC for ring in molecule.GetSubstructMatches(pattern)]
    puckered = [list(ring) for pattern in PUCKERED for ring in molecule.GetSubstructMatches(pattern)]
    most, least = (LIMITS[name]["threshold_flatness"] for name in ("Ring flatness", "Ring non-flatness"))
    return {
        **{rule: not passed[name] for rule, name in RULES.items()},
        "valid": all(passed.values()),
        "valid but for its graph": all(passed[name] for name in RULES.values()),
        "aromatic, either side": any(from_plane(points[ring]) > most for ring in rings),
        "aromatic, bonds too": any(
            from_plane(points[ring]) > most for ring in rings if has_aromatic_bonds(molecule, ring)
        ),
        "flat, either side": any(
            from_plane(points[ring]) < least for ring in puckered if can_pucker(molecule, ring)
        ),
        "trigonal, either side": any(from_plane(points[plane]) > most for plane in trigonal_planes(molecule)),
    }


class Beside:
    """What drift and PoseBusters say of some texts, counted, and why they differ."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.broken: Counter[tuple[str, str]] = Counter()
        self.reasons: Counter[str] = Counter()
        self.unexplained: list[str] = []

    def add(self, texts: list[tuple[str, str]]) -> Beside:
        """Judges texts, each with its SMILES."""
        smiles, answers = zip(*texts, strict=True)
        scores = moldrift.Judge().score(list(smiles), list(answers))
        checked = np.flatnonzero(scores.checked)
        tasks = [(texts[at][0], points_of(texts[at][1].split("[CONFORMER]")[-1])) for at in checked]
        with multiprocessing.Pool() as pool:
            theirs = pool.map(of_posebusters, tasks, chunksize=20)
        self.counts.update(texts=len(texts), passing=int(scores.passed.sum()), checked=len(checked))
        for at, their in zip(checked, theirs, strict=True):
            own = {rule: bool(getattr(scores, rule)[at]) for rule in RULES}
            valid = bool(scores.valid_geometry[at])
            differ = [rule for rule in RULES if own[rule] != their[rule]]
            self.counts.update(
                valid=valid,
                valid_for_posebusters=their["valid"],
                valid_but_for_graph=their["valid but for its graph"],
                same_verdict=valid == their["valid but for its graph"],
                same_by_each_rule=not differ,
            )
            why = [reason(rule, own, their) for rule in differ]
            self.reasons.update(why)
            self.unexplained += [f"{one}: {texts[at]}" for one in why if one.startswith("unexplained")]
            self.broken.update((rule, "drift") for rule in RULES if own[rule])
            self.broken.update((rule, "PoseBusters") for rule in RULES if their[rule])
        return self

    def join(self, other: Beside) -> None:
        """Adds what was counted of other texts."""
        self.counts += other.counts
        self.broken += other.broken
        self.reasons += other.reasons
        self.unexplained += other.unexplained

    def tell(self) -> None:
        """Prints the reasons."""
        for why, times in self.reasons.most_common():
            print(f"{times:6} {why}")

    def check(self) -> None:
        """Fails if a reason is missing."""
        assert not self.unexplained, "\n".join(self.unexplained)


def written_verdicts(written: list[str]) -> None:
    """Verdicts on the texts of a model beside PoseBusters, by file and together."""
    every = Beside()
    for path in written:
        beside = Beside().add([(row["smiles"], row["text"]) for row in rows(path)])
        tell(Path(path).name, beside)
        every.join(beside)
    tell("all files", every)
    every.check()


def tell(name: str, beside: Beside) -> None:
    """Prints what drift and PoseBusters say of some texts."""
    count = beside.counts
    print(
        f"{name}: {count['texts']} texts, {count['passing']} pass, {count['checked']} were checked; valid for "
        f"PoseBusters {count['valid_for_posebusters']} ({count['valid_but_for_graph']} without its rules on the graph), "
        f"for drift {count['valid']}; the same verdict {count['same_verdict']}, by each rule {count['same_by_each_rule']}"
    )
    print("   PoseBusters, drift: texts that break a rule")
    for rule in RULES:
        print(f"{beside.broken[rule, 'PoseBusters']:6} {beside.broken[rule, 'drift']:6} {rule}")
    beside.tell()


def posebusters_verdicts(conformers: str, written: list[str], count: int) -> None:
    """Verdicts beside PoseBusters on texts of a model, and on real conformers with noise; each difference with its reason."""
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
    beside = Beside().add(texts)
    count = beside.counts
    print(
        f"{len(texts)} texts, {by_model} of a model; {count['checked']} pass and were checked, "
        f"{count['same_by_each_rule']} with the same verdict by each rule"
    )
    print(f"valid for PoseBusters and drift alike: {count['same_verdict']} of {count['checked']}")
    beside.tell()
    beside.check()


def reason(rule: str, own: dict[str, bool], their: dict[str, bool]) -> str:
    """Why a rule is broken for one and not for the other."""
    if rule == "bent_aromatic_rings" and own[rule] == their["aromatic, either side"]:
        return "aromatic ring: distance to either side of the plane, and rings of six beside rings of five"
    if rule == "bent_aromatic_rings" and own[rule] == their["aromatic, bonds too"]:
        return "aromatic ring: of aromatic atoms, but with a bond that is not aromatic"
    if rule == "flat_rings" and own[rule] == their["flat, either side"]:
        return "flat ring: distance to either side of the plane, and rings that nothing puckers"
    if rule == "bent_double_bonds" and own[rule] and their["trigonal, either side"]:
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
    """Does one of the four."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("written", "posebusters", "rollouts", "covmat"))
    parser.add_argument("files", nargs="+")
    parser.add_argument("--texts", type=int, default=4000)
    given = parser.parse_args()
    if given.what == "written":
        written_verdicts(given.files)
    elif given.what == "posebusters":
        posebusters_verdicts(given.files[0], given.files[1:], given.texts)
    elif given.what == "rollouts":
        rollouts(given.files[0])
    else:
        covmat(given.files[0])


if __name__ == "__main__":
    main()
