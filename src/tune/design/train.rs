//! The complete procedure for designed extensions: takes a base and a goal, and returns a checked tokenizer with its report.

use std::collections::{BTreeMap, HashSet};

use serde_json::Value;

use super::extension::base::{BaseTokenizer, BaseVocabulary};
use super::extension::check::{Guarantees, check};
use super::extension::extend::{Extension, FEWER_NUMBERS, WHOLE_NUMBERS, extend, extend_guarded};
use super::extension::guard::{guard, written_with};
use super::extension::json::written;
use super::extension::layout::Alphabet;
use super::extension::new_tokens::list;
use super::extension::plan::{Aim, ExtensionPlan};
use super::extension::reuse::{Reuse, prune};
use super::extension::strip::{another_way, strip_extension};
use super::front::designs;
use super::measured::corpus::CorpusMeasurement;
use super::measured::sample::read_as;
use super::report::designed::{AnnealingReport, DesignReport};
use super::report::front::{ParetoFront, TokenizerPoint};
use super::report::trained::TrainedTokenizer;
use super::report::vocabulary::{SCHEMA, VocabularyReport};
use super::scheme::cuts::{Scheme, SchemeKind};
use super::scheme::grammar::Grammar;
use super::scheme::search::AnnealingResult;
use super::scheme::slots::{Range, size};
use super::scheme::space::{BaseTokens, MAX_NEW_TOKENS, Optimum};
use super::scheme::spaces::DesignSpaces;
use crate::parameter;
use drift_core::encoding::TrailingZeros;
use drift_core::tokenizer::BUILT_IN_SKELETONS;
use drift_core::{Encoding, Error, Job, Result, Tokenizer};
use drift_data::corpus::Conformers;

/// Designs an extension, writes it into the base, checks it, and measures it. A base that already is the result of the same plan is
/// returned unchanged, unless tokens of it were removed.
///
/// # Errors
/// If the base cannot be extended, was extended in another way or is to lose tokens after it was extended, the goal cannot be reached, a
/// check fails, the corpus cannot be read or is written in another encoding, or the job was cancelled.
pub fn train(plan: &ExtensionPlan, corpus: &dyn Conformers, job: &Job) -> Result<TrainedTokenizer> {
    let Some(before) = strip_extension(&plan.base_json, plan.encoding) else {
        return extended(plan, corpus, job);
    };
    if plan.reuse.is_some() {
        let problem = "removes tokens of a base, and this one was already extended by drift";
        return Err(Error::parameter(parameter::REUSE, problem, "give the tokenizer that it was made from"));
    }
    let bytes = serde_json::to_vec(&before).map_err(|e| Error::internal(&plan.base.name, e))?;
    // If the base was extended in another way, the stripped JSON need not be a valid tokenizer.
    let base = Tokenizer::from_bytes(&plan.base.name, plan.base.source.clone(), &bytes)
        .map_err(|_| another_way(&plan.base.name))?;
    let again = extended(&ExtensionPlan { base, base_json: before, reuse: None, ..*plan }, corpus, job)?;
    // JSON values are compared, not bytes: a file that was only reformatted is the same tokenizer.
    if serde_json::from_slice::<Value>(&again.tokenizer_json).is_ok_and(|json| json == plan.base_json) {
        return Ok(TrainedTokenizer { unchanged: true, ..again });
    }
    Err(another_way(&plan.base.name))
}

