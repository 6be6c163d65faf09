use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::super::align::aligned_rmsd;
use super::*;
use drift_core::chem::Molecule;

fn symmetric(smiles: &str) -> (Symmetries, usize) {
    let molecule = Molecule::of_smiles(smiles).unwrap();
    (Symmetries::of_rmsd(&molecule), molecule.atoms.len())
}

fn random(n: usize, seed: u64) -> Vec<[f64; 3]> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    (0..n).map(|_| std::array::from_fn(|_| random.random::<f64>() * 6.0)).collect()
}

/// Returns every order of the whole molecule, one after the other.
fn listed(n: usize, symmetries: &Symmetries) -> Vec<Vec<usize>> {
    let mut all: Vec<Vec<usize>> = vec![(0..n).collect()];
    for factor in &symmetries.factors {
        let orders = factor.listed(u64::MAX);
        let put = |whole: &Vec<usize>, order: &Vec<u16>| {
            let mut whole = whole.clone();
            factor.atoms.iter().zip(order).for_each(|(at, to)| whole[*at] = factor.atoms[*to as usize]);
            whole
        };
        all = all.iter().flat_map(|whole| orders.iter().map(move |order| put(whole, order))).collect();
    }
    all
}

#[test]
fn the_order_has_the_least_rmsd() {
    for smiles in ["CC(C)(C)c1ccc(C(F)(F)F)cc1", "F[P-](F)(F)(F)(F)F", "CCO", "C1C2CC3CC1CC(C2)C3", "C#CC#C"]
    {
        let (symmetries, n) = symmetric(smiles);
        let superposition = Superposition::new(symmetries, n);
        for seed in 0..4 {
            let (a, b) = (random(n, seed), random(n, 50 + seed));
            let [one, other] = [&a, &b].map(|points| CentredConformer::new(points));
            let order = superposition.order(&one, &other);
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert!(sorted.into_iter().eq(0..n), "{smiles}: each atom has its own partner");
            let least = superposition.rmsd(&one, &other).rmsd;
            assert!((aligned_rmsd(&a, &b, |atom| order[atom]) - least).abs() < 1e-9, "{smiles}, {seed}");
        }
    }
}

#[test]
fn the_least_of_all_orders_is_found() {
    for smiles in [
        "CC(C)(C)c1ccc(C(F)(F)F)cc1",
        "FC(F)(F)c1cc(C(F)(F)F)cc(C(F)(F)F)c1",
        "CC(=O)[O-]",
        "CCO",
        "OC(=O)c1ccc(-c2ccc(C(=O)O)cc2)cc1",
        "F[P-](F)(F)(F)(F)F",
        "C[Si](C)(C)[Si](C)(C)C",
        "C1C2CC3CC1CC(C2)C3",
        "C#CC#C",
    ] {
        let (symmetries, n) = symmetric(smiles);
        let all = listed(n, &symmetries);
        let superposition = Superposition::new(symmetries, n);
        assert!(superposition.symmetries.complete && superposition.symmetries.orders() == all.len() as u64);
        for seed in 0..6 {
            let a = random(n, seed);
            // Some are near one another.
            let b: Vec<[f64; 3]> = match seed % 2 {
                0 => random(n, 100 + seed),
                _ => a
                    .iter()
                    .zip(random(n, 100))
                    .map(|(a, r)| std::array::from_fn(|x| a[x] + 0.2 * r[x]))
                    .collect(),
            };
            let least = all.iter().map(|order| aligned_rmsd(&a, &b, |i| order[i])).min_by(f64::total_cmp);
            let found = superposition.rmsd(&CentredConformer::new(&a), &CentredConformer::new(&b));
            assert!(
                found.is_exact && (found.rmsd - least.unwrap()).abs() < 1e-9,
                "{smiles}: {found:?} {least:?}"
            );
            let order = &all[all.len() * 2 / 3];
            let same: Vec<[f64; 3]> = order.iter().map(|to| a[*to]).collect();
            assert!(
                superposition.rmsd(&CentredConformer::new(&a), &CentredConformer::new(&same)).rmsd < 1e-6,
                "{smiles}"
            );
        }
    }
}

#[test]
fn a_search_that_is_given_up_says_so() {
    let mut tree = "C".to_owned();
    (0..5).for_each(|_| tree = format!("C({tree}){tree}"));
    let (symmetries, n) = symmetric(&tree);
    let superposition = Superposition::new(symmetries, n);
    assert!(superposition.symmetries.complete && superposition.symmetries.orders() == 1 << 31);
    let (a, b) = (random(n, 1), random(n, 2));
    let of = |a: &[[f64; 3]], b: &[[f64; 3]]| {
        superposition.rmsd(&CentredConformer::new(a), &CentredConformer::new(b))
    };
    assert!(of(&a, &a).rmsd < 1e-6 && of(&a, &a).is_exact);
    assert!(of(&a, &b).rmsd <= aligned_rmsd(&a, &b, |i| i));
    // Two hundred heavy atoms, 6⁴⁰ orders, and nothing alike.
    let (symmetries, n) = symmetric(&format!("C{}", "(C(F)(F)F)C".repeat(40)));
    let fluorinated = Superposition::new(symmetries, n);
    let (a, b) = (random(n, 3), random(n, 4));
    let found = fluorinated.rmsd(&CentredConformer::new(&a), &CentredConformer::new(&b));
    assert!(!found.is_exact && found.rmsd <= aligned_rmsd(&a, &b, |i| i));
    assert!(fluorinated.rmsd(&CentredConformer::new(&a), &CentredConformer::new(&a)).rmsd < 1e-6);
}
