//! Bonds of a molecular graph, and the renumberings of its atoms that leave it as it is.

use smiles_rs::prelude::Smiles;

use super::graph::{SmilesError, aromatic_form};

/// The most renumberings that are looked for: RMSD is computed under each. A molecule with more has many rotors of
/// equal substituents, such as tert-butyl groups.
pub const MAX_SYMMETRIES: usize = 1_000;

/// Element, charge, hydrogens, aromaticity, number of neighbours.
type Kind = (Option<u8>, i8, u8, bool, usize);

/// A molecular graph without stereo; atoms are numbered in SMILES order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MolecularGraph {
    kinds: Vec<Kind>,
    /// Each bond once, the smaller atom first, in order.
    pub bonds: Vec<[usize; 2]>,
    /// The neighbours of each atom with the order of the bond; 4 is aromatic.
    neighbours: Vec<Vec<(usize, u8)>>,
}

impl MolecularGraph {
    /// The graph of `smiles`.
    ///
    /// # Errors
    /// If `smiles` is none.
    pub fn new(smiles: &str) -> Result<Self, SmilesError> {
        let graph = aromatic_form(smiles)?;
        let atoms = graph.nodes().len();
        let mut neighbours: Vec<Vec<(usize, u8)>> = vec![Vec::new(); atoms];
        for (atom, own) in neighbours.iter_mut().enumerate() {
            for edge in graph.edges_for_node(atom) {
                let other = if edge.source() == atom { edge.target() } else { edge.source() };
                own.push((other, order(&edge)));
            }
            own.sort_unstable();
        }
        let bonds = neighbours.iter().enumerate().flat_map(|(atom, own)| {
            own.iter().filter(move |(other, _)| atom < *other).map(move |&(other, _)| [atom, other])
        });
        Ok(MolecularGraph { kinds: kinds(&graph, &neighbours), bonds: bonds.collect(), neighbours })
    }

    /// How many atoms.
    pub fn atoms(&self) -> usize {
        self.kinds.len()
    }

    /// Renumberings that map the graph onto itself, the identity among them; at most [`MAX_SYMMETRIES`]. Atom `i` takes
    /// the place of atom `permutation[i]`.
    ///
    /// Backtracking in SMILES order over atoms that colour refinement cannot tell apart, as RDKit's `GetBestRMS` does
    /// by substructure matches (without its rule for conjugated terminal groups).
    pub fn symmetries(&self) -> Vec<Vec<usize>> {
        let colours = self.colours();
        let mut found = Vec::new();
        let mut image = Vec::with_capacity(self.atoms());
        self.extend(&colours, &mut image, &mut vec![false; self.atoms()], &mut found);
        found
    }

    /// Maps the next atom in every way that fits; goes on until all are mapped.
    fn extend(
        &self,
        colours: &[usize],
        image: &mut Vec<usize>,
        used: &mut [bool],
        found: &mut Vec<Vec<usize>>,
    ) {
        let atom = image.len();
        if atom == self.atoms() {
            found.push(image.clone());
            return;
        }
        // The atom itself first, so that the identity is found first.
        let candidates = std::iter::once(atom).chain((0..self.atoms()).filter(|&other| other != atom));
        for candidate in candidates {
            if found.len() == MAX_SYMMETRIES {
                return;
            }
            if used[candidate] || colours[candidate] != colours[atom] || !self.fits(image, candidate) {
                continue;
            }
            used[candidate] = true;
            image.push(candidate);
            self.extend(colours, image, used, found);
            image.pop();
            used[candidate] = false;
        }
    }

    /// Whether `candidate` is bonded to the images of the earlier neighbours of the next atom, and by the same bonds.
    /// Equal colours have equally many neighbours, so bonds that are kept are all there are.
    fn fits(&self, image: &[usize], candidate: usize) -> bool {
        let earlier = self.neighbours[image.len()].iter().filter(|(other, _)| *other < image.len());
        earlier.into_iter().all(|&(other, order)| self.neighbours[candidate].contains(&(image[other], order)))
    }

