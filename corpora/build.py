#!/usr/bin/env python3
"""Build the embedded corpus: own molecules, GFN2-xTB geometries, enriched SMILES.

    build.py run     --work DIR [--molecules N] [--workers 2]   compute, resumable
    build.py collect --work DIR [--reference FILE.jsonl]        write default.jsonl.gz, default.json
    build.py verify                                             check default.jsonl.gz

Molecules come from the building blocks and reactions below. Everything is seeded, and each
molecule depends on the seed and its index alone, so a stopped run goes on where it was.
"""

import argparse
import gzip
import hashlib
import io
import json
import multiprocessing
import os
import platform
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from decimal import ROUND_DOWN, Decimal
from pathlib import Path

import numpy as np
from rdkit import Chem, RDLogger, rdBase
from rdkit.Chem import AllChem, rdDistGeom, rdMolDescriptors

RDLogger.DisableLog("rdApp.*")

HERE = Path(__file__).resolve().parent
SEED = 20_261_120
POOL_ROUTES = 9_000
MOLECULES = 2_110
LARGE_SHARE = 0.023
CHARGED_SHARE = 0.11
CHIRAL_SHARE = 0.29  # a little more than wanted: such draws find nothing more often
XTB_LEVEL = "loose"
# (first molecule, most cycles, SCF accuracy of xtb): the later ones are cheaper; at 5 energies differ by less than 1e-6 Eh.
# A geometry that needs more cycles is kept as it is then, and counted.
XTB_STAGES = [(0, 16, 1), (500, 6, 5)]
XTB_TIMEOUT = 900
CONFORMERS = 3
CONFORMERS_FLEXIBLE = 4  # with four or more rotatable bonds
CONFORMERS_LARGE = 2  # with 35 or more heavy atoms
PRUNE_RMSD = 0.3

