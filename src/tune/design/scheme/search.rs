//! The search for schemes with argmin: simulated annealing over the cuts of blocks.

use std::cell::RefCell;

use argmin::core::{CostFunction, Error as ArgminError};
use argmin::solver::simulatedannealing::Anneal;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use crate::anneal::{Cooling, anneal};
use drift_core::Result;

/// A design space, as needed by the search.
pub trait Landscape {
    /// A scheme.
    type Point: Clone;
    /// Returns an initial scheme with `tokens` tokens; `None` if there is none.
    fn start(&self, tokens: usize, random: &mut ChaCha8Rng) -> Option<Self::Point>;
    /// Returns the number of new tokens of a scheme; `None` if the scheme is not in the space.
    fn new_tokens(&self, point: &Self::Point) -> Option<u64>;
    /// Returns a scheme with the same number of tokens that differs slightly.
    fn neighbour(&self, point: &Self::Point, random: &mut ChaCha8Rng) -> Self::Point;
}

/// The result of the search.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AnnealingResult {
    /// The number of new tokens of the best scheme; `None` if no visited scheme is in the space.
    pub least: Option<u64>,
    /// The number of schemes that were evaluated.
    pub evaluations: u64,
}

/// Anneals over the schemes with `tokens` tokens.
///
/// # Errors
/// If argmin refuses its settings (it does not for a positive number of iterations).
pub fn search<L: Landscape>(
    space: &L,
    tokens: usize,
    seed: u64,
    iterations: u64,
) -> Result<AnnealingResult, ArgminError> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    // Without a scheme with this many tokens there is nothing to search. The report then states that none was found.
    let Some(start) = space.start(tokens, &mut random) else { return Ok(AnnealingResult::default()) };
    let problem = Problem { space, random: RefCell::new(random), found: RefCell::default() };
    // Costs are logarithms: at 2.0 seven times the tokens pass about one time in four, after 20,000 steps only fewer do.
    let cooling = Cooling { temperature: 2.0, factor: 0.999, iterations, seed };
    Ok(anneal(problem, start, cooling)?.found.into_inner())
}

struct Problem<'s, L> {
    space: &'s L,
    random: RefCell<ChaCha8Rng>,
    found: RefCell<AnnealingResult>,
}

impl<L: Landscape> CostFunction for Problem<'_, L> {
    type Param = L::Point;
    type Output = f64;

    /// Returns the logarithm of the number of new tokens, so that one temperature suits schemes of all sizes.
    fn cost(&self, point: &L::Point) -> Result<f64, ArgminError> {
        let mut found = self.found.borrow_mut();
        found.evaluations += 1;
        // Above the logarithm of any relevant number of new tokens, so the search leaves schemes outside the space.
        let Some(new) = self.space.new_tokens(point) else { return Ok(40.0) };
        found.least = Some(found.least.map_or(new, |least| least.min(new)));
        Ok((new as f64).ln_1p())
    }
}

impl<L: Landscape> Anneal for Problem<'_, L> {
    type Param = L::Point;
    type Output = L::Point;
    type Float = f64;

    fn anneal(&self, point: &L::Point, _extent: f64) -> Result<L::Point, ArgminError> {
        Ok(self.space.neighbour(point, &mut self.random.borrow_mut()))
    }
}
