"""The same random molecules in every way in which people write files, for `tests/it/ways.rs`.

    python ways.py make OUT SEED          a file for each way in the folder OUT; prints, as JSON, what becomes of each: how many are encoded
    python ways.py check TEXTS.jsonl…     the rows whose coordinates are not the molecule of their name, stereo included; prints them as JSON

Molecules are grown from a seed (random_molecules.py), optimised by MMFF, and named by RDKit's canonical SMILES. Needs RDKit, numpy and h5py.
"""

import json
import pathlib
import pickle
import random
import re
import sys
from collections import Counter, OrderedDict, defaultdict

import h5py
import numpy
import random_molecules
from rdkit import Chem, RDLogger
from rdkit.Chem import rdForceFieldHelpers
from rdkit.Geometry import Point3D

RDLogger.DisableLog("rdApp.*")

COUNT = 12
BOHR = 0.529177210903
SMALL = Chem.MolFromSmarts("[a;r3,r4]")
RADICALS = [
    "C[O]",
    "CC[S]",
    "C[N]C",
    "CC(C)(C)N([O])C(C)(C)C",
    "[N]=O",
    "[O]O",
    "C[C](C)C",
    "c1ccccc1[O]",
    "CC(=O)[O]",
    "C[N]O",
    "[O]CC",
    "FC(F)[C]F",
]


def grown(draw, keep=lambda molecule: True, imines=False):
    """Molecules with a conformer and the SMILES that RDKit reads from it: neutral, in one part, and of the elements that force fields know.
    With `imines` those alone whose stereo needs a hydrogen, else those alone whose does not."""
    while True:
        plain = Chem.MolFromSmiles(Chem.MolToSmiles(random_molecules.grown(draw)))
        if plain is None or not 4 <= plain.GetNumAtoms() <= 16 or len(Chem.GetMolFrags(plain)) > 1 or not keep(plain):
            continue
        if any(a.GetFormalCharge() or a.GetNumRadicalElectrons() or a.GetIsotope() for a in plain.GetAtoms()):
            continue
        # Where a small ring lies in an aromatic system drift and RDKit differ (docs/molecules.md).
        if plain.HasSubstructMatch(SMALL):
            continue
        molecule = random_molecules.embedded(plain, draw.randrange(1 << 30))
        if molecule is None or not rdForceFieldHelpers.MMFFHasAllMoleculeParams(molecule):
            continue
        if rdForceFieldHelpers.MMFFOptimizeMolecule(molecule, maxIters=2000) != 0:
            continue
        smiles = smiles_of(molecule)
        # What RDKit itself reads otherwise in another order of atoms is no measure of others; nor is the hydrogen of an imine.
        if any(smiles_of(random_molecules.reordered(molecule, draw)) != smiles for _ in range(8)) or ("[H]" in smiles) != imines:
            continue
        if Chem.CanonSmiles(smiles) == smiles:
            yield random_molecules.shuffled(molecule, draw), smiles


def smiles_of(molecule):
    molecule = Chem.Mol(molecule)
    Chem.RemoveStereochemistry(molecule)
    Chem.AssignStereochemistryFrom3D(molecule, replaceExistingTags=True)
    return Chem.MolToSmiles(Chem.RemoveHs(molecule))


def atoms_of(molecule):
    symbols = ["D" if a.GetIsotope() == 2 else a.GetSymbol() for a in molecule.GetAtoms()]
    return zip(symbols, molecule.GetConformer().GetPositions().tolist())


def sdf(molecule, title, items, edit=lambda block: block):
    block = Chem.MolToMolBlock(molecule).split("\n", 1)[1]
    return edit(f"{title}\n{block}") + "".join(f"> <{name}>\n{value}\n\n" for name, value in items) + "$$$$\n"


def frame(
    molecule,
    comment,
    line=lambda symbol, xyz: " ".join([symbol, *(f"{x:.6f}" for x in xyz)]),
    tail="",
):
    rows = [line(symbol, xyz) for symbol, xyz in atoms_of(molecule)]
    return f"{len(rows)}\n{comment}\n" + "\n".join(rows) + "\n" + tail


def columns(molecule, smiles, draw):
    """Extended XYZ with its columns in any order."""
    fields = [("species:S:1", 0), ("pos:R:3", 1), ("Z:I:1", 2), ("forces:R:3", 3)]
    draw.shuffle(fields)

    def line(symbol, xyz):
        number = Chem.GetPeriodicTable().GetAtomicNumber(symbol)
        values = [symbol, " ".join(f"{x:.6f}" for x in xyz), str(number), "9.5 8.5 7.5"]
        return " ".join(values[place] for _, place in fields)

    return frame(
        molecule,
        f'Lattice="9 0 0 0 9 0 0 0 9" Properties={":".join(name for name, _ in fields)} smiles="{smiles}"',
        line,
    )


