"""Makes inputs for `drift encode` with RDKit, and proves what it writes by RDKit.

    python encode.py make SDF NAMES.smi OUT           the molecules in every format: rdkit_folder, test.pickle, crude.msgpack, all.xyz
    python encode.py embed SMILES.smi OUT.sdf         ETKDG conformers of `SMILES NAME` lines, hydrogens explicit
    python encode.py cases OUT [--count N] [--seed S] [--shared DIR] [--conformers ROWS.jsonl.gz] [--random N]
                                                      random and hard molecules, shuffled, some mirrored, with RDKit's verdicts; with
                                                      --random N made by random_molecules.py alone
    python encode.py undecided OUT NAME…              those of these cases of which RDKit says this or that, as the order of the file has it
    python encode.py check CORPUS.jsonl               whether each text is its prompt's molecule, stereo included
    python encode.py compare OURS.jsonl THEIRS.jsonl [--distances] [--allow ID]…
    python encode.py encode FOLDER OUT.jsonl          the work of `drift encode FOLDER -o OUT.jsonl` by RDKit alone
    python encode.py generate SDF NAMES.smi OUT --bytes N     a large folder in GEOM's layout, for timing

NAMES.smi holds `SMILES NAME` a line; the names are the titles of the SDF. `check` and `compare` exit 1 where a line fails.
Random numbers have fixed seeds. Needs RDKit and numpy; `make` also msgpack.
"""

import argparse
import csv
import gzip
import json
import pathlib
import pickle
import random
import re
import sys

import numpy
from rdkit import Chem, RDLogger, rdBase
from rdkit.Chem import rdDistGeom
from rdkit.Geometry import Point3D

import random_molecules

RDLogger.DisableLog("rdApp.*")

# An atom, or what stands between atoms.
TOKEN = re.compile(r"(\[[^\]]+\]|Br|Cl|[BCNOPSFIbcnops]|\*)|(%\d\d|\d|[()=#$/\\.:~-]|->|<-)")
BLOCK = re.compile(r"<([^<>]*)>")
# Matches of a graph on itself that are tried.
MATCHES = 20_000


def smiles_in(row):
    """The SMILES of a row, which stands under `smiles` where RDKit would write another one."""
    return row.get("canonical_smiles") or row["smiles"]


def lines_of(path):
    opened = gzip.open if str(path).endswith(".gz") else open
    with opened(path, "rt", encoding="utf-8") as lines:
        yield from lines


def rows_of(path):
    return [json.loads(line) for line in lines_of(path)]


def names_of(path):
    """SMILES by name, from `SMILES NAME` lines."""
    pairs = (line.split(None, 1) for line in lines_of(path) if line.strip())
    return {name.strip(): smiles for smiles, name in pairs}


def molecules_of(sdf):
    opened = gzip.open if str(sdf).endswith(".gz") else open
    with opened(sdf, "rb") as stream:
        for molecule in Chem.ForwardSDMolSupplier(stream, removeHs=False):
            assert molecule is not None, f"{sdf}: RDKit reads no molecule"
            yield molecule


def parsed(smiles):
    """The molecule with an atom for each that is written."""
    parameters = Chem.SmilesParserParams()
    parameters.removeHs = False
    return Chem.MolFromSmiles(smiles, parameters)


def canonical(molecule):
    return Chem.MolToSmiles(Chem.RemoveHs(molecule))


# --- texts


def spelled(smiles):
    """The text of a SMILES with an empty block behind each atom: bare atoms in brackets, brackets as they are."""
    parts, at = [], 0
    while at < len(smiles):
        token = TOKEN.match(smiles, at)
        assert token, f"{smiles}: {smiles[at:]}"
        atom, other = token.groups()
        parts.append(other if other else (atom if atom[0] == "[" else f"[{atom}]") + "<>")
        at = token.end()
    return "".join(parts)


def read_text(row, field="embedded_smiles"):
    """The text without numbers, and the numbers."""
    text = row[field]
    points = [[float(part) for part in block.split(",")] for block in BLOCK.findall(text)]
    assert all(len(point) == 3 for point in points), text
    return BLOCK.sub("<>", text), numpy.array(points)


def with_conformer(molecule, points):
    conformer = Chem.Conformer(molecule.GetNumAtoms())
    conformer.Set3D(True)
    for atom, point in enumerate(points):
        conformer.SetAtomPosition(atom, Point3D(*map(float, point)))
    molecule.RemoveAllConformers()
    molecule.AddConformer(conformer)
    return molecule


def of_coordinates(molecule):
    """The molecule with the stereo of its coordinates, and no other."""
    molecule = Chem.Mol(molecule)
    Chem.RemoveStereochemistry(molecule)
    Chem.AssignStereochemistryFrom3D(molecule, replaceExistingTags=True)
    return molecule


# --- check


def marks(molecule):
    """How many stereocentres and double bonds are marked."""
    centres = sum(a.GetChiralTag() != Chem.ChiralType.CHI_UNSPECIFIED for a in molecule.GetAtoms())
    none = (Chem.BondStereo.STEREONONE, Chem.BondStereo.STEREOANY)
    return centres, sum(b.GetStereo() not in none for b in molecule.GetBonds())


