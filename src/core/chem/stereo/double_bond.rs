//! Double bonds with `/` or `\` on both sides, and the sides that coordinates give to their neighbours.

use super::MarkImage;
use crate::chem::graph::{Direction, Graph, Order};
use crate::vector::{cross, dot, minus};

/// Two bonds with a cosine below this lie on a line: the cosine of 178°, as RDKit writes it.
const STRAIGHT_COSINE: f64 = -0.999388;

/// Double bonds in smaller rings have no stereo.
pub(in crate::chem) const SMALLEST_RING: usize = 8;

/// A double bond with `/` or `\` on both sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DoubleBondMark {
    /// Its atoms.
    pub atoms: [usize; 2],
    /// One neighbour of each atom.
    pub neighbours: [usize; 2],
    /// The other neighbour of each atom, if it has one.
    pub others: [Option<usize>; 2],
    /// Whether the two `neighbours` lie on the same side.
    pub together: bool,
}

impl DoubleBondMark {
    /// Returns the mark of a double bond, if both sides have a direction.
    pub(super) fn from_graph(graph: &Graph, atoms: [usize; 2]) -> Option<Self> {
        let [a, b] = atoms;
        let ((x, x_above), (y, y_above)) = (directed(graph, a)?, directed(graph, b)?);
        let others = [substituent(graph, a, [b, x]), substituent(graph, b, [a, y])];
        Some(DoubleBondMark { atoms, neighbours: [x, y], others, together: x_above == y_above })
    }

    /// Returns the mark with other numbers; `places` has the new index of each kept atom. The other neighbour replaces a removed one, on
    /// the opposite side. `None` if one of the two atoms, or all its neighbours are removed.
    pub(super) fn renumbered(&self, places: &[Option<usize>]) -> Option<Self> {
        let [a, b] = self.atoms;
        let (x, x_other, x_moved) = self.renumbered_end(0, places)?;
        let (y, y_other, y_moved) = self.renumbered_end(1, places)?;
        Some(DoubleBondMark {
            atoms: [places[a]?, places[b]?],
            neighbours: [x, y],
            others: [x_other, y_other],
            together: self.together ^ x_moved ^ y_moved,
        })
    }

    /// Returns the new indices of the neighbour and of the other neighbour of one of the two atoms, and whether the other neighbour
    /// replaces a removed one. `None` if neither is kept.
    fn renumbered_end(&self, end: usize, places: &[Option<usize>]) -> Option<(usize, Option<usize>, bool)> {
        let other = self.others[end].and_then(|other| places[other]);
        match places[self.neighbours[end]] {
            Some(neighbour) => Some((neighbour, other, false)),
            None => Some((other?, None, true)),
        }
    }

    /// Returns whether the neighbours with the highest ranks of both atoms lie on the same side.
    pub(in crate::chem) fn is_together_by(&self, ranks: &[usize]) -> bool {
        let is_lower =
            |end: usize| self.others[end].is_some_and(|other| ranks[other] > ranks[self.neighbours[end]]);
        self.together ^ is_lower(0) ^ is_lower(1)
    }

    /// Returns whether coordinates agree; `None` if all neighbours of one atom lie on the line of the bond. `place` gives the position of
    /// an atom in Å.
    pub fn agrees(&self, place: impl Fn(usize) -> [f64; 3]) -> Option<bool> {
        let [a, b] = self.atoms.map(&place);
        let (x, x_opposite) = self.beside(0, [a, b], &place)?;
        let (y, y_opposite) = self.beside(1, [b, a], &place)?;
        Some(are_together([x, a, b, y])? ^ x_opposite ^ y_opposite == self.together)
    }

    /// Returns the position of a neighbour of one of the two atoms, in Å, and whether it is the other neighbour: on the line of the bond
    /// the first one says nothing. `None` if there is no neighbour off the line. The two atoms lie at `atom` and `across`, in Å.
    fn beside(
        &self,
        end: usize,
        [atom, across]: [[f64; 3]; 2],
        place: &impl Fn(usize) -> [f64; 3],
    ) -> Option<([f64; 3], bool)> {
        let is_off_line = |point: &[f64; 3]| !are_straight(minus(*point, atom), minus(across, atom));
        let first = Some(place(self.neighbours[end])).filter(is_off_line);
        first
            .map(|point| (point, false))
            .or_else(|| Some((Some(place(self.others[end]?)).filter(is_off_line)?, true)))
    }

    /// Returns the two atoms and their neighbours.
    pub(in crate::chem) fn all(&self) -> impl Iterator<Item = usize> {
        self.atoms.into_iter().chain(self.neighbours).chain(self.others.into_iter().flatten())
    }

    /// Returns the mark that the image of this bond has in another molecule; `None` if the image has none.
    pub(in crate::chem) fn image_in(
        &self,
        others: &[DoubleBondMark],
        image: &dyn Fn(usize) -> usize,
    ) -> Option<MarkImage> {
        let [a, b] = self.atoms.map(image);
        let [x, y] = self.neighbours.map(image);
        let index = others.iter().position(|other| other.atoms == [a, b] || other.atoms == [b, a])?;
        let other = &others[index];
        let [own_x, own_y] =
            if other.atoms == [a, b] { other.neighbours } else { [other.neighbours[1], other.neighbours[0]] };
        Some(MarkImage { index, inverted: self.together ^ other.together ^ (own_x != x) ^ (own_y != y) })
    }
}