/// Like [`train`], for a base that was not extended before.
fn extended(plan: &ExtensionPlan, corpus: &dyn Conformers, job: &Job) -> Result<TrainedTokenizer> {
    let base = plan.base();
    // Refuses what cannot be extended or measured before doing any work.
    extendable(plan.base(), plan.encoding, plan.range)?;
    read_as(plan.encoding, corpus)?;
    let known = BaseVocabulary::of(base.tokenizer, Alphabet::from_json(base.json));
    let spaces = DesignSpaces::new(plan.kind, plan.range, plan.encoding, plan.fewest_decimals, &known)?;
    let Optimum { scheme, .. } = reach(plan, &spaces)?;
    job.check()?;
    let annealed = spaces.search(scheme.tokens_per_block(), plan.seed)?;
    // In the order of the scheme's strings, so that new tokens get the same ids in every run.
    let new = known.lacks(&scheme);
    let mut pruned = None;
    if let Some(reuse) = &plan.reuse {
        // Old tokens that are themselves pieces of blocks must stay.
        let pieces = scheme.strings();
        let kept: HashSet<&str> = pieces.iter().map(String::as_str).collect();
        pruned = Some(prune(base, reuse, new.len(), &kept, corpus, plan.encoding, job)?);
    }
    let none = BTreeMap::new();
    let (left, gone) = match &pruned {
        Some(pruned) => (BaseTokenizer { tokenizer: &pruned.base, json: &pruned.base_json }, &pruned.gone),
        None => (base, &none),
    };
    let ids: Vec<u32> = gone.keys().copied().collect();
    let Extension { json, new_tokens } = guarded(left, &scheme, &new, &ids)?;
    let name = format!("{}-{}-{}", base.tokenizer.name, scheme.kind().name(), scheme.tokens_per_block());
    let (tokenizer, tokenizer_json) = written(&name, &json)?;
    let guarantees = check(left, &tokenizer, &scheme, &new_tokens, plan.contexts, job)?;
    let list = list(base.tokenizer, &new_tokens, gone)?;
    let reused = gone.len() as u64;
    let design = Design { scheme, tokenizer, new_tokens, reused, annealed, guarantees };
    let report = design.report(plan, &spaces, corpus, job)?;
    Ok(TrainedTokenizer { tokenizer_json, new_tokens: list, report, unchanged: false })
}

/// Refuses a base that cannot be extended.
fn extendable(base: BaseTokenizer<'_>, encoding: Encoding, range: Range) -> Result<()> {
    let around = [encoding.open(), encoding.separator(), encoding.close()].concat();
    if !around.bytes().all(|byte| byte.is_ascii_graphic()) {
        let problem =
            format!("blocks of {encoding} contain white space, which tokenizers write in other characters");
        return Err(Error::parameter(parameter::ENCODING, problem, "give an encoding without white space"));
    }
    base.tokenizer.writes(encoding, BUILT_IN_SKELETONS)?;
    // Any scheme shows whether the base can be extended, and the finest needs no search.
    let finest = Grammar::constant(encoding.with_zeros(TrailingZeros::Kept), range);
    extend(base.json, &base.tokenizer.name, &Scheme::finest(finest), &[]).map(|_| ())
}

/// Returns the smallest usual number of tokens per block for which a base can be extended, for numbers below 15 Å: at least 9 for the
/// fused kind and 11 for the separate kind. For bins and codes, the smallest number possible. The extension is drafted, not checked.
///
/// # Errors
/// The reason why the base cannot be extended.
pub fn possible(base: &Tokenizer, kind: SchemeKind, encoding: Encoding) -> Result<usize> {
    let base_json = base.json()?;
    if strip_extension(&base_json, encoding).is_some() {
        return Err(another_way(&base.name));
    }
    let base = BaseTokenizer { tokenizer: base, json: &base_json };
    extendable(base, encoding, Range::USUAL)?;
    let known = BaseVocabulary::of(base.tokenizer, Alphabet::from_json(base.json));
    let spaces = DesignSpaces::new(kind, Range::USUAL, encoding, None, &known)?;
    let least = match (encoding.is_decimal(), kind) {
        (false, _) => 0,
        // Fused, 9 tokens per block need about 260 new tokens, and 6 need 2,800. Separate, 11 need about 160.
        (true, SchemeKind::Fused) => 9,
        (true, SchemeKind::Separate) => 11,
    };
    // The last refusal is reported, which is the one for the most tokens per block that were tried.
    let mut why = None;
    for tokens in spaces.tokens().filter(|tokens| *tokens >= least).take(TRIED) {
        let Some(Optimum { scheme, .. }) = spaces.optimum(tokens, MAX_NEW_TOKENS) else { continue };
        match guarded(base, &scheme, &known.lacks(&scheme), &[]) {
            Ok(_) => return Ok(tokens),
            Err(error) => why = Some(error),
        }
    }
    Err(why
        .unwrap_or_else(|| Error::input(&base.tokenizer.name, "has no extension of few tokens a block", "")))
}

