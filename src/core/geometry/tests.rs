use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead, BufReader};

use flate2::read::MultiGzDecoder;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::*;
use crate::vector::distance;

type Points = Vec<[f64; 3]>;

fn rules(smiles: &str) -> GeometryRules {
    GeometryRules::from_smiles(smiles, GeometryStrength::default()).unwrap()
}

fn drawn(set: &Intervals, random: &mut ChaCha8Rng) -> Option<f64> {
    let ends = |[low, high]: &[f64; 2]| if low.is_finite() { [*low, *high] } else { [-1.0, 1.0] };
    let parts: Vec<[f64; 2]> = set.parts().iter().map(ends).collect();
    let total: f64 = parts.iter().map(|[low, high]| high - low).sum();
    let mut left = random.random::<f64>() * total;
    for [low, high] in parts {
        if left <= high - low {
            return Some(low + left);
        }
        left -= high - low;
    }
    None
}

/// Places atoms one after another at random positions of their regions, as far as it goes.
fn grown(rules: &GeometryRules, random: &mut ChaCha8Rng) -> Points {
    let mut points: Points = Vec::new();
    let mut failures = 0;
    while points.len() < rules.atoms() && failures < 50 {
        let region = rules.region(&points);
        let x = drawn(&region.x(), random);
        let y = x.and_then(|x| drawn(&region.y(x), random));
        match (x, y, x.zip(y).and_then(|(x, y)| drawn(&region.z(x, y), random))) {
            (Some(x), Some(y), Some(z)) => points.push([x, y, z]),
            _ => failures += 1,
        }
    }
    points
}

const MOLECULES: [&str; 18] = [
    "CCO",
    "C[C@H](F)Cl",
    "F/C=C/Cl",
    "F/C=C\\Cl",
    "c1ccncc1C",
    "C1CC12CCC2",
    "C[P@](=O)(O)CC",
    "C[S@](=O)CC",
    "CC(=O)[O-].[Na+]",
    "O=C1C[C@H]2CC[C@@H]1N2",
    "C#CC(C)(C)C",
    "C1CC2CCC1C2",
    "CC=C=CC",
    "C1CCC/C=C/CC1",
    "C12C3C4C1C5C2C3C45",
    "c1cc2ncc1o2",
    "O[C@H]1CC[C@@H](C)CC1",
    "[NH4+]",
];

/// Returns the molecules of a grid: with `DRIFT_WHOLE=1` also a helicene, and 200 molecules of the built-in corpus `small`.
fn molecules_of_grid() -> Vec<String> {
    let mut all: Vec<String> = MOLECULES.map(str::to_owned).to_vec();
    if std::env::var_os("DRIFT_WHOLE").is_some() {
        all.push("c1ccc2c(c1)ccc1c2ccc2ccc3ccccc3c21".to_owned());
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../corpora/small.jsonl.gz");
        let lines = BufReader::new(MultiGzDecoder::new(File::open(path).unwrap())).lines();
        let of_line = |line: String| {
            let row: serde_json::Value = serde_json::from_str(&line).unwrap();
            row["canonical_smiles"].as_str().unwrap().to_owned()
        };
        let distinct: BTreeSet<String> = lines.map(|line| of_line(line.unwrap())).collect();
        all.extend(distinct.into_iter().take(200));
    }
    all
}

/// Every point of a grid that satisfies the rules one by one has an x, a y and a z that are allowed.
#[test]
fn no_position_is_left_out() {
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let mut inside = 0;
    for smiles in molecules_of_grid() {
        let rules = rules(&smiles);
        let points = grown(&rules, &mut random);
        for atom in 1..points.len() {
            inside += inside_of_grid(&rules, &points[..atom], &mut random);
        }
    }
    assert!(inside > 5_000, "{inside}");
}

/// Compares the region of the next atom with the rules at each point of a grid. Returns the number of points inside.
fn inside_of_grid(rules: &GeometryRules, placed: &[[f64; 3]], random: &mut ChaCha8Rng) -> usize {
    let (atom, region) = (placed.len(), rules.region(placed));
    let (xs, middle) = (region.x(), placed[placed.len() - 1]);
    let shift: [f64; 3] = std::array::from_fn(|_| random.random::<f64>() * 0.2);
    let at = |axis: usize, step: i32| middle[axis] + shift[axis] + 0.21 * f64::from(step);
    let mut inside = 0;
    for x in (-15..=15).map(|step| at(0, step)) {
        let ys = region.y(x);
        for y in (-15..=15).map(|step| at(1, step)) {
            let zs = region.z(x, y);
            for z in (-15..=15).map(|step| at(2, step)) {
                let found = rules.conflicts(&[placed, &[[x, y, z]]].concat());
                let is_feasible = !found.iter().any(|conflict| conflict.atoms[0] == atom);
                assert_eq!(zs.contains(z), is_feasible, "{atom} {x} {y} {z} {found:?}");
                assert!(!is_feasible || (xs.contains(x) && ys.contains(y)), "{atom} {x} {y} {z}");
                inside += usize::from(is_feasible);
            }
        }
    }
    inside
}