# Building blocks. Stereocentres are written out, or drawn at random when a molecule is selected.
BLOCKS = """
CC(=O)O CC(C)C(=O)O OC(=O)C1CC1 OC(=O)C1CCC1 OC(=O)C1CCCCC1 OC(=O)c1ccccc1 OC(=O)Cc1ccccc1
OC(=O)c1ccc(F)cc1 OC(=O)c1ccc(Cl)cc1 OC(=O)c1cccc(C(F)(F)F)c1 OC(=O)c1ccc(OC)cc1 OC(=O)c1cc(OC)c(OC)c(OC)c1
OC(=O)c1ccco1 OC(=O)c1cccs1 OC(=O)c1ccncc1 OC(=O)c1cccnc1 OC(=O)c1cnccn1 OC(=O)c1cc(C)on1 OC(=O)c1cn(C)nc1
OC(=O)c1c[nH]c2ccccc12 OC(=O)c1cc2ccccc2o1 OC(=O)c1csc(C)n1 OC(=O)/C=C/c1ccccc1 OC(=O)COc1ccc(Cl)cc1
OC(=O)CCc1ccccc1 OC(=O)c1ccc(C#N)cc1 OC(=O)c1ccc([N+](=O)[O-])cc1 OC(=O)C1CCOCC1 OC(=O)[C@@H]1CCCO1
OC(=O)c1ccc2OCOc2c1 OC(=O)c1ccc(S(C)(=O)=O)cc1 OC(=O)CCC(=O)N1CCOCC1 OC(=O)c1cc(=O)[nH]c2ccccc12
OC(=O)c1ccccc1I OC(=O)c1ccc2[nH]cnc2c1 OC(=O)CSc1nnnn1C OC(=O)CN1C(=O)CCC1=O OC(=O)C(F)(F)F OC(=O)c1ccc(C(C)(C)C)cc1
OC(=O)Cn1cnc2c1c(=O)n(C)c(=O)n2C OC(=O)c1cc(C(F)(F)F)n[nH]1 OC(=O)CP(=O)(OCC)OCC
CN CCN CC(C)N NC1CC1 NC1CCCCC1 NCC1CCCO1 NCc1ccccc1 NCc1ccc(F)cc1 NCc1cccnc1 NCc1ccco1 NCCc1ccccc1
NCCc1c[nH]c2ccccc12 NCCN1CCOCC1 NCCCN(C)C CNC C1CCNC1 C1CCNCC1 C1COCCN1 CN1CCNCC1 CC1CCNCC1 C1CSCCN1 FC1(F)CCNCC1
c1ccc2c(c1)CCNC2 c1ccc(N2CCNCC2)cc1 COc1ccccc1N1CCNCC1 c1ccnc(N2CCNCC2)n1 Nc1ccccc1 Nc1ccc(F)cc1 Nc1ccc(C)cc1
Nc1cccc(Cl)c1 Nc1ccc(OC)cc1 Nc1ccc(C(F)(F)F)cc1 Nc1ccc(C#N)cc1 Nc1nccs1 Nc1ccccn1 Nc1cc(C)on1 Nc1nc2ccccc2s1
Nc1ccc2OCCOc2c1 Nc1ccc(S(N)(=O)=O)cc1 Nc1ccc(N2CCOCC2)cc1 Nc1ccc(C(C)=O)cc1 Nc1cccc2cnccc12 Nc1cc(C)ccc1C
Nc1ccc([N+](=O)[O-])cc1 C[C@H](N)c1ccccc1 CCOC(=O)N1CCNCC1 CNCc1ccccc1 CC(C)CN NC(=O)CN CC(C)(C)N NC1CCN(Cc2ccccc2)CC1
C[C@@H](N)C(=O)OC NCC(F)(F)F Nn1cnnc1 CNOC C1CCC2(CC1)CCNCC2 OC[C@@H]1CCCN1 N[C@H]1CC[C@H](O)CC1
CC(C)(C)OC(=O)N1CCNCC1 CC(C)(C)OC(=O)NC1CCNCC1 CC(C)(C)OC(=O)N1CCC(N)CC1 CC(C)(C)OC(=O)NCCN CC(C)(C)OC(=O)Nc1ccc(N)cc1
CC(C)(C)OC(=O)N1CCC[C@H]1C(=O)O CC(C)(C)OC(=O)N[C@@H](C)C(=O)O CC(C)(C)OC(=O)N[C@@H](Cc1ccccc1)C(=O)O
CC(C)(C)OC(=O)N[C@@H](CC(C)C)C(=O)O CC(C)(C)OC(=O)NCC(=O)O CC(C)(C)OC(=O)N[C@@H](C(C)C)C(=O)O
CC(C)(C)OC(=O)N[C@@H](CCSC)C(=O)O CC(C)(C)OC(=O)N1CCC(C(=O)O)CC1 CC(C)(C)OC(=O)N1CC(C(=O)O)C1
CC(C)(C)OC(=O)N[C@@H](Cc1c[nH]c2ccccc12)C(=O)O CC(C)(C)OC(=O)N[C@@H](CO)C(=O)O CC(C)(C)OC(=O)NCc1ccc(C(=O)O)cc1
CC(C)(C)OC(=O)N[C@@H](CCC(N)=O)C(=O)O CC(C)(C)OC(=O)N[C@H]1CC[C@@H](C(=O)O)CC1
OC(=O)c1ccc(Br)cc1 OC(=O)c1cccc(Br)c1 OC(=O)c1cc(Br)cnc1 OC(=O)c1ccc(Br)s1 Nc1ccc(Br)cc1 Nc1cc(Br)ccn1 NCc1ccc(Br)cc1
O=Cc1ccc(Br)cc1 Brc1cccnc1 Brc1ccccc1 Brc1ccc(Cl)cc1 COc1ccc(Br)cc1 Brc1cncnc1 Brc1ccc2[nH]ccc2c1 Brc1ccc2ncccc2c1 Brc1nccs1
Brc1cc(F)ccc1F N#Cc1ccc(Br)cc1 Cn1cc(Br)cn1 CC(=O)c1ccc(Br)cc1 Oc1ccc(Br)cc1 CC(=O)Nc1ccc(Br)cc1 Brc1ccoc1 Cc1cc(Br)no1
OB(O)c1ccccc1 OB(O)c1ccc(F)cc1 OB(O)c1ccc(OC)cc1 OB(O)c1cccnc1 OB(O)c1ccsc1 OB(O)c1cnn(C)c1 OB(O)c1ccc(C(F)(F)F)cc1
OB(O)c1ccc(C(=O)O)cc1 OB(O)c1ccc(O)cc1 OB(O)c1cccc(N)c1 OB(O)c1ccc2OCOc2c1 OB(O)c1ccc(Cl)c(Cl)c1 OB(O)c1ccc(CN(C)C)cc1
OB(O)c1cccc2ccccc12 OB(O)c1cncnc1 OB(O)c1c(C)noc1C CC1(C)OB(c2ccc(C(=O)O)cc2)OC1(C)C
CS(=O)(=O)Cl O=S(=O)(Cl)c1ccccc1 Cc1ccc(S(=O)(=O)Cl)cc1 O=S(=O)(Cl)c1cccs1 O=S(=O)(Cl)c1ccc(F)cc1 O=S(=O)(Cl)C1CC1
Cc1noc(C)c1S(=O)(=O)Cl O=S(=O)(Cl)c1ccc(Br)cc1 CN(C)S(=O)(=O)Cl O=S(=O)(Cl)c1cccc2cccnc12
O=Cc1ccccc1 O=Cc1ccc(F)cc1 O=Cc1ccc(OC)cc1 O=Cc1ccncc1 O=Cc1ccco1 O=CC1CCCCC1 O=Cc1c[nH]c2ccccc12 CCC=O O=Cc1ccc(O)c(OC)c1
O=C1CCCCC1 O=C1CCOCC1 CC(C)=O O=C1CCN(C)CC1 O=Cc1cnn(C)c1 O=Cc1ccc(N(C)C)cc1 CC(C)(C)OC(=O)N1CCC(=O)CC1
Oc1ccccc1 Oc1ccc(F)cc1 Oc1ccc(C)cc1 Oc1ccc(Cl)cc1Cl Oc1cccnc1 COc1cc(C(C)=O)ccc1O Oc1ccc2ccc(=O)oc2c1 Oc1ccc(C(=O)OC)cc1
CCO CC(C)O OC1CCCC1 OCc1ccccc1 OCCN1CCOCC1 OCC(F)(F)F OCCOC OC[C@@H]1CCCO1 OCCO[Si](C)(C)C
BrCc1ccccc1 BrCc1ccc(F)cc1 BrCC1CC1 BrCC(=O)OCC BrCc1ccc(C(=O)OC)cc1 BrCC=C BrCC(=O)c1ccccc1 BrCCOC BrCC(=O)N BrCC(=O)c1ccc(Cl)cc1
Clc1ncccn1 Clc1ncnc2ccccc12 Clc1ncnc2[nH]ccc12 Clc1cc(C)nc(N)n1 Clc1nc(C)cs1 Clc1ccc(C#N)cn1 Clc1ncnc2sccc12 Clc1nc(Cl)ncc1
Clc1ncc(C(=O)O)cn1 Clc1nnc(C)s1 Clc1ncc([N+](=O)[O-])cc1 Clc1nc(OC)nc(N2CCOCC2)n1 Clc1ccnc2cc(Cl)ccc12 Clc1nc2ccccc2[nH]1
C#CCO C#Cc1ccccc1 C#CCN C#CCCC(=O)O C#Cc1cccnc1 C#CC1CC1 C#C[Si](C)(C)C C#CCOc1ccccc1
[N-]=[N+]=NCc1ccccc1 [N-]=[N+]=Nc1ccc(F)cc1 [N-]=[N+]=NCC(=O)OCC [N-]=[N+]=NCCO [N-]=[N+]=NCc1ccc(C(=O)O)cc1 [N-]=[N+]=NC1CCCCC1
c1c[nH]cn1 c1cn[nH]c1 Cc1cc(C)n[nH]1 c1ccc2[nH]cnc2c1 c1ccc2[nH]ccc2c1 O=c1[nH]c2ccccc2c(=O)[nH]1 O=C1NC(=O)c2ccccc12 O=c1cccc[nH]1
Sc1ccccc1 Sc1nnc(C)s1 Sc1ncccn1 Sc1nc2ccccc2[nH]1 Sc1nnnn1C SCC(=O)OC Sc1nnc(-c2ccccc2)n1C SCC(=O)O
NC(=S)c1ccccc1 NC(N)=S CNC(N)=S ON=C(N)c1ccccc1 ON=C(N)c1cccnc1 ON=C(N)C Nc1ccccc1N Nc1ccc(C)cc1N Nc1ccccc1O
CC(=O)CC(C)=O O=C(CC(=O)C(F)(F)F)c1ccccc1 CC(=O)CC(=O)OCC NNc1ccccc1 NNC NNC(=O)c1ccccc1 NNC(=O)c1ccncc1
O=P(c1ccccc1)(c1ccccc1)c1ccc(C(=O)O)cc1 CP(C)(=O)c1ccccc1N
""".split()

