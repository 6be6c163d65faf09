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
use std::sync::Mutex;

use rayon::prelude::*;
use serde_json::{Value, json};

use super::bpe::{Learned, Limits, Step, Word, learn};
use crate::design::extension::base::BaseVocabulary;
use crate::design::extension::extend::{Extended, extend};
use crate::design::extension::json::written;
use crate::design::extension::layout::{Alphabet, BaseLayout};
use crate::design::extension::numbers::Pieces;
use crate::design::extension::plan::ExtensionPlan;
use crate::design::extension::strip::never_extended;
use crate::design::measured::histogram::{BlockTokenStats, Histogram};
use crate::design::measured::sample::LearningSample;
use crate::design::scheme::counting_bound::{Proved, Usable};
use crate::design::scheme::cuts::{Scheme, SchemeKind};
use crate::design::scheme::fixed_space::FixedSpace;
use crate::design::scheme::grammar::Grammar;
use crate::design::scheme::pieces::{Filled, PieceTable};
use crate::design::scheme::slots::Range;
use crate::design::scheme::space::MAX_NEW_TOKENS;
use crate::parameter;
use drift_core::encoding::Precision;
use drift_core::error::{Error, Parameter, Result};
use drift_core::job::Job;
use drift_core::tokenizer::Tokenizer;

/// The weight of a block of the corpus. Each string that the range allows weighs 1, so that merges which no block of the corpus
/// needs are learned last.
const BLOCK_WEIGHT: u64 = 1 << 20;

/// The largest number of rounds of learning and banning; a few are usual.
const ROUNDS: usize = 64;

/// What to learn, on which base.
#[derive(Clone, Copy)]
pub struct MergesPlan<'p> {
    /// The tokenizer to extend.
    pub base: &'p Tokenizer,
    /// Its JSON.
    pub base_json: &'p Value,
    /// The kind of scheme: which tokens are allowed.
    pub kind: SchemeKind,
    /// The range of coordinates whose blocks get new tokens.
    pub range: Range,
    /// The number of decimals, all of which are written.
    pub precision: Precision,
    /// The number of tokens to add.
    pub tokens: u64,
    /// The number of contexts in which every number is tried: [`ALL_CONTEXTS`](crate::design::extension::texts::ALL_CONTEXTS)
    /// unless time is short.
    pub contexts: usize,
}

impl<'p> MergesPlan<'p> {
    /// A plan with the settings of a designed extension, for `tokens` new tokens.
    pub fn new(plan: &'p ExtensionPlan, tokens: u64) -> Self {
        let ExtensionPlan { base, base_json, kind, range, contexts, .. } = plan;
        let precision = plan.encoding.precision();
        MergesPlan { base, base_json, kind: *kind, range: *range, precision, tokens, contexts: *contexts }
    }
}

impl MergesPlan<'_> {
    /// The grammar of the blocks that get new tokens.
    pub fn grammar(&self) -> Grammar {
        Grammar::fixed(self.range, self.precision)
    }
}

/// A tokenizer with merges learned within blocks.
pub struct Merged {
    /// The scheme that cuts blocks before merges apply.
    pub scheme: Scheme,
    /// The tokenizer.
    pub tokenizer: Tokenizer,
    /// The bytes of its JSON.
    pub json: Vec<u8>,
    /// The new tokens with their ids, in order.
    pub new_tokens: Vec<(u32, String)>,
    /// The number of new tokens that are made by merges.
    pub merges: u64,
    /// The number of texts that were banned from becoming tokens.
    pub replaced: u64,
    /// What is proved for every block in the range.
    pub proved: Proved,
    /// The ids to which each piece of the scheme is encoded.
    pub(in crate::design) pieces: Pieces,
}

