//! Continued BPE inside blocks: `--merges`.
//!
//! Continued BPE as published keeps the base's pre-tokenizer and appends merges, which act on every text. This is of little use for
//! coordinates: splits such as Qwen's isolate single digits, so no merge can join two of them, and merges that could would also act
//! on ordinary numbers. Here, blocks are isolated and cut by a scheme, as in a designed extension, and merges are learned within
//! the pieces. A text may become a token only if no pre-token of the base can contain it, so text outside blocks keeps its ids. The
//! cuts determine how much the numbers of tokens of different blocks differ. The cheapest scheme for each number of pieces is
//! tried, and the one with the fewest tokens plus drift is kept.
//!
//! A token that is only an intermediate step would never be seen in a text. Such a token is banned and learning restarts, until
//! each new token occurs in some block of the range.

use std::collections::{HashMap, HashSet};

use rayon::prelude::*;
use serde_json::{Value, json};

use super::bpe::{LearnedTokens, Limits, Step, Word, learn};
use super::tokenizer::LearnedTokenizer;
use crate::design::extension::base::{BaseVocabulary, PreTokenCounts};
use crate::design::extension::extend::{Extension, extend};
use crate::design::extension::json::written;
use crate::design::extension::layout::{Alphabet, BaseLayout, is_apart};
use crate::design::extension::plan::ExtensionPlan;
use crate::design::extension::strip::never_extended;
use crate::design::measured::sample::LearningSample;
use crate::design::scheme::counting_bound::{BlockGuarantee, UsableTokens};
use crate::design::scheme::cuts::Scheme;
use crate::design::scheme::fixed_space::FixedSpace;
use crate::design::scheme::pieces::PieceTable;
use crate::parameter;
use drift_core::error::Parameter;
use drift_core::{Error, Job, Result, Tokenizer};

/// The weight of a block of the corpus. Each string that the range allows weighs 1, so that merges which no block of the corpus
/// needs are learned last.
const BLOCK_WEIGHT: u64 = 1 << 20;

/// The largest number of rounds of learning and banning; a few are usual.
const ROUNDS: usize = 64;

/// Learns `tokens` tokens from a sample and writes them into the base of a plan, whose goal does not matter.
///
/// # Errors
/// If the base cannot be extended, or the job was cancelled.
pub fn merge(
    plan: &ExtensionPlan,
    tokens: u64,
    sample: &LearningSample,
    job: &Job,
) -> Result<LearnedTokenizer> {
    let ExtensionPlan { base, base_json, kind, .. } = plan;
    let grammar = plan.fixed_grammar();
    let known = MergeVocabulary::of(plan)?;
    let best = known.best(tokens as usize, sample, job)?;
    let new: Vec<String> = best.learned.tokens.iter().map(|(_, text)| text.clone()).collect();
    let Extension { mut json, new_tokens } = extend(base_json, &base.name, &best.scheme, &new)?;
    append_merges(&mut json, known.ids.merges(&best.learned));
    let name = format!("{}-{}-merges-{}", base.name, kind.name(), new.len());
    let (tokenizer, bytes) = written(&name, &json)?;
    let strings = best.table.strings.iter().cloned();
    let pieces = strings.zip(best.learned.words.iter().map(|word| word.symbols.clone())).collect();
    let extremes = best.table.extremes(&best.learned.lengths());
    let usable = UsableTokens::from_vocabulary(grammar, known.ids.tokens.keys().map(String::as_str));
    Ok(LearnedTokenizer {
        merges: best.learned.tokens.iter().filter(|(step, _)| matches!(step, Step::Merge(..))).count() as u64,
        replaced: best.banned.len() as u64,
        proved: BlockGuarantee::new(*kind, grammar, extremes, usable),
        scheme: best.scheme,
        tokenizer,
        json: bytes,
        new_tokens,
        pieces,
    })
}

/// Appends merges after all others, in the format that the base uses.
pub(in crate::design) fn append_merges(json: &mut Value, merges: impl Iterator<Item = [String; 2]>) {
    let Some(list) = json["model"]["merges"].as_array_mut() else { return };
    // Older files write a merge as one text with a space, newer ones as a pair. New merges follow the file's format.
    let joined = list.first().is_some_and(Value::is_string);
    list.extend(merges.map(|pair| if joined { pair.join(" ").into() } else { json!(pair) }));
}

/// The ids of a base's tokens, and the first id of new ones.
pub(in crate::design) struct Ids {
    pub(in crate::design) tokens: HashMap<String, u32>,
    pub(in crate::design) texts: HashMap<u32, String>,
    pub(in crate::design) first_new: u32,
}

impl Ids {
    pub(in crate::design) fn of(base: &Tokenizer) -> Self {
        let tokens = base.vocabulary();
        let texts = tokens.iter().map(|(text, id)| (*id, text.clone())).collect();
        Ids { tokens, texts, first_new: base.rows() }
    }

    /// Returns the learned merges as pairs of texts, in order.
    pub(in crate::design) fn merges(&self, learned: &LearnedTokens) -> impl Iterator<Item = [String; 2]> {
        let text = |id: u32| match id.checked_sub(self.first_new) {
            Some(new) => learned.tokens[new as usize].1.clone(),
            None => self.texts[&id].clone(),
        };
        learned.tokens.iter().filter_map(move |(step, _)| match step {
            Step::Merge(left, right) => Some([text(*left), text(*right)]),
            Step::Whole(_) => None,
        })
    }
}

/// A base's vocabulary, and which texts may become new tokens.
struct MergeVocabulary<'p> {
    base: &'p Tokenizer,
    ids: Ids,
    schemes: Vec<Scheme>,
    joinable: JoinRule<'p>,
}

