"""Random stereo marks beside RDKit's reading of them: which marks count, and which agree with coordinates.

    python stereo_marks.py make OUT --count 500 --seed 1
    drift encode OUT/cases.sdf -o OUT/encoded.jsonl
    drift audit OUT/texts.jsonl --dialect fixed --verdicts OUT/verdicts.jsonl
    python stereo_marks.py check OUT

Small molecules with rings, isotopes, centres of every element, trivalent nitrogen and written hydrogens get marks at random places,
whether or not they mean something there, and a conformer that knows nothing of them. A mark counts if it is left in what
`MolFromSmiles` returns. It agrees with coordinates by the sign of a volume, or by the sides of a double bond, up to an exchange of
equivalent atoms.
"""

import argparse
import collections
import json
import pathlib
import random
import re

import numpy
from rdkit import Chem, RDLogger, rdBase

import random_molecules

RDLogger.DisableLog("rdApp.*")

random_molecules.PIECES += """
P P P P [AsH3] C[AsH2] [SiH4] [SiH3]F F[SiH2]Cl [GeH4] C[SeH]=O [SH](=O)C [SH](=O)C C[SH+]C C[PH]C CP CP(C) P(=O)C C[PH2+]C N(C)C N(C)C NC
C[NH2+]C C[OH+]C C1CN1 C1CN1 C1CN1 C1CP1 C1CCP1 C1C[SH]1=O C1CN2CCC1CC2 C1CN2CCC1C2 C1N2CCN1CC2 C1CCN2CCCC2C1 C1CC(C)CCC1 C1CC1(F)
C1CCN(C)CC1 C1CCNC1 C1C[OH+]C1 C1CC[CH-]C1 [BH3-]F [13CH4] [13CH3]C [18OH2] [15NH3] [2H]C([2H])C C([2H])O CC(C)O CC(C)N C(F)(Cl)Br C=CC C=NC
C=C(C)C C(C)=NO C1CCC=CCCC1 [CH2-]C C[NH+](C)CC C(=O)N(C)C S C1CC(O)C1 OC1CCC(F)CC1 CC(O)C(O)C
""".split()
TAGS = [Chem.ChiralType.CHI_TETRAHEDRAL_CW, Chem.ChiralType.CHI_TETRAHEDRAL_CCW]
SIDES = [Chem.BondStereo.STEREOCIS, Chem.BondStereo.STEREOTRANS]
# RDKit's limit for three bonds that lie in a plane, in Å³.
FLAT = 0.1
MOST_ORDERS = 5000
# A marked atom.
MARK = re.compile(r"\[[^\]]*@")


def marked(plain, draw):
    """A SMILES of a molecule with marks at random places, and with some hydrogens as atoms."""
    molecule = plain
    if draw.random() < 0.4:
        heavy = [a.GetIdx() for a in plain.GetAtoms() if a.GetTotalNumHs()]
        some = [a for a in heavy if draw.random() < 0.3]
        molecule = Chem.AddHs(plain, onlyOnAtoms=some) if some else plain
    # The marks of double bonds would not survive this.
    molecule = Chem.RWMol(random_molecules.shuffled(molecule, draw))
    share = draw.choice([0.3, 0.6, 0.9])
    for atom in molecule.GetAtoms():
        if atom.GetTotalDegree() >= 3 and atom.GetDegree() >= 2 and draw.random() < share:
            atom.SetChiralTag(draw.choice(TAGS))
            if atom.GetTotalNumHs() == 1 and not atom.GetNumExplicitHs():
                atom.SetNumExplicitHs(1)
                atom.SetNoImplicit(True)
    for bond in molecule.GetBonds():
        if bond.GetBondType() == Chem.BondType.DOUBLE and draw.random() < share:
            ends = [bond.GetBeginAtom(), bond.GetEndAtom()]
            around = [[n.GetIdx() for n in a.GetNeighbors() if n.GetIdx() != b.GetIdx()] for a, b in (ends, ends[::-1])]
            if all(around):
                bond.SetStereoAtoms(draw.choice(around[0]), draw.choice(around[1]))
                bond.SetStereo(draw.choice(SIDES))
    # Otherwise RDKit drops marks without meaning before it writes.
    molecule.SetIntProp("_StereochemDone", 1)
    return Chem.MolToSmiles(molecule, canonical=draw.random() < 0.5)


def kept_places(smiles, read):
    """The number in the text of each atom that RDKit reads; none where it keeps some hydrogens without a label."""
    if any(a.GetAtomicNum() == 1 and not a.GetIsotope() for a in read.GetAtoms()):
        return None
    options = Chem.SmilesParserParams()
    options.sanitize = options.removeHs = False
    written = Chem.MolFromSmiles(smiles, options).GetAtoms()
    places = [a.GetIdx() for a in written if a.GetAtomicNum() > 1 or a.GetIsotope()]
    return places if len(places) == read.GetNumAtoms() else None


