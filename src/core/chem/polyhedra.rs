//! Non-tetrahedral stereo of atoms with four to six neighbours: `@SP`, `@TB` and `@OH` (OpenSMILES 1.0, section 3.9.3). Coordinates
//! are judged as in RDKit (`assignNontetrahedralChiralTypeFrom3D` in `Code/GraphMol/Chirality.cpp`, release 2026.09).

use super::graph::Chirality;
use crate::vector::{dot, minus, triple};

/// Two neighbours are opposite if the cosine of their angle is below this: 155°, RDKit's limit.
const OPPOSITE_COSINE: f64 = -0.906_307_787;

/// An atom whose neighbours are marked to lie at the corners of a polyhedron.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolyhedralMark {
    /// The atom.
    pub atom: usize,
    /// Its neighbours in the order of the text.
    pub neighbours: Vec<usize>,
    /// The corner of each neighbour, one letter each.
    corners: &'static str,
}

/// By number, from 1: the corner of each neighbour, in the order of the text. `x` is opposite to `X`, `y` to `Y`.
const SQUARE_PLANAR: [&str; 3] = ["xyXY", "xXyY", "xyYX"];

/// By number, from 1: the corner of each neighbour of a trigonal bipyramid. `a`, `b` and `c` lie around the axis from `z` to `Z`,
/// counterclockwise as seen from `z`.
const TRIGONAL_BIPYRAMIDAL: [&str; 20] = [
    "zabcZ", "zacbZ", "zabZc", "zacZb", "zaZbc", "zaZcb", "zZabc", "zZacb", "azbcZ", "azbZc", "azcbZ",
    "azcZb", "azZbc", "azZcb", "abzcZ", "abzZc", "abczZ", "abcZz", "abZzc", "abZcz",
];

/// By number, from 1: the corner of each neighbour of an octahedron.
const OCTAHEDRAL: [&str; 30] = [
    "zxyXYZ", "zxYXyZ", "zxyXZY", "zxyYXZ", "zxyYZX", "zxyZXY", "zxyZYX", "zxXyYZ", "zxXyZY", "zxXYyZ",
    "zxXYZy", "zxXZyY", "zxXZYy", "zxYyXZ", "zxYyZX", "zxYXZy", "zxYZyX", "zxYZXy", "zxZyXY", "zxZyYX",
    "zxZXyY", "zxZXYy", "zxZYyX", "zxZYXy", "zZxyXY", "zZxyYX", "zZxXyY", "zZxXYy", "zZxYyX", "zZxYXy",
];

/// Returns the ideal position of a corner, as a unit vector.
fn corner(letter: u8) -> [f64; 3] {
    let side = 0.75_f64.sqrt();
    match letter {
        b'x' | b'a' => [1.0, 0.0, 0.0],
        b'X' => [-1.0, 0.0, 0.0],
        b'y' => [0.0, 1.0, 0.0],
        b'Y' => [0.0, -1.0, 0.0],
        b'z' => [0.0, 0.0, 1.0],
        b'b' => [-0.5, side, 0.0],
        b'c' => [-0.5, -side, 0.0],
        _ => [0.0, 0.0, -1.0],
    }
}

impl PolyhedralMark {
    /// Returns the mark of an atom; `None` if the class or its number is unknown, or if neighbours are missing.
    pub(super) fn new(atom: usize, chirality: Chirality, neighbours: Vec<usize>) -> Option<Self> {
        let (table, number): (&[&str], u32) = match chirality {
            Chirality::SquarePlanar(number) => (&SQUARE_PLANAR, number),
            Chirality::TrigonalBipyramidal(number) => (&TRIGONAL_BIPYRAMIDAL, number),
            Chirality::Octahedral(number) => (&OCTAHEDRAL, number),
            _ => return None,
        };
        let corners = *table.get(usize::try_from(number).ok()?.checked_sub(1)?)?;
        (corners.len() == neighbours.len()).then_some(PolyhedralMark { atom, neighbours, corners })
    }

    /// Returns the atom and its neighbours.
    pub(super) fn all(&self) -> impl Iterator<Item = usize> {
        self.neighbours.iter().copied().chain([self.atom])
    }

    /// Returns the same mark with renumbered atoms; `None` if `number` drops one of them.
    pub(super) fn renumbered(&self, number: impl Fn(usize) -> Option<usize>) -> Option<Self> {
        let neighbours = self.neighbours.iter().map(|atom| number(*atom)).collect::<Option<_>>()?;
        Some(PolyhedralMark { atom: number(self.atom)?, neighbours, corners: self.corners })
    }

    /// Returns whether another mark has the same meaning in a molecule whose atoms are the images of this one's under `image`.
    pub(super) fn is_that_of(&self, other: &PolyhedralMark, image: impl Fn(usize) -> usize) -> bool {
        // The ideal corners stand in for a conformer, so no table of equivalent numbers is needed.
        if image(self.atom) != other.atom {
            return false;
        }
        let agrees = other.agrees(|atom| {
            let place = self.neighbours.iter().position(|own| image(*own) == atom);
            place.map_or([0.0; 3], |at| corner(self.corners.as_bytes()[at]))
        });
        agrees == Some(true)
    }

