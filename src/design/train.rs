//! The way through: a base and an aim in, a checked tokenizer and its report out.

use std::cell::RefCell;
use std::collections::HashMap;

use serde::Serialize;
use serde_json::{Value, json};

use super::check::check;
use super::designs::{Designs, ITERATIONS};
use super::extend::{Extended, extend, extend_guarded};
use super::front::{self, Front, TokenizerPoint};
use super::guard::guard;
use super::layout::{Alphabet, ids_inside};
use super::measure::Measured;
use super::report::{DesignReport, EmbeddingReport, SCHEMA, SearchReport};
use super::scheme::{Kind, Range, SLOTS, Scheme};
use super::space::{MAX_NEW_TOKENS, Optimum, Vocabulary};
use super::undo::{another_way, undo};
use crate::corpus::Conformers;
use crate::error::{Error, Parameter, Result};
use crate::job::{Job, Provenance};
use crate::text::Dialect;
use crate::tokenizer::Tokenizer;

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
    /// Its JSON, [as it is read](super::extend::as_read).
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
    /// In how many contexts every number is run; [`super::texts::ALL_CONTEXTS`] unless time is short. Of the 10 MB of mixed
    /// text the same share is run.
    pub contexts: usize,
}

/// What was made.
#[derive(Debug, Clone, PartialEq)]
pub struct Trained<R = DesignReport> {
    /// The bytes of the new `tokenizer.json`.
    pub tokenizer_json: Vec<u8>,
    /// The new tokens.
    pub new_tokens: NewTokens,
    /// What it is, and what was proved.
    pub report: R,
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
    let bytes = serde_json::to_vec(&before).map_err(|e| Error::internal(&plan.base.name, e))?;
    // What is left of a base that was extended otherwise need not be a tokenizer.
    let base = Tokenizer::from_bytes(&plan.base.name, plan.base.source.clone(), &bytes)
        .map_err(|_| another_way(&plan.base.name))?;
    let again = extended(&Plan { base, base_json: before, ..*plan }, corpus, job)?;
    if serde_json::from_slice::<Value>(&again.tokenizer_json).is_ok_and(|json| json == plan.base_json) {
        return Ok(Trained { unchanged: true, ..again });
    }
    Err(another_way(&plan.base.name))
}

/// The same for a base that was not extended before.
fn extended(plan: &Plan, corpus: &dyn Conformers, job: &Job) -> Result<Trained> {
    let Plan { base, base_json, kind, range, .. } = plan;
    // Refuses what cannot be extended at all, before any work.
    extend(base_json, &base.name, &Scheme::fixed(*range, all_cuts()), &[])?;
    let known = Base::of(base, Alphabet::of(base_json));
    let designs = Designs::new(*kind, *range, (plan.dialect, plan.fewest_decimals), &known)?;
    let Optimum { scheme, new_tokens } = reach(plan, &designs, &known)?;
    let tokens = scheme.tokens_per_block();
    job.check()?;
    let found = designs.search(tokens, plan.seed)?;
    let new: Vec<String> = scheme.strings().into_iter().filter(|s| !known.holds(s)).collect();
    let guard = guard(base, base_json, &new)?;
    let Extended { json, new_tokens: added } =
        extend_guarded(base_json, &base.name, &scheme, &new, guard.as_deref())?;
    let mut bytes = serde_json::to_vec_pretty(&json).map_err(|e| Error::internal("tokenizer.json", e))?;
    bytes.push(b'\n');
    let source = crate::io::hash_bytes("tokenizer.json", &bytes);
    let extended = Tokenizer::from_bytes(&format!("{}-{}-{tokens}", base.name, kind.name()), source, &bytes)?;
    let guarantees = check((base, base_json), &extended, &scheme, &added, plan.contexts, job)?;
    let measured = Measured::of(&[&extended, base], scheme.grammar, corpus, job)?;
    let (total, base_total) = (measured.total(0), measured.total(1));
    let (lower_bound, lower_bound_by) = designs.lower_bound(tokens, known.texts());
    let last_id = added.last().map(|(id, _)| *id).or(known.tokens.values().copied().max());
    let embedding_rows = last_id.map_or(0, |id| u64::from(id) + 1);
    let dialect = (plan.dialect, plan.fewest_decimals);
    let front = Front {
        designs: front::designs(*range, dialect, &known, &measured.reach, (*kind, tokens), job)?,
        tokenizers: vec![
            TokenizerPoint::of(&base.name, 0, &base_total.inside),
            TokenizerPoint::of(&extended.name, new_tokens, &total.inside),
        ],
    };
    let mut inputs = measured.inputs.clone();
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
        drift: total.inside.worst(tokens as u64),
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
        embedding_rows,
        embedding: EmbeddingReport::of(embedding_rows, new_tokens, None),
        rows: None,
        coverage: total.coverage(),
        tokens_per_conformer: total.tokens_per_conformer(),
        base_tokens_per_conformer: base_total.tokens_per_conformer(),
        corpus: measured.report(0, Some(1), tokens as u64),
        front,
        guarantees,
        comparison: None,
    };
    Ok(Trained { tokenizer_json: bytes, new_tokens: list(base, &added)?, report, unchanged: false })
}

