//! Compares ways to add the same number of tokens, on one corpus.

use std::collections::{BTreeMap, HashMap};

use rayon::prelude::*;
use serde_json::Value;

use super::extension::extend::{Extended, add_tokens, extend, without_cut};
use super::extension::json::pretty;
use super::extension::new_tokens::NewToken;
use super::extension::plan::ExtensionPlan;
use super::extension::strip::never_extended;
use super::extension::texts::PLAIN;
use super::learned::bpe::{Limits, Word, learn};
use super::learned::merges::{Joinable, MergesPlan, append_merges, learns_apart, merge, merges_of};
use super::learned::scratch::{LEAST, SPECIAL, Scratch};
use super::measured::corpus::Measured;
use super::measured::sample::{LearningSample, conformer_text, whole_text};
use super::report::comparison::{MethodComparison, MethodRow, TrainingMethod};
use super::report::trained::Trained;
use super::scheme::counting_bound::Proved;
use super::scheme::cuts::Scheme;
use super::scheme::grammar::Grammar;
use super::scheme::pieces::Filled;
use super::train::train;
use crate::parameter;
use drift_core::encoding::Fixed;
use drift_core::error::{Error, Result};
use drift_core::job::Job;
use drift_core::text::{self};
use drift_core::tokenizer::Tokenizer;
use drift_core::tokenizer::learn::{BYTES, learn_plain};
use drift_data::corpus::Conformers;

/// The number of blocks from which merges are learned if each block is one word. Nearly all such words differ, so grouping equal
/// words does not shrink the table.
const WHOLE_BLOCKS: usize = 1 << 17;

/// A text and its token ids.
type Encoded = (String, Vec<u32>);

/// The tokenizer of a row, with its properties.
struct Entry {
    method: TrainingMethod,
    tokenizer: Tokenizer,
    new_tokens: Vec<(u32, String)>,
    /// What is proved for every block in the range.
    proved: Option<Proved>,
    from_nothing: bool,
}

/// A designed extension, borrowed from the caller.
#[derive(Clone, Copy)]
pub struct Designed<'d> {
    /// The bytes of its `tokenizer.json`.
    pub json: &'d [u8],
    /// Its new tokens.
    pub new_tokens: &'d [NewToken],
    /// The number of tokens of every block in the range.
    pub tokens_per_block: u64,
    /// The lower bound; see [`super::report::designed::DesignReport::lower_bound`].
    pub lower_bound: u64,
}

impl<'d> Designed<'d> {
    /// Borrows a training result.
    pub fn new(trained: &'d Trained) -> Self {
        Designed {
            json: &trained.tokenizer_json,
            new_tokens: &trained.new_tokens.new_tokens,
            tokens_per_block: trained.report.tokens_per_block,
            lower_bound: trained.report.lower_bound,
        }
    }
}

/// Like [`compare`], including the extension planned by `design`, or without one if its budget is too small for any. The extension
/// is checked in as many contexts as its plan says.
///
/// # Errors
/// The errors of [`compare`].
pub fn compare_with_design(
    design: &ExtensionPlan,
    plan: MergesPlan<'_>,
    corpus: &dyn Conformers,
    job: &Job,
) -> Result<MethodComparison> {
    let designed = match train(design, corpus, job) {
        Ok(designed) => Some(designed),
        // A budget that is too small is not an error of the comparison: the other methods can still use these tokens.
        Err(Error::Parameter { parameter: parameter::BUDGET, .. }) => None,
        Err(error) => return Err(error),
    };
    compare(plan, designed.as_ref().map(Designed::new), corpus, job)
}

