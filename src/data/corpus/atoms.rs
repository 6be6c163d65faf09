//! Builds conformers from bare atoms, for all formats without text.
//!
//! Atoms are added with hydrogens if the file has them, and with bonds if the file has those. The result is a conformer of the heavy atoms in file order, with a chain of bare atoms as its skeleton.

use std::sync::Arc;

use super::collect::CollectedRecord;
use super::frame::{self, fixed};
use super::labels::Labels;
use super::perceive::{BondCounts, check_bonds, perceive};
use super::smiles_order::{OrderedAtoms, SmilesOrder};
use super::{AtomOrder, Conformer, Frame, ReadOptions};
use drift_core::chem::elements::{HYDROGEN, symbol};
use drift_core::chem::{Graph, Mismatch};
use drift_core::encoding::{Fixed, NumberError, Reading};

/// The tolerance for heights that count as equal, in Å (`hasNonZeroZCoords` in RDKit's `Conformer.h`).
const LEVEL_ANGSTROM: f64 = 1e-3;

/// Collects the atoms of one molecule after another, hydrogens included.
///
/// Numbers are truncated exactly as they arrive (`f32` and decimal text keep their own digits). They are also kept in double
/// precision: for bonds, for stereo, and for frames, where the rotated positions are truncated.
///
/// Usage: [`push_text`](Self::push_text), [`push_f32`](Self::push_f32) or [`push_f64`](Self::push_f64) for each atom,
/// [`set_structure`](Self::set_structure) if the file has bonds, [`finish`](Self::finish) for each molecule, and
/// [`clear`](Self::clear) after a bad one.
#[derive(Debug)]
pub struct Atoms {
    frame: Frame,
    reading: Reading,
    numbers: Vec<u8>,
    fixed: Vec<[Fixed; 3]>,
    angstrom: Vec<[f64; 3]>,
    /// Atoms that the file names as isotopes (D and T), with their mass numbers.
    isotopes: Vec<(usize, u32)>,
    structure: Option<Arc<Graph>>,
    /// The structure that was shared last.
    shared: Option<Arc<Graph>>,
    smiles: SmilesOrder,
}

impl Atoms {
    /// Returns an empty collection for a file with this name. Molecules get the frame and the encoding of `options`.
    pub fn new(options: &ReadOptions, file: &str) -> Self {
        Atoms {
            frame: options.frame,
            reading: options.reading,
            numbers: Vec::new(),
            fixed: Vec::new(),
            angstrom: Vec::new(),
            isotopes: Vec::new(),
            structure: None,
            shared: None,
            smiles: SmilesOrder::new(&options.smiles, file),
        }
    }

    /// Returns the number of atoms, hydrogens included.
    pub fn len(&self) -> usize {
        self.numbers.len()
    }

    /// Returns whether there are no atoms.
    pub fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    /// Returns whether all atoms have the same z, within RDKit's tolerance of 10⁻³ Å.
    pub(crate) fn is_level(&self) -> bool {
        let first = self.angstrom.first().map_or(0.0, |point| point[2]);
        self.angstrom.iter().all(|point| (point[2] - first).abs() <= LEVEL_ANGSTROM)
    }

    /// Returns whether all atoms lie in the plane z = 0, within RDKit's tolerance of 10⁻³ Å.
    pub(crate) fn is_at_zero(&self) -> bool {
        self.angstrom.iter().all(|point| point[2].abs() <= LEVEL_ANGSTROM)
    }

    /// Drops the atoms.
    pub fn clear(&mut self) {
        self.numbers.clear();
        self.fixed.clear();
        self.angstrom.clear();
        self.isotopes.clear();
        self.structure = None;
    }

    /// Makes a structure that conformers share. A structure equal to the last one is replaced by it, so that derived data can be
    /// cached.
    ///
    /// # Errors
    /// A reason: a bond to an atom that does not exist or to itself, or two bonds between the same atoms.
    pub fn share(&mut self, structure: Graph) -> Result<Arc<Graph>, String> {
        if let Some(last) = self.shared.as_ref().filter(|last| ***last == structure) {
            return Ok(last.clone());
        }
        check_bonds(&structure)?;
        Ok(self.shared.insert(Arc::new(structure)).clone())
    }

    /// Sets the bonds of the current molecule. Its atoms must be the ones that are added.
    pub(crate) fn set_structure(&mut self, structure: Arc<Graph>) {
        self.structure = Some(structure);
    }

    /// Returns the bonds of the current molecule.
    pub fn structure(&self) -> Option<&Arc<Graph>> {
        self.structure.as_ref()
    }

