//! Conformers whose geometry cannot be right, whatever their molecule: atoms on one point, and bonds of impossible lengths.

use std::sync::Arc;

use serde::Serialize;

use crate::corpus::{AtomOrder, Conformer};
use drift_core::Encoding;
use drift_core::chem::symmetry::UnionFind;
use drift_core::text::skeleton::{self, Piece, pieces};
use drift_core::vector::squared_distance;

/// Atoms that are nearer than this, in Å, lie on one point.
pub const ONE_POINT_ANGSTROM: f64 = 0.1;

/// The shortest bond, in Å: that of H2 has 0.74. Also the limit of 3DMolGen's own check.
pub const SHORTEST_BOND_ANGSTROM: f64 = 0.7;

/// The longest bond, in Å, by 3DMolGen's own check.
pub const LONGEST_BOND_ANGSTROM: f64 = 2.5;

/// The number of conformers that a report lists.
const LISTED: usize = 1_000;

/// Counts of conformers with impossible geometry.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct FaultReport {
    /// The number of conformers with two atoms on one point, and the number of such pairs.
    pub conformers_with_coincident_atoms: u64,
    /// See above.
    pub coincident_pairs: u64,
    /// The number of conformers with a bond shorter than 0.7 Å, and the number of such bonds.
    pub conformers_with_short_bonds: u64,
    /// See above.
    pub short_bonds: u64,
    /// The number of conformers with a bond longer than 2.5 Å, and the number of such bonds.
    pub conformers_with_long_bonds: u64,
    /// See above.
    pub long_bonds: u64,
    /// The number of conformers in file order, whose bonds are not known.
    pub without_bonds: u64,
    /// The first of the conformers with a fault.
    pub conformers: Vec<FaultyConformer>,
}

/// A conformer with impossible geometry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FaultyConformer {
    /// Its number among all conformers that were read, from 1.
    pub number: u64,
    /// Its molecule.
    pub molecule: String,
    /// Its first fault, with atoms numbered from 1.
    pub fault: String,
}

/// The faults of one conformer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConformerFaults {
    /// The number of pairs of atoms on one point.
    pub coincident_pairs: u64,
    /// The number of bonds shorter than 0.7 Å.
    pub short_bonds: u64,
    /// The number of bonds longer than 2.5 Å.
    pub long_bonds: u64,
    /// The number of parts that bonds connect; 0 if the bonds are not known.
    pub parts: usize,
    /// Its first fault, with atoms numbered from 1.
    pub first: Option<String>,
}

/// Finds the faults of conformers, one after the other. Conformers of one molecule should follow one another.
#[derive(Debug, Clone, Default)]
pub struct FaultFinder {
    /// The bonds of the last skeleton.
    last: Option<SkeletonBonds>,
    order: Vec<usize>,
}

/// The bonds of a skeleton.
#[derive(Debug, Clone)]
struct SkeletonBonds {
    skeleton: Arc<str>,
    bonds: Vec<[usize; 2]>,
    parts: usize,
}

impl FaultFinder {
    /// Returns the faults of a conformer whose atoms lie at `points`, in Å. Atoms beyond the range of the encoding, which lie anywhere
    /// there, have none.
    pub fn find(
        &mut self,
        conformer: &Conformer,
        points: &[[f64; 3]],
        encoding: Encoding,
    ) -> ConformerFaults {
        let mut found = ConformerFaults::default();
        let is_beyond =
            |atom: usize| !encoding.is_decimal() && encoding.has_tail(&conformer.coordinates[atom]);
        self.order.clear();
        self.order.extend((0..points.len()).filter(|atom| !is_beyond(*atom)));
        self.find_coincident(points, &mut found);
        if conformer.order == AtomOrder::Smiles {
            self.find_bonds(conformer, points, &is_beyond, &mut found);
        }
        found
    }

    /// Counts the pairs of atoms in `order` on one point; describes the first.
    fn find_coincident(&mut self, points: &[[f64; 3]], found: &mut ConformerFaults) {
        // Only atoms with nearly the same x can be near each other.
        self.order.sort_unstable_by(|a, b| points[*a][0].total_cmp(&points[*b][0]));
        for (at, a) in self.order.iter().enumerate() {
            for b in &self.order[at + 1..] {
                if points[*b][0] - points[*a][0] >= ONE_POINT_ANGSTROM {
                    break;
                }
                if squared_distance(points[*a], points[*b]) < ONE_POINT_ANGSTROM * ONE_POINT_ANGSTROM {
                    found.coincident_pairs += 1;
                    let (first, second) = (a.min(b) + 1, a.max(b) + 1);
                    found.first.get_or_insert_with(|| format!("atoms {first} and {second} lie on one point"));
                }
            }
        }
    }

