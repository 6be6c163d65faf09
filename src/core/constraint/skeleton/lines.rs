//! How many tokens the lines of a prompt's texts take, over all texts.

use std::rc::Rc;

use super::graph::{ChunkLengths, GraphEdge, GraphPart, PartList, PartTokens, SkeletonGraph};
use crate::constraint::acyclic::values;
use crate::error::Result;

/// The longest line that is listed, in bytes.
const LONGEST: usize = 512;

/// The most different ends that lines may have behind a place.
const MOST_RESTS: usize = 256;

/// Returns the beginning of a line together with its rest.
fn join(begun: &PartTokens, rest: &PartTokens) -> PartTokens {
    PartTokens {
        part: format!("{}{}", begun.part, rest.part),
        has_slots: begun.has_slots || rest.has_slots,
        joined: begun.joined || rest.joined,
        tokens: [begun.tokens[0] + rest.tokens[0], begun.tokens[1] + rest.tokens[1]],
    }
}

impl PartTokens {
    /// Returns text without tokens.
    fn without_tokens(part: &str) -> Self {
        PartTokens { part: part.to_owned(), has_slots: false, joined: false, tokens: [0; 2] }
    }

    fn is_whole_line(&self) -> bool {
        self.part.ends_with('\n')
    }
}

/// What lines may have behind a place.
type Rests = Option<Rc<[PartTokens]>>;

/// Finds the lines of a graph.
struct LineSearch<'g> {
    graph: &'g SkeletonGraph,
    /// By chunk, the least and the largest number of its tokens.
    chunks: &'g [ChunkLengths],
}

impl SkeletonGraph {
    /// Returns how many tokens the different lines take, in the order in which texts first have them; a token counts where it begins.
    /// Nothing if there are too many lines, or they are too long to list.
    ///
    /// # Errors
    /// As [`SkeletonGraph::tokens`].
    pub fn lines(&self) -> Result<Vec<PartTokens>> {
        let search = LineSearch { graph: self, chunks: &self.chunk_lengths()? };
        Ok(search.lines().unwrap_or_default())
    }
}

impl LineSearch<'_> {
    fn lines(self) -> Option<Vec<PartTokens>> {
        let graph = self.graph;
        let places = graph.places.len();
        let rests = values(places, 0..places, |at| self.behind(at), |at, known| self.rests(at, known))?;
        let mut lines = PartList::default();
        rests[0].iter().flat_map(|rests| &**rests).for_each(|line| lines.add(line.clone()));
        for edge in graph.places.iter().flatten() {
            let pieces = self.pieces(edge);
            let Some((last, [_, middle @ ..])) = pieces.split_last().map(|all| (all.0, &pieces[..])) else {
                continue;
            };
            middle.iter().filter(|piece| piece.is_whole_line()).for_each(|piece| lines.add(piece.clone()));
            if !pieces[0].is_whole_line() {
                continue;
            }
            let begun = if last.is_whole_line() { PartTokens::without_tokens("") } else { last.clone() };
            for rest in &*rests_behind(edge, &rests)? {
                let line = join(&begun, rest);
                if !line.part.is_empty() {
                    lines.add(line);
                }
            }
        }
        Some(lines.all)
    }

    /// Returns the places behind a place in the same line.
    fn behind(&self, place: usize) -> Vec<usize> {
        let goes_on = |edge: &&GraphEdge| !self.pieces(edge).first().is_some_and(PartTokens::is_whole_line);
        self.graph.places[place].iter().filter(goes_on).filter_map(|edge| edge.to).collect()
    }

    /// Returns what lines may have behind a place, by that of those behind it; `None` if that is too much.
    fn rests(&self, place: usize, known: &[Rests]) -> Rests {
        let mut rests = PartList::default();
        for edge in &self.graph.places[place] {
            match self.pieces(edge).first() {
                Some(first) if first.is_whole_line() => rests.add(first.clone()),
                first => {
                    let nothing = PartTokens::without_tokens("");
                    let begun = first.unwrap_or(&nothing);
                    rests_behind(edge, known)?.iter().for_each(|rest| rests.add(join(begun, rest)));
                }
            }
        }
        let is_short =
            rests.all.len() <= MOST_RESTS && rests.all.iter().all(|rest| rest.part.len() <= LONGEST);
        is_short.then(|| rests.all.into())
    }

    /// Returns a part, cut behind its line breaks. Tokens of slots count where their part begins.
    fn pieces(&self, edge: &GraphEdge) -> Vec<PartTokens> {
        let Some((part, label)) = &edge.part else { return Vec::new() };
        let label = self.graph.label(*label);
        let mut begins = self.graph.token_begins(part, &label.text).into_iter().peekable();
        let mut pieces = Vec::new();
        let mut end = 0;
        for text in label.text.split_inclusive('\n') {
            end += text.len();
            let mut tokens = [0; 2];
            while begins.next_if(|begin| *begin < end).is_some() {
                tokens = tokens.map(|count| count + 1);
            }
            let has_slots = label.has_slot && text.contains('{');
            pieces.push(PartTokens {
                has_slots,
                joined: has_slots && label.has_text,
                tokens,
                ..PartTokens::without_tokens(text)
            });
        }
        if let (GraphPart::Chunk(..), Some(first)) = (part, pieces.first_mut()) {
            first.tokens = part.length(self.chunks);
        }
        pieces
    }
}

/// Returns what lines may have behind a part.
fn rests_behind(edge: &GraphEdge, known: &[Rests]) -> Rests {
    match edge.to {
        Some(to) => known[to].clone(),
        None => Some([PartTokens::without_tokens("")].into()),
    }
}
