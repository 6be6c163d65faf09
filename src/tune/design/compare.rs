//! Compares ways to add the same number of tokens, on one corpus.

use std::collections::{BTreeMap, HashMap};

use rayon::prelude::*;

use super::extension::extend::{Extension, add_tokens, extend, without_cut};
use super::extension::json::pretty;
use super::extension::plain::{by_id, token_texts};
use super::extension::plan::ExtensionPlan;
use super::extension::strip::never_extended;
use super::extension::texts::PLAIN;
use super::learned::bpe::{Limits, Word, learn};
use super::learned::merges::{Ids, JoinRule, append_merges, learns_apart, merge};
use super::learned::scratch::{LEAST, SPECIAL};
use super::learned::tokenizer::LearnedTokenizer;
use super::measured::corpus::CorpusMeasurement;
use super::measured::sample::{LearningSample, conformer_text, whole_text};
use super::report::comparison::{MethodComparison, MethodRow, TrainingMethod};
use super::report::trained::TrainedTokenizer;
use super::scheme::counting_bound::BlockGuarantee;
use super::scheme::cuts::Scheme;
use super::scheme::grammar::Grammar;
use super::scheme::pieces::SlotContents;
use super::train::train;
use crate::parameter;
use drift_core::text::{self};
use drift_core::tokenizer::learn::{BYTES, learn_plain};
use drift_core::{Error, Job, Result, Tokenizer};
use drift_data::corpus::Conformers;

/// The number of blocks from which merges are learned if each block is one word. Nearly all such words differ, so grouping equal
/// words does not shrink the table.
const WHOLE_BLOCKS: usize = 1 << 17;

/// A text and its token ids.
struct EncodedText {
    text: String,
    ids: Vec<u32>,
}

/// A base, and texts without blocks with its ids.
struct BaseTexts<'a> {
    tokenizer: &'a Tokenizer,
    other_texts: Vec<EncodedText>,
}

/// The tokenizer of a row, with its properties.
struct Entry {
    method: TrainingMethod,
    tokenizer: Tokenizer,
    new_tokens: Vec<(u32, String)>,
    /// What is proved for every block in the range.
    proved: Option<BlockGuarantee>,
}

impl Entry {
    /// Returns the number of texts that this tokenizer encodes in another way. A text that it cannot encode at all is not counted.
    fn changed(&self, texts: &[EncodedText]) -> u64 {
        let changed = |text: &&EncodedText| self.tokenizer.ids(&text.text).is_ok_and(|ids| ids != text.ids);
        texts.par_iter().filter(changed).count() as u64
    }
}

/// Like [`compare`], including the extension of the plan, or without one if its budget is too small for any. The extension is
/// checked in as many contexts as the plan says.
///
/// # Errors
/// The errors of [`compare`].
pub(crate) fn compare_with_design(
    plan: &ExtensionPlan,
    tokens: u64,
    corpus: &dyn Conformers,
    job: &Job,
) -> Result<MethodComparison> {
    let designed = match train(plan, corpus, job) {
        Ok(designed) => Some(designed),
        // A budget that is too small is not an error of the comparison: the other methods can still use these tokens.
        Err(Error::Parameter { parameter: parameter::BUDGET, .. }) => None,
        Err(error) => return Err(error),
    };
    compare(plan, tokens, designed.as_ref(), corpus, job)
}

/// Extends the base of a plan by `tokens` tokens with every method, and measures all results on the corpus, including a designed
/// extension if there is one.
///
/// # Errors
/// If the base cannot be extended, the corpus cannot be read or is written in another encoding, or the job was cancelled.
pub fn compare(
    plan: &ExtensionPlan,
    tokens: u64,
    designed: Option<&TrainedTokenizer>,
    corpus: &dyn Conformers,
    job: &Job,
) -> Result<MethodComparison> {
    let grammar = plan.fixed_grammar();
    never_extended(&plan.base_json, &plan.base.name)?;
    learns_apart(&plan.base_json, &plan.base.name, parameter::COMPARE)?;
    let sample = LearningSample::read(corpus, grammar.encoding(), job)?;
    let mut entries = Vec::new();
    if let Some(designed) = designed {
        let TrainedTokenizer { new_tokens, report, .. } = designed;
        let per_block = report.tokens_per_block as usize;
        entries.push(Entry {
            method: TrainingMethod::Designed,
            tokenizer: load("designed", &designed.tokenizer_json)?,
            new_tokens: new_tokens.new_tokens.iter().map(|token| (token.id, token.text.clone())).collect(),
            proved: Some(BlockGuarantee {
                fewest: per_block,
                most: per_block,
                lower_bound: report.lower_bound,
            }),
        });
    }
    entries.push(continued(plan, tokens, &sample, job)?);
    entries.push(in_whole_blocks(plan, tokens, &sample, job)?);
    let merged = merge(plan, tokens, &sample, job)?;
    entries.push(Entry {
        method: TrainingMethod::Merges,
        tokenizer: merged.tokenizer,
        new_tokens: merged.new_tokens,
        proved: Some(merged.proved),
    });
    let texts: Vec<String> =
        sample.conformers.par_iter().map(|c| conformer_text(c, grammar.encoding())).collect();
    let tags = [text::CONFORMER_OPEN, text::CONFORMER_CLOSE];
    entries.push(plain(BYTES + tags.len() + tokens as usize, &tags, &texts)?);
    let base = BaseTexts { tokenizer: &plan.base, other_texts: other_texts(&plan.base, grammar)? };
    let rows = rows(Some(&base), grammar, &entries, corpus, job)?;
    Ok(MethodComparison { new_tokens: tokens, other_texts: base.other_texts.len() as u64, rows })
}

