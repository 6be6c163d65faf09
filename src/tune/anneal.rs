//! Simulated annealing, by argmin: what the searches of placeholders and of schemes share.

use argmin::core::{CostFunction, Error, Executor};
use argmin::solver::simulatedannealing::{Anneal, SATempFunc, SimulatedAnnealing};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// How a search cools down.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Cooling {
    /// Where the temperature starts, in units of the cost.
    pub temperature: f64,
    /// What it is multiplied by at each step.
    pub factor: f64,
    /// Steps.
    pub iterations: u64,
    /// The seed of what is accepted.
    pub seed: u64,
}

/// Anneals from `start` and hands the problem back, which keeps what it needs of the way.
///
/// # Errors
/// Of the problem, or if argmin refuses its settings (it does not for a positive number of iterations).
pub(crate) fn anneal<P>(problem: P, start: <P as CostFunction>::Param, cooling: Cooling) -> Result<P, Error>
where
    P: CostFunction<Output = f64>
        + Anneal<Param = <P as CostFunction>::Param, Output = <P as CostFunction>::Param, Float = f64>,
    <P as CostFunction>::Param: Clone,
{
    // Another stream than the problem's own, which is seeded with `seed` too: proposals and acceptances must not go together.
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
