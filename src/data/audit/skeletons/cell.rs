//! The geometry of a text by a skeleton: the volume of its cell, and the shortest distance between atoms, with periodic images.

use drift_core::skeleton::{Geometry, Reading};
use drift_core::vector::{cross, distance, dot, triple};

/// The most atoms of a text whose distances are measured; their number grows with the square.
pub(super) const MOST_ATOMS: usize = 4_000;

/// The geometry of a text.
#[derive(Debug, Clone, Copy, PartialEq, Default, serde::Serialize)]
pub struct TextGeometry {
    /// The number of positions.
    pub atoms: usize,
    /// The volume of the cell in Å³; `None` without a cell, or if its angles do not fit together.
    pub volume: Option<f64>,
    /// The shortest distance between two atoms in Å, also between images of the cell; `None` if the cell has no volume, for a single
    /// atom without a cell, and for more than 4,000 atoms.
    pub shortest_distance_angstrom: Option<f64>,
    /// Whether the text states a cell.
    #[serde(skip)]
    pub has_cell: bool,
}

type Vector = [f64; 3];

fn plus(a: Vector, b: Vector, times: f64) -> Vector {
    [a[0] + times * b[0], a[1] + times * b[1], a[2] + times * b[2]]
}

fn length(a: Vector) -> f64 {
    dot(a, a).sqrt()
}

/// A cell by its three vectors in Å.
struct Cell([Vector; 3]);

impl Cell {
    /// Returns the cell of three lengths in Å and three angles in degrees; `None` if they have no volume. The first vector lies on x, the
    /// second in the plane of x and y.
    fn new(lengths: Vector, angles: Vector) -> Option<Self> {
        let [a, b, c] = lengths;
        let [alpha, beta, gamma] = angles.map(|degrees| degrees.to_radians().cos());
        let sine = (1.0 - gamma * gamma).sqrt();
        let y = (alpha - beta * gamma) / sine;
        let z = (1.0 - beta * beta - y * y).sqrt();
        // NaN, where the angles do not fit together, is not above 0 either.
        let fits = a * b * c * sine > 1e-9 && z > 1e-6;
        fits.then_some(Cell([[a, 0.0, 0.0], [b * gamma, b * sine, 0.0], [c * beta, c * y, c * z]]))
    }

    fn volume(&self) -> f64 {
        let [a, b, c] = self.0;
        triple(a, b, c).abs()
    }

    /// Returns the same lattice by short vectors: each is made as short as whole multiples of another can make it, and both others
    /// together. The heights are then a fixed share of the lengths at least, however flat the cell is (Minkowski's reduction).
    fn reduced(&self) -> Self {
        let mut vectors = self.0;
        // Each change shortens a vector; the number of steps is bounded all the same, because rounding is not exact.
        for _ in 0..1_000 {
            let mut changed = false;
            for (at, by) in [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)] {
                let times = (dot(vectors[at], vectors[by]) / dot(vectors[by], vectors[by])).round();
                let shorter = plus(vectors[at], vectors[by], -times);
                if length(shorter) < length(vectors[at]) * (1.0 - 1e-9) {
                    vectors[at] = shorter;
                    changed = true;
                }
            }
            if !changed {
                let Some((at, shorter)) = shorter_by_both(&vectors) else { break };
                vectors[at] = shorter;
            }
        }
        Cell(vectors)
    }

    /// Returns the inverse: the fractions of a position are its products with these.
    fn reciprocal(&self) -> [Vector; 3] {
        let [a, b, c] = self.0;
        let volume = triple(a, b, c);
        [cross(b, c), cross(c, a), cross(a, b)].map(|vector| vector.map(|x| x / volume))
    }

    fn position(&self, fractions: Vector) -> Vector {
        (0..3).fold([0.0; 3], |sum, axis| plus(sum, self.0[axis], fractions[axis]))
    }
}