def is_beyond(smiles):
    """Whether a mark stands at an atom of three neighbours, where RDKit reads the handedness of sulfur and selenium alone."""
    written = Chem.MolFromSmiles(smiles, sanitize=False)
    written.UpdatePropertyCache(strict=False)
    marked = (a for a in written.GetAtoms() if a.GetChiralTag() != Chem.ChiralType.CHI_UNSPECIFIED)
    return any(a.GetTotalDegree() == 3 and a.GetAtomicNum() not in (16, 34) for a in marked)


def checked(row):
    """`same`, `open`, `unknown` where RDKit cannot tell, or what is wrong with a line."""
    smiles = smiles_in(row)
    prompt = parsed(smiles)
    if prompt is None:
        return "the prompt is no SMILES"
    skeleton, points = read_text(row)
    if skeleton != spelled(smiles):
        return f"the text is {skeleton}"
    stripped, again = read_text(row, "embedded_smiles_stripped")
    if stripped != skeleton or not numpy.array_equal(points, again):
        return "the two dialects differ"
    asked = canonical(prompt)
    found = of_coordinates(with_conformer(Chem.Mol(prompt), points))
    if canonical(found) == asked:
        return "same"
    if is_beyond(smiles):
        return "unknown"
    # What is marked agrees, up to a symmetry.
    if found.HasSubstructMatch(prompt, useChirality=True):
        return "open"
    return f"RDKit reads {canonical(found)}"


def check(arguments):
    counts = {"same": 0, "open": 0, "unknown": 0}
    failed = 0
    centres = bonds = 0
    for row in rows_of(arguments.corpus):
        verdict = checked(row)
        if verdict in counts:
            counts[verdict] += 1
            one, other = marks(parsed(smiles_in(row)))
            centres, bonds = centres + one, bonds + other
        else:
            failed += 1
            print(f"{row['id']}: {row['canonical_smiles']}: {verdict}")
    print(
        f"{counts['same']} the molecule of their prompt, {counts['open']} with more stereo than it, {failed} not,"
        f" {counts['unknown']} that RDKit cannot tell;"
        f" {centres} stereocentres and {bonds} double bonds marked; RDKit {rdBase.rdkitVersion}"
    )
    return failed == 0


# --- compare


def paired(ours, theirs):
    """Rows of the same conformer: by id where ids are names, else by their order among those of one SMILES."""
    ids = {row["id"] for row in theirs}
    if len(ids) == len(theirs) and any(row["id"] in ids for row in ours):
        own = {row["id"]: row for row in ours}
        return [(own.get(row["id"]), row) for row in theirs]
    by_smiles = {}
    for row in ours:
        by_smiles.setdefault(smiles_in(row), []).append(row)
    return [(next(iter_of(by_smiles, smiles_in(row)), None), row) for row in theirs]


def iter_of(lists, key):
    """Takes the first of a list of a dictionary."""
    while lists.get(key):
        yield lists[key].pop(0)


def near(ours, theirs, distances):
    """Whether coordinates are equal but for the last decimal; or the distances between them."""
    if distances:
        matrix = [numpy.linalg.norm(p[:, None] - p[None], axis=-1) for p in (ours, theirs)]
        return numpy.abs(matrix[0] - matrix[1]).max() < 3e-4
    return numpy.abs(ours - theirs).max() < 1.0001e-4


def likeness(own, row, distances):
    """`outright`, `symmetric`, or what differs."""
    if own is None:
        return "is not there"
    (skeleton, ours), (other, theirs) = read_text(own), read_text(row)
    if skeleton != other:
        return f"the text is {skeleton}, not {other}"
    if near(ours, theirs, distances):
        return "outright"
    graph = parsed(smiles_in(own))
    matches = graph.GetSubstructMatches(graph, uniquify=False, useChirality=False, maxMatches=MATCHES)
    if any(near(ours[list(match)], theirs, distances) for match in matches):
        return "symmetric"
    return "other coordinates"


def compare(arguments):
    counts = {"outright": 0, "symmetric": 0}
    failed = allowed = 0
    pairs = paired(rows_of(arguments.ours), rows_of(arguments.theirs))
    for own, row in pairs:
        verdict = likeness(own, row, arguments.distances)
        if verdict in counts:
            counts[verdict] += 1
        elif row["id"] in arguments.allow:
            allowed += 1
        else:
            failed += 1
            print(f"{row['id']}: {row['canonical_smiles']}: {verdict}")
    print(
        f"{len(pairs)} rows: {counts['outright']} equal outright, {counts['symmetric']} up to a symmetry,"
        f" {allowed} other and allowed, {failed} other"
    )
    return failed == 0


# --- make


def record(smiles, molecules):
    """What a pickle of GEOM holds."""
    weight = 1 / len(molecules)
    conformers = [
        {"geom_id": number, "set": 1, "degeneracy": 1, "boltzmannweight": weight, "rd_mol": molecule}
        for number, molecule in enumerate(molecules)
    ]
    charge = Chem.GetFormalCharge(molecules[0])
    return {"conformers": conformers, "uniqueconfs": len(conformers), "charge": charge, "smiles": smiles}


def bare(molecule):
    """The molecule without its data items, so that a format has to do with what it holds itself."""
    molecule = Chem.Mol(molecule)
    for name in molecule.GetPropNames(includePrivate=True):
        molecule.ClearProp(name)
    return molecule


