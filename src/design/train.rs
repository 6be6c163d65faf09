//! The way through: a base and an aim in, a checked tokenizer and its report out.

use std::cell::RefCell;
use std::collections::HashMap;

use rayon::prelude::*;
use serde::Serialize;
use serde_json::{Value, json};

use super::check::check;
use super::designs::{Designs, ITERATIONS};
use super::extend::{Extended, extend};
use super::front::{self, Front, Reach, TokenizerPoint};
use super::report::{CorpusReport, DesignReport, SCHEMA, SearchReport, SizeReport};
use super::scheme::{Kind, Range, SLOTS, Scheme};
use super::space::{MAX_NEW_TOKENS, Optimum, Vocabulary};
use super::undo::undo;
use crate::corpus::{Conformer, Conformers};
use crate::error::{Error, Result};
use crate::job::{InputHash, Job, Provenance};
use crate::stats::size::{SIZE_CLASSES, size_class};
use crate::text::{self, Dialect};
use crate::tokenizer::{Token, Tokenizer};

/// What to reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Aim {
    /// Exactly this many tokens a block, with as few new ones as can be.
    TokensPerBlock(usize),
    /// At most this many new tokens, with as few tokens a block as can be.
    Budget(u64),
}

/// What to make.
pub struct Plan {
    /// The tokenizer to extend.
    pub base: Tokenizer,
    /// Its JSON.
    pub base_json: Value,
    /// Which tokens are allowed.
    pub kind: Kind,
    /// The dialect whose blocks change.
    pub dialect: Dialect,
    /// The fewest decimals of a number of these blocks, in the stripped dialect; none: as few as the tokens allow.
    pub fewest_decimals: Option<usize>,
    /// Which blocks change.
    pub range: Range,
    /// How far to go.
    pub aim: Aim,
    /// The seed of the search.
    pub seed: u64,
    /// In how many contexts every number is run; [`super::texts::ALL_CONTEXTS`] unless time is short.
    pub contexts: usize,
}

/// What was made.
#[derive(Debug, Clone, PartialEq)]
pub struct Trained {
    /// The bytes of the new `tokenizer.json`.
    pub tokenizer_json: Vec<u8>,
    /// The new tokens.
    pub new_tokens: NewTokens,
    /// What it is, and what was proved.
    pub report: DesignReport,
    /// Whether the base was the result of the same plan already.
    pub unchanged: bool,
}

/// New tokens and what they were before: the file `new_tokens.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NewTokens {
    /// `drift.new-tokens/1`.
    pub schema: &'static str,
    /// The base's name.
    pub base: String,
    /// By id.
    pub new_tokens: Vec<NewToken>,
}

/// One new token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NewToken {
    /// Its id.
    pub id: u32,
    /// Its text.
    pub text: String,
    /// The ids that the base encodes its text to.
    pub base_ids: Vec<u32>,
}

/// Designs, extends, checks, measures. A base that is the result of the same plan comes out as it is.
///
/// # Errors
/// If the base cannot be extended or was extended in another way, the aim cannot be reached, a check fails, the corpus
/// cannot be read or is written in another dialect, or the job was cancelled.
pub fn train(plan: &Plan, corpus: &dyn Conformers, job: &Job) -> Result<Trained> {
    let Some(before) = undo(&plan.base_json) else { return extended(plan, corpus, job) };
    let bytes = serde_json::to_vec(&before).map_err(|e| Error::input(&plan.base.name, e, ""))?;
    let base = Tokenizer::from_bytes(&plan.base.name, plan.base.source.clone(), &bytes)?;
    let again = extended(&Plan { base, base_json: before, ..*plan }, corpus, job)?;
    if serde_json::from_slice::<Value>(&again.tokenizer_json).is_ok_and(|json| json == plan.base_json) {
        return Ok(Trained { unchanged: true, ..again });
    }
    let problem = "was extended by drift before, in another way";
    let remedy = "give the tokenizer that it was made from, or the options that it was made with";
    Err(Error::input(&plan.base.name, problem, remedy))
}

