"""Building blocks and reactions of `drugs.py`: those of `build.py`, decorated ring systems, and more reactions.

A decorated ring is a ring system of `RINGS`, drawn by weight, with one group that a reaction takes and up to three substituents.
All draws are seeded; no data set goes in.
"""

import build
from rdkit import Chem

DECORATED = 2_400
# Ring systems and how often they are drawn: benzene is nearly half of the ring systems of drug-like molecules.
RINGS = {
    "c1ccccc1": 400,
    **dict.fromkeys("c1ccncc1 c1ccoc1 c1ccsc1".split(), 40),
    **dict.fromkeys("c1cn[nH]c1 c1nc[nH]n1 c1cnoc1 c1cscn1 c1ccc2ccccc2c1 c1nncs1 c1cncnc1 c1cc[nH]c1 c1ccc2OCOc2c1 c1ccc2ncccc2c1".split(), 16),
    **dict.fromkeys(
        "c1ccc2scnc2c1 c1ccc2[nH]ccc2c1 c1ccc2ncncc2c1 c1cnc[nH]1 c1nnn[nH]1 c1ccc2OCCOc2c1 c1ccc2[nH]cnc2c1 c1ccc2NCCOc2c1 c1ccc2CNCc2c1 "
        "c1ccc2CNCCc2c1 c1ccc2[nH]ncc2c1 c1ccc2NCCc2c1 c1ccc2occc2c1 O=c1ccc2ccccc2o1 O=c1ccoc2ccccc12 O=c1[nH]cnc2ccccc12 O=c1cc[nH]cc1 "
        "c1ccc2NCCCc2c1 c1nnco1 c1cnc2ccnn2c1 c1nc2ccsc2cn1 c1cnc2sccc2c1 c1cc2CCCCc2s1 c1ccnnc1 c1cocn1 c1cnccn1 c1nocn1 O=c1[nH]cccc1".split(), 7),
    **dict.fromkeys(
        "c1ccn2ccnc2c1 c1ncc2nc[nH]c2n1 c1ccc2ocnc2c1 c1ccc2CCCCc2c1 c1ccc2nccnc2c1 c1ccc2sccc2c1 c1cnsc1 c1ccc2CCCOc2c1 c1ccc2CCCc2c1 "
        "c1ccc2c(c1)[nH]c1ccccc12 c1ccc2Sc3ccccc3Nc2c1 c1ccc2oc3ccccc3c2c1 c1ccc2nsnc2c1 c1ccc2cnccc2c1 c1ccc2nc3CCCCc3cc2c1 c1cnon1 "
        "c1nnc2n1CCC2 c1nnc2ccccn12 O=c1c2ccccc2nc2CCCn12 O=C1c2ccccc2C(=O)c2ccccc12 c1ccc2c(c1)[nH]c1CCNCc12 c1cc2CNCCc2s1 c1nnsc1 c1ccc2OCCCOc2c1 "
        "O=C1Nc2ccccc2C1=O O=C1Cc2ccccc2N1 O=C1COc2ccccc2N1 O=c1[nH]c(=O)c2ccccc2[nH]1 Cn1c(=O)[nH]c(=O)c2[nH]cnc12 c1ccc2c(c1)CCc1ccccc1N2".split(), 3),
    **dict.fromkeys("C1CCNCC1 C1CNCCN1".split(), 38),
    **dict.fromkeys("C1CCNC1 C1COCCN1 C1CCCCC1".split(), 22),
    **dict.fromkeys("C1CCCC1 C1CC1 C1CCOC1 O=C1CCCN1 C1CCOCC1 C1CCCNCC1 C1=CCCCC1 C1CSCN1 O=C1CCC(=O)N1 C1CSCCN1 C1CCSC1 O=C1CNC(=O)N1".split(), 7),
    **dict.fromkeys(
        "C1C2CC3CC1CC(C2)C3 C1CC2CCC1C2 C1CC2CCC(C1)N2 C1CC2(CCN1)CCCC2 C1CN2CCC1CC2 C1CCC1 C1CNC1 O=C1CCCCN1 C1CCCCCC1 C1CCC2CCCCC2C1 "
        "C1CCC2NCCCC2C1 C1CC2CNCC2C1 C1OCCO1 C1CCC2(CC1)OCCO2 O=C1NC(=O)C2CC=CCC12 O=C1NC(=O)C2C3C=CC(C3)C12 C1NC2CCC1C2 C1CC12CCNCC2 "
        "O=C1OCCN1 S1C(=O)NC(=O)C1 C1CN2CCCC2CN1 O=c1cccc2n1CC1CNCC2C1".split(), 3),
}
# What a reaction takes, on carbon of an aromatic ring, of another ring.
AROMATIC_HANDLES = {
    "C(=O)O": 6, "N": 5, "O": 3, "Br": 3, "CN": 2.5, "C=O": 2, "S(=O)(=O)Cl": 2.5, "B(O)O": 2, "CBr": 2, "C(C)=O": 1, "NN": 0.5, "C(=O)NN": 0.8, "CC(=O)O": 1.2,
    "OCC(=O)O": 1.2, "CCN": 1, "C(=O)CBr": 0.8, "S": 0.6, "C#C": 0.3, "CO": 0.8, "N1CCNCC1": 1, "C(N)=NO": 0.5, "C(C)N": 1, "CNC": 0.6, "CCC(=O)O": 0.6, "SCC(=O)O": 0.7,
    "NC(=O)CCl": 0.8, "NC(=O)CBr": 1.2, "C1CCCN1": 0.4, "C(=O)N1CCNCC1": 0.5, "C=CC(=O)O": 0.5, "Cl": 1.2, "C(N)=S": 0.4, "[N-][N+]#N": 0.1,
}  # fmt: skip
RING_HANDLES = {"C(=O)O": 3, "N": 3, "O": 1.5, "CN": 2, "CO": 1, "NC(=O)OC(C)(C)C": 0.5, "CC(=O)O": 0.6, "CBr": 0.4, "N1CCNCC1": 0.3, "C=O": 0.4}
AROMATIC_GROUPS = {
    "C": 8, "OC": 7, "F": 3.2, "Cl": 4, "Br": 1, "C(F)(F)F": 1, "C#N": 1.2, "[N+](=O)[O-]": 1.4, "CC": 1.5, "C(C)C": 1, "OCC": 1.6, "N(C)C": 0.8, "C(=O)OC": 0.7,
    "C(=O)OCC": 0.8, "SC": 0.5, "C(N)=O": 0.7, "NC(C)=O": 0.8, "O": 1, "C(C)=O": 0.7, "OC(F)F": 0.4, "S(C)(=O)=O": 0.4, "C(C)(C)C": 0.7, "c1ccccc1": 1.2, "Cc1ccccc1": 0.7,
    "Oc1ccccc1": 0.5, "OCc1ccccc1": 0.6, "S(N)(=O)=O": 0.4, "N1CCOCC1": 0.7, "n1cccn1": 0.3, "c1ccco1": 0.4, "c1cccs1": 0.5, "I": 0.05, "OC(C)C": 0.6, "CCC": 0.5, "OCC=C": 0.2,
    "S(=O)(=O)N1CCCCC1": 0.5, "S(=O)(=O)N1CCOCC1": 0.4, "S(=O)(=O)N(C)C": 0.4, "C(=O)N(C)C": 0.3, "COC": 0.4, "OCCO": 0.1, "P(=O)(OCC)OCC": 0.12,
}  # fmt: skip
RING_GROUPS = {"C": 4, "CC": 1, "c1ccccc1": 1.5, "Cc1ccccc1": 1, "O": 0.8, "C(=O)OCC": 0.5, "C(C)C": 0.6, "CO": 0.4, "F": 0.3, "OC": 0.4, "C(N)=O": 0.5, "c1ccco1": 0.3, "C(=O)OC": 0.4}
ON_NITROGEN = {"C": 3, "c1ccccc1": 2, "CC(=O)O": 2, "Cc1ccccc1": 1}  # aromatic
SUBSTITUENTS = {0: 42, 1: 36, 2: 18, 3: 4}