/// Returns a vector, by its place, that both others together make shorter, and what becomes of it.
fn shorter_by_both(vectors: &[Vector; 3]) -> Option<(usize, Vector)> {
    (0..3).find_map(|at| {
        let [v, u, w] = [0, 1, 2].map(|step| vectors[(at + step) % 3]);
        let signs = [(1.0, 1.0), (1.0, -1.0), (-1.0, 1.0), (-1.0, -1.0)];
        let sums = signs.map(|(of_u, of_w)| plus(plus(v, u, of_u), w, of_w));
        let shorter = sums.into_iter().find(|sum| length(*sum) < length(v) * (1.0 - 1e-9))?;
        Some((at, shorter))
    })
}

/// Finds the shortest distance of a periodic structure.
struct Search<'c> {
    cell: &'c Cell,
    /// By axis, the distance between two planes of the lattice, in Å.
    heights: Vector,
    /// The shortest distance so far, in Å.
    best: f64,
}

impl Search<'_> {
    /// Compares the images of a difference of fractions, each in -0.5 to 0.5, that can be closer than the best distance.
    fn compare(&mut self, fractions: Vector, same_atom: bool) {
        let reach: [i64; 3] = std::array::from_fn(|axis| {
            (self.best / self.heights[axis] + fractions[axis].abs()).floor() as i64
        });
        for i in -reach[0]..=reach[0] {
            for j in -reach[1]..=reach[1] {
                for k in -reach[2]..=reach[2] {
                    if same_atom && (i, j, k) == (0, 0, 0) {
                        continue;
                    }
                    let shift = [i as f64, j as f64, k as f64];
                    let image = std::array::from_fn(|axis| fractions[axis] + shift[axis]);
                    self.best = self.best.min(length(self.cell.position(image)));
                }
            }
        }
    }
}

/// Returns the shortest distance between atoms at these fractions of a cell, in Å.
fn shortest_in_cell(cell: &Cell, fractions: &[Vector]) -> f64 {
    let reduced = cell.reduced();
    let reciprocal = reduced.reciprocal();
    let own: Vec<Vector> = fractions
        .iter()
        .map(|fractions| {
            let position = cell.position(*fractions);
            reciprocal.map(|vector| dot(vector, position))
        })
        .collect();
    let best = reduced.0.into_iter().map(length).fold(f64::INFINITY, f64::min);
    let heights = reciprocal.map(|vector| 1.0 / length(vector));
    let mut search = Search { cell: &reduced, heights, best };
    search.compare([0.0; 3], true);
    for (at, a) in own.iter().enumerate() {
        for b in &own[..at] {
            let difference = std::array::from_fn(|axis| {
                let d = a[axis] - b[axis];
                d - d.round()
            });
            search.compare(difference, false);
        }
    }
    search.best
}

/// Returns the shortest distance between positions, in their unit; `None` for fewer than two.
fn shortest(positions: &[Vector]) -> Option<f64> {
    let pairs = positions.iter().enumerate().flat_map(|(at, a)| positions[..at].iter().map(move |b| (a, b)));
    pairs.map(|(a, b)| distance(*a, *b)).reduce(f64::min)
}

/// Returns the geometry of a text that was read; `None` if numbers of it are missing.
pub(super) fn geometry(slots: &Geometry<usize>, reading: &Reading) -> Option<TextGeometry> {
    // Three numbers in a row need not be those of one atom.
    if reading.has_gaps {
        return None;
    }
    let values =
        |slot: usize| reading.values.iter().filter(move |(own, _)| *own == slot).map(|(_, value)| *value);
    let numbers: Vec<f64> = values(slots.positions).collect();
    let (positions, []) = numbers.as_chunks::<3>() else { return None };
    if positions.is_empty() {
        return None;
    }
    let three = |slot: usize| <Vector>::try_from(values(slot).take(3).collect::<Vec<f64>>()).ok();
    let few = positions.len() <= MOST_ATOMS;
    let (Some(lengths), Some(angles)) = (slots.lengths, slots.angles) else {
        let shortest_distance_angstrom = if few { shortest(positions) } else { None };
        let geometry =
            TextGeometry { atoms: positions.len(), shortest_distance_angstrom, ..TextGeometry::default() };
        return Some(geometry);
    };
    let cell = Cell::new(three(lengths)?, three(angles)?);
    Some(TextGeometry {
        atoms: positions.len(),
        volume: cell.as_ref().map(Cell::volume),
        shortest_distance_angstrom: cell.filter(|_| few).map(|cell| shortest_in_cell(&cell, positions)),
        has_cell: true,
    })
}

