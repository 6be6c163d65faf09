//! Rewrites a SMILES without needless hydrogen atoms and map numbers, starting each part from its first atom.
//!
//! SPICE and other sources write every hydrogen as an atom and number all atoms, `[C:1]([H:3])…`. Enriched texts have only heavy
//! atoms.

use std::fmt::Write;

use super::brackets::hydrogens_and_charge;
use super::elements::symbol;
use super::graph::{Atom, BondsOfAtom, Chirality, Direction, Graph, Order, SmilesProblem};
use super::hydrogens::places_without;
use super::molecule::{Molecule, READ};
use super::reading::SmilesReading;
use super::stereo::{StereoMarks, TetrahedralMark};

/// Returns an equivalent SMILES without hydrogen atoms that a count can replace and without map numbers; `None` if the SMILES has
/// neither.
///
/// # Errors
/// [`SmilesProblem`] if the text is not a SMILES, or its stereo cannot be written without a hydrogen.
pub fn without_needless_atoms(smiles: &str) -> Result<Option<String>, SmilesProblem> {
    let written = Graph::parse(smiles)?;
    let removed = written.needless_hydrogens();
    if !removed.contains(&true) && written.atoms.iter().all(|atom| atom.map.is_none()) {
        return Ok(None);
    }
    let numbers = places_without(&removed);
    let wanted = StereoMarks::from_graph(&written).renumbered(&numbers);
    let mut bare = written.without_hydrogens();
    copy_directions(&written, &removed, &numbers, &mut bare);
    count_hydrogens(&mut bare)?;
    let is_marked = |atom: usize| wanted.centres.iter().any(|mark| mark.atom == atom);
    for (at, atom) in bare.atoms.iter_mut().enumerate() {
        atom.map = None;
        // Each mark is first written counterclockwise, and inverted below where that is wrong.
        if matches!(atom.chirality, Some(Chirality::Counterclockwise | Chirality::Clockwise)) {
            atom.chirality = is_marked(at).then_some(Chirality::Counterclockwise);
        }
    }
    let (text, order) = bare.text();
    let of_text = |atom: usize| order[atom];
    // The meaning of `@` depends on the order in which neighbours are written. So a first text shows that order, and a second text
    // gets the correct marks.
    for mark in &StereoMarks::from_graph(&Graph::parse(&text)?).centres {
        let is_same = is_centre_of(mark, &wanted, &of_text);
        bare.atoms[of_text(mark.atom)].chirality =
            Some(if is_same { Chirality::Counterclockwise } else { Chirality::Clockwise });
    }
    let (text, order) = bare.text();
    // Directions beside double bonds may contradict each other, so the text is parsed again.
    if says_same(&StereoMarks::from_graph(&Graph::parse(&text)?), &wanted, &order) {
        return Ok(Some(text));
    }
    // Marks that RDKit drops, such as those of double bonds in small rings, may be lost.
    let kept = |text: &str| SmilesReading::new(text, READ).map(|reading| reading.marks);
    match says_same(&kept(&text)?, &kept(smiles)?.renumbered(&numbers), &order) {
        true => Ok(Some(text)),
        false => Err(SmilesProblem::Stereo),
    }
}

/// Puts atoms with counted hydrogens into brackets with their full count. The writer leaves out brackets that are not needed.
fn count_hydrogens(graph: &mut Graph) -> Result<(), SmilesProblem> {
    let hydrogens = Molecule::try_from(graph.clone())?.hydrogens;
    for (atom, hydrogens) in graph.atoms.iter_mut().zip(hydrogens).filter(|(atom, _)| atom.hydrogens > 0) {
        *atom = Atom { bracket: true, hydrogens, ..*atom };
    }
    Ok(())
}

