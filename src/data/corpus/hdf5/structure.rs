//! The structure of an HDF5 file: every link of every group, and whether a dataset has all the data that its shape claims.
//!
//! rust-hdf5 omits what it does not understand from its lists, reads missing chunks as fill values, and follows datasets into other
//! files. So drift first walks through the file itself. Parts that it does not understand are reported by name, and nothing is left
//! out silently.

use std::collections::HashMap;

use rust_hdf5::format::messages::data_layout::DataLayoutMessage;
use rust_hdf5::format::messages::dataspace::DataspaceMessage;
use rust_hdf5::format::messages::datatype::DatatypeMessage;
use rust_hdf5::format::messages::fill_value::FillValueMessage;
use rust_hdf5::format::messages::filter::{
    FILTER_DEFLATE, FILTER_FLETCHER32, FILTER_SHUFFLE, FilterPipeline,
};

use super::blocks::{Blocks, UNDEFINED};
use super::chunks::{self, Grid};
use super::damaged::{DamagedFile, Hdf5Result, bad};
use super::header::{Header, kind};
use super::heap;
use super::links::{self, CONTEXT, Target};
use super::superblock::{NodeSizes, Superblock};
use crate::corpus::pickle::cursor::Cursor;

/// The largest depth of nested groups.
const MAX_DEPTH: usize = 64;

/// The largest size in bytes of a dataset of text references that is checked.
const MAX_REFERENCES: u64 = 4 << 10;

/// The class of layouts whose data lie in other datasets.
const VIRTUAL: u8 = 3;

/// A link of the file and its target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Object {
    /// The names from the root on, separated by `/`.
    pub path: String,
    pub kind: Kind,
}

/// The target of a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    Group,
    /// A dataset, by the address of its header.
    Dataset(u64),
    /// A named type, which has no data.
    Datatype,
    /// A target that is not read, with the reason.
    Unread(String),
}

/// A file and all its links.
pub(super) struct Structure {
    blocks: Blocks,
    nodes: NodeSizes,
    /// Sorted by path.
    pub objects: Vec<Object>,
}

/// Why a whole file is refused, and where.
pub(super) struct FileRefusal {
    /// The path in the file; empty for the file itself.
    pub path: String,
    pub problem: String,
    /// Whether the data are in other files: valid HDF5, but not supported.
    pub is_elsewhere: bool,
}

impl From<DamagedFile> for FileRefusal {
    fn from(damaged: DamagedFile) -> Self {
        FileRefusal { path: String::new(), problem: damaged.0, is_elsewhere: false }
    }
}

impl Structure {
    /// Walks all groups of a file.
    ///
    /// # Errors
    /// If the links of a group cannot all be read, or a dataset keeps its data in other files.
    pub(super) fn read(mut blocks: Blocks, superblock: &Superblock) -> Result<Structure, FileRefusal> {
        let nodes = extension(&mut blocks, superblock)?;
        let mut walk = Walk { blocks, nodes, objects: Vec::new(), seen: HashMap::new(), groups: Vec::new() };
        let root = Header::read(&mut walk.blocks, superblock.root)?;
        if classify(&root, superblock.root)? != Kind::Group {
            return Err(DamagedFile("its root is not a group".to_owned()).into());
        }
        check_table(&root, superblock.root_table)?;
        attributes(&mut walk.blocks, &root)?;
        walk.seen.insert(superblock.root, String::new());
        walk.group(String::new(), &root, 0)?;
        // An explicit list instead of recursion, because a file may nest groups arbitrarily deep.
        while let Some((path, header, depth)) = walk.groups.pop() {
            walk.group(path, &header, depth)?;
        }
        let Walk { blocks, nodes, mut objects, .. } = walk;
        objects.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        Ok(Structure { blocks, nodes, objects })
    }

