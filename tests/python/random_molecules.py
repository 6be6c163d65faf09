"""Random molecules with conformers, for `encode.py cases --random`: rings, charges, isotopes, metals and stereo of every kind, by a seed.

Most are grown atom by atom from a ring or a group; rings are closed and bonds raised at random, and what RDKit refuses is thrown away. ETKDG
gives conformers, and with them stereo of its own choice. Metals get ligands on the corners of a polyhedron, in any order.
"""

import numpy
from rdkit import Chem
from rdkit.Chem import rdDistGeom
from rdkit.Geometry import Point3D

# Where growth begins, and what is joined on.
PIECES = """
C C C C N O S CC C=C C=C C#C C=O C=N C=NO C=NN N=N OO C=C=C C(=O)O C(=O)[O-] C(=O)N C#N [NH3+] [N+](=O)[O-] N=[N+]=[N-] S(=O) S(=O)(=O)
P(=O)(O)O P S(=N)(=O) [S+](C)C [P+](C)(C)C [N+](C)(C)C [BH3-] [Si](C)C OB(O) [Se] [13CH3] [2H]C F Cl Br I N(O) [O-] [CH-]C(=O) N=C(N)N
C1CC1 C1CO1 C1CN1 C1CCC1 C1CCCC1 C1CCOC1 C1CCNC1 C1CCCCC1 C1CCNCC1 C1CCCCCC1 C1CCCCCCC1 C1CCC=CCCC1 C1CC2CC1C2 C1CC2CCC1C2 C1C2CC1C2
C12CCC(CC1)CC2 C1CC11CC1 C1CCC11CCCC1 C1CC2CCC1CC2 C1CCC2CCCCC2C1 C1CC2CC2C1 C12C3C4C1C5C2C3C45 C1C2CC3CC1CC(C2)C3
c1ccccc1 c1ccccc1 c1ccncc1 c1ccnnc1 c1cncnc1 c1cc[nH]c1 c1ccoc1 c1ccsc1 c1cnc[nH]1 c1cn[nH]c1 c1nnn[nH]1 c1ccc2ccccc2c1 c1ccc2[nH]ccc2c1
C1=Cc2cccc3cccc1c23 c1ncc2nc[nH]c2n1 O=c1cc[nH]cc1 O=c1cc[nH]c(=O)[nH]1 c1cc[n+](C)cc1 c1cc[n+]([O-])cc1 c1cc[o+]cc1 [cH-]1cccc1 c1cc[se]c1
O=C1C=CC(=O)C=C1 C1=CC=CC=CC=C1 C1=CC2=CC=CC2=C1 C1=CC=NC=C1 N1=PN=PN=P1 C=C1C=CC=C1 O=C1NC(=O)C=C1 C1=CSC=CS1 S1CCSCC1 C1=CCC=CC1
""".split()
ELEMENTS = "CCCCCCCCCCCCNNNOOOSPFClBr".replace("Cl", "L").replace("Br", "R")
VALENCE = {"C": 4, "N": 3, "O": 2, "S": 2, "P": 3, "F": 1, "Cl": 1, "Br": 1}
LIGANDS = ["F", "Cl", "Br", "I", "O", "N", "[C-]#N", "[OH-]", "NC", "P(C)(C)C", "OC", "SC", "[CH3-]", "N(C)C", "O(C)C", "[NH-]C", "[H-]"]
POLYHEDRA = {
    "tetrahedral": [(1, 1, 1), (1, -1, -1), (-1, 1, -1), (-1, -1, 1)],
    "square": [(1, 0, 0), (0, 1, 0), (-1, 0, 0), (0, -1, 0)],
    "bipyramid": [(0, 0, 1), (0, 0, -1), (1, 0, 0), (-0.5, 0.866, 0), (-0.5, -0.866, 0)],
    "octahedron": [(1, 0, 0), (-1, 0, 0), (0, 1, 0), (0, -1, 0), (0, 0, 1), (0, 0, -1)],
}
METALS = {
    "tetrahedral": ["Zn", "Ti", "Sn"],
    "square": ["Pt", "Pd", "Ni"],
    "bipyramid": ["Fe", "Co"],
    "octahedron": ["Co", "Fe", "Ru", "Pt"],
}


def free(atom):
    """Hydrogens that a bond may take the place of."""
    return atom.GetTotalNumHs() if atom.GetAtomicNum() > 1 else 0