/// The same for a base that was not extended before.
fn extended(plan: &Plan, corpus: &dyn Conformers, job: &Job) -> Result<Trained> {
    let Plan { base, base_json, kind, range, .. } = plan;
    // Refuses what cannot be extended at all, before any work.
    extend(base_json, &base.name, &Scheme::fixed(*range, all_cuts()), &[])?;
    let known = Base { tokenizer: base, tokens: base.vocabulary(), masks: RefCell::default() };
    let designs = Designs::new(*kind, *range, (plan.dialect, plan.fewest_decimals), &known)?;
    let Optimum { scheme, new_tokens } = reach(plan, &designs, &known)?;
    let tokens = scheme.tokens_per_block();
    job.check()?;
    let found = designs.search(tokens, plan.seed)?;
    let new: Vec<String> = scheme.strings().into_iter().filter(|s| !known.holds(s)).collect();
    let Extended { json, new_tokens: added } = extend(base_json, &base.name, &scheme, &new)?;
    let mut bytes = serde_json::to_vec_pretty(&json).map_err(|e| Error::input("tokenizer.json", e, ""))?;
    bytes.push(b'\n');
    let source = crate::io::hash_bytes("tokenizer.json", &bytes);
    let extended = Tokenizer::from_bytes(&format!("{}-{}-{tokens}", base.name, kind.name()), source, &bytes)?;
    let guarantees = check((base, base_json), &extended, &scheme, &added, plan.contexts, job)?;
    let measured = Measured::of(plan, &extended, &scheme, corpus, job)?;
    let (lower_bound, lower_bound_by) = designs.lower_bound(tokens, known.texts());
    let last_id = added.last().map(|(id, _)| *id).or(known.tokens.values().copied().max());
    let total = measured.total();
    let written = (*kind, tokens);
    let dialect = (plan.dialect, plan.fewest_decimals);
    let front = Front {
        designs: front::designs(*range, dialect, &known, &measured.reach, written, job)?,
        tokenizers: vec![
            total.base_blocks.point(&base.name, 0),
            total.blocks_after.point(&extended.name, new_tokens),
        ],
    };
    let mut inputs = measured.summary_inputs.clone();
    inputs.push(base.source.clone());
    let report = DesignReport {
        schema: SCHEMA,
        provenance: Provenance::of(inputs),
        base: base.name.clone(),
        kind: *kind,
        dialect: plan.dialect,
        range_angstrom: *range,
        fewest_decimals: scheme.grammar.fewest_decimals() as u64,
        tokens_per_block: tokens as u64,
        free_tokens_per_block: (tokens - scheme.brackets()) as u64,
        new_tokens,
        drift: total.worst,
        lower_bound,
        lower_bound_by,
        gap: new_tokens.saturating_sub(lower_bound),
        least_in_space: new_tokens,
        search: SearchReport {
            seed: plan.seed,
            iterations: ITERATIONS,
            evaluations: found.evaluations,
            new_tokens: found.least,
            reached_least: found.least == Some(new_tokens),
        },
        examples: scheme.grammar.counts().rev().map(|decimals| scheme.example(decimals)).collect(),
        first_new_id: added.first().map(|(id, _)| *id),
        embedding_rows: last_id.map_or(0, |id| u64::from(id) + 1),
        coverage: total.coverage(),
        tokens_per_conformer: total.mean(total.tokens),
        base_tokens_per_conformer: total.mean(total.base_tokens),
        corpus: measured.report(),
        front,
        guarantees,
    };
    Ok(Trained { tokenizer_json: bytes, new_tokens: list(base, &added)?, report, unchanged: false })
}

/// A cut before every slot that may begin a piece.
fn all_cuts() -> Vec<usize> {
    (0..SLOTS).filter(|slot| !matches!(slot, 2 | 10 | 18)).collect()
}

/// The best scheme for the plan's aim.
fn reach(plan: &Plan, designs: &Designs<'_, Base<'_>>, known: &Base<'_>) -> Result<Optimum> {
    let (fewest, most) = (*designs.tokens().start(), *designs.tokens().end());
    match plan.aim {
        Aim::TokensPerBlock(tokens) if !(fewest..=most).contains(&tokens) => {
            let problem = format!("no {} scheme has {tokens} tokens a block", plan.kind.name());
            Err(Error::input("--tokens-per-block", problem, format!("give {fewest} to {most}")))
        }
        Aim::TokensPerBlock(tokens) => designs.optimum(tokens, MAX_NEW_TOKENS).ok_or_else(|| {
            let (bound, _) = designs.lower_bound(tokens, known.texts());
            let problem = format!(
                "no scheme with at most {MAX_NEW_TOKENS} new tokens has {tokens} tokens a block; at least {bound} \
                 would be needed"
            );
            Error::input("--tokens-per-block", problem, "give more tokens a block or a smaller range")
        }),
        Aim::Budget(budget) => {
            let best = (fewest..=most).find_map(|tokens| designs.optimum(tokens, budget));
            best.ok_or_else(|| {
                let least = (fewest..=most)
                    .filter_map(|tokens| designs.optimum(tokens, MAX_NEW_TOKENS))
                    .min_by_key(|optimum| optimum.new_tokens);
                let remedy = least.map_or_else(String::new, |least| {
                    let tokens = least.scheme.tokens_per_block();
                    format!("the least is {} new tokens, for {tokens} tokens a block", least.new_tokens)
                });
                let problem = format!("no scheme does with {budget} new tokens");
                Error::input("--budget", problem, remedy)
            })
        }
    }
}

