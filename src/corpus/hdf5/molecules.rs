//! Reads SPICE and ANI-1x: a group per molecule.

use std::sync::Arc;

use rust_hdf5::{DatatypeMessage, H5Dataset, Hdf5Error};

use super::Container;
use crate::corpus::atoms::Atoms;
use crate::corpus::collect::Collector;
use crate::corpus::{Conformer, Context, Emit};
use crate::error::{Error, Result};

/// Å in one bohr (CODATA 2018).
pub(super) const ANGSTROM_PER_BOHR: f64 = 0.529_177_210_903;

/// The dataset that names a group's elements in both layouts.
const NUMBERS: &str = "atomic_numbers";

/// The datasets that hold coordinates, and Å in their unit where no attribute `units` says otherwise.
const COORDINATES: [(&str, f64); 2] = [("conformations", ANGSTROM_PER_BOHR), ("coordinates", 1.0)];

/// The most atoms, with hydrogens, that a molecule may have.
const MAX_ATOMS: usize = 1 << 17;

/// Atoms that are read at a time: 1.5 MB in double precision.
const SLICE_ATOMS: usize = 1 << 16;

/// Reads all molecules, in the order of their groups' names. A bad conformer or group is skipped.
///
/// # Errors
/// If no group has one of the layouts, a unit is unknown, or the file is damaged.
pub(super) fn read(container: &Container<'_>, context: Context<'_>, emit: &mut Emit<'_>) -> Result<()> {
    let mut paths = container.file.dataset_names();
    paths.sort_unstable();
    let out = Collector::new(container.name.to_owned(), context, emit);
    let mut reader = Reader { container, atoms: Atoms::new(context.options), out };
    let mut groups = 0;
    for path in paths.iter().filter(|p| p.rsplit('/').next() == Some(NUMBERS)) {
        // Empty at the root, else with the `/` at its end.
        let group = &path[..path.len() - NUMBERS.len()];
        let has = |dataset: &str| paths.binary_search(&format!("{group}{dataset}")).is_ok();
        if let Some((dataset, angstrom)) = COORDINATES.into_iter().find(|(dataset, _)| has(dataset)) {
            groups += 1;
            context.job.check()?;
            let smiles = has("smiles").then(|| format!("{group}smiles"));
            reader.group(group, &format!("{group}{dataset}"), angstrom, smiles)?;
        }
    }
    if groups == 0 {
        let problem = "an HDF5 file without molecules in a known layout";
        return Err(Error::input(container.name, problem, "drift reads its own stores, SPICE and ANI-1x"));
    }
    reader.out.finish()
}

struct Reader<'a, 'e> {
    container: &'a Container<'a>,
    atoms: Atoms,
    out: Collector<'a, 'e>,
}

/// The floats that a dataset holds.
#[derive(Clone, Copy)]
enum Float {
    Single,
    Double,
}

/// What a group holds.
struct Group {
    molecule: Arc<str>,
    numbers: Vec<u8>,
    coordinates: H5Dataset,
    conformers: usize,
    float: Float,
    /// Å in the unit of the coordinates.
    angstrom: f64,
}

impl Reader<'_, '_> {
    /// Reads a group, whose path ends with `/`; `dataset` and `smiles` are paths.
    fn group(&mut self, path: &str, dataset: &str, angstrom: f64, smiles: Option<String>) -> Result<()> {
        let title = path.trim_end_matches('/');
        let group = match self.describe(path, dataset, angstrom, smiles)? {
            Ok(group) => group,
            Err(reason) => return self.out.push(Err(reason), || format!("group {title}")),
        };
        let atoms = group.numbers.len();
        let at_once = (SLICE_ATOMS / atoms).max(1);
        for first in (0..group.conformers).step_by(at_once) {
            let values = self.slice(&group, first, at_once.min(group.conformers - first))?;
            for (index, positions) in values.chunks_exact(atoms * 3).enumerate() {
                let conformer = self.conformer(&group, positions);
                self.out.push(conformer, || format!("group {title}, conformer {}", first + index + 1))?;
            }
        }
        Ok(())
    }