/// Returns a neighbour of an atom across a single or aromatic bond that was not seen. The oxygen of `C=[S](/[H])=O` cannot take the place
/// of the hydrogen.
fn substituent(graph: &Graph, atom: usize, seen: [usize; 2]) -> Option<usize> {
    let bonds = graph.written[atom].iter().map(|bond| &graph.bonds[*bond]);
    let single = bonds.filter(|bond| matches!(bond.order, Order::Single | Order::Aromatic));
    single.map(|bond| bond.other(atom)).find(|neighbour| !seen.contains(neighbour))
}

/// Returns whether the first and the last of four atoms in a chain lie on the same side of the middle bond, that is, their torsion is
/// below 90°. Positions are in Å. `None` if three of the atoms lie on a line.
pub fn are_together([x, a, b, y]: [[f64; 3]; 4]) -> Option<bool> {
    let bond = minus(b, a);
    let (left, right) = (cross(minus(x, a), bond), cross(minus(y, b), bond));
    let lengths = (dot(left, left) * dot(right, right)).sqrt();
    // In Å⁴. Only atoms on the line of the bond give a value so close to zero.
    (lengths > 1e-6).then(|| dot(left, right) > 0.0)
}

/// Returns whether two bonds of an atom, in Å, lie on a line, or one has no length (`isLinearArrangement` in RDKit).
fn are_straight(a: [f64; 3], b: [f64; 3]) -> bool {
    let squares = dot(a, a) * dot(b, b);
    squares < 1e-6 || dot(a, b) < STRAIGHT_COSINE * squares.sqrt()
}

/// Returns the first neighbour of an atom whose bond has a direction, and whether it lies above; `None` if two neighbours are on the same
/// side.
fn directed(graph: &Graph, atom: usize) -> Option<(usize, bool)> {
    let mut found = graph.written[atom].iter().filter_map(|bond| {
        let bond = &graph.bonds[*bond];
        let direction = if bond.atoms[0] == atom { bond.direction? } else { bond.direction?.reversed() };
        Some((bond.other(atom), direction == Direction::Up))
    });
    let first = found.next()?;
    found.all(|(_, is_above)| is_above != first.1).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chem::stereo::StereoMarks;

    fn marks(smiles: &str) -> StereoMarks {
        StereoMarks::from_graph(&Graph::parse(smiles).unwrap())
    }

    #[test]
    fn sides_of_double_bonds() {
        let together = |smiles: &str| marks(smiles).double_bonds.first().map(|mark| mark.together);
        for (smiles, expected) in [
            ("F/C=C/F", Some(false)),
            ("F\\C=C/F", Some(true)),
            ("C(\\F)=C/F", Some(false)),
            ("F/C(Cl)=C(/F)Br", Some(false)),
            ("FC=C/F", None),
            ("C/1=C/CCCCCC1", Some(true)),
            ("C1=C/CCCCCC\\1", Some(true)),
            ("C1=C/CCCCCC/1", Some(false)),
            ("CC=CC", None),
        ] {
            assert_eq!(together(smiles), expected, "{smiles}");
        }
    }

    #[test]
    fn sides_by_torsion() {
        let chain = |y| are_together([[0.0, 1.0, 0.0], [0.0; 3], [1.3, 0.0, 0.0], [1.3, y, 0.1]]);
        assert_eq!((chain(1.0), chain(-1.0)), (Some(true), Some(false)));
        assert_eq!(are_together([[-1.0, 0.0, 0.0], [0.0; 3], [1.0, 0.0, 0.0], [1.0, 1.0, 0.0]]), None);
    }

    #[test]
    fn neighbours_on_the_line_of_a_double_bond_say_nothing() {
        // The bond lies on the x axis. The first neighbour, on the left, is `angle` degrees off its line; `other` is the chlorine.
        let agrees = |smiles, angle: f64, other: [f64; 3]| {
            let (sine, cosine) = angle.to_radians().sin_cos();
            let right = [1.9, -1.2, 0.0];
            let points = [[-1.3 * cosine, 1.3 * sine, 0.0], [0.0; 3], other, [1.3, 0.0, 0.0], right];
            marks(smiles).double_bonds[0].agrees(|atom| points[atom])
        };
        let (above, below, left) = ([-0.6, 1.2, 0.0], [-0.6, -1.2, 0.0], [-1.3, 0.01, 0.0]);
        let both = "F/C(Cl)=C/F";
        assert_eq!(agrees(both, 60.0, below), Some(true));
        // Just off the line the first neighbour counts, wherever the other is.
        assert_eq!((agrees(both, 2.1, above), agrees(both, -2.1, above)), (Some(true), Some(false)));
        assert_eq!((agrees(both, 1.9, above), agrees(both, 1.9, below)), (Some(false), Some(true)));
        assert_eq!(agrees(both, 1.9, left), None);
        // A hydrogen that is not written says nothing either.
        let alone = marks("F/C=C/F").double_bonds[0];
        let points = [[-1.3, 0.01, 0.0], [0.0; 3], [1.3, 0.0, 0.0], [1.9, -1.2, 0.0]];
        assert_eq!(alone.agrees(|atom| points[atom]), None);
        // The removed hydrogen leaves the chlorine as the only neighbour.
        let removed = marks("[H]/C(Cl)=C/F").renumbered(&[None, Some(0), Some(1), Some(2), Some(3)]);
        let mark = removed.double_bonds[0];
        assert_eq!((mark.neighbours, mark.others, mark.together), ([1, 3], [None, None], true));
    }
}
