//! The certificate that nothing better exists: the least harm reached, the least harm possible, and why no string lies between
//! them.

use serde::{Deserialize, Serialize};

use super::attainable::AttainableTokens;
use super::counts::{OPTIONS, ReplayTotals};
use super::objective::Objective;

/// The least harm reached, the least harm possible, and their difference.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Certificate {
    /// `[u, r, j]` of the chosen placeholder: share of blocks, Å, and tokens per block.
    pub objective: [f64; 3],
    /// The lower bound `[u, r, j]`: the least harm over all numbers of FREE tokens, whether or not a string has that number.
    pub lower_bound: [f64; 3],
    /// `objective - lower_bound`, per component.
    pub gap: [f64; 3],
    /// If the bound is not reached: which numbers of FREE tokens would do less harm, and why no string has them.
    pub proof: Option<String>,
}

impl Certificate {
    /// Compares the harm reached with the harm possible.
    pub fn new(
        objective: &Objective,
        reached: &ReplayTotals,
        bound: &ReplayTotals,
        proof: Option<String>,
    ) -> Self {
        let [reached, lower_bound] = [reached, bound].map(|damage| objective.harm(damage).parts());
        let gap = std::array::from_fn(|part| reached[part] - lower_bound[part]);
        Certificate { objective: reached, lower_bound, gap, proof }
    }

    /// Returns the certificate of one placeholder.
    pub(crate) fn of_one(
        objective: &Objective,
        reached: &ReplayTotals,
        damage: impl Fn(u8) -> ReplayTotals,
        attainable: &AttainableTokens,
    ) -> Self {
        // The bound starts at the harm reached, so that it is never worse.
        let mut bound = *reached;
        let mut better = Vec::new();
        for free in 0..OPTIONS as u8 {
            let damage = damage(free);
            // The proof names every F that does less harm, not only the best one: each needs its own reason why no string has it.
            if objective.compare(&damage, reached).is_lt() {
                better.push(free);
            }
            if objective.compare(&damage, &bound).is_lt() {
                bound = damage;
            }
        }
        let proof = (!better.is_empty()).then(|| why_not(&better, attainable));
        Certificate::new(objective, reached, &bound, proof)
    }
}

/// Returns the reason why no string has these numbers of FREE tokens.
fn why_not(better: &[u8], attainable: &AttainableTokens) -> String {
    let wanted = format!("{} FREE tokens would do less harm", list(better));
    match &attainable.complete {
        Ok(how) => {
            let taken: Vec<u8> = attainable.best.keys().copied().collect();
            format!("{wanted}, but three numbers of the dialect take {}: {how}", list(&taken))
        }
        Err(why) => format!("{wanted}, and that no string takes so many is not proved: {why}"),
    }
}

/// Formats numbers as `3, 5 to 9 or 12`.
fn list(numbers: &[u8]) -> String {
    let mut runs: Vec<(u8, u8)> = Vec::new();
    for &number in numbers {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => runs.push((number, number)),
        }
    }
    let shown: Vec<String> = runs
        .iter()
        .map(|(first, last)| if first == last { first.to_string() } else { format!("{first} to {last}") })
        .collect();
    match shown.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => shown.concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// Junk above 5 tokens, unparsable blocks below.
    fn damage(free: u8) -> ReplayTotals {
        ReplayTotals {
            conformers: 1,
            blocks: 4,
            junk_tokens: u64::from(free.saturating_sub(5)),
            unparsable_blocks: u64::from(5u8.saturating_sub(free)),
            ..ReplayTotals::default()
        }
    }

    #[test]
    fn a_bound_that_no_string_reaches_is_explained() {
        let objective = Objective::default();
        let attainable = AttainableTokens {
            best: BTreeMap::from([(3, String::new()), (8, String::new()), (9, String::new())]),
            complete: Ok("all were counted".to_owned()),
            proved: true,
        };
        let certificate = Certificate::of_one(&objective, &damage(8), damage, &attainable);
        assert_eq!(certificate.gap, [0.0, 0.0, 0.75]);
        let proof = "5 to 7 FREE tokens would do less harm, but three numbers of the dialect take 3 or 8 to 9: all were \
                     counted";
        assert_eq!(certificate.proof.as_deref(), Some(proof));
        let tight = Certificate::of_one(&objective, &damage(5), damage, &attainable);
        assert_eq!((tight.gap, tight.proof), ([0.0; 3], None));
    }
}
