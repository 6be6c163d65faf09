use super::*;
use crate::chem::{Bond, Order};

/// Returns the molecule of a SMILES as a file would have it, its atoms in the SMILES' own order.
fn structure(smiles: &str) -> Graph {
    let Graph { atoms, bonds, .. } = Graph::parse(smiles).unwrap();
    let atoms = atoms.into_iter().map(|atom| crate::chem::Atom {
        chirality: None,
        map: None,
        aromatic: false,
        ..atom
    });
    let bonds = bonds.into_iter().map(|bond| Bond::new(bond.atoms, bond.order));
    Graph::of_file(atoms.collect(), bonds.collect())
}

/// Returns points of which no two are at one place, and which do not lie in a plane.
fn somewhere(atoms: usize) -> Vec<[f64; 3]> {
    (0..atoms)
        .map(|at| at as f64)
        .map(|at| [at, (at * 1.7).sin() * 3.0, (at * at * 0.31).cos() * 3.0])
        .collect()
}

fn order(asked: &str, file: &Graph, points: &[[f64; 3]]) -> Result<Vec<u32>, Mismatch> {
    let mut molecule = SmilesMolecule::new(asked, AtomLimit::default())?;
    let pairing = molecule.pair(file)?;
    match molecule.order(&pairing, points)? {
        (order, open) if open.is_empty() => Ok(order),
        (_, open) => Err(Mismatch::Open(open)),
    }
}

fn paired(asked: &str, file: &str) -> Result<Vec<u32>, Mismatch> {
    let file = structure(file);
    order(asked, &file, &somewhere(file.atoms.len()))
}

#[test]
fn atoms_come_in_the_order_of_the_smiles() {
    assert_eq!(paired("CCO", "OCC"), Ok(vec![2, 1, 0]));
    assert_eq!(paired("Cc1ccccc1", "C1=CC=CC=C1C"), Ok(vec![6, 5, 0, 1, 2, 3, 4]));
    assert_eq!(paired("CCO", "[H]OC([H])([H])C([H])([H])[H]"), Ok(vec![5, 2, 1]));
    assert_eq!(paired("[2H]C", "C[2H]"), Ok(vec![1, 0]));
    assert_eq!(paired("C[N+](=O)[O-]", "O=N(C)=O"), Ok(vec![2, 1, 3, 0]));
    assert_eq!(paired("CC(=O)[O-].[Na+]", "[Na+].CC([O-])=O"), Ok(vec![1, 2, 4, 3, 0]));
    // Of symmetric choices those that come first in the file.
    assert_eq!(paired("CC(C)C", "CC(C)C"), Ok(vec![0, 1, 2, 3]));
    assert_eq!(paired("FC(F)(F)C", "CC(F)(F)F"), Ok(vec![2, 1, 3, 4, 0]));
    // A hydrogen that is written is looked for.
    let order = paired("[H]/N=C/C", "CC([H])=N[H]").unwrap();
    assert_eq!((order[0], order[1]), (4, 3));
}

#[test]
fn labels_may_be_left_out_and_no_hydrogen_is_lost() {
    let paired = |asked: &str, file: &str| {
        let molecule = SmilesMolecule::new(asked, AtomLimit::default()).unwrap();
        let file = structure(file);
        (molecule.pair(&file).is_ok(), molecule.pair_without_labels(&file).is_ok())
    };
    for (labelled, plain) in
        [("[13CH3]CO", "OCC"), ("C[15NH3+]", "[NH3+]C"), ("C1CC1[18F]", "FC1CC1"), ("[201Hg]", "[Hg]")]
    {
        assert_eq!(
            (paired(labelled, plain), paired(plain, labelled)),
            ((false, true), (false, true)),
            "{labelled}"
        );
    }
    // A written deuterium is an atom more.
    assert_eq!((paired("[2H]C", "C"), paired("C", "[2H]C")), ((false, false), (false, false)));
    assert_eq!(paired("[2H]C", "C[2H]"), (true, true));
}