def elements_and_positions(molecule):
    numbers = [atom.GetAtomicNum() for atom in molecule.GetAtoms()]
    return numbers, molecule.GetConformer().GetPositions().tolist()


def xyz(smiles, molecule):
    numbers, positions = elements_and_positions(molecule)
    lines = [str(len(numbers)), f"smiles={smiles}"]
    table = Chem.GetPeriodicTable()
    for number, (x, y, z) in zip(numbers, positions):
        lines.append(f"{table.GetElementSymbol(number)} {x:.6f} {y:.6f} {z:.6f}")
    return "\n".join(lines) + "\n"


def make(arguments):
    import msgpack

    names = names_of(arguments.names)
    by_smiles = {}
    for molecule in molecules_of(arguments.sdf):
        by_smiles.setdefault(names[molecule.GetProp("_Name")], []).append(bare(molecule))
    folder = arguments.out / "rdkit_folder" / "drugs"
    folder.mkdir(parents=True)
    crude, summary = {}, {}
    with open(arguments.out / "all.xyz", "w", encoding="utf-8") as frames:
        for number, (smiles, molecules) in enumerate(by_smiles.items()):
            name = f"{number:06}.pickle"
            (folder / name).write_bytes(pickle.dumps(record(smiles, molecules)))
            summary[smiles] = {"uniqueconfs": len(molecules), "pickle_path": f"drugs/{name}"}
            conformers = []
            for at, molecule in enumerate(molecules):
                frames.write(xyz(smiles, molecule))
                numbers, positions = elements_and_positions(molecule)
                atoms = [[float(z), *place] for z, place in zip(numbers, positions)]
                conformers.append({"geom_id": at, "boltzmannweight": 1 / len(molecules), "xyz": atoms})
            charge = Chem.GetFormalCharge(molecules[0])
            crude[smiles] = {"charge": charge, "uniqueconfs": len(molecules), "conformers": conformers}
    (arguments.out / "rdkit_folder" / "summary_drugs.json").write_text(json.dumps(summary))
    (arguments.out / "test.pickle").write_bytes(pickle.dumps(by_smiles))
    with open(arguments.out / "crude.msgpack", "wb") as out:
        entries = list(crude.items())
        for start in range(0, len(entries), 100):
            out.write(msgpack.packb(dict(entries[start : start + 100])))
    print(f"{len(by_smiles)} molecules")
    return True


# --- embed and generate


def embedded(smiles, seed, count=1):
    """Conformers of a SMILES, hydrogens explicit; none where ETKDG finds none."""
    molecule = parsed(smiles)
    if molecule is None:
        return None
    molecule = Chem.AddHs(molecule)
    parameters = rdDistGeom.ETKDGv3()
    parameters.randomSeed = seed
    parameters.maxIterations = 5
    parameters.timeout = 5
    rdDistGeom.EmbedMultipleConfs(molecule, count, parameters)
    # At the time limit RDKit returns the number -1 instead of none, so the conformers themselves are counted.
    if not molecule.GetNumConformers():
        parameters.useRandomCoords = True
        rdDistGeom.EmbedMultipleConfs(molecule, count, parameters)
    return molecule if molecule.GetNumConformers() else None


def embed(arguments):
    with Chem.SDWriter(str(arguments.out)) as out:
        for name, smiles in names_of(arguments.smiles).items():
            molecule = embedded(smiles, 1)
            if molecule is not None:
                molecule.SetProp("_Name", name)
                out.write(molecule)
    return True


def generate(arguments):
    names = names_of(arguments.names)
    known = [(names[m.GetProp("_Name")], bare(m)) for m in molecules_of(arguments.sdf)]
    folder = arguments.out / "rdkit_folder" / "drugs"
    folder.mkdir(parents=True)
    draw = numpy.random.default_rng(1)
    written = conformers = number = 0
    while written < arguments.bytes:
        smiles, molecule = known[number % len(known)]
        positions = molecule.GetConformer().GetPositions()
        copies = []
        for _ in range(int(draw.integers(20, 41))):
            copy = Chem.Mol(molecule)
            copy.GetConformer().SetPositions(positions + draw.normal(0, 0.02 / 3**0.5, positions.shape))
            copies.append(copy)
        data = pickle.dumps(record(smiles, copies))
        (folder / f"{number:06}.pickle").write_bytes(data)
        written, conformers, number = written + len(data), conformers + len(copies), number + 1
    print(f"{number} molecules, {conformers} conformers, {written} bytes")
    return True


# --- the same work by RDKit alone


def cut(positions):
    """Four decimals, the rest cut off, as 3DMolGen does it; adding 0 takes the sign off a zero."""
    return (numpy.trunc(positions * 10_000) / 10_000 + 0.0).tolist()


def stripped(number):
    return number.rstrip("0").rstrip(".")


def order_of(molecule, smiles):
    """The atoms in the order of the SMILES, if the molecule is that of the SMILES, stereo included."""
    if Chem.MolToSmiles(molecule) == smiles:
        return list(molecule.GetPropsAsDict(True, True)["_smilesAtomOutputOrder"])
    asked = Chem.MolFromSmiles(smiles)
    if asked is None or Chem.MolToSmiles(molecule) != Chem.MolToSmiles(asked):
        return None
    return list(molecule.GetSubstructMatch(asked, useChirality=True)) or None


