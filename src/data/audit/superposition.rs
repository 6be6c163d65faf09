//! The least RMSD of two conformers over all symmetric atom orders, computed exactly.
//!
//! For centred conformers, the RMSD follows from the overlap: the largest `Σ Raᵢ · b_g(i)` over rotations R and orders g. RDKit's
//! `GetBestRMS` superposes every order. Here orders are searched by branch and bound over the factors of the group ([`Factor`]).
//! The settled atoms, together with the means of the others, give a matrix M with the best rotation R_M. For a rotation R that
//! differs from R_M by the angle θ,
//!
//! - M contributes at most `overlap(M) - 2 κ sin²(θ/2)` ([`Turn::sharpness`]), and
//! - a factor contributes at most the value of its best order at R_M, plus `2 sin(θ/2) L`. Here L is the product of the spreads of
//!   its atoms around their means, which is at least the sum of singular values of its contribution.
//!
//! So no order of the open factors exceeds `overlap(M) + Σ best at R_M + max over s in [0, 1] of (2 L s - 2 κ s²)`. The best order
//! at a fixed rotation is found factor by factor, each choice separately. For most pairs, the first bound leaves one choice for
//! each factor, so two superpositions are enough.

mod partners;

use self::partners::{NoNotes, Order, Partners, PlacedAtoms};
use super::quaternion::{Matrix, Turn, largest_overlap, turn};
use drift_core::chem::symmetry::{Factor, Symmetries};
use drift_core::vector::{add_product, centred, dot};

/// The number of placements that are tried for a pair of conformers, atom by atom. Beyond it, the best result so far is an upper
/// bound on the RMSD.
const MAX_TRIED: u64 = 4_000_000;

/// The largest number of choices that are examined for the best order of a factor. For a factor with more, a bound from each atom
/// separately is used.
const MAX_WORK: u64 = 20_000;

/// The relative tolerance for sums that differ only by rounding, which need not be examined twice.
const SAME: f64 = 1e-12;

/// The symmetric atom orders of a molecule, prepared for comparing conformers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Superposition {
    symmetries: Symmetries,
    /// The atoms that no order moves.
    fixed: Vec<usize>,
}

/// A conformer centred at the origin.
#[derive(Debug, Clone)]
pub(super) struct CentredConformer {
    points: Vec<[f64; 3]>,
    /// The sum of squares of its coordinates.
    squares: f64,
}

/// The least RMSD of two conformers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LeastRmsd {
    /// The RMSD, in the unit of the coordinates.
    pub rmsd: f64,
    /// Whether it is proved to be the least; otherwise it is an upper bound.
    pub is_exact: bool,
}

impl CentredConformer {
    pub(super) fn new(points: &[[f64; 3]]) -> Self {
        let points = centred(points);
        let squares = points.iter().flatten().map(|x| x * x).sum();
        CentredConformer { points, squares }
    }

    pub(super) fn points(&self) -> &[[f64; 3]] {
        &self.points
    }
}

/// Returns the orbits of a factor, as atoms of the molecule.
fn orbits_of(factor: &Factor) -> Vec<Vec<usize>> {
    let atoms = |orbit: &Vec<u16>| orbit.iter().map(|at| factor.atoms[usize::from(*at)]).collect();
    factor.orbits.iter().map(atoms).collect()
}

impl Superposition {
    /// Returns the orbits of atoms that symmetric orders exchange.
    pub(super) fn orbits(&self) -> Vec<Vec<usize>> {
        self.symmetries.factors.iter().flat_map(orbits_of).collect()
    }

    pub(super) fn new(symmetries: Symmetries, atoms: usize) -> Self {
        let mut is_moved = vec![false; atoms];
        symmetries.factors.iter().flat_map(|factor| &factor.atoms).for_each(|atom| is_moved[*atom] = true);
        Superposition { symmetries, fixed: (0..atoms).filter(|atom| !is_moved[*atom]).collect() }
    }

    /// Returns the least RMSD. Both conformers must have as many points as the molecule.
    pub(super) fn rmsd(&self, a: &CentredConformer, b: &CentredConformer) -> LeastRmsd {
        let search = self.search(a, b, NoNotes);
        let squares = a.squares + b.squares - 2.0 * search.best;
        let rmsd = (squares.max(0.0) / a.points.len().max(1) as f64).sqrt();
        LeastRmsd { rmsd, is_exact: search.whole && self.symmetries.complete }
    }

