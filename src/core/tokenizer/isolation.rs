//! Slots that the tokenizer cuts out of the text together with their brackets: by the pre-tokenizer of drift's extended tokenizers,
//! or as added tokens.

use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;

use tokenizers::ModelWrapper;

use super::load::Tokenizer;
use super::normalizer::SPACE;
use crate::encoding::language::{Languages, Path, StateId};
use crate::encoding::parts::{self, PartRow, SlotPart};
use crate::encoding::{Dfa, DfaState, Encoding, IntegersBelow};
use crate::error::Result;

/// How isolated slots are tokenised.
pub struct Isolation {
    /// The spellings of isolated slots.
    rows: Vec<PartRow>,
    /// The same rows, each cut into its pieces.
    ways: Vec<Vec<PartRow>>,
    /// The slots that are added tokens, with their ids.
    added: Vec<(String, u32)>,
    /// An example of an isolated slot.
    pub sample: String,
}

/// The largest number of spellings of a piece: the model is asked for the tokens of each.
const MAX_SPELLINGS: u64 = 400_000;

/// The largest number of slots that are looked up among the added tokens.
const MAX_ADDED: u64 = 1_000_000;

impl Isolation {
    /// Returns how a tokenizer isolates the slots of an encoding; `None` if it does not.
    ///
    /// The inner error is a sentence that says why the tokenizer's way cannot be learned: pieces have too many spellings.
    ///
    /// # Errors
    /// If the tokenizer fails to split a slot into pre-tokens.
    pub fn learn(
        tokenizer: &Tokenizer,
        encoding: Encoding,
    ) -> Result<std::result::Result<Option<Self>, String>> {
        if let Some(added) = added_slots(tokenizer, encoding) {
            return Ok(Ok(Some(added)));
        }
        let is_bpe = matches!(tokenizer.inner().get_model(), ModelWrapper::BPE(_));
        if !is_bpe || encoding.is_decimal() && encoding.separator() != "," {
            // Extended tokenizers are BPE, and isolate only decimals with commas. Words are cut apart everywhere.
            return Ok(Ok(None));
        }
        let isolated = |row: &PartRow| Ok(cuts(tokenizer, row, 0)?.is_some());
        let mut known = Vec::new();
        for (at, row) in encoding.rows(IntegersBelow(1)).iter().enumerate() {
            if isolated(row)? {
                known.push(at);
            }
        }
        let Some(&last) = known.last() else { return Ok(Ok(None)) };
        // The last row is the longest: if zeros are removed, it has all decimals.
        let range = range(tokenizer, &encoding.rows(IntegersBelow::GENERATED)[last])?;
        let all = encoding.rows(range);
        let rows: Vec<PartRow> = known.iter().map(|at| all[*at].clone()).collect();
        let mut ways = Vec::with_capacity(rows.len());
        for row in &rows {
            let Some(starts) = cuts(tokenizer, row, 0)? else { continue };
            let ends = starts.iter().skip(1).copied().chain([row.len()]);
            ways.push(starts.iter().zip(ends).map(|(&start, end)| row[start..end].to_vec()).collect());
        }
        let largest = ways.iter().flatten().map(|piece: &PartRow| parts::count(piece)).max();
        if largest.is_some_and(|spellings| spellings > MAX_SPELLINGS) {
            return Ok(Err(format!("blocks are cut into pieces of more than {MAX_SPELLINGS} spellings")));
        }
        let sample = filled(&all[last], 0).concat();
        Ok(Ok(Some(Isolation { rows, ways, added: Vec::new(), sample })))
    }

    /// Returns the language of all isolated slots, over bytes.
    pub fn language(&self, languages: &mut Languages<u8>) -> Option<StateId> {
        if self.added.is_empty() {
            return parts::language_of_rows(&self.rows, languages);
        }
        let end = languages.end(());
        languages.trie(self.added.iter().map(|(text, _)| (text.clone().into_bytes(), end)).collect())
    }

    /// Returns the automaton of all isolated slots over bytes; `None` if it has too many states.
    pub(crate) fn dfa(&self) -> Option<Dfa> {
        let mut languages = Languages::default();
        let root = self.language(&mut languages)?;
        (languages.reachable(root).len() < usize::from(DfaState::MAX)).then(|| Dfa::new(&languages, root))
    }