# More blocks: chains, amino acids, sugars, terpenes and steroids, for stereocentres, esters and flexible molecules.
BLOCKS = """
NCCCOC NCCCN1CCOCC1 NCCN(C)C NC(C)CC NCCO NCCOC CCNCC CC(C)CCN CCCCN CCCN C=CCN NC(C)(C)CO COCCNC CCN(CC)CCN CCCCNC NCCSC NCCCn1ccnc1 CC(N)CO
CCC(=O)O CCCC(=O)O CC(C)CC(=O)O COCC(=O)O CCOC(=O)CC(=O)O CC(=O)NCC(=O)O CSCC(=O)O C=CC(=O)O C#CCC(=O)O OC(=O)CCC(=O)O CCOC(=O)CCC(=O)O CC(C)(C)C(=O)O
N#CCC(=O)O CCN(CC)C(=O)CC(=O)O OC(=O)CCCl ClCC(=O)N1CCCC1 BrCC(=O)N1CCOCC1 BrCC(=O)NC BrCC(=O)N BrCC BrCCC BrCC(=C)C BrCCN(C)C BrCC(=O)Nc1nccs1 BrCC(=O)NC(N)=O
BrCC(=O)Nc1ccccc1 BrCC(=O)Nc1cc(C)on1 CC(Br)C(=O)OC CC(C)Br BrCc1cc(=O)oc2cc(C)ccc12 BrCc1cc(C)no1 BrCc1nc(C)cs1 BrCCOc1ccccc1 BrCC#C BrCC#N BrCCO
C[C@H](N)C(=O)OC CC(C)[C@H](N)C(=O)OC COC(=O)[C@@H](N)Cc1ccccc1 COC(=O)[C@@H]1CCCN1 COC(=O)[C@@H](N)CO COC(=O)[C@@H](N)CCSC C[C@@H](O)[C@H](N)C(=O)OC
CC(=O)N[C@@H](C)C(=O)O CC(=O)N1CCC[C@H]1C(=O)O O=C(O)[C@@H](O)c1ccccc1 C[C@H](O)C(=O)O OC[C@H](N)Cc1ccccc1 N[C@@H]1CCCC[C@H]1O N[C@@H]1c2ccccc2C[C@@H]1O
CC1(C)C2CCC1(C)C(N)C2 CC1(C)C2CCC1(CS(=O)(=O)Cl)C(=O)C2 CC(C)C1CCC(C)CC1O CC12CCC(O)CC1CCC1C2CCC2(C)C(=O)CCC12
CC12CCC3c4ccc(O)cc4CCC3C1CCC2O CC12CCC(=O)C=C1CCC1C2CCC2(C)C1CCC2O O=C(O)C1(C)CCCC2(C)C1CC=C1C=C(C(C)C)CCC12 OC1CC2CCC(C1)N2C CC(C)=CCCC(C)CCO
OCC1OC(Oc2ccccc2)C(O)C(O)C1O OCC1OC(N=[N+]=[N-])C(O)C(O)C1O NCC1OC(n2ccc(=O)[nH]c2=O)C(O)C1O CC1(C)OC2COC(C(=O)O)C2O1 CC1(C)OCC(CO)O1 OC1COC2C(O)COC12
O=C(O)C1C2C=CC(O2)C1C(=O)O OC(=O)C1CC=CCC1C(=O)OC OC(=O)c1ccccc1C(=O)OC Nc1sc2CCCCc2c1C(=O)OCC Nc1sc(C)c(C)c1C(N)=O Nc1sc2CCCCc2c1C#N
NC(=S)Nc1ccccc1 NC(=S)NCC=C NC(=S)Nc1ccc(C)cc1 NC(=S)Nc1ccc(OC)cc1 NC(=S)NC(C)=O N=C(N)c1ccccc1 N=C(N)N1CCOCC1
O=C1CSC(=O)N1 O=C1CSC(=S)N1CCOC O=C1CSC(=S)N1Cc1ccccc1 N#CCC(=O)NC N#CCC(=O)N1CCOCC1 N#CCC(=O)Nc1ccccc1
CCOC(=O)CC(C)=O O=C1CC(C)(C)CC(=O)C1 CC(=O)CC(=O)Nc1ccccc1 CC(=O)CC(=O)NCc1ccccc1
OC(=O)CP(=O)(OC)OC O=P(Cl)(c1ccccc1)c1ccccc1 CCOP(=O)(OCC)C(N)c1ccccc1 CP(=O)(O)CCC(N)C(=O)OC
CC(=O)c1ccccc1 CC(=O)c1ccc(F)cc1 CC(=O)c1ccc(OC)cc1 CC(=O)c1ccc(Cl)cc1 CC(=O)c1cccs1 CC(=O)c1ccncc1
""".split()

