//! The search for placeholders: simulated annealing with argmin over digit strings, one string per class of block.

use std::cell::RefCell;

use argmin::core::{CostFunction, Error as ArgminError};
use argmin::solver::simulatedannealing::Anneal;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::counts::ReplayTotals;
use super::grammar::{Numbers, Space, tie_key};
use super::objective::Objective;
use crate::anneal::{Cooling, anneal};
use drift_core::{Error, Result};

/// A placeholder for each class of block.
pub type Assignment = Vec<Numbers>;

/// The length of the search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SearchSettings {
    /// The seed of the random numbers.
    pub seed: u64,
    /// The number of annealing steps.
    pub iterations: u64,
}

/// The best assignment that the search visited.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchResult {
    /// The placeholder of each class.
    pub assignment: Assignment,
    /// Its effects in replay.
    pub damage: ReplayTotals,
    /// The number of assignments that were judged.
    pub evaluations: u64,
    /// The number of judged assignments until the least harmful one was found.
    pub evaluations_to_best: u64,
}

/// Anneals from the plain placeholder in each of `classes` classes; `evaluate` judges assignments.
///
/// # Errors
/// If `evaluate` fails, or argmin refuses its settings (which does not happen for a positive number of iterations).
pub fn search(
    space: Space,
    classes: usize,
    objective: &Objective,
    settings: SearchSettings,
    evaluate: impl Fn(&[Numbers]) -> Result<ReplayTotals>,
) -> Result<SearchResult> {
    let start = vec![space.start(); classes];
    let damage = evaluate(&start)?;
    let best = SearchResult { assignment: start.clone(), damage, evaluations: 0, evaluations_to_best: 0 };
    let problem = Problem {
        space,
        objective,
        evaluate: &evaluate,
        random: RefCell::new(ChaCha8Rng::seed_from_u64(settings.seed)),
        best: RefCell::new(best),
    };
    // A junk slot per block costs 0.1 (`Objective::scalar`), a character 1e-4. At the initial temperature of 1.0, a few more junk
    // slots are accepted freely. After 2,000 steps the temperature is 4e-5, and only improvements are accepted.
    let SearchSettings { seed, iterations } = settings;
    let cooling = Cooling { temperature: 1.0, factor: 0.995, iterations, seed };
    match anneal(problem, start, cooling) {
        Ok(problem) => Ok(problem.best.into_inner()),
        Err(e) => Err(e.downcast::<Error>().unwrap_or_else(|other| Error::internal("search", other))),
    }
}

struct Problem<'a, E> {
    space: Space,
    objective: &'a Objective,
    evaluate: &'a E,
    random: RefCell<ChaCha8Rng>,
    /// The best assignment by the exact order; argmin itself only sees a scalar.
    best: RefCell<SearchResult>,
}

impl<E: Fn(&[Numbers]) -> Result<ReplayTotals>> CostFunction for Problem<'_, E> {
    type Param = Assignment;
    type Output = f64;

    fn cost(&self, assignment: &Assignment) -> std::result::Result<f64, ArgminError> {
        let damage = (self.evaluate)(assignment)?;
        let mut best = self.best.borrow_mut();
        best.evaluations += 1;
        let better = self.objective.compare(&damage, &best.damage);
        // Among equally harmful assignments a shorter one is not an improvement in harm, so it does not count as a step to the
        // best.
        if better.is_lt() {
            best.evaluations_to_best = best.evaluations;
        }
        if better.then_with(|| compare_ties(self.space, assignment, &best.assignment)).is_lt() {
            best.assignment.clone_from(assignment);
            best.damage = damage;
        }
        // A small cost per character favours short placeholders among ties.
        let characters: usize = assignment.iter().map(|numbers| self.space.text(numbers).len()).sum();
        Ok(self.objective.scalar(&damage) + characters as f64 * 1e-4 / assignment.len() as f64)
    }
}

impl<E: Fn(&[Numbers]) -> Result<ReplayTotals>> Anneal for Problem<'_, E> {
    type Param = Assignment;
    type Output = Assignment;
    type Float = f64;

    /// Changes one feature of one number of the placeholder of one class.
    fn anneal(&self, assignment: &Assignment, _extent: f64) -> std::result::Result<Assignment, ArgminError> {
        let mut random = self.random.borrow_mut();
        let mut next = assignment.clone();
        let class = random.random_range(0..next.len());
        next[class] = self.space.vary(&next[class], &mut *random);
        Ok(next)
    }
}

/// Returns the order of ties over classes: the fewest characters in total, then the smallest bytes.
fn compare_ties(space: Space, a: &[Numbers], b: &[Numbers]) -> std::cmp::Ordering {
    let [a, b] = [a, b].map(|placeholders| {
        placeholders.iter().map(|numbers| space.text(numbers)).collect::<Vec<_>>().join("\n")
    });
    tie_key(false, &a).cmp(&tie_key(false, &b))
}