/// New tokens with the base's ids of their texts.
fn list(base: &Tokenizer, added: &[(u32, String)]) -> Result<NewTokens> {
    let new_tokens: Result<Vec<NewToken>> = added
        .iter()
        .map(|(id, text)| Ok(NewToken { id: *id, text: text.clone(), base_ids: base.ids(text)? }))
        .collect();
    Ok(NewTokens { schema: "drift.new-tokens/1", base: base.name.clone(), new_tokens: new_tokens? })
}

/// A base's vocabulary.
struct Base<'t> {
    tokenizer: &'t Tokenizer,
    tokens: HashMap<String, u32>,
    /// Whether strings that are equal but for their digits come out of the pre-tokenizer as one piece.
    masks: RefCell<HashMap<String, bool>>,
}

impl Base<'_> {
    fn texts(&self) -> impl Iterator<Item = &str> + Clone {
        self.tokens.keys().map(String::as_str)
    }
}

impl Vocabulary for Base<'_> {
    fn holds(&self, string: &str) -> bool {
        self.tokens.contains_key(string)
    }

    fn may_not_be_added(&self, string: &str) -> bool {
        let mask = string.replace(|c: char| c.is_ascii_digit(), "0");
        if let Some(known) = self.masks.borrow().get(&mask) {
            return *known;
        }
        // A pre-tokenizer that fails here fails the checks too.
        let whole = self.tokenizer.pre_tokens(&mask).is_ok_and(|pieces| pieces.len() == 1);
        self.masks.borrow_mut().insert(mask, whole);
        whole
    }
}

/// Sums over conformers.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    conformers: u64,
    blocks: u64,
    covered: u64,
    tokens: u64,
    base_tokens: u64,
    /// Tokens more or fewer than the scheme's, over all blocks.
    drift: u64,
    /// The most of them in one block of the range.
    worst: u64,
    /// Blocks of the range under the base.
    base_blocks: BlockSums,
    /// The same under the result.
    blocks_after: BlockSums,
}

/// Tokens of blocks.
#[derive(Debug, Clone, Copy, Default)]
struct BlockSums {
    blocks: u64,
    tokens: u64,
    fewest: u64,
    most: u64,
}

impl BlockSums {
    fn add(&mut self, other: &BlockSums) {
        if other.blocks == 0 {
            return;
        }
        self.fewest = if self.blocks == 0 { other.fewest } else { self.fewest.min(other.fewest) };
        self.most = self.most.max(other.most);
        self.blocks += other.blocks;
        self.tokens += other.tokens;
    }

    fn block(&mut self, tokens: u64) {
        self.add(&BlockSums { blocks: 1, tokens, fewest: tokens, most: tokens });
    }

    fn point(&self, name: &str, new_tokens: u64) -> TokenizerPoint {
        TokenizerPoint {
            name: name.to_owned(),
            new_tokens,
            tokens_per_block: self.tokens as f64 / self.blocks.max(1) as f64,
            drift: self.most - self.fewest,
        }
    }
}

impl Sums {
    fn add(&mut self, other: &Sums) {
        self.conformers += other.conformers;
        self.blocks += other.blocks;
        self.covered += other.covered;
        self.tokens += other.tokens;
        self.base_tokens += other.base_tokens;
        self.drift += other.drift;
        self.worst = self.worst.max(other.worst);
        self.base_blocks.add(&other.base_blocks);
        self.blocks_after.add(&other.blocks_after);
    }

    fn coverage(&self) -> f64 {
        self.covered as f64 / self.blocks.max(1) as f64
    }

    fn mean(&self, sum: u64) -> f64 {
        sum as f64 / self.conformers.max(1) as f64
    }
}

/// A corpus under both tokenizers, by size class.
struct Measured {
    sizes: [Sums; SIZE_CLASSES.len()],
    skipped: u64,
    reach: Reach,
    summary_inputs: Vec<InputHash>,
}