/// The number of different tokens per block that [`possible`] tries.
const TRIED: usize = 6;

/// Finds the smallest extensions of a base for numbers below 15 Å, for each of the given numbers of tokens per block that has one. Calls
/// `each` with a tokenizer and its number of new tokens. Returns the numbers of tokens that have none, with the reasons. The extensions
/// are not checked; [`train`] does that.
///
/// # Errors
/// If a result is not a valid tokenizer, or `each` fails.
pub(crate) fn drafts(
    base: BaseTokenizer<'_>,
    kind: SchemeKind,
    encoding: Encoding,
    tokens: impl Iterator<Item = usize>,
    each: &mut dyn FnMut(&Tokenizer, u64) -> Result<()>,
) -> Result<Vec<(usize, Error)>> {
    let known = BaseVocabulary::of(base.tokenizer, Alphabet::from_json(base.json));
    let spaces = DesignSpaces::new(kind, Range::USUAL, encoding, None, &known)?;
    let mut missing = Vec::new();
    for tokens in tokens {
        let drafted =
            of_tokens(tokens, kind, encoding, &spaces).and_then(|Optimum { scheme, new_tokens }| {
                let extension = guarded(base, &scheme, &known.lacks(&scheme), &[])?;
                Ok((extension, new_tokens))
            });
        match drafted {
            Ok((Extension { json, .. }, new_tokens)) => {
                each(&written(&base.tokenizer.name, &json)?.0, new_tokens)?;
            }
            Err(why) => missing.push((tokens, why)),
        }
    }
    Ok(missing)
}

/// Writes a scheme into a base, with a guard if needed.
fn guarded(base: BaseTokenizer<'_>, scheme: &Scheme, new: &[String], ids: &[u32]) -> Result<Extension> {
    let guard = guard(base, &written_with(scheme.grammar), new)?;
    extend_guarded(base.json, &base.tokenizer.name, scheme, new, ids, guard.as_deref())
}

/// An extension that passed all checks.
struct Design {
    scheme: Scheme,
    tokenizer: Tokenizer,
    new_tokens: Vec<(u32, String)>,
    /// The number of new tokens that took ids of old ones.
    reused: u64,
    annealed: AnnealingResult,
    guarantees: Guarantees,
}

impl Design {
    /// Measures the extension in comparison with its base, and compares it with other designs.
    fn report(
        self,
        plan: &ExtensionPlan,
        spaces: &DesignSpaces<'_, BaseVocabulary<'_>>,
        corpus: &dyn Conformers,
        job: &Job,
    ) -> Result<DesignReport> {
        let ExtensionPlan { base, .. } = plan;
        let Design { scheme, tokenizer, annealed, guarantees, .. } = self;
        let (tokens, new_tokens) = (scheme.tokens_per_block(), self.new_tokens.len() as u64);
        let measured = CorpusMeasurement::from_corpus(&[&tokenizer, base], scheme.grammar, corpus, job)?;
        let (total, base_total) = (measured.total(0), measured.total(1));
        let (lower_bound, lower_bound_by) = spaces.lower_bound(tokens, spaces.vocabulary().texts());
        let front = ParetoFront {
            designs: designs(spaces, tokens, &measured.reach, job)?,
            tokenizers: vec![
                TokenizerPoint::new(&base.name, 0, &base_total.inside),
                TokenizerPoint::new(&tokenizer.name, new_tokens, &total.inside),
            ],
        };
        Ok(DesignReport {
            schema: SCHEMA,
            provenance: measured.provenance(Some(base)),
            base: base.name.clone(),
            kind: scheme.kind(),
            encoding: plan.encoding,
            range_angstrom: scheme.grammar.decimal_range(),
            fewest_decimals: scheme.grammar.fewest_decimals() as u64,
            tokens_per_block: tokens as u64,
            free_tokens_per_block: (tokens - scheme.brackets()) as u64,
            new_tokens,
            reuse: plan.reuse.as_ref().map(Reuse::name),
            drift: total.inside.worst(tokens as u64),
            lower_bound,
            lower_bound_by,
            gap: new_tokens.saturating_sub(lower_bound),
            least_in_space: new_tokens,
            search: AnnealingReport::new(&annealed, plan.seed, new_tokens),
            examples: scheme.grammar.counts().rev().map(|decimals| scheme.example(decimals)).collect(),
            vocabulary: VocabularyReport::new(
                &tokenizer,
                &self.new_tokens,
                self.reused,
                &total,
                Some(&base_total),
            ),
            corpus: measured.report(tokens as u64),
            front,
            guarantees,
            comparison: None,
        })
    }
}