    fn find_bonds(
        &mut self,
        conformer: &Conformer,
        points: &[[f64; 3]],
        is_beyond: &dyn Fn(usize) -> bool,
        found: &mut ConformerFaults,
    ) {
        let last = match self.last.take() {
            Some(last) if *last.skeleton == *conformer.skeleton => last,
            _ => SkeletonBonds::new(&conformer.skeleton),
        };
        found.parts = last.parts;
        for [a, b] in &last.bonds {
            let (Some(p), Some(q)) = (points.get(*a), points.get(*b)) else { continue };
            if is_beyond(*a) || is_beyond(*b) {
                continue;
            }
            let length = squared_distance(*p, *q).sqrt();
            found.short_bonds += u64::from(length < SHORTEST_BOND_ANGSTROM);
            found.long_bonds += u64::from(length > LONGEST_BOND_ANGSTROM);
            if !(SHORTEST_BOND_ANGSTROM..=LONGEST_BOND_ANGSTROM).contains(&length) {
                let (first, second) = (a.min(b) + 1, a.max(b) + 1);
                found.first.get_or_insert_with(|| {
                    format!("the bond of atoms {first} and {second} is {length:.2} Å long")
                });
            }
        }
        self.last = Some(last);
    }
}

impl SkeletonBonds {
    fn new(skeleton: &Arc<str>) -> Self {
        let bonds = bonds(skeleton);
        // Without a dot there is one part, which is so for nearly all molecules.
        let parts = if skeleton.contains('.') { parts(skeleton, &bonds) } else { 1 };
        SkeletonBonds { skeleton: skeleton.clone(), bonds, parts }
    }
}

/// Returns the number of parts that bonds connect. A ring number may connect what a dot separates.
fn parts(skeleton: &str, bonds: &[[usize; 2]]) -> usize {
    let atoms = skeleton::atoms(skeleton).count();
    let mut together = UnionFind::new(atoms);
    atoms - bonds.iter().filter(|[a, b]| together.join(*a, *b)).count()
}

/// The counts of a part of a corpus.
#[derive(Debug, Clone, Default)]
pub struct FaultStats {
    report: FaultReport,
    finder: FaultFinder,
}

impl FaultStats {
    /// Counts a conformer, given its number among all. Encodings without coordinates have no geometry.
    pub fn add(&mut self, conformer: &Conformer, number: u64, encoding: Encoding) {
        let points: Vec<[f64; 3]> =
            conformer.coordinates.iter().filter_map(|values| encoding.angstrom(values)).collect();
        if points.len() < conformer.coordinates.len() {
            return;
        }
        let found = self.finder.find(conformer, &points, encoding);
        self.report.coincident_pairs += found.coincident_pairs;
        self.report.conformers_with_coincident_atoms += u64::from(found.coincident_pairs > 0);
        self.report.short_bonds += found.short_bonds;
        self.report.conformers_with_short_bonds += u64::from(found.short_bonds > 0);
        self.report.long_bonds += found.long_bonds;
        self.report.conformers_with_long_bonds += u64::from(found.long_bonds > 0);
        self.report.without_bonds += u64::from(conformer.order == AtomOrder::File);
        if let Some(fault) = found.first
            && self.report.conformers.len() < LISTED
        {
            let molecule = conformer.molecule.to_string();
            self.report.conformers.push(FaultyConformer { number, molecule, fault });
        }
    }

    /// Adds the counts of the part of the corpus that follows.
    pub fn merge(&mut self, other: &FaultStats) {
        let (own, more) = (&mut self.report, &other.report);
        own.conformers_with_coincident_atoms += more.conformers_with_coincident_atoms;
        own.coincident_pairs += more.coincident_pairs;
        own.conformers_with_short_bonds += more.conformers_with_short_bonds;
        own.short_bonds += more.short_bonds;
        own.conformers_with_long_bonds += more.conformers_with_long_bonds;
        own.long_bonds += more.long_bonds;
        own.without_bonds += more.without_bonds;
        let room = LISTED - own.conformers.len();
        own.conformers.extend(more.conformers.iter().take(room).cloned());
    }

    /// Returns the counts.
    pub fn report(self) -> FaultReport {
        self.report
    }
}

impl FaultReport {
    /// Returns whether no conformer has a fault.
    pub fn is_empty(&self) -> bool {
        self.coincident_pairs + self.short_bonds + self.long_bonds == 0
    }
}