/// x and y are hardly more than what z can complete: the ends of an interval are up to 0.004 Å too wide.
#[test]
fn most_allowed_x_and_y_can_be_completed() {
    let mut random = ChaCha8Rng::seed_from_u64(2);
    let (mut tried, mut completed, mut columns) = (0, 0, 0);
    for smiles in MOLECULES {
        let rules = rules(smiles);
        for _ in 0..60 {
            let points = grown(&rules, &mut random);
            for atom in 1..points.len() {
                let region = rules.region(&points[..atom]);
                let Some(x) = drawn(&region.x(), &mut random) else { continue };
                tried += 1;
                let Some(y) = drawn(&region.y(x), &mut random) else { continue };
                columns += 1;
                completed += usize::from(!region.z(x, y).is_empty());
            }
        }
    }
    assert!(columns * 100 >= tried * 99 && completed * 100 >= columns * 98, "{tried} {columns} {completed}");
}

/// The region of an atom that comes later holds every position that the atom can get, and so it is not empty.
#[test]
fn positions_that_leave_a_place_are_known_to_do_so() {
    let mut random = ChaCha8Rng::seed_from_u64(3);
    let mut whole = 0;
    for smiles in MOLECULES {
        let rules = rules(smiles);
        for _ in 0..20 {
            let points = grown(&rules, &mut random);
            whole += usize::from(points.len() == rules.atoms());
            for known in 1..points.len() {
                for (atom, point) in points.iter().enumerate().skip(known) {
                    let region = rules.region_of(atom, &points[..known]);
                    assert!(region.contains(*point) && !region.is_empty(), "{smiles} {known} {atom}");
                }
            }
        }
    }
    assert!(whole > 100, "{whole}");
}

/// A box that holds a position which leaves a place for all later atoms is never refused, and no position of a refused box leaves one.
#[test]
fn boxes_are_refused_only_if_they_leave_no_places() {
    let mut random = ChaCha8Rng::seed_from_u64(7);
    let (mut kept, mut refused, mut tried) = (0, 0, 0);
    for smiles in MOLECULES {
        let rules = rules(smiles);
        for _ in 0..12 {
            let points = grown(&rules, &mut random);
            for known in 1..points.len() {
                let placed = &points[..known];
                // Like the beginnings of x, y and z: values before are known, those behind are free.
                let axis = random.random_range(0..3);
                let width = 10.0_f64.powi(-random.random_range(0..4));
                let start = points[known][axis] - width * random.random::<f64>();
                let mut bounds = [[f64::NEG_INFINITY, f64::INFINITY]; 3];
                (0..axis).for_each(|at| bounds[at] = [points[known][at]; 2]);
                bounds[axis] = [start, start + width];
                let mut outlook = Outlook::new(&rules, placed);
                let leaves = outlook.leaves_places(&rules, bounds);
                if points.len() == rules.atoms() {
                    assert!(leaves, "{smiles} {known} {bounds:?}");
                    kept += 1;
                }
                let region = rules.region(placed);
                refused += usize::from(!leaves);
                for _ in 0..if leaves { 0 } else { 400 } {
                    let point: [f64; 3] = std::array::from_fn(|at| {
                        let [low, high] =
                            bounds[at].map(|x| x.clamp(points[0][at] - 9.0, points[0][at] + 9.0));
                        low + (high - low) * random.random::<f64>()
                    });
                    if region.contains(point) {
                        tried += 1;
                        let mut fresh = Outlook::new(&rules, placed);
                        assert!(!fresh.leaves_places_beside(&rules, point), "{smiles} {known} {point:?}");
                    }
                }
            }
        }
    }
    assert!(kept > 300 && refused > 10 && tried > 100, "{kept} {refused} {tried}");
}

/// The atom of a ring of three has no place beside two atoms that are far apart, along any axis.
#[test]
fn shells_that_do_not_overlap_leave_nothing() {
    let rules = rules("C1CC1");
    for axis in 0..3 {
        let far: [f64; 3] = std::array::from_fn(|at| if at == axis { 9.0 } else { 0.0 });
        let region = rules.region(&[[0.0; 3], far]);
        assert!(region.is_empty() && region.x().is_empty() && region.y(0.5).is_empty(), "{axis}");
        assert!(region.z(0.5, 0.5).is_empty() && !region.contains(far));
    }
}