    /// Returns the target at a path, if there is one.
    pub(super) fn get(&self, path: &str) -> Option<&Kind> {
        let at = self.objects.binary_search_by(|object| object.path.as_str().cmp(path)).ok()?;
        Some(&self.objects[at].kind)
    }

    /// Checks that a dataset is understood and that all its data exist.
    ///
    /// # Errors
    /// The problem with the dataset.
    pub(super) fn check(&mut self, path: &str) -> Hdf5Result<()> {
        match self.get(path) {
            Some(&Kind::Dataset(address)) => {
                let header = Header::read(&mut self.blocks, address)?;
                dataset(&mut self.blocks, self.nodes, &header)
            }
            Some(Kind::Unread(reason)) => bad(reason.clone()),
            Some(_) => bad("it is not a dataset"),
            None => bad("it is not there"),
        }
    }
}

/// A walk through the groups of a file.
struct Walk {
    blocks: Blocks,
    nodes: NodeSizes,
    objects: Vec<Object>,
    /// The first path of every object, by address.
    seen: HashMap<u64, String>,
    /// Groups whose links are still to be read, with their depth.
    groups: Vec<(String, Header, usize)>,
}

impl Walk {
    fn group(&mut self, path: String, header: &Header, depth: usize) -> Result<(), FileRefusal> {
        let damaged = |damaged: DamagedFile| FileRefusal { path: path.clone(), ..damaged.into() };
        if depth > MAX_DEPTH {
            return Err(damaged(DamagedFile(format!("groups nested deeper than {MAX_DEPTH}"))));
        }
        for link in links::links(&mut self.blocks, self.nodes, header).map_err(damaged)? {
            let path = if path.is_empty() { link.name } else { format!("{path}/{}", link.name) };
            let kind = match link.target {
                Target::Name(reason) => Kind::Unread(reason.to_owned()),
                Target::Object(address, table) => self.object(&path, address, table, depth)?,
            };
            self.objects.push(Object { path, kind });
        }
        Ok(())
    }

    fn object(
        &mut self,
        path: &str,
        address: u64,
        table: Option<(u64, u64)>,
        depth: usize,
    ) -> Result<Kind, FileRefusal> {
        // This also prevents endless walks through a group that contains itself.
        if let Some(first) = self.seen.get(&address) {
            return Ok(Kind::Unread(format!("another name of /{first}")));
        }
        self.seen.insert(address, path.to_owned());
        let header = match Header::read(&mut self.blocks, address) {
            Ok(header) => header,
            Err(damaged) => return Ok(Kind::Unread(format!("its header cannot be read: {damaged}"))),
        };
        match classify(&header, address) {
            Ok(Kind::Group) => {
                if let Err(damaged) = check_table(&header, table) {
                    return Ok(Kind::Unread(damaged.0));
                }
                self.groups.push((path.to_owned(), header, depth + 1));
                Ok(Kind::Group)
            }
            Ok(Kind::Dataset(_)) if is_elsewhere(&header) => Err(FileRefusal {
                path: path.to_owned(),
                problem: "keeps its data in other files or datasets".to_owned(),
                is_elsewhere: true,
            }),
            Ok(Kind::Dataset(_)) if table.is_some() => {
                Ok(Kind::Unread("a dataset that its link calls a group".to_owned()))
            }
            Ok(kind) => Ok(kind),
            Err(damaged) => Ok(Kind::Unread(damaged.0)),
        }
    }
}

/// Returns what kind of object the header at an address describes.
fn classify(header: &Header, address: u64) -> Hdf5Result<Kind> {
    let group = header.has(kind::SYMBOL_TABLE) || header.has(kind::LINK_INFO);
    let has = [kind::DATASPACE, kind::DATATYPE, kind::LAYOUT].map(|kind| header.has(kind));
    let stray = header.has(kind::LINK) || header.has(kind::GROUP_INFO);
    match (group, has) {
        (true, [false, false, false]) => Ok(Kind::Group),
        (false, [true, true, true]) if !stray => Ok(Kind::Dataset(address)),
        (false, [false, true, false]) if !stray => Ok(Kind::Datatype),
        _ => bad("its header is that of neither a group nor a dataset"),
    }
}