def joined(molecule, other, draw):
    """Both, with a bond between; none where there is no room."""
    ends = [[a.GetIdx() for a in m.GetAtoms() if free(a)] for m in (molecule, other)]
    if not all(ends):
        return None
    both = Chem.RWMol(Chem.CombineMols(molecule, other))
    a, b = draw.choice(ends[0]), molecule.GetNumAtoms() + draw.choice(ends[1])
    both.AddBond(a, b, Chem.BondType.SINGLE)
    for atom in (both.GetAtomWithIdx(a), both.GetAtomWithIdx(b)):
        if atom.GetNumExplicitHs():
            atom.SetNumExplicitHs(atom.GetNumExplicitHs() - 1)
    return sanitised(both)


def sanitised(molecule):
    molecule = molecule.GetMol()
    try:
        Chem.SanitizeMol(molecule)
    except ValueError:
        return None
    return molecule


def changed(molecule, draw):
    """The molecule with a ring closed, a bond raised, or a charge or isotope put on an atom; none where that makes none."""
    new = Chem.RWMol(molecule)
    kind = draw.random()
    atoms = [a for a in new.GetAtoms() if free(a) and not a.GetNumExplicitHs()]
    if kind < 0.4 and len(atoms) > 2:
        a, b = (atom.GetIdx() for atom in draw.sample(atoms, 2))
        size = len(Chem.GetShortestPath(new, a, b))
        if size < 3 or new.GetBondBetweenAtoms(a, b) or size > 9:
            return None
        new.AddBond(a, b, Chem.BondType.SINGLE)
    elif kind < 0.8:
        bonds = [b for b in new.GetBonds() if b.GetBondType() == Chem.BondType.SINGLE and free(b.GetBeginAtom()) and free(b.GetEndAtom())]
        if not bonds:
            return None
        bond = draw.choice(bonds)
        bond.SetBondType(Chem.BondType.DOUBLE)
    elif kind < 0.95:
        atom = draw.choice(list(new.GetAtoms()))
        symbol = atom.GetSymbol()
        if symbol in "NPS" and not atom.GetIsAromatic() and atom.GetFormalCharge() == 0:
            atom.SetFormalCharge(1)
        elif symbol in "OS" and free(atom):
            atom.SetFormalCharge(-1)
            atom.SetNumExplicitHs(0)
        else:
            return None
    else:
        draw.choice(list(new.GetAtoms())).SetIsotope(draw.choice([2, 13, 15, 18]))
    return sanitised(new)


def grown(draw):
    """A molecule of 3 to 18 heavy atoms."""
    molecule = Chem.MolFromSmiles(draw.choice(PIECES))
    size = draw.randint(3, 18)
    for _ in range(40):
        if molecule.GetNumHeavyAtoms() >= size:
            break
        if draw.random() < 0.5:
            symbol = {"L": "Cl", "R": "Br"}.get(letter := draw.choice(ELEMENTS), letter)
            piece = Chem.MolFromSmiles(symbol)
        else:
            piece = Chem.MolFromSmiles(draw.choice(PIECES))
        new = joined(molecule, piece, draw) if molecule.GetNumHeavyAtoms() + piece.GetNumHeavyAtoms() <= 22 else None
        molecule = new or molecule
    for _ in range(draw.randint(0, 5)):
        molecule = changed(molecule, draw) or molecule
    if draw.random() < 0.05:
        molecule = Chem.CombineMols(
            molecule, Chem.MolFromSmiles(draw.choice(["[Na+]", "[Cl-]", "O", "CC(=O)O", "[K+]", "C[C@H](N)C(=O)O"]))
        )
    return molecule


def embedded(molecule, seed):
    molecule = Chem.AddHs(molecule)
    parameters = rdDistGeom.ETKDGv3()
    parameters.randomSeed = seed
    parameters.maxIterations = 3
    parameters.timeout = 1
    if rdDistGeom.EmbedMolecule(molecule, parameters) == 0:
        return molecule
    parameters.useRandomCoords = True
    return molecule if rdDistGeom.EmbedMolecule(molecule, parameters) == 0 else None