def text_of(parts, positions, order):
    fixed, short = [], []
    atoms = iter(order)
    for part in parts:
        fixed.append(part)
        short.append(part)
        if part[0] == "[":
            numbers = [f"{value:.4f}" for value in positions[next(atoms)]]
            fixed.append(f"<{','.join(numbers)}>")
            short.append(f"<{','.join(map(stripped, numbers))}>")
    return "".join(fixed), "".join(short)


def encode(arguments):
    written = skipped = 0
    with open(arguments.out, "w", encoding="utf-8") as out:
        for path in sorted(arguments.folder.rglob("*.pickle")):
            data = pickle.loads(path.read_bytes())
            smiles = data["smiles"]
            parts = re.findall(r"\[[^\]]+\]|[^\[\]<>]+", spelled(smiles))
            for conformer in data["conformers"]:
                molecule = Chem.RemoveHs(conformer["rd_mol"])
                Chem.AssignStereochemistryFrom3D(molecule)
                order = order_of(molecule, smiles)
                if order is None:
                    skipped += 1
                    continue
                fixed, short = text_of(parts, cut(molecule.GetConformer().GetPositions()), order)
                row = {"id": str(written), "canonical_smiles": smiles}
                row |= {"embedded_smiles": fixed, "embedded_smiles_stripped": short}
                out.write(json.dumps(row) + "\n")
                written += 1
    print(f"{written} conformers encoded, {skipped} skipped")
    return True


# --- random cases

