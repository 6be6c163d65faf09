//! The automaton of a prompt as an explicit graph, for grammars and for counts of tokens over all texts.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::SkeletonConstraint;
use super::border::{Border, FoundWay, Way, WayPart};
use super::expand::{Element, Spot};
use super::marker::Opening;
use super::row::{Position, Thread};
use crate::constraint::acyclic::values;
use crate::constraint::automaton::mistaken;
use crate::error::{Error, Result};
use crate::tokenizer::{Chunk, ChunkState, TokenSpellings};

/// A part of the text between two borders.
#[derive(Clone)]
pub(in crate::constraint) enum GraphPart {
    /// Fixed text.
    Run(Arc<[u32]>),
    /// Slots, by the index of their chunk, from this state on.
    Chunk(usize, u32),
}

/// A way to go on from a place.
#[derive(Clone)]
pub(in crate::constraint) struct GraphEdge {
    /// The part, and its index among the labels; `None` at the end of the text.
    pub part: Option<(GraphPart, usize)>,
    /// The place behind it; `None` behind the text.
    pub to: Option<usize>,
}

/// All texts of a prompt.
pub struct SkeletonGraph {
    /// By place, the ways to go on. The text begins at the first one.
    pub(in crate::constraint) places: Vec<Vec<GraphEdge>>,
    pub(in crate::constraint) chunks: Vec<Arc<Chunk>>,
    /// The different parts, in the order in which texts first have them.
    labels: Vec<PartLabel>,
    spellings: Arc<TokenSpellings>,
}

/// A part as a reader knows it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct PartLabel {
    pub text: String,
    pub has_slot: bool,
    pub has_text: bool,
}

/// By state of a chunk, the least and the largest number of tokens from there to an end.
pub(super) type ChunkLengths = Vec<Option<[u32; 2]>>;

impl GraphPart {
    /// Returns the least and the largest number of its tokens, by those of chunks.
    pub(super) fn length(&self, chunks: &[ChunkLengths]) -> [u32; 2] {
        match self {
            GraphPart::Run(ids) => [ids.len() as u32; 2],
            GraphPart::Chunk(chunk, from) => chunks[*chunk][*from as usize].unwrap_or_default(),
        }
    }
}

impl PartLabel {
    fn tokens(&self, tokens: [u32; 2]) -> PartTokens {
        let Self { text, has_slot, has_text } = self;
        PartTokens { part: text.clone(), has_slots: *has_slot, joined: *has_slot && *has_text, tokens }
    }
}

/// How many tokens a part of a text takes.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct PartTokens {
    /// The part: text, and names of slots in braces.
    pub part: String,
    /// Whether it holds slots.
    pub has_slots: bool,
    /// Whether a token may join a slot with the text beside it, which then belongs to the part.
    pub joined: bool,
    /// The least and the largest number of tokens.
    pub tokens: [u32; 2],
}

/// How many tokens the texts of a prompt take, over all of them.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct TextTokens {
    /// The different parts in the order of the text.
    pub parts: Vec<PartTokens>,
    /// The least and the largest number of tokens of a whole text.
    pub tokens: [u32; 2],
}

/// Different parts or lines, in the order in which they are found.
#[derive(Default)]
pub struct PartList {
    /// The parts.
    pub all: Vec<PartTokens>,
    known: HashMap<String, usize>,
}

impl PartList {
    /// Adds a part, or its tokens to those of the same part elsewhere.
    pub fn add(&mut self, part: PartTokens) {
        let at = *self.known.entry(part.part.clone()).or_insert(self.all.len());
        match self.all.get_mut(at) {
            Some(other) => {
                other.tokens = widest(other.tokens, part.tokens);
                other.joined |= part.joined;
            }
            None => self.all.push(part),
        }
    }
}

/// Returns the least and the most tokens of two ranges.
pub fn widest(range: [u32; 2], other: [u32; 2]) -> [u32; 2] {
    [range[0].min(other[0]), range[1].max(other[1])]
}

/// The most places of a graph.
const MOST_PLACES: usize = 50_000;

/// The most states of slots of a graph.
const MOST_STATES: usize = 20_000;

impl SkeletonConstraint {
    /// Returns all texts as a graph.
    ///
    /// # Errors
    /// If they have too many places, as items in any order may have.
    pub fn graph(&self) -> Result<SkeletonGraph> {
        let row = self.row();
        let start = row.border().cloned().unwrap_or_else(|| self.first_border());
        let mut builder = GraphBuilder {
            constraint: self,
            known: HashMap::new(),
            waiting: vec![start],
            chunks: Vec::new(),
            labels: HashMap::new(),
            places: Vec::new(),
        };
        let mut at = 0;
        let first = match self.openings.as_ref().filter(|_| row.is_free()) {
            Some(openings) => openings.all.iter().map(|opening| builder.opened(opening)).collect(),
            None if row.border().is_some() => Vec::new(),
            // The prompt ends within a part: its rest comes first.
            None => row.threads().iter().map(|thread| builder.rest(thread)).collect(),
        };
        if !first.is_empty() {
            builder.places.push(first);
            at = 1;
        }
        while at < builder.waiting.len() {
            if at > MOST_PLACES {
                let problem = format!("its texts have more than {MOST_PLACES} places for this prompt");
                return Err(Error::input(self.name(), problem, "give items in a fixed order, or fewer"));
            }
            let from = builder.waiting[at].clone();
            let edges = builder.edges(&from)?;
            builder.places.push(edges);
            at += 1;
        }
        let mut labels: Vec<(PartLabel, usize)> = builder.labels.into_iter().collect();
        labels.sort_by_key(|label| label.1);
        let labels = labels.into_iter().map(|label| label.0).collect();
        let spellings = self.processor.spellings.clone();
        Ok(SkeletonGraph { places: builder.places, chunks: builder.chunks, labels, spellings })
    }