# (name, reaction SMARTS, weight); the first template is the molecule that grows or its partner
REACTIONS = [
    ("amide", "[CX3:1](=[O:2])[OX2H1].[NX3;H1,H2;!$(N~[!#6;!#1]);!$(N-C=[O,S,N]):3]>>[C:1](=[O:2])[N:3]", 5),
    ("sulfonamide", "[S:1](=[O:2])(=[O:4])Cl.[NX3;H1,H2;!$(N~[!#6;!#1]);!$(N-C=[O,S,N]):3]>>[S:1](=[O:2])(=[O:4])[N:3]", 2),
    ("urea", "[NX3;H1,H2;!$(N~[!#6;!#1]);!$(N-C=[O,S,N]):1].[NX3;H1,H2;!$(N~[!#6;!#1]);!$(N-C=[O,S,N]):2]>>[N:1]C(=O)[N:2]", 1),
    ("reductive amination", "[CX3;H1:1](=O)[#6:2].[NX3;H1,H2;!$(N~[!#6;!#1]);!$(N-[C,c]=,:[*]):3]>>[C:1]([#6:2])[N:3]", 2),
    ("reductive amination, ketone", "[#6X4:4][CX3:1](=O)[#6X4:2].[NX3;H1,H2;!$(N~[!#6;!#1]);!$(N-[C,c]=,:[*]):3]>>[#6:4][C:1]([#6:2])[N:3]", 1),
    ("biaryl", "[c:1][Br].[c:2]B(O)O>>[c:1]-[c:2]", 3),
    ("Buchwald", "[c:1][Br].[NX3;H1,H2;!$(N~[!#6;!#1]);!$(N-C=[O,S,N]):2]>>[c:1][N:2]", 1),
    ("Sonogashira", "[c:1][Br].[CX2H1:2]#[CX2:3]>>[c:1][C:2]#[C:3]", 1),
    ("ester", "[CX3:1](=[O:2])[OX2H1].[CX4:4][OX2H1:3]>>[C:1](=[O:2])[O:3][C:4]", 1),
    ("aryl ester", "[CX3:1](=[O:2])[OX2H1].[c:4][OX2H1:3]>>[C:1](=[O:2])[O:3][c:4]", 0.4),
    ("ether", "[CX4H2:1][Br].[c:3][OX2H1:2]>>[C:1][O:2][c:3]", 2),
    ("Mitsunobu", "[CX4;H1,H2:1][OX2H1].[c:3][OX2H1:2]>>[C:1][O:2][c:3]", 1),
    ("SNAr, amine", "[c;$(c:n):1][Cl].[NX3;H1,H2;!$(N~[!#6;!#1]);!$(N-C=[O,S,N]):2]>>[c:1][N:2]", 2),
    ("SNAr, phenol", "[c;$(c:n):1][Cl].[c:3][OX2H1:2]>>[c:1][O:2][c:3]", 1),
    ("SNAr, thiol", "[c;$(c:n):1][Cl].[#6:3][SX2H1:2]>>[c:1][S:2][#6:3]", 0.6),
    ("thioether", "[CX4H2:1][Br].[#6:3][SX2H1:2]>>[C:1][S:2][#6:3]", 1.5),
    ("N-alkylation, azole", "[CX4H2:1][Br].[nH:2]>>[C:1][n:2]", 1),
    ("N-alkylation, imide", "[CX4H2:1][Br].[C:3](=[O:4])[NX3H1:2][C:5](=[O:6])>>[C:1][N:2]([C:3]=[O:4])[C:5]=[O:6]", 1),
    ("N-alkylation, amine", "[CX4H2:1][Br].[NX3H1;!$(N~[!#6;!#1]);!$(N-[C,c]=,:[*]):2]>>[C:1][N:2]", 1),
    ("N-arylation, azole", "[c:1][Br].[nH:2]>>[c:1]-[n:2]", 0.7),
    ("click triazole", "[#6:1][N:2]=[N+:3]=[N-:4].[CX2H1:5]#[CX2:6]>>[#6:1][n:2]1[c:5][c:6][n:4][n+0:3]1", 2),
    ("thiazole ring", "[NX3H2:3][CX3:1](=[SX1:2])[*:7].[Br][CX4H2:4][C:5](=O)[c:6]>>[*:7]-[c:1]1[n:3][c:5](-[c:6])[c:4][s:2]1", 3),
    ("oxadiazole", "[OX2H1:1][N:2]=[C:3]([#6:7])[NX3H2:4].[CX3:5](=O)([OX2H1])[#6:6]>>[o:1]1[n:2][c:3](-[#6:7])[n:4][c:5]1-[#6:6]", 3),
    ("benzimidazole", "[NX3H2:1][c:2][c:3][NX3H2:4].[CX3:5](=O)([OX2H1])[#6:6]>>[nH:1]1[c:2][c:3][n:4][c:5]1-[#6:6]", 2),
    ("benzoxazole", "[OX2H1:1][c:2][c:3][NX3H2:4].[CX3:5](=O)([OX2H1])[#6:6]>>[o:1]1[c:2][c:3][n:4][c:5]1-[#6:6]", 2),
    ("pyrazole", "[#6:1][C:2](=O)[CX4H2:3][C:4](=O)[#6:5].[NX3H2:6][NX3H1:7][#6;!$(C=O):8]>>[#6:1]-[c:2]1[c:3][c:4](-[#6:5])[n:6][n:7]1-[#6:8]", 3),
    ("hydrazone", "[CX3H1:1](=O)[c:2].[NX3H2:3][NX3H1:4][C:5]=[O:6]>>[C:1]([c:2])=[N:3][N:4][C:5]=[O:6]", 2),
    ("diacylhydrazine", "[CX3:1](=[O:2])[OX2H1].[NX3H2:3][NX3H1:4][C:5]=[O:6]>>[C:1](=[O:2])[N:3][N:4][C:5]=[O:6]", 1),
]
DEPROTECT = "[N:1]C(=O)OC(C)(C)C>>[N:1]"
OXIDISE = "[#6:1][SX2:2][CX4:3]>>[#6:1][S:2](=O)(=O)[#6:3]"
# a molecule that still holds one of these is not finished
UNFINISHED = [
    "S(=O)(=O)Cl", "[N-]=[N+]=N", "[CX4][Br]", "[OX2H]N=C", "[NX3H2][NX3H1]", "[SX2H1]", "C(=O)[CH2]C(=O)[#6]", "[NX3H2]C=S", "B([OH])[OH]",
    "[N]=C=[O,S]", "[SH]", "N=[NX3]", "[#7,#8]-[CH2]-[OH]", "C(=O)Cl", "[CX3H1](=O)[CX4]", "[CX4](O)(O)O",
]
# charge states: (SMARTS, formal charge, kind, weight)
CHARGES = [
    ("[NX3;H1,H2,H0;!$(N~[!#6;!#1]);!$(N-[#6;!X4])]", 1, "ammonium", 6),
    ("[CX3](=O)[OX2H1:1]", -1, "carboxylate", 2),
    ("[n;X2;r6;!$(n~[!#6]);!$(n:c-[#7,#8,F,Cl,Br])]", 1, "pyridinium", 1),
    ("[n;X2;r5;$(n1c[nX3]cc1)]", 1, "imidazolium", 1),
]