/// Atoms in a row that are too far apart leave no place for the one that closes their ring.
#[test]
fn a_ring_that_cannot_close_is_seen_early() {
    let rules = rules("C1CCC2CCCC12");
    let straight: Points = (0..6).map(|at| [1.5 * f64::from(at), 0.0, 0.0]).collect();
    assert!(rules.region_of(7, &straight).is_empty());
    assert!(!rules.region_of(7, &straight[..1]).is_empty());
}

/// Fluoro, chloro, bromo and methyl around a carbon, `C[C](F)(Cl)Br`.
fn tetrahedron() -> Points {
    let corner = |[x, y, z]: [f64; 3], length: f64| [x, y, z].map(|x: f64| x * length / 3.0_f64.sqrt());
    vec![
        corner([1.0, 1.0, 1.0], 1.5),
        [0.0; 3],
        corner([1.0, -1.0, -1.0], 1.37),
        corner([-1.0, 1.0, -1.0], 1.77),
        corner([-1.0, -1.0, 1.0], 1.94),
    ]
}

#[test]
fn a_stereocentre_has_one_side() {
    let points = tetrahedron();
    let mirrored: Points = points.iter().map(|[x, y, z]| [*x, *y, -z]).collect();
    let senses = |smiles: &str, points: &[[f64; 3]]| {
        let found = rules(smiles).conflicts(points);
        assert!(found.iter().all(|conflict| conflict.rule == GeometryRule::Centre), "{found:?}");
        found.is_empty()
    };
    for (one, other) in [("C[C@](F)(Cl)Br", "C[C@@](F)(Cl)Br"), ("C[C@H](Cl)Br", "C[C@@H](Cl)Br")] {
        let own = |points: &Points| match one.contains('F') {
            true => points.clone(),
            false => vec![points[0], points[1], points[3], points[4]],
        };
        let (points, mirrored) = (own(&points), own(&mirrored));
        assert_ne!(senses(one, &points), senses(other, &points), "{one}");
        assert_eq!(senses(one, &points), senses(other, &mirrored), "{one}");
        assert_ne!(senses(one, &points), senses(one, &mirrored), "{one}");
    }
    assert!(senses("CC(F)(Cl)Br", &points) && senses("CC(F)(Cl)Br", &mirrored));
    // Without signs both are allowed.
    let free = GeometryStrength { signs: false, ..GeometryStrength::default() };
    let free = GeometryRules::from_smiles("C[C@](F)(Cl)Br", free).unwrap();
    assert!(free.conflicts(&points).is_empty() && free.conflicts(&mirrored).is_empty());
}

/// The halves of a ring may be exchanged, so that only the relation of its centres has a meaning. A conformer of RDKit.
#[test]
fn centres_that_only_relate_to_each_other_may_be_inverted_together() {
    let trans: Points = vec![
        [-2.72, 0.53, 0.62],
        [-1.81, -0.05, -0.31],
        [-0.84, 1.03, -0.78],
        [0.48, 0.43, -1.26],
        [1.2, -0.35, -0.15],
        [2.29, 0.51, 0.51],
        [0.24, -0.88, 0.93],
        [-1.12, -1.26, 0.33],
    ];
    let mirrored: Points = trans.iter().map(|[x, y, z]| [*x, *y, -z]).collect();
    let wrong = |smiles: &str, points: &[[f64; 3]]| {
        let rules = rules(smiles).conflicts(points).into_iter().map(|conflict| conflict.rule);
        rules.filter(|rule| *rule == GeometryRule::Centre).count()
    };
    for points in [&trans, &mirrored] {
        assert_eq!(wrong("O[C@H]1CC[C@@H](C)CC1", points), 0);
        assert_eq!(wrong("O[C@@H]1CC[C@H](C)CC1", points), 0);
        // The first centre is free, the second is not.
        assert_eq!(wrong("O[C@H]1CC[C@H](C)CC1", points), 1);
    }
    // A third centre tells the halves apart.
    let other = ["O[C@H]1CC[C@@H](C)[C@@H](F)C1", "O[C@H]1CC[C@@H](C)[C@H](F)C1"];
    let senses = other.map(|smiles| [wrong(smiles, &trans), wrong(smiles, &mirrored)]);
    assert!(senses.iter().all(|[one, other]| one != other), "{senses:?}");
}