#[test]
fn what_differs_is_said() {
    for (asked, file, reason) in [
        ("CCO", "CCN", "its atoms are C2H7N, those of the SMILES C2H6O"),
        ("CC=O", "CCO", "its atoms are C2H6O, those of the SMILES C2H4O"),
        ("C[NH3+]", "CN", "its atoms are CH5N, those of the SMILES CH6N"),
        ("CCO", "COC", "its atoms differ from the SMILES: [CH2] is missing, [CH3] is over"),
        ("[13CH4]", "C", "its atoms differ from the SMILES: [13CH4] is missing, [CH4] is over"),
        ("[O-]C=C[NH3+]", "OC=CN", "its atoms are C2H5NO, those of the SMILES C2H5NO"),
        ("CCC(C)CC(C)C", "CCCC(C)C(C)C", "its bonds differ from the SMILES"),
        ("C(", "C", "`C(` is not a SMILES: byte 2: ends where an atom is expected"),
        ("C", "[C-5]", "its atoms are C, those of the SMILES CH4"),
    ] {
        let found = paired(asked, file).unwrap_err().to_string();
        if reason.contains("C2H5NO,") {
            assert!(found.contains("is missing"), "{found}");
        } else {
            assert_eq!(found, reason, "{asked} {file}");
        }
    }
    let two = structure("CC");
    let error = order("CC", &two, &[[0.0; 3], [0.0, 0.0, 0.01]]).unwrap_err();
    assert_eq!(error.to_string(), "atoms 1 and 2 have the same position");
}

#[test]
fn stereo_is_that_of_the_coordinates() {
    let file = structure("C(F)(Cl)(Br)I");
    let points = [[0.0; 3], [0.0, 0.0, 1.5], [1.4, 0.0, -0.5], [-0.7, 1.2, -0.5], [-0.7, -1.2, -0.5]];
    // From F the others go round counterclockwise.
    assert_eq!(order("F[C@](Cl)(Br)I", &file, &points), Ok(vec![1, 0, 2, 3, 4]));
    let mirrored = order("F[C@@](Cl)(Br)I", &file, &points).unwrap_err();
    assert_eq!(mirrored.to_string(), "its stereo differs from the SMILES: stereocentre 2");
    let open = order("FC(Cl)(Br)I", &file, &points).unwrap_err();
    assert_eq!(open.to_string(), "the SMILES leaves stereo open: stereocentre 2");
    // Of two equal neighbours no mark says anything: RDKit drops it.
    let file = structure("C(F)(Cl)(C)C");
    for smiles in ["F[C@](Cl)(C)C", "F[C@@](Cl)(C)C", "FC(Cl)(C)C"] {
        assert_eq!(order(smiles, &file, &points), Ok(vec![1, 0, 2, 3, 4]), "{smiles}");
    }
}

#[test]
fn of_symmetric_orders_the_one_that_fits_the_stereo_is_taken() {
    // Two centres in the plane z = 0; fluorine above or below it.
    let file = structure("C(F)(Cl)C(F)Cl");
    let points =
        [[0.0; 3], [-0.7, 0.3, 1.2], [-0.7, 1.2, -0.8], [1.5, 0.0, 0.0], [2.2, 0.3, 1.2], [2.2, 1.2, -0.8]];
    let orders = ["F[C@H](Cl)[C@@H](F)Cl", "F[C@@H](Cl)[C@H](F)Cl", "F[C@H](Cl)[C@H](F)Cl"]
        .map(|smiles| order(smiles, &file, &points));
    assert!(orders[2].is_err(), "{orders:?}");
    let firsts: Vec<u32> = orders[..2].iter().map(|order| order.as_ref().unwrap()[0]).collect();
    assert!(firsts == [1, 4] || firsts == [4, 1], "{orders:?}");
}

#[test]
fn double_bonds_have_sides() {
    let file = structure("FC=CF");
    let points = [[-1.0, 1.0, 0.0], [0.0; 3], [1.3, 0.0, 0.0], [2.3, 1.0, 0.0]];
    assert!(order("F/C=C\\F", &file, &points).is_ok());
    let other = order("F/C=C/F", &file, &points).unwrap_err();
    assert_eq!(other.to_string(), "its stereo differs from the SMILES: double bond 2=3");
    assert_eq!(
        order("FC=CF", &file, &points).unwrap_err().to_string(),
        "the SMILES leaves stereo open: double bond 2=3"
    );
    // Nothing to tell: two hydrogens, two methyls, a small ring, a nitro group.
    for smiles in ["C=CF", "CC(C)=CF", "C1=CCCCC1", "C[N+](=O)[O-]", "CN=C=O"] {
        assert!(paired(smiles, smiles).is_ok(), "{smiles}");
    }
    for smiles in ["CC=CF", "CON=CC", "C1=CCCCCCC1", "CN=NC"] {
        assert!(matches!(paired(smiles, smiles), Err(Mismatch::Open(_))), "{smiles}");
    }
}