def rng(*parts):
    """A generator that depends on the seed and the given parts, on no hash seed and no platform."""
    text = ":".join(str(part) for part in (SEED, *parts))
    return random.Random(int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big"))


# ---------------------------------------------------------------- molecules


class Chemistry:
    def __init__(self, blocks=BLOCKS, reactions=REACTIONS):
        self.blocks = [Chem.MolFromSmiles(s) for s in blocks]
        bad = [s for s, m in zip(blocks, self.blocks) if m is None]
        if bad:
            raise SystemExit(f"unreadable building blocks: {bad}")
        self.reactions = []
        for name, smarts, weight in reactions:
            reaction = AllChem.ReactionFromSmarts(smarts)
            reaction.Initialize()
            left, right = reaction.GetReactantTemplate(0), reaction.GetReactantTemplate(1)
            partners = tuple([m for m in self.blocks if m.HasSubstructMatch(side)] for side in (left, right))
            if not all(partners):
                raise SystemExit(f"no building block for: {name}")
            self.reactions.append((name, reaction, (left, right), partners, weight))
        self.deprotect = AllChem.ReactionFromSmarts(DEPROTECT)
        self.oxidise = AllChem.ReactionFromSmarts(OXIDISE)
        self.unfinished = [Chem.MolFromSmarts(s) for s in UNFINISHED]
        self.charges = [(Chem.MolFromSmarts(s), q, kind, w) for s, q, kind, w in CHARGES]
        self.boc = Chem.MolFromSmarts("NC(=O)OC(C)(C)C")
        self.thioether = Chem.MolFromSmarts("[#6][SX2][CX4]")

    def products(self, reaction, reactants):
        found = {}
        for product in reaction.RunReactants(reactants):
            mol = product[0]
            if Chem.SanitizeMol(mol, catchErrors=True) != Chem.SanitizeFlags.SANITIZE_NONE:
                continue
            found[Chem.MolToSmiles(mol)] = None
        mols = [Chem.MolFromSmiles(s) for s in sorted(found)]
        return [m for m in mols if m is not None and len(Chem.GetMolFrags(m)) == 1]

    def step(self, mol, draw):
        if mol.HasSubstructMatch(self.boc) and draw.random() < 0.5:
            options = self.products(self.deprotect, (mol,))
            return draw.choice(options) if options else None
        if mol.HasSubstructMatch(self.thioether) and draw.random() < 0.15:
            options = self.products(self.oxidise, (mol,))
            return draw.choice(options) if options else None
        choices = []
        for name, reaction, sides, partners, weight in self.reactions:
            for side in (0, 1):
                if mol.HasSubstructMatch(sides[side]):
                    choices.append((reaction, side, partners[1 - side], weight))
        if not choices:
            return None
        reaction, side, partners, _ = draw.choices(choices, [c[3] for c in choices])[0]
        partner = draw.choice(partners)
        options = self.products(reaction, (mol, partner) if side == 0 else (partner, mol))
        return draw.choice(options) if options else None

    def finished(self, mol):
        if any(mol.HasSubstructMatch(p) for p in self.unfinished):
            return False
        rings = mol.GetRingInfo().AtomRings()
        return all(len(r) <= 8 for r in rings) and len(mol.GetSubstructMatches(self.boc)) <= 1

    def charged(self, mol, draw):
        """One more or one fewer proton (or a methyl group on an aromatic nitrogen), or None."""
        options = []
        for pattern, charge, kind, weight in self.charges:
            for match in mol.GetSubstructMatches(pattern):
                options.append((match[-1] if charge < 0 else match[0], charge, kind, weight))
        if not options or Chem.GetFormalCharge(mol) != 0:
            return None
        atom, charge, kind, _ = draw.choices(options, [o[3] for o in options])[0]
        edit = Chem.RWMol(mol)
        target = edit.GetAtomWithIdx(atom)
        target.SetFormalCharge(charge)
        if kind == "ammonium":
            target.SetNoImplicit(True)
            target.SetNumExplicitHs(mol.GetAtomWithIdx(atom).GetTotalNumHs() + 1)
        elif kind in ("pyridinium", "imidazolium"):
            if draw.random() < 0.5:
                target.SetNumExplicitHs(1)
                target.SetNoImplicit(True)
            else:
                edit.AddBond(atom, edit.AddAtom(Chem.Atom(6)), Chem.BondType.SINGLE)
        new = edit.GetMol()
        if Chem.SanitizeMol(new, catchErrors=True) != Chem.SanitizeFlags.SANITIZE_NONE:
            return None
        return Chem.MolFromSmiles(Chem.MolToSmiles(new))


def flat(smiles):
    """The SMILES without stereo."""
    mol = Chem.MolFromSmiles(smiles)
    Chem.RemoveStereochemistry(mol)
    return Chem.MolToSmiles(mol)


def graphs(path):
    """The molecular graphs of a file, as SMILES without stereo: a CSV with SMILES in its first column, or JSONL, packed or not."""
    if path.name.endswith((".jsonl", ".jsonl.gz")):
        with (gzip.open if path.name.endswith(".gz") else open)(path, "rt") as lines:
            found = {json.loads(line)["canonical_smiles"] for line in lines}
    else:
        # The head of the columns is no SMILES.
        found = {line.split(",")[0].strip() for line in path.read_text().splitlines()}
    return {flat(smiles) for smiles in found if smiles and Chem.MolFromSmiles(smiles)}


def with_stereo(mol, draw):
    """Every open stereo element set at random; the canonical SMILES, or None."""
    mol = Chem.Mol(mol)
    Chem.FindPotentialStereoBonds(mol)
    for bond in mol.GetBonds():
        if bond.GetStereo() == Chem.BondStereo.STEREOANY:
            ring = bond.IsInRing()
            bond.SetStereo(Chem.BondStereo.STEREOCIS if ring or draw.random() < 0.15 else Chem.BondStereo.STEREOTRANS)
    for _ in range(8):
        open_centres = [i for i, tag in Chem.FindMolChiralCenters(mol, includeUnassigned=True, useLegacyImplementation=False) if tag == "?"]
        if not open_centres:
            break
        tag = draw.choice([Chem.ChiralType.CHI_TETRAHEDRAL_CW, Chem.ChiralType.CHI_TETRAHEDRAL_CCW])
        mol.GetAtomWithIdx(open_centres[0]).SetChiralTag(tag)
        Chem.AssignStereochemistry(mol, cleanIt=True, force=True)
    return canonical(Chem.MolToSmiles(mol))


def canonical(smiles):
    """The SMILES that is its own canonical form, or None."""
    for _ in range(4):
        mol = Chem.MolFromSmiles(smiles)
        if mol is None:
            return None
        again = Chem.MolToSmiles(mol)
        if again == smiles:
            return smiles
        smiles = again
    return None


def is_chiral(mol):
    return bool(Chem.FindMolChiralCenters(mol, includeUnassigned=True, useLegacyImplementation=False))


def target_size(draw):
    if draw.random() < LARGE_SHARE:
        return min(65, 35 + int(draw.expovariate(1 / 7)))
    while True:
        size = round(draw.gauss(20.8, 4.9))
        if 8 <= size <= 34:
            return size


def molecule_list(count):
    """The molecules of the corpus: SMILES by index."""
    chemistry = Chemistry()
    pool = {}
    for route in range(POOL_ROUTES):
        draw = rng("route", route)
        mol = draw.choice(chemistry.blocks)
        for _ in range(draw.choice([2, 2, 3, 3, 4, 5, 7, 9])):
            new = chemistry.step(mol, draw)
            if new is None or new.GetNumHeavyAtoms() > 65:
                break
            mol = new
            if mol.GetNumHeavyAtoms() >= 8 and Chem.GetFormalCharge(mol) == 0 and chemistry.finished(mol):
                pool.setdefault(Chem.MolToSmiles(mol), mol)
    for block in chemistry.blocks:
        if block.GetNumHeavyAtoms() >= 8 and Chem.GetFormalCharge(block) == 0 and chemistry.finished(block):
            pool.setdefault(Chem.MolToSmiles(block), block)
    bins = {}
    for smiles in sorted(pool):
        mol = pool[smiles]
        bins.setdefault((mol.GetNumHeavyAtoms(), is_chiral(mol)), []).append(mol)
    for key in sorted(bins):
        rng("bin", *key).shuffle(bins[key])
    chosen, seen, index = [], set(), 0
    while len(chosen) < count:
        draw = rng("molecule", index)
        index += 1
        if index > 50 * count:
            raise SystemExit("the pool is too small for so many molecules")
        size, chiral, charge = target_size(draw), draw.random() < CHIRAL_SHARE, draw.random() < CHARGED_SHARE
        order = [size] + [size + s * k for k in range(1, 6) for s in (-1, 1)]
        pick = None
        for near in order:
            if (near >= 35) != (size >= 35):
                continue
            stock = bins.get((near, chiral), [])
            for position in range(len(stock) - 1, max(-1, len(stock) - 60), -1):
                mol = stock[position]
                if charge:
                    mol = chemistry.charged(mol, draw)
                elif any(a.GetFormalCharge() for a in mol.GetAtoms()) and draw.random() < 0.6:
                    continue
                if mol is None:
                    continue
                smiles = with_stereo(mol, draw)
                if smiles is None or smiles in seen:
                    continue
                pick = smiles
                del stock[position]
                break
            if pick:
                break
        if pick is None:
            continue
        seen.add(pick)
        chosen.append(pick)
    return chosen, len(pool)


# ---------------------------------------------------------------- geometry


def bonds_from_distances(symbols, xyz):
    table = Chem.GetPeriodicTable()
    radius = np.array([table.GetRcovalent(s) for s in symbols])
    distance = np.linalg.norm(xyz[:, None] - xyz[None, :], axis=-1)
    near = distance < 1.25 * (radius[:, None] + radius[None, :])
    return {(i, j) for i, j in zip(*np.nonzero(near)) if i < j}


def same_molecule(mol, xyz, smiles):
    """None, or why the optimised geometry is not the molecule any more."""
    graph = {tuple(sorted((b.GetBeginAtomIdx(), b.GetEndAtomIdx()))) for b in mol.GetBonds()}
    if bonds_from_distances([a.GetSymbol() for a in mol.GetAtoms()], xyz) != graph:
        return "graph"
    copy = Chem.Mol(mol)
    conformer = Chem.Conformer(copy.GetNumAtoms())
    for i, point in enumerate(xyz):
        conformer.SetAtomPosition(i, [float(v) for v in point])
    copy.RemoveAllConformers()
    copy.AddConformer(conformer)
    Chem.AssignStereochemistryFrom3D(copy)
    for before, after in zip(mol.GetAtoms(), copy.GetAtoms()):  # e.g. a protonated amine, which inverts
        if before.GetChiralTag() == Chem.ChiralType.CHI_UNSPECIFIED:
            after.SetChiralTag(Chem.ChiralType.CHI_UNSPECIFIED)
    if Chem.MolToSmiles(Chem.RemoveHs(copy)) != smiles:
        return "stereo"
    return None


def xtb(symbols, xyz, charge, level, cycles, accuracy):
    """(coordinates, energy, cycles used, converged) of a GFN2-xTB optimisation; None if it failed."""
    folder = Path(tempfile.mkdtemp(prefix="xtb-"))
    try:
        lines = [str(len(symbols)), ""] + [f"{s} {x:.8f} {y:.8f} {z:.8f}" for s, (x, y, z) in zip(symbols, xyz)]
        (folder / "in.xyz").write_text("\n".join(lines) + "\n")
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OMP_STACKSIZE": "1G"}
        command = ["xtb", "in.xyz", "--gfn", "2", "--opt", level, "--cycles", str(cycles), "--acc", str(accuracy), "--chrg", str(charge), "--uhf", "0", "--norestart"]
        try:
            done = subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=XTB_TIMEOUT)
        except subprocess.TimeoutExpired:
            return None
        result = folder / "xtbopt.xyz"
        if done.returncode != 0 or not result.exists():
            return None
        rows = result.read_text().splitlines()
        count = int(rows[0])
        points = np.array([[float(v) for v in row.split()[1:4]] for row in rows[2 : 2 + count]])
        energy = float(re.search(r"energy:\s*(-?[\d.]+)", rows[1]).group(1))
        used = re.search(rb"GEOMETRY OPTIMIZATION CONVERGED AFTER\s+(\d+)", done.stdout)
        return points, energy, int(used.group(1)) if used else cycles, bool(used)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def compute(task):
    """All conformers of one molecule, as the row of the checkpoint."""
    index, smiles = task
    started = time.time()
    row = {"index": index, "smiles": smiles, "conformers": [], "wanted": 0, "failed": {}}

    def fail(reason):
        row["failed"][reason] = row["failed"].get(reason, 0) + 1

    mol = Chem.AddHs(Chem.MolFromSmiles(smiles))
    heavy = mol.GetNumHeavyAtoms()
    rotors = rdMolDescriptors.CalcNumRotatableBonds(mol)
    wanted = CONFORMERS_LARGE if heavy >= 35 else CONFORMERS_FLEXIBLE if rotors >= 4 else CONFORMERS
    parameters = rdDistGeom.ETKDGv3()
    parameters.randomSeed = rng("embed", index).randrange(1, 2**31 - 1)
    parameters.pruneRmsThresh = PRUNE_RMSD
    parameters.numThreads = 1
    parameters.maxIterations = 60
    ids = list(rdDistGeom.EmbedMultipleConfs(mol, wanted + 3, parameters))
    if not ids:
        fail("embedding")
        row["wanted"] = wanted
        return row
    if AllChem.MMFFHasAllMoleculeParams(mol):
        energies = AllChem.MMFFOptimizeMoleculeConfs(mol, numThreads=1, maxIters=500)
    else:
        energies = AllChem.UFFOptimizeMoleculeConfs(mol, numThreads=1, maxIters=500)
    ids = sorted(range(len(ids)), key=lambda k: (energies[k][1], k))
    symbols = [a.GetSymbol() for a in mol.GetAtoms()]
    charge = Chem.GetFormalCharge(mol)
    kept = []
    positions = {k: mol.GetConformer(k).GetPositions() for k in ids}
    for k in ids:  # force-field minima that are the same are asked for once
        heavy_distances = np.sort(np.linalg.norm(positions[k][:heavy, None] - positions[k][None, :heavy], axis=-1)[np.triu_indices(heavy, 1)])
        if all(np.sqrt(np.mean((heavy_distances - other) ** 2)) > 0.03 for _, other in kept):
            kept.append((k, heavy_distances))
    chosen = [k for k, _ in kept[:wanted]]
    row["wanted"] = len(chosen)
    cycles_allowed, accuracy = [stage[1:] for stage in XTB_STAGES if stage[0] <= index][-1]
    for number, k in enumerate(chosen):
        result = xtb(symbols, positions[k], charge, XTB_LEVEL, cycles_allowed, accuracy)
        if result is None:
            fail("xtb")
            continue
        points, energy, cycles, converged = result
        reason = same_molecule(mol, points, smiles)
        if reason:
            fail(reason)
            continue
        row["conformers"].append({"number": number, "energy": energy, "cycles": cycles, "converged": converged, "xyz": [[f"{v:.10f}" for v in p] for p in points]})
    row["seconds"] = round(time.time() - started, 2)
    return row


