use super::*;

fn broken(smiles: &str, points: &[[f64; 3]]) -> Vec<(ChemistryRule, Vec<usize>)> {
    let found = Chemistry::from_smiles(smiles).unwrap().check(points).unwrap();
    found.findings.into_iter().map(|finding| (finding.rule, finding.atoms)).collect()
}

/// Bromochlorofluoroethane's heavy atoms around a tetrahedron, `C[C](F)(Cl)Br` in order: centre second.
fn tetrahedron() -> [[f64; 3]; 5] {
    let corner = |[x, y, z]: [f64; 3], length: f64| {
        let scale = length / 3.0_f64.sqrt();
        [x * scale, y * scale, z * scale]
    };
    [
        corner([1.0, 1.0, 1.0], 1.5),
        [0.0; 3],
        corner([1.0, -1.0, -1.0], 1.37),
        corner([-1.0, 1.0, -1.0], 1.77),
        corner([-1.0, -1.0, 1.0], 1.94),
    ]
}

fn hexagon(bond: f64) -> Vec<[f64; 3]> {
    let at = |i: usize| std::f64::consts::FRAC_PI_3 * i as f64;
    (0..6).map(|i| [bond * at(i).cos(), bond * at(i).sin(), 0.0]).collect()
}

/// Zigzag butane and longer chains, 1.53 Å and about 112°.
fn zigzag(atoms: usize) -> Vec<[f64; 3]> {
    (0..atoms).map(|i| [1.27 * i as f64, if i % 2 == 0 { 0.0 } else { 0.86 }, 0.0]).collect()
}

#[test]
fn a_mirrored_stereocentre_is_wrong() {
    let points = tetrahedron();
    let mirrored = points.map(|[x, y, z]| [x, y, -z]);
    let count = |smiles: &str, points: &[[f64; 3]]| {
        let found = Chemistry::from_smiles(smiles).unwrap().check(points).unwrap();
        (found.stereocentres, found.stereocentres_right, found.is_valid(), found.has_valid_geometry())
    };
    assert_ne!(count("C[C@](F)(Cl)Br", &points), count("C[C@@](F)(Cl)Br", &points));
    assert_eq!(count("C[C@](F)(Cl)Br", &points), count("C[C@@](F)(Cl)Br", &mirrored));
    let wrong = if count("C[C@](F)(Cl)Br", &points).1 == 0 { "C[C@](F)(Cl)Br" } else { "C[C@@](F)(Cl)Br" };
    assert_eq!(count(wrong, &points), (1, 0, false, true));
    assert_eq!(broken(wrong, &points), [(ChemistryRule::Stereocentre, vec![1])]);
    // Pressed into a plane it is neither.
    let flat = points.map(|[x, y, _]| [x, y, 0.0]);
    assert_eq!(count("C[C@](F)(Cl)Br", &flat).1 + count("C[C@@](F)(Cl)Br", &flat).1, 0);
    assert_eq!(count("CC(F)(Cl)Br", &points), (0, 0, true, true));
}

#[test]
fn a_double_bond_with_its_neighbours_on_the_wrong_sides() {
    let trans = [[-1.8, 0.4, 0.0], [-0.6, -0.3, 0.0], [0.6, 0.3, 0.0], [1.8, -0.4, 0.0]];
    assert_eq!(broken("C/C=C/C", &trans), []);
    assert_eq!(broken("C/C=C\\C", &trans), [(ChemistryRule::DoubleBond, vec![1, 2])]);
    let found = Chemistry::from_smiles("C/C=C\\C").unwrap().check(&trans).unwrap();
    assert_eq!((found.double_bonds, found.double_bonds_right), (1, 0));
    // Twisted by a right angle, its ends leave the plane.
    let twisted = [trans[0], trans[1], trans[2], [1.25, -0.05, 1.3]];
    assert!(broken("CC=CC", &twisted).contains(&(ChemistryRule::BentDoubleBond, vec![0, 1, 2, 3])));
}

