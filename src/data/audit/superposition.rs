//! The least deviation of two conformers over all orders of atoms that are the same molecule, exactly.
//!
//! With both centred, the deviation follows from the overlap: the largest `Σ Raᵢ · b_g(i)` over rotations R and orders g. RDKit's
//! `GetBestRMS` superposes every order. Here orders are searched by branch and bound over the factors of the group ([`Factor`]). What is
//! settled, and the mean of what is not, make a matrix M with the best rotation R_M. At any rotation R by the angle θ away from R_M
//!
//! - M has at most `overlap(M) - 2 κ sin²(θ/2)` ([`Turn::sharpness`]), and
//! - a factor has at most what its best order has at R_M, and `2 sin(θ/2) L`: L, the product of the spreads of its atoms around their means,
//!   is at least the sum of singular values of what it adds.
//!
//! So no order of the open factors has more than `overlap(M) + Σ best at R_M + max over s in [0, 1] of (2 L s - 2 κ s²)`. The best order at
//! one rotation is found factor by factor, each choice apart. In most pairs the first bound leaves one choice of each factor, so that two
//! superpositions are enough.

use super::quaternion::{Matrix, Turn, largest_overlap, turn};
use drift_core::chem::symmetry::{Factor, Symmetries};

/// Places that are tried for a pair of conformers, atom by atom; beyond, the best that was found is an upper bound of the deviation.
const MAX_TRIED: u64 = 4_000_000;

/// Choices that are looked at to find the best order of a factor; of one with more, each atom by itself gives a bound.
const MAX_WORK: u64 = 20_000;

/// Sums that are the same but for rounding are not looked at twice.
const SAME: f64 = 1e-12;

/// The orders of atoms of a molecule, ready to compare conformers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Superposition {
    symmetries: Symmetries,
    /// The atoms that no order moves.
    fixed: Vec<usize>,
}

/// A conformer with its centre at the origin.
#[derive(Debug, Clone)]
pub(super) struct Centred {
    points: Vec<[f64; 3]>,
    /// The sum of squares of its coordinates.
    squares: f64,
}

/// The least deviation of two conformers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LeastRmsd {
    /// In the unit of the coordinates.
    pub rmsd: f64,
    /// Whether no order has less; else it is an upper bound.
    pub is_exact: bool,
}

impl Centred {
    pub(super) fn new(points: &[[f64; 3]]) -> Self {
        let n = points.len().max(1) as f64;
        let mut centre = [0.0; 3];
        for point in points {
            (0..3).for_each(|axis| centre[axis] += point[axis]);
        }
        let points: Vec<[f64; 3]> =
            points.iter().map(|point| std::array::from_fn(|axis| point[axis] - centre[axis] / n)).collect();
        let squares = points.iter().flatten().map(|x| x * x).sum();
        Centred { points, squares }
    }

    pub(super) fn points(&self) -> &[[f64; 3]] {
        &self.points
    }
}

impl Superposition {
    /// Atoms that some order puts in one another's places, together.
    pub(super) fn orbits(&self) -> Vec<Vec<usize>> {
        let of = |factor: &Factor| -> Vec<Vec<usize>> {
            let atoms = |orbit: &Vec<u16>| orbit.iter().map(|at| factor.atoms[usize::from(*at)]).collect();
            factor.orbits.iter().map(atoms).collect()
        };
        self.symmetries.factors.iter().flat_map(of).collect()
    }

    pub(super) fn new(symmetries: Symmetries, atoms: usize) -> Self {
        let mut is_moved = vec![false; atoms];
        symmetries.factors.iter().flat_map(|factor| &factor.atoms).for_each(|atom| is_moved[*atom] = true);
        Superposition { symmetries, fixed: (0..atoms).filter(|atom| !is_moved[*atom]).collect() }
    }

    /// How many orders there are; the most that fits if there are more.
    pub(super) fn orders(&self) -> u64 {
        self.symmetries.orders()
    }

    /// Whether all orders are known; else a deviation may be an upper bound.
    pub(super) fn is_exhaustive(&self) -> bool {
        self.symmetries.complete
    }