/// Continues the base's BPE training as in the published method.
fn continued(plan: &ExtensionPlan, tokens: u64, sample: &LearningSample, job: &Job) -> Result<Entry> {
    let ExtensionPlan { base, base_json, .. } = plan;
    let encoding = plan.fixed_grammar().encoding();
    let counted: Vec<HashMap<String, u64>> = sample
        .conformers
        .par_chunks(64)
        .map(|part| {
            job.check()?;
            let mut counts: HashMap<String, u64> = HashMap::new();
            for conformer in part {
                for piece in base.pre_tokens(&conformer_text(conformer, encoding))? {
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
    learned(TrainingMethod::Continued, plan, tokens, counts, &|_| true, job, &|new| {
        let mut json = base_json.clone();
        let new_tokens = add_tokens(&mut json, &base.name, new, &[])?;
        Ok(Extension { json, new_tokens })
    })
}

/// Continues the base's BPE training with every block as one word.
fn in_whole_blocks(plan: &ExtensionPlan, tokens: u64, sample: &LearningSample, job: &Job) -> Result<Entry> {
    let ExtensionPlan { base, base_json, .. } = plan;
    let grammar = plan.fixed_grammar();
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    let inside = sample.numbers().filter(|numbers| SlotContents::from_numbers(numbers, grammar).is_some());
    for numbers in inside.take(WHOLE_BLOCKS) {
        let text = text::write("[C]<>", &[*numbers], grammar.encoding());
        *counts.entry(text["[C]".len()..].to_owned()).or_default() += 1;
    }
    let joinable = JoinRule::of(base, base_json);
    // The scheme is only used to isolate blocks. Its cut is removed again below.
    let scheme = Scheme::finest(grammar);
    let (method, allows) = (TrainingMethod::ContinuedInBlocks, |text: &str| joinable.allows(text));
    learned(method, plan, tokens, counts, &allows, job, &|new| {
        let Extension { json, new_tokens } = extend(base_json, &base.name, &scheme, new)?;
        Ok(Extension { json: without_cut(json), new_tokens })
    })
}

/// Learns merges on words as the base encodes them, and adds them to the JSON that `splice` makes from the new tokens.
fn learned(
    method: TrainingMethod,
    plan: &ExtensionPlan,
    tokens: u64,
    counts: BTreeMap<String, u64>,
    allows: &dyn Fn(&str) -> bool,
    job: &Job,
    splice: &dyn Fn(&[String]) -> Result<Extension>,
) -> Result<Entry> {
    let ids = Ids::of(&plan.base);
    let words = counts.into_par_iter().map(|(text, weight)| match plan.base.model_ids(&text) {
        Some(symbols) => Ok(Word { symbols, weight, whole: false }),
        None => Err(Error::input(&plan.base.name, format!("cannot encode {text:?}"), "")),
    });
    let words: Vec<Word> = words.collect::<Result<_>>()?;
    let limits = Limits {
        tokens: tokens as usize,
        first_id: ids.first_new,
        allows: &|text| !ids.tokens.contains_key(text) && allows(text),
    };
    let learned = learn(words, ids.texts.clone(), &limits, job)?;
    let new: Vec<String> = learned.tokens.iter().map(|(_, text)| text.clone()).collect();
    let Extension { mut json, new_tokens } = splice(&new)?;
    append_merges(&mut json, ids.merges(&learned));
    Ok(Entry { method, tokenizer: load("continued", &pretty(&json)?)?, new_tokens, proved: None })
}

/// Runs the trainer of `tokenizers` on texts, for `size` tokens, of which the first are `special` and the bytes.
fn plain(size: usize, special: &[&str], texts: &[String]) -> Result<Entry> {
    // There can be at most one merge per character, and the trainer allocates memory for the whole requested size.
    let most = texts.iter().fold(BYTES + special.len(), |sum, text| sum.saturating_add(text.len()));
    let bytes = learn_plain(texts.iter().map(String::as_str), special, size.min(most))?;
    let tokenizer = load("plain", &bytes)?;
    // The trainer numbers special tokens first, then bytes, then the learned tokens.
    let first = (BYTES + special.len()) as u32;
    let mut new_tokens = by_id(tokenizer.vocabulary());
    new_tokens.retain(|(id, _)| *id >= first);
    Ok(Entry { method: TrainingMethod::Plain, tokenizer, new_tokens, proved: None })
}

fn load(name: &str, bytes: &[u8]) -> Result<Tokenizer> {
    Tokenizer::from_bytes(name, drift_core::io::hash_bytes(name, bytes), bytes)
}

/// Measures all entries on the corpus, after the base if there is one.
fn rows(
    base: Option<&BaseTexts<'_>>,
    grammar: Grammar,
    entries: &[Entry],
    corpus: &dyn Conformers,
    job: &Job,
) -> Result<Vec<MethodRow>> {
    let tokenizers = base.map(|base| base.tokenizer).into_iter().chain(entries.iter().map(|e| &e.tokenizer));
    let measured = CorpusMeasurement::from_corpus(&tokenizers.collect::<Vec<_>>(), grammar, corpus, job)?;
    let mut rows = Vec::new();
    if base.is_some() {
        let row = row(&measured, 0, TrainingMethod::Base, &[], None);
        rows.push(MethodRow { other_texts_changed: Some(0), ..row });
    }
    for (index, entry) in (rows.len()..).zip(entries) {
        let row = row(&measured, index, entry.method, &entry.new_tokens, entry.proved);
        // A tokenizer from scratch changes every text, so the number would be meaningless.
        let from_nothing = matches!(entry.method, TrainingMethod::Plain | TrainingMethod::VocabSize);
        let texts = base.filter(|_| !from_nothing).map(|base| &base.other_texts);
        rows.push(MethodRow { other_texts_changed: texts.map(|texts| entry.changed(texts)), ..row });
    }
    Ok(rows)
}

/// Returns the row of the measured tokenizer with this index, without the number of other texts that it changes.
fn row(
    measured: &CorpusMeasurement,
    index: usize,
    method: TrainingMethod,
    new: &[(u32, String)],
    proved: Option<BlockGuarantee>,
) -> MethodRow {
    let total = measured.total(index);
    let new_tokens = new.len() as u64;
    let lower_bound = proved.map(|proved| proved.lower_bound);
    MethodRow {
        method,
        new_tokens,
        multi_digit: new.iter().filter(|(_, text)| has_digits(text)).count() as u64,
        unused: new.iter().filter(|(id, _)| !measured.seen(index, *id)).count() as u64,
        blocks: total.all.tokens(),
        tokens_per_conformer: total.tokens_per_conformer(),
        coverage: proved.map(|_| total.coverage()),
        spread: proved.map(|proved| (proved.most - proved.fewest) as u64),
        lower_bound,
        gap: lower_bound.map(|bound| new_tokens.saturating_sub(bound)),
        other_texts_changed: None,
    }
}

/// Returns whether a token has several digits.
fn has_digits(text: &str) -> bool {
    text.bytes().filter(u8::is_ascii_digit).count() > 1
}

/// Texts without blocks, with the base's ids: example texts of several kinds, and the text of every single token of the base.
fn other_texts(base: &Tokenizer, grammar: Grammar) -> Result<Vec<EncodedText>> {
    let mut texts: Vec<String> = PLAIN.iter().map(|text| grammar.without_blocks(text)).collect();
    texts.extend(token_texts(base)?);
    texts.into_par_iter().map(|text| Ok(EncodedText { ids: base.ids(&text)?, text })).collect()
}

/// Compares a tokenizer from scratch with one of the plain trainer that has as many tokens and the same texts.
///
/// # Errors
/// If the trainer fails, the corpus cannot be read, or the job was cancelled.
pub(in crate::design) fn compare_scratch(
    made: &LearnedTokenizer,
    corpus: &dyn Conformers,
    sample: &LearningSample,
    job: &Job,
) -> Result<MethodComparison> {
    let entry = Entry {
        method: TrainingMethod::VocabSize,
        tokenizer: load("vocab-size", &made.json)?,
        new_tokens: made.new_tokens.clone(),
        proved: Some(made.proved),
    };
    let encoding = made.scheme.grammar.encoding();
    let texts: Vec<String> = sample.conformers.par_iter().map(|c| whole_text(c, encoding)).collect();
    // As many tokens as were made, not as were requested: a small corpus may not have enough merges.
    let plain = plain(LEAST + made.new_tokens.len(), &SPECIAL, &texts)?;
    let rows = rows(None, made.scheme.grammar, &[plain, entry], corpus, job)?;
    Ok(MethodComparison { new_tokens: made.new_tokens.len() as u64, other_texts: 0, rows })
}
