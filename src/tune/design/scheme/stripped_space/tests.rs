use rand::SeedableRng;

use super::*;
use crate::design::scheme::grammar::stripped_grammar;
use crate::design::scheme::space::TestVocabulary;

const BASE: TestVocabulary =
    TestVocabulary(&["0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "<", ">", ",", ".", ",-", "12", ".5"]);

#[test]
fn costs_are_unions_of_strings() {
    let mut random = ChaCha8Rng::seed_from_u64(0);
    for (kind, angstrom, (decimals, fewest), tokens) in [
        (SchemeKind::Fused, 15, (4, 1), 9),
        (SchemeKind::Fused, 3, (4, 0), 7),
        (SchemeKind::Separate, 12, (4, 2), 14),
        (SchemeKind::Fused, 15, (3, 0), 7),
        (SchemeKind::Separate, 12, (3, 1), 11),
    ] {
        let grammar = stripped_grammar(angstrom, decimals, fewest);
        let space = StrippedSpace::new(kind, grammar, &BASE);
        let mut point = space.start(tokens, &mut random).unwrap();
        for _ in 0..60 {
            point = space.neighbour(&point, &mut random);
            let scheme = space.scheme(&point);
            let new = BASE.lacks(&scheme).len();
            assert_eq!(space.cost(&point), new as u64, "{}", scheme.example(grammar.decimals()));
            let counts = grammar.counts();
            for count in counts.clone() {
                assert_eq!(scheme.starts([count, decimals, *counts.start()]).len(), tokens);
            }
        }
    }
}

#[test]
fn the_walk_finds_what_brute_force_finds() {
    // Few choices: numbers of three or four decimals, and few pieces or as many as can be.
    let of = |decimals, fewest| stripped_grammar(1, decimals, fewest);
    for (grammar, tokens) in [(of(4, 3), 4), (of(4, 3), 5), (of(4, 3), 19), (of(3, 2), 5), (of(3, 2), 16)] {
        let space = StrippedSpace::new(SchemeKind::Fused, grammar, &BASE);
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
                least = least.min(space.cost(&SchemePoint { frame, picks: picks.collect() }));
            }
        }
        let found = space.optimum(tokens, u64::MAX).unwrap();
        assert_eq!(found.new_tokens, least, "{tokens} tokens: {}", found.scheme.example(grammar.decimals()));
        assert!(space.optimum(tokens, least.saturating_sub(1)).is_none() || least == 0);
    }
}