    /// Returns the token states of isolated slots. Each piece gets the tokens that the model produces for it alone.
    pub fn states<E: Copy + Eq + Hash>(
        &self,
        states: &mut Languages<u32, E>,
        tokenizer: &Tokenizer,
        end: E,
    ) -> Option<StateId> {
        let end = states.end(end);
        if !self.added.is_empty() {
            return states.trie(self.added.iter().map(|(_, id)| (vec![*id], end)).collect());
        }
        let mut tokens: HashMap<&PartRow, Vec<Vec<u32>>> = HashMap::new();
        for piece in self.ways.iter().flatten() {
            if !tokens.contains_key(piece) {
                let all = parts::strings(piece);
                let all = all.iter().map(|text| tokenizer.model_ids(text)).collect::<Option<Vec<_>>>()?;
                tokens.insert(piece, all);
            }
        }
        let mut start = None;
        for way in &self.ways {
            let mut next = end;
            for piece in way.iter().rev() {
                let paths: Vec<Path<u32>> = tokens[piece].iter().map(|path| (path.clone(), next)).collect();
                next = states.trie(paths)?;
            }
            start = Some(match start {
                Some(others) => states.union(others, next)?,
                None => next,
            });
        }
        start
    }
}

/// Returns the slots that are added tokens, brackets included; `None` if there are none.
fn added_slots(tokenizer: &Tokenizer, encoding: Encoding) -> Option<Isolation> {
    if encoding.open().is_empty() || encoding.close().is_empty() {
        return None;
    }
    let rows = encoding.rows(IntegersBelow::GENERATED);
    if rows.len() > 1 || parts::count(&rows[0]) > MAX_ADDED {
        return None;
    }
    // The added tokens are looked up among the slots, because there may be a million slots.
    let slots = encoding.dfa(IntegersBelow::GENERATED);
    let vocabulary = tokenizer.inner().get_added_vocabulary().get_vocab();
    let ids = vocabulary.iter().filter(|(text, _)| slots.matches(text.as_bytes()));
    let mut added: Vec<(String, u32)> = ids.map(|(text, id)| (text.clone(), *id)).collect();
    // Shorter numbers are smaller.
    added.sort_by(|a, b| (a.0.len(), &a.0).cmp(&(b.0.len(), &b.0)));
    let sample = added.first()?.0.clone();
    Some(Isolation { rows, ways: Vec::new(), added, sample })
}

/// Returns the bound on integer parts, in whole Å, below which decimals are isolated.
fn range(tokenizer: &Tokenizer, row: &PartRow) -> Result<IntegersBelow> {
    let expected = cuts(tokenizer, row, 0)?;
    let mut angstrom = 0;
    // The range grows one by one and ends at the first integer part that is cut differently.
    while angstrom < IntegersBelow::GENERATED.0 && cuts(tokenizer, row, angstrom)? == expected {
        angstrom += 1;
    }
    Ok(IntegersBelow(angstrom))
}

/// Returns an example slot of a row, part by part, with all signs, and with `integer` as the integer part of x.
fn filled(row: &PartRow, integer: u32) -> Vec<String> {
    let mut integers = [integer, 0, 0].into_iter();
    let texts = row.iter().map(|part| match part {
        SlotPart::Literal(text) | SlotPart::Optional(text) => text.to_string(),
        SlotPart::Digit { .. } => "7".to_owned(),
        SlotPart::Integer { .. } => integers.next().unwrap_or(0).to_string(),
        SlotPart::Padded { below, width } => {
            format!("{:0width$}", 7.min(below.saturating_sub(1)), width = usize::from(*width))
        }
    });
    texts.collect()
}

/// Returns the parts at which a slot's pre-tokens begin; `None` if a pre-token crosses an end of the slot, or a part is cut inside.
fn cuts(tokenizer: &Tokenizer, row: &PartRow, integer: u32) -> Result<Option<Vec<usize>>> {
    let filled = filled(row, integer);
    let pieces = tokenizer.pre_tokens(&format!("[C]{}[C]", filled.concat()))?;
    let mut borders = BTreeSet::from([0]);
    let mut at = 0;
    for piece in &pieces {
        // A space that the tokenizer adds before a text does not belong to the text.
        at += if at == 0 { piece.trim_start_matches(SPACE).len() } else { piece.len() };
        borders.insert(at);
    }
    let mut starts = Vec::new();
    // The slot begins behind `[C]`.
    let mut place = 3;
    for (part, text) in filled.iter().enumerate() {
        if borders.contains(&place) {
            starts.push(part);
        }
        if (place + 1..place + text.len()).any(|inside| borders.contains(&inside)) {
            return Ok(None);
        }
        place += text.len();
    }
    // The remainder must be exactly the second `[C]`: then no character was dropped or added.
    let whole = starts.first() == Some(&0) && borders.contains(&place) && at == place + 3;
    Ok(whole.then_some(starts))
}