/// Refuses a base without splits: unlike lookups of whole pieces, merges would act on every text.
///
/// # Errors
/// If the base has no splits.
pub(crate) fn learns_apart(base_json: &Value, place: &str, option: Parameter) -> Result<()> {
    if Alphabet::from_json(base_json) == Alphabet::Bytes {
        return Ok(());
    }
    let problem = format!(
        "{option} learns merges, which would act on every text: this base has no splits that keep them in blocks"
    );
    let remedy = format!("give {} or {} alone", parameter::TOKENS_PER_BLOCK, parameter::BUDGET);
    Err(Error::input(place, problem, remedy))
}

/// Determines which texts no pre-token of the base can contain.
pub(in crate::design) struct JoinRule<'p> {
    /// The longest run of digits in a pre-token, for splits that join digits with nothing else.
    longest: Option<usize>,
    pre_tokens: PreTokenCounts<'p>,
}

impl<'p> JoinRule<'p> {
    pub(in crate::design) fn of(base: &'p Tokenizer, base_json: &Value) -> Self {
        let longest = BaseLayout::longest_digits(base_json);
        JoinRule { longest, pre_tokens: PreTokenCounts::of(base) }
    }

    /// Returns whether a token with this text can occur only in blocks. This is proved for known splits, and tested otherwise.
    pub(in crate::design) fn allows(&self, text: &str) -> bool {
        match self.longest {
            Some(longest) => is_apart(text, longest),
            None => text.contains(|c: char| c.is_ascii_digit()) && self.pre_tokens.count(text) > 1,
        }
    }
}

/// A scheme, and what was learned within its pieces.
struct Candidate {
    scheme: Scheme,
    table: PieceTable,
    learned: LearnedTokens,
    banned: HashSet<String>,
    /// See [`BlockTokenStats::with_drift`](crate::design::measured::histogram::BlockTokenStats::with_drift).
    cost: f64,
}

impl<'p> MergeVocabulary<'p> {
    fn of(plan: &'p ExtensionPlan) -> Result<Self> {
        let ExtensionPlan { base, base_json, kind, .. } = plan;
        let grammar = plan.fixed_grammar();
        // Refuses a base that cannot be extended before doing any work.
        never_extended(base_json, &base.name)?;
        extend(base_json, &base.name, &Scheme::finest(grammar), &[])?;
        learns_apart(base_json, &base.name, parameter::MERGES)?;
        let space = FixedSpace::new(*kind, grammar, &BaseVocabulary::of(base, Alphabet::Bytes));
        let schemes = space.schemes();
        if schemes.is_empty() {
            return Err(Error::input(&base.name, "has no tokens for the pieces of blocks", ""));
        }
        Ok(MergeVocabulary { base, ids: Ids::of(base), schemes, joinable: JoinRule::of(base, base_json) })
    }

    /// Returns the base's encoding of the strings of a table, with their weights in the sample.
    fn words(&self, table: &PieceTable, sample: &LearningSample) -> Result<Vec<Word>> {
        // Each string of the range has weight 1, so that strings which the corpus lacks are learned too, but last.
        let weights = sample.piece_counts(table).into_iter().map(|count| 1 + count * BLOCK_WEIGHT);
        let words = table.strings.iter().zip(weights).map(|(string, weight)| {
            let symbols = match self.ids.tokens.get(string) {
                Some(id) => Some(vec![*id]),
                None => self.base.model_ids(string),
            };
            let symbols = symbols.filter(|ids| ids.iter().all(|id| self.ids.texts.contains_key(id)));
            let problem = || Error::input(&self.base.name, format!("cannot encode {string:?}"), "");
            Ok(Word { symbols: symbols.ok_or_else(problem)?, weight, whole: true })
        });
        words.collect()
    }

    /// Learns within the pieces of one scheme; `None` if banning intermediate tokens does not end.
    fn learn(
        &self,
        tokens: usize,
        scheme: &Scheme,
        sample: &LearningSample,
        job: &Job,
    ) -> Result<Option<Candidate>> {
        let table = PieceTable::from_scheme(scheme);
        let words = self.words(&table, sample)?;
        let mut texts: HashMap<u32, String> = HashMap::new();
        for id in words.iter().flat_map(|word| &word.symbols) {
            texts.entry(*id).or_insert_with(|| self.ids.texts[id].clone());
        }
        let mut banned: HashSet<String> = HashSet::new();
        for _ in 0..ROUNDS {
            let first_id = self.ids.first_new;
            let limits = Limits {
                tokens,
                first_id,
                allows: &|text| {
                    !self.ids.tokens.contains_key(text)
                        && !banned.contains(text)
                        && self.joinable.allows(text)
                },
            };
            let learned = learn(words.clone(), texts.clone(), &limits, job)?;
            let steps = learned.unused(first_id);
            if steps.is_empty() {
                let cost = sample.block_tokens(&table, &learned.lengths()).with_drift();
                return Ok(Some(Candidate { scheme: scheme.clone(), table, learned, banned, cost }));
            }
            // Bans only accumulate, so learning restarts with fewer candidates each time.
            banned.extend(steps);
        }
        Ok(None)
    }

    /// Returns the candidate with the lowest cost; among equal ones, that with the fewest pieces.
    fn best(&self, tokens: usize, sample: &LearningSample, job: &Job) -> Result<Candidate> {
        let candidates: Vec<Option<Candidate>> = self
            .schemes
            .par_iter()
            .map(|scheme| self.learn(tokens, scheme, sample, job))
            .collect::<Result<_>>()?;
        // The first of equal ones is kept, and schemes are ordered by number of pieces.
        let best = candidates.into_iter().flatten().min_by(|a, b| a.cost.total_cmp(&b.cost));
        best.ok_or_else(|| {
            Error::input(&self.base.name, "has no tokens that merges could join in blocks", "")
        })
    }
}