/// Extends the base by `plan.tokens` tokens with every method, and measures all results on the corpus.
///
/// # Errors
/// If the base cannot be extended, the corpus cannot be read or is written in another encoding, or the job was cancelled.
pub fn compare(
    plan: MergesPlan<'_>,
    designed: Option<Designed<'_>>,
    corpus: &dyn Conformers,
    job: &Job,
) -> Result<MethodComparison> {
    never_extended(plan.base_json, &plan.base.name)?;
    learns_apart(plan.base_json, &plan.base.name, parameter::COMPARE)?;
    let sample = LearningSample::read(corpus, plan.grammar().encoding(), job)?;
    let mut entries = Vec::new();
    if let Some(designed) = designed {
        let tokens = designed.tokens_per_block as usize;
        entries.push(Entry {
            method: TrainingMethod::Designed,
            tokenizer: load("designed", designed.json)?,
            new_tokens: designed.new_tokens.iter().map(|token| (token.id, token.text.clone())).collect(),
            proved: Some(Proved { fewest: tokens, most: tokens, lower_bound: designed.lower_bound }),
            from_nothing: false,
        });
    }
    entries.push(continued(plan, &sample, job)?);
    entries.push(in_whole_blocks(plan, &sample, job)?);
    let merged = merge(plan, &sample, job)?;
    entries.push(Entry {
        method: TrainingMethod::Merges,
        tokenizer: merged.tokenizer,
        new_tokens: merged.new_tokens,
        proved: Some(merged.proved),
        from_nothing: false,
    });
    let encoding = plan.grammar().encoding();
    let texts: Vec<String> = sample.conformers.par_iter().map(|c| conformer_text(c, encoding)).collect();

    let tags = [text::CONFORMER_OPEN, text::CONFORMER_CLOSE];
    entries.push(plain(BYTES + tags.len() + plan.tokens as usize, &tags, &texts)?);
    let others = other_texts(plan.base, plan.grammar())?;
    let rows = rows((Some((plan.base, &others)), plan.grammar()), &entries, corpus, job)?;
    Ok(MethodComparison { new_tokens: plan.tokens, other_texts: others.len() as u64, rows })
}

/// Continues the base's BPE training as in the published method.
fn continued(plan: MergesPlan<'_>, sample: &LearningSample, job: &Job) -> Result<Entry> {
    let MergesPlan { base, base_json, .. } = plan;
    let counted: Vec<HashMap<String, u64>> = sample
        .conformers
        .par_chunks(64)
        .map(|part| {
            job.check()?;
            let mut counts: HashMap<String, u64> = HashMap::new();
            for conformer in part {
                for piece in base.pre_tokens(&conformer_text(conformer, plan.grammar().encoding()))? {
                    *counts.entry(piece).or_default() += 1;
                }
            }
            Ok(counts)
        })
        .collect::<Result<_>>()?;
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for (piece, count) in counted.into_iter().flatten() {
        *counts.entry(piece).or_default() += count;
    }
    let (tokenizer, new_tokens) = learned(plan, counts, &|_| true, job, &|new| {
        let mut json = base_json.clone();
        let new_tokens = add_tokens(&mut json, &base.name, new, &[])?;
        Ok((json, new_tokens))
    })?;
    Ok(Entry { method: TrainingMethod::Continued, tokenizer, new_tokens, proved: None, from_nothing: false })
}

/// Continues the base's BPE training with every block as one word.
fn in_whole_blocks(plan: MergesPlan<'_>, sample: &LearningSample, job: &Job) -> Result<Entry> {
    let MergesPlan { base, base_json, .. } = plan;
    let inside = |numbers: &&[Fixed; 3]| Filled::from_numbers(numbers, plan.grammar()).is_some();
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for numbers in sample.numbers().filter(inside).take(WHOLE_BLOCKS) {
        let text = text::write("[C]<>", &[*numbers], plan.grammar().encoding());
        *counts.entry(text["[C]".len()..].to_owned()).or_default() += 1;
    }
    let joinable = Joinable::of(base, base_json);
    // The scheme is only used to isolate blocks. Its cut is removed again below.
    let scheme = Scheme::finest(plan.grammar());
    let (tokenizer, new_tokens) = learned(plan, counts, &|text| joinable.allows(text), job, &|new| {
        let Extended { json, new_tokens } = extend(base_json, &base.name, &scheme, new)?;
        Ok((without_cut(json), new_tokens))
    })?;
    Ok(Entry {
        method: TrainingMethod::ContinuedInBlocks,
        tokenizer,
        new_tokens,
        proved: None,
        from_nothing: false,
    })
}