/// Compares the addresses that a link repeats with those in the group's header.
fn check_table(header: &Header, repeated: Option<(u64, u64)>) -> Hdf5Result<()> {
    match repeated {
        Some(repeated) if links::table(header)? != Some(repeated) => {
            bad("its link and its header disagree on where its links are")
        }
        _ => Ok(()),
    }
}

/// Returns whether a dataset is a view of others, or its data lie in other files.
fn is_elsewhere(header: &Header) -> bool {
    let is_virtual = |data: &[u8]| data.get(1) == Some(&VIRTUAL);
    header.has(kind::EXTERNAL_FILES) || header.all(kind::LAYOUT).any(|layout| is_virtual(&layout.data))
}

/// Returns the node sizes, which the superblock's extension may state.
fn extension(blocks: &mut Blocks, superblock: &Superblock) -> Hdf5Result<NodeSizes> {
    if superblock.extension == UNDEFINED {
        return Ok(superblock.nodes);
    }
    let header = Header::read(blocks, superblock.extension)?;
    if header.has(kind::SHARED_TABLE) || header.has(kind::DRIVER) {
        return bad("a file in several parts, or whose objects share their descriptions");
    }
    let Some(sizes) = header.one(kind::NODE_SIZES)? else { return Ok(superblock.nodes) };
    let mut cursor = Cursor::new(sizes);
    let (version, chunks, group, symbols) = (cursor.u8()?, cursor.u16()?, cursor.u16()?, cursor.u16()?);
    if version != 0 || [chunks, group, symbols].contains(&0) {
        return bad("B-tree nodes with invalid sizes");
    }
    Ok(NodeSizes { symbols, group, chunks })
}

/// Checks that a dataset's header matches its data.
fn dataset(blocks: &mut Blocks, nodes: NodeSizes, header: &Header) -> Hdf5Result<()> {
    let part =
        |kind| header.one(kind)?.ok_or_else(|| DamagedFile("a dataset without shape, type or data".into()));
    let (space, _) = DataspaceMessage::decode(part(kind::DATASPACE)?, &CONTEXT)?;
    let (datatype, _) = DatatypeMessage::decode(part(kind::DATATYPE)?, &CONTEXT)?;
    let (layout, _) = DataLayoutMessage::decode(part(kind::LAYOUT)?, &CONTEXT)?;
    let is_text = heap::is_text(part(kind::DATATYPE)?)?;
    fill_value(header)?;
    attributes(blocks, header)?;
    let max = space.max_dims.as_ref().unwrap_or(&space.dims);
    if space.dims.iter().zip(max).any(|(dim, max)| dim > max) {
        return bad(format!("its shape {:?} is larger than it may ever be", space.dims));
    }
    let element = u64::from(datatype.element_size());
    let filters = filters(header, element)?;
    let elements = if space.is_null() { Some(0) } else { space.element_count() };
    let Some(bytes) = elements.and_then(|n| n.checked_mul(element)) else {
        return bad(format!("its shape {:?} is larger than any file", space.dims));
    };
    let differs = |stored: u64| bad(format!("its shape {:?} takes {bytes} bytes, not {stored}", space.dims));
    match layout {
        DataLayoutMessage::Contiguous { address: UNDEFINED, .. } if bytes > 0 => bad("it was never written"),
        DataLayoutMessage::Contiguous { .. } if bytes == 0 => Ok(()),
        DataLayoutMessage::Contiguous { address, size } if size == bytes => {
            blocks.check(address, size)?;
            // Only small datasets of text are checked.
            if is_text && size <= MAX_REFERENCES {
                let values = blocks.read(address, size)?;
                heap::check(blocks, &values)?;
            }
            Ok(())
        }
        DataLayoutMessage::Contiguous { size, .. } => differs(size),
        DataLayoutMessage::Compact { data } if data.len() as u64 == bytes => {
            if is_text {
                heap::check(blocks, &data)
            } else {
                Ok(())
            }
        }
        DataLayoutMessage::Compact { data } => differs(data.len() as u64),
        DataLayoutMessage::ChunkedV3 { chunk_dims, b_tree_address } => {
            let Some((&last, chunk)) = chunk_dims.split_last() else { return bad("chunks without a size") };
            if last != element || chunk.len() != space.dims.len() || chunk.contains(&0) || element == 0 {
                return bad(format!("chunks of {chunk:?} elements of {last} bytes"));
            }
            let grid = Grid { shape: &space.dims, chunk, element, filters };
            chunks::check(blocks, nodes.chunks, b_tree_address, &grid)
        }
        // These indexes have checksums. Missing chunks are noticed when they are read.
        DataLayoutMessage::ChunkedV4 { .. } => Ok(()),
        DataLayoutMessage::Virtual { .. } => bad("it keeps its data in other datasets"),
    }
}