    /// The least root mean square deviation; both must have as many points as the molecule.
    pub(super) fn rmsd(&self, a: &Centred, b: &Centred) -> LeastRmsd {
        let mut matrix = Matrix::default();
        self.fixed.iter().for_each(|atom| add_product(&mut matrix, &a.points[*atom], &b.points[*atom]));
        let mut search =
            Branches { a: &a.points, b: &b.points, best: f64::NEG_INFINITY, left: MAX_TRIED, whole: true };
        if self.symmetries.factors.is_empty() {
            search.best = largest_overlap(&matrix);
        } else {
            let open = self.symmetries.factors.iter().map(|factor| {
                let images = factor.atoms.iter().map(|atom| *atom as u16).collect();
                Open::new(factor, images, &a.points, &b.points)
            });
            search.descend(matrix, open.collect());
        }
        let squares = a.squares + b.squares - 2.0 * search.best;
        let rmsd = (squares.max(0.0) / a.points.len().max(1) as f64).sqrt();
        LeastRmsd { rmsd, is_exact: search.whole && self.symmetries.complete }
    }
}

/// A factor that is not settled.
struct Open<'f> {
    factor: &'f Factor,
    /// By atom of the factor, in whose place it stands before the factor's own choice.
    images: Vec<u16>,
    /// What all of its orders add alike: the product of the means of each orbit.
    mean: Matrix,
    /// At least the sum of singular values of what one of its orders adds beside the mean.
    spread: f64,
}

impl<'f> Open<'f> {
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
                    squares[side] += dot(&point, &point);
                }
            }
            add_product(&mut mean, &sums[0].map(|x| x / n), &sums[1]);
            // The mean counts apart, so what is left is the spread around it; rounding can make it negative.
            let around = |side: usize| (squares[side] - dot(&sums[side], &sums[side]) / n).max(0.0);
            spread += (around(0) * around(1)).sqrt();
        }
        Open { factor, images, mean, spread }
    }
}

/// A search over the orders of all factors.
struct Branches<'p> {
    a: &'p [[f64; 3]],
    b: &'p [[f64; 3]],
    /// The largest overlap of a whole order.
    best: f64,
    /// Places that may still be tried.
    left: u64,
    /// Whether no order was left out that could have been better.
    whole: bool,
}

