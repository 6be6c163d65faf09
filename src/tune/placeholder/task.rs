//! The work for one tokenizer in one encoding: the replay of the corpus, and its results.

use std::cmp::Ordering;

use rayon::prelude::*;

use super::attainable::{AttainableTokens, free_tokens};
use super::borders::{CrossingTokens, borders, inside};
use super::certificate::Certificate;
use super::classes::{ClassPlan, SampleConformer, analyse};
use super::counts::{ReplayCounts, ReplayTotals};
use super::drawn::DrawnBlocks;
use super::first_pass::{FirstPass, Sample};
use super::forcing::{Choice, MOST_CROSSED, apart, lost, refused};
use super::front::front;
use super::grammar::{Numbers, Space};
use super::intervals::Intervals;
use super::objective::Objective;
use super::plan::FitPlan;
use super::replay::{BlockReplay, replay};
use super::report::{
    Alternative, CandidateReport, Conditions, FitResult, RefusedTokenizer, SearchReport, TokenCount,
};
use super::search::{SearchSettings, search};
use super::statement::statement;
use super::strings::attainable;
use drift_core::text::{self, skeleton};
use drift_core::tokenizer::{BlockTokens, Counter, Method};
use drift_core::{Encoding, Result, Tokenizer};
use drift_data::corpus::Conformer;

/// The number of conformers that one piece of work replays.
const CHUNK: usize = 256;

/// The annealing steps for a single placeholder, and for one per class.
const STEPS: [u64; 2] = [4_000, 2_000];

/// The work for one tokenizer in one encoding.
pub(super) struct Task<'t> {
    counter: Counter<'t>,
    encoding: Encoding,
    attainable: AttainableTokens,
    /// The candidates, followed by the constructed placeholders.
    choices: Vec<Choice>,
    replayed: Part,
    /// An atom that changes the tokens of the block after it, if any.
    depends_on: Option<Box<str>>,
    /// The candidates whose templates would force a digit or a sign.
    forcing: Vec<Choice>,
}

/// The results of a part of the corpus.
#[derive(Default)]
struct Part {
    counts: ReplayCounts,
    sample: Vec<SampleConformer>,
    /// The number of blocks outside the range of an extended tokenizer that cross their brackets.
    crossed: u64,
    /// The tokens that cross a bracket.
    crossing: CrossingTokens,
}

impl<'t> Task<'t> {
    /// Examines a tokenizer. Returns a refusal if its tokens cross the brackets of blocks.
    ///
    /// # Errors
    /// If the tokenizer cannot encode the corpus's atoms or a candidate.
    pub(super) fn new(
        plan: &FitPlan,
        tokenizer: &'t Tokenizer,
        encoding: Encoding,
        first_pass: &FirstPass,
    ) -> Result<std::result::Result<Self, RefusedTokenizer>> {
        tokenizer.writes(encoding, first_pass.skeletons.iter().map(|skeleton| &**skeleton))?;
        let borders = borders(tokenizer, &first_pass.atoms, encoding)?;
        // Only in blocks outside its range may an extended tokenizer cross brackets. Small blocks are in every range, so there it
        // must not.
        if borders.in_small_blocks {
            return Ok(Err(refused(tokenizer, encoding, &borders.crossing, &first_pass.first)?));
        }
        let counter = Counter::for_encoding(tokenizer, encoding, first_pass.skeletons.iter().map(|s| &**s))?;
        let attainable = attainable(&counter, Space(encoding))?;
        let mut choices = Vec::new();
        for (placeholder, source) in plan.candidates_of(encoding) {
            let free = free_tokens(&counter, &placeholder)?;
            choices.push(Choice { placeholder, source: Some(source), free });
        }
        choices.extend(attainable.best.iter().map(|(free, placeholder)| Choice {
            placeholder: placeholder.clone(),
            source: None,
            free: *free,
        }));
        // The examples of `borders` may all lie in an extended tokenizer's range, and a placeholder outside.
        let (choices, forcing) = apart(tokenizer, choices, encoding)?;
        if choices.is_empty() {
            return Ok(Err(refused(tokenizer, encoding, &borders.crossing, &first_pass.first)?));
        }
        let (replayed, depends_on) = (Part::default(), borders.depends_on);
        Ok(Ok(Task { counter, encoding, attainable, choices, replayed, depends_on, forcing }))
    }