def start_worker(nice):
    os.nice(nice)
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def settings():
    return {
        "seed": SEED,
        "routes": POOL_ROUTES,
        "xtb_level": XTB_LEVEL,
        "xtb_stages": [list(stage) for stage in XTB_STAGES],
        "prune_rmsd": PRUNE_RMSD,
        "conformers": [CONFORMERS, CONFORMERS_FLEXIBLE, CONFORMERS_LARGE],
        "chemistry_sha256": hashlib.sha256(json.dumps([BLOCKS, REACTIONS, UNFINISHED, CHARGES, LARGE_SHARE, CHARGED_SHARE, CHIRAL_SHARE]).encode()).hexdigest(),
    }


def checkpoint(work):
    rows = {}
    path = work / "checkpoint.jsonl"
    if path.exists():
        for line in path.read_text().splitlines():
            try:
                row = json.loads(line)
            except json.JSONDecodeError:  # the run was stopped while it wrote
                continue
            rows[row["index"]] = row
    return rows


def prepare(work, count):
    """The molecule list, kept in the work folder; refused if the recipe has changed."""
    work.mkdir(parents=True, exist_ok=True)
    path = work / "molecules.json"
    wanted = {"settings": settings(), "molecules": count}
    if path.exists():
        kept = json.loads(path.read_text())
        if {k: kept[k] for k in wanted} != wanted:
            raise SystemExit(f"{path} was made by another recipe: use another work folder")
        return kept
    smiles, pool = molecule_list(count)
    kept = {**wanted, "pool": pool, "smiles": smiles}
    path.write_text(json.dumps(kept))
    return kept


