//! BPE from scratch (`--vocab-size`), with the trainer of the `tokenizers` crate.
//!
//! Blocks are isolated and cut by a scheme, as in a designed extension, so merges do not cross the borders of its pieces. Other
//! text is cut only at white space. The trainer does not receive texts, because splitting text by expressions takes it far longer
//! than learning merges. Instead it receives each piece with its count, which follows from coordinates by arithmetic, and each
//! string between blocks. Every string of the scheme counts one more than it occurs in the corpus, so that numbers which a small
//! corpus lacks also become tokens if there is room.
//!
//! To choose the scheme, merges are learned on pieces and strings between blocks ([`super::bpe`]) for the cheapest scheme of each
//! number of pieces. The scheme with the fewest tokens plus drift is chosen.

use std::collections::{BTreeMap, HashMap, HashSet};

use rayon::prelude::*;

use super::bpe::{Limits, Word, learn};
use super::tokenizer::LearnedTokenizer;
use crate::design::extension::json::{split, written};
use crate::design::extension::new_tokens::{NewToken, NewTokens};
use crate::design::extension::plain::by_id;
use crate::design::extension::texts::PLAIN;
use crate::design::measured::sample::{LearningSample, conformer_text};
use crate::design::scheme::counting_bound::{BlockGuarantee, UsableTokens};
use crate::design::scheme::cuts::{Scheme, SchemeKind};
use crate::design::scheme::expression::cut_pattern;
use crate::design::scheme::fixed_space::FixedSpace;
use crate::design::scheme::grammar::Grammar;
use crate::design::scheme::pieces::PieceTable;
use crate::design::scheme::slots::Range;
use crate::design::scheme::space::BaseTokens;
use crate::parameter;
use drift_core::encoding::Precision;
use drift_core::text::{self, skeleton};
use drift_core::tokenizer::learn::{BYTES, byte_level_json, learn_bpe, model_vocabulary};
use drift_core::{Error, Job, Result, Tokenizer};

/// Special tokens: the end of a text, and the tags.
pub const SPECIAL: [&str; 5] =
    ["<|endoftext|>", text::SMILES_OPEN, text::SMILES_CLOSE, text::CONFORMER_OPEN, text::CONFORMER_CLOSE];

/// The smallest vocabulary: [`SPECIAL`] and the bytes.
pub const LEAST: usize = SPECIAL.len() + BYTES;

/// How text without blocks is cut: words including the space before them, and other white space.
const WORDS: &str = " ?\\S+|\\s+";

/// What to learn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScratchPlan {
    /// The size of the vocabulary.
    pub vocab_size: usize,
    /// The kind of scheme: which tokens are allowed.
    pub kind: SchemeKind,
    /// The range of coordinates whose blocks are cut by a scheme.
    pub range: Range,
    /// The number of decimals, all of which are written.
    pub precision: Precision,
    /// The number of contexts in which every number is tried: [`ALL_CONTEXTS`](crate::design::extension::texts::ALL_CONTEXTS)
    /// unless time is short.
    pub contexts: usize,
    /// Whether to compare with the plain trainer.
    pub compare: bool,
}

impl ScratchPlan {
    /// Returns the grammar of the blocks that are cut by a scheme.
    pub fn grammar(&self) -> Grammar {
        Grammar::fixed(self.range, self.precision)
    }
}

/// Trains a tokenizer on a sample.
///
/// # Errors
/// If the vocabulary is too small, or the job was cancelled.
pub fn scratch(plan: ScratchPlan, sample: &LearningSample, job: &Job) -> Result<LearnedTokenizer> {
    if plan.vocab_size < LEAST {
        let problem = format!(
            "{} tokens do not hold the alphabet: {BYTES} bytes and {} tags",
            plan.vocab_size,
            SPECIAL.len()
        );
        return Err(Error::parameter(parameter::VOCAB_SIZE, problem, format!("give at least {LEAST}")));
    }
    let gaps = sample.gaps();
    let scheme = choose(plan, sample, &gaps, job)?;
    job.check()?;
    let table = PieceTable::from_scheme(&scheme);
    let mut words = gaps;
    for (string, count) in table.strings.iter().zip(sample.piece_counts(&table)) {
        *words.entry(string.clone()).or_default() += 1 + count;
    }
    let mut molecules: HashMap<&str, u64> = HashMap::new();
    sample.conformers.iter().for_each(|c| *molecules.entry(&c.skeleton).or_default() += 1);
    for (skeleton, count) in molecules {
        *words.entry(skeleton::smiles(skeleton)).or_default() += count;
    }
    let mut model = learn_bpe(&words, &SPECIAL, plan.vocab_size)?;
    // A piece of a block that is in the vocabulary becomes one token, whatever merges would make of it.
    model["ignore_merges"] = true.into();
    let mut new_tokens = by_id(model_vocabulary(&model));
    // The trainer numbers special tokens first and bytes next, so the tokens made by merges follow them.
    new_tokens.retain(|(id, _)| *id >= LEAST as u32);
    // Blocks are isolated before words and cut after them. A block contains no white space, so the split into words leaves it
    // whole.
    let splits = vec![split(&scheme.grammar.block_pattern()), split(WORDS), split(&cut_pattern(&scheme))];
    let name = format!("{}-{}", plan.kind.name(), plan.vocab_size);
    let (tokenizer, json) = written(&name, &byte_level_json(model, &SPECIAL, splits))?;
    let ids: Vec<Vec<u32>> =
        table.strings.iter().map(|string| piece_ids(&tokenizer, string)).collect::<Result<_>>()?;
    let extremes = table.extremes(&ids.iter().map(Vec::len).collect::<Vec<_>>());
    Ok(LearnedTokenizer {
        merges: new_tokens.len() as u64,
        replaced: 0,
        proved: BlockGuarantee::new(plan.kind, plan.grammar(), extremes, bytes_of_blocks(plan.grammar())),
        pieces: table.strings.into_iter().zip(ids).collect(),
        scheme,
        tokenizer,
        json,
        new_tokens,
    })
}