    /// Replays conformers, the first of which is at `place` in the corpus. Returns the number of blocks.
    ///
    /// # Errors
    /// If the tokenizer cannot encode one.
    pub(super) fn replay(&mut self, conformers: &[Conformer], place: u64, sample: Sample) -> Result<u64> {
        let before = self.replayed.counts.blocks();
        let parts: Vec<Part> = conformers
            .par_chunks(CHUNK)
            .enumerate()
            .map(|(chunk, conformers)| self.part(conformers, place + (chunk * CHUNK) as u64, sample))
            .collect::<Result<_>>()?;
        // Parts are returned in the order of the corpus, so the order of the sample does not depend on the number of threads.
        let all = &mut self.replayed;
        for part in parts {
            all.counts.merge(&part.counts);
            all.sample.extend(part.sample);
            all.crossed += part.crossed;
            all.crossing.extend(part.crossing);
        }
        Ok(all.counts.blocks() - before)
    }

    fn part(&self, conformers: &[Conformer], place: u64, sample: Sample) -> Result<Part> {
        let mut part = Part::default();
        let mut text = String::new();
        let mut tokens = Vec::new();
        for (place, conformer) in (place..).zip(conformers) {
            let blocks = self.blocks(conformer, &mut text, &mut tokens, &mut part)?;
            part.counts.add(&blocks);
            if sample.holds(place) {
                let (molecule, skeleton) = (conformer.molecule.clone(), conformer.skeleton.clone());
                part.sample.push(SampleConformer { molecule, skeleton, blocks });
            }
        }
        Ok(part)
    }

    /// Returns the replay of each block of a conformer, counted in its whole text; `text` and `tokens` are reused buffers.
    fn blocks(
        &self,
        conformer: &Conformer,
        text: &mut String,
        tokens: &mut Vec<BlockTokens>,
        part: &mut Part,
    ) -> Result<Vec<BlockReplay>> {
        text.clear();
        tokens.clear();
        text.push_str(text::CONFORMER_OPEN);
        text::append(&conformer.skeleton, &conformer.coordinates, self.encoding, text);
        text.push_str(text::CONFORMER_CLOSE);
        let mut crossed = Vec::new();
        match self.counter.method() {
            Method::Tables { .. } => self.counter.tokens(text, tokens)?,
            // Without tables the encoder is the only source of token counts.
            Method::Encode { .. } => {
                let found = inside(self.counter.tokenizer(), text, self.encoding)?;
                tokens.extend(found.blocks);
                part.crossing.extend(found.crossing);
                part.crossed += found.crossed.iter().filter(|crossed| **crossed).count() as u64;
                crossed = found.crossed;
            }
        }
        let blocks = self.encoding.slot_ranges(text).into_iter().zip(&*tokens).zip(&conformer.coordinates);
        Ok(blocks
            .enumerate()
            .map(|(at, ((range, tokens), values))| {
                let last = values[self.encoding.numbers() - 1];
                let whole = replay(&text.as_bytes()[range], last, tokens, self.encoding);
                if crossed.get(at) == Some(&true) { whole.lost() } else { whole }
            })
            .collect())
    }

    /// Chooses a placeholder, proves the choice and reports it; or refuses the tokenizer after all.
    ///
    /// # Errors
    /// If the tokenizer cannot encode a placeholder.
    pub(super) fn finish(
        self,
        plan: &FitPlan,
        first_pass: &FirstPass,
    ) -> Result<std::result::Result<FitResult, RefusedTokenizer>> {
        let (tokenizer, objective) = (self.counter.tokenizer(), &plan.objective);
        let Part { counts, sample, crossed, .. } = &self.replayed;
        let chosen = self.choose(objective);
        let strict = objective.without_tolerance();
        let alternative = self.choose(&strict);
        let front = self.front();
        let candidates = self.candidates(objective, chosen);
        let (mut conditions, crossing) = self.conditions(&candidates, alternative, &front, first_pass)?;
        if let Some(crossing) = self.too_many_cross(crossing, &mut conditions) {
            return Ok(Err(refused(tokenizer, self.encoding, &crossing, &first_pass.first)?));
        }
        // A broken condition invalidates only the certificates: the choices are still the least harmful that were found.
        let exact = conditions.broken.is_none();
        let certificate = exact.then(|| self.certificate(objective, chosen));
        let without_tolerance = exact.then(|| self.certificate(&strict, alternative));
        let drawn = DrawnBlocks::new(tokenizer, self.encoding, &first_pass.first)?;
        Ok(Ok(FitResult {
            drawn: drawn.beside(chosen, &candidates, &self.forcing)?,
            tokenizer: tokenizer.name.clone(),
            tokenizer_sha256: tokenizer.source.sha256.clone(),
            encoding: self.encoding,
            conformers: counts.conformers,
            blocks: counts.blocks(),
            placeholder: chosen.placeholder.clone(),
            free_tokens: u32::from(chosen.free),
            statement: statement(counts, objective, certificate.as_ref(), &self.attainable, &conditions)
                + &lost(*crossed),
            crossed_blocks: *crossed,
            proved: certificate.as_ref().is_some_and(|c| c.proof.is_none() || self.attainable.proved),
            certificate,
            constant_tokens: self.attainable.constant(),
            intervals: Intervals::from_sample(sample, chosen.free),
            without_tolerance: Alternative {
                placeholder: alternative.placeholder.clone(),
                free_tokens: u32::from(alternative.free),
                certificate: without_tolerance,
            },
            candidates,
            front,
            token_distribution: self.distribution(),
            exact,
            conditions,
            counted_by: match self.counter.method() {
                Method::Tables { verified_blocks } => {
                    format!("tables, equal to the tokenizer on {verified_blocks} blocks before use")
                }
                Method::Encode { reason } => format!("encoding every text: {reason}"),
            },
            search: self.search(objective, plan.seed, chosen)?,
            class_conformers: sample.len() as u64,
            classes: if plan.classes { self.classes(objective, plan.seed)? } else { Vec::new() },
        }))
    }

