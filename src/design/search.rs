//! The search for schemes: argmin's simulated annealing over the cuts of a block.

use std::cell::RefCell;

use argmin::core::{CostFunction, Error as ArgminError, Executor};
use argmin::solver::simulatedannealing::{Anneal, SATempFunc, SimulatedAnnealing};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::scheme::SLOTS;
use super::space::Space;

/// The best scheme that the search visited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// First slots of pieces and new tokens; `None` if no scheme that it visited is in the space.
    pub best: Option<(Vec<usize>, u64)>,
    /// How many schemes were judged.
    pub evaluations: u64,
}

/// Anneals over the schemes of `tokens` tokens.
///
/// # Errors
/// If argmin refuses its settings (it does not for a positive number of iterations).
pub fn search(space: &Space, tokens: usize, seed: u64, iterations: u64) -> Result<Found, ArgminError> {
    let start = spread(space, tokens);
    let problem = Problem {
        space,
        random: RefCell::new(ChaCha8Rng::seed_from_u64(seed)),
        found: RefCell::new(Found { best: None, evaluations: 0 }),
    };
    let random = ChaCha8Rng::seed_from_u64(seed ^ 0x5eed);
    let solver =
        SimulatedAnnealing::new_with_rng(2.0, random)?.with_temp_func(SATempFunc::Exponential(0.999));
    let result = Executor::new(problem, solver)
        .configure(|state| state.param(start).max_iters(iterations))
        .ctrlc(false)
        .run()?;
    let problem = result.problem.problem.ok_or_else(|| ArgminError::msg("argmin kept the problem"))?;
    Ok(problem.found.into_inner())
}

/// Cuts spread over the block as evenly as can be, beside those that the kind demands.
fn spread(space: &Space, tokens: usize) -> Vec<usize> {
    let mut starts = space.fixed_starts().to_vec();
    while starts.len() < tokens {
        starts.sort_unstable();
        let ends = starts.iter().skip(1).copied().chain([SLOTS]);
        let widest = starts.iter().copied().zip(ends).max_by_key(|(start, end)| (end - start, SLOTS - start));
        let Some((start, end)) = widest.filter(|(start, end)| end - start > 1) else { break };
        starts.push((start + end) / 2);
    }
    starts.sort_unstable();
    starts
}

struct Problem<'s> {
    space: &'s Space,
    random: RefCell<ChaCha8Rng>,
    found: RefCell<Found>,
}

impl CostFunction for Problem<'_> {
    type Param = Vec<usize>;
    type Output = f64;

    /// The logarithm of the number of new tokens, so that one temperature fits schemes of all sizes.
    fn cost(&self, starts: &Vec<usize>) -> Result<f64, ArgminError> {
        let mut found = self.found.borrow_mut();
        found.evaluations += 1;
        let Some(new) = self.space.cost(starts) else { return Ok(40.0) };
        if found.best.as_ref().is_none_or(|(_, least)| new < *least) {
            found.best = Some((starts.clone(), new));
        }
        Ok((new as f64).ln_1p())
    }
}

impl Anneal for Problem<'_> {
    type Param = Vec<usize>;
    type Output = Vec<usize>;
    type Float = f64;

    /// Moves one cut that the kind does not demand to a slot that has none.
    fn anneal(&self, starts: &Vec<usize>, _extent: f64) -> Result<Vec<usize>, ArgminError> {
        let fixed = self.space.fixed_starts();
        let mut random = self.random.borrow_mut();
        let mut next = starts.clone();
        let movable: Vec<usize> = (0..next.len()).filter(|at| !fixed.contains(&next[*at])).collect();
        let free: Vec<usize> = (1..SLOTS).filter(|slot| !next.contains(slot)).collect();
        if !movable.is_empty() && !free.is_empty() {
            let at = movable[random.random_range(0..movable.len())];
            // A step to a neighbour half of the time, else anywhere.
            let near: Vec<usize> = free.iter().copied().filter(|slot| slot.abs_diff(next[at]) == 1).collect();
            let slots = if near.is_empty() || random.random_range(0..2) == 0 { &free } else { &near };
            next[at] = slots[random.random_range(0..slots.len())];
            next.sort_unstable();
        }
        Ok(next)
    }
}