HARD = """
C[C@H]1CC[C@@H](C)CC1
C[C@H]1CC[C@H](C)CC1
CC1CCC(C)CC1
C[C@H]1CC[C@@H](O)CC1
O[C@H]1CC[C@@H](N)CC1
C[C@@H]1C[C@H](C)C1
C[C@H]1C[C@H](C)C1
O[C@H]1[C@H](O)[C@@H](O)[C@H](O)[C@H](O)[C@@H]1O
O[C@H]1[C@H](O)[C@H](O)[C@H](O)[C@H](O)[C@H]1O
O[C@H]1[C@H](O)[C@@H](O)[C@@H](O)[C@H](O)[C@H]1O
C[C@H](O)[C@@H](C)O
C[C@H](O)[C@H](C)O
C[C@@H](O)[C@@H](C)O
CC(O)C(C)O
C[C@H](F)C[C@@H](C)F
C[C@H](F)[C@H](O)[C@@H](C)F
C[C@H](F)[C@@H](O)[C@@H](C)F
C[C@H](F)C(O)[C@@H](C)F
C[C@H](F)C(O)[C@H](C)F
C/C=C/C(O)/C=C\\C
C/C=C/[C@H](O)/C=C\\C
C/C=C/[C@@H](O)/C=C/C
C1CC2(C1)CC1(CC1)C2
C[C@H]1CC[C@]2(CC1)CC[C@H](C)CC2
C1C[C@@]2(CCO1)CCN2
O1CC[C@]12CCN2
C1CC[C@@]2(C1)CCCN2
C[C@@H]1CC2(C1)C[C@H](C)C2
CC=C=CC
CC=[C@]=CC
C=C=CC(O)F
C[S@](=O)CC
C[S@@](=O)c1ccccc1
CS(=O)c1ccccc1
C[S@+]([O-])CC
C1CC[S@+]1[O-]
C[C@H]1CC[S@+]1[O-]
CC1CC[S@@+]1C
C[S@+]1CCC[C@H]1C
O=[S@]1CCC1C
[S@]1(=O)CCCC1C
[S@@+]1([O-])CCCC1C
[O-][S@@+]1CCc2ccccc21
CC1C[S@+]2CCC[C@@H]12
C[S+](C)CC
C[S@@+](CC)CCC
CS(=O)(=O)[C@H](C)F
C[S@](=N)(=O)CC
CC[S@@](=O)(=NC)C
C[P@](=O)(O)CC
C[P@@](=O)(c1ccccc1)OCC
C[P@](CC)c1ccccc1
CP(CC)c1ccccc1
C[P@@+](CC)(CCC)c1ccccc1
C[N@@+](CC)(CCC)C(C)C
C[N@+]1(CC)CCC[C@H](C)C1
C[N+](C)(C)C
C[N+]1([O-])CCC[C@H](O)C1
C[N@@+]1([O-])CCC[C@H](O)C1
[O-][n+]1ccccc1
CC[N+](C)(C)[O-]
C1C[C@H]2CC[C@@H]1C2
C[C@]12CC[C@H](CC1=O)C2(C)C
CC1(C)[C@@H]2CC[C@@]1(C)C(=O)C2
C1CN2CC[C@@H]1[C@H](O)C2
C[C@H]1CN2CCC1CC2
CN1[C@H]2CC[C@@H]1C[C@@H](O)C2
CN1[C@H]2CC[C@@H]1C[C@H](O)C2
CN1C2CCC1CC(O)C2
C[N@]1CC[C@H]2C[C@@H]1CC2
C12C3C4C1C5C2C3C45
OC12C3C4C1C5C2C3C45
C1C2CC3CC1CC(C2)C3
FC12CC3CC(C1)CC(Cl)(C3)C2
C1[C@H]2C[C@@H]3C[C@H]1C[C@@](F)(C2)C3
Cc1cccc(C)c1-c1c(C)cccc1C(=O)O
Oc1ccc2ccccc2c1-c1c(O)ccc2ccccc12
C1CCC/C=C\\CC1
C1CCC/C=C/CC1
C1=CCCCCCC1
C1CC/C=C\\CC/C=C\\C1
C1CC/C=C/CC/C=C/CC1
C1C/C=C\\CC/C=C/CCCC1
C1CCCCC/C=C/CCCC1
C1=CCCCC1
C1CCCC=CC1
CC=NC
C/C=N/C
C/C=N\\C
CC(=N)C
C/C(CC)=N/O
C/C(CC)=N\\O
CCC(C)=NO
CC(=NO)C
O/N=C/c1ccccc1
C/C(=N\\N)c1ccccc1
C/C=N/NC(=O)c1ccccc1
C/N=N/C
C/N=N\\C
c1ccc(/N=N/c2ccccc2)cc1
c1ccc(N=Nc2ccccc2)cc1
CC(N)=NC
C/N=C(/C)N
NC(N)=NC
CN/C(N)=N/C
[H]/N=C(/C)N
[H]/N=C/C
[H]/N=C(\\C)CC
[H]/N=N/[H]
[H]N=C(C)CC
N=CC
[H]O[H]
[H][H]
[2H]C([2H])([2H])O
[2H][C@H](C)O
[2H][C@@](F)(C)O
[2H]/C=C/C
[2H]/C=C/[2H]
[2H]c1ccccc1
[13CH3][C@H](C)O
[13CH3]C(C)O
C[C@@H]([13CH3])C[C@H](C)O
[13CH4]
[15NH3]
[18F]c1ccccc1
C[C@H](N)C(=O)O
C[C@H]([NH3+])C(=O)[O-]
[NH3+]CC(=O)[O-]
C[N+](=O)[O-]
O=[N+]([O-])c1ccccc1
[N-]=[N+]=NC
CN=[N+]=[N-]
[C-]#[O+]
[C-]#[N+]C
C[N+]#N
N#[N+]c1ccccc1
[NH4+].[Cl-]
C[NH3+].[Cl-]
CC(=O)[O-].[Na+]
CC(=O)[O-].CC(=O)[O-].[Ca+2]
C[C@H](O)C(=O)O.C[C@@H](O)C(=O)O
C[C@H](O)C(=O)O.C[C@H](O)C(=O)O
C[C@H](O)C(=O)[O-].C[NH3+]
C/C=C/C.C/C=C\\C
O.O.O
Cl.NCCO
C[Hg]C
C[Zn]C
C[Si](C)(C)C
C[Si@H](F)Cl
C[Si@](F)(Cl)CC
C[Ge@](F)(Cl)CC
C[Sn](C)(C)C
[Fe+2].[Cl-].[Cl-]
F[B-](F)(F)F
OB(O)c1ccccc1
C[B@-](F)(Cl)CC
[B-]1(C)(CC)OCC[NH2+]1
C[Se@](=O)CC
C[Se]C
C[Se@+](CC)CCC
C[As@](=O)(CC)CCC
C[As](C)C
F[P-](F)(F)(F)(F)F
FS(F)(F)(F)(F)F
OS(=O)(=O)O
O=Cl(=O)(=O)O
[O-][Cl+3]([O-])([O-])O
CI(=O)=O
c1ccc2ccccc2c1
C1=CC=CC=C1
CC1=CC=CC=C1C
CC1=C(C)C=CC=C1
c1cc2cccc3cccc(c1)c23
c1ccc2c(c1)[nH]c1ccccc12
c1c[nH]cn1
Cc1c[nH]cn1
Cc1cnc[nH]1
O=c1cc[nH]cc1
O=c1[nH]cc[nH]c1=O
c1ccc2[nH]ccc2c1
[o+]1ccccc1
c1cc[cH-]c1
[cH+]1cccccc1
c1ccsc1
c1cc[se]c1
Cn1cnc2c1c(=O)n(C)c(=O)n2C
Nc1ncnc2c1ncn2[C@@H]1O[C@H](CO)[C@@H](O)[C@H]1O
c1cc2cc3ccc(cc4nc(cc5ccc(cc1n2)[nH]5)C=C4)[nH]3
C1=Cc2cc3ccc(cc4nc(cc5ccc(cc1n2)[nH]5)C=C4)[nH]3
b1ccccc1
C1CCCCCCCCCCCCCCC1
C1CCCCCCCCCCCCCCCCCCCCCCC1
O=C1CCCCCCCCCCCCCCO1
C[C@H]1CCCCCCCCCCC(=O)O1
C[C@@H]1CCC/C=C/CCCCCC(=O)O1
C[C@@H]1OC(=O)[C@H](C)OC(=O)[C@@H](C)OC(=O)[C@H](C)OC1=O
C[C@@H]1NC(=O)[C@H](C)NC(=O)[C@@H](C)NC(=O)[C@H](C)NC1=O
C1COCCOCCOCCOCCOCCO1
CC[C@H]1OC(=O)[C@H](C)[C@@H](O)[C@H](C)[C@@H](O)[C@](C)(O)C[C@@H](C)C(=O)[C@H](C)[C@@H](O)[C@]1(C)O
C[C@]12CC[C@H]3[C@@H](CCC4=CC(=O)CC[C@]34C)[C@@H]1CC[C@@H]2O
CN1CC[C@]23c4c5ccc(O)c4O[C@H]2[C@@H](O)C=C[C@H]3[C@H]1C5
CC(C)=CC=C(C)C
C/C=C/C=C\\C
C/C=C(C)/C=C/C
CC(/C=C/C)=C/C
CC=C(C=CC)C=CC
C/C=C/C(/C=C\\C)=C/F
F/C=C/C(=C\\F)/C=C\\F
F[C@H](Cl)C(=C([C@@H](F)Cl)C)C
F[C@H](Cl)C=C([C@H](F)Cl)[C@@H](F)Cl
F[C@H](Cl)/C=C(/[C@H](F)Cl)[C@@H](F)Cl
C[C@H](Cl)C([C@H](C)Cl)[C@@H](C)Cl
C[C@H](Cl)[C@@]([C@H](C)Cl)([C@@H](C)Cl)F
C[C@H](Cl)C([C@H](C)Cl)([C@@H](C)Cl)[C@@H](C)Cl
CC1CC1C
C[C@@H]1C[C@H]1C
C[C@@H]1C[C@@H]1C
C[C@H]1CO1
C[C@H]1N[C@@H]1C
CN1C[C@H]1C
C[N@]1C[C@H]1C
C[N@@]1CC1
CN1CC1C
C1=CC=CC=CC=C1
C1=C\\C=C/C=C\\C=C/1
CC#CC
N#CC#N
O=C=O
S=C=NC
C[CH]C
[CH3]
[OH]
C[O]
[O]O
O=[N]
C=C[CH2]
[CH2]C=CC
CC(C)(C)N([O])C(C)(C)C
C=CC=C
OC(F)(Cl)Br
FC(Cl)(Br)I
F[C@](Cl)(Br)I
[F][C@@]([Cl])([Br])[I]
[CH3][CH2][OH]
C(F)(F)(F)C(F)(F)F
CC(C)(C)c1cc(C(C)(C)C)cc(C(C)(C)C)c1
"""