/// Returns whether the marks of a text equal the wanted ones. `order` maps atoms of the text to atoms of the graph.
fn says_same(found: &StereoMarks, wanted: &StereoMarks, order: &[usize]) -> bool {
    let of_text = |atom: usize| order[atom];
    let polyhedra: Vec<_> =
        found.polyhedra.iter().filter_map(|mark| mark.renumbered(|atom| Some(of_text(atom)))).collect();
    found.unchecked.len() == wanted.unchecked.len()
        && polyhedra.len() == wanted.polyhedra.len()
        && polyhedra.iter().all(|mark| wanted.polyhedra.contains(mark))
        && found.centres.len() == wanted.centres.len()
        && found.double_bonds.len() == wanted.double_bonds.len()
        && found.centres.iter().all(|mark| is_centre_of(mark, wanted, &of_text))
        && found
            .double_bonds
            .iter()
            .all(|mark| mark.image_in(&wanted.double_bonds, &of_text).is_some_and(|image| !image.inverted))
}

/// Returns whether a stereocentre of a text has the wanted handedness.
fn is_centre_of(mark: &TetrahedralMark, wanted: &StereoMarks, of_text: &dyn Fn(usize) -> usize) -> bool {
    mark.image_in(&wanted.centres, of_text).is_some_and(|image| !image.inverted)
}

/// Moves the direction of a removed hydrogen to the other neighbour beside the double bond, on the opposite side.
fn copy_directions(written: &Graph, removed: &[bool], numbers: &[Option<usize>], bare: &mut Graph) {
    for bond in written.bonds.iter().filter(|bond| bond.direction.is_some()) {
        let Some(at) = bond.atoms.iter().position(|atom| removed[*atom]) else { continue };
        let (hydrogen, heavy) = (bond.atoms[at], bond.atoms[1 - at]);
        let Some(direction) = bond.direction else { continue };
        // The direction as seen from the heavy atom.
        let to_hydrogen = if bond.atoms[1] == hydrogen { direction } else { direction.reversed() };
        let Some(place) = numbers[heavy] else { continue };
        let mut bonds = bare.bonds.iter_mut().filter(|bond| bond.atoms.contains(&place));
        if let Some(other) = bonds
            .find(|bond| bond.direction.is_none() && matches!(bond.order, Order::Single | Order::Aromatic))
        {
            let away = to_hydrogen.reversed();
            other.direction = Some(if other.atoms[0] == place { away } else { away.reversed() });
        }
    }
}

/// A pending step of the writer.
enum Step {
    /// An atom, the bond before it, and whether it begins a branch.
    Atom(usize, Option<usize>, bool),
    /// The end of a branch.
    Close,
}

impl Graph {
    /// Returns the SMILES of a graph, each part from its first atom on, and by place in the text the atom of the graph.
    fn text(&self) -> (String, Vec<usize>) {
        let neighbours = self.neighbours();
        let mut bare = vec![false; self.atoms.len()];
        self.implied_brackets().for_each(|atom| bare[atom] = true);
        let mut writer = Writer {
            graph: self,
            bare,
            rings: self.ring_closures(&neighbours),
            numbers: vec![None; self.bonds.len()],
            open: Vec::new(),
            text: String::new(),
            order: Vec::new(),
        };
        let mut seen = vec![false; self.atoms.len()];
        for start in 0..self.atoms.len() {
            if seen[start] {
                continue;
            }
            if start > 0 {
                writer.text.push('.');
            }
            let mut steps = vec![Step::Atom(start, None, false)];
            while let Some(step) = steps.pop() {
                let Step::Atom(atom, bond, is_branch) = step else {
                    writer.text.push(')');
                    continue;
                };
                writer.text.push_str(if is_branch { "(" } else { "" });
                seen[atom] = true;
                writer.atom(atom, bond, &neighbours[atom]);
                let next: Vec<(usize, usize)> = neighbours[atom]
                    .iter()
                    .filter(|next| Some(**next) != bond && !writer.rings[**next])
                    .map(|next| (self.bonds[*next].other(atom), *next))
                    .collect();
                // Steps are taken from the end, so they are pushed in reverse. The last neighbour continues the chain.
                for (at, (other, bond)) in next.iter().enumerate().rev() {
                    let is_branch = at + 1 < next.len();
                    if is_branch {
                        steps.push(Step::Close);
                    }
                    steps.push(Step::Atom(*other, Some(*bond), is_branch));
                }
            }
        }
        (writer.text, writer.order)
    }