#[test]
fn clashes_and_bonds_of_a_chain() {
    let chain = zigzag(6);
    assert_eq!(broken("CCCCCC", &chain), []);
    let mut folded = chain.clone();
    folded[5] = [0.3, 0.3, 1.0];
    let found = broken("CCCCCC", &folded);
    assert!(found.contains(&(ChemistryRule::Clash, vec![0, 5])), "{found:?}");
    let mut torn = chain.clone();
    torn.iter_mut().skip(3).for_each(|p| p[0] += 2.0);
    let found = broken("CCCCCC", &torn);
    assert!(
        found.contains(&(ChemistryRule::LongBond, vec![2, 3]))
            && found.contains(&(ChemistryRule::Fragments, vec![]))
    );
    let squeezed: Vec<[f64; 3]> = chain.iter().map(|p| p.map(|x| 0.7 * x)).collect();
    assert!(broken("CCCCCC", &squeezed).contains(&(ChemistryRule::ShortBond, vec![0, 1])));
    // In a ring a long bond tears nothing apart.
    let found = broken("C1CCCCC1", &chain);
    assert!(found.contains(&(ChemistryRule::LongBond, vec![0, 5])), "{found:?}");
    assert!(!found.iter().any(|(rule, _)| *rule == ChemistryRule::Fragments));
}

#[test]
fn two_atoms_at_one_place() {
    let mut chain = zigzag(5);
    chain[4] = chain[0];
    let found = broken("CCCCC", &chain);
    assert!(found.contains(&(ChemistryRule::Clash, vec![0, 4])), "{found:?}");
    let found = broken("CC", &[[1.0; 3], [1.0; 3]]);
    assert_eq!(found, [(ChemistryRule::ShortBond, vec![0, 1])]);
    let all = Chemistry::from_smiles("C[C@](F)(Cl)Br").unwrap().check(&[[0.0; 3]; 5]).unwrap();
    assert_eq!((all.stereocentres_right, all.is_valid(), all.flat, all.zero_z), (0, false, true, 5));
}

#[test]
fn rings_that_are_bent_and_rings_that_are_flat() {
    let benzene = hexagon(1.39);
    assert_eq!(broken("c1ccccc1", &benzene), []);
    let mut bent = benzene.clone();
    bent[0][2] = 0.9;
    bent[3][2] = 0.9;
    let found = broken("c1ccccc1", &bent);
    assert!(found.contains(&(ChemistryRule::AromaticRing, vec![0, 1, 2, 3, 4, 5])), "{found:?}");
    let flat = hexagon(1.53);
    assert_eq!(broken("C1CCCCC1", &flat), [(ChemistryRule::FlatRing, vec![0, 1, 2, 3, 4, 5])]);
    let chair: Vec<[f64; 3]> = (0..6)
        .map(|i| [0.95 * flat[i][0], 0.95 * flat[i][1], if i % 2 == 0 { 0.25 } else { -0.25 }])
        .collect();
    assert_eq!(broken("C1CCCCC1", &chair), []);
    // Acetone with its carbon above the plane of the others.
    let acetone = |z| [[-1.3, -0.75, 0.0], [0.0, 0.0, z], [0.0, 1.22, 0.0], [1.3, -0.75, 0.0]];
    assert_eq!(broken("CC(=O)C", &acetone(0.0)), []);
    assert_eq!(broken("CC(=O)C", &acetone(0.6)), [(ChemistryRule::BentCentre, vec![0, 2, 3, 1])]);
}