    fn certificate(&self, objective: &Objective, choice: &Choice) -> Certificate {
        let damage = self.damage(choice.free);
        Certificate::of_one(objective, &damage, |free| self.damage(free), &self.attainable)
    }

    /// Returns the tokens of templates and of the corpus that cross brackets, if there are more than those of a few blocks outside an
    /// extended tokenizer's range.
    fn too_many_cross(
        &self,
        mut crossing: CrossingTokens,
        conditions: &mut Conditions,
    ) -> Option<CrossingTokens> {
        // A few blocks outside an extended tokenizer's range are reported as lost. If there were more, the figures would describe
        // another corpus.
        let Part { counts, crossed, .. } = &self.replayed;
        let few = *crossed as f64 <= MOST_CROSSED * counts.blocks() as f64;
        if few && !crossing.is_empty() && conditions.broken.is_none() {
            conditions.broken = Some("a template forces a digit or a sign in some skeleton".to_owned());
        }
        crossing.extend(self.replayed.crossing.iter().cloned());
        (!crossing.is_empty() && !few).then_some(crossing)
    }

    fn distribution(&self) -> Vec<TokenCount> {
        let counted = self.replayed.counts.distribution().into_iter();
        counted.map(|(tokens, blocks)| TokenCount { tokens, blocks }).collect()
    }

    /// Returns the choice of least harm; ties are broken by [`Choice::tie_key`].
    fn choose(&self, objective: &Objective) -> &Choice {
        // 3DMolGen's placeholders are always among the choices.
        self.choices.iter().min_by(|a, b| self.order(objective, a, b)).unwrap_or(&self.choices[0])
    }

    fn order(&self, objective: &Objective, a: &Choice, b: &Choice) -> Ordering {
        let (one, other) = (self.damage(a.free), self.damage(b.free));
        objective.compare(&one, &other).then_with(|| a.tie_key().cmp(&b.tie_key()))
    }

    fn damage(&self, free: u8) -> ReplayTotals {
        self.replayed.counts.damage(free)
    }

    /// For each number of FREE tokens the choice that wins ties, best first.
    fn best_by_tokens(&self) -> Vec<&Choice> {
        let mut best: Vec<&Choice> = Vec::new();
        let mut sorted: Vec<&Choice> = self.choices.iter().collect();
        sorted.sort_by_key(|choice| choice.tie_key());
        for choice in sorted {
            if best.iter().all(|known| known.free != choice.free) {
                best.push(choice);
            }
        }
        best
    }

    fn front(&self) -> Vec<CandidateReport> {
        let choices = self.best_by_tokens();
        let damages: Vec<_> = choices.iter().map(|choice| self.damage(choice.free)).collect();
        let mut front: Vec<_> =
            front(&damages).into_iter().map(|index| self.candidate(choices[index])).collect();
        front.sort_by_key(|candidate| candidate.free_tokens);
        front
    }

    fn candidate(&self, choice: &Choice) -> CandidateReport {
        CandidateReport {
            placeholder: choice.placeholder.clone(),
            source: choice.source.unwrap_or("fitted").to_owned(),
            free_tokens: u32::from(choice.free),
            measures: self.damage(choice.free).measures(),
        }
    }

    /// 3DMolGen's placeholders, the plan's own and the chosen one, least harm first.
    fn candidates(&self, objective: &Objective, chosen: &Choice) -> Vec<CandidateReport> {
        let mut list: Vec<&Choice> = self.choices.iter().filter(|choice| choice.source.is_some()).collect();
        if chosen.source.is_none() {
            list.push(chosen);
        }
        list.sort_by(|a, b| self.order(objective, a, b));
        let forcing = self.forcing.iter().map(|choice| CandidateReport {
            measures: self.replayed.counts.all_lost().measures(),
            ..self.candidate(choice)
        });
        list.into_iter().map(|choice| self.candidate(choice)).chain(forcing).collect()
    }