def named(molecule, smiles):
    """Atoms with numbers, exponents as Fortran writes them."""
    count = Counter()

    def line(symbol, xyz):
        count[symbol] += 1
        return f"{symbol}{count[symbol]} " + " ".join(f"{x:.8E}".replace("E", "D") for x in xyz)

    return frame(molecule, f"smiles={smiles}", line)


def qm9(molecule, smiles, number):
    """A record of QM9: properties in the comment, charges behind positions, then frequencies, SMILES and InChI."""

    def line(symbol, xyz):
        return "\t".join(
            [
                symbol,
                *(f"{x:.10f}" if abs(x) > 0.01 else f"{x / 1e-6:.5f}*^-6" for x in xyz),
                "-0.1*^-3",
            ]
        )

    tail = f"12.5\t30.1\t99.2\n{smiles}\t{smiles}\t\nInChI=1S/x\tInChI=1S/x\n"
    return frame(molecule, f"gdb {number}\t1.5\t2.5*^-6", line, tail)


def deuterated(draw):
    """Molecules with a D that makes a centre, as XYZ with D, and the SMILES of both hands."""
    for molecule, _ in grown(
        draw,
        lambda plain: plain.HasSubstructMatch(Chem.MolFromSmarts("[CX4H2;!R](C)[N,O,C;!$(C[CH2])]")),
    ):
        carbon = molecule.GetSubstructMatch(Chem.MolFromSmarts("[CX4H2;!R](C)[N,O,C;!$(C[CH2])]"))[0]
        hydrogen = next(a for a in molecule.GetAtomWithIdx(carbon).GetNeighbors() if a.GetAtomicNum() == 1)
        hydrogen.SetIsotope(2)
        right = smiles_of(molecule)
        other = Chem.MolFromSmiles(right)
        marked = [a for a in other.GetAtoms() if any(n.GetIsotope() == 2 for n in a.GetNeighbors())]
        if not marked or marked[0].GetChiralTag() == Chem.ChiralType.CHI_UNSPECIFIED:
            continue
        marked[0].InvertChirality()
        wrong = Chem.MolToSmiles(other)
        if wrong != right:
            yield molecule, right, wrong


def imines(draw):
    """Molecules whose SMILES leaves open on which side of a nitrogen its hydrogen lies, and that SMILES."""
    for molecule, smiles in grown(draw, lambda plain: plain.HasSubstructMatch(Chem.MolFromSmarts("[CX3]=[NX2H]")), imines=True):
        bare = Chem.MolFromSmiles(smiles)
        without = Chem.RemoveHsParameters()
        without.removeDefiningBondStereo = True
        yield molecule, Chem.MolToSmiles(Chem.RemoveHs(bare, without))


def complexes(draw):
    """Metals with dative bonds that RDKit finds again without arrows, and a SMILES that leaves their stereo open."""
    while True:
        molecule = random_molecules.complex_of(draw)
        # RDKit forgets hydrides that it takes for hydrogens without need.
        if molecule is None or molecule.HasSubstructMatch(Chem.MolFromSmarts("[H][!#6;!#7;!#8;!#15;!#16]")):
            continue
        plain = Chem.RemoveHs(molecule)
        Chem.RemoveStereochemistry(plain)
        smiles = Chem.MolToSmiles(plain)
        again = Chem.MolFromSmiles(re.sub("->|<-", "", smiles))
        if ("->" in smiles or "<-" in smiles) and again is not None and Chem.MolToSmiles(again) == smiles:
            yield random_molecules.shuffled(molecule, draw), smiles


def write_hdf5(path, all, is_ani):
    with h5py.File(path, "w") as out:
        for at, (molecule, _) in enumerate(all):
            written = Chem.Mol(molecule)
            for atom in written.GetAtoms():
                atom.SetAtomMapNum(0 if is_ani else atom.GetIdx() + 1)
            Chem.AssignStereochemistryFrom3D(written)
            text = Chem.MolToSmiles(written, canonical=False, doRandom=True, allHsExplicit=not is_ani)
            group = out.create_group(f"gdb11_s04/gdb11_s04-{at}" if is_ani else f"m{at}")
            positions = molecule.GetConformer().GetPositions()[None]
            if is_ani:
                group.create_dataset(
                    "species",
                    data=numpy.array([a.GetSymbol() for a in molecule.GetAtoms()], dtype="S2"),
                )
                group.create_dataset("smiles", data=numpy.array(list(text), dtype="S1"))
                group.create_dataset("coordinates", data=positions)
            else:
                group.create_dataset(
                    "atomic_numbers",
                    data=[a.GetAtomicNum() for a in molecule.GetAtoms()],
                )
                group.create_dataset("smiles", data=[text], dtype=h5py.string_dtype())
                group.create_dataset("conformations", data=positions / BOHR).attrs["units"] = "bohr"