def mirrored(molecule):
    """The molecule with every coordinate negated along x."""
    molecule = Chem.Mol(molecule)
    molecule.GetConformer().SetPositions(molecule.GetConformer().GetPositions() * [-1, 1, 1])
    return molecule


def mirror_smiles(smiles):
    molecule = parsed(smiles)
    for atom in molecule.GetAtoms():
        atom.InvertChirality()
    return Chem.MolToSmiles(molecule)


def less_stereo(smiles, draw):
    """The SMILES with some of its marks rubbed out; a bond's two go together."""
    molecule = parsed(smiles)
    for atom in molecule.GetAtoms():
        if draw.random() < 0.5:
            atom.SetChiralTag(Chem.ChiralType.CHI_UNSPECIFIED)
    for bond in molecule.GetBonds():
        if draw.random() < 0.5:
            bond.SetStereo(Chem.BondStereo.STEREONONE)
    return Chem.MolToSmiles(molecule)


def other_stereo(smiles, draw):
    """The SMILES with one stereocentre or double bond the other way round."""
    molecule = parsed(smiles)
    centres = [a for a in molecule.GetAtoms() if a.GetChiralTag() != Chem.ChiralType.CHI_UNSPECIFIED]
    turned = {
        Chem.BondStereo.STEREOE: Chem.BondStereo.STEREOZ,
        Chem.BondStereo.STEREOZ: Chem.BondStereo.STEREOE,
        Chem.BondStereo.STEREOCIS: Chem.BondStereo.STEREOTRANS,
        Chem.BondStereo.STEREOTRANS: Chem.BondStereo.STEREOCIS,
    }
    bonds = [b for b in molecule.GetBonds() if b.GetStereo() in turned]
    chosen = draw.choice(centres + bonds) if centres or bonds else None
    if isinstance(chosen, Chem.Atom):
        chosen.InvertChirality()
    elif chosen is not None:
        chosen.SetStereo(turned[chosen.GetStereo()])
    return Chem.MolToSmiles(molecule)


def verdict_of(molecule, smiles):
    """RDKit's word on whether a conformer is the molecule of a SMILES: `same`, `open` where the SMILES says less, `other`; or
    `unknown` where it reads no stereo from coordinates."""
    written = parsed(smiles)
    asked = Chem.RemoveHs(written)
    imine = Chem.MolFromSmarts("[#1][#7]=*")
    if written.HasSubstructMatch(imine) and not asked.HasSubstructMatch(imine):
        return "unknown"
    if is_beyond(smiles):
        return "unknown"
    without = Chem.RemoveHsParameters()
    # A hydrogen that the SMILES does not write has no place in its text.
    without.removeDefiningBondStereo = all(a.GetAtomicNum() != 1 for a in asked.GetAtoms())
    found = Chem.RemoveHs(of_coordinates(molecule), without)
    heavy = Chem.RemoveAllHs(molecule).GetConformer().GetPositions()
    distances = numpy.linalg.norm(heavy[:, None] - heavy[None], axis=-1)
    if (distances + numpy.eye(len(heavy)) < 0.1).any():
        return "other"
    if Chem.MolToSmiles(found) == Chem.MolToSmiles(asked):
        # A text has all atoms in brackets, so that those of a radical say nothing.
        bare = Chem.MolFromSmiles(re.sub(r"\[(B|C|N|O|P|S|F|Cl|Br|I|b|c|n|o|p|s)\]", r"\1", smiles))
        if bare is None or Chem.MolToSmiles(bare) != Chem.MolToSmiles(asked):
            return "other"
        # The hydrogen of `C=N` has no place in the text, but leaves stereo open.
        kept = Chem.RemoveHs(of_coordinates(molecule))
        return "open" if kept.HasSubstructMatch(imine) and not asked.HasSubstructMatch(imine) else "same"
    plain = [Chem.MolToSmiles(m, isomericSmiles=False) for m in (found, asked)]
    isotopes = [sorted(a.GetIsotope() for a in m.GetAtoms()) for m in (found, asked)]
    if plain[0] != plain[1] or isotopes[0] != isotopes[1]:
        return "other"
    return "open" if found.HasSubstructMatch(asked, useChirality=True) else "other"


