//! The first texts of a row that show typical problems.

use serde::{Deserialize, Serialize};

use super::example::{Example, ExampleProblem};
use super::marks::{Mark, MarkKind};
use super::outcome::Outcome;

/// The number of examples that are kept of each kind.
const KEPT: usize = 2;

/// The number of bytes shown on either side of a flaw.
const AROUND: usize = 90;

/// The flaws of which examples are kept, with their problems.
const FLAWS: [(MarkKind, ExampleProblem); 3] = [
    (MarkKind::Junk, ExampleProblem::Junk),
    (MarkKind::Lost, ExampleProblem::Lost),
    (MarkKind::Invented, ExampleProblem::Invented),
];

/// The first texts with each kind of flaw, and the first other texts that did not pass.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct TextExamples {
    flawed: [Vec<Example>; FLAWS.len()],
    failed: Vec<Example>,
}

impl TextExamples {
    /// Returns whether another text could be kept.
    pub(super) fn takes_more(&self) -> bool {
        self.flawed.iter().chain([&self.failed]).any(|kept| kept.len() < KEPT)
    }

    /// Keeps a text as an example of each problem that it shows, while there are few. Texts are given in their order.
    pub(super) fn add(&mut self, smiles: &str, text: &str, outcome: Outcome, marks: &[Mark]) {
        for ((flaw, problem), kept) in FLAWS.into_iter().zip(&mut self.flawed) {
            if kept.len() < KEPT && marks.iter().any(|mark| mark.flaw == flaw) {
                let (text, marks) = around_flaw(text, marks, flaw);
                kept.push(Example { smiles: smiles.to_owned(), problem, text, marks });
            }
        }
        if marks.is_empty() && outcome != Outcome::Pass && self.failed.len() < KEPT {
            self.failed.push(Example {
                smiles: smiles.to_owned(),
                problem: problem_of(outcome),
                text: cut(text, 0, 4 * AROUND).to_owned(),
                marks: Vec::new(),
            });
        }
    }

    /// Adds the examples of texts that follow.
    pub(super) fn merge(&mut self, other: &TextExamples) {
        let pairs = self.flawed.iter_mut().zip(&other.flawed);
        for (kept, more) in pairs.chain([(&mut self.failed, &other.failed)]) {
            kept.extend(more.iter().take(KEPT - kept.len()).cloned());
        }
    }

    /// Returns all examples, by problem.
    pub(super) fn report(&self) -> Vec<Example> {
        self.flawed.iter().flatten().chain(&self.failed).cloned().collect()
    }
}

fn problem_of(outcome: Outcome) -> ExampleProblem {
    match outcome {
        Outcome::NoEos => ExampleProblem::NoEnd,
        Outcome::ParseFailure => ExampleProblem::Unreadable,
        Outcome::GraphMismatch => ExampleProblem::OtherMolecule,
        Outcome::Pass => ExampleProblem::Passes,
    }
}

/// Returns the text around the first flaw of a kind, and the byte ranges in it that have flaws.
fn around_flaw(text: &str, marks: &[Mark], flaw: MarkKind) -> (String, Vec<[usize; 2]>) {
    let first = marks.iter().find(|mark| mark.flaw == flaw).map_or(0, |mark| mark.range.start);
    let start = floor(text, first.saturating_sub(AROUND));
    let shown = cut(text, start, 2 * AROUND);
    let end = start + shown.len();
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
    (shown.to_owned(), inside)
}

/// At most `len` bytes of `text`, starting at `start`.
fn cut(text: &str, start: usize, len: usize) -> &str {
    &text[start..floor(text, (start + len).min(text.len()))]
}

/// Returns the start of the character that contains byte `at`.
fn floor(text: &str, at: usize) -> usize {
    (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}