impl Measured {
    fn of(
        plan: &Plan,
        extended: &Tokenizer,
        scheme: &Scheme,
        corpus: &dyn Conformers,
        job: &Job,
    ) -> Result<Self> {
        let mut sizes = [Sums::default(); SIZE_CLASSES.len()];
        let mut reach = Reach::default();
        let summary = corpus.read(job, &mut |batch| {
            let parts: Vec<(usize, Sums)> = batch
                .conformers
                .par_iter()
                .map(|conformer| measure(plan, extended, scheme, conformer))
                .collect::<Result<_>>()?;
            parts.iter().for_each(|(class, sums)| sizes[*class].add(sums));
            let blocks = batch.conformers.iter().flat_map(|conformer| &conformer.coordinates);
            blocks.for_each(|numbers| reach.add(numbers));
            Ok(())
        })?;
        let written = summary.written;
        let (other, remedy) = match plan.dialect {
            Dialect::Fixed => (written.stripped && !written.fixed, "give a corpus in the fixed dialect"),
            Dialect::Stripped => {
                (written.fixed && !written.stripped, "give a corpus in the stripped dialect")
            }
        };
        if other {
            let other = Dialect::ALL.map(Dialect::name)[usize::from(plan.dialect == Dialect::Fixed)];
            let problem = format!(
                "is written in the {other} dialect; blocks of the {} dialect are what changes",
                plan.dialect.name()
            );
            return Err(Error::input("--corpus", problem, format!("{remedy}, or --dialect {other}")));
        }
        Ok(Measured { sizes, reach, skipped: summary.skipped, summary_inputs: summary.inputs })
    }

    fn total(&self) -> Sums {
        let mut total = Sums::default();
        self.sizes.iter().for_each(|sums| total.add(sums));
        total
    }

    fn report(&self) -> CorpusReport {
        let total = self.total();
        CorpusReport {
            conformers: total.conformers,
            blocks: total.blocks,
            skipped: self.skipped,
            drift_tokens_per_block: total.drift as f64 / total.blocks.max(1) as f64,
            by_size: (self.sizes.iter().zip(SIZE_CLASSES))
                .filter(|(sums, _)| sums.conformers > 0)
                .map(|(sums, class)| SizeReport {
                    from: class.from as u64,
                    to: class.to.map(|to| to as u64),
                    conformers: sums.conformers,
                    coverage: sums.coverage(),
                    tokens_per_conformer: sums.mean(sums.tokens),
                    base_tokens_per_conformer: sums.mean(sums.base_tokens),
                })
                .collect(),
        }
    }
}

/// One conformer's size class and sums.
fn measure(
    plan: &Plan,
    extended: &Tokenizer,
    scheme: &Scheme,
    conformer: &Conformer,
) -> Result<(usize, Sums)> {
    let tokens = scheme.tokens_per_block();
    let text = text::tagged(&text::write(&conformer.skeleton, &conformer.coordinates, plan.dialect));
    let (found, base_found) = (extended.tokens(&text)?, plan.base.tokens(&text)?);
    let mut sums = Sums {
        conformers: 1,
        blocks: conformer.coordinates.len() as u64,
        tokens: found.len() as u64,
        base_tokens: base_found.len() as u64,
        ..Sums::default()
    };
    for (range, numbers) in crate::tokenizer::block_ranges(&text).iter().zip(&conformer.coordinates) {
        let touching = |tokens: &[Token]| {
            tokens.iter().filter(|t| t.end > range.start - 1 && t.start < range.end + 1).count()
        };
        let after = touching(&found);
        let drift = after.abs_diff(tokens) as u64;
        sums.drift += drift;
        if numbers.iter().all(|number| scheme.grammar.holds(*number)) {
            sums.covered += 1;
            sums.worst = sums.worst.max(drift);
            sums.blocks_after.block(after as u64);
            sums.base_blocks.block(touching(&base_found) as u64);
        }
    }
    Ok((size_class(conformer.coordinates.len()), sums))
}

/// The configuration that makes `transformers` read `tokenizer.json` as it is: some of its classes build a
/// pre-tokenizer of their own instead.
pub fn tokenizer_config(base: Option<&Value>) -> Value {
    let mut config = match base {
        Some(Value::Object(config)) => Value::Object(config.clone()),
        _ => json!({ "clean_up_tokenization_spaces": false }),
    };
    config["tokenizer_class"] = "PreTrainedTokenizerFast".into();
    config
}
