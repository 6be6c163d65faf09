use std::collections::HashSet;

use rand::SeedableRng;

use super::*;
use crate::design::scheme::grammar::MAX_DECIMALS;
use crate::design::scheme::slots::Range;

/// A base with these tokens.
struct Known(HashSet<String>);

impl BaseTokens for Known {
    fn holds(&self, string: &str) -> bool {
        self.0.contains(string)
    }
    fn may_not_be_added(&self, string: &str) -> bool {
        string == "<-"
    }
}

fn base() -> Known {
    let digits = (0..10).map(|digit| digit.to_string());
    Known(digits.chain(["<", ">", ",", ".", ",-", "12", ".5"].map(String::from)).collect())
}

#[test]
fn costs_are_unions_of_strings() {
    let base = base();
    let mut random = ChaCha8Rng::seed_from_u64(0);
    for (kind, angstrom, fewest, tokens) in
        [(SchemeKind::Fused, 15, 1, 9), (SchemeKind::Fused, 3, 0, 7), (SchemeKind::Separate, 12, 2, 14)]
    {
        let grammar = Grammar::stripped(Range::new(angstrom).unwrap(), fewest).unwrap();
        let space = StrippedSpace::new(kind, grammar, &base);
        let mut point = space.random(tokens, &mut random).unwrap();
        for _ in 0..60 {
            point = space.neighbour(&point, &mut random);
            let scheme = space.scheme(&point);
            let new = scheme.strings().iter().filter(|string| !base.holds(string)).count();
            assert_eq!(space.cost(&point), new as u64, "{}", scheme.example(4));
            let counts = grammar.counts();
            for decimals in counts.clone() {
                assert_eq!(scheme.starts([decimals, MAX_DECIMALS, *counts.start()]).len(), tokens);
            }
        }
    }
}

#[test]
fn the_walk_finds_what_brute_force_finds() {
    let base = base();
    // Few choices: numbers of three or four decimals, and few pieces or as many as can be.
    let grammar = Grammar::stripped(Range::new(1).unwrap(), 3).unwrap();
    let space = StrippedSpace::new(SchemeKind::Fused, grammar, &base);
    for tokens in [4, 5, 19] {
        let mut least = u64::MAX;
        for frame in space.frames(tokens) {
            let sizes: Vec<usize> = space.groups(&frame).map(|key| space.choices[&key].len()).collect();
            let all: usize = sizes.iter().product();
            assert!(all < 5_000_000, "{all}");
            for mut index in 0..all {
                let picks = sizes.iter().map(|size| {
                    let pick = index % size;
                    index /= size;
                    pick
                });
                least = least.min(space.cost(&(frame, picks.collect())));
            }
        }
        let found = space.optimum(tokens, u64::MAX).unwrap();
        assert_eq!(found.new_tokens, least, "{tokens} tokens: {}", found.scheme.example(4));
        assert!(space.optimum(tokens, least.saturating_sub(1)).is_none() || least == 0);
    }
}
