//! The least deviation of two conformers over all orders of atoms that are the same molecule.
//!
//! With both centred, the deviation follows from the overlap, the largest `Σ Raᵢ · b_g(i)` over rotations R and orders g. Factors of
//! the group ([`Factor`]) move different atoms, so that `Σ aᵢ b_g(i)ᵀ` is a sum with one term a factor, and the overlap of a sum is
//! at most the sum of the overlaps. Branch and bound over the factors is therefore exact; RDKit lists all combinations.

use super::align::overlap;
use super::symmetry::{Factor, Symmetries};

/// Orders of one factor that are listed; beyond them they are searched downhill.
const MAX_LISTED: u64 = 20_000;

/// Numbers that the listed orders of one factor take together.
const MAX_LISTED_PLACES: u64 = 1 << 20;

/// Combinations that are looked at for a pair of conformers.
const MAX_COMBINATIONS: usize = 200_000;

/// Rounds of the downhill search.
const MAX_ROUNDS: usize = 100;

type Matrix = [[f64; 3]; 3];

/// The orders of atoms of a molecule, ready to compare conformers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Superposition {
    /// Factors whose orders are all listed.
    listed: Vec<Listed>,
    /// Factors with too many.
    vast: Vec<Factor>,
    /// Whether the group has all orders.
    complete: bool,
}

/// A factor, all of its orders one after the other.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Listed {
    atoms: Vec<usize>,
    orders: Vec<u16>,
}

impl Superposition {
    pub(super) fn new(symmetries: Symmetries) -> Self {
        let Symmetries { factors, complete } = symmetries;
        let (mut listed, mut vast) = (Vec::new(), Vec::new());
        for factor in factors {
            let orders = factor.orders();
            if orders <= MAX_LISTED && orders * factor.atoms.len() as u64 <= MAX_LISTED_PLACES {
                let orders = all_orders(&factor).concat();
                listed.push(Listed { atoms: factor.atoms, orders });
            } else {
                vast.push(factor);
            }
        }
        Superposition { listed, vast, complete }
    }

    /// How many orders there are; the most that fits if there are more.
    pub(super) fn orders(&self) -> u64 {
        let listed = self.listed.iter().map(|factor| (factor.orders.len() / factor.atoms.len()) as u64);
        listed.chain(self.vast.iter().map(Factor::orders)).fold(1, u64::saturating_mul)
    }

    /// Whether all orders are known and listed; else a deviation may be an upper bound.
    pub(super) fn is_exhaustive(&self) -> bool {
        self.complete && self.vast.is_empty()
    }

    /// The least root mean square deviation of `a` and `b`, in their unit; both must have as many points as the molecule.
    pub(super) fn rmsd(&self, a: &[[f64; 3]], b: &[[f64; 3]]) -> f64 {
        let n = a.len();
        let (a, b) = (centred(a), centred(b));
        let sum: f64 = a.iter().chain(&b).flatten().map(|x| x * x).sum();
        let mut is_moved = vec![false; n];
        self.listed.iter().flat_map(|factor| &factor.atoms).for_each(|atom| is_moved[*atom] = true);
        let mut fixed = Matrix::default();
        (0..n).filter(|at| !is_moved[*at]).for_each(|at| add_product(&mut fixed, a[at], b[at]));
        let mut best = f64::NEG_INFINITY;
        // Where factors are vast, their best places depend on the others' and the other way round.
        let mut terms: Vec<Terms> =
            self.listed.iter().map(|factor| Terms::of(factor, &a, &b, &mut fixed)).collect();
        terms.sort_by(|x, y| y.most.total_cmp(&x.most));
        if self.vast.is_empty() {
            best = best.max(search(fixed, &terms));
        } else {
            for start in self.starts() {
                best = best.max(self.downhill(start, &a, &b, fixed, &terms));
            }
        }
        ((sum - 2.0 * best).max(0.0) / n.max(1) as f64).sqrt()
    }

    /// Orders of the vast factors to begin with: their own, and each choice of their first levels.
    fn starts(&self) -> Vec<Vec<Vec<u16>>> {
        let own: Vec<Vec<u16>> = self.vast.iter().map(|factor| identity(factor.atoms.len())).collect();
        let mut starts = vec![own.clone()];
        for (at, factor) in self.vast.iter().enumerate() {
            for choice in factor.levels.first().into_iter().flatten().skip(1) {
                let mut start = own.clone();
                start[at].clone_from(choice);
                starts.push(start);
            }
        }
        starts
    }