    /// Labels the last atom as an isotope, for files without a structure.
    pub(crate) fn label_isotope(&mut self, mass_number: u32) {
        if let Some(last) = self.numbers.len().checked_sub(1) {
            self.isotopes.push((last, mass_number));
        }
    }

    /// Adds an atom whose position, in Å, is decimal text.
    ///
    /// # Errors
    /// A reason: the text is not a finite number, or out of range.
    pub fn push_text(&mut self, element: u8, xyz: [&str; 3]) -> Result<(), String> {
        let number = self.reading.encoding.number();
        let at = |axis: usize| {
            let text = xyz[axis];
            let value = number.quantize_text(text, axis);
            value.map_err(|e| format!("{}: {e}", drift_core::error::excerpt(text.as_bytes())))
        };
        // All three are converted before anything is stored, so that the lists keep equal lengths.
        let fixed = [at(0)?, at(1)?, at(2)?];
        // Rust's own parser accepts every decimal number; the fallback is accurate to the last decimal.
        let exact = |axis: usize| {
            let parsed = xyz[axis].trim_ascii().parse();
            parsed.unwrap_or_else(|_| number.angstrom(fixed[axis], axis).unwrap_or_default())
        };
        self.angstrom.push([exact(0), exact(1), exact(2)]);
        self.fixed.push(fixed);
        self.numbers.push(element);
        Ok(())
    }

    /// Adds an atom with a position in Å.
    ///
    /// # Errors
    /// A reason: a coordinate is not finite, or out of range.
    pub(crate) fn push_f32(&mut self, number: u8, xyz: [f32; 3]) -> Result<(), String> {
        let at = |axis: usize| self.reading.encoding.number().quantize_f32(xyz[axis], axis);
        self.push(number, xyz.map(f64::from), [at(0), at(1), at(2)])
    }

    /// Adds an atom with a position in Å.
    ///
    /// # Errors
    /// A reason: a coordinate is not finite, or out of range.
    pub(crate) fn push_f64(&mut self, number: u8, xyz: [f64; 3]) -> Result<(), String> {
        let at = |axis: usize| self.reading.encoding.number().quantize(xyz[axis], axis);
        self.push(number, xyz, [at(0), at(1), at(2)])
    }

    fn push(
        &mut self,
        number: u8,
        exact: [f64; 3],
        fixed: [Result<Fixed, NumberError>; 3],
    ) -> Result<(), String> {
        let mut values = [0; 3];
        for (axis, value) in fixed.into_iter().enumerate() {
            values[axis] = value.map_err(|e| format!("atom {}: {}: {e}", self.len() + 1, exact[axis]))?;
        }
        self.fixed.push(values);
        self.angstrom.push(exact);
        self.numbers.push(number);
        Ok(())
    }

    /// Returns the conformer of the atoms since the last molecule. The atoms are dropped in any case.
    ///
    /// # Errors
    /// A reason: no heavy atom, an unknown element, a coordinate out of range, or bonds for another number of atoms.
    pub(super) fn finish(&mut self, labels: &Labels<'_>) -> Result<CollectedRecord, String> {
        // The atoms are dropped in any case, so that a bad molecule leaves none for the next one.
        let conformer = self.conformer(labels);
        self.clear();
        let finished = conformer?;
        self.reading.keep(&finished.conformer.coordinates)?;
        Ok(finished)
    }

    /// Combines all data on a molecule: `numbers` and `angstrom` of all atoms, hydrogens included, exactly as in the file; `fixed`,
    /// the same truncated; `structure`, if the file has bonds; and `labels`.
    fn conformer(&mut self, labels: &Labels<'_>) -> Result<CollectedRecord, String> {
        if let Some(structure) = &self.structure
            && structure.atoms.len() != self.numbers.len()
        {
            return Err(format!("bonds of {} atoms, {} found", structure.atoms.len(), self.numbers.len()));
        }
        match self.in_smiles_order(labels) {
            Err(reason) if !self.smiles.is_required() => {
                let conformer = self.in_file_order(labels.molecule)?;
                Ok(CollectedRecord { in_file_order: Some(reason), ..conformer.into() })
            }
            outcome => outcome,
        }
    }