/// Returns the bonded pairs of a skeleton, by the indices of its atoms. The skeleton is that of a text that was read, so its rings are
/// closed.
fn bonds(skeleton: &str) -> Vec<[usize; 2]> {
    let mut walk = Walk::default();
    let mut atoms = 0;
    for piece in pieces(skeleton) {
        match piece {
            Piece::Atom(_) => {
                walk.bonds.extend(walk.previous.map(|previous| [previous, atoms]));
                walk.previous = Some(atoms);
                atoms += 1;
            }
            Piece::Between(text) => walk.between(text.as_bytes()),
        }
    }
    walk.bonds
}

/// The state of a walk along a skeleton.
#[derive(Default)]
struct Walk {
    bonds: Vec<[usize; 2]>,
    /// The atom that the next one is bonded to.
    previous: Option<usize>,
    branches: Vec<Option<usize>>,
    /// Open rings: number and first atom.
    rings: Vec<(u32, usize)>,
}

impl Walk {
    fn between(&mut self, text: &[u8]) {
        let mut bytes = text.iter().copied();
        while let Some(byte) = bytes.next() {
            match byte {
                b'(' => self.branches.push(self.previous),
                b')' => self.previous = self.branches.pop().flatten(),
                b'.' => self.previous = None,
                b'0'..=b'9' => self.ring(u32::from(byte - b'0')),
                b'%' => {
                    let digits =
                        [bytes.next(), bytes.next()].map(|digit| u32::from(digit.unwrap_or(b'0') - b'0'));
                    self.ring(digits[0] * 10 + digits[1]);
                }
                _ => {}
            }
        }
    }

    fn ring(&mut self, number: u32) {
        let Some(atom) = self.previous else { return };
        match self.rings.iter().position(|(open, _)| *open == number) {
            Some(at) => {
                let (_, first) = self.rings.swap_remove(at);
                self.bonds.push([first, atom]);
            }
            None => self.rings.push((number, atom)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use drift_core::chem::Graph;
    use drift_core::encoding::Reading;
    use drift_core::text::{parse, skeleton};

    fn stats(texts: &[&str]) -> FaultReport {
        let mut all = FaultStats::default();
        for (number, text) in (1..).zip(texts) {
            let parsed = parse(text, Reading::default()).unwrap();
            let conformer = Conformer::new("m".into(), parsed.skeleton.into(), parsed.coordinates);
            let mut part = FaultStats::default();
            part.add(&conformer, number, Encoding::FIXED);
            all.merge(&part);
        }
        all.report()
    }

    #[test]
    fn impossible_atoms_and_bonds_are_counted() {
        let report = stats(&[
            "[C]<0.0,0.0,0.0>[C]<0.0,0.0,0.0>[O]<1.0,1.0,1.0>",
            "[C]<0,0,0>[C]<0.3,0,0>[O]<5,5,5>",
            "[C]<0,0,0>[O]<1.4,0,0>",
            "[Na+]<0,0,0>.[Cl-]<5,0,0>",
            "[C]<0,0,0>1[C]<1.5,0,0>[C]<4.1,0,0>1",
            "[C]<0,0,0>([C]<1.5,0,0>)[C]<-1.4,0.3,0>.[O]<1.5,0.05,0.05>",
        ]);
        let counts = (report.conformers_with_coincident_atoms, report.coincident_pairs);
        assert_eq!(counts, (2, 2));
        assert_eq!((report.conformers_with_short_bonds, report.short_bonds), (2, 2));
        assert_eq!((report.conformers_with_long_bonds, report.long_bonds), (2, 3));
        let numbers: Vec<u64> = report.conformers.iter().map(|faulty| faulty.number).collect();
        assert_eq!(numbers, [1, 2, 5, 6]);
        assert_eq!(report.conformers[1].fault, "the bond of atoms 1 and 2 is 0.30 Å long");
    }

    #[test]
    fn bonds_are_those_of_the_smiles() {
        for smiles in [
            "C",
            "CC(C)(C(=O)O)N",
            "c1ccc2c(c1)cccc2.[Na+]",
            "C12CC1C2",
            "C%10CC%10C%11C=%12CC%11CC%12",
            "C1CC1(C2(CC2)C1CC1)O",
            "F/C=C/Cl",
            "N[C@@H](C)C(=O)O",
        ] {
            let skeleton = skeleton::from_smiles(smiles).unwrap();
            let sorted = |pairs: Vec<[usize; 2]>| {
                let mut pairs: Vec<[usize; 2]> =
                    pairs.into_iter().map(|[a, b]| [a.min(b), a.max(b)]).collect();
                pairs.sort_unstable();
                pairs
            };
            let graph = Graph::parse(&skeleton::smiles(&skeleton)).unwrap();
            assert_eq!(
                sorted(bonds(&skeleton)),
                sorted(graph.bonds.iter().map(|bond| bond.atoms).collect()),
                "{smiles}"
            );
        }
    }
}