    /// Colour refinement (Weisfeiler and Leman): equal only for atoms that no neighbourhood tells apart.
    fn colours(&self) -> Vec<usize> {
        let mut colours = ranks(&self.kinds);
        loop {
            let view = |atom: usize| {
                let mut around: Vec<(u8, usize)> =
                    self.neighbours[atom].iter().map(|&(other, order)| (order, colours[other])).collect();
                around.sort_unstable();
                (colours[atom], around)
            };
            let next = ranks(&(0..self.atoms()).map(view).collect::<Vec<_>>());
            // Refinement only splits; it is done once the number of colours stays.
            if next.iter().max() == colours.iter().max() {
                return next;
            }
            colours = next;
        }
    }
}

fn kinds(graph: &Smiles, neighbours: &[Vec<(usize, u8)>]) -> Vec<Kind> {
    let implicit = graph.implicit_hydrogen_counts();
    let atoms = graph.nodes().iter().enumerate();
    let kinds = atoms.map(|(index, atom)| {
        let hydrogens = atom.hydrogen_count() + implicit.get(index).copied().unwrap_or(0);
        (
            atom.element().map(u8::from),
            atom.charge_value(),
            hydrogens,
            atom.aromatic(),
            neighbours[index].len(),
        )
    });
    kinds.collect()
}

fn order(edge: &smiles_rs::bond::bond_edge::BondEdge) -> u8 {
    use smiles_rs::bond::Bond;
    match edge.bond() {
        _ if edge.is_aromatic() => 4,
        Bond::Single | Bond::Up | Bond::Down => 1,
        Bond::Double => 2,
        Bond::Triple => 3,
        Bond::Quadruple => 5,
    }
}

/// The place of each item among the distinct items in order.
fn ranks<T: Ord>(items: &[T]) -> Vec<usize> {
    let mut distinct: Vec<&T> = items.iter().collect();
    distinct.sort_unstable();
    distinct.dedup();
    items.iter().map(|item| distinct.partition_point(|other| *other < item)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(smiles: &str) -> usize {
        MolecularGraph::new(smiles).unwrap().symmetries().len()
    }

    #[test]
    fn as_many_as_rdkit_finds() {
        // len(mol.GetSubstructMatches(mol, uniquify=False)) of RDKit.
        for (smiles, symmetries) in [
            ("C", 1),
            ("CC", 2),
            ("CCO", 1),
            ("c1ccccc1", 12),
            ("C1=CC=CC=C1", 12),
            ("Cc1ccccc1", 2),
            ("CC(C)(C)C", 24),
            ("CC(=O)[O-]", 1),
            ("FC(F)(F)c1ccc(cc1)C(F)(F)F", 144),
            ("C1CCCCC1", 12),
            ("[NH4+].[Cl-].[Cl-]", 2),
            ("C[C@H](N)C(=O)O", 1),
        ] {
            assert_eq!(count(smiles), symmetries, "{smiles}");
        }
    }

    #[test]
    fn each_keeps_every_bond_and_the_first_is_the_identity() {
        let graph = MolecularGraph::new("CC(C)(C)c1ccc(cc1)C(F)(F)F").unwrap();
        let symmetries = graph.symmetries();
        assert_eq!(symmetries[0], (0..graph.atoms()).collect::<Vec<_>>());
        assert_eq!(symmetries.len(), 72);
        for permutation in &symmetries {
            for [a, b] in &graph.bonds {
                let (a, b) = (permutation[*a], permutation[*b]);
                assert!(graph.bonds.contains(&[a.min(b), a.max(b)]));
            }
        }
    }

    #[test]
    fn many_are_cut_short() {
        assert_eq!(count("CC(C)(C)c1cc(cc(c1)C(C)(C)C)C(C)(C)C"), MAX_SYMMETRIES);
        assert!(MolecularGraph::new("C(").is_err());
    }
}
