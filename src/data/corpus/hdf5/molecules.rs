//! Reads SPICE, ANI-1x and ANI-1, which have one group per molecule.

use std::collections::HashSet;
use std::sync::Arc;

use rust_hdf5::format::messages::datatype::IeeeFormat;
use rust_hdf5::{H5Dataset, Hdf5Error};

use super::Container;
use super::structure::{Kind, Structure};
use crate::corpus::atoms::Atoms;
use crate::corpus::collect::{CollectedRecord, Collector};
use crate::corpus::labels::Labels;
use crate::corpus::{BatchSink, Context};
use drift_core::chem::elements::atomic_number;
use drift_core::error::excerpt;
use drift_core::{Error, Result};

/// One bohr in Å (CODATA 2018).
const ANGSTROM_PER_BOHR: f64 = 0.529_177_210_903;

/// The dataset with a group's atomic numbers in SPICE and ANI-1x.
const NUMBERS: &str = "atomic_numbers";

/// The same in ANI-1, as element symbols. Its SMILES is stored as one string per character.
const SPECIES: &str = "species";

/// The largest number of characters of a SMILES that is stored in this way.
const MAX_SPLIT_SMILES: usize = 1 << 16;

/// The datasets with coordinates, and their unit in Å if no attribute `units` states another.
const COORDINATES: [(&str, f64); 2] = [("conformations", ANGSTROM_PER_BOHR), ("coordinates", 1.0)];

/// The largest number of atoms of a molecule, hydrogens included.
const MAX_ATOMS: usize = 1 << 17;

/// The number of atoms read at a time: 1.5 MB in double precision.
const SLICE_ATOMS: usize = 1 << 16;

/// Reads all molecules, in the order of their groups' names. Bad conformers and groups are skipped, and so is every link to
/// something that is not read.
///
/// # Errors
/// If no group has a known layout, a unit is unknown, or the file is damaged.
pub(super) fn read(container: &Container<'_>, context: Context<'_>, emit: &mut BatchSink<'_>) -> Result<()> {
    let entries = entries(&container.structure.borrow());
    if !entries.iter().any(|entry| matches!(entry.content, Content::Molecule { .. } | Content::Part(_))) {
        let problem = "an HDF5 file without molecules in a known layout";
        return Err(Error::input(container.name, problem, "drift reads its own stores, SPICE and ANI-1x"));
    }
    let out = Collector::new(container.name.to_owned(), context, emit);
    let mut reader = Reader { container, atoms: Atoms::new(context.options, container.name), out };
    for Entry { path, content } in entries {
        context.job.check()?;
        let title = path.trim_end_matches('/');
        let skipped = match content {
            Content::Molecule { dataset, angstrom, smiles } => {
                let smiles = smiles.then(|| format!("{path}smiles"));
                reader.group(&path, &format!("{path}{dataset}"), angstrom, smiles)?;
                continue;
            }
            Content::Part(reason) => (format!("group {title}"), reason.to_owned()),
            Content::Nothing => (format!("group {title}"), format!("neither coordinates nor `{NUMBERS}`")),
            Content::Unread(reason) => (format!("link {title}"), reason),
        };
        reader.out.push(Err(skipped.1), || skipped.0.clone())?;
    }
    reader.out.finish()
}

/// An item of the file that is a record, or could have been one.
struct Entry {
    /// For a group it ends with `/`, except for the root, whose path is empty.
    path: String,
    content: Content,
}