/// Returns the best scheme with so many tokens a block.
fn of_tokens(
    tokens: usize,
    kind: SchemeKind,
    encoding: Encoding,
    designs: &DesignSpaces<'_, BaseVocabulary<'_>>,
) -> Result<Optimum> {
    let (fewest, most) = (*designs.tokens().start(), *designs.tokens().end());
    if !(fewest..=most).contains(&tokens) {
        let problem = format!("no {} scheme has {tokens} tokens a block", kind.name());
        let remedy = if fewest == most { format!("give {most}") } else { format!("give {fewest} to {most}") };
        return Err(Error::parameter(parameter::TOKENS_PER_BLOCK, problem, remedy));
    }
    designs.optimum(tokens, MAX_NEW_TOKENS).ok_or_else(|| {
        let (bound, _) = designs.lower_bound(tokens, designs.vocabulary().texts());
        // A smaller bound says nothing: no scheme attains it.
        let needed = match bound > MAX_NEW_TOKENS {
            true => format!("; at least {bound} would be needed"),
            false => String::new(),
        };
        let problem =
            format!("no scheme with at most {MAX_NEW_TOKENS} new tokens has {tokens} tokens a block{needed}");
        if encoding.is_decimal() {
            let remedy = "give more tokens a block or a smaller range";
            return Error::parameter(parameter::TOKENS_PER_BLOCK, problem, remedy);
        }
        let possible: Vec<String> = (fewest..=most)
            .filter(|tokens| designs.optimum(*tokens, MAX_NEW_TOKENS).is_some())
            .map(|tokens| tokens.to_string())
            .collect();
        let remedy = match &possible[..] {
            [] if designs.grammar(most).row().iter().any(|slot| size(&[*slot]) > MAX_NEW_TOKENS) => {
                FEWER_NUMBERS.to_owned()
            }
            [] => WHOLE_NUMBERS.to_owned(),
            some => format!("give {} tokens a block", some.join(" or ")),
        };
        Error::parameter(parameter::TOKENS_PER_BLOCK, problem, remedy)
    })
}

/// Returns the best scheme for the plan's goal.
fn reach(plan: &ExtensionPlan, designs: &DesignSpaces<'_, BaseVocabulary<'_>>) -> Result<Optimum> {
    let (fewest, most) = (*designs.tokens().start(), *designs.tokens().end());
    match plan.aim {
        Aim::TokensPerBlock(tokens) => of_tokens(tokens, plan.kind, plan.encoding, designs),
        Aim::Budget(budget) => {
            // Starting from the fewest tokens per block, so the first scheme within the budget is the best.
            let best = (fewest..=most).find_map(|tokens| designs.optimum(tokens, budget.min(MAX_NEW_TOKENS)));
            best.ok_or_else(|| {
                let least = (fewest..=most)
                    .filter_map(|tokens| designs.optimum(tokens, MAX_NEW_TOKENS))
                    .min_by_key(|optimum| optimum.new_tokens);
                let remedy = least.map_or_else(String::new, |least| {
                    let tokens = least.scheme.tokens_per_block();
                    format!("the fewest are {} new tokens, for {tokens} tokens a block", least.new_tokens)
                });
                let problem = format!("no scheme works with {budget} new tokens");
                Error::parameter(parameter::BUDGET, problem, remedy)
            })
        }
    }
}