    /// Checks F in whole texts with the reference encoder, for every placeholder that the report names, in the sampled skeletons.
    /// Also collects the tokens of these templates that cross a bracket.
    fn conditions(
        &self,
        candidates: &[CandidateReport],
        alternative: &Choice,
        front: &[CandidateReport],
        first_pass: &FirstPass,
    ) -> Result<(Conditions, CrossingTokens)> {
        let candidates = candidates
            .iter()
            .filter(|candidate| self.forcing.iter().all(|c| c.placeholder != candidate.placeholder));
        let mut named: Vec<(&str, u32)> =
            candidates.chain(front).map(|c| (&*c.placeholder, c.free_tokens)).collect();
        // The alternative may be neither a candidate nor on the front, and its certificate needs the same conditions.
        named.push((&alternative.placeholder, u32::from(alternative.free)));
        named.sort_unstable();
        named.dedup();
        let pairs: Vec<(&str, u32, &str)> = named
            .iter()
            .flat_map(|(text, free)| first_pass.skeletons.iter().map(|skeleton| (*text, *free, &**skeleton)))
            .collect();
        let templates: Vec<TemplateTokens> = pairs
            .par_iter()
            .map(|(placeholder, free, skeleton)| self.template_tokens(placeholder, *free, skeleton))
            .collect::<Result<_>>()?;
        let differs = pairs.iter().zip(&templates).find(|(_, tokens)| !tokens.have_free);
        let broken = match (&self.depends_on, differs) {
            (Some(atom), _) => Some(format!("a block takes other tokens after `{atom}` than after `[C]`")),
            (None, Some(((placeholder, _, skeleton), _))) => {
                Some(format!("`{placeholder}` takes other tokens in `{skeleton}`"))
            }
            (None, None) => None,
        };
        let conditions =
            Conditions { atoms: first_pass.atoms.len() as u64, templates: pairs.len() as u64, broken };
        Ok((conditions, templates.into_iter().flat_map(|tokens| tokens.crossing).collect()))
    }

    /// Encodes the template of a skeleton with a placeholder.
    fn template_tokens(&self, placeholder: &str, free: u32, skeleton: &str) -> Result<TemplateTokens> {
        let template = text::tagged(&skeleton::fill(skeleton, placeholder, self.encoding));
        let found = inside(self.counter.tokenizer(), &template, self.encoding)?;
        let have_free = found.blocks.iter().all(|block| u32::from(block.free) == free);
        Ok(TemplateTokens { have_free, crossing: found.crossing })
    }

    fn search(&self, objective: &Objective, seed: u64, chosen: &Choice) -> Result<SearchReport> {
        let settings = SearchSettings { seed, iterations: STEPS[0] };
        let space = Space(self.encoding);
        let found = search(space, 1, objective, settings, |placeholders| {
            Ok(self.damage(self.free_tokens(&placeholders[0])?))
        })?;
        let reached = |free| objective.compare(&found.damage, &self.damage(free)).is_le();
        Ok(SearchReport {
            settings,
            strings: space.size() as f64,
            evaluations: found.evaluations,
            evaluations_to_best: found.evaluations_to_best,
            placeholder: space.text(&found.assignment[0]),
            objective: objective.harm(&found.damage).parts(),
            // The search reached the bound if its result is no worse than that of every F, even of one that no string has.
            reached_bound: (0..super::counts::OPTIONS as u8).all(reached),
            reached_chosen: reached(chosen.free),
        })
    }

    fn free_tokens(&self, numbers: &Numbers) -> Result<u8> {
        free_tokens(&self.counter, &Space(self.encoding).text(numbers))
    }

    fn classes(&self, objective: &Objective, seed: u64) -> Result<Vec<super::PartitionReport>> {
        let best = self.best_by_tokens().into_iter();
        let choices: Vec<_> = best.map(|choice| (choice.free, choice.placeholder.clone())).collect();
        let plan = ClassPlan {
            space: Space(self.encoding),
            choices: &choices,
            free_tokens: &|numbers| self.free_tokens(numbers),
            objective,
            settings: SearchSettings { seed, iterations: STEPS[1] },
        };
        analyse(&plan, &self.replayed.sample)
    }
}

/// What the reference encoder finds in a template.
struct TemplateTokens {
    /// Whether every block has the FREE tokens of the placeholder.
    have_free: bool,
    /// The tokens that cross a bracket.
    crossing: CrossingTokens,
}