    /// Returns the most items that a text may list.
    pub(in crate::constraint) fn most_items(&self) -> u32 {
        self.program.most_items()
    }

    /// Returns whether the text before a marker is free.
    pub(in crate::constraint) fn has_marker(&self) -> bool {
        self.row().is_free()
    }

    /// Returns the tokens that engines mistake for others ([`super::super::automaton`]).
    pub(in crate::constraint) fn has_mistaken(&self) -> bool {
        let tokenizer = &self.processor.tokenizer;
        !mistaken(&|text| tokenizer.vocabulary_id(text)).is_empty()
    }

    /// Returns the name of the skeleton, for messages.
    pub(in crate::constraint) fn name(&self) -> &str {
        &self.processor.skeleton.name
    }
}

struct GraphBuilder<'c> {
    constraint: &'c SkeletonConstraint,
    known: HashMap<Spot, usize>,
    waiting: Vec<Arc<Border>>,
    chunks: Vec<Arc<Chunk>>,
    labels: HashMap<PartLabel, usize>,
    places: Vec<Vec<GraphEdge>>,
}

impl GraphBuilder<'_> {
    /// Returns the marker and the text behind it.
    fn opened(&mut self, opening: &Opening) -> GraphEdge {
        let label = self.label(&[Element::Text(opening.text.clone())], false);
        let before = self.constraint.before.followed_by(&opening.text);
        let to = self.place(&self.constraint.border(opening.to.clone(), before));
        GraphEdge { part: Some((GraphPart::Run(opening.ids.clone()), label)), to: Some(to) }
    }

    /// Returns the rest of the part in which a text is.
    fn rest(&mut self, thread: &Thread) -> GraphEdge {
        let (part, text) = match &thread.position {
            Position::Border => (None, String::new()),
            Position::Run { ids, at } => {
                let bytes = self.constraint.processor.spellings.text(&ids[*at..]);
                let text = String::from_utf8_lossy(&bytes).into_owned();
                (Some(GraphPart::Run(ids[*at..].into())), text)
            }
            Position::Chunk { chunk, state } => {
                let part = GraphPart::Chunk(self.chunk(chunk), state.number);
                (Some(part), "{\u{2026}}".to_owned())
            }
        };
        let has_slot = matches!(part, Some(GraphPart::Chunk(..)));
        let label = self.label_of(PartLabel { text, has_slot, has_text: has_slot });
        GraphEdge { part: part.map(|part| (part, label)), to: self.behind(&thread.border) }
    }

    /// Returns the index of a chunk.
    fn chunk(&mut self, chunk: &Arc<Chunk>) -> usize {
        let known = self.chunks.iter().position(|known| Arc::ptr_eq(known, chunk));
        known.unwrap_or_else(|| {
            self.chunks.push(chunk.clone());
            self.chunks.len() - 1
        })
    }

    /// Returns the place of a border; `None` behind the text.
    fn behind(&mut self, border: &Arc<Border>) -> Option<usize> {
        let is_over = self.constraint.program.is_over(&border.spot);
        (!is_over).then(|| self.place(border))
    }

    fn edges(&mut self, from: &Border) -> Result<Vec<GraphEdge>> {
        let constraint = self.constraint;
        let adds_space = from.before.begins() && constraint.processor.spellings.adds_space;
        let found = constraint.found_ways(from)?;
        let mut edges = Vec::with_capacity(found.len());
        for FoundWay { way: Way { part, behind }, elements } in found {
            let part = match part {
                WayPart::Over => None,
                WayPart::Run(ids) => Some(GraphPart::Run(ids)),
                WayPart::Chunk(chunk, first) => Some(GraphPart::Chunk(self.chunk(&chunk), first.number)),
            };
            let label = self.label(&elements, adds_space);
            edges.push(GraphEdge { part: part.map(|part| (part, label)), to: self.behind(&behind) });
        }
        Ok(edges)
    }

    fn place(&mut self, behind: &Arc<Border>) -> usize {
        let next = self.waiting.len();
        let place = *self.known.entry(behind.spot.clone()).or_insert(next);
        if place == next {
            self.waiting.push(behind.clone());
        }
        place
    }

    fn label(&mut self, elements: &[Element], adds_space: bool) -> usize {
        let (mut text, mut has_slot, mut has_text) = (String::new(), false, false);
        for (at, element) in elements.iter().enumerate() {
            match element {
                Element::Text(part) => {
                    let part = if at == 0 && adds_space { &part[1..] } else { &part[..] };
                    has_text |= !part.is_empty();
                    text.push_str(part);
                }
                Element::Slot(slot) => {
                    has_slot = true;
                    // Several numbers have the text between them.
                    has_text |= self.constraint.program.slot(*slot).label.matches('{').count() > 1;
                    text.push_str(&self.constraint.program.slot(*slot).label);
                }
            }
        }
        self.label_of(PartLabel { text, has_slot, has_text })
    }

    fn label_of(&mut self, label: PartLabel) -> usize {
        let next = self.labels.len();
        *self.labels.entry(label).or_insert(next)
    }
}