#[test]
fn stereo_that_depends_on_other_stereo() {
    // 1,4-Dimethylcyclohexane has stereo, methylcyclohexane has none, whatever the coordinates.
    assert!(matches!(paired("CC1CCC(C)CC1", "CC1CCC(C)CC1"), Err(Mismatch::Open(_))));
    assert!(paired("CC1CCCCC1", "CC1CCCCC1").is_ok());
    assert!(paired("CC(C)CC(F)(F)S(=O)(=O)C", "CC(C)CC(F)(F)S(=O)(=O)C").is_ok());
    // So has a double bond between two ways round a ring, or none.
    assert!(matches!(paired("FC=C1CCC(C)CC1", "FC=C1CCC(C)CC1"), Err(Mismatch::Open(_))));
    assert!(matches!(paired("CC1CC2(C1)CC(C)C2", "CC1CC2(C1)CC(C)C2"), Err(Mismatch::Open(_))));
    // Cages have none.
    for smiles in ["FC=C1CCCCC1", "C1C2CC3CC1CC(C2)C3", "C12C3C4C1C5C2C3C45"] {
        assert!(paired(smiles, smiles).is_ok(), "{smiles}");
    }
    // A sulfoxide has, a tertiary amine has not.
    assert!(matches!(paired("CS(=O)CC", "CS(=O)CC"), Err(Mismatch::Open(_))));
    assert!(paired("CN(CC)CCC", "CN(CC)CCC").is_ok());
}

#[test]
fn connectivity_alone_is_enough_where_it_is_all_there_is() {
    let mut file = structure("[H]OC(=O)C([H])([H])[H]");
    file.bonds.iter_mut().for_each(|bond| bond.order = Order::Any);
    file.pairs_only = true;
    assert_eq!(order("CC(=O)O", &file, &somewhere(8)), Ok(vec![4, 2, 3, 1]));
    assert!(matches!(order("COC=O", &file, &somewhere(8)), Err(Mismatch::Atoms(_))));
}

#[test]
fn symmetry_costs_nothing() {
    let fullerene = "c12c3c4c5c1c1c6c7c2c2c8c3c3c9c4c4c%10c5c5c1c1c6c6c%11c7c2c2c7c8c3c3c8c9c4c4c9c%10c5c5c1c1c6c6c%11c2c2c7c3c3c8c4c4c9c5c1c1c6c2c3c41";
    assert_eq!(paired(fullerene, fullerene).unwrap(), (0..60).collect::<Vec<u32>>());
    // A dendrimer of silicon: 1 + 4 + 12 + 36 + 108 + 324 atoms are too many orders to be counted.
    fn branch(depth: usize) -> String {
        if depth == 0 { "C".to_owned() } else { format!("[Si]({0})({0}){0}", branch(depth - 1)) }
    }
    let dendrimer = format!("[Si]({0})({0})({0}){0}", branch(3));
    assert_eq!(Graph::parse(&dendrimer).unwrap().atoms.len(), 161);
    assert_eq!(paired(&dendrimer, &dendrimer).unwrap(), (0..161).collect::<Vec<u32>>());
    // One leaf is chiral: wherever it lies in the file, it is found.
    let chiral = |leaf: &str| dendrimer.replacen("(C)(C)C)", &format!("(C)(C){leaf})"), 1);
    let [asked, file] = ["[C@](F)(Cl)Br", "C(F)(Cl)Br"].map(chiral);
    let verdict = paired(&asked, &file);
    assert!(verdict.is_ok() || matches!(verdict, Err(Mismatch::Stereo(_))), "{verdict:?}");
    let waters = vec!["O"; 150].join(".");
    assert_eq!(paired(&waters, &waters).unwrap(), (0..150).collect::<Vec<u32>>());
}
