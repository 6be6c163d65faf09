//! The text between two blocks as tokens, and the places where it leads.
//!
//! Its last token may depend on the next number: `]<` before `1.5`, `]<-` before `-1.5`. So a segment is a small tree.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::Mode;
use super::learn::{Copier, Side, refuse};
use super::{Automaton, BEGIN, END, OPENED};
use crate::error::Result;
use crate::text::{CONFORMER_CLOSE, CONFORMER_OPEN};
use crate::tokenizer::Tokenizer;

/// The target of a segment's edge that ends the text. For a last segment without tokens, also its root.
pub(super) const OVER: u32 = u32::MAX;

/// By state in which a block may end, the mask of that state together with the tokens that begin the next segment.
pub(super) type ExitMasks = Vec<Box<[u32]>>;

/// Cached exit masks, by the mode of the block before and the tokens that begin the segment.
pub(super) type KnownExits = Mutex<BTreeMap<(Mode, Vec<u32>), Arc<ExitMasks>>>;

/// A copied text. Places are numbered as in [`super::super::State::inner`]: below the automaton's number of states they are states
/// of the next block, from there on nodes of the segment.
pub(super) struct Segment {
    /// The place where it begins, by the mode of the block before; [`OVER`] if it has no tokens and nothing follows.
    pub roots: [Option<u32>; 2],
    /// The places in the copied text.
    pub nodes: Vec<SegmentNode>,
    /// Exit masks by the mode of the block before.
    pub exits: [Option<Arc<ExitMasks>>; 2],
}

/// A place in the copied text. Ids are sorted.
pub(super) struct SegmentNode {
    /// The tokens that may come next.
    pub ids: Box<[u32]>,
    /// The place to which each token leads.
    pub targets: Box<[u32]>,
}

/// The tokens of one path through a segment, and the mode of the block behind it; no mode at the end of the text.
type ExitPath = (Vec<u32>, Option<Mode>);

/// Builds segments.
pub(super) struct Segments<'a> {
    pub tokenizer: &'a Tokenizer,
    pub automaton: &'a Automaton,
    pub exits: &'a KnownExits,
    pub eos: u32,
    pub prompt_end: &'a str,
}

impl Segments<'_> {
    /// Returns the segment of a key: the text between the key's first and last character.
    pub(super) fn make(&self, key: &str) -> Result<Segment> {
        let opened = key.starts_with(OPENED);
        let (first, last) = (opened || key.starts_with(BEGIN), key.ends_with(END));
        // The first and the last character of a key take one byte each.
        let piece = &key[1..key.len() - 1];
        let open = if first && !opened { CONFORMER_OPEN } else { "" };
        // The closing tag of a conformer may be the EOS token itself.
        let ends_so = self.tokenizer.vocabulary_id(CONFORMER_CLOSE) == Some(self.eos);
        let close = if last && !ends_so { CONFORMER_CLOSE } else { "" };
        let begin = if opened { Side::Opened } else { Side::End };
        let text = format!("{open}{piece}{close}");
        let mut segment = Segment { roots: [None; 2], nodes: Vec::new(), exits: [None, None] };
        if first {
            // No block stands before the first segment, so its only root takes the place of the first mode.
            segment.roots[0] = Some(self.tree(&mut segment, begin, &text, last)?);
            return Ok(segment);
        }
        for &mode in &self.automaton.modes {
            let root = self.tree(&mut segment, Side::Block(mode, false), &text, last)?;
            segment.roots[mode as usize] = Some(root);
            segment.exits[mode as usize] = Some(self.exit_masks(&segment, mode, root)?);
        }
        Ok(segment)
    }

    /// Adds all paths through a text; returns the place where they begin.
    fn tree(&self, segment: &mut Segment, before: Side, text: &str, last: bool) -> Result<u32> {
        let mut ways: Vec<ExitPath> = Vec::new();
        let automaton = self.automaton;
        let copier = Copier {
            tokenizer: self.tokenizer,
            spellings: &automaton.spellings,
            encoding: automaton.encoding,
            prompt_end: self.prompt_end,
            isolated_block: &automaton.isolated_block,
        };
        if last {
            ways.push((copier.tokens(before, text, Side::End)?, None));
        } else {
            for &mode in &automaton.modes {
                ways.push((copier.tokens(before, text, Side::Block(mode, false))?, Some(mode)));
                if mode == Mode::Plain && automaton.encoding.is_signed() {
                    ways.push((copier.tokens(before, text, Side::Block(mode, true))?, Some(mode)));
                }
            }
        }
        // Sorting puts paths with common first tokens next to each other.
        ways.sort();
        ways.dedup();
        self.node(segment, &ways, 0, text)
    }

    /// Returns the place before token `depth` of sorted paths that agree so far.
    fn node(&self, segment: &mut Segment, ways: &[ExitPath], depth: usize, text: &str) -> Result<u32> {
        if ways.iter().any(|(tokens, _)| tokens.len() == depth) {
            if ways.iter().all(|(tokens, mode)| tokens.len() == depth && mode.is_none()) {
                return Ok(OVER);
            }
            // The shortest path ends here. The remaining tokens of longer paths (a sign, a bracket) determine how the block is
            // entered.
            let mut entry = Vec::with_capacity(ways.len());
            for (tokens, mode) in ways {
                entry.extend(mode.map(|mode| (mode, tokens[depth..].to_vec())));
            }
            entry.sort();
            return self.automaton.entries.get(&entry).copied().ok_or_else(|| {
                let problem = format!("the border between `{text}` and a number is cut in an unknown way");
                refuse(self.tokenizer, problem)
            });
        }
        let (mut ids, mut targets) = (Vec::new(), Vec::new());
        let mut rest = ways;
        while let Some((tokens, _)) = rest.first() {
            let token = tokens[depth];
            let same = rest.iter().take_while(|(tokens, _)| tokens[depth] == token).count();
            ids.push(token);
            targets.push(self.node(segment, &rest[..same], depth + 1, text)?);
            rest = &rest[same..];
        }
        segment.nodes.push(SegmentNode { ids: ids.into(), targets: targets.into() });
        Ok((self.automaton.states.len() + segment.nodes.len() - 1) as u32)
    }

    /// Returns the masks of the states in which a block may end and this segment begin.
    fn exit_masks(&self, segment: &Segment, mode: Mode, root: u32) -> Result<Arc<ExitMasks>> {
        let node =
            (root as usize).checked_sub(self.automaton.states.len()).and_then(|n| segment.nodes.get(n));
        let first = node.map(|node| node.ids.to_vec()).unwrap_or_default();
        let mut known = self.exits.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(masks) = known.get(&(mode, first.clone())) {
            return Ok(masks.clone());
        }
        let mut masks = Vec::new();
        for state in &self.automaton.states {
            let Some((exit, _)) = state.exit else { continue };
            let mut ids = state.ids.to_vec();
            if exit == mode {
                // If a token could both continue the number and begin the next segment, the end of the block would be ambiguous.
                if first.is_empty() || first.iter().any(|id| ids.binary_search(id).is_ok()) {
                    return Err(refuse(self.tokenizer, "its tokens do not tell where a block ends"));
                }
                ids.extend(&first);
                ids.sort_unstable();
            }
            masks.push(ids.into());
        }
        let masks = Arc::new(masks);
        known.insert((mode, first), masks.clone());
        Ok(masks)
    }
}
