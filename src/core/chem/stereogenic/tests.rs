use crate::chem::limit::AtomLimit;
use crate::chem::reading::SmilesReading;
use crate::chem::stereo::StereoMarks;

fn marks(smiles: &str) -> StereoMarks {
    SmilesReading::new(smiles, AtomLimit::default()).unwrap().marks
}

/// A SMILES, its marked centres, and its marked double bonds.
type MarkedMolecule = (&'static str, &'static [usize], &'static [[usize; 2]]);

/// The centres and double bonds whose marks are left in the molecule that RDKit 2026.09 reads.
#[test]
#[allow(clippy::too_many_lines, reason = "a table of cases")]
fn marks_are_kept_as_rdkit_keeps_them() {
    let cases: &[MarkedMolecule] = &[
        ("CC[N@](C)CCO", &[], &[]),
        ("CC(=O)[N@](C)CC", &[], &[]),
        ("C[C@H](C)O", &[], &[]),
        ("C[C@H2]O", &[], &[]),
        ("C[C@](F)=C", &[], &[]),
        ("C[O@+](CC)CCC", &[], &[]),
        ("C[C@-](CC)CCC", &[], &[]),
        ("C[B@](CC)CCC", &[], &[]),
        ("C[B@-](F)(CC)CCC", &[1], &[]),
        ("C[N@+](CC)(CCC)CCCC", &[1], &[]),
        ("C[N@H+](CC)CCC", &[1], &[]),
        ("C[N@@H+](C)CC", &[], &[]),
        // A nitrogen in a ring of three or at a bridgehead does not invert.
        ("C[N@]1C[C@H]1C", &[1, 3], &[]),
        ("C[N@]1C(=O)[C@H]1C", &[4], &[]),
        ("C[N@]1CC1", &[], &[]),
        ("C[N@]1CC[C@H]1C", &[4], &[]),
        ("C1C[N@]2CC[C@@H]1[C@@H](C)C2", &[2, 5, 6], &[]),
        ("C[C@H](F)[P@H]C", &[1, 3], &[]),
        ("C[P@](CC)CCC", &[1], &[]),
        ("C[P@](C)CC", &[], &[]),
        ("C[P@@]([H])[C@H](F)C", &[1, 3], &[]),
        ("C[As@H]CC", &[1], &[]),
        ("C[S@H]CC", &[], &[]),
        ("C[S@](=O)CC", &[1], &[]),
        ("C[S@@+](CC)CCC", &[1], &[]),
        ("C[S@](=O)C", &[], &[]),
        ("C[Se@](=O)CC", &[1], &[]),
        ("C[Te@](=O)CC", &[], &[]),
        ("C[S@@](=N)(=O)CC", &[1], &[]),
        ("C[Si@H](F)Cl", &[1], &[]),
        ("C[Ge@](F)(Cl)CC", &[1], &[]),
        // Marks that depend on one another.
        ("C[C@H]1CC[C@@H](C)CC1", &[1, 4], &[]),
        ("C[C@H]1CCC(C)CC1", &[], &[]),
        ("C[C@-]1CC[C@H](C)CC1", &[1, 4], &[]),
        ("C[C@H](O)[C@@H](F)[C@@H](C)O", &[1, 3, 5], &[]),
        ("C[C@H](O)[C@@H](F)[C@H](C)O", &[1, 5], &[]),
        ("CC[C@H](O)[C@@](F)(Cl)[C@@H](O)CC", &[2, 7], &[]),
        ("[C@H]12C[C@@H]1C2", &[0, 2], &[]),
        ("*[C@H]1CC[C@H](*)CC1", &[1, 4], &[]),
        ("C[C@]12CC[C@H](CC1)C2", &[1, 4], &[]),
        ("C[C@@H]1C[C@H]2CCCC[C@H]2C1", &[1, 3, 8], &[]),
        ("O[C@H]1[C@@H](O)[C@H](O)[C@@H](O)[C@H](O)[C@@H]1O", &[1, 2, 4, 6, 8, 10], &[]),
        // Isotopes distinguish neighbours.
        ("C[C@H]([13CH3])O", &[1], &[]),
        ("C[C@]([2H])([3H])O", &[1], &[]),
        ("C[C@]([H])([2H])O", &[1], &[]),
        ("C/C=C(/[13CH3])C", &[], &[[1, 2]]),
        ("C/C=C(/C)C", &[], &[]),
        ("C1/C=C/CCC1", &[], &[]),
        ("C1/C=C/CCCCC1", &[], &[[1, 2]]),
        ("C/C=N/O", &[], &[[1, 2]]),
        ("CC(C)=N/O", &[], &[]),
        ("C/C=C/[C@H](O)/C=C\\C", &[3], &[[1, 2], [5, 6]]),
        ("C/C=C/[C@H](O)/C=C/C", &[], &[[1, 2], [5, 6]]),
        ("C/P(C)(C)=C/C", &[], &[]),
        ("CC=[C@]=CC", &[], &[]),
        ("F/C(/Cl)=C(/F)Cl", &[], &[[1, 3]]),
        ("F/N=S(/[H])=O", &[], &[]),
    ];
    for (smiles, centres, double_bonds) in cases {
        let found = marks(smiles);
        let atoms: Vec<usize> = found.centres.iter().map(|mark| mark.atom).collect();
        let bonds: Vec<[usize; 2]> = found.double_bonds.iter().map(|mark| mark.atoms).collect();
        assert_eq!((&atoms[..], &bonds[..]), (*centres, *double_bonds), "{smiles}");
    }
}

/// Each mark is a stereocentre, cannot be compared, or is dropped.
#[test]
fn no_mark_is_lost() {
    for (smiles, [compared, unchecked, dropped]) in [
        ("C[C@H](F)[P@H]C", [2, 0, 0]),
        ("C[P@@]([H])[C@H](F)C", [2, 0, 0]),
        ("CC[N@](C)[C@H](C)O", [1, 0, 1]),
        ("C[C@H](C)[C@H2]O", [0, 0, 2]),
        ("C[C@@]([H])([H])O", [0, 0, 1]),
        ("CC=[C@AL1]=CC", [0, 0, 1]),
        ("C[Pt@SP1](F)Cl", [0, 1, 0]),
        ("C[Pt@SP1](F)(Cl)Br", [1, 0, 0]),
        ("C/C=C(/C)C", [0, 0, 1]),
        ("C/C=C/C", [1, 0, 0]),
    ] {
        let found = marks(smiles);
        let compared_here = found.centres.len() + found.polyhedra.len() + found.double_bonds.len();
        let dropped_here = found.dropped.len() + found.dropped_bonds.len();
        assert_eq!(
            [compared_here, found.unchecked.len(), dropped_here],
            [compared, unchecked, dropped],
            "{smiles}"
        );
    }
}