    /// What a group holds; the inner error is why it is skipped.
    fn describe(
        &self,
        path: &str,
        dataset: &str,
        angstrom: f64,
        smiles: Option<String>,
    ) -> Result<Result<Group, String>> {
        let numbers = match self.numbers(&format!("{path}{NUMBERS}"))? {
            Ok(numbers) => numbers,
            Err(reason) => return Ok(Err(reason)),
        };
        let coordinates = self.container.open(dataset)?;
        let conformers = match *coordinates.shape() {
            [conformers, atoms, 3] if atoms == numbers.len() => conformers,
            ref shape => {
                let atoms = numbers.len();
                return Ok(Err(format!("`{dataset}` has the shape {shape:?}, not [conformers, {atoms}, 3]")));
            }
        };
        let float = match coordinates.datatype().map_err(|e| self.container.unreadable(&e))? {
            DatatypeMessage::FloatingPoint { size: 4, .. } => Float::Single,
            DatatypeMessage::FloatingPoint { size: 8, .. } => Float::Double,
            other => return Ok(Err(format!("`{dataset}` holds {other}, not floats of 4 or 8 bytes"))),
        };
        let angstrom = self.unit(&coordinates, dataset)?.unwrap_or(angstrom);
        let molecule = self.title(smiles)?.unwrap_or_else(|| path.trim_end_matches('/').into());
        Ok(Ok(Group { molecule, numbers, coordinates, conformers, float, angstrom }))
    }

    /// The atomic numbers; the inner error is why the group is skipped.
    fn numbers(&self, path: &str) -> Result<Result<Vec<u8>, String>> {
        let dataset = self.container.open(path)?;
        let atoms = match *dataset.shape() {
            [atoms @ 1..=MAX_ATOMS] => atoms,
            ref shape => return Ok(Err(format!("`{NUMBERS}` has the shape {shape:?}"))),
        };
        match dataset.read_numeric_slice_as::<i64>(&[0], &[atoms]) {
            Ok(numbers) => {
                let number = |&n: &i64| u8::try_from(n).map_err(|_| format!("no element has the number {n}"));
                Ok(numbers.iter().map(number).collect())
            }
            Err(Hdf5Error::TypeMismatch(reason)) => Ok(Err(format!("`{NUMBERS}`: {reason}"))),
            Err(error) => Err(self.container.unreadable(&error)),
        }
    }

    /// Å in the unit that the attribute `units` names, if there is one.
    fn unit(&self, dataset: &H5Dataset, path: &str) -> Result<Option<f64>> {
        let attributes = dataset.attr_names().map_err(|e| self.container.unreadable(&e))?;
        if !attributes.iter().any(|a| a == "units") {
            return Ok(None);
        }
        let unit = dataset
            .attr("units")
            .and_then(|attribute| attribute.read_string())
            .map_err(|e| self.container.unreadable(&e))?;
        match unit.to_lowercase().as_str() {
            "bohr" | "au" | "a.u." | "a0" => Ok(Some(ANGSTROM_PER_BOHR)),
            "angstrom" | "angstroms" | "ang" | "å" => Ok(Some(1.0)),
            _ => Err(self
                .container
                .inconsistent(path, format!("unknown unit `{unit}`, neither bohr nor angstrom"))),
        }
    }

    /// The SMILES of a group, if it is a dataset of one string.
    fn title(&self, path: Option<String>) -> Result<Option<Arc<str>>> {
        let Some(path) = path else { return Ok(None) };
        let dataset = self.container.open(&path)?;
        if dataset.is_null() || dataset.total_elements() != 1 {
            return Ok(None);
        }
        match dataset.read_strings_lossy() {
            Ok(strings) => Ok(strings.first().map(|s| s.as_str().into())),
            Err(Hdf5Error::TypeMismatch(_)) => Ok(None),
            Err(error) => Err(self.container.unreadable(&error)),
        }
    }

    /// The positions of `count` conformers; single precision widened, which loses nothing.
    fn slice(&self, group: &Group, first: usize, count: usize) -> Result<Vec<f64>> {
        let (start, shape) = ([first, 0, 0], [count, group.numbers.len(), 3]);
        let values = match group.float {
            Float::Double => group.coordinates.read_slice(&start, &shape),
            Float::Single => group
                .coordinates
                .read_slice::<f32>(&start, &shape)
                .map(|values| values.into_iter().map(f64::from).collect()),
        };
        values.map_err(|e| self.container.unreadable(&e))
    }

    fn conformer(&mut self, group: &Group, positions: &[f64]) -> Result<Conformer, String> {
        self.atoms.clear();
        for (&number, xyz) in group.numbers.iter().zip(positions.chunks_exact(3)) {
            let xyz = [xyz[0], xyz[1], xyz[2]];
            match group.float {
                // Back to what the file holds, whose own digits count.
                Float::Single if group.angstrom == 1.0 => self.atoms.push_f32(number, xyz.map(|x| x as f32)),
                _ => self.atoms.push_f64(number, xyz.map(|x| x * group.angstrom)),
            }?;
        }
        self.atoms.finish(group.molecule.clone())
    }
}
