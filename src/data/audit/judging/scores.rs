//! The scores of a batch of texts.

use std::sync::Arc;

use rayon::prelude::*;

use super::super::coverage::Deviations;
use super::super::geometry::{Conformation, Coverage};
use super::super::sample::{TextSample, judge, split};
use super::duplicates::duplicates;
use super::ensembles::{ComparedText, EnsembleScore, GroupEnsemble, within_texts};
use super::molecule::JudgedMolecule;
use super::pieces::conformers_in;
use super::plan::JudgePlan;
use super::points::usable_points;
use super::reward::RewardInput;
use super::verdict::ConformerVerdict;
use drift_core::{Error, Job, Result};

/// The scores of a batch of texts.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct BatchScores {
    /// One for each text, in order; if all conformers of a text are judged, one for each conformer.
    pub conformers: Vec<ScoredConformer>,
    /// The molecules of the batch, in order of first occurrence.
    pub groups: Vec<GroupScore>,
    /// By text, the RMSDs of all pairs of its conformers, `[conformers × conformers]` in Å, NaN for those that cannot be compared.
    /// Empty unless [`JudgePlan::within_texts`].
    pub within_texts: Vec<Vec<f64>>,
    /// Reasons to doubt the figures.
    pub warnings: Vec<String>,
}

/// The score of one conformer.
#[derive(Debug, Clone, PartialEq)]
pub struct ScoredConformer {
    /// The index of its text, from 0.
    pub text: usize,
    /// Its index among the conformers of the text, from 0.
    pub place: usize,
    /// The number of conformers in the text.
    pub of_text: usize,
    /// The index of its molecule in [`BatchScores::groups`].
    pub group: usize,
    /// The verdict.
    pub verdict: ConformerVerdict,
    /// The least RMSD to each reference, `[references]` in Å; NaN if the text has no conformer to compare.
    pub rmsd: Vec<f64>,
    /// The first earlier conformer of its group that it duplicates, as an index of [`BatchScores::conformers`].
    pub duplicate_of: Option<usize>,
    /// Its cluster at each threshold of [`JudgePlan::ensembles`], counted in its group; empty if it has no conformer to compare.
    pub clusters: Vec<usize>,
    /// The weighted sum of the parts of [`JudgePlan::reward`].
    pub reward: f64,
}

/// The joint score of the texts of one molecule.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupScore {
    /// The SMILES.
    pub smiles: String,
    /// The number of judged conformers.
    pub conformers: usize,
    /// Of these, the number that pass and can be compared.
    pub usable: usize,
    /// The number of reference conformers.
    pub references: usize,
    /// Coverage by threshold; `None` without references.
    pub coverage: Vec<Option<Coverage>>,
    /// The number of RMSDs that are upper bounds, because the molecule has too much symmetry.
    pub rmsd_upper_bounds: u64,
    /// The measures of all texts together, as far as they were asked for.
    pub ensemble: EnsembleScore,
}

/// The conformer of a text before comparison.
struct ParsedText {
    scored: ScoredConformer,
    points: Option<Conformation>,
    /// Whether it has blocks, and whether its answer contains a decimal point.
    blocks: (bool, bool),
}