enum Content {
    /// A group with both datasets: the one of coordinates, its unit in Å, and whether there is a SMILES.
    Molecule { dataset: &'static str, angstrom: f64, smiles: bool },
    /// A group with only one of the two datasets; the text says which one is missing.
    Part(&'static str),
    /// A group without subgroups and without either dataset.
    Nothing,
    /// A link that is not read, with the reason.
    Unread(String),
}

/// Returns the records implied by the links of a file, sorted by path.
fn entries(structure: &Structure) -> Vec<Entry> {
    let parent = |path: &str| path.rsplit_once('/').map_or_else(String::new, |(parent, _)| parent.to_owned());
    let groups = structure.objects.iter().filter(|object| object.kind == Kind::Group);
    let with_groups: HashSet<String> = groups.clone().map(|object| parent(&object.path)).collect();
    let mut entries = Vec::new();
    for path in std::iter::once("").chain(groups.map(|group| group.path.as_str())) {
        let is_leaf = !path.is_empty() && !with_groups.contains(path);
        let path = if path.is_empty() { String::new() } else { format!("{path}/") };
        let has = |dataset: &str| structure.get(&format!("{path}{dataset}")).is_some();
        let coordinates = COORDINATES.into_iter().find(|(dataset, _)| has(dataset));
        let content = match (coordinates, has(NUMBERS) || has(SPECIES)) {
            (Some((dataset, angstrom)), true) => {
                Content::Molecule { dataset, angstrom, smiles: has("smiles") }
            }
            (Some(_), false) => Content::Part("coordinates without `atomic_numbers`"),
            (None, true) => Content::Part("`atomic_numbers` without coordinates"),
            (None, false) if is_leaf => Content::Nothing,
            (None, false) => continue,
        };
        entries.push(Entry { path, content });
    }
    for object in &structure.objects {
        if let Kind::Unread(reason) = &object.kind {
            entries.push(Entry { path: object.path.clone(), content: Content::Unread(reason.clone()) });
        }
    }
    entries.sort_by(|a, b| a.path.cmp(&b.path));
    entries
}

/// Whether an attribute of this name states a unit.
fn is_unit(attribute: &str) -> bool {
    ["unit", "units"].iter().any(|name| attribute.eq_ignore_ascii_case(name))
}

/// Returns a unit of length in Å; `None` for any other text.
fn length(unit: &str) -> Option<f64> {
    match unit.trim().to_lowercase().as_str() {
        "bohr" | "au" | "a.u." | "a0" => Some(ANGSTROM_PER_BOHR),
        "angstrom" | "angstroms" | "ang" | "å" => Some(1.0),
        _ => None,
    }
}

struct Reader<'a, 'e> {
    container: &'a Container<'a>,
    atoms: Atoms,
    out: Collector<'a, 'e>,
}

/// The precision of a dataset's floats.
#[derive(Clone, Copy)]
enum Float {
    Single,
    Double,
}

/// The content of a group.
struct Group {
    /// The SMILES, or else the path.
    molecule: Arc<str>,
    has_smiles: bool,
    /// The path without its final `/`.
    title: String,
    numbers: Vec<u8>,
    coordinates: H5Dataset,
    /// The path of the coordinates.
    path: String,
    conformers: usize,
    float: Float,
    /// The unit of the coordinates, in Å.
    angstrom: f64,
}

impl Reader<'_, '_> {
    /// Reads a group whose path ends with `/`. `dataset` and `smiles` are paths.
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

    /// Returns the content of a group. The inner error says why the group is skipped.
    fn describe(
        &self,
        path: &str,
        dataset: &str,
        angstrom: f64,
        smiles: Option<String>,
    ) -> Result<Result<Group, String>> {
        let by_symbol = self.container.structure.borrow().get(&format!("{path}{NUMBERS}")).is_none();
        let numbers = format!("{path}{}", if by_symbol { SPECIES } else { NUMBERS });
        for needed in [Some(numbers.as_str()), Some(dataset), smiles.as_deref()].into_iter().flatten() {
            if let Err(damaged) = self.container.check(needed) {
                let name = needed.rsplit('/').next().unwrap_or(needed);
                return Ok(Err(format!("`{name}`: {damaged}")));
            }
        }
        let numbers = match self.numbers(&numbers, by_symbol)? {
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
            float if float.ieee_format() == Some(IeeeFormat::Binary32) => Float::Single,
            float if float.ieee_format() == Some(IeeeFormat::Binary64) => Float::Double,
            other => return Ok(Err(format!("`{dataset}` contains {other}, not floats of 4 or 8 bytes"))),
        };
        let angstrom = self.unit(&coordinates, dataset, path.trim_end_matches('/'))?.unwrap_or(angstrom);
        let smiles = self.smiles(smiles)?;
        let has_smiles = smiles.is_some();
        let title = path.trim_end_matches('/').to_owned();
        let molecule = smiles.unwrap_or_else(|| title.as_str().into());
        let path = dataset.to_owned();
        Ok(Ok(Group { molecule, has_smiles, title, numbers, coordinates, path, conformers, float, angstrom }))
    }

    /// Returns the atomic numbers, which are stored as such or by element symbol. The inner error says why the group is skipped.
    fn numbers(&self, path: &str, by_symbol: bool) -> Result<Result<Vec<u8>, String>> {
        let name = if by_symbol { SPECIES } else { NUMBERS };
        let dataset = self.container.open(path)?;
        let atoms = match *dataset.shape() {
            [atoms @ 1..=MAX_ATOMS] => atoms,
            ref shape => return Ok(Err(format!("`{name}` has the shape {shape:?}"))),
        };
        let numbers = if by_symbol {
            dataset.read_strings_lossy().map(|symbols| {
                let number = |symbol: &String| {
                    let symbol = symbol.trim_matches('\0').trim();
                    atomic_number(symbol)
                        .ok_or_else(|| format!("{} is not an element", excerpt(symbol.as_bytes())))
                };
                symbols.iter().map(number).collect()
            })
        } else {
            dataset.read_numeric_slice_as::<i64>(&[0], &[atoms]).map(|numbers| {
                let number = |&n: &i64| u8::try_from(n).map_err(|_| format!("no element has the number {n}"));
                numbers.iter().map(number).collect()
            })
        };
        match numbers {
            Err(Hdf5Error::TypeMismatch(reason)) => Ok(Err(format!("`{name}`: {reason}"))),
            numbers => numbers.map_err(|error| self.container.unreadable(&error)),
        }
    }

    /// Returns the unit that an attribute of the coordinates names, or of their group if they have none, in Å. A group may have a unit of
    /// something else, so only a length counts there.
    fn unit(&self, dataset: &H5Dataset, path: &str, group: &str) -> Result<Option<f64>> {
        let unreadable = |e| self.container.unreadable(&e);
        if let Some(reason) = dataset.attrs_unreadable_reason().map_err(unreadable)? {
            return Err(self.container.inconsistent(path, format!("its attributes: {reason}")));
        }
        let attributes = dataset.attr_names().map_err(unreadable)?;
        if let Some(name) = attributes.iter().find(|name| is_unit(name)) {
            let unit =
                dataset.attr(name).and_then(|attribute| attribute.read_string()).map_err(unreadable)?;
            let unknown = || format!("unknown unit `{unit}`, neither bohr nor angstrom");
            return length(&unit).ok_or_else(|| self.container.inconsistent(path, unknown())).map(Some);
        }
        let root = self.container.file.root_group();
        let group = if group.is_empty() { root } else { root.group(group).map_err(unreadable)? };
        let attributes = group.attr_names().map_err(unreadable)?;
        let Some(name) = attributes.iter().find(|name| is_unit(name)) else { return Ok(None) };
        Ok(group.attr_string(name).ok().and_then(|unit| length(&unit)))
    }

    /// Returns the SMILES of a group, from a dataset of one string, or of one string per character.
    fn smiles(&self, path: Option<String>) -> Result<Option<Arc<str>>> {
        let Some(path) = path else { return Ok(None) };
        let dataset = self.container.open(&path)?;
        if dataset.is_null() || dataset.total_elements() > MAX_SPLIT_SMILES {
            return Ok(None);
        }
        match dataset.read_strings_lossy() {
            Ok(characters) if characters.len() > 1 => Ok(Some(characters.concat().replace('\0', "").into())),
            // Text ends at a zero byte, as in libhdf5.
            Ok(strings) => Ok(strings.first().and_then(|text| text.split('\0').next()).map(Arc::from)),
            Err(Hdf5Error::TypeMismatch(_)) => Ok(None),
            Err(error) => Err(self.container.unreadable(&error)),
        }
    }

    /// Returns the positions of `count` conformers. Single precision is widened without loss.
    fn slice(&self, group: &Group, first: usize, count: usize) -> Result<Vec<f64>> {
        let (start, shape) = ([first, 0, 0], [count, group.numbers.len(), 3]);
        self.container.check_chunks(&group.coordinates, &group.path, first, count)?;
        let values = match group.float {
            Float::Double => group.coordinates.read_slice(&start, &shape),
            Float::Single => group
                .coordinates
                .read_slice::<f32>(&start, &shape)
                .map(|values| values.into_iter().map(f64::from).collect()),
        };
        values.map_err(|e| self.container.unreadable(&e))
    }

    fn conformer(&mut self, group: &Group, positions: &[f64]) -> Result<CollectedRecord, String> {
        self.atoms.clear();
        for (&number, xyz) in group.numbers.iter().zip(positions.chunks_exact(3)) {
            let xyz = [xyz[0], xyz[1], xyz[2]];
            match group.float {
                // Converted back to the stored precision, because the file's own digits count.
                Float::Single if group.angstrom == 1.0 => self.atoms.push_f32(number, xyz.map(|x| x as f32)),
                _ => self.atoms.push_f64(number, xyz.map(|x| x * group.angstrom)),
            }?;
        }
        let key = group.has_smiles.then_some(&*group.molecule);
        let labels = Labels { key, title: Some(&group.title), ..Labels::new(&group.molecule) };
        self.atoms.finish(&labels)
    }
}