/// Returns the number of filters of a dataset whose elements have `element` bytes. The parameters of filters must be valid.
fn filters(header: &Header, element: u64) -> Hdf5Result<usize> {
    let Some(data) = header.one(kind::FILTERS)? else { return Ok(0) };
    let (pipeline, _) = FilterPipeline::decode(data)?;
    for filter in &pipeline.filters {
        let makes_sense = match (filter.id, &filter.cd_values[..]) {
            (FILTER_DEFLATE, values) => matches!(values, [0..=9]),
            (FILTER_SHUFFLE, values) => matches!(values, &[size] if u64::from(size) == element),
            (FILTER_FLETCHER32, values) => values.is_empty(),
            _ => true,
        };
        if !makes_sense {
            return bad(format!("filter {} with parameters that it does not accept", filter.id));
        }
    }
    Ok(pipeline.filters.len())
}

/// Checks the names of attributes, and that their texts exist: units decide the meaning of numbers.
fn attributes(blocks: &mut Blocks, header: &Header) -> Hdf5Result<()> {
    for attribute in header.all(kind::ATTRIBUTE) {
        let mut cursor = Cursor::new(&attribute.data);
        let (version, flags) = (cursor.u8()?, cursor.u8()?);
        let lengths = [cursor.u16()?, cursor.u16()?, cursor.u16()?].map(usize::from);
        if !(1..=3).contains(&version) || version == 3 && cursor.u8()? > 1 {
            return bad("an attribute of an unknown version");
        }
        let padded = |len: usize| if version == 1 { len.next_multiple_of(8) } else { len };
        let name = &cursor.take(padded(lengths[0]))?[..lengths[0]];
        if name.iter().position(|&b| b == 0) != Some(name.len().wrapping_sub(1)) {
            return bad("an attribute whose name has another length than announced");
        }
        let [datatype, _space] = [cursor.take(padded(lengths[1]))?, cursor.take(padded(lengths[2]))?];
        if (flags == 0 || version == 1) && heap::is_text(datatype)? {
            // One text; the bytes behind it are padding.
            let values = cursor.take(cursor.remaining().min(16))?;
            heap::check(blocks, values)?;
        }
    }
    Ok(())
}

/// Refuses kinds of fill values that libhdf5 does not know.
fn fill_value(header: &Header) -> Hdf5Result<()> {
    if let Some(data) = header.one(kind::FILL_VALUE)? {
        let (fill, _) = FillValueMessage::decode(data)?;
        if fill.alloc_time > 3 || fill.fill_write_time > 2 {
            return bad("a fill value of an unknown kind");
        }
    }
    if let Some(data) = header.one(kind::OLD_FILL_VALUE)? {
        let mut cursor = Cursor::new(data);
        let len = cursor.u32()?;
        cursor.take(len as usize)?;
    }
    Ok(())
}