/// Judges texts. `groups[i]` is the index in `molecules` of the prompt of `texts[i]`.
pub(super) fn score(
    plan: &JudgePlan,
    molecules: &[Arc<JudgedMolecule>],
    groups: &[usize],
    texts: &[&str],
    job: &Job,
) -> Result<BatchScores> {
    let found: Vec<Vec<ParsedText>> = texts
        .par_iter()
        .enumerate()
        // Texts are judged in any order and collected in theirs, so threads do not change the result.
        .map(|(at, text)| {
            job.check()?;
            Ok(of_text(plan, &molecules[groups[at]], TextPlace { text: at, group: groups[at] }, text))
        })
        .collect::<Result<_>>()?;
    let found: Vec<ParsedText> = found.into_iter().flatten().collect();
    let warnings = other_encoding(plan, &found).into_iter().collect();
    let (mut conformers, points): (Vec<_>, Vec<_>) =
        found.into_iter().map(|one| (one.scored, one.points)).unzip();
    let mut members: Vec<Vec<usize>> = vec![Vec::new(); molecules.len()];
    conformers.iter().enumerate().for_each(|(at, one)| members[one.group].push(at));
    let compared: Vec<Group> = molecules
        .par_iter()
        .zip(&members)
        .map(|(molecule, members)| {
            job.check()?;
            let usable: Vec<usize> = members.iter().copied().filter(|at| points[*at].is_some()).collect();
            Group::of(plan, molecule, usable, members.len(), &points)
        })
        .collect::<Result<_>>()?;
    let mut groups = Vec::with_capacity(molecules.len());
    for ((molecule, members), group) in molecules.iter().zip(&members).zip(compared) {
        groups.push(group.hand_on(plan, molecule, members, &mut conformers));
    }
    let within_texts = match plan.within_texts {
        true => within_texts(plan, &compared_texts(molecules, &conformers, &points))?,
        false => Vec::new(),
    };
    Ok(BatchScores { conformers, groups, within_texts, warnings })
}

/// Returns the conformers of each text, one after the other.
fn compared_texts<'p>(
    molecules: &'p [Arc<JudgedMolecule>],
    conformers: &[ScoredConformer],
    mut points: &'p [Option<Conformation>],
) -> Vec<ComparedText<'p>> {
    let texts = conformers.chunk_by(|a, b| a.text == b.text).map(|own| {
        let conformers;
        (conformers, points) = points.split_at(own.len());
        ComparedText { molecule: &molecules[own[0].group], conformers }
    });
    texts.collect()
}

/// The index of a text, and that of its molecule.
#[derive(Clone, Copy)]
struct TextPlace {
    text: usize,
    group: usize,
}

fn of_text(
    plan: &JudgePlan,
    molecule: &JudgedMolecule,
    TextPlace { text, group }: TextPlace,
    written: &str,
) -> Vec<ParsedText> {
    let pieces = conformers_in(written);
    let of_text = pieces.len();
    let judged = pieces.into_iter().take(if plan.all_conformers { usize::MAX } else { 1 }).enumerate();
    judged
        .map(|(place, piece)| {
            let prompt = Some(&*molecule.smiles);
            let JudgePlan { encoding, max_atoms, isotopes, .. } = *plan;
            let ended = split(&piece).ended;
            let judged = judge(&TextSample { prompt, answer: &piece, ended, encoding, max_atoms, isotopes });
            let answer = split(&piece).answer;
            let points = usable_points(answer, &judged, &molecule.skeleton, encoding, max_atoms);
            let chemistry = points.as_ref().and_then(|points| molecule.chemistry()?.check(points));
            let verdict = ConformerVerdict::new(&piece, encoding, &judged, prompt, chemistry.as_ref());
            let blocks = (!judged.blocks.is_empty(), answer.contains('.'));
            let references = molecule.conformers.len();
            let scored = ScoredConformer {
                text,
                place,
                of_text,
                group,
                verdict,
                rmsd: vec![f64::NAN; references],
                duplicate_of: None,
                clusters: Vec::new(),
                reward: 0.0,
            };
            ParsedText { scored, points, blocks }
        })
        .collect()
}

/// Returns a sentence, if the texts of the batch do not seem to be in this encoding.
fn other_encoding(plan: &JudgePlan, found: &[ParsedText]) -> Option<String> {
    let name = plan.encoding.name();
    let with_blocks = || found.iter().filter(|one| one.blocks.0);
    let remedy = "check the encoding";
    if found.len() > 1 && with_blocks().next().is_none() {
        return Some(format!("none of the {} texts has a block of {name}: {remedy}", found.len()));
    }
    let decimals = plan.encoding.is_fixed() && plan.encoding.is_decimal() && plan.encoding.decimals() > 0;
    // A single text may be broken; several without a decimal point are in another encoding.
    let all_whole = with_blocks().count() > 1 && with_blocks().all(|one| !one.blocks.1);
    (decimals && all_whole).then(|| format!("no text has a decimal point, as texts of {name} have: {remedy}"))
}