def run(arguments):
    work = Path(arguments.work)
    smiles = prepare(work, arguments.molecules)["smiles"]
    done = checkpoint(work)
    path = work / "checkpoint.jsonl"
    if path.exists() and not path.read_bytes().endswith(b"\n"):
        with path.open("a") as out:
            out.write("\n")
    tasks = [(i, s) for i, s in enumerate(smiles) if i not in done]
    started, conformers = time.time(), 0
    with multiprocessing.get_context("spawn").Pool(arguments.workers, start_worker, (arguments.nice,)) as pool, path.open("a") as out:
        for number, row in enumerate(pool.imap_unordered(compute, tasks), 1):
            out.write(json.dumps(row, separators=(",", ":")) + "\n")
            out.flush()
            conformers += len(row["conformers"])
            if number % 25 == 0 or number == len(tasks):
                print(f"{len(done) + number} of {len(smiles)} molecules, {conformers / (time.time() - started):.2f} conformers/s", file=sys.stderr, flush=True)


# ---------------------------------------------------------------- text

ATOM = re.compile(r"\[[^\]]*\]|Br|Cl|[BCNOPSFI]|[bcnops]")
OTHER = re.compile(r"%\d\d|[-=#$:/\\().0-9]")
BLOCK = re.compile(r"<([^<>]*)>")
NUMBER = re.compile(r"-?(?:0|[1-9]\d*)\.\d{4}")
BARE = {"B", "C", "N", "O", "P", "S", "F", "Cl", "Br", "I", "b", "c", "n", "o", "p", "s"}


def number(value):
    """Four decimals, truncated toward zero exactly, never -0.0000."""
    cut = Decimal(value).quantize(Decimal("0.0001"), rounding=ROUND_DOWN)
    return f"{abs(cut) if cut == 0 else cut:.4f}"


def frame(masses, xyz, draw):
    """Centre of mass at the origin, principal axes on x (longest), y, z, proper random signs."""
    xyz = xyz - masses @ xyz / masses.sum()
    inertia = np.einsum("i,ij->", masses, xyz**2) * np.eye(3) - np.einsum("i,ij,ik->jk", masses, xyz, xyz)
    axes = np.linalg.eigh(inertia)[1]
    for column in range(3):  # an orientation that does not depend on the eigensolver
        if axes[np.argmax(np.abs(axes[:, column])), column] < 0:
            axes[:, column] *= -1
    if np.linalg.det(axes) < 0:
        axes[:, 2] *= -1
    signs = draw.choice([(1, 1, 1), (1, -1, -1), (-1, 1, -1), (-1, -1, 1)])
    return xyz @ axes * np.array(signs)


def enriched(smiles, points):
    """The SMILES with a block after each atom; points in the order of its atoms."""
    out, at, atoms = [], 0, 0
    while at < len(smiles):
        match = ATOM.match(smiles, at)
        if match:
            token = match.group()
            out.append(token if token[0] == "[" else f"[{token}]")
            out.append("<" + ",".join(number(float(v)) for v in points[atoms]) + ">")
            atoms += 1
        else:
            match = OTHER.match(smiles, at)
            if not match:
                raise ValueError(f"{smiles}: {smiles[at:]}")
            out.append(match.group())
        at = match.end()
    if atoms != len(points):
        raise ValueError(f"{smiles}: {atoms} atoms, {len(points)} points")
    return "".join(out)