    /// Returns the conformer of the heavy atoms in the order of the file.
    ///
    /// # Errors
    /// A reason: no heavy atom, an unknown element, or as `coordinates`.
    fn in_file_order(&self, molecule: &Arc<str>) -> Result<Conformer, String> {
        let mut skeleton = String::with_capacity(self.len() * 5);
        for &number in &self.numbers {
            let symbol = symbol(number).ok_or_else(|| format!("no element has the number {number}"))?;
            // Texts have blocks only for heavy atoms.
            if number != HYDROGEN {
                skeleton.extend(["[", symbol, "]<>"]);
            }
        }
        if skeleton.is_empty() {
            return Err("no heavy atom".to_owned());
        }
        let heavy = (0..self.len()).filter(|&at| self.numbers[at] != HYDROGEN);
        let conformer = Conformer::new(molecule.clone(), skeleton.into(), self.coordinates(heavy)?);
        Ok(Conformer { order: AtomOrder::File, ..conformer })
    }

    /// Returns the conformer with its atoms in the order of the molecule's SMILES.
    ///
    /// # Errors
    /// A reason: the molecule has no SMILES, or its atoms do not match it.
    fn in_smiles_order(&mut self, labels: &Labels<'_>) -> Result<CollectedRecord, String> {
        // Of isomers pooled under one key, choose the one that specifies all stereo of the coordinates.
        for (isomer, _) in labels.pool.iter().flat_map(|pool| &pool.isomers) {
            if let Ok(ordered) = self.ordered(isomer)?
                && ordered.open.is_empty()
            {
                let name = labels.own_names().next().or(labels.key);
                return self.finished(ordered, name, labels);
            }
        }
        let smiles = self.smiles.smiles(labels)?.to_owned();
        let ordered = self.ordered(&smiles)?.map_err(|mismatch| self.explained(&mismatch))?;
        self.finished(ordered, labels.own_names().next(), labels)
    }

    /// Returns why the atoms are not those of a SMILES. Files of heavy atoms alone need a reason of their own.
    fn explained(&self, mismatch: &Mismatch) -> String {
        let is_bare = self.structure.is_none() && !self.numbers.contains(&HYDROGEN);
        match mismatch {
            Mismatch::Formula { .. } if is_bare => {
                format!("{mismatch}; the file has no hydrogens, and formats without bonds need all of them")
            }
            _ => mismatch.to_string(),
        }
    }

    /// Returns a conformer in the order of a SMILES, with its name if one is needed; fails like `coordinates`.
    fn finished(
        &self,
        ordered: OrderedAtoms,
        name: Option<&str>,
        labels: &Labels<'_>,
    ) -> Result<CollectedRecord, String> {
        let open_stereo = (!ordered.open.is_empty()).then(|| ordered.open.to_string());
        let coordinates = self.coordinates(ordered.order.iter().map(|at| *at as usize))?;
        let conformer = Conformer {
            id: name.filter(|_| self.smiles.is_required()).map(Into::into),
            notes: ordered.notes,
            pool: labels.pool.cloned(),
            ..Conformer::new(ordered.smiles, ordered.skeleton, coordinates)
        };
        Ok(CollectedRecord { open_stereo, ..conformer.into() })
    }

    /// Returns the coordinates of some atoms in order, in the frame of these atoms: hydrogens that the text lacks do not count.
    ///
    /// # Errors
    /// A reason: a coordinate is out of range in this frame.
    fn coordinates(&self, order: impl Iterator<Item = usize>) -> Result<Vec<[Fixed; 3]>, String> {
        if self.frame == Frame::Keep {
            return Ok(order.map(|at| self.fixed[at]).collect());
        }
        let (numbers, mut positions): (Vec<u8>, Vec<[f64; 3]>) =
            order.map(|at| (self.numbers[at], self.angstrom[at])).unzip();
        frame::place(self.frame, &numbers, &mut positions);
        positions.into_iter().map(|position| fixed(position, self.reading.encoding)).collect()
    }

    /// Returns the atom order of a SMILES.
    ///
    /// # Errors
    /// A reason, if the distances imply no molecule at all. The inner error says why the atoms do not match the SMILES.
    fn ordered(&mut self, smiles: &str) -> Result<Result<OrderedAtoms, Mismatch>, String> {
        if let Some(structure) = &self.structure {
            return Ok(self.smiles.order(smiles, structure, &self.angstrom));
        }
        match self.perceived(smiles, None)? {
            // If distances imply other bonds than the SMILES has, the SMILES decides which of the doubtful bonds exist.
            Err(mismatch @ (Mismatch::Bonds | Mismatch::Atoms(_))) => {
                let wanted = self.smiles.bonds_by_elements(smiles);
                match wanted.map(|wanted| self.perceived(smiles, Some(&wanted))) {
                    Some(Ok(Ok(ordered))) => Ok(Ok(ordered)),
                    _ => Ok(Err(mismatch)),
                }
            }
            outcome => Ok(outcome),
        }
    }

