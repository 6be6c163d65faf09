//! BPE from nothing: `--vocab-size`, by the trainer of the `tokenizers` crate.
//!
//! Blocks are isolated and cut by a scheme, as in a design, so merges do not cross the borders of its pieces; what is no
//! block is cut at white space alone. The trainer is not given texts: splitting text by expressions takes it far longer
//! than learning merges does. It is given each piece with its count, which is arithmetic on coordinates, and each string
//! between blocks. Every string of the scheme counts once more than the corpus holds it, so that numbers which a small
//! corpus lacks become tokens too as soon as there is room.
//!
//! The scheme is chosen by learning on pieces and strings between blocks ([`super::bpe`]) for the cheapest scheme of each
//! number of pieces: that of the fewest tokens and the least drift.

use std::collections::{BTreeMap, HashMap};

use rayon::prelude::*;
use serde_json::{Value, json};

use super::bound::{Usable, counting_bound};
use super::bpe::{Limits, Word, learn};
use super::check::{Check, Pieces};
use super::compare::compare_scratch;
use super::cut::cut_pattern;
use super::grammar::MAX_DECIMALS;
use super::layout::Alphabet;
use super::learned::{LearnedFrom, LearnedReport, Promises, ScratchPromises, Way};
use super::measure::{Histogram, Measured};
use super::merges::pretty;
use super::pieces::{Filled, PieceTable};
use super::report::{EmbeddingReport, SCHEMA};
use super::sample::{Sample, conformer_text};
use super::scheme::{Kind, Range, Scheme};
use super::space::{MAX_NEW_TOKENS, Space, Vocabulary};
use super::texts::{ALL_CONTEXTS, CONTEXTS, PLAIN};
use super::train::{NewToken, NewTokens, Trained, tokenizer_config};
use crate::corpus::Conformers;
use crate::error::{Error, Parameter, Result};
use crate::job::{Job, Provenance};
use crate::text::{self, Dialect, skeleton};
use crate::tokenizer::Tokenizer;
use crate::tokenizer::learn::{BYTES, byte_level_json, learn_bpe, model_vocabulary};

/// Tokens that stand for themselves: the end of a text, and the tags.
pub const SPECIAL: [&str; 5] =
    ["<|endoftext|>", text::SMILES_OPEN, text::SMILES_CLOSE, text::CONFORMER_OPEN, text::CONFORMER_CLOSE];

/// The smallest vocabulary: [`SPECIAL`] and the bytes.
pub const LEAST: usize = SPECIAL.len() + BYTES;

/// How text without blocks is cut: words with the space before them, other white space.
const WORDS: &str = " ?\\S+|\\s+";

/// The configuration beside it that `transformers` expects.
pub fn scratch_config() -> Value {
    let mut config = tokenizer_config(None);
    config["eos_token"] = SPECIAL[0].into();
    config["pad_token"] = SPECIAL[0].into();
    config
}

/// What to learn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScratchPlan {
    /// Tokens in all.
    pub vocab_size: usize,
    /// Which tokens are allowed.
    pub kind: Kind,
    /// Which blocks are cut by a scheme.
    pub range: Range,
    /// In how many contexts every number is run; [`super::texts::ALL_CONTEXTS`] unless time is short.
    pub contexts: usize,
    /// Whether to put the plain trainer beside it.
    pub compare: bool,
}

/// A tokenizer from nothing.
pub struct Scratch {
    /// Where blocks are cut before merges.
    pub scheme: Scheme,
    /// The tokenizer.
    pub tokenizer: Tokenizer,
    /// The bytes of its JSON.
    pub json: Vec<u8>,
    /// The tokens that merges make, in order.
    pub new_tokens: Vec<(u32, String)>,
}