impl Branches<'_> {
    /// Looks for a larger overlap among the orders of open factors; `settled` is the matrix of all other atoms.
    fn descend(&mut self, settled: Matrix, open: Vec<Open<'_>>) {
        let matrix = open.iter().fold(settled, |sum, open| add(&sum, &open.mean));
        let found = turn(&matrix);
        let spread: f64 = open.iter().map(|open| open.spread).sum();
        // What each choice of each factor has at this rotation, beside its mean.
        let gains: Vec<Vec<f64>> = open.iter().map(|open| self.gains(open, &found.rotation)).collect();
        let most = |gains: &Vec<f64>| gains.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        // No order of the open factors has more than this; see the top.
        let bound = found.overlap + gains.iter().map(most).sum::<f64>() + slack(&found, spread);
        if bound <= self.best * (1.0 + SAME) {
            return;
        }
        // The best order at this rotation is superposed by itself, so that a large overlap is known early.
        let mut whole = settled;
        for (open, gains) in open.iter().zip(&gains) {
            let choice = gains.iter().position(|gain| *gain == most(gains)).unwrap_or(0);
            self.add_best(open.factor, &open.images, choice, &found.rotation, &mut whole);
        }
        self.best = self.best.max(largest_overlap(&whole));
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
                // The best first: the sooner `best` is large, the more is cut off.
                left.sort_by(|x, y| gains[*y].total_cmp(&gains[*x]));
                left
            })
            .collect();
        // No choice of some factor can beat the best.
        if left.iter().any(Vec::is_empty) {
            return;
        }
        self.branch(settled, open, &left);
    }

    /// Settles the factors of which one choice is left, and of the others the one that spreads most, by each of its choices.
    fn branch(&mut self, settled: Matrix, open: Vec<Open<'_>>, left: &[Vec<usize>]) {
        let widest = (0..open.len())
            .filter(|at| left[*at].len() > 1)
            .max_by(|x, y| open[*x].spread.total_cmp(&open[*y].spread));
        let is_leaf = |open: &Open<'_>| open.factor.below.is_empty();
        if widest.is_none() && open.iter().all(is_leaf) {
            // The only order that is left was superposed.
            return;
        }
        // Without a factor to branch on, all are settled by the one choice that they have.
        let choices: &[usize] = widest.map_or(&[0], |at| &left[at]);
        for choice in choices {
            let (mut settled, mut next) = (settled, Vec::with_capacity(open.len()));
            for (at, open) in open.iter().enumerate() {
                match (Some(at) == widest, left[at].len()) {
                    (true, _) => self.settle(open, *choice, &mut settled, &mut next),
                    (_, 1) => self.settle(open, left[at][0], &mut settled, &mut next),
                    _ => next.push(Open { images: open.images.clone(), ..*open }),
                }
            }
            self.descend(settled, next);
        }
    }

    /// Settles a factor by a choice: some of its atoms have found their places, the others are in the factors below.
    fn settle<'f>(&self, open: &Open<'f>, choice: usize, settled: &mut Matrix, next: &mut Vec<Open<'f>>) {
        let images = chosen(open.factor, &open.images, choice);
        for at in &open.factor.settled {
            let at = usize::from(*at);
            add_product(settled, &self.a[open.factor.atoms[at]], &self.b[usize::from(images[at])]);
        }
        for below in &open.factor.below {
            next.push(Open::new(below, within(below, &images), self.a, self.b));
        }
    }

    /// At least what each choice of a factor has at a rotation, beside its mean; exactly that where it has few orders.
    fn gains(&mut self, open: &Open<'_>, rotation: &Matrix) -> Vec<f64> {
        let mean = trace(rotation, &open.mean);
        let turned = self.turned(open.factor, rotation);
        let choices = 0..open.factor.choices.len();
        choices.map(|choice| self.of_choice(open.factor, &open.images, choice, &turned) - mean).collect()
    }

    /// The atoms of a factor, turned.
    fn turned(&self, factor: &Factor, rotation: &Matrix) -> Vec<[f64; 3]> {
        factor
            .atoms
            .iter()
            .map(|atom| std::array::from_fn(|row| dot(&rotation[row], &self.a[*atom])))
            .collect()
    }

    /// At least `Σ Raᵢ · b` of the atoms of a factor, once this choice is made.
    fn of_choice(&mut self, factor: &Factor, images: &[u16], choice: usize, turned: &[[f64; 3]]) -> f64 {
        let place = &factor.choices[choice];
        // Work is counted in products of points.
        self.left = self.left.saturating_sub(factor.settled.len() as u64);
        let of_atom = |at: &u16| {
            let at = usize::from(*at);
            dot(&turned[at], &self.b[usize::from(images[usize::from(place[at])])])
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

    /// At least the largest `Σ Raᵢ · b` of the atoms of a factor over its orders.
    fn most(&mut self, factor: &Factor, images: &[u16], turned: &[[f64; 3]]) -> f64 {
        if factor.work > MAX_WORK {
            self.left = self
                .left
                .saturating_sub(factor.orbits.iter().map(|orbit| (orbit.len() * orbit.len()) as u64).sum());
            let of_atom = |at: &u16, orbit: &Vec<u16>| {
                let places = orbit.iter().map(|to| &self.b[usize::from(images[usize::from(*to)])]);
                places.map(|place| dot(&turned[usize::from(*at)], place)).fold(f64::NEG_INFINITY, f64::max)
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

    /// Adds the products of the order of a factor that has most at a rotation, once this choice is made.
    fn add_best(
        &mut self,
        factor: &Factor,
        images: &[u16],
        choice: usize,
        rotation: &Matrix,
        sum: &mut Matrix,
    ) {
        let images = chosen(factor, images, choice);
        for at in &factor.settled {
            let at = usize::from(*at);
            add_product(sum, &self.a[factor.atoms[at]], &self.b[usize::from(images[at])]);
        }
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

/// The most that `2 L s - 2 κ s²` comes to for s from 0 to 1.
fn slack(turn: &Turn, spread: f64) -> f64 {
    if spread >= 2.0 * turn.sharpness {
        2.0 * (spread - turn.sharpness)
    } else {
        spread * spread / (2.0 * turn.sharpness)
    }
}

/// In whose places atoms stand after a choice.
fn chosen(factor: &Factor, images: &[u16], choice: usize) -> Vec<u16> {
    factor.choices[choice].iter().map(|to| images[usize::from(*to)]).collect()
}

/// The part of `images` that is of a factor below.
fn within(below: &Factor, images: &[u16]) -> Vec<u16> {
    below.within.iter().map(|at| images[usize::from(*at)]).collect()
}

fn dot(a: &[f64; 3], b: &[f64; 3]) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

/// `tr R S`: the sum `Σ Raᵢ · bᵢ` of `Σ aᵢ bᵢᵀ`.
fn trace(rotation: &Matrix, s: &Matrix) -> f64 {
    (0..3).map(|i| (0..3).map(|j| rotation[i][j] * s[j][i]).sum::<f64>()).sum()
}

fn add_product(sum: &mut Matrix, a: &[f64; 3], b: &[f64; 3]) {
    for (row, a) in sum.iter_mut().zip(a) {
        row.iter_mut().zip(b).for_each(|(entry, b)| *entry += a * b);
    }
}

fn add(a: &Matrix, b: &Matrix) -> Matrix {
    std::array::from_fn(|i| std::array::from_fn(|j| a[i][j] + b[i][j]))
}

#[cfg(test)]
mod tests;