def side(points):
    x, a, b, y = points
    left, right = numpy.cross(x - a, b - a), numpy.cross(y - b, b - a)
    return Chem.BondStereo.STEREOCIS if left @ right > 0 else Chem.BondStereo.STEREOTRANS


def is_straight(a, b):
    return a @ b < -0.999388 * numpy.linalg.norm(a) * numpy.linalg.norm(b)


def matches(whole, bare):
    """The orders in which a molecule without stereo lies in one with the same atoms, with all hydrogens or none."""

    def kind(atom):
        return atom.GetAtomicNum(), atom.GetIsotope(), atom.GetFormalCharge(), atom.GetTotalNumHs(includeNeighbors=True)

    for match in whole.GetSubstructMatches(bare, uniquify=False, maxMatches=MOST_ORDERS):
        if all(kind(whole.GetAtomWithIdx(at)) == kind(atom) for at, atom in zip(match, bare.GetAtoms())):
            yield match


class Reading:
    """What RDKit reads: the marks that it keeps, and the orders of equivalent atoms."""

    def __init__(self, smiles):
        self.molecule = Chem.MolFromSmiles(smiles)
        self.whole = Chem.AddHs(self.molecule)
        self.centres = [a.GetIdx() for a in self.molecule.GetAtoms() if a.GetChiralTag() in TAGS]
        none = (Chem.BondStereo.STEREONONE, Chem.BondStereo.STEREOANY)
        self.bonds = [b for b in self.molecule.GetBonds() if b.GetStereo() not in none]
        plain = Chem.Mol(self.molecule)
        Chem.RemoveStereochemistry(plain)
        self.orders = list(matches(plain, plain))

    def around(self, atom):
        """The neighbours of a centre in RDKit's order: atoms, and None for the hydrogen that is none."""
        neighbours = [b.GetOtherAtomIdx(atom) for b in self.whole.GetAtomWithIdx(atom).GetBonds()]
        count = self.molecule.GetNumAtoms()
        return [other if other < count else None for other in neighbours]

    def agrees(self, atom, order, places, hydrogens):
        """Whether a centre agrees; None if its hydrogen has no place. `places` are by atom, `hydrogens` those of each atom."""
        points = []
        for other in self.around(atom):
            if other is not None:
                points.append(places[order[other]])
            elif hydrogens is not None:
                own = hydrogens[order[atom]]
                points.append(own[0] if len(own) == 1 else None)
            else:
                points.append(None)
        if sum(point is not None for point in points) < 3:
            return None
        centre = places[order[atom]]
        arms = [None if point is None else point - centre for point in points]
        counterclockwise = self.molecule.GetAtomWithIdx(atom).GetChiralTag() == TAGS[1]
        # By the heavy atoms, as drift has it: a hydrogen decides only where it has to.
        if sum(other is not None for other in self.around(atom)) >= 3:
            arms = [None if other is None else arm for other, arm in zip(self.around(atom), arms)]
        threes = [[0, 1, 2], [0, 1, 3], [0, 2, 3], [1, 2, 3]] if len(arms) == 4 else [[0, 1, 2]]
        for three, sign in zip(threes, (1, -1, 1, -1)):
            if any(arms[at] is None for at in three):
                continue
            volume = sign * numpy.dot(arms[three[0]], numpy.cross(arms[three[1]], arms[three[2]]))
            if abs(volume) > FLAT:
                return bool(volume > 0) == counterclockwise
        return False

    def bond_agrees(self, bond, order, places):
        ends = [bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()]
        points, turned = [], False
        for end, across, first in zip(ends, ends[::-1], bond.GetStereoAtoms()):
            others = [b.GetOtherAtomIdx(end) for b in self.molecule.GetAtomWithIdx(end).GetBonds()]
            others = [first] + [other for other in others if other not in (across, first)]
            at, beyond = places[order[end]], places[order[across]]
            off = [place for place in others if not is_straight(places[order[place]] - at, beyond - at)]
            if not off:
                return False
            turned ^= off[0] != first
            points.append(places[order[off[0]]])
        found = side([points[0], places[order[ends[0]]], places[order[ends[1]]], points[1]])
        wanted = bond.GetStereo() in (Chem.BondStereo.STEREOCIS, Chem.BondStereo.STEREOZ)
        return ((found == Chem.BondStereo.STEREOCIS) ^ turned) == wanted

    def marks(self, order, places, hydrogens):
        centres = {atom: self.agrees(atom, order, places, hydrogens) for atom in self.centres}
        bonds = [self.bond_agrees(bond, order, places) for bond in self.bonds]
        return centres, bonds

    def best(self, places, hydrogens):
        """The marks in the order of equivalent atoms in which most agree."""
        found = [self.marks(order, places, hydrogens) for order in self.orders]
        return max(found, key=lambda marks: sum(v is True for v in marks[0].values()) + sum(marks[1]))