/// Learns, checks, measures.
///
/// # Errors
/// If the vocabulary is too small, a check fails, the corpus cannot be read or is written in another dialect, or the job
/// was cancelled.
pub fn train_scratch(
    plan: ScratchPlan,
    corpus: &dyn Conformers,
    job: &Job,
) -> Result<Trained<LearnedReport>> {
    let ScratchPlan { kind, range, .. } = plan;
    let sample = Sample::read(corpus, job)?;
    let made = scratch(plan, &sample, job)?;
    let pieces = made.pieces()?;
    let (tokenizer, grammar) = (&made.tokenizer, made.scheme.grammar);
    let contexts = &CONTEXTS[..plan.contexts.clamp(1, ALL_CONTEXTS)];
    // Without a base all texts but blocks are compared with themselves.
    let check = Check {
        base: tokenizer,
        extended: tokenizer,
        scheme: &made.scheme,
        contexts,
        alphabet: Alphabet::Bytes,
        place: &tokenizer.name,
    };
    let run = check.numbers(&pieces, &[], job)?;
    let decoded_texts = made.decoded(&sample, job)?;
    let reached_tokens = made.reached(&sample, &pieces)?;
    let measured = Measured::of(&[&made.tokenizer], grammar, corpus, job)?;
    let total = measured.total(0);
    let table = PieceTable::of(&made.scheme);
    let lengths: Vec<usize> = table.strings.iter().map(|string| pieces[string].len()).collect();
    let (fewest, most) = table.extremes(&lengths);
    let mut usable = Usable::of(grammar, ["<", ">", "-", ".", ","].into_iter().chain(DIGITS));
    usable.inner += u64::from(fewest < most);
    let lower_bound = counting_bound(kind, grammar, most, usable);
    let (fewest, most) = (fewest as u64, most as u64);
    let blocks = total.inside.tokens();
    let new_tokens = made.new_tokens.len() as u64;
    let comparison = if plan.compare {
        Some(compare_scratch(&made, range, (fewest, most, lower_bound), (corpus, &sample), job)?)
    } else {
        None
    };
    let embedding_rows = made.tokenizer.vocabulary().into_values().max().map_or(0, |id| u64::from(id) + 1);
    let report = LearnedReport {
        schema: SCHEMA,
        provenance: Provenance::of(measured.inputs.clone()),
        way: Way::VocabSize,
        base: None,
        kind,
        dialect: Dialect::Fixed,
        range_angstrom: range,
        new_tokens,
        merges: new_tokens,
        replaced: 0,
        tokens_per_block: blocks.usual,
        fewest_tokens_per_block: fewest,
        most_tokens_per_block: most,
        drift: blocks.usual.abs_diff(fewest).max(blocks.usual.abs_diff(most)),
        blocks: total.all.tokens(),
        lower_bound,
        gap: new_tokens.saturating_sub(lower_bound),
        example: made.scheme.example(MAX_DECIMALS),
        first_new_id: made.new_tokens.first().map(|(id, _)| *id),
        embedding_rows,
        embedding: EmbeddingReport::of(embedding_rows, new_tokens, None),
        rows: None,
        coverage: total.coverage(),
        tokens_per_conformer: total.tokens_per_conformer(),
        base_tokens_per_conformer: None,
        learned_from: LearnedFrom::of(&sample),
        corpus: measured.report(0, None, blocks.usual),
        guarantees: Promises::Scratch(ScratchPromises {
            reached_tokens,
            numbers: grammar.numbers(),
            contexts: contexts.len() as u64,
            blocks: run.blocks,
            decoded_texts,
        }),
        comparison,
    };
    let new_tokens = made.list();
    Ok(Trained { tokenizer_json: made.json, new_tokens, report, unchanged: false })
}

const DIGITS: [&str; 10] = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"];

/// Learns a tokenizer on a sample.
///
/// # Errors
/// If the vocabulary is too small, or the job was cancelled.
pub fn scratch(plan: ScratchPlan, sample: &Sample, job: &Job) -> Result<Scratch> {
    if plan.vocab_size < LEAST {
        let problem = format!(
            "{} tokens do not hold the alphabet: {BYTES} bytes and {} tags",
            plan.vocab_size,
            SPECIAL.len()
        );
        return Err(Error::parameter(Parameter::VocabSize, problem, format!("give at least {LEAST}")));
    }
    let gaps = sample.gaps();
    let scheme = choose(plan, sample, &gaps, job)?;
    job.check()?;
    let table = PieceTable::of(&scheme);
    let mut words = gaps;
    for (string, count) in table.strings.iter().zip(counts(&table, plan.range, sample)) {
        *words.entry(string.clone()).or_default() += count;
    }
    let mut molecules: HashMap<&str, u64> = HashMap::new();
    sample.conformers.iter().for_each(|c| *molecules.entry(&c.skeleton).or_default() += 1);
    for (skeleton, count) in molecules {
        *words.entry(skeleton::smiles(skeleton)).or_default() += count;
    }
    let mut model = learn_bpe(&words, &SPECIAL, plan.vocab_size)?;
    model["ignore_merges"] = true.into();
    let mut new_tokens: Vec<(u32, String)> =
        model_vocabulary(&model).into_iter().map(|(text, id)| (id, text)).collect();
    new_tokens.retain(|(id, _)| *id >= LEAST as u32);
    new_tokens.sort_unstable();
    let splits = vec![split(&scheme.grammar.block_pattern()), split(WORDS), split(&cut_pattern(&scheme))];
    let json = pretty(&byte_level_json(model, &SPECIAL, splits))?;
    let source = crate::io::hash_bytes("tokenizer.json", &json);
    let name = format!("{}-{}", plan.kind.name(), plan.vocab_size);
    let tokenizer = Tokenizer::from_bytes(&name, source, &json)?;
    Ok(Scratch { scheme, tokenizer, json, new_tokens })
}