POLYHEDRAL = {Chem.ChiralType.CHI_SQUAREPLANAR: 4, Chem.ChiralType.CHI_TRIGONALBIPYRAMIDAL: 5, Chem.ChiralType.CHI_OCTAHEDRAL: 6}


def verdict_by_matching(molecule, smiles):
    """The same word where atoms have four to six corners, whose marks RDKit's canonical SMILES does not tell apart: whether some order of
    atoms has coordinates from which RDKit reads the marks of the SMILES, in the order of its own bonds."""
    asked = Chem.MolFromSmiles(smiles)
    if any(a.GetDegree() < POLYHEDRAL.get(a.GetChiralTag(), 0) for a in asked.GetAtoms()):
        # Corners without an atom: drift says that it does not check these.
        return "unknown"
    plain, bare = Chem.Mol(asked), Chem.RemoveHs(molecule)
    for one in (plain, bare):
        Chem.RemoveStereochemistry(one)
    best = "other"
    if plain.GetNumAtoms() != bare.GetNumAtoms() or Chem.MolToSmiles(plain) != Chem.MolToSmiles(bare):
        return best
    marks = tags_of(asked)
    positions = bare.GetConformer().GetPositions()
    for match in bare.GetSubstructMatches(plain, uniquify=False, maxMatches=5000):
        placed = with_conformer(Chem.Mol(plain), positions[list(match)])
        Chem.AssignStereochemistryFrom3D(placed, replaceExistingTags=True)
        found = tags_of(placed)
        if all(found.get(key) == mark for key, mark in marks.items()):
            if len(found) == len(marks):
                return "same"
            best = "open"
    return best


def tags_of(molecule):
    """What is marked, by atom and bond."""
    tags = {}
    for atom in molecule.GetAtoms():
        tag = atom.GetChiralTag()
        if tag in POLYHEDRAL:
            tags[atom.GetIdx()] = (tag, atom.GetUnsignedProp("_chiralPermutation"))
        elif tag != Chem.ChiralType.CHI_UNSPECIFIED:
            tags[atom.GetIdx()] = tag
    for bond in molecule.GetBonds():
        if bond.GetStereo() not in (Chem.BondStereo.STEREONONE, Chem.BondStereo.STEREOANY):
            tags[bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()] = bond.GetStereo()
    return tags


def is_polyhedral(smiles):
    return any(mark in smiles for mark in ("@SP", "@TB", "@OH"))


def of_row(row):
    """The heavy atoms of a row."""
    return with_conformer(Chem.MolFromSmiles(smiles_in(row)), read_text(row)[1])


def sources(arguments, draw):
    """Molecules with a conformer, and their SMILES: hard ones, then of the test set of GEOM-Drugs, then of rows."""
    smiles = HARD.split()
    if arguments.shared:
        with open(arguments.shared / "geom/drugs_test_smiles.csv", encoding="utf-8") as table:
            rows = list(csv.DictReader(table))
        draw.shuffle(rows)
        smiles += [draw.choice([row["smiles"], row["corrected_smiles"]]) for row in rows[: arguments.count]]
    failed = 0
    for seed, text in enumerate(smiles):
        molecule = embedded(text, seed + 1)
        if molecule is None:
            failed += 1
        else:
            yield text, molecule
    rows = [row for path in arguments.conformers for row in rows_of(path)]
    draw.shuffle(rows)
    for row in rows[: arguments.count]:
        yield smiles_in(row), of_row(row)
    print(f"{failed} of {len(smiles)} SMILES without a conformer of ETKDG")


def random_variants(molecule, draw):
    """The SMILES of the coordinates, and two that are nearly it."""
    found = Chem.MolToSmiles(Chem.RemoveHs(of_coordinates(molecule)))
    if Chem.MolFromSmiles(found) is None:
        return
    yield found, molecule
    if is_polyhedral(found):
        kind, number = re.search(r"@(SP|TB|OH)(\d+)", found).groups()
        for _ in range(2):
            other = draw.randint(1, {"SP": 3, "TB": 20, "OH": 30}[kind])
            yield found.replace(f"@{kind}{number}", f"@{kind}{other}"), molecule
        return
    of_them = draw.randrange(5)
    if of_them == 0:
        yield found, mirrored(molecule)
    elif of_them == 1:
        yield mirror_smiles(found), mirrored(molecule)
    elif of_them == 2:
        yield other_stereo(found, draw), molecule
    elif of_them == 3:
        yield less_stereo(found, draw), molecule
    yield Chem.MolToRandomSmilesVect(parsed(found), 1, draw.randrange(1 << 30))[0], molecule