def kekule(smiles):
    molecule = Chem.MolFromSmiles(smiles)
    Chem.Kekulize(molecule, clearAromaticFlags=True)
    return Chem.MolToSmiles(molecule, kekuleSmiles=True)


def make(out, seed):
    draw = random.Random(seed)
    out.mkdir(parents=True, exist_ok=True)
    source = grown(draw)
    all = [next(source) for _ in range(COUNT)]
    expected = {}

    def way(name, texts, count=COUNT):
        (out / name).write_text("".join(texts))
        expected[name] = count

    way("columns.xyz", [columns(m, s, draw) for m, s in all])
    way("named.xyz", [named(m, s) for m, s in all])
    way("qm9.xyz", [qm9(m, s, at) for at, (m, s) in enumerate(all)])
    way("comment.xyz", [frame(m, s) for m, s in all])
    way(
        "old.sdf",
        [sdf(m, s, [("smiles", s)], lambda block: block.replace(" V2000", "")) for m, s in all],
    )
    ways = [
        lambda s: f"{s} a name",
        lambda s: f"{s} |$;$|",
        lambda s: f'"{s}"',
        lambda s: f"'{s}'",
    ]
    items = [
        "smiles",
        "SMILES",
        "canonical_smiles",
        "PUBCHEM_SMILES",
        "PUBCHEM_OPENEYE_ISO_SMILES",
    ]
    way(
        "items.sdf",
        [sdf(m, s, [(items[at % 5], ways[at % 4](s))]) for at, (m, s) in enumerate(all)],
    )
    way("cid.sdf", [sdf(m, str(at), []) for at, (m, _) in enumerate(all)])
    rows = [f"{at},{s}\n" for at, (_, s) in enumerate(all)]
    (out / "cid.csv").write_text("".join(["CID,CanonicalSMILES\n", *rows]))
    aromatic = grown(draw, lambda plain: any(a.GetIsAromatic() for a in plain.GetAtoms()))
    way(
        "kekule.sdf",
        [sdf(m, s, [("smiles", kekule(s))]) for m, s in (next(aromatic) for _ in range(COUNT))],
    )
    with_d = deuterated(draw)
    pairs = [next(with_d) for _ in range(COUNT)]
    way("d_right.xyz", [frame(m, f"smiles={right}") for m, right, _ in pairs])
    way("d_wrong.xyz", [frame(m, f"smiles={wrong}") for m, _, wrong in pairs], 0)
    with_h, metals = imines(draw), complexes(draw)
    way("imines.sdf", [sdf(m, s, [("smiles", s)]) for m, s in (next(with_h) for _ in range(COUNT))])
    way("dative.sdf", [sdf(m, s, [("smiles", s)]) for m, s in (next(metals) for _ in range(COUNT))])
    way(
        "radicals.sdf",
        [sdf(random_molecules.embedded(Chem.MolFromSmiles(s), 7), s, [("smiles", s)]) for s in RADICALS],
        0,
    )
    for name, is_ani in (("spice.h5", False), ("ani1.h5", True)):
        write_hdf5(out / name, all, is_ani)
        expected[name] = COUNT
    pooled = OrderedDict((s, {"confs": [m, m], "sub_smiles_counts": Counter({s: 2})}) for m, s in all)
    (out / "counter.pickle").write_bytes(pickle.dumps(pooled))
    (out / "shard.pkl").write_bytes(
        pickle.dumps(
            {
                "generations": {s: [m, m] for m, s in all},
                "stats": defaultdict(int, passed=3),
            }
        )
    )
    expected |= {"counter.pickle": 2 * len(pooled), "shard.pkl": 2 * len(pooled)}
    return expected


def check(paths):
    bad = []
    for path in paths:
        for row in map(json.loads, open(path)):
            smiles = row.get("canonical_smiles") or row["smiles"]
            points = [[float(x) for x in block.split(",")] for block in re.findall(r"<([^>]*)>", row["embedded_smiles"])]
            parameters = Chem.SmilesParserParams()
            parameters.removeHs = False
            asked = Chem.MolFromSmiles(smiles, parameters)
            found = Chem.Mol(asked)
            conformer = Chem.Conformer(found.GetNumAtoms())
            conformer.Set3D(True)
            for atom, point in enumerate(points):
                conformer.SetAtomPosition(atom, Point3D(*point))
            found.AddConformer(conformer)
            if len(points) != asked.GetNumAtoms() or smiles_of(found) != Chem.MolToSmiles(asked):
                bad.append([path, smiles, smiles_of(found)])
    return bad


if __name__ == "__main__":
    command, *rest = sys.argv[1:]
    print(json.dumps(check(rest) if command == "check" else make(pathlib.Path(rest[0]), int(rest[1]))))
