//! Simulated annealing with argmin, shared by the searches for placeholders and for schemes.

use argmin::core::{CostFunction, Error, Executor};
use argmin::solver::simulatedannealing::{Anneal, SATempFunc, SimulatedAnnealing};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// The cooling schedule of a search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Cooling {
    /// The initial temperature, in units of the cost.
    pub temperature: f64,
    /// The factor by which the temperature is multiplied at each step.
    pub factor: f64,
    /// The number of steps.
    pub iterations: u64,
    /// The seed of the acceptance decisions.
    pub seed: u64,
}

/// Anneals from `start` and returns the problem, which records what it needs along the way.
///
/// # Errors
/// The errors of the problem, and argmin's error for refused settings (it accepts any positive number of iterations).
pub(crate) fn anneal<P>(problem: P, start: <P as CostFunction>::Param, cooling: Cooling) -> Result<P, Error>
where
    P: CostFunction<Output = f64>
        + Anneal<Param = <P as CostFunction>::Param, Output = <P as CostFunction>::Param, Float = f64>,
    <P as CostFunction>::Param: Clone,
{
    // A different random stream than the problem's own, which has the same `seed`: proposals and acceptances must be independent.
    let random = ChaCha8Rng::seed_from_u64(cooling.seed ^ 0x5eed);
    let solver = SimulatedAnnealing::new_with_rng(cooling.temperature, random)?
        .with_temp_func(SATempFunc::Exponential(cooling.factor));
    let result = Executor::new(problem, solver)
        .configure(|state| state.param(start).max_iters(cooling.iterations))
        // The program handles interrupts itself, through [`drift_core::job::Job`].
        .ctrlc(false)
        .run()?;
    result.problem.problem.ok_or_else(|| Error::msg("argmin kept the problem"))
}
