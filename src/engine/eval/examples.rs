//! Selects texts that show typical problems.

use super::judged::Judged;
use super::record::{Example, ExampleProblem};
use super::subject::Subject;
use drift_data::audit::{MarkKind, Outcome};

/// The number of examples kept for a run.
const KEPT: usize = 6;

/// The number of bytes shown on either side of a flaw.
const AROUND: usize = 90;

/// The first texts with each kind of flaw, and the first other texts that did not pass.
pub(super) fn examples(subjects: &[Subject], judged: &[Judged]) -> Vec<Example> {
    let flaws = [
        (MarkKind::Junk, ExampleProblem::Junk),
        (MarkKind::Lost, ExampleProblem::Lost),
        (MarkKind::Invented, ExampleProblem::Invented),
    ];
    let mut out = Vec::new();
    for (flaw, problem) in flaws {
        let with = judged.iter().filter(|judged| judged.marks.iter().any(|mark| mark.flaw == flaw));
        out.extend(with.take(KEPT / 3).map(|judged| example(subjects, judged, flaw, problem)));
    }
    let other = judged.iter().filter(|judged| judged.marks.is_empty() && !judged.passed());
    out.extend(other.take(KEPT / 3).map(|judged| Example {
        smiles: subjects[judged.subject].molecule.smiles.clone(),
        problem: problem(judged.verdict.outcome),
        text: cut(&judged.text, 0, 4 * AROUND).to_owned(),
        marks: Vec::new(),
    }));
    out
}

fn problem(outcome: Outcome) -> ExampleProblem {
    match outcome {
        Outcome::NoEos => ExampleProblem::NoEnd,
        Outcome::ParseFailure => ExampleProblem::Unreadable,
        Outcome::GraphMismatch => ExampleProblem::OtherMolecule,
        Outcome::Pass => ExampleProblem::Passes,
    }
}

/// The text around the first flaw of a kind, with all flaws in it marked.
fn example(subjects: &[Subject], judged: &Judged, flaw: MarkKind, problem: ExampleProblem) -> Example {
    let marks = &judged.marks;
    let first = marks.iter().find(|mark| mark.flaw == flaw).map_or(0, |mark| mark.range.start);
    let start = floor(&judged.text, first.saturating_sub(AROUND));
    let text = cut(&judged.text, start, 2 * AROUND);
    let end = start + text.len();
    let mut inside: Vec<[usize; 2]> = marks
        .iter()
        .filter(|mark| start <= mark.range.start && mark.range.end <= end && !mark.range.is_empty())
        .map(|mark| [mark.range.start - start, mark.range.end - start])
        .collect();
    // Marks of one block may overlap, and a page shows them one after the other.
    inside.sort_unstable();
    let mut last = 0;
    inside.retain(|[from, to]| {
        let apart = *from >= last;
        last = if apart { *to } else { last };
        apart
    });
    let smiles = subjects[judged.subject].molecule.smiles.clone();
    Example { smiles, problem, text: text.to_owned(), marks: inside }
}

/// At most `len` bytes of `text`, starting at `start`.
fn cut(text: &str, start: usize, len: usize) -> &str {
    &text[start..floor(text, (start + len).min(text.len()))]
}

/// The start of the character that contains byte `at`.
fn floor(text: &str, at: usize) -> usize {
    (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}