#[cfg(test)]
mod tests {
    use rand::{Rng, SeedableRng};

    use super::*;

    #[test]
    fn rock_salt_has_its_distance_and_volume() {
        let cell = Cell::new([5.64; 3], [90.0; 3]).unwrap();
        assert!((cell.volume() - 5.64f64.powi(3)).abs() < 1e-9);
        let atoms =
            [[0.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.5, 0.0, 0.5], [0.0, 0.5, 0.5], [0.5; 3], [0.0, 0.0, 0.5]];
        assert!((shortest_in_cell(&cell, &atoms) - 2.82).abs() < 1e-9);
        // Through the border of the cell.
        assert!((shortest_in_cell(&cell, &[[0.01, 0.0, 0.0], [0.99, 0.0, 0.0]]) - 0.1128).abs() < 1e-9);
        // A single atom meets its own images.
        assert!((shortest_in_cell(&cell, &[[0.3; 3]]) - 5.64).abs() < 1e-9);
        assert!(Cell::new([5.0; 3], [30.0, 30.0, 90.0]).is_none());
        assert!(Cell::new([0.0, 1.0, 1.0], [90.0; 3]).is_none());
    }

    /// The sum of the three vectors is nearly nothing: by pairs alone they would stay as long as they are, and images by the million.
    #[test]
    fn nearly_flat_cells_take_no_longer() {
        for angle in [119.999f64, 119.99999, 119.999_999] {
            let cell = Cell::new([5.0; 3], [angle; 3]).unwrap();
            let sum = 5.0 * (3.0 + 6.0 * angle.to_radians().cos()).sqrt();
            let found = shortest_in_cell(&cell, &[[0.0; 3], [0.5; 3]]);
            assert!((found - sum / 2.0).abs() < 1e-4 * sum, "{angle}: {found} {sum}");
        }
        let tilted = Cell::new([5.0; 3], [60.0, 60.0, 119.999_999]).unwrap();
        assert!(shortest_in_cell(&tilted, &[[0.0; 3], [0.5; 3]]) < 5.0);
    }

    /// Against all images in a range that is far enough, in cells of any shape.
    #[test]
    fn the_shortest_distance_is_that_of_all_images() {
        let mut random = rand_chacha::ChaCha8Rng::seed_from_u64(7);
        let mut cells = 0;
        while cells < 60 {
            let lengths = std::array::from_fn(|_| random.random_range(2.0..9.0));
            let angles = std::array::from_fn(|_| random.random_range(25.0..155.0));
            let Some(cell) = Cell::new(lengths, angles).filter(|cell| cell.volume() > 3.0) else { continue };
            cells += 1;
            let atoms: Vec<Vector> =
                (0..3).map(|_| std::array::from_fn(|_| random.random_range(-1.0..2.0))).collect();
            let mut expected = f64::INFINITY;
            for (at, a) in atoms.iter().enumerate() {
                for b in &atoms[..=at] {
                    for image in 0..31i32.pow(3) {
                        let shift = [image % 31 - 15, image / 31 % 31 - 15, image / 961 - 15].map(f64::from);
                        let difference = std::array::from_fn(|axis| a[axis] - b[axis] + shift[axis]);
                        let distance = length(cell.position(difference));
                        if distance > 1e-9 {
                            expected = expected.min(distance);
                        }
                    }
                }
            }
            assert!((shortest_in_cell(&cell, &atoms) - expected).abs() < 1e-6, "{lengths:?} {angles:?}");
        }
    }
}