    /// Returns the order of least RMSD: by atom of `a`, its partner in `b`. Both must have as many points as the molecule.
    pub(super) fn order(&self, a: &CentredConformer, b: &CentredConformer) -> Vec<usize> {
        let same = Order((0..a.points.len() as u16).collect());
        self.search(a, b, same).order.0.into_iter().map(usize::from).collect()
    }

    fn search<'p, P: Partners>(
        &self,
        a: &'p CentredConformer,
        b: &'p CentredConformer,
        partners: P,
    ) -> Branches<'p, P> {
        let mut settled = PlacedAtoms { matrix: Matrix::default(), partners: partners.clone() };
        self.fixed.iter().for_each(|atom| add_product(&mut settled.matrix, a.points[*atom], b.points[*atom]));
        let (a, b) = (&*a.points, &*b.points);
        let mut search =
            Branches { a, b, best: f64::NEG_INFINITY, order: partners, left: MAX_TRIED, whole: true };
        if self.symmetries.factors.is_empty() {
            search.best = largest_overlap(&settled.matrix);
        } else {
            let open = self.symmetries.factors.iter().map(|factor| {
                let images = factor.atoms.iter().map(|atom| *atom as u16).collect();
                OpenFactor::new(factor, images, a, b)
            });
            search.descend(&settled, open.collect());
        }
        search
    }
}

/// A factor that is not settled yet.
struct OpenFactor<'f> {
    factor: &'f Factor,
    /// By atom of the factor, the atom whose place it takes before the factor's own choice.
    images: Vec<u16>,
    /// The common contribution of all its orders: the product of the means of each orbit.
    mean: Matrix,
    /// An upper bound on the sum of singular values of an order's contribution beyond the mean.
    spread: f64,
}

impl<'f> OpenFactor<'f> {
    fn new(factor: &'f Factor, images: Vec<u16>, a: &[[f64; 3]], b: &[[f64; 3]]) -> Self {
        let (mut mean, mut spread) = (Matrix::default(), 0.0);
        for orbit in &factor.orbits {
            let from = |at: &u16| a[factor.atoms[usize::from(*at)]];
            let to = |at: &u16| b[usize::from(images[usize::from(*at)])];
            let n = orbit.len() as f64;
            let (mut sums, mut squares) = ([[0.0; 3]; 2], [0.0; 2]);
            for at in orbit {
                for (side, point) in [from(at), to(at)].into_iter().enumerate() {
                    (0..3).for_each(|axis| sums[side][axis] += point[axis]);
                    squares[side] += dot(point, point);
                }
            }
            add_product(&mut mean, sums[0].map(|x| x / n), sums[1]);
            // The mean is counted separately, which leaves the spread around it. Rounding can make this negative.
            let around = |side: usize| (squares[side] - dot(sums[side], sums[side]) / n).max(0.0);
            spread += (around(0) * around(1)).sqrt();
        }
        OpenFactor { factor, images, mean, spread }
    }
}

/// A search over the orders of all factors.
struct Branches<'p, P> {
    a: &'p [[f64; 3]],
    b: &'p [[f64; 3]],
    /// The largest overlap of a complete order so far.
    best: f64,
    /// The order that has it.
    order: P,
    /// The number of placements that may still be tried.
    left: u64,
    /// Whether no order that could be better was skipped.
    whole: bool,
}