    /// Returns the atom order if bonds are perceived from distances.
    ///
    /// # Errors
    /// A reason, if the distances imply no molecule at all.
    fn perceived(
        &mut self,
        smiles: &str,
        wanted: Option<&BondCounts>,
    ) -> Result<Result<OrderedAtoms, Mismatch>, String> {
        let mut structure = perceive(&self.numbers, &self.angstrom, wanted)?;
        for (atom, mass_number) in &self.isotopes {
            structure.atoms[*atom].isotope = *mass_number;
        }
        let structure = self.share(structure)?;
        Ok(self.smiles.order(smiles, &structure, &self.angstrom))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use drift_core::chem::{Atom, Bond, Order};

    #[test]
    fn hydrogens_are_left_out() {
        let mut atoms = Atoms::new(&ReadOptions::default(), "file");
        let mut read = |numbers: &[u8]| {
            for (at, number) in numbers.iter().enumerate() {
                atoms.push_f64(*number, [at as f64, 0.0, 0.0]).unwrap();
            }
            atoms.finish(&Labels::new(&"CO".into())).map(|finished| finished.conformer)
        };
        let conformer = read(&[6, 1, 8]).unwrap();
        assert_eq!(&*conformer.skeleton, "[C]<>[O]<>");
        assert_eq!(conformer.coordinates, [[0, 0, 0], [20_000, 0, 0]]);
        assert_eq!(conformer.order, AtomOrder::File);
        assert_eq!(read(&[1]), Err("no heavy atom".to_owned()));
        assert!(read(&[0]).is_err());
    }

    #[test]
    fn the_builder_truncates_each_kind_its_own_way() {
        let mut atoms = Atoms::new(&ReadOptions::default(), "file");
        atoms.push_text(6, ["1.12829", "-0.00009", "1e1"]).unwrap();
        // The float32 nearest to 1.3 lies below it.
        atoms.push_f32(6, [1.3, 0.0, -2.5]).unwrap();
        atoms.push_f64(6, [1.1282, 0.0, -2.5]).unwrap();
        assert!(atoms.push_text(6, ["nan", "0", "0"]).unwrap_err().contains("not finite"));
        assert!(atoms.push_f64(6, [1e6, 0.0, 0.0]).unwrap_err().starts_with("atom 4: 1000000: beyond"));
        assert!(atoms.push_f32(6, [f32::INFINITY, 0.0, 0.0]).is_err());
        let conformer = atoms.finish(&Labels::new(&"x".into())).unwrap().conformer;
        assert_eq!(conformer.coordinates, [[11_282, 0, 100_000], [12_999, 0, -25_000], [11_282, 0, -25_000]]);
        assert!(atoms.is_empty());
    }

    #[test]
    fn structures_are_checked_and_shared() {
        let chain = |bonds: &[[usize; 2]]| Graph {
            atoms: vec![Atom { element: 6, ..Atom::default() }; 3],
            bonds: bonds.iter().map(|&bond| Bond::new(bond, Order::Single)).collect(),
            ..Graph::default()
        };
        let mut atoms = Atoms::new(&ReadOptions::default(), "file");
        let first = atoms.share(chain(&[[0, 1], [2, 1]])).unwrap();
        assert!(Arc::ptr_eq(&first, &atoms.share(chain(&[[0, 1], [2, 1]])).unwrap()));
        assert!(!Arc::ptr_eq(&first, &atoms.share(chain(&[[0, 1]])).unwrap()));
        for (bonds, reason) in [
            (&[[0, 3]][..], "a bond to atom 4, but there are 3"),
            (&[[1, 1]], "a bond of atom 2 to itself"),
            (&[[0, 1], [1, 2], [1, 0]], "two bonds between atoms 1 and 2"),
        ] {
            assert_eq!(atoms.share(chain(bonds)).unwrap_err(), reason);
        }
        atoms.push_f64(6, [0.0; 3]).unwrap();
        atoms.set_structure(first);
        let reason = atoms.finish(&Labels::new(&"x".into())).unwrap_err();
        assert_eq!(reason, "bonds of 3 atoms, 1 found");
    }

    #[test]
    fn the_principal_frame_turns_what_the_file_says() {
        let mut atoms =
            Atoms::new(&ReadOptions { frame: Frame::Principal, ..ReadOptions::default() }, "file");
        atoms.push_text(6, ["0", "1.00005", "0"]).unwrap();
        atoms.push_text(6, ["0", "-1.00005", "0"]).unwrap();
        let conformer = atoms.finish(&Labels::new(&"x".into())).unwrap().conformer;
        assert_eq!(conformer.coordinates.iter().map(|c| c[0].abs()).collect::<Vec<_>>(), [10_000, 10_000]);
    }
}