    /// The overlap that is reached from `orders` by changing places as long as that gains something.
    fn downhill(
        &self,
        mut orders: Vec<Vec<u16>>,
        a: &[[f64; 3]],
        b: &[[f64; 3]],
        fixed: Matrix,
        terms: &[Terms],
    ) -> f64 {
        // `fixed` holds the vast factors in their own places.
        let term = |factor: &Factor, order: &[u16]| {
            let mut sum = Matrix::default();
            for (at, to) in factor.atoms.iter().zip(order) {
                add_product(&mut sum, a[*at], b[factor.atoms[*to as usize]]);
            }
            sum
        };
        let own: Vec<Matrix> = self.vast.iter().map(|f| term(f, &identity(f.atoms.len()))).collect();
        let total = |orders: &[Vec<u16>]| {
            let changes = self.vast.iter().zip(orders).zip(&own);
            changes.fold(fixed, |sum, ((factor, order), own)| add(sum, subtract(term(factor, order), *own)))
        };
        let mut best = climb(total(&orders), terms).1;
        for _ in 0..MAX_ROUNDS {
            let before = best;
            for (at, factor) in self.vast.iter().enumerate() {
                for choice in factor.levels.iter().flat_map(|level| &level[1..]) {
                    let known = orders[at].clone();
                    orders[at] = choice.iter().map(|to| known[*to as usize]).collect();
                    let found = climb(total(&orders), terms).1;
                    if found > best {
                        best = found;
                    } else {
                        orders[at] = known;
                    }
                }
            }
            if best <= before * (1.0 + 1e-12) {
                break;
            }
        }
        search(total(&orders), terms).max(best)
    }
}

fn identity(n: usize) -> Vec<u16> {
    (0..n as u16).collect()
}

/// All orders of a factor, the identity first.
fn all_orders(factor: &Factor) -> Vec<Vec<u16>> {
    let mut all = vec![identity(factor.atoms.len())];
    for level in factor.levels.iter().rev() {
        // An order of the atoms behind this level, then a choice of this level.
        let moved = level.iter().flat_map(|choice| {
            all.iter().map(move |order| order.iter().map(|to| choice[*to as usize]).collect())
        });
        all = moved.collect();
    }
    all
}

/// What the orders of a factor add.
struct Terms {
    /// By order, without what is the same in all of them.
    sums: Vec<Matrix>,
    /// At least the largest overlap of one of them.
    most: f64,
}

impl Terms {
    /// What is the same in all orders, the product of the centres, goes to `fixed`.
    fn of(factor: &Listed, a: &[[f64; 3]], b: &[[f64; 3]], fixed: &mut Matrix) -> Self {
        let take = |points: &[[f64; 3]]| factor.atoms.iter().map(|at| points[*at]).collect::<Vec<_>>();
        let (a, b) = (take(a), take(b));
        let (centre_a, centre_b) = (centre(&a), centre(&b));
        add_product(fixed, centre_a.map(|x| x * a.len() as f64), centre_b);
        let (a, b) = (centred(&a), centred(&b));
        let sum = |order: &[u16]| {
            let mut sum = Matrix::default();
            a.iter().zip(order).for_each(|(a, to)| add_product(&mut sum, *a, b[*to as usize]));
            sum
        };
        let sums: Vec<Matrix> = factor.orders.chunks_exact(a.len()).map(sum).collect();
        let most = sums.iter().map(|sum| overlap(*sum)).fold(0.0, f64::max);
        Terms { sums, most }
    }
}

/// The orders that are reached from the identity by changing one factor at a time, and their overlap.
fn climb(fixed: Matrix, terms: &[Terms]) -> (Vec<usize>, f64) {
    let mut chosen = vec![0; terms.len()];
    let mut sum = terms.iter().fold(fixed, |sum, term| add(sum, term.sums[0]));
    let mut best = overlap(sum);
    loop {
        let before = best;
        for (term, chosen) in terms.iter().zip(&mut chosen) {
            let others = subtract(sum, term.sums[*chosen]);
            for (order, own) in term.sums.iter().enumerate() {
                let found = overlap(add(others, *own));
                if found > best {
                    (best, *chosen) = (found, order);
                }
            }
            sum = add(others, term.sums[*chosen]);
        }
        if best <= before * (1.0 + 1e-12) {
            return (chosen, best);
        }
    }
}

/// The largest overlap over all combinations.
fn search(fixed: Matrix, terms: &[Terms]) -> f64 {
    let best = climb(fixed, terms).1;
    // What the factors behind each one can add at most.
    let mut rest = vec![0.0; terms.len() + 1];
    (0..terms.len()).rev().for_each(|at| rest[at] = rest[at + 1] + terms[at].most);
    let mut branches = Branches { terms, rest, best, left: MAX_COMBINATIONS };
    branches.descend(0, fixed);
    branches.best
}

struct Branches<'t> {
    terms: &'t [Terms],
    rest: Vec<f64>,
    best: f64,
    left: usize,
}

impl Branches<'_> {
    /// Goes through the orders of factor `at` and those behind it, most overlap first. Factors are few: there are atoms in each.
    fn descend(&mut self, at: usize, sum: Matrix) {
        let Some(term) = self.terms.get(at) else { return };
        let terms: &[Terms] = self.terms;
        let is_last = at + 1 == terms.len();
        let mut found: Vec<(f64, usize)> = Vec::with_capacity(if is_last { 0 } else { term.sums.len() });
        for (order, own) in term.sums.iter().enumerate() {
            if self.left == 0 {
                return;
            }
            self.left -= 1;
            let overlap = overlap(add(sum, *own));
            if is_last {
                self.best = self.best.max(overlap);
            } else {
                found.push((overlap, order));
            }
        }
        found.sort_by(|a, b| b.0.total_cmp(&a.0));
        for (overlap, order) in found {
            // Sums that are the same but for rounding are not looked at twice.
            if overlap + self.rest[at + 1] <= self.best * (1.0 + 1e-12) {
                return;
            }
            self.descend(at + 1, add(sum, term.sums[order]));
        }
    }
}

