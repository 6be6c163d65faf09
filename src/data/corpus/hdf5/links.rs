//! Reads all links of a group, or fails.
//!
//! Source: HDF5 File Format Specification 3.0, sections III.A (B-trees of version 1), III.B (symbol tables), III.D (local
//! heaps), IV.A.2 (links).

use rust_hdf5::format::FormatContext;
use rust_hdf5::format::dense_link::read_dense_links;
use rust_hdf5::format::messages::link::{LinkMessage, LinkTarget};
use rust_hdf5::format::messages::link_info::LinkInfoMessage;

use super::blocks::{Blocks, UNDEFINED};
use super::damaged::{Hdf5Result, bad};
use super::header::{Header, kind};
use super::superblock::NodeSizes;
use super::tree::Neighbours;
use crate::corpus::pickle::cursor::Cursor;

/// The sizes of addresses and lengths.
pub(super) const CONTEXT: FormatContext = FormatContext { sizeof_addr: 8, sizeof_size: 8 };

/// The end marker of a heap's list of free blocks.
const NO_FREE_BLOCK: u64 = 1;

/// A link of a group.
pub(super) struct Link {
    /// Its name, without the path of the group.
    pub name: String,
    pub target: Target,
}

/// The target of a link.
pub(super) enum Target {
    /// The header of an object, and the B-tree and heap of a group if the link repeats them.
    Object(u64, Option<(u64, u64)>),
    /// Another name, inside or outside of the file.
    Name(&'static str),
}

/// Returns the links of a group with this header.
pub(super) fn links(blocks: &mut Blocks, nodes: NodeSizes, header: &Header) -> Hdf5Result<Vec<Link>> {
    let links = match table(header)? {
        Some((tree, heap)) => Table::read(blocks, nodes, tree, heap)?,
        None => messages(blocks, header)?,
    };
    if let Some(link) = links.iter().find(|link| link.name.is_empty() || link.name.contains('/')) {
        return bad(format!("a link whose name is `{}`", link.name));
    }
    Ok(links)
}

/// Returns the B-tree and heap of a group that has a symbol table.
pub(super) fn table(header: &Header) -> Hdf5Result<Option<(u64, u64)>> {
    let Some(data) = header.one(kind::SYMBOL_TABLE)? else { return Ok(None) };
    let mut cursor = Cursor::new(data);
    Ok(Some((cursor.u64()?, cursor.u64()?)))
}

/// Returns the links of a group that stores them as messages: few in its header, or many in a heap.
fn messages(blocks: &mut Blocks, header: &Header) -> Hdf5Result<Vec<Link>> {
    let mut found = Vec::new();
    for message in header.all(kind::LINK) {
        found.push(LinkMessage::decode(&message.data, &CONTEXT)?.0);
    }
    if let Some(info) = header.one(kind::LINK_INFO)? {
        let (info, _) = LinkInfoMessage::decode(info, &CONTEXT)?;
        found.extend(read_dense_links(&info, &CONTEXT, blocks)?);
    }
    // Sorted, so that equal names are adjacent.
    found.sort_by(|a, b| a.name.cmp(&b.name));
    if let Some(pair) = found.windows(2).find(|pair| pair[0].name == pair[1].name) {
        return bad(format!("two links of the name `{}`", pair[0].name));
    }
    let target = |target| match target {
        LinkTarget::Hard { address } => Target::Object(address, None),
        LinkTarget::Soft { .. } => Target::Name("a soft link, not followed"),
        LinkTarget::External { .. } => Target::Name("a link to another file, not followed"),
        LinkTarget::UserDefined { .. } => Target::Name("a link of an unknown kind"),
    };
    Ok(found.into_iter().map(|link| Link { name: link.name, target: target(link.target) }).collect())
}

/// A symbol table while it is read.
struct Table<'a> {
    blocks: &'a mut Blocks,
    nodes: NodeSizes,
    neighbours: Neighbours,
    names: Vec<u8>,
    links: Vec<Link>,
}