#[test]
fn atoms_without_bonds_salts_and_metals() {
    assert_eq!(broken("C", &[[0.0; 3]]), []);
    assert_eq!(broken("[Na+]", &[[5.0; 3]]), []);
    assert_eq!(broken("[Na+].[Cl-]", &[[0.0; 3], [2.36, 0.0, 0.0]]), []);
    assert_eq!(broken("[Na+].[Cl-]", &[[0.0; 3], [1.0, 0.0, 0.0]]), [(ChemistryRule::Clash, vec![0, 1])]);
    // Parts that the SMILES keeps apart are no fragments.
    let acetate = |x: f64| [[-1.5, 0.0, 0.0], [0.0; 3], [0.6, 1.05, 0.0], [0.6, -1.05, 0.0], [x, 0.0, 0.0]];
    assert_eq!(broken("CC(=O)[O-].[Na+]", &acetate(2.6)), []);
    assert_eq!(broken("CC(=O)[O-].[Na+]", &acetate(90.0)), []);
    // Cisplatin is flat; its square must not be taken for a tetrahedron.
    let platinum = [[0.0, 2.05, 0.0], [0.0; 3], [2.05, 0.0, 0.0], [0.0, -2.33, 0.0], [-2.33, 0.0, 0.0]];
    let found = broken("[NH3][Pt]([NH3])(Cl)Cl", &platinum);
    assert!(!found.iter().any(|(rule, _)| *rule == ChemistryRule::Clash), "{found:?}");
    assert!(
        Chemistry::from_smiles("C1CC[Fe]C1").is_ok()
            && Chemistry::from_smiles("[Cu+2]").is_ok()
            && Chemistry::from_smiles("[U]").is_ok()
    );
}

#[test]
fn what_cannot_be_checked_is_not() {
    assert!(Chemistry::from_smiles("C(").is_err() && Chemistry::from_smiles("*C").is_err());
    let ethane = Chemistry::from_smiles("CC").unwrap();
    assert_eq!(ethane.atoms(), 2);
    assert_eq!(ethane.check(&[[0.0; 3]]), None);
    assert_eq!(ethane.check(&[[0.0; 3], [f64::INFINITY, 0.0, 0.0]]), None);
    // Hydrogens that are written as atoms are places without rules.
    assert_eq!(broken("[2H]C([2H])C", &[[0.0; 3], [0.5; 3], [0.0; 3], [2.0, 0.5, 0.5]]), []);
}

#[test]
fn flat_conformers() {
    let flat = |points: &[[f64; 3]]| {
        let found = Chemistry::from_smiles("CCCCCC").unwrap().check(points).unwrap();
        (found.flat, found.planar, found.zero_z)
    };
    let chain = zigzag(6);
    assert_eq!(flat(&chain), (true, true, 6));
    let lifted: Vec<[f64; 3]> = chain.iter().map(|[x, y, z]| [*x, *y, z + 1.0]).collect();
    assert_eq!(flat(&lifted), (false, true, 0));
    let mut bent = chain;
    bent[5][2] = 1.2;
    assert_eq!(flat(&bent), (false, false, 5));
}

#[test]
fn molecules_of_a_thousand_atoms() {
    for smiles in ["C".repeat(1_000), format!("C1{}C1", "C".repeat(998)), "c1ccccc1".repeat(120)] {
        let chemistry = Chemistry::from_smiles(&smiles).unwrap();
        assert!(chemistry.check(&vec![[0.0; 3]; chemistry.atoms()]).unwrap().findings.len() > 1_000);
    }
    assert!(Chemistry::from_smiles(&"C".repeat(1_001)).is_err());
}

#[test]
fn both_oxygens_of_a_carboxylate_may_have_either_length() {
    let formate = |one: f64, two: f64| [[-0.9 * one, 0.5 * one, 0.0], [0.0; 3], [0.9 * two, 0.5 * two, 0.0]];
    assert_eq!(broken("[O-]C=O", &formate(1.1, 1.1)), []);
    let found = Chemistry::from_smiles("CC(=O)[O-]").unwrap();
    assert_eq!((found.bonds[1].low, found.bonds[1].high), (found.bonds[2].low, found.bonds[2].high));
    assert!(found.bonds[1].low < 1.26 && found.bonds[1].high > 1.26);
}