    /// By bond, whether it closes a ring in a depth-first walk that takes bonds in their order.
    fn ring_closures(&self, neighbours: &[BondsOfAtom]) -> Vec<bool> {
        let mut rings = vec![false; self.bonds.len()];
        let mut is_used = vec![false; self.bonds.len()];
        let mut seen = vec![false; self.atoms.len()];
        for start in 0..self.atoms.len() {
            if seen[start] {
                continue;
            }
            seen[start] = true;
            let mut path = vec![(start, 0)];
            while let Some((atom, next)) = path.pop() {
                let Some(&bond) = neighbours[atom].get(next) else { continue };
                path.push((atom, next + 1));
                if std::mem::replace(&mut is_used[bond], true) {
                    continue;
                }
                let other = self.bonds[bond].other(atom);
                if std::mem::replace(&mut seen[other], true) {
                    rings[bond] = true;
                } else {
                    path.push((other, 0));
                }
            }
        }
        rings
    }
}

struct Writer<'g> {
    graph: &'g Graph,
    /// By atom, whether it needs no brackets.
    bare: Vec<bool>,
    rings: Vec<bool>,
    /// By bond, the number of its ring while that is open.
    numbers: Vec<Option<usize>>,
    /// By ring number minus 1, whether it is open.
    open: Vec<bool>,
    text: String,
    order: Vec<usize>,
}