/// The JSON of an extended base, and the new tokens with their ids.
type Spliced = Result<(Value, Vec<(u32, String)>)>;

/// Learns merges on words as the base encodes them, and adds them to the JSON that `splice` makes from the new tokens.
fn learned(
    plan: MergesPlan<'_>,
    counts: BTreeMap<String, u64>,
    allows: &dyn Fn(&str) -> bool,
    job: &Job,
    splice: &dyn Fn(&[String]) -> Spliced,
) -> Result<(Tokenizer, Vec<(u32, String)>)> {
    let known = plan.base.vocabulary();
    let texts: HashMap<u32, String> = known.iter().map(|(text, id)| (*id, text.clone())).collect();
    let first_id = known.values().copied().max().map_or(0, |id| id + 1);
    let words = counts.into_par_iter().map(|(text, weight)| {
        let symbols = plan.base.model_ids(&text);
        let problem = || Error::input(&plan.base.name, format!("cannot encode {text:?}"), "");
        Ok(Word { symbols: symbols.ok_or_else(problem)?, weight, whole: false })
    });
    let words: Vec<Word> = words.collect::<Result<_>>()?;
    let is_new = |text: &str| !known.contains_key(text) && allows(text);
    let limits = Limits { tokens: plan.tokens as usize, first_id, allows: &is_new };
    let learned = learn(words, texts.clone(), &limits, job)?;
    let new: Vec<String> = learned.tokens.iter().map(|(_, text)| text.clone()).collect();
    let (mut json, new_tokens) = splice(&new)?;
    append_merges(&mut json, merges_of(&learned, first_id, &texts));
    Ok((load("continued", &pretty(&json)?)?, new_tokens))
}

/// Runs the trainer of `tokenizers` on texts, for `size` tokens, of which the first are `special` and the bytes.
fn plain(size: usize, special: &[&str], texts: &[String]) -> Result<Entry> {
    // There can be at most one merge per character, and the trainer allocates memory for the whole requested size.
    let most = texts.iter().fold(BYTES + special.len(), |sum, text| sum.saturating_add(text.len()));
    let bytes = learn_plain(texts.iter().map(String::as_str), special, size.min(most))?;
    let tokenizer = load("plain", &bytes)?;
    // The trainer numbers special tokens first, then bytes, then the learned tokens.
    let first = (BYTES + special.len()) as u32;
    let mut new_tokens: Vec<(u32, String)> = tokenizer
        .vocabulary()
        .into_iter()
        .map(|(text, id)| (id, text))
        .filter(|(id, _)| *id >= first)
        .collect();
    new_tokens.sort_unstable();
    Ok(Entry { method: TrainingMethod::Plain, tokenizer, new_tokens, proved: None, from_nothing: true })
}

fn load(name: &str, bytes: &[u8]) -> Result<Tokenizer> {
    Tokenizer::from_bytes(name, drift_core::io::hash_bytes(name, bytes), bytes)
}