def complex_of(draw):
    """A metal with ligands on the corners of a polyhedron, hydrogens explicit."""
    shape = draw.choice(list(POLYHEDRA))
    corners = [numpy.array(corner) / numpy.linalg.norm(corner) for corner in POLYHEDRA[shape]]
    draw.shuffle(corners)
    few = draw.sample(LIGANDS, draw.randint(2, len(corners)))
    turn = numpy.linalg.qr(numpy.array([[draw.gauss(0, 1) for _ in range(3)] for _ in range(3)]))[0]
    turn *= numpy.sign(numpy.linalg.det(turn))
    whole = Chem.RWMol()
    metal = whole.AddAtom(Chem.Atom(draw.choice(METALS[shape])))
    points = [numpy.zeros(3)]
    for corner in corners:
        ligand = Chem.AddHs(Chem.MolFromSmiles(draw.choice(few)))
        if ligand.GetNumAtoms() > 1 and rdDistGeom.EmbedMolecule(ligand, randomSeed=draw.randrange(1 << 30)) != 0:
            return None
        own = ligand.GetConformer().GetPositions() if ligand.GetNumConformers() else numpy.zeros((1, 3))
        own = own - own[0]
        away = own[1:].mean(axis=0) if len(own) > 1 else numpy.array([1.0, 0, 0])
        if numpy.linalg.norm(away) < 1e-3:
            return None
        outward = turn @ corner
        own = own @ onto(away / numpy.linalg.norm(away), outward).T
        base = whole.GetNumAtoms()
        whole = Chem.RWMol(Chem.CombineMols(whole, ligand))
        donor = whole.GetAtomWithIdx(base)
        is_anion = donor.GetFormalCharge() < 0 or donor.GetSymbol() in ("F", "Cl", "Br", "I")
        if is_anion:
            if donor.GetFormalCharge() == 0:
                # HF and its like lose the hydrogen.
                hydrogen = next(a.GetIdx() for a in donor.GetNeighbors())
                whole.RemoveAtom(hydrogen)
                own = own[:1]
                donor = whole.GetAtomWithIdx(base)
            donor.SetFormalCharge(0)
            donor.SetNoImplicit(True)
            whole.AddBond(metal, base, Chem.BondType.SINGLE)
        else:
            whole.AddBond(base, metal, Chem.BondType.DATIVE)
        noise = numpy.array([draw.uniform(-0.05, 0.05) for _ in range(3)])
        points += list(own + outward * 2.1 + noise)
    molecule = sanitised(whole)
    if molecule is None:
        return None
    molecule.RemoveAllConformers()
    conformer = Chem.Conformer(molecule.GetNumAtoms())
    conformer.Set3D(True)
    for atom, point in enumerate(points):
        conformer.SetAtomPosition(atom, Point3D(*map(float, point)))
    molecule.AddConformer(conformer)
    return molecule


def shuffled(molecule, draw):
    order = list(range(molecule.GetNumAtoms()))
    draw.shuffle(order)
    return Chem.RenumberAtoms(molecule, order)


def reordered(molecule, draw):
    """The same with atoms and bonds in another order."""
    molecule = shuffled(molecule, draw)
    new = Chem.RWMol(molecule)
    bonds = [(b.GetBeginAtomIdx(), b.GetEndAtomIdx(), b.GetBondType()) for b in new.GetBonds()]
    draw.shuffle(bonds)
    for begin, end, _ in bonds:
        new.RemoveBond(begin, end)
    for begin, end, kind in bonds:
        new.AddBond(begin, end, kind)
    Chem.SanitizeMol(new)
    return new.GetMol()


def onto(a, b):
    """The rotation that turns one unit vector into another."""
    axis, cosine = numpy.cross(a, b), float(a @ b)
    if cosine < -1 + 1e-9:
        other = numpy.eye(3)[numpy.argmin(numpy.abs(a))]
        axis = numpy.cross(a, other)
        axis /= numpy.linalg.norm(axis)
        return 2 * numpy.outer(axis, axis) - numpy.eye(3)
    skew = numpy.array([[0, -axis[2], axis[1]], [axis[2], 0, -axis[0]], [-axis[1], axis[0], 0]])
    return numpy.eye(3) + skew + skew @ skew / (1 + cosine)


def molecules(count, draw):
    """So many molecules with a conformer, hydrogens explicit."""
    made = 0
    while made < count:
        if draw.random() < 0.1:
            molecule = complex_of(draw)
        else:
            molecule = grown(draw)
            # What RDKit does not write so that it can read it is no case for others.
            plain = Chem.MolFromSmiles(Chem.MolToSmiles(molecule))
            molecule = embedded(plain, draw.randrange(1 << 30)) if plain is not None else None
        if molecule is not None:
            made += 1
            yield molecule