impl Writer<'_> {
    /// Writes an atom with the bond before it and its ring numbers.
    fn atom(&mut self, atom: usize, bond: Option<usize>, bonds: &[usize]) {
        if let Some(bond) = bond {
            self.bond(bond, atom, false);
        }
        self.order.push(atom);
        self.symbol(atom);
        let rings: Vec<usize> = bonds.iter().copied().filter(|bond| self.rings[*bond]).collect();
        let mut closed = Vec::new();
        for bond in rings {
            let number = match self.numbers[bond].take() {
                Some(number) => {
                    closed.push(number);
                    number
                }
                None => {
                    let number = self.open.iter().position(|open| !open).unwrap_or(self.open.len());
                    if number == self.open.len() {
                        self.open.push(false);
                    }
                    self.open[number] = true;
                    self.numbers[bond] = Some(number);
                    // The bond symbol is written at the opening end.
                    self.bond(bond, atom, true);
                    number
                }
            };
            // Writing to a string cannot fail.
            let _ = match number + 1 {
                digit @ ..10 => write!(self.text, "{digit}"),
                two @ ..100 => write!(self.text, "%{two}"),
                more => write!(self.text, "%({more})"),
            };
        }
        // Numbers become free only behind the atom that closes them.
        closed.into_iter().for_each(|number| self.open[number] = false);
    }

    /// Writes a bond. `atom` is the atom behind it, or, where a ring opens, the atom before it.
    fn bond(&mut self, bond: usize, atom: usize, opens: bool) {
        let bond = &self.graph.bonds[bond];
        let from = if opens { atom } else { bond.other(atom) };
        let is_aromatic = bond.atoms.iter().all(|atom| self.graph.atoms[*atom].aromatic);
        let is_forward = bond.atoms[0] == from;
        self.text.push_str(match (bond.order, bond.direction) {
            (Order::Single | Order::Aromatic, Some(direction)) => match (direction, is_forward) {
                (Direction::Up, true) | (Direction::Down, false) => "/",
                _ => "\\",
            },
            (Order::Single, None) if is_aromatic => "-",
            (Order::Single, None) => "",
            (Order::Double, _) => "=",
            (Order::Triple, _) => "#",
            (Order::Quadruple, _) => "$",
            (Order::Aromatic, None) if is_aromatic => "",
            (Order::Aromatic, None) => ":",
            (Order::Dative, _) if is_forward => "->",
            (Order::Dative, _) => "<-",
            (Order::Any, _) => "~",
        });
    }

    fn symbol(&mut self, at: usize) {
        let Atom { element, isotope, charge, hydrogens, bracket, aromatic, chirality, .. } =
            self.graph.atoms[at];
        let symbol = symbol(element).unwrap_or("*");
        let symbol = if aromatic { symbol.to_lowercase() } else { symbol.to_owned() };
        if !bracket || self.bare[at] {
            return self.text.push_str(&symbol);
        }
        self.text.push('[');
        // Writing to a string cannot fail.
        if isotope > 0 {
            let _ = write!(self.text, "{isotope}");
        }
        self.text.push_str(&symbol);
        let _ = match chirality {
            Some(Chirality::Counterclockwise) => write!(self.text, "@"),
            Some(Chirality::Clockwise) => write!(self.text, "@@"),
            Some(Chirality::SquarePlanar(number)) => write!(self.text, "@SP{number}"),
            Some(Chirality::TrigonalBipyramidal(number)) => write!(self.text, "@TB{number}"),
            Some(Chirality::Octahedral(number)) => write!(self.text, "@OH{number}"),
            Some(Chirality::Other) | None => Ok(()),
        };
        self.text.push_str(&hydrogens_and_charge(hydrogens, charge));
        self.text.push(']');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(smiles: &str) -> Option<String> {
        without_needless_atoms(smiles).unwrap()
    }

    #[test]
    fn hydrogens_and_maps_are_left_out() {
        for (smiles, expected) in [
            ("[C:1]([O:2][H:3])([H:4])([H:5])[H:6]", "CO"),
            ("[H:5][N:1]([H:6])[C:2](=[O:3])[c:4]1[cH:7][cH:8][cH:9][cH:10][cH:11]1", "NC(=O)c1ccccc1"),
            ("[H]n1cccc1", "[nH]1cccc1"),
            ("[H][N+]([H])([H])C", "[NH3+]C"),
            ("[Na+:1].[Cl-:2]", "[Na+].[Cl-]"),
            ("[H]C([2H])([H])C", "C([2H])C"),
            ("c1ccc(-c2ccccc2[O:1][H])cc1", "c1ccc(-c2ccccc2O)cc1"),
            ("[H]C12C3C4C1C5C2C3C45", "C12C3C4C1C1C2C3C41"),
        ] {
            assert_eq!(written(smiles).as_deref(), Some(expected), "{smiles}");
        }
        for smiles in ["CO", "[H]/N=C/C", "[2H]C", "[H+]", "[H][H]"] {
            assert_eq!(written(smiles), None, "{smiles}");
        }
        assert!(without_needless_atoms("C(").is_err());
    }

    /// What RDKit makes of both is the same.
    #[test]
    fn stereo_is_kept() {
        for (smiles, expected) in [
            ("[H][C@](F)(Cl)Br", "[C@H](F)(Cl)Br"),
            ("F[C@]([H])(Cl)Br", "F[C@H](Cl)Br"),
            ("F[C@](Cl)([H])Br", "F[C@@H](Cl)Br"),
            ("F[C@]1([H])[C:4]([H])([H])[C@@:5]1([H])[Cl:6]", "F[C@@H]1C[C@H]1Cl"),
            ("[H]/C(F)=C/Cl", "C(/F)=C/Cl"),
            ("[H]/C(F)=C([H])/Cl", "C(/F)=C/Cl"),
            ("F/C([H])=C(\\[H])Cl", "F/C=C/Cl"),
            ("N[Pt@SP1]([H])(F)[Cl:1]", "N[Pt@SP1]([H])(F)[Cl]"),
            // RDKit keeps no mark of a double bond in a small ring.
            ("[H]/C1=C(/[H])C2=CC(N)=C/C2=C1", "C/1=C\\C2=CC(N)=C/C2=C1"),
            ("C1(\\[H])=C/C(N)=C(\\[H])[C@@]1([H])F", "C/1=C/C(N)=C/[C@H]1F"),
        ] {
            assert_eq!(written(smiles).as_deref(), Some(expected), "{smiles}");
        }
    }
}