impl<P: Partners> Branches<'_, P> {
    /// Searches the orders of open factors for a larger overlap. `settled` has all other atoms.
    fn descend(&mut self, settled: &PlacedAtoms<P>, open: Vec<OpenFactor<'_>>) {
        let matrix = open.iter().fold(settled.matrix, |sum, open| add(&sum, &open.mean));
        let found = turn(&matrix);
        let spread: f64 = open.iter().map(|open| open.spread).sum();
        // By factor and choice, the gain over the mean at this rotation.
        let gains: Vec<Vec<f64>> = open.iter().map(|open| self.gains(open, &found.rotation)).collect();
        let most = |gains: &Vec<f64>| gains.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        // An upper bound for the orders of the open factors; see the module's documentation.
        let bound = found.overlap + gains.iter().map(most).sum::<f64>() + slack(&found, spread);
        if bound <= self.best * (1.0 + SAME) {
            return;
        }
        // The best order at this rotation is superposed exactly, so that a large overlap is known early.
        let mut whole = settled.clone();
        for (open, gains) in open.iter().zip(&gains) {
            let choice = gains.iter().position(|gain| *gain == most(gains)).unwrap_or(0);
            self.add_best(open.factor, &open.images, choice, &found.rotation, &mut whole);
        }
        let overlap = largest_overlap(&whole.matrix);
        if overlap > self.best {
            self.best = overlap;
            self.order = whole.partners;
        }
        if self.left == 0 {
            self.whole = false;
            return;
        }
        let limit = self.best * (1.0 + SAME);
        let left: Vec<Vec<usize>> = gains
            .iter()
            .map(|gains| {
                let rest = bound - most(gains);
                let mut left: Vec<usize> =
                    (0..gains.len()).filter(|choice| rest + gains[*choice] > limit).collect();
                // The best first: the sooner `best` is large, the more is pruned.
                left.sort_by(|x, y| gains[*y].total_cmp(&gains[*x]));
                left
            })
            .collect();
        // Some factor has no choice left that can beat the best.
        if left.iter().any(Vec::is_empty) {
            return;
        }
        self.branch(settled, open, &left);
    }

    /// Settles the factors with one choice left. Branches over the choices of the factor with the largest spread among the others.
    fn branch(&mut self, settled: &PlacedAtoms<P>, open: Vec<OpenFactor<'_>>, left: &[Vec<usize>]) {
        let widest = (0..open.len())
            .filter(|at| left[*at].len() > 1)
            .max_by(|x, y| open[*x].spread.total_cmp(&open[*y].spread));
        let is_leaf = |open: &OpenFactor<'_>| open.factor.below.is_empty();
        if widest.is_none() && open.iter().all(is_leaf) {
            // The only remaining order has been superposed already.
            return;
        }
        // Without a factor to branch on, every factor has a single choice, which settles it.
        let choices: &[usize] = widest.map_or(&[0], |at| &left[at]);
        for choice in choices {
            let (mut settled, mut next) = (settled.clone(), Vec::with_capacity(open.len()));
            for (at, open) in open.iter().enumerate() {
                match (Some(at) == widest, left[at].len()) {
                    (true, _) => self.settle(open, *choice, &mut settled, &mut next),
                    (_, 1) => self.settle(open, left[at][0], &mut settled, &mut next),
                    _ => next.push(OpenFactor { images: open.images.clone(), ..*open }),
                }
            }
            self.descend(&settled, next);
        }
    }

    /// Settles a factor by a choice: some of its atoms are placed, and the others are in the factors below.
    fn settle<'f>(
        &self,
        open: &OpenFactor<'f>,
        choice: usize,
        settled: &mut PlacedAtoms<P>,
        next: &mut Vec<OpenFactor<'f>>,
    ) {
        let images = chosen(open.factor, &open.images, choice);
        settled.place(open.factor, &images, self.a, self.b);
        for below in &open.factor.below {
            next.push(OpenFactor::new(below, within(below, &images), self.a, self.b));
        }
    }

    /// Upper bounds on the gain of each choice of a factor over its mean, at a rotation; exact if the factor has few orders.
    fn gains(&mut self, open: &OpenFactor<'_>, rotation: &Matrix) -> Vec<f64> {
        let mean = trace(rotation, &open.mean);
        let turned = self.turned(open.factor, rotation);
        let choices = 0..open.factor.choices.len();
        choices.map(|choice| self.of_choice(open.factor, &open.images, choice, &turned) - mean).collect()
    }

    /// Returns the rotated atoms of a factor.
    fn turned(&self, factor: &Factor, rotation: &Matrix) -> Vec<[f64; 3]> {
        factor.atoms.iter().map(|atom| std::array::from_fn(|row| dot(rotation[row], self.a[*atom]))).collect()
    }

    /// Returns an upper bound on `Σ Raᵢ · b` over the atoms of a factor, given this choice.
    fn of_choice(&mut self, factor: &Factor, images: &[u16], choice: usize, turned: &[[f64; 3]]) -> f64 {
        let place = &factor.choices[choice];
        // Work is counted in products of points.
        self.left = self.left.saturating_sub(factor.settled.len() as u64);
        let of_atom = |at: &u16| {
            let at = usize::from(*at);
            dot(turned[at], self.b[usize::from(images[usize::from(place[at])])])
        };
        let settled: f64 = factor.settled.iter().map(of_atom).sum();
        if factor.below.is_empty() {
            return settled;
        }
        let images = chosen(factor, images, choice);
        let below = factor.below.iter().map(|below| {
            let turned: Vec<[f64; 3]> = below.within.iter().map(|at| turned[usize::from(*at)]).collect();
            self.most(below, &within(below, &images), &turned)
        });
        settled + below.sum::<f64>()
    }

    /// Returns an upper bound on the largest `Σ Raᵢ · b` over the atoms of a factor, over its orders.
    fn most(&mut self, factor: &Factor, images: &[u16], turned: &[[f64; 3]]) -> f64 {
        if factor.work > MAX_WORK {
            self.left = self
                .left
                .saturating_sub(factor.orbits.iter().map(|orbit| (orbit.len() * orbit.len()) as u64).sum());
            let of_atom = |at: &u16, orbit: &Vec<u16>| {
                let places = orbit.iter().map(|to| self.b[usize::from(images[usize::from(*to)])]);
                places.map(|place| dot(turned[usize::from(*at)], place)).fold(f64::NEG_INFINITY, f64::max)
            };
            return factor
                .orbits
                .iter()
                .flat_map(|orbit| orbit.iter().map(move |at| of_atom(at, orbit)))
                .sum();
        }
        let choices = 0..factor.choices.len();
        choices.map(|choice| self.of_choice(factor, images, choice, turned)).fold(f64::NEG_INFINITY, f64::max)
    }

    /// Places the atoms of a factor in its best order at a rotation, given this choice.
    fn add_best(
        &mut self,
        factor: &Factor,
        images: &[u16],
        choice: usize,
        rotation: &Matrix,
        sum: &mut PlacedAtoms<P>,
    ) {
        let images = chosen(factor, images, choice);
        sum.place(factor, &images, self.a, self.b);
        for below in &factor.below {
            let images = within(below, &images);
            let turned = self.turned(below, rotation);
            let of_choice = |choice: usize| self.of_choice(below, &images, choice, &turned);
            let gains: Vec<f64> = (0..below.choices.len()).map(of_choice).collect();
            let best = (0..gains.len()).max_by(|x, y| gains[*x].total_cmp(&gains[*y])).unwrap_or(0);
            self.add_best(below, &images, best, rotation, sum);
        }
    }
}