impl SkeletonGraph {
    /// Returns the states of a chunk by number.
    ///
    /// # Errors
    /// If there are too many.
    pub(in crate::constraint) fn states(&self, chunk: usize) -> Result<HashMap<u32, Arc<ChunkState>>> {
        let mut states = HashMap::new();
        let mut waiting = vec![0];
        while let Some(number) = waiting.pop() {
            if states.contains_key(&number) {
                continue;
            }
            if states.len() >= MOST_STATES {
                let problem = format!("the tokens of a slot have more than {MOST_STATES} states");
                return Err(Error::input("skeleton", problem, "give slots with fewer texts"));
            }
            let state = self.chunks[chunk].state(number)?;
            waiting.extend(state.targets.iter());
            states.insert(number, state);
        }
        Ok(states)
    }

    /// Returns how many tokens the texts take, over all of them.
    ///
    /// # Errors
    /// If the tokens of slots have too many states.
    pub fn tokens(&self) -> Result<TextTokens> {
        let chunks = self.chunk_lengths()?;
        let mut parts: Vec<Option<[u32; 2]>> = vec![None; self.labels.len()];
        for (part, label) in self.places.iter().flatten().filter_map(|edge| edge.part.as_ref()) {
            let length = part.length(&chunks);
            let known = parts[*label].get_or_insert(length);
            *known = widest(*known, length);
        }
        let counted = self.labels.iter().zip(parts).filter_map(|label| Some(label.0.tokens(label.1?)));
        Ok(TextTokens { parts: counted.collect(), tokens: self.whole(&chunks) })
    }

    /// Returns the least and the largest number of tokens of each chunk.
    pub(super) fn chunk_lengths(&self) -> Result<Vec<ChunkLengths>> {
        (0..self.chunks.len()).map(|chunk| Ok(lengths(&self.states(chunk)?))).collect()
    }

    /// Returns a label by its number.
    pub(super) fn label(&self, label: usize) -> &PartLabel {
        &self.labels[label]
    }

    /// Returns where the tokens of fixed text begin, in bytes of its text; nothing for slots. A token may begin before it.
    pub(super) fn token_begins(&self, part: &GraphPart, text: &str) -> Vec<usize> {
        let GraphPart::Run(ids) = part else { return Vec::new() };
        let mut begin = self.spellings.text(ids).len();
        let before = begin.saturating_sub(text.len());
        let mut begins = Vec::with_capacity(ids.len());
        for id in ids.iter().rev() {
            begin = begin.saturating_sub(self.spellings.bytes(*id).len());
            begins.push(begin.saturating_sub(before));
        }
        begins.reverse();
        begins
    }

    /// Returns the least and the largest number of tokens of a whole text. Places have no circles: each part writes on.
    fn whole(&self, chunks: &[ChunkLengths]) -> [u32; 2] {
        let behind = |place: usize| self.places[place].iter().filter_map(|edge| edge.to).collect();
        let known = values(self.places.len(), 0..1, behind, |place, known| {
            self.places[place].iter().map(|edge| edge.length(chunks, known)).reduce(widest)
        });
        known.and_then(|known| known[0]).unwrap_or_default()
    }
}

impl GraphEdge {
    /// Returns the least and the most tokens from here to the end of the text, by those from each place.
    fn length(&self, chunks: &[ChunkLengths], known: &[Option<[u32; 2]>]) -> [u32; 2] {
        let part = self.part.as_ref().map_or([0; 2], |part| part.0.length(chunks));
        added(part, self.to.and_then(|to| known[to]).unwrap_or_default())
    }
}

/// Returns the least and the most tokens of a part and its rest.
fn added(part: [u32; 2], rest: [u32; 2]) -> [u32; 2] {
    [part[0] + rest[0], part[1] + rest[1]]
}

/// Returns the least and the largest number of tokens from each state to an end.
fn lengths(states: &HashMap<u32, Arc<ChunkState>>) -> ChunkLengths {
    let targets = |number: usize| states[&(number as u32)].targets.iter().map(|to| *to as usize);
    let behind = |number: usize| targets(number).collect::<BTreeSet<usize>>().into_iter().collect();
    let count = states.keys().max().map_or(0, |last| *last as usize + 1);
    let known = values(count, 0..1, behind, |number, known| {
        let end = states[&(number as u32)].ends.then_some([0; 2]);
        targets(number).filter_map(|to| Some(added([1; 2], known[to]?))).chain(end).reduce(widest)
    });
    known.unwrap_or_default()
}