/// Conformers of RDKit (ETKDG, MMFF94).
#[test]
fn small_rings_strain_their_shared_atoms() {
    let broken = |smiles: &str, points: &[[f64; 3]]| rules(smiles).conflicts(points);
    // The bonds of the quaternary centre of a bicyclo[2.1.0]pentane all point to one side.
    let housane: Points = vec![
        [1.75, -0.25, -0.13],
        [0.38, 0.22, 0.23],
        [-0.1, 1.58, -0.22],
        [-0.69, 0.33, -0.81],
        [-1.53, -0.65, -0.09],
        [-0.48, -0.69, 1.05],
    ];
    assert_eq!(broken("C[C@@]12C[C@@H]1CC2", &housane), []);
    assert!(
        broken("C[C@]12C[C@H]1CC2", &housane).iter().all(|conflict| conflict.rule == GeometryRule::Centre)
    );
    assert!(!broken("C[C@]12C[C@H]1CC2", &housane).is_empty());
    // The double bond at the bridgehead of a bicyclo[3.2.0]heptene is not flat.
    let bridgehead: Points = vec![
        [1.73, -0.38, -0.14],
        [1.57, 0.78, 0.92],
        [0.14, 0.6, 0.57],
        [-1.04, 1.17, 0.35],
        [-1.92, 0.17, -0.37],
        [-0.91, -0.94, -0.84],
        [0.27, -0.85, 0.14],
    ];
    assert_eq!(broken("C1CC2=CCCC21", &bridgehead), []);
}

#[test]
fn neighbours_of_a_double_bond_have_their_sides_and_planes() {
    let trans: Points = vec![[-1.8, 0.4, 0.0], [-0.6, -0.3, 0.0], [0.6, 0.3, 0.0], [1.8, -0.4, 0.0]];
    let mut cis = trans.clone();
    cis[3] = [1.35, 1.45, 0.0];
    let broken = |smiles: &str, points: &[[f64; 3]]| {
        rules(smiles).conflicts(points).into_iter().map(|conflict| conflict.rule).collect::<Vec<_>>()
    };
    assert_eq!(broken("C/C=C/C", &trans), []);
    assert_eq!(broken("C/C=C\\C", &trans), [GeometryRule::DoubleBond]);
    assert_eq!(broken("C/C=C\\C", &cis), []);
    assert_eq!(broken("C/C=C/C", &cis), [GeometryRule::DoubleBond]);
    assert_eq!((broken("CC=CC", &trans), broken("CC=CC", &cis)), (vec![], vec![]));
    // Turned out of the plane by 60°.
    let mut twisted = trans.clone();
    twisted[3] = [1.6, -0.05, 0.8];
    assert_eq!(broken("CC=CC", &twisted), [GeometryRule::Plane, GeometryRule::Plane][..1]);
}

#[test]
fn a_ring_pulls_its_atoms_together_before_it_closes() {
    let (ring, chain) = (rules("C1CCCC1"), rules("CCCCC"));
    let [_, far] = ring.distance(0, 2);
    assert!(ring.distance(0, 4)[1] < 2.0 && chain.distance(0, 4)[1] > 5.0);
    assert!(ring.distance(0, 3)[1] <= far + 0.01 && chain.distance(0, 3)[1] > 4.0);
    assert!(ring.distance(0, 3)[0] > 1.5);
}

#[test]
fn parts_and_single_atoms_are_free() {
    let alone = rules("[NH4+]");
    assert_eq!((alone.atoms(), alone.region(&[]).x()), (1, Intervals::all()));
    let salt = rules("[Na+].[Cl-]");
    let region = salt.region(&[[0.0; 3]]);
    assert_eq!(region.x(), Intervals::all());
    assert_eq!(region.z(0.0, 0.0).parts().len(), 2);
    assert!(region.contains([2.4, 0.0, 0.0]) && !region.contains([1.0, 0.0, 0.0]));
    assert!(GeometryRules::from_smiles("C(C)(C)(C)(C)C", GeometryStrength::default()).is_err());
    assert!(GeometryRules::from_smiles("*C", GeometryStrength::default()).is_err());
}

/// No geometry closes this bridge with marks of these senses. It has rules, but some of its regions are empty.
#[test]
fn contradictory_marks_leave_empty_regions() {
    let rules = rules("C1C[C@H]2C[C@H]1C2");
    let other = GeometryRules::from_smiles("C1C[C@@H]2C[C@H]1C2", GeometryStrength::default()).unwrap();
    let mut random = ChaCha8Rng::seed_from_u64(3);
    let whole = |rules: &GeometryRules, random: &mut ChaCha8Rng| {
        (0..20).filter(|_| grown(rules, random).len() == rules.atoms()).count()
    };
    let counts = [whole(&rules, &mut random), whole(&other, &mut random)];
    assert!(counts[0] == 0 && counts[1] > 0, "{counts:?}");
}

#[test]
fn large_molecules_have_regions_too() {
    let mut random = ChaCha8Rng::seed_from_u64(4);
    let rules = rules(&"C".repeat(200));
    let points = grown(&rules, &mut random);
    assert!(points.len() > 20, "{}", points.len());
    for pair in points.windows(2) {
        assert!((1.2..=1.85).contains(&distance(pair[0], pair[1])));
    }
}
