//! The search for placeholders: argmin's simulated annealing over placeholder strings, one per class of block.

use std::cell::RefCell;

use argmin::core::{CostFunction, Error as ArgminError, Executor};
use argmin::solver::simulatedannealing::{Anneal, SATempFunc, SimulatedAnnealing};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::Serialize;

use super::grammar::{Shape, tie_key};
use super::objective::{Harm, Objective};

/// A placeholder for each class of block.
pub type Assignment = Vec<Shape>;

/// How long to search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct SearchSettings {
    /// The seed of the random numbers.
    pub seed: u64,
    /// Annealing steps.
    pub iterations: u64,
}

/// The best assignment that the search visited.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// A placeholder per class.
    pub assignment: Assignment,
    /// What it does.
    pub harm: Harm,
    /// How many assignments were judged.
    pub evaluations: u64,
}

/// Anneals from `0.0000,0.0000,0.0000` in every one of `classes` classes, judging by `evaluate`.
///
/// # Errors
/// If argmin refuses its settings (it does not for a positive number of iterations).
pub fn search(
    classes: usize,
    objective: &Objective,
    settings: SearchSettings,
    evaluate: impl Fn(&[Shape]) -> Harm,
) -> Result<Found, ArgminError> {
    let start = vec![Shape::PLAIN; classes];
    let harm = evaluate(&start);
    let problem = Problem {
        objective,
        evaluate: &evaluate,
        random: RefCell::new(ChaCha8Rng::seed_from_u64(settings.seed)),
        best: RefCell::new(Found { assignment: start.clone(), harm, evaluations: 0 }),
    };
    let random = ChaCha8Rng::seed_from_u64(settings.seed ^ 0x5eed);
    // The temperature starts where any move passes and ends where only gains do.
    let solver =
        SimulatedAnnealing::new_with_rng(1.0, random)?.with_temp_func(SATempFunc::Exponential(0.995));
    let result = Executor::new(problem, solver)
        .configure(|state| state.param(start).max_iters(settings.iterations))
        .ctrlc(false)
        .run()?;
    let problem = result.problem.problem.ok_or_else(|| ArgminError::msg("argmin kept the problem"))?;
    Ok(problem.best.into_inner())
}

struct Problem<'a, E> {
    objective: &'a Objective,
    evaluate: &'a E,
    random: RefCell<ChaCha8Rng>,
    /// The best by the exact order; argmin itself only sees a sum.
    best: RefCell<Found>,
}

impl<E: Fn(&[Shape]) -> Harm> CostFunction for Problem<'_, E> {
    type Param = Assignment;
    type Output = f64;

    fn cost(&self, assignment: &Assignment) -> Result<f64, ArgminError> {
        let harm = (self.evaluate)(assignment);
        let mut best = self.best.borrow_mut();
        best.evaluations += 1;
        let better = self.objective.compare(harm, best.harm);
        if better.then_with(|| compare_ties(assignment, &best.assignment)).is_lt() {
            best.assignment.clone_from(assignment);
            best.harm = harm;
        }
        // A hundredth of a junk token per character draws ties to short placeholders.
        let characters: usize = assignment.iter().map(|shape| shape.text().len()).sum();
        Ok(self.objective.scalar(harm) + characters as f64 * 1e-4 / assignment.len() as f64)
    }
}

impl<E: Fn(&[Shape]) -> Harm> Anneal for Problem<'_, E> {
    type Param = Assignment;
    type Output = Assignment;
    type Float = f64;

    /// Changes one feature of one number of one class's placeholder.
    fn anneal(&self, assignment: &Assignment, _extent: f64) -> Result<Assignment, ArgminError> {
        let mut random = self.random.borrow_mut();
        let mut next = assignment.clone();
        let class = random.random_range(0..next.len());
        let number = &mut next[class].0[random.random_range(0..3)];
        match random.random_range(0..4) {
            0 => number.negative = !number.negative,
            1 => number.integer_digits = 3 - number.integer_digits,
            _ => number.decimals = random.random_range(0..=4),
        }
        Ok(next)
    }
}

/// The order of ties over classes: fewest characters in all, then smallest bytes.
fn compare_ties(a: &[Shape], b: &[Shape]) -> std::cmp::Ordering {
    let text = |shapes: &[Shape]| shapes.iter().map(|s| s.text()).collect::<Vec<_>>().join("\n");
    let (a, b) = (text(a), text(b));
    tie_key(&a).cmp(&tie_key(&b))
}