fn centre(points: &[[f64; 3]]) -> [f64; 3] {
    let n = points.len().max(1) as f64;
    std::array::from_fn(|axis| points.iter().map(|point| point[axis]).sum::<f64>() / n)
}

fn centred(points: &[[f64; 3]]) -> Vec<[f64; 3]> {
    let centre = centre(points);
    points.iter().map(|point| std::array::from_fn(|axis| point[axis] - centre[axis])).collect()
}

fn add_product(sum: &mut Matrix, a: [f64; 3], b: [f64; 3]) {
    for (row, a) in sum.iter_mut().zip(a) {
        row.iter_mut().zip(b).for_each(|(entry, b)| *entry += a * b);
    }
}

fn add(a: Matrix, b: Matrix) -> Matrix {
    std::array::from_fn(|i| std::array::from_fn(|j| a[i][j] + b[i][j]))
}

fn subtract(a: Matrix, b: Matrix) -> Matrix {
    std::array::from_fn(|i| std::array::from_fn(|j| a[i][j] - b[i][j]))
}

#[cfg(test)]
mod tests {
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::super::align::aligned_rmsd;
    use super::super::symmetry::{Labelled, symmetries};
    use super::*;
    use crate::text::perceived::Perceived;

    fn symmetric(smiles: &str) -> Symmetries {
        symmetries(&Labelled::new(&Perceived::of(smiles).unwrap()))
    }

    fn random(n: usize, seed: u64) -> Vec<[f64; 3]> {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        (0..n).map(|_| std::array::from_fn(|_| random.random::<f64>() * 6.0)).collect()
    }

    /// Every order of the whole molecule, one after the other.
    fn listed(n: usize, symmetries: &Symmetries) -> Vec<Vec<usize>> {
        let mut all: Vec<Vec<usize>> = vec![(0..n).collect()];
        for factor in &symmetries.factors {
            let orders = all_orders(factor);
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
    fn the_least_of_all_orders_is_found() {
        for (smiles, n) in [
            ("CC(C)(C)c1ccc(C(F)(F)F)cc1", 14),
            ("FC(F)(F)c1cc(C(F)(F)F)cc(C(F)(F)F)c1", 18),
            ("CC(=O)[O-]", 4),
            ("CCO", 3),
            ("OC(=O)c1ccc(-c2ccc(C(=O)O)cc2)cc1", 18),
        ] {
            let symmetries = symmetric(smiles);
            let all = listed(n, &symmetries);
            let distinct: std::collections::BTreeSet<_> = all.iter().collect();
            assert_eq!(distinct.len(), all.len());
            let superposition = Superposition::new(symmetries);
            assert!(superposition.is_exhaustive() && superposition.orders() == all.len() as u64);
            for seed in 0..4 {
                let (a, b) = (random(n, seed), random(n, 100 + seed));
                let least = all.iter().map(|order| aligned_rmsd(&a, &b, |i| order[i])).min_by(f64::total_cmp);
                let found = superposition.rmsd(&a, &b);
                assert!((found - least.unwrap()).abs() < 1e-9, "{smiles}: {found} {least:?}");
                let order = &all[all.len() * 2 / 3];
                let same: Vec<[f64; 3]> = order.iter().map(|to| a[*to]).collect();
                assert!(superposition.rmsd(&a, &same) < 1e-6, "{smiles}");
            }
        }
    }

    #[test]
    fn vast_groups_are_searched_downhill() {
        let mut tree = "C".to_owned();
        (0..5).for_each(|_| tree = format!("C({tree}){tree}"));
        let symmetries = symmetric(&tree);
        let superposition = Superposition::new(symmetries.clone());
        assert!(!superposition.is_exhaustive() && superposition.orders() == 1 << 31);
        let a = random(63, 1);
        // A few places are changed, as by one choice of each of two levels.
        let factor = &symmetries.factors[0];
        let mut order = identity(factor.atoms.len());
        for level in [&factor.levels[3], &factor.levels[20]] {
            order = order.iter().map(|to| level[1][*to as usize]).collect();
        }
        let mut same = a.clone();
        factor.atoms.iter().zip(&order).for_each(|(at, to)| same[*at] = a[factor.atoms[*to as usize]]);
        assert!(superposition.rmsd(&a, &a) < 1e-6 && superposition.rmsd(&a, &same) < 1e-6);
        let b = random(63, 2);
        assert!(superposition.rmsd(&a, &b) <= aligned_rmsd(&a, &b, |i| i));
        // Two hundred heavy atoms, 6⁴⁰ orders.
        let fluorinated = Superposition::new(symmetric(&format!("C{}", "(C(F)(F)F)C".repeat(40))));
        let (a, b) = (random(201, 3), random(201, 4));
        assert!(fluorinated.rmsd(&a, &b) <= aligned_rmsd(&a, &b, |i| i));
    }
}