AMINE = "[NX3;H1,H2;!$(N~[!#6;!#1]);!$(N-C=[O,S,N])"
ALKYL_AMINE = AMINE + ";!$(N-[C,c]=,:[*])"
REACTIONS = [
    ("alkylation by a halide", f"[CX4;H1,H2;$(C-[#6]=,:[*]),$(C-C#*):1][Br,Cl].{AMINE}:2]>>[C:1][N:2]", 2.5),
    ("alkylation of a thiol", "[CX4;H1,H2:1][Br].[c:3][SX2H1:2]>>[C:1][S:2][c:3]", 2),
    ("carbamate", f"[CX4:1][OX2H1:2].{AMINE}:3]>>[C:1][O:2]C(=O)[N:3]", 0.7),
    ("thiourea", f"[NX3H2;$(N-c):1].{ALKYL_AMINE}:2]>>[N:1]C(=S)[N:2]", 0.7),
    ("sulfonic ester", "[S:1](=[O:2])(=[O:4])Cl.[c:5][OX2H1:3]>>[S:1](=[O:2])(=[O:4])[O:3][c:5]", 0.3),
    ("acyl sulfonamide", "[S:1](=[O:2])(=[O:3])[NX3H2:4].[CX3:5](=[O:6])[OX2H1]>>[S:1](=[O:2])(=[O:3])[N:4][C:5]=[O:6]", 0.5),
    ("propanolamine", f"[c:1][OX2H1:2].{ALKYL_AMINE}:3]>>[c:1][O:2]CC(O)C[N:3]", 1),
    ("glycolic amide", f"[c:1][OX2H1:2].{AMINE}:3]>>[c:1][O:2]CC(=O)[N:3]", 1.5),
    ("thioglycolic amide", f"[c:1][SX2H1:2].{AMINE}:3]>>[c:1][S:2]CC(=O)[N:3]", 3),
    ("glycine amide", f"{ALKYL_AMINE}:1].{AMINE}:3]>>[N:1]CC(=O)[N:3]", 0.8),
    ("lactic ester of an amide", f"[CX3:1](=[O:2])[OX2H1:4].{AMINE}:3]>>[C:1](=[O:2])[O:4]C(C)C(=O)[N:3]", 0.3),
    ("glycolic ester of an amide", f"[CX3:1](=[O:2])[OX2H1:4].{AMINE}:3]>>[C:1](=[O:2])[O:4]CC(=O)[N:3]", 0.6),
    ("chalcone", "[c:1][C:2](=[O:3])[CX4H3:4].[CX3H1:5](=O)[c:6]>>[c:1][C:2](=[O:3])[C:4]=[C:5][c:6]", 2),
    ("Knoevenagel, nitrile", "[N:1]#[C:2][CX4H2:3][C:4]=[O:5].[CX3H1:6](=O)[c:7]>>[N:1]#[C:2][C:3]([C:4]=[O:5])=[C:6][c:7]", 4),
    ("Knoevenagel, thiazolidine", "[S:1][CX4H2:2][C:3](=[O:4])[N:8].[CX3H1:6](=O)[c:7]>>[S:1][C:2](=[C:6][c:7])[C:3](=[O:4])[N:8]", 4),
    ("imine", "[CX3H1:1](=O)[c:2].[NX3H2:3][c:4]>>[C:1]([c:2])=[N:3][c:4]", 0.6),
    ("aryl hydrazone", "[CX3H1:1](=O)[c:2].[NX3H2:3][NX3H1:4][c:5]>>[C:1]([c:2])=[N:3][N:4][c:5]", 1.2),
    ("thiazole of a thiourea", "[NX3H2:3][CX3:1](=[SX1:2])[NX3:7].[Br][CX4H2:4][C:5](=O)[c:6]>>[N:7]-[c:1]1[n:3][c:5](-[c:6])[c:4][s:2]1", 3),
    ("1,3,4-oxadiazole", "[CX3:1](=[O:2])[NX3H1:3][NX3H2:4].[CX3:5](=O)([OX2H1])[#6:6]>>[c:1]1[o:2][c:5](-[#6:6])[n:4][n:3]1", 2),
    ("triazole thiol", "[CX3:1](=O)[NX3H1:3][NX3H2:4].[NX3H2:5][c:6]>>[c:1]1[n:3][n:4][c](S)[n:5]1-[c:6]", 1.5),
    ("Pictet-Spengler", "[NX3H2:1][CX4H2:2][C:3][c:4][cH:5]([nH:8]).[CX3H1:6](=O)[c:7]>>[N:1]1[C:2][C:3][c:4][c:5]([nH:8])[C:6]1[c:7]", 2),
    ("isoindolinone imide", "[CX3:1](=[O:2])([OX2H1])[c:3][c:4][C:5](=[O:6])O.[NX3H2:7]>>[C:1]1(=[O:2])[c:3][c:4][C:5](=[O:6])[N:7]1", 1),
    ("Ugi", f"[CX3:1](=[O:2])[OX2H1].[NX3H2;$(N-[#6]);!$(N-C=[O,S,N]):3]>>[C:1](=[O:2])[N:3]C(c1ccccc1)C(=O)NC1CCCCC1", 0.25),
    ("Ugi, furan", f"[CX3:1](=[O:2])[OX2H1].[NX3H2;$(N-[#6]);!$(N-C=[O,S,N]):3]>>[C:1](=[O:2])[N:3]C(c1ccco1)C(=O)NC(C)(C)C", 0.25),
    ("Betti", f"[c:1][CX3H1:2]=O.{ALKYL_AMINE};R:3]>>[c:1][C:2]([N:3])C(=O)NC(C)(C)C", 0.3),
    ("dihydropyrimidinone", "[c:1][CX3H1:2]=O.[CX4:3][OX2H1:4]>>[c:1][C:2]1C(C(=O)[O:4][C:3])=C(C)NC(=O)N1", 0.4),
    ("dihydropyridine", "[c:1][CX3H1:2]=O.[CX4:3][OX2H1:4]>>[c:1][C:2]1C(C(=O)[O:4][C:3])=C(C)NC(C)=C1C(=O)OC", 0.15),
    ("pyranopyrazole", "[c:1][CX3H1:2]=O.[#6:3][NX3H1:4][NX3H2:5]>>[c:1][C:2]1C(C#N)=C(N)Oc2c1c(C)[n:5][n:4]2[#6:3]", 0.4),
    ("pyrazoline", "[c:1][CX3H1:2]=O.[c:3][C:4](=O)[CX4H3:5]>>[c:1][C:2]1[C:5][C:4]([c:3])=NN1C(C)=O", 0.8),
    ("spiro imide of a cycle", "[CX4H2:1][Br].[NX3H1:2]([C:3]=[O:4])[C:5]=[O:6]>>[C:1][N:2]([C:3]=[O:4])[C:5]=[O:6]", 1),
    ("phosphinic amide", f"[P:1](=[O:2])Cl.{AMINE}:3]>>[P:1](=[O:2])[N:3]", 0.4),
]