def text_of(smiles, places):
    """The enriched text of a SMILES whose atoms lie at the given places."""
    out, at, atom = [], 0, 0
    while at < len(smiles):
        if smiles[at] == "[":
            end = smiles.index("]", at) + 1
            symbol = smiles[at:end]
        elif smiles[at : at + 2] in ("Cl", "Br"):
            end = at + 2
            symbol = f"[{smiles[at:end]}]"
        elif smiles[at].isalpha():
            end = at + 1
            symbol = f"[{smiles[at]}]"
        else:
            out.append(smiles[at])
            at += 1
            continue
        out.append(symbol + "<" + ",".join(f"{x:.4f}" for x in places[atom]) + ">")
        at, atom = end, atom + 1
    return "".join(out)


def case(plain, conformer, draw):
    """A SMILES with marks, and what RDKit says of it beside a conformer: hydrogens follow the atoms of `plain` in it."""
    smiles = marked(plain, draw)
    read = Chem.MolFromSmiles(smiles)
    if read is None or "%" in smiles:
        return None
    reading = Reading(smiles)
    places = kept_places(smiles, read)
    if places is None or len(reading.orders) == MOST_ORDERS:
        return None
    bare = Chem.Mol(read)
    Chem.RemoveStereochemistry(bare)
    match = next(matches(conformer, bare), None)
    if match is None:
        return None
    return smiles, reading, places, match