impl Table<'_> {
    fn read(blocks: &mut Blocks, nodes: NodeSizes, tree: u64, heap: u64) -> Hdf5Result<Vec<Link>> {
        let names = local_heap(blocks, heap)?;
        let mut table = Table { blocks, nodes, neighbours: Neighbours::default(), names, links: Vec::new() };
        table.node(tree, None)?;
        table.neighbours.finish()?;
        Ok(table.links)
    }

    /// Reads a node of the B-tree; `level` is the level that its parent implies.
    fn node(&mut self, address: u64, level: Option<u8>) -> Hdf5Result<()> {
        let room = 2 * u64::from(self.nodes.group);
        let bytes = self.blocks.read(address, 24 + 16 * room + 8)?;
        let mut cursor = Cursor::new(&bytes);
        let (node_level, entries) = self.neighbours.node(&mut cursor, address, 0, level, room)?;
        let mut key = cursor.u64()?;
        for _ in 0..entries {
            let child = cursor.u64()?;
            let first = self.links.len();
            match node_level {
                0 => self.symbols(child)?,
                level => self.node(child, Some(level - 1))?,
            }
            let next = cursor.u64()?;
            // Lookups of names rely on the keys: each child's names must be above one key and up to the next.
            let (below, up_to) = (self.name(key)?, self.name(next)?);
            let in_order = match self.links.get(first..) {
                Some([one, .., last]) => one.name > below && last.name <= up_to,
                Some([only]) => only.name > below && only.name <= up_to,
                _ => false,
            };
            if !in_order {
                return bad("a B-tree whose keys do not match its names");
            }
            key = next;
        }
        Ok(())
    }

    /// Reads a node of symbols.
    fn symbols(&mut self, address: u64) -> Hdf5Result<()> {
        let room = 2 * u64::from(self.nodes.symbols);
        let bytes = self.blocks.read(address, 8 + 40 * room)?;
        let mut cursor = Cursor::new(&bytes);
        let (signature, version) = (cursor.array()?, cursor.u8()?);
        cursor.u8()?;
        let symbols = cursor.u16()?;
        if signature != *b"SNOD" || version != 1 || u64::from(symbols) > room {
            return bad("a missing symbol table node");
        }
        for _ in 0..symbols {
            let (name, header, cached) = (cursor.u64()?, cursor.u64()?, cursor.u32()?);
            cursor.u32()?;
            let scratch = [cursor.u64()?, cursor.u64()?];
            let name = self.name(name)?;
            if self.links.last().is_some_and(|last| last.name >= name) {
                return bad("a symbol table whose names are not in order");
            }
            let target = match cached {
                0 => Target::Object(header, None),
                1 => Target::Object(header, Some((scratch[0], scratch[1]))),
                2 => Target::Name("a soft link, not followed"),
                _ => return bad("a symbol of an unknown kind"),
            };
            self.links.push(Link { name, target });
        }
        Ok(())
    }

    /// Returns the text at an offset of the heap.
    fn name(&self, at: u64) -> Hdf5Result<String> {
        let rest = usize::try_from(at).ok().and_then(|at| self.names.get(at..));
        let name =
            rest.and_then(|rest| rest.split(|&b| b == 0).next().filter(|name| name.len() < rest.len()));
        let Some(name) = name else { return bad("a name outside the group's heap") };
        match std::str::from_utf8(name) {
            Ok(name) => Ok(name.to_owned()),
            Err(_) => bad("a name that is not UTF-8"),
        }
    }
}

/// Returns the data of a local heap. Its list of free blocks is checked as in libhdf5.
fn local_heap(blocks: &mut Blocks, address: u64) -> Hdf5Result<Vec<u8>> {
    let prefix = blocks.read(address, 32)?;
    let mut cursor = Cursor::new(&prefix);
    let (signature, version) = (cursor.array()?, cursor.u8()?);
    cursor.take(3)?;
    let (size, mut free, data) = (cursor.u64()?, cursor.u64()?, cursor.u64()?);
    if signature != *b"HEAP" || version != 0 {
        return bad("no local heap");
    }
    let bytes = blocks.read(data, size)?;
    // There cannot be more free blocks than this: each takes 16 bytes.
    for _ in 0..=size / 16 {
        if free == NO_FREE_BLOCK || free == UNDEFINED {
            return Ok(bytes);
        }
        let block = usize::try_from(free).ok().and_then(|at| bytes.get(at..));
        let Some(block) = block else { return bad("a local heap whose free blocks are not in it") };
        let mut cursor = Cursor::new(block);
        let (next, len) = (cursor.u64()?, cursor.u64()?);
        if next == 0 || len > block.len() as u64 {
            return bad("a local heap with invalid free blocks");
        }
        free = next;
    }
    bad("a local heap whose free blocks form a cycle")
}