/// Measures all entries on the corpus, after the base if there is one.
fn rows(
    (base, grammar): (Option<(&Tokenizer, &[Encoded])>, Grammar),
    entries: &[Entry],
    corpus: &dyn Conformers,
    job: &Job,
) -> Result<Vec<MethodRow>> {
    let first = base.map(|(tokenizer, _)| tokenizer);
    let tokenizers: Vec<&Tokenizer> =
        first.into_iter().chain(entries.iter().map(|entry| &entry.tokenizer)).collect();
    let measured = Measured::from_corpus(&tokenizers, grammar, corpus, job)?;
    let mut rows: Vec<MethodRow> = first.iter().map(|_| base_row(&measured)).collect();
    for (index, entry) in (rows.len()..).zip(entries) {
        let total = measured.total(index);
        let new_tokens = entry.new_tokens.len() as u64;
        let lower_bound = entry.proved.map(|proved| proved.lower_bound);
        // A text that the new tokenizer cannot encode at all is not counted as changed.
        let changed = |(text, ids): &&Encoded| entry.tokenizer.ids(text).is_ok_and(|other| other != *ids);
        // A tokenizer from scratch changes every text, so the number would be meaningless.
        let others = base.map(|(_, others)| others).filter(|_| !entry.from_nothing);
        rows.push(MethodRow {
            method: entry.method,
            new_tokens,
            multi_digit: entry.new_tokens.iter().filter(|(_, text)| digits(text) > 1).count() as u64,
            unused: entry.new_tokens.iter().filter(|(id, _)| !measured.seen(index, *id)).count() as u64,
            blocks: total.all.tokens(),
            tokens_per_conformer: total.tokens_per_conformer(),
            coverage: entry.proved.map(|_| total.coverage()),
            spread: entry.proved.map(|proved| (proved.most - proved.fewest) as u64),
            lower_bound,
            gap: lower_bound.map(|bound| new_tokens.saturating_sub(bound)),
            other_texts_changed: others.map(|others| others.par_iter().filter(changed).count() as u64),
        });
    }
    Ok(rows)
}

/// The row of the base itself, which is measured first.
fn base_row(measured: &Measured) -> MethodRow {
    let total = measured.total(0);
    MethodRow {
        method: TrainingMethod::Base,
        new_tokens: 0,
        multi_digit: 0,
        unused: 0,
        blocks: total.all.tokens(),
        tokens_per_conformer: total.tokens_per_conformer(),
        coverage: None,
        spread: None,
        lower_bound: None,
        gap: None,
        other_texts_changed: Some(0),
    }
}

fn digits(text: &str) -> usize {
    text.bytes().filter(u8::is_ascii_digit).count()
}

/// Texts without blocks, with the base's ids: example texts of several kinds, and the text of every single token of the base.
fn other_texts(base: &Tokenizer, grammar: Grammar) -> Result<Vec<Encoded>> {
    let mut ids: Vec<u32> = base.vocabulary().into_values().collect();
    ids.sort_unstable();
    let mut texts: Vec<String> = PLAIN.iter().map(|text| grammar.without_blocks(text)).collect();
    texts.extend(ids.par_iter().map(|id| base.decode(&[*id])).collect::<Result<Vec<String>>>()?);
    texts.into_par_iter().map(|text| Ok((text.clone(), base.ids(&text)?))).collect()
}

/// Compares a tokenizer from scratch with one of the plain trainer that has as many tokens and the same texts.
///
/// # Errors
/// If the trainer fails, the corpus cannot be read, or the job was cancelled.
pub(in crate::design) fn compare_scratch(
    made: &Scratch,
    proved: Proved,
    (corpus, sample): (&dyn Conformers, &LearningSample),
    job: &Job,
) -> Result<MethodComparison> {
    let entry = Entry {
        method: TrainingMethod::VocabSize,
        tokenizer: load("vocab-size", &made.json)?,
        new_tokens: made.new_tokens.clone(),
        proved: Some(proved),
        from_nothing: true,
    };
    let encoding = made.scheme.grammar.encoding();
    let texts: Vec<String> = sample.conformers.par_iter().map(|c| whole_text(c, encoding)).collect();
    // As many tokens as were made, not as were requested: a small corpus may not have enough merges.
    let plain = plain(LEAST + made.new_tokens.len(), &SPECIAL, &texts)?;
    let rows = rows((None, made.scheme.grammar), &[plain, entry], corpus, job)?;
    Ok(MethodComparison { new_tokens: made.new_tokens.len() as u64, other_texts: 0, rows })
}