def weighted(draw, weights):
    return draw.choices(list(weights), list(weights.values()))[0]


def attached(mol, atom, group):
    """The molecule with the group in place of a hydrogen of the atom, or None."""
    edit = Chem.RWMol(Chem.CombineMols(mol, Chem.MolFromSmiles(group, sanitize=False)))
    edit.AddBond(atom, mol.GetNumAtoms(), Chem.BondType.SINGLE)
    target = edit.GetAtomWithIdx(atom)
    if target.GetNumExplicitHs():
        target.SetNumExplicitHs(target.GetNumExplicitHs() - 1)
    new = edit.GetMol()
    if Chem.SanitizeMol(new, catchErrors=True) != Chem.SanitizeFlags.SANITIZE_NONE:
        return None
    return Chem.MolFromSmiles(Chem.MolToSmiles(new))


def decorated(draw):
    """A ring system with a group that a reaction takes and some substituents, or None."""
    mol = Chem.MolFromSmiles(weighted(draw, RINGS))
    # A ring's own NH is taken by reactions, too.
    amine = any(a.GetAtomicNum() == 7 and a.GetTotalNumHs() and not a.GetIsAromatic() for a in mol.GetAtoms())
    kinds = [] if amine and draw.random() < 0.7 else [(AROMATIC_HANDLES, RING_HANDLES)]
    kinds += [(AROMATIC_GROUPS, RING_GROUPS)] * weighted(draw, SUBSTITUENTS)
    for aromatic, other in kinds:
        open_atoms = [a.GetIdx() for a in mol.GetAtoms() if a.IsInRing() and a.GetTotalNumHs() and (a.GetAtomicNum() == 6 or a.GetIsAromatic())]
        if not open_atoms:
            break
        at = draw.choice(open_atoms)
        atom = mol.GetAtomWithIdx(at)
        weights = ON_NITROGEN if atom.GetAtomicNum() == 7 else aromatic if atom.GetIsAromatic() else other
        mol = attached(mol, at, weighted(draw, weights))
        if mol is None:
            return None
    return Chem.MolToSmiles(mol)


def blocks():
    """All blocks as SMILES, each once."""
    made = (decorated(build.rng("decorated", number)) for number in range(DECORATED))
    return list(dict.fromkeys([*build.BLOCKS, *BLOCKS, *(smiles for smiles in made if smiles)]))