/// Learns tokens from a sample and writes them into the base.
///
/// # Errors
/// If the base cannot be extended, or the job was cancelled.
pub fn merge(plan: MergesPlan<'_>, sample: &LearningSample, job: &Job) -> Result<Merged> {
    let MergesPlan { base, base_json, kind, .. } = plan;
    let known = Known::of(plan)?;
    let best = known.best(plan, sample, job)?;
    let lengths = best.lengths();
    let new: Vec<String> = best.learned.tokens.iter().map(|(_, text)| text.clone()).collect();
    let Extended { mut json, new_tokens } = extend(base_json, &base.name, &best.scheme, &new)?;
    append_merges(&mut json, known.merges(&best.learned));
    let name = format!("{}-{}-merges-{}", base.name, kind.name(), new.len());
    let (tokenizer, bytes) = written(&name, &json)?;
    let strings = best.table.strings.iter().cloned();
    let pieces = strings.zip(best.learned.words.iter().map(|word| word.symbols.clone())).collect();
    let extremes = best.table.extremes(&lengths);
    let usable = Usable::from_vocabulary(plan.grammar(), known.tokens.keys().map(String::as_str));
    Ok(Merged {
        merges: best.learned.tokens.iter().filter(|(step, _)| matches!(step, Step::Merge(..))).count() as u64,
        replaced: best.banned.len() as u64,
        proved: Proved::new(kind, plan.grammar(), extremes, usable),
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

/// A base's vocabulary, and which texts may become new tokens.
struct Known<'p> {
    base: &'p Tokenizer,
    tokens: HashMap<String, u32>,
    texts: HashMap<u32, String>,
    first_id: u32,
    schemes: Vec<Scheme>,
    joinable: Joinable<'p>,
}

/// Refuses a base without splits: unlike lookups of whole pieces, merges would act on every text.
///
/// # Errors
/// If the base has no splits.
pub fn learns_apart(base_json: &Value, place: &str, option: Parameter) -> Result<()> {
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
pub(in crate::design) struct Joinable<'p> {
    base: &'p Tokenizer,
    /// The longest run of digits in a pre-token, for splits that join digits with nothing else.
    longest: Option<usize>,
    /// For strings with every digit replaced by 0: whether the pre-tokenizer cuts the string.
    masks: Mutex<HashMap<String, bool>>,
}

impl<'p> Joinable<'p> {
    pub(in crate::design) fn of(base: &'p Tokenizer, base_json: &Value) -> Self {
        let longest = BaseLayout::longest_digits(base_json);
        Joinable { base, longest, masks: Mutex::default() }
    }

    /// Whether a token with this text can occur only in blocks. This is proved for known splits, and tested otherwise.
    pub(in crate::design) fn allows(&self, text: &str) -> bool {
        let digits = text.bytes().filter(u8::is_ascii_digit).count();
        if let Some(longest) = self.longest {
            return digits > 0 && (digits < text.len() || digits > longest);
        }
        let mask = text.replace(|c: char| c.is_ascii_digit(), "0");
        // A poisoned lock means that another thread panicked. Allowing nothing is the safe answer until that panic ends the run.
        let Ok(mut masks) = self.masks.lock() else { return false };
        let cut = masks.entry(mask).or_insert_with_key(|mask| {
            // If the pre-tokenizer fails here, the later checks fail too.
            self.base.pre_tokens(mask).is_ok_and(|pieces| pieces.len() > 1)
        });
        digits > 0 && *cut
    }
}

/// A scheme, and what was learned within its pieces.
struct Candidate {
    scheme: Scheme,
    table: PieceTable,
    learned: Learned,
    banned: HashSet<String>,
    blocks: BlockTokenStats,
}

impl Candidate {
    fn lengths(&self) -> Vec<usize> {
        self.learned.words.iter().map(|word| word.symbols.len()).collect()
    }

    /// The mean number of tokens of a block plus its mean drift: each token too many or too few costs as much as a token.
    fn cost(&self) -> f64 {
        self.blocks.mean + self.blocks.off_tokens_per_block
    }
}

impl<'p> Known<'p> {
    fn of(plan: MergesPlan<'p>) -> Result<Self> {
        let MergesPlan { base, base_json, kind, .. } = plan;
        // Refuses a base that cannot be extended before doing any work.
        never_extended(base_json, &base.name)?;
        extend(base_json, &base.name, &Scheme::finest(plan.grammar()), &[])?;
        learns_apart(base_json, &base.name, parameter::MERGES)?;
        let tokens = base.vocabulary();
        let space = FixedSpace::new(kind, plan.grammar(), &BaseVocabulary::of(base, Alphabet::Bytes));
        let schemes: Vec<Scheme> = space
            .tokens()
            .filter_map(|tokens| space.optimum(tokens, MAX_NEW_TOKENS))
            .map(|optimum| optimum.scheme)
            .collect();
        if schemes.is_empty() {
            return Err(Error::input(&base.name, "has no tokens for the pieces of blocks", ""));
        }
        let texts: HashMap<u32, String> = tokens.iter().map(|(text, id)| (*id, text.clone())).collect();
        // After the largest id rather than at the number of tokens, since added tokens may leave gaps.
        let first_id = tokens.values().copied().max().map_or(0, |id| id + 1);
        Ok(Known { base, joinable: Joinable::of(base, base_json), tokens, texts, first_id, schemes })
    }

    /// The base's encoding of the strings of a table, with their weights in the sample.
    fn words(&self, table: &PieceTable, sample: &LearningSample) -> Result<Vec<Word>> {
        // Each string of the range has weight 1, so that strings which the corpus lacks are learned too, but last.
        let mut weights = vec![1; table.strings.len()];
        for block in sample.numbers().filter_map(|numbers| Filled::from_numbers(numbers, table.grammar)) {
            table.of_block(&block).for_each(|string| weights[string] += BLOCK_WEIGHT);
        }
        let words = table.strings.iter().zip(weights).map(|(string, weight)| {
            let symbols = match self.tokens.get(string) {
                Some(id) => Some(vec![*id]),
                None => self.base.model_ids(string),
            };
            let symbols = symbols.filter(|ids| ids.iter().all(|id| self.texts.contains_key(id)));
            let problem = || Error::input(&self.base.name, format!("cannot encode {string:?}"), "");
            Ok(Word { symbols: symbols.ok_or_else(problem)?, weight, whole: true })
        });
        words.collect()
    }

    /// Learns within the pieces of one scheme; `None` if banning intermediate tokens does not end.
    fn learn(
        &self,
        plan: MergesPlan<'_>,
        scheme: &Scheme,
        sample: &LearningSample,
        job: &Job,
    ) -> Result<Option<Candidate>> {
        let table = PieceTable::from_scheme(scheme);
        let words = self.words(&table, sample)?;
        let mut texts: HashMap<u32, String> = HashMap::new();
        for id in words.iter().flat_map(|word| &word.symbols) {
            texts.entry(*id).or_insert_with(|| self.texts[id].clone());
        }
        let mut banned: HashSet<String> = HashSet::new();
        for _ in 0..ROUNDS {
            let allows = |text: &str| {
                !self.tokens.contains_key(text) && !banned.contains(text) && self.joinable.allows(text)
            };
            let limits = Limits { tokens: plan.tokens as usize, first_id: self.first_id, allows: &allows };
            let learned = learn(words.clone(), texts.clone(), &limits, job)?;
            let steps: Vec<String> = learned.unused(self.first_id).into_iter().map(String::from).collect();
            if steps.is_empty() {
                let mut counts = Histogram::EMPTY;
                for block in
                    sample.numbers().filter_map(|numbers| Filled::from_numbers(numbers, plan.grammar()))
                {
                    let length = |string: usize| learned.words[string].symbols.len();
                    counts.count(table.of_block(&block).map(length).sum());
                }
                let (scheme, blocks) = (scheme.clone(), counts.tokens());
                return Ok(Some(Candidate { scheme, table, learned, banned, blocks }));
            }
            // Bans only accumulate, so learning restarts with fewer candidates each time.
            banned.extend(steps);
        }
        Ok(None)
    }

    /// The candidate with the lowest cost; among equal ones, that with the fewest pieces.
    fn best(&self, plan: MergesPlan<'_>, sample: &LearningSample, job: &Job) -> Result<Candidate> {
        let candidates: Vec<Option<Candidate>> = self
            .schemes
            .par_iter()
            .map(|scheme| self.learn(plan, scheme, sample, job))
            .collect::<Result<_>>()?;
        // The first of equal ones is kept, and schemes are ordered by number of pieces.
        let best = candidates.into_iter().flatten().min_by(|a, b| a.cost().total_cmp(&b.cost()));
        best.ok_or_else(|| {
            Error::input(&self.base.name, "has no tokens that merges could join in blocks", "")
        })
    }

    /// The learned merges as pairs, in order.
    fn merges<'k>(&'k self, learned: &'k Learned) -> impl Iterator<Item = [String; 2]> + 'k {
        merges_of(learned, self.first_id, &self.texts)
    }
}

/// The learned merges as pairs of texts, in order. `texts` contains the texts of ids below `first_id`.
pub(in crate::design) fn merges_of<'k>(
    learned: &'k Learned,
    first_id: u32,
    texts: &'k HashMap<u32, String>,
) -> impl Iterator<Item = [String; 2]> + 'k {
    let text = move |id: u32| match id.checked_sub(first_id) {
        Some(new) => learned.tokens[new as usize].1.clone(),
        None => texts[&id].clone(),
    };
    learned.tokens.iter().filter_map(move |(step, _)| match step {
        Step::Merge(left, right) => Some([text(*left), text(*right)]),
        Step::Whole(_) => None,
    })
}