/// A cut before every slot that may begin a piece.
pub(super) fn all_cuts() -> Vec<usize> {
    (0..SLOTS).filter(|slot| !matches!(slot, 2 | 10 | 18)).collect()
}

/// The best scheme for the plan's aim.
fn reach(plan: &Plan, designs: &Designs<'_, Base<'_>>, known: &Base<'_>) -> Result<Optimum> {
    let (fewest, most) = (*designs.tokens().start(), *designs.tokens().end());
    match plan.aim {
        Aim::TokensPerBlock(tokens) if !(fewest..=most).contains(&tokens) => {
            let problem = format!("no {} scheme has {tokens} tokens a block", plan.kind.name());
            Err(Error::parameter(Parameter::TokensPerBlock, problem, format!("give {fewest} to {most}")))
        }
        Aim::TokensPerBlock(tokens) => designs.optimum(tokens, MAX_NEW_TOKENS).ok_or_else(|| {
            let (bound, _) = designs.lower_bound(tokens, known.texts());
            let problem = format!(
                "no scheme with at most {MAX_NEW_TOKENS} new tokens has {tokens} tokens a block; at least {bound} \
                 would be needed"
            );
            Error::parameter(Parameter::TokensPerBlock, problem, "give more tokens a block or a smaller range")
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
                Error::parameter(Parameter::Budget, problem, remedy)
            })
        }
    }
}

/// New tokens with the base's ids of their texts, as they are inside a text.
pub(super) fn list(base: &Tokenizer, added: &[(u32, String)]) -> Result<NewTokens> {
    let new_tokens: Result<Vec<NewToken>> = added
        .iter()
        .map(|(id, text)| Ok(NewToken { id: *id, text: text.clone(), base_ids: ids_inside(base, text)? }))
        .collect();
    Ok(NewTokens { schema: "drift.new-tokens/1", base: base.name.clone(), new_tokens: new_tokens? })
}

/// A base's vocabulary.
pub(super) struct Base<'t> {
    tokenizer: &'t Tokenizer,
    alphabet: Alphabet,
    pub(super) tokens: HashMap<String, u32>,
    /// Whether strings that are equal but for their digits come out of the pre-tokenizer as one piece.
    masks: RefCell<HashMap<String, bool>>,
}

impl<'t> Base<'t> {
    pub(super) fn of(tokenizer: &'t Tokenizer, alphabet: Alphabet) -> Self {
        Base { tokenizer, alphabet, tokens: tokenizer.vocabulary(), masks: RefCell::default() }
    }

    fn texts(&self) -> impl Iterator<Item = &str> + Clone {
        self.tokens.keys().map(String::as_str)
    }
}

impl Vocabulary for Base<'_> {
    fn holds(&self, string: &str) -> bool {
        self.tokens.contains_key(string)
    }

    fn may_not_be_added(&self, string: &str) -> bool {
        // A guard keeps any text out of what is no block.
        if self.alphabet == Alphabet::Text {
            return false;
        }
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
