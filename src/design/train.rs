//! The way through: a base and an aim in, a checked tokenizer and its report out.

use std::cell::RefCell;
use std::collections::HashMap;

use serde::Serialize;
use serde_json::{Value, json};

use super::bound::{Usable, counting_bound};
use super::check::check;
use super::extend::{Extended, extend};
use super::measure::Measured;
use super::report::{DesignReport, EmbeddingReport, SCHEMA, SearchReport};
use super::scheme::{Kind, MAX_TOKENS, Range, SLOTS, Scheme};
use super::search::search;
use super::space::{MAX_NEW_TOKENS, Optimum, Space, Vocabulary};
use crate::corpus::Conformers;
use crate::error::{Error, Result};
use crate::job::{Job, Provenance};
use crate::text::Dialect;
use crate::tokenizer::Tokenizer;

/// Steps of the search.
const ITERATIONS: u64 = 20_000;

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

/// Designs, extends, checks, measures.
///
/// # Errors
/// If the base cannot be extended, the aim cannot be reached, a check fails, the corpus cannot be read or is written in
/// another dialect, or the job was cancelled.
pub fn train(plan: &Plan, corpus: &dyn Conformers, job: &Job) -> Result<Trained> {
    let Plan { base, base_json, kind, range, .. } = plan;
    // Refuses what cannot be extended at all, before any work.
    extend(base_json, &base.name, &Scheme { range: *range, starts: all_cuts() }, &[])?;
    let known = Base::of(base);
    let usable = Usable::of(known.tokens.keys().map(String::as_str));
    let space = Space::new(*kind, *range, &known);
    let Optimum { scheme, new_tokens } = reach(plan, &space, usable)?;
    let tokens = scheme.tokens_per_block();
    job.check()?;
    let found = search(&space, tokens, plan.seed, ITERATIONS).map_err(|e| Error::input("search", e, ""))?;
    let new: Vec<String> = scheme.strings().into_iter().filter(|s| !known.holds(s)).collect();
    let Extended { json, new_tokens: added } = extend(base_json, &base.name, &scheme, &new)?;
    let mut bytes = serde_json::to_vec_pretty(&json).map_err(|e| Error::input("tokenizer.json", e, ""))?;
    bytes.push(b'\n');
    let source = crate::io::hash_bytes("tokenizer.json", &bytes);
    let extended = Tokenizer::from_bytes(&format!("{}-{}-{tokens}", base.name, kind.name()), source, &bytes)?;
    let guarantees = check((base, base_json), &extended, &scheme, &added, plan.contexts, job)?;
    let measured = Measured::of(&[&extended, base], *range, corpus, job)?;
    let lower_bound = counting_bound(*kind, *range, tokens, usable);
    let argmin_least = found.best.as_ref().map(|(_, new)| *new);
    let last_id = added.last().map(|(id, _)| *id).or(known.tokens.values().copied().max());
    let embedding_rows = last_id.map_or(0, |id| u64::from(id) + 1);
    let (total, base_total) = (measured.total(0), measured.total(1));
    let mut inputs = measured.inputs.clone();
    inputs.push(base.source.clone());
    let report = DesignReport {
        schema: SCHEMA,
        provenance: Provenance::of(inputs),
        base: base.name.clone(),
        kind: *kind,
        dialect: Dialect::Fixed,
        range_angstrom: *range,
        tokens_per_block: tokens as u64,
        free_tokens_per_block: tokens as u64 - brackets(&scheme),
        new_tokens,
        drift: total.inside.worst(tokens as u64),
        lower_bound,
        gap: new_tokens.saturating_sub(lower_bound),
        least_in_space: new_tokens,
        search: SearchReport {
            seed: plan.seed,
            iterations: ITERATIONS,
            evaluations: found.evaluations,
            new_tokens: argmin_least,
            reached_least: argmin_least == Some(new_tokens),
        },
        example: scheme.example(),
        first_new_id: added.first().map(|(id, _)| *id),
        embedding_rows,
        embedding: EmbeddingReport::of(embedding_rows, new_tokens, None),
        rows: None,
        coverage: total.coverage(),
        tokens_per_conformer: total.tokens_per_conformer(),
        base_tokens_per_conformer: base_total.tokens_per_conformer(),
        corpus: measured.report(0, Some(1), tokens as u64),
        guarantees,
        comparison: None,
    };
    Ok(Trained { tokenizer_json: bytes, new_tokens: list(base, &added)?, report })
}

/// A cut before every slot that may begin a piece.
pub(super) fn all_cuts() -> Vec<usize> {
    (0..SLOTS).filter(|slot| !matches!(slot, 2 | 10 | 18)).collect()
}

/// Pieces that hold a bracket.
fn brackets(scheme: &Scheme) -> u64 {
    use super::scheme::Slot;
    let bracket = |slots: &&[Slot]| slots.iter().any(|slot| matches!(slot, Slot::Open | Slot::Close));
    scheme.pieces().filter(bracket).count() as u64
}

/// The best scheme for the plan's aim.
fn reach(plan: &Plan, space: &Space, usable: Usable) -> Result<Optimum> {
    let (fewest, most) = (*space.tokens().start(), *space.tokens().end());
    match plan.aim {
        Aim::TokensPerBlock(tokens) if !(fewest..=most).contains(&tokens) => {
            let problem = format!("no {} scheme has {tokens} tokens a block", plan.kind.name());
            Err(Error::input("--tokens-per-block", problem, format!("give {fewest} to {MAX_TOKENS}")))
        }
        Aim::TokensPerBlock(tokens) => space.optimum(tokens, MAX_NEW_TOKENS).ok_or_else(|| {
            let bound = counting_bound(plan.kind, plan.range, tokens, usable);
            let problem = format!(
                "no scheme with at most {MAX_NEW_TOKENS} new tokens has {tokens} tokens a block; at least {bound} \
                 would be needed"
            );
            Error::input("--tokens-per-block", problem, "give more tokens a block or a smaller range")
        }),
        Aim::Budget(budget) => {
            let best = (fewest..=most).find_map(|tokens| space.optimum(tokens, budget));
            best.ok_or_else(|| {
                let least = (fewest..=most)
                    .filter_map(|tokens| space.optimum(tokens, MAX_NEW_TOKENS))
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
pub(super) fn list(base: &Tokenizer, added: &[(u32, String)]) -> Result<NewTokens> {
    let new_tokens: Result<Vec<NewToken>> = added
        .iter()
        .map(|(id, text)| Ok(NewToken { id: *id, text: text.clone(), base_ids: base.ids(text)? }))
        .collect();
    Ok(NewTokens { schema: "drift.new-tokens/1", base: base.name.clone(), new_tokens: new_tokens? })
}

/// A base's vocabulary.
pub(super) struct Base<'t> {
    tokenizer: &'t Tokenizer,
    pub(super) tokens: HashMap<String, u32>,
    /// Whether strings that are equal but for their digits come out of the pre-tokenizer as one piece.
    masks: RefCell<HashMap<String, bool>>,
}

impl<'t> Base<'t> {
    pub(super) fn of(tokenizer: &'t Tokenizer) -> Self {
        Base { tokenizer, tokens: tokenizer.vocabulary(), masks: RefCell::default() }
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