/// How often each string of a table is a piece of a block, and once more.
fn counts(table: &PieceTable, range: Range, sample: &Sample) -> Vec<u64> {
    let mut counts = vec![1; table.strings.len()];
    for block in sample.numbers().filter_map(|numbers| Filled::of(numbers, range)) {
        table.of_block(&block).for_each(|string| counts[string] += 1);
    }
    counts
}

/// The bytes as a base.
struct Bytes;

impl Vocabulary for Bytes {
    fn holds(&self, string: &str) -> bool {
        string.len() == 1
    }

    fn may_not_be_added(&self, _: &str) -> bool {
        false
    }
}

/// The scheme under which the sample takes the fewest tokens, drift counted as tokens.
fn choose(plan: ScratchPlan, sample: &Sample, gaps: &BTreeMap<String, u64>, job: &Job) -> Result<Scheme> {
    let space = Space::new(plan.kind, plan.range, &Bytes);
    let schemes = space.tokens().filter_map(|tokens| space.optimum(tokens, MAX_NEW_TOKENS));
    let schemes: Vec<Scheme> = schemes.map(|optimum| optimum.scheme).collect();
    let texts: HashMap<u32, String> = (0..128u8).map(|b| (u32::from(b), char::from(b).to_string())).collect();
    let word = |text: &str, weight: u64| Word {
        symbols: text.bytes().map(u32::from).collect(),
        weight,
        whole: false,
    };
    let judged = schemes.into_par_iter().map(|scheme| {
        let table = PieceTable::of(&scheme);
        let pieces = table.strings.iter().zip(counts(&table, plan.range, sample));
        let words = pieces.map(|(string, count)| word(string, count));
        let words = words.chain(gaps.iter().map(|(gap, count)| word(gap, *count))).collect();
        let limits = Limits { tokens: plan.vocab_size - LEAST, first_id: 256, allows: &|_| true };
        let learned = learn(words, texts.clone(), &limits, job)?;
        let mut blocks = Histogram::EMPTY;
        for block in sample.numbers().filter_map(|numbers| Filled::of(numbers, plan.range)) {
            blocks.count(table.of_block(&block).map(|string| learned.words[string].symbols.len()).sum());
        }
        let blocks = blocks.tokens();
        let between: u64 = learned.words[table.strings.len()..]
            .iter()
            .map(|word| word.weight * word.symbols.len() as u64)
            .sum();
        let between = between as f64 / sample.blocks.max(1) as f64;
        Ok((blocks.mean + blocks.off_tokens_per_block + between, scheme))
    });
    let judged: Vec<(f64, Scheme)> = judged.collect::<Result<_>>()?;
    let best = judged.into_iter().min_by(|(a, _), (b, _)| a.total_cmp(b));
    best.map(|(_, scheme)| scheme).ok_or_else(|| Error::internal("kind", "has no scheme"))
}

/// A split that isolates an expression.
fn split(pattern: &str) -> Value {
    json!({ "type": "Split", "pattern": { "Regex": pattern }, "behavior": "Isolated", "invert": false })
}

impl Scratch {
    /// What each string of the scheme is encoded to by itself.
    fn pieces(&self) -> Result<Pieces> {
        let strings = self.scheme.strings().into_iter().map(|string| {
            let problem = || Error::internal("training", format!("no tokens for {string:?}"));
            let ids = self.tokenizer.model_ids(&string).ok_or_else(problem)?;
            Ok((string, ids))
        });
        strings.collect()
    }

    /// Texts without blocks and the sample's come back as they were; the number of them.
    fn decoded(&self, sample: &Sample, job: &Job) -> Result<u64> {
        let corpus = sample.conformers.par_iter().map(|c| text::tagged(&conformer_text(c)));
        let all = corpus.chain(PLAIN.par_iter().map(|text| (*text).to_owned()));
        all.map(|text| {
            job.check()?;
            if self.tokenizer.decode(&self.tokenizer.ids(&text)?)? == text {
                return Ok(1);
            }
            let text = crate::error::excerpt(text.as_bytes());
            Err(Error::input("training", format!("{text} is not decoded to itself"), "nothing was written"))
        })
        .sum()
    }

    /// Every token that merges make is taken by some text: a block, a text of the sample, or its own. How many they are.
    fn reached(&self, sample: &Sample, pieces: &Pieces) -> Result<u64> {
        let mut reached: std::collections::HashSet<u32> = pieces.values().flatten().copied().collect();
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

    /// The tokens that merges make, with the ids of their bytes.
    fn list(&self) -> NewTokens {
        let vocabulary = self.tokenizer.vocabulary();
        let bytes =
            |text: &str| text.chars().filter_map(|c| vocabulary.get(&c.to_string()).copied()).collect();
        let list = self.new_tokens.iter();
        let list = list.map(|(id, text)| NewToken { id: *id, text: text.clone(), base_ids: bytes(text) });
        NewTokens { schema: "drift.new-tokens/1", base: "bytes".into(), new_tokens: list.collect() }
    }
}