def all_variants(arguments, draw):
    if arguments.random:
        for molecule in random_molecules.molecules(arguments.random, draw):
            yield from random_variants(molecule, draw)
    else:
        for smiles, molecule in sources(arguments, draw):
            yield from variants(smiles, molecule, draw)


def judged(molecule, smiles):
    """What RDKit says of a file's molecule."""
    if "->" in smiles or "<-" in smiles:
        # No arrow stands in a text: RDKit has to find the same molecule without.
        text = Chem.MolFromSmiles(re.sub("->|<-", "", smiles))
        if text is None or Chem.MolToSmiles(text) != Chem.MolToSmiles(Chem.MolFromSmiles(smiles)):
            return "other"
    return (verdict_by_matching if is_polyhedral(smiles) else verdict_of)(molecule, smiles)


def undecided(arguments):
    """Prints the cases among those named of which RDKit says one thing or another, as the order of a file's atoms and bonds has it."""
    draw = random.Random(1)
    smiles = {case["id"]: case["smiles"] for case in rows_of(arguments.out / "expected.jsonl")}
    found = []
    for molecule in molecules_of(arguments.out / "v2000.sdf"):
        name = molecule.GetProp("_Name")
        if name in arguments.names:
            said = {judged(random_molecules.reordered(molecule, draw), smiles[name]) for _ in range(60)}
            if len(said) > 1:
                found.append(name)
    print(json.dumps(found))
    return True


def variants(smiles, molecule, draw):
    """SMILES and conformers that belong together or nearly so."""
    yield smiles, molecule
    mirror = mirrored(molecule)
    yield smiles, mirror
    yield mirror_smiles(smiles), mirror
    found = canonical(of_coordinates(molecule))
    yield found, molecule
    yield other_stereo(found, draw), molecule
    yield less_stereo(found, draw), molecule
    random_order = Chem.MolToRandomSmilesVect(parsed(found), 1, draw.randrange(1 << 30))[0]
    yield random_order, molecule


def cases(arguments):
    draw = random.Random(arguments.seed)
    arguments.out.mkdir(parents=True, exist_ok=True)
    expected, pickled = [], []
    two, three = (Chem.SDWriter(str(arguments.out / f"{name}.sdf")) for name in ("v2000", "v3000"))
    three.SetForceV3000(True)
    for text, conformer in all_variants(arguments, draw):
        name = f"case_{len(expected):06}"
        conformer = random_molecules.shuffled(bare(conformer), draw)
        # As the files have it: four decimals, and bonds that were read from text.
        block = Chem.MolFromMolBlock(Chem.MolToMolBlock(conformer), removeHs=False)
        if block is None:
            continue
        verdicts = [judged(block, text)]
        Chem.SetUseLegacyStereoPerception(False)
        verdicts.append(judged(Chem.MolFromMolBlock(Chem.MolToMolBlock(conformer), removeHs=False), text))
        Chem.SetUseLegacyStereoPerception(True)
        expected.append({"id": name, "smiles": text, "verdict": verdicts[0], "newer": verdicts[1]})
        pickled.append({"smiles": text, "rd_mol": bare(conformer)})
        conformer.SetProp("_Name", name)
        conformer.SetProp("smiles", text)
        two.write(conformer)
        three.write(conformer)
    two.close()
    three.close()
    (arguments.out / "all.pickle").write_bytes(pickle.dumps({c["id"]: p for c, p in zip(expected, pickled)}))
    with open(arguments.out / "expected.jsonl", "w", encoding="utf-8") as out:
        out.writelines(json.dumps(case) + "\n" for case in expected)
    counts = {v: sum(case["verdict"] == v for case in expected) for v in ("same", "open", "other", "unknown")}
    print(f"{len(expected)} cases: {counts}; RDKit {rdBase.rdkitVersion}")
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(required=True)

    def verb(run, *places):
        added = verbs.add_parser(run.__name__)
        added.set_defaults(run=run)
        for place in places:
            added.add_argument(place, type=pathlib.Path)
        return added

    verb(make, "sdf", "names", "out")
    verb(embed, "smiles", "out")
    verb(check, "corpus")
    comparing = verb(compare, "ours", "theirs")
    comparing.add_argument("--distances", action="store_true")
    comparing.add_argument("--allow", action="append", default=[])
    verb(encode, "folder", "out")
    verb(generate, "sdf", "names", "out").add_argument("--bytes", type=int, required=True)
    verb(undecided, "out").add_argument("names", nargs="*")
    making = verb(cases, "out")
    making.add_argument("--count", type=int, default=100)
    making.add_argument("--seed", type=int, default=1)
    making.add_argument("--random", type=int, default=0)
    making.add_argument("--shared", type=pathlib.Path)
    making.add_argument("--conformers", type=pathlib.Path, action="append", default=[])
    arguments = parser.parse_args()
    sys.exit(0 if arguments.run(arguments) else 1)


main()