def plain(text):
    """The SMILES of an enriched SMILES."""
    bare = BLOCK.sub("", text)
    return re.sub(r"\[([A-Za-z]{1,2})\]", lambda m: m.group(1) if m.group(1) in BARE else m.group(), bare)


def heavy_atoms(mol):
    """The SMILES of the heavy atoms of a molecule with hydrogens, and its atoms in the order of that text."""
    for atom in mol.GetAtoms():
        atom.SetIntProp("_at", atom.GetIdx())
    heavy = Chem.RemoveHs(mol)
    text = Chem.MolToSmiles(heavy)
    order = json.loads(heavy.GetProp("_smilesAtomOutputOrder").replace(",]", "]"))
    return text, [heavy.GetAtomWithIdx(k).GetIntProp("_at") for k in order]


def collect_rows(work, count):
    smiles = prepare(work, count)["smiles"]
    done = checkpoint(work)
    prefix = 0  # only the molecules before the first one that is missing, so that a run of any speed gives the same
    while prefix < len(smiles) and prefix in done:
        prefix += 1
    counts = {"molecules_requested": prefix, "conformers_requested": 0, "conformers_lost": {}, "molecules_without_conformer": 0}
    rows, cycles, cut = [], [], 0
    for index in range(prefix):
        entry = done[index]
        if entry["smiles"] != smiles[index]:
            raise SystemExit(f"the checkpoint holds another molecule at {index}")
        counts["conformers_requested"] += entry["wanted"]
        for reason, k in entry["failed"].items():
            counts["conformers_lost"][reason] = counts["conformers_lost"].get(reason, 0) + k
        counts["molecules_without_conformer"] += not entry["conformers"]
        if not entry["conformers"]:
            continue
        mol = Chem.AddHs(Chem.MolFromSmiles(smiles[index]))
        masses = np.array([a.GetMass() for a in mol.GetAtoms()])
        text, order = heavy_atoms(mol)
        if text != smiles[index]:
            raise SystemExit(f"{smiles[index]} comes back as {text}")
        for conformer in entry["conformers"]:
            draw = rng("axes", index, conformer["number"])
            xyz = frame(masses, np.array([[float(v) for v in p] for p in conformer["xyz"]]), draw)
            rows.append({"id": f"own-{index:04d}-{conformer['number']}", "canonical_smiles": text, "embedded_smiles": enriched(text, xyz[order])})
            cycles.append(conformer["cycles"])
            cut += not conformer["converged"]
    counts["conformers_lost"] = dict(sorted(counts["conformers_lost"].items()))
    counts["conformers_stopped_at_the_cycle_limit"] = cut
    counts["mean_cycles"] = round(float(np.mean(cycles)), 1)
    return rows, counts


# ---------------------------------------------------------------- statistics

BONDS = {
    "C-C (sp3-sp3)": "[CX4]-[CX4]", "C:C aromatic": "c:c", "C=O": "[CX3]=[OX1]", "C-N (sp3)": "[CX4]-[NX3]", "C(=O)-N": "[CX3](=O)-[NX3]",
    "C:N aromatic": "c:n", "C-O (sp3)": "[CX4]-[OX2]", "C-F": "[#6]-F", "C-Cl": "[#6]-Cl", "C-S": "[#6]-[SX2]", "S=O": "[SX4]=[OX1]",
}  # fmt: skip


def quantiles(values, digits=2):
    points = np.quantile(values, [0, 0.05, 0.25, 0.5, 0.75, 0.95, 1])
    return {k: round(float(v), digits) for k, v in zip(["min", "5%", "25%", "50%", "75%", "95%", "max"], points)}


def statistics(rows):
    numbers, sizes, molecules = [], [], {}
    patterns = {name: Chem.MolFromSmarts(s) for name, s in BONDS.items()}
    lengths = {name: [] for name in BONDS}
    elements = {}
    for row in rows:
        block = [b.split(",") for b in BLOCK.findall(row["embedded_smiles"])]
        numbers.extend(block)
        sizes.append(len(block))
        smiles = plain(row["embedded_smiles"])
        if row["canonical_smiles"] not in molecules:
            mol = Chem.MolFromSmiles(smiles)
            molecules[row["canonical_smiles"]] = mol
            for atom in mol.GetAtoms():
                elements[atom.GetSymbol()] = elements.get(atom.GetSymbol(), 0) + 1
        mol = molecules[row["canonical_smiles"]]
        points = np.array([[float(v) for v in b] for b in block])
        for name, pattern in patterns.items():
            for match in mol.GetSubstructMatches(pattern):
                lengths[name].append(float(np.linalg.norm(points[match[0]] - points[match[-1]])))
    values = np.array([[float(v) for v in b] for b in numbers])
    mols = list(molecules.values())
    molecule_sizes = [m.GetNumHeavyAtoms() for m in mols]
    axis = {}
    for k, name in enumerate("xyz"):
        texts = [b[k] for b in numbers]
        decimals = [t.split(".")[1] for t in texts]
        axis[name] = {
            "min": float(values[:, k].min()),
            "max": float(values[:, k].max()),
            "sd": round(float(values[:, k].std()), 4),
            "two_digit_integer_part": round(float(np.mean([len(t.split(".")[0].lstrip("-")) == 2 for t in texts])), 6),
            "negative": round(float(np.mean([t[0] == "-" for t in texts])), 4),
            "trailing_zeros_at_least": [round(float(np.mean([d.endswith("0" * n) for d in decimals])), 6) for n in (1, 2, 3, 4)],
        }
    share = lambda flags: round(float(np.mean(flags)), 4)  # noqa: E731
    return {
        "conformers": len(rows),
        "molecules": len(mols),
        "blocks": len(numbers),
        "conformers_per_molecule": round(len(rows) / len(mols), 3),
        "heavy_atoms_by_conformer": {"mean": round(float(np.mean(sizes)), 2), "sd": round(float(np.std(sizes)), 2), **quantiles(sizes)},
        "heavy_atoms_by_molecule": {"mean": round(float(np.mean(molecule_sizes)), 2), "sd": round(float(np.std(molecule_sizes)), 2), **quantiles(molecule_sizes)},
        "molecules_with_35_to_65_heavy_atoms": share([35 <= s <= 65 for s in molecule_sizes]),
        "molecules_with_a_charged_atom": share([any(a.GetFormalCharge() for a in m.GetAtoms()) for m in mols]),
        "molecules_with_net_charge": share([Chem.GetFormalCharge(m) != 0 for m in mols]),
        "molecules_with_specified_chiral_centre": share(["@" in s for s in molecules]),
        "molecules_with_specified_double_bond": share(["/" in s or "\\" in s for s in molecules]),
        "elements": {k: elements[k] for k in sorted(elements, key=lambda e: (-elements[e], e))},
        "axes": axis,
        "bond_lengths": {n: {"count": len(v), "mean": round(float(np.mean(v)), 4), "sd": round(float(np.std(v)), 4)} for n, v in lengths.items() if v},
    }


