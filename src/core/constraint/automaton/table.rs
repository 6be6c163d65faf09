//! The automaton of one molecule as plain tables: for grammars, other languages, and samplers outside of drift.

use std::collections::HashMap;
use std::sync::Arc;

use serde::{Serialize, Serializer};

use super::molecule::MoleculeAutomaton;
use super::segment::{OVER, Segment};
use super::{Automaton, CompactState, EXIT};

/// The schema of [`MoleculeTable`].
pub(crate) const TABLE_SCHEMA: &str = "drift.automaton/1";

/// The target of an edge after which the text is over, and only EOS is legal. Also the root of a last segment without tokens.
pub(crate) const TEXT_OVER: i32 = -3;

/// The automaton of one molecule. A *place* is a number: below [`Edges::len`] of the block it is a state of the block, from there
/// on a node of the segment. The position of a text is an entry of `order` and a place. It begins in the first entry at `roots[0]`
/// of its segment.
///
/// An edge of a *segment* leads to a place, or to [`TEXT_OVER`]. An edge of the *block* leads to a place, or it ends the block: the
/// target -1 leads to `roots[0]` of the segment in the next entry of `order`, the target -2 to `roots[1]`; either root may be
/// [`TEXT_OVER`]. If `exits` of a state is 0 or 1, the block may end before the next token: then the edges at `roots[exit]` of the
/// next entry's segment are legal too. No id is legal twice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MoleculeTable {
    /// [`TABLE_SCHEMA`].
    pub schema: &'static str,
    /// The token that ends the text, after [`TEXT_OVER`].
    pub eos: u32,
    /// The coordinate grammar, the same for every molecule.
    #[serde(serialize_with = "shared")]
    pub block: Arc<BlockTable>,
    /// The distinct texts between blocks.
    pub segments: Vec<SegmentTable>,
    /// The molecule: indices into `segments`. Between two of them there is a block.
    pub order: Vec<u32>,
}

/// Serializes the shared value itself.
fn shared<S: Serializer>(block: &Arc<BlockTable>, serializer: S) -> Result<S::Ok, S::Error> {
    block.serialize(serializer)
}

/// The states of a block.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BlockTable {
    /// The edges of each state.
    #[serde(flatten)]
    pub edges: Edges,
    /// By state, the mode in which the block may end there: 0 or 1, an index into `roots`; -1 if it may not.
    pub exits: Vec<i32>,
}

/// A text between blocks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SegmentTable {
    /// The places where it begins, by the mode in which the block before ended; -1 if that block cannot end in this mode.
    /// [`TEXT_OVER`] if the segment has no tokens and the text is over behind the block.
    pub roots: [i32; 2],
    /// The edges of each node.
    #[serde(flatten)]
    pub edges: Edges,
}

/// Edges in rows: those of row `r` are `offsets[r]..offsets[r + 1]`, by ascending id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Edges {
    /// The number of rows plus one.
    pub offsets: Vec<u32>,
    /// Token ids.
    pub ids: Vec<u32>,
    /// The target of each edge.
    pub targets: Vec<i32>,
}

impl Edges {
    fn of<'a>(rows: impl Iterator<Item = (&'a [u32], &'a [u32])>, target: impl Fn(u32) -> i32) -> Self {
        let mut edges = Edges { offsets: vec![0], ids: Vec::new(), targets: Vec::new() };
        for (ids, targets) in rows {
            edges.ids.extend_from_slice(ids);
            edges.targets.extend(targets.iter().map(|to| target(*to)));
            edges.offsets.push(edges.ids.len() as u32);
        }
        edges
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Returns whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the ids and targets of a row.
    pub fn row(&self, row: usize) -> (&[u32], &[i32]) {
        let range = self.offsets[row] as usize..self.offsets[row + 1] as usize;
        (&self.ids[range.clone()], &self.targets[range])
    }
}

impl Automaton {
    /// Returns the coordinate grammar as tables.
    pub fn table(&self) -> &Arc<BlockTable> {
        self.table.get_or_init(|| {
            let rows = self.states.iter().map(|state| (&*state.ids, &*state.targets));
            // Signed numbers, because JSON and other languages read them. Targets that are not places are negative.
            let target = |to: u32| if to >= EXIT { -1 - (to - EXIT) as i32 } else { to as i32 };
            let exit = |state: &CompactState| state.exit.map_or(-1, |(mode, _)| mode as i32);
            Arc::new(BlockTable {
                edges: Edges::of(rows, target),
                exits: self.states.iter().map(exit).collect(),
            })
        })
    }
}

impl SegmentTable {
    fn of(segment: &Segment) -> Self {
        let place = |to: u32| if to == OVER { TEXT_OVER } else { to as i32 };
        SegmentTable {
            roots: segment.roots.map(|root| root.map_or(-1, place)),
            edges: Edges::of(segment.nodes.iter().map(|node| (&*node.ids, &*node.targets)), place),
        }
    }
}

impl MoleculeAutomaton {
    /// Returns the molecule's automaton as tables.
    pub fn table(&self) -> MoleculeTable {
        let mut known: HashMap<*const Segment, u32> = HashMap::new();
        let mut segments = Vec::new();
        let mut order = Vec::with_capacity(self.segments.len());
        for segment in &self.segments {
            // Equal segments of one processor are shared, so pointers can be compared.
            order.push(*known.entry(Arc::as_ptr(segment)).or_insert_with(|| {
                segments.push(SegmentTable::of(segment));
                segments.len() as u32 - 1
            }));
        }
        let block = self.automaton.table().clone();
        MoleculeTable { schema: TABLE_SCHEMA, eos: self.eos, block, segments, order }
    }
}