/// Returns the maximum of `2 L s - 2 κ s²` for s from 0 to 1.
fn slack(turn: &Turn, spread: f64) -> f64 {
    if spread >= 2.0 * turn.sharpness {
        2.0 * (spread - turn.sharpness)
    } else {
        spread * spread / (2.0 * turn.sharpness)
    }
}

/// By atom, the atom whose place it takes after a choice.
fn chosen(factor: &Factor, images: &[u16], choice: usize) -> Vec<u16> {
    factor.choices[choice].iter().map(|to| images[usize::from(*to)]).collect()
}

/// Returns the part of `images` that belongs to a factor below.
fn within(below: &Factor, images: &[u16]) -> Vec<u16> {
    below.within.iter().map(|at| images[usize::from(*at)]).collect()
}

/// `tr R S`: the sum `Σ Raᵢ · bᵢ`, given `Σ aᵢ bᵢᵀ`.
fn trace(rotation: &Matrix, s: &Matrix) -> f64 {
    (0..3).map(|i| (0..3).map(|j| rotation[i][j] * s[j][i]).sum::<f64>()).sum()
}

fn add(a: &Matrix, b: &Matrix) -> Matrix {
    std::array::from_fn(|i| std::array::from_fn(|j| a[i][j] + b[i][j]))
}

#[cfg(test)]
mod tests;