    /// Returns whether coordinates agree with the mark; `None` if they do not form this polyhedron. `place` gives the position of an atom
    /// in Å.
    pub fn agrees(&self, place: impl Fn(usize) -> [f64; 3]) -> Option<bool> {
        let centre = place(self.atom);
        let bonds: Vec<[f64; 3]> =
            self.neighbours.iter().map(|atom| unit(minus(place(*atom), centre))).collect::<Option<_>>()?;
        let ideal: Vec<[f64; 3]> = self.corners.bytes().map(corner).collect();
        let found = opposites(&bonds);
        let expected = opposites(&ideal);
        if found.len() != expected.len() {
            return None;
        }
        // For a square the opposite pairs decide everything; otherwise the handedness of three neighbours is compared too.
        let n = bonds.len();
        let threes = (0..n).flat_map(|i| (0..i).flat_map(move |j| (0..j).map(move |k| [i, j, k])));
        let volume = |of: &[[f64; 3]], [i, j, k]: [usize; 3]| triple(of[i], of[j], of[k]);
        let same_hand = threes
            .filter(|three| volume(&ideal, *three).abs() > 0.5)
            .all(|three| volume(&ideal, three) * volume(&bonds, three) > 0.0);
        Some(found == expected && same_hand)
    }
}

/// Returns whether RDKit would write a non-tetrahedral class for neighbours at these positions: a square, a bipyramid, an octahedron, or
/// one of these without a corner.
pub(super) fn is_polyhedron(centre: [f64; 3], neighbours: impl Iterator<Item = [f64; 3]>) -> bool {
    let bonds: Option<Vec<[f64; 3]>> = neighbours.map(|place| unit(minus(place, centre))).collect();
    bonds.is_some_and(|bonds| match (bonds.len(), opposites(&bonds).len()) {
        (4, pairs) => pairs == 2,
        (5, pairs) => pairs == 1 || pairs == 2,
        (6, pairs) => pairs == 3,
        _ => false,
    })
}

/// Returns the pairs of neighbours that lie opposite to one another.
fn opposites(bonds: &[[f64; 3]]) -> Vec<[usize; 2]> {
    let pairs = (0..bonds.len()).flat_map(|i| (0..i).map(move |j| [j, i]));
    pairs.filter(|[j, i]| dot(bonds[*j], bonds[*i]) < OPPOSITE_COSINE).collect()
}

fn unit(a: [f64; 3]) -> Option<[f64; 3]> {
    let length = dot(a, a).sqrt();
    (length > 1e-6).then(|| a.map(|x| x / length))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(chirality: Chirality, count: usize) -> PolyhedralMark {
        PolyhedralMark::new(0, chirality, (1..=count).collect()).unwrap()
    }

    /// Every number agrees with its own arrangement and with no other one, turned or not.
    #[test]
    fn each_arrangement_has_one_number() {
        type Class = fn(u32) -> Chirality;
        let classes: [(usize, u32, Class); 3] = [
            (4, 3, Chirality::SquarePlanar),
            (5, 20, Chirality::TrigonalBipyramidal),
            (6, 30, Chirality::Octahedral),
        ];
        for (count, numbers, class) in classes {
            for asked in 1..=numbers {
                for lies in 1..=numbers {
                    let corners = mark(class(lies), count).corners.as_bytes();
                    let place = |atom: usize| match atom.checked_sub(1) {
                        None => [1.0; 3],
                        Some(at) => {
                            let [x, y, z] = corner(corners[at]);
                            [1.0 + 2.1 * y, 1.0 + 2.0 * z, 1.0 + 1.9 * x]
                        }
                    };
                    assert_eq!(
                        mark(class(asked), count).agrees(place),
                        Some(asked == lies),
                        "{count}: {asked} {lies}"
                    );
                }
            }
        }
    }

    #[test]
    fn what_is_no_polyhedron_has_no_number() {
        let tetrahedron =
            [[0.0; 3], [1.0, 1.0, 1.0], [-1.0, -1.0, 1.0], [-1.0, 1.0, -1.0], [1.0, -1.0, -1.0]];
        assert_eq!(mark(Chirality::SquarePlanar(1), 4).agrees(|at| tetrahedron[at]), None);
        assert!(PolyhedralMark::new(0, Chirality::SquarePlanar(4), vec![1, 2, 3, 4]).is_none());
        assert!(PolyhedralMark::new(0, Chirality::Octahedral(1), vec![1, 2, 3, 4]).is_none());
        assert!(PolyhedralMark::new(0, Chirality::Clockwise, vec![1, 2, 3, 4]).is_none());
    }
}