def write_whole(path, data):
    temporary = path.with_name(path.name + ".part")
    temporary.write_bytes(data)
    os.replace(temporary, path)


def write_rows(path, rows):
    """Writes JSON Lines, gzipped, the same bytes for the same rows; these bytes, and the text."""
    text = "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows).encode()
    buffer = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", compresslevel=9, fileobj=buffer, mtime=0) as out:
        out.write(text)
    write_whole(path, buffer.getvalue())
    return buffer.getvalue(), text


def versions(xtb=True):
    """What computes; of xTB only where it does."""
    found = {"python": platform.python_version(), "rdkit": rdBase.rdkitVersion, "numpy": np.__version__}
    if not xtb:
        return found
    banner = subprocess.run(["xtb", "--version"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout.decode()
    return {**found, "xtb": re.search(r"xtb version (\S+)", banner).group(1)}


def collect(arguments):
    work, target = Path(arguments.work), Path(arguments.out)
    rows, counts = collect_rows(work, arguments.molecules)
    data, text = write_rows(target / "default.jsonl.gz", rows)
    kept = prepare(work, arguments.molecules)
    manifest = {
        "name": "default",
        "licence": "MIT OR Apache-2.0",
        "origin": "own work: molecules from the building blocks and reactions in build.py; no data set",
        "recipe": [
            f"{len(BLOCKS)} building blocks and {len(REACTIONS)} reactions, {POOL_ROUTES} seeded routes, {kept['pool']} distinct products",
            "selection by size, charge and chirality; open stereo elements drawn at random",
            f"RDKit ETKDGv3, RMSD pruning {PRUNE_RMSD} A, then MMFF94 (UFF without MMFF94 parameters); the lowest minima that differ",
            f"conformers asked for: {CONFORMERS}, {CONFORMERS_FLEXIBLE} with four or more rotatable bonds, {CONFORMERS_LARGE} with 35 or more heavy atoms",
            *[f"GFN2-xTB in the gas phase, --opt {XTB_LEVEL} --cycles {cycles} --acc {accuracy}, from molecule {first} on" for first, cycles, accuracy in XTB_STAGES],
            "dropped where the bonds by distance or the stereo by geometry are no longer those of the SMILES",
            "centre of mass at the origin, principal axes of inertia (all atoms) on x (longest), y, z, random proper signs",
            "RDKit canonical isomeric SMILES order, heavy atoms, 4 decimals truncated toward zero",
        ],
        "command": ["build.py run --work WORK", "build.py collect --work WORK --reference GEOM_SAMPLE.jsonl"],
        "settings": kept["settings"],
        "versions": versions(),
        "counts": counts,
        "file": {"name": "default.jsonl.gz", "bytes": len(data), "bytes_unpacked": len(text), "sha256": hashlib.sha256(data).hexdigest()},
        "statistics": statistics(rows),
    }
    if arguments.reference:
        opener = gzip.open if arguments.reference.endswith(".gz") else open
        with opener(arguments.reference, "rt") as lines:
            reference = statistics([json.loads(line) for line in lines])
        manifest["statistics_of_a_geom_sample"] = {"note": "figures of a few published GEOM conformers (CREST, GFN2-xTB), for comparison only; none is part of this corpus", **reference}
    write_whole(target / "default.json", (json.dumps(manifest, indent=1) + "\n").encode())
    print(f"{len(rows)} conformers of {manifest['statistics']['molecules']} molecules, {len(data)} bytes, {manifest['file']['sha256']}")


def verify(arguments):
    target = Path(arguments.out)
    data = (target / "default.jsonl.gz").read_bytes()
    manifest = json.loads((target / "default.json").read_text())
    problems = []
    if hashlib.sha256(data).hexdigest() != manifest["file"]["sha256"]:
        problems.append("the manifest has another hash")
    if len(data) > 4_000_000:
        problems.append(f"{len(data)} bytes are too many")
    rows = [json.loads(line) for line in gzip.decompress(data).decode().splitlines()]
    ids = {row["id"] for row in rows}
    if len(ids) != len(rows):
        problems.append("ids repeat")
    table = Chem.GetPeriodicTable()
    for row in rows:
        text, name = row["embedded_smiles"], row["id"]
        blocks = [b.split(",") for b in BLOCK.findall(text)]
        if any(len(b) != 3 or not all(NUMBER.fullmatch(v) and v != "-0.0000" for v in b) for b in blocks):
            problems.append(f"{name}: a block is not three numbers of four decimals")
        smiles = plain(text)
        mol = Chem.MolFromSmiles(smiles)
        if smiles != row["canonical_smiles"] or mol is None or Chem.MolToSmiles(mol) != smiles:
            problems.append(f"{name}: {smiles} is not {row['canonical_smiles']}")
            continue
        if mol.GetNumAtoms() != len(blocks):
            problems.append(f"{name}: {mol.GetNumAtoms()} atoms, {len(blocks)} blocks")
            continue
        points = np.array([[float(v) for v in b] for b in blocks])
        for bond in mol.GetBonds():
            a, b = bond.GetBeginAtom(), bond.GetEndAtom()
            ideal = table.GetRcovalent(a.GetAtomicNum()) + table.GetRcovalent(b.GetAtomicNum())
            ratio = np.linalg.norm(points[a.GetIdx()] - points[b.GetIdx()]) / ideal
            if not 0.72 < ratio < 1.25:
                problems.append(f"{name}: {a.GetSymbol()}-{b.GetSymbol()} is {ratio:.2f} of the radii")
    for problem in problems[:40]:
        print(problem)
    print(f"{len(rows)} rows, {len(problems)} problems")
    return 1 if problems else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    for verb in ("run", "collect", "verify"):
        sub = verbs.add_parser(verb)
        sub.add_argument("--out", default=str(HERE))
        if verb != "verify":
            sub.add_argument("--work", required=True)
            sub.add_argument("--molecules", type=int, default=MOLECULES)
        if verb == "run":
            sub.add_argument("--workers", type=int, default=2)
            sub.add_argument("--nice", type=int, default=10)
        if verb == "collect":
            sub.add_argument("--reference")
    arguments = parser.parse_args()
    return {"run": run, "collect": collect, "verify": verify}[arguments.verb](arguments) or 0


if __name__ == "__main__":
    sys.exit(main())