def make(options):
    draw = random.Random(options.seed)
    options.out.mkdir(parents=True, exist_ok=True)
    writer = Chem.SDWriter(str(options.out / "cases.sdf"))
    expected, texts = [], []
    while len(expected) < options.count:
        grown = random_molecules.grown(draw)
        grown = Chem.MolFromSmiles(Chem.MolToSmiles(grown))
        if grown is None or not 4 <= grown.GetNumHeavyAtoms() <= 14:
            continue
        # No text can express most radicals.
        if any(a.GetNumRadicalElectrons() for a in grown.GetAtoms()):
            continue
        Chem.RemoveStereochemistry(grown)
        whole = random_molecules.embedded(grown, draw.randrange(1 << 30))
        if whole is None:
            continue
        whole = random_molecules.shuffled(whole, draw)
        Chem.RemoveStereochemistry(whole)
        whole = Chem.MolFromMolBlock(Chem.MolToMolBlock(whole), removeHs=False)
        if whole is None:
            continue
        points = whole.GetConformer().GetPositions()
        distances = numpy.linalg.norm(points[:, None] - points[None], axis=-1)
        if (distances + numpy.eye(len(points)) < 0.5).any():
            continue
        for _ in range(2):
            found = case(grown, whole, draw)
            if found is None:
                continue
            smiles, reading, kept, match = found
            places = points[list(match)]
            hydrogens = [
                [points[n.GetIdx()] for n in whole.GetAtomWithIdx(at).GetNeighbors() if n.GetIdx() not in match and n.GetAtomicNum() == 1]
                for at in match
            ]
            name = f"case_{len(expected):05}"
            with_all = reading.best(places, hydrogens)
            row = {"id": name, "smiles": smiles, "kept": [kept[atom] for atom in reading.centres], "bonds": len(reading.bonds)}
            row["encoded"] = all(v is not False for v in with_all[0].values()) and all(with_all[1])
            # A text has places of the atoms that it writes.
            written, at, own = [], dict(zip(kept, range(len(kept)))), [list(h) for h in hydrogens]
            options_ = Chem.SmilesParserParams()
            options_.sanitize = options_.removeHs = False
            atoms = Chem.MolFromSmiles(smiles, options_)
            for atom in atoms.GetAtoms():
                if atom.GetIdx() in at:
                    written.append(places[at[atom.GetIdx()]])
                else:
                    written.append(own[at[atom.GetNeighbors()[0].GetIdx()]].pop())
            of_text = [[] for _ in kept]
            for atom in atoms.GetAtoms():
                if atom.GetIdx() not in at:
                    of_text[at[atom.GetNeighbors()[0].GetIdx()]].append(written[atom.GetIdx()])
            centres, bonds = reading.best(places, of_text)
            checked = [v for v in centres.values() if v is not None]
            row.update(centres=len(checked), right=sum(checked), bonds_right=sum(bonds), unchecked=len(centres) - len(checked))
            expected.append(row)
            texts.append({"id": name, "smiles": smiles, "text": f"[CONFORMER]{text_of(smiles, written)}[/CONFORMER]"})
            one = Chem.Mol(whole)
            one.SetProp("_Name", name)
            one.SetProp("smiles", smiles)
            writer.write(one)
    writer.close()
    for name, rows in (("expected", expected), ("texts", texts)):
        (options.out / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    print(f"{len(expected)} cases; RDKit {rdBase.rdkitVersion}")


def rows_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def order_fault(row, encoded, whole):
    """What is wrong with the order of atoms of an encoded row; empty if nothing is."""
    points = whole.GetConformer().GetPositions()
    text = encoded["embedded_smiles"]
    blocks = [[float(x) for x in part.partition(">")[0].split(",")] for part in text.split("<")[1:]]
    order = [int(numpy.argmin(((points - block) ** 2).sum(axis=1))) for block in blocks]
    smiles = encoded.get("canonical_smiles") or encoded["smiles"]
    reading = Reading(smiles)
    kept = kept_places(smiles, reading.molecule)
    if kept is None or len(set(order)) != len(order):
        return "atoms are missing"
    match = [order[place] for place in kept]
    for bond in reading.molecule.GetBonds():
        if whole.GetBondBetweenAtoms(match[bond.GetBeginAtomIdx()], match[bond.GetEndAtomIdx()]) is None:
            return "other bonds"
    if any(whole.GetAtomWithIdx(at).GetAtomicNum() != a.GetAtomicNum() for at, a in zip(match, reading.molecule.GetAtoms())):
        return "other elements"
    hydrogens = [
        [points[n.GetIdx()] for n in whole.GetAtomWithIdx(at).GetNeighbors() if n.GetIdx() not in match and n.GetAtomicNum() == 1]
        for at in match
    ]
    same = range(len(match))
    centres, bonds = reading.marks(same, points[match], hydrogens)
    if any(v is False for v in centres.values()) or not all(bonds):
        return "another stereo in this order"
    # The smallest order that keeps the marks; orders of hydrogens that are atoms are not compared.
    if len(kept) == len(order) and all(a.GetAtomicNum() > 1 for a in reading.molecule.GetAtoms()):
        for other in reading.orders:
            moved = [match[at] for at in other]
            if moved < match:
                centres, bonds = reading.marks(other, points[match], hydrogens)
                if all(v is not False for v in centres.values()) and all(bonds):
                    return "not the first order"
    return ""


def check(options):
    expected = rows_of(options.out / "expected.jsonl")
    encoded = {row["id"]: row for row in rows_of(options.out / "encoded.jsonl")}
    verdicts = {row["id"]: row for row in rows_of(options.out / "verdicts.jsonl")}
    files = Chem.SDMolSupplier(str(options.out / "cases.sdf"), removeHs=False)
    counts = collections.Counter()
    for row, whole in zip(expected, files):
        found = verdicts[row["id"]]
        # What drift counts as unchecked beyond RDKit's marks are the marks that RDKit drops.
        pairs = [
            ("centres", row["centres"], found["stereocentres"]),
            ("right", row["right"], found["stereocentres_right"]),
            ("bonds", row["bonds"], found["double_bonds"]),
            ("bonds right", row["bonds_right"], found["double_bonds_right"]),
            ("unchecked", True, found["stereo_unchecked"] >= row["unchecked"]),
            # No mark of an atom is lost.
            ("marks", True, found["stereocentres"] + found["stereo_unchecked"] >= len(MARK.findall(row["smiles"]))),
            ("encoded", row["encoded"], row["id"] in encoded),
        ]
        counts["texts"] += 1
        counts["centres"] += row["centres"]
        counts["unchecked"] += row["unchecked"]
        counts["bonds"] += row["bonds"]
        counts["encoded"] += row["encoded"]
        if not found["checked"]:
            counts["not judged"] += 1
            pairs = pairs[-1:]
            if row["id"] in encoded:
                print(f"{row['id']}\t{row['smiles']}\tencoded but not judged: {found['why']}")
        for what, right, said in pairs:
            if right != said:
                counts[f"{what} differ"] += 1
                print(f"{row['id']}\t{row['smiles']}\t{what}: RDKit {right}, drift {said}\tkept {row['kept']}")
        # RDKit does not read everything that it writes.
        if whole is not None and row["id"] in encoded and (fault := order_fault(row, encoded[row["id"]], whole)):
            counts["orders differ"] += 1
            print(f"{row['id']}\t{row['smiles']}\torder: {fault}")
    print(", ".join(f"{value} {key}" for key, value in counts.items()))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(required=True)
    for run in (make, check):
        verb = verbs.add_parser(run.__name__)
        verb.set_defaults(run=run)
        verb.add_argument("out", type=pathlib.Path)
        if run is make:
            verb.add_argument("--count", type=int, default=100)
            verb.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    options.run(options)


if __name__ == "__main__":
    main()