/// Returns the ids to which a string of the scheme is encoded on its own.
fn piece_ids(tokenizer: &Tokenizer, string: &str) -> Result<Vec<u32>> {
    let problem = || Error::internal("training", format!("no tokens for {string:?}"));
    tokenizer.model_ids(string).ok_or_else(problem)
}

/// Returns the initial bytes that can occur in a block.
fn bytes_of_blocks(grammar: Grammar) -> UsableTokens {
    const ALPHABET: [&str; 15] = ["<", ">", "-", ".", ",", "0", "1", "2", "3", "4", "5", "6", "7", "8", "9"];
    UsableTokens::from_vocabulary(grammar, ALPHABET.into_iter())
}

/// A base that consists of the single bytes.
struct Bytes;

impl BaseTokens for Bytes {
    fn holds(&self, string: &str) -> bool {
        string.len() == 1
    }

    fn may_not_be_added(&self, _: &str) -> bool {
        false
    }
}

fn word_of_bytes(text: &str, weight: u64) -> Word {
    Word { symbols: text.bytes().map(u32::from).collect(), weight, whole: false }
}

/// Returns the scheme under which the sample takes the fewest tokens, counting drift as tokens.
fn choose(
    plan: ScratchPlan,
    sample: &LearningSample,
    gaps: &BTreeMap<String, u64>,
    job: &Job,
) -> Result<Scheme> {
    let schemes = FixedSpace::new(plan.kind, plan.grammar(), &Bytes).schemes();
    // Blocks and the text between them are ASCII, so a byte is its own id.
    let texts: HashMap<u32, String> = (0..128u8).map(|b| (u32::from(b), char::from(b).to_string())).collect();
    let judged = schemes.into_par_iter().map(|scheme| {
        let table = PieceTable::from_scheme(&scheme);
        let pieces = table.strings.iter().zip(sample.piece_counts(&table));
        let words = pieces.map(|(string, count)| word_of_bytes(string, 1 + count));
        let words = words.chain(gaps.iter().map(|(gap, count)| word_of_bytes(gap, *count))).collect();
        let limits = Limits { tokens: plan.vocab_size - LEAST, first_id: 256, allows: &|_| true };
        let learned = learn(words, texts.clone(), &limits, job)?;
        let blocks = sample.block_tokens(&table, &learned.lengths());
        let between: u64 = learned.words[table.strings.len()..]
            .iter()
            .map(|word| word.weight * word.symbols.len() as u64)
            .sum();
        // Per block, like the other two terms: tokens between blocks count as much as tokens inside.
        let between = between as f64 / sample.blocks.max(1) as f64;
        Ok((blocks.with_drift() + between, scheme))
    });
    let judged: Vec<(f64, Scheme)> = judged.collect::<Result<_>>()?;
    let best = judged.into_iter().min_by(|(a, _), (b, _)| a.total_cmp(b));
    best.map(|(_, scheme)| scheme).ok_or_else(|| Error::internal("kind", "has no scheme"))
}

impl LearnedTokenizer {
    /// Checks that texts without blocks and the sample's texts decode to themselves; returns their number.
    pub(in crate::design) fn decoded(&self, sample: &LearningSample, job: &Job) -> Result<u64> {
        let corpus = sample
            .conformers
            .par_iter()
            .map(|c| text::tagged(&conformer_text(c, self.scheme.grammar.encoding())));
        let all = corpus.chain(PLAIN.par_iter().map(|text| (*text).to_owned()));
        all.map(|text| {
            job.check()?;
            if self.tokenizer.decode(&self.tokenizer.ids(&text)?)? == text {
                return Ok(1);
            }
            let text = drift_core::error::excerpt(text.as_bytes());
            Err(Error::input("training", format!("{text} is not decoded to itself"), "nothing was written"))
        })
        .sum()
    }

    /// Checks that every token made by merges is used in some text: a block, a text of the sample, or the token's own text. Returns
    /// the number of these tokens.
    pub(in crate::design) fn reached(&self, sample: &LearningSample) -> Result<u64> {
        let mut reached: HashSet<u32> = self.pieces.values().flatten().copied().collect();
        let mut texts: Vec<String> = sample.gaps().into_keys().collect();
        texts.extend(self.new_tokens.iter().map(|(_, text)| text.clone()));
        let found: Vec<Vec<u32>> =
            texts.par_iter().map(|text| self.tokenizer.ids(text)).collect::<Result<_>>()?;
        reached.extend(found.into_iter().flatten());
        match self.new_tokens.iter().find(|(id, _)| !reached.contains(id)) {
            Some((id, text)) => {
                let problem = format!("no text reaches token {id}, {text:?}");
                Err(Error::input("training", problem, "nothing was written"))
            }
            None => Ok(self.new_tokens.len() as u64),
        }
    }

    /// Returns the tokens that merges make, with the ids of their bytes.
    pub(in crate::design) fn list(&self) -> NewTokens {
        let vocabulary = self.tokenizer.vocabulary();
        let bytes =
            |text: &str| text.chars().filter_map(|c| vocabulary.get(&c.to_string()).copied()).collect();
        let list = self.new_tokens.iter().map(|(id, text)| NewToken {
            id: *id,
            text: text.clone(),
            base_ids: bytes(text),
            replaces: None,
        });
        NewTokens { schema: "drift.new-tokens/1", base: "bytes".into(), new_tokens: list.collect() }
    }
}