/// The conformers of one molecule, compared.
struct Group {
    /// Those that can be compared, as indices of the batch.
    usable: Vec<usize>,
    deviations: Deviations,
    /// By usable conformer, the one that it duplicates, as an index among usable conformers.
    duplicates: Vec<Option<usize>>,
    ensemble: GroupEnsemble,
}

impl Group {
    fn of(
        plan: &JudgePlan,
        molecule: &JudgedMolecule,
        usable: Vec<usize>,
        texts: usize,
        points: &[Option<Conformation>],
    ) -> Result<Self> {
        let own: Vec<Conformation> = usable.iter().filter_map(|at| points[*at].clone()).collect();
        // With nothing to compare, symmetries need not be searched.
        let is_alone = own.len() < 2 || plan.duplicate_angstrom <= 0.0;
        if own.is_empty() || (is_alone && molecule.conformers.is_empty()) {
            let deviations = Deviations {
                references: molecule.conformers.len(),
                bond_errors: vec![None; own.len()],
                rmsd: vec![Vec::new(); own.len()],
                upper_bounds: vec![0; own.len()],
            };
            let ensemble = GroupEnsemble::of(plan, molecule, texts, &own, &deviations)?;
            return Ok(Group { duplicates: vec![None; usable.len()], usable, deviations, ensemble });
        }
        let topology = molecule.topology(plan.isotopes)?;
        let deviations = topology
            .compare(&own, &molecule.conformers)
            .ok_or_else(|| Error::internal(&molecule.smiles, "references with another number of atoms"))?;
        let ensemble = GroupEnsemble::of(plan, molecule, texts, &own, &deviations)?;
        let duplicates = duplicates(topology, &own, plan.duplicate_angstrom);
        Ok(Group { duplicates, usable, deviations, ensemble })
    }

    /// Stores the results in the conformers, and returns the score of the group.
    fn hand_on(
        self,
        plan: &JudgePlan,
        molecule: &JudgedMolecule,
        members: &[usize],
        conformers: &mut [ScoredConformer],
    ) -> GroupScore {
        let Group { usable, deviations, duplicates, ensemble } = self;
        let references = molecule.conformers.len();
        let coverage = plan.thresholds.iter().map(|threshold| deviations.coverage(*threshold)).collect();
        let within: Vec<Vec<u32>> = plan
            .thresholds
            .iter()
            .map(|threshold| {
                let count = |reference: usize| {
                    deviations.rmsd.iter().filter(|row| row[reference] <= *threshold).count()
                };
                (0..references).map(|reference| count(reference) as u32).collect()
            })
            .collect();
        let rows = deviations.rmsd.into_iter().zip(deviations.bond_errors);
        for ((at, (rmsd, bond_error)), duplicate) in usable.iter().zip(rows).zip(&duplicates) {
            let one = &mut conformers[*at];
            one.verdict.set_distances(&rmsd, bond_error);
            one.duplicate_of = duplicate.map(|own| usable[own]);
            one.rmsd = rmsd;
        }
        for (own, at) in usable.iter().enumerate() {
            let assigned = ensemble.clusters.assignments.iter();
            conformers[*at].clusters = assigned.map(|clusters| clusters[own]).collect();
        }
        for at in members {
            let one = &mut conformers[*at];
            one.verdict.references = references as u64;
            // `usable` ascends.
            let is_usable = usable.binary_search(at).is_ok();
            let rewarded = RewardInput {
                verdict: &one.verdict,
                // A text without a conformer has NaN for its RMSDs, which earns no reward.
                rmsd: if is_usable { &one.rmsd } else { &[] },
                is_duplicate: one.duplicate_of.is_some(),
                within: &within,
                thresholds: &plan.thresholds,
            };
            one.reward = plan.reward.of(&rewarded);
        }
        GroupScore {
            smiles: molecule.smiles.to_string(),
            conformers: members.len(),
            usable: usable.len(),
            references,
            coverage,
            rmsd_upper_bounds: deviations.upper_bounds.iter().sum(),
            ensemble: ensemble.score,
        }
    }
}
