//! The position templates beside slow ones, written from the users' description with dense masks over strings.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use drift::constraint::vocabulary::{Vocabulary, is_well_formed};
use drift::constraint::{Constraint, LogitProcessor, Mask, Placeholder, ProcessorKind, Specials};
use drift::encoding::{Encoding, TrailingZeros};
use drift::text::partition::Partition;
use drift::tokenizer::Tokenizer;
use proptest::prelude::*;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::automaton::{FUSED, SEPARATE, extended};
use crate::support::shared;

/// The kinds with position templates, with their lookahead.
const POSITION: [(ProcessorKind, usize); 6] = [
    (ProcessorKind::Generic, 1),
    (ProcessorKind::Qwen38, 4),
    (ProcessorKind::Qwen39, 2),
    (ProcessorKind::Targeted, 2),
    (ProcessorKind::Allowlist, 2),
    (ProcessorKind::Truncating, 2),
];

const MALFORMED: [&str; 7] = ["..", "--", ",,", ".,", ",.", ".-", "-,"];

#[test]
#[cfg_attr(not(has_shared), ignore = "needs ../shared or DRIFT_SHARED")]
fn sets_have_the_users_sizes() {
    let shared = shared();
    for (name, brackets, targeted, allowed) in
        [("qwen3-custom", 1_173, 2_514, 15), ("llama-3.2-chem", 1_399, 2_820, 1_115)]
    {
        let tokenizer = Tokenizer::load(&shared.join("tokenizers").join(name)).unwrap();
        let vocabulary = Vocabulary::from_tokenizer(&tokenizer);
        assert_eq!(vocabulary.holding(&['<', '>']).len(), brackets, "{name}");
        assert_eq!(vocabulary.holding(&['<', '>', '[', ']', '@', '+']).len(), targeted, "{name}");
        assert_eq!(vocabulary.ids(is_well_formed).len(), allowed, "{name}");
    }
}

/// A position template as the users describe it: strings, and a mask over the whole vocabulary at each position.
struct Slow {
    /// The vocabulary by id.
    strings: Vec<String>,
    blocked_tags: HashSet<u32>,
    /// Id, FREE, text.
    template: Vec<(u32, bool, String)>,
    kind: ProcessorKind,
    lookahead: usize,
}

impl Slow {
    fn new(
        tokenizer: &Tokenizer,
        kind: ProcessorKind,
        lookahead: usize,
        text: &str,
        specials: &Specials,
    ) -> Self {
        let inner = tokenizer.inner();
        let size = inner.get_vocab(true).into_values().max().unwrap() + 1;
        let strings = (0..size).map(|id| inner.id_to_token(id).unwrap_or_default()).collect();
        let mut blocked_tags: HashSet<u32> = specials.all().collect();
        for tag in ["[CONFORMER]", "[/CONFORMER]", "[SMILES]", "[/SMILES]"] {
            blocked_tags.extend(inner.encode(tag, false).unwrap().get_ids());
        }
        let mut free_bytes = Vec::new();
        let mut inside = false;
        for byte in text.bytes() {
            inside &= byte != b'>';
            free_bytes.push(inside);
            inside |= byte == b'<';
        }
        let encoding = inner.encode(text, false).unwrap();
        let template = encoding.get_ids().iter().zip(encoding.get_offsets());
        let template = template
            .map(|(id, (start, end))| {
                let free = free_bytes[*start..*end].iter().all(|free| *free);
                (*id, free, text[*start..*end].to_owned())
            })
            .collect();
        Slow { strings, blocked_tags, template, kind, lookahead }
    }

    fn is_free(&self, at: usize) -> bool {
        self.template.get(at).is_some_and(|(_, free, _)| *free)
    }

    /// The mask of a FREE position.
    fn mask(&self, at: usize) -> Vec<bool> {
        let first = at == 0 || !self.is_free(at - 1);
        let mut close = false;
        for offset in 1..=self.lookahead {
            if !self.is_free(at + offset) {
                close = self.template.get(at + offset).is_some_and(|(_, _, text)| text.contains('>'));
                break;
            }
        }
        let number = |token: &str| !token.is_empty() && token.chars().all(|c| "0123456789.,-".contains(c));
        let malformed = |token: &str| MALFORMED.iter().any(|pair| token.contains(pair));
        let legal = |id: usize, token: &str| {
            let tag = self.blocked_tags.contains(&(id as u32));
            let separator = !token.is_empty() && token.chars().all(|c| c == ',' || c == '-');
            let comma = !token.is_empty() && token.chars().all(|c| c == ',');
            let base = match self.kind {
                ProcessorKind::Generic => !tag && !token.contains(['<', '>']),
                ProcessorKind::Qwen38 | ProcessorKind::Qwen39 => {
                    let bad = number(token) && malformed(token);
                    !(tag || bad || token.contains(['<', '>']))
                }
                ProcessorKind::Targeted => {
                    let bad = number(token) && malformed(token);
                    !(tag || bad || token.contains(['<', '>', '[', ']', '@', '+']))
                }
                _ => number(token) && !malformed(token),
            };
            let allowlist = matches!(self.kind, ProcessorKind::Allowlist | ProcessorKind::Truncating);
            let trailing =
                separator || (self.kind != ProcessorKind::Generic && [".,", ",."].contains(&token));
            base && !(allowlist && first && comma) && !(close && trailing)
        };
        self.strings.iter().enumerate().map(|(id, token)| legal(id, token)).collect()
    }

    /// Compares a mask with that of a position; the legal ids.
    fn compare(&self, at: usize, mask: Mask<'_>) -> Vec<u32> {
        let dense = self.mask(at);
        for (id, legal) in dense.iter().enumerate() {
            assert_eq!(
                mask.allows(id as u32),
                *legal,
                "{:?}: position {at}, token {id} {:?}",
                self.kind,
                self.strings[id]
            );
        }
        (0..dense.len() as u32).filter(|id| dense[*id as usize]).collect()
    }
}

const SKELETON: &str =
    "[O-]<>[N+]<>(=[O]<>)[c]<>1[c]<>[c]<>[nH]<>[c]<>1[C@@H]<>([NH3+]<>)[C@]<>2([C@H]<>)[C]<>2.[Cl]<>";

/// A random constraint with its slow twin.
fn pair(seed: u64) -> (Arc<dyn Constraint>, Slow, Tokenizer, ChaCha8Rng, Encoding) {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let name = ["qwen-like", "llama-like"][random.random_range(0..2)];
    let tokenizer = Tokenizer::load(Path::new(name)).unwrap();
    let (kind, lookahead) = POSITION[random.random_range(0..POSITION.len())];
    let numbers = ["0", "-0", "0.0", "1.23", "-4.567", "0.0000", "-12.3456", "7"];
    let mut number = || numbers[random.random_range(0..numbers.len())];
    let text = format!("{},{},{}", number(), number(), number());
    let encoding = Encoding::ALL[random.random_range(0..2)];
    let specials = Specials { eos: 0, ends: Vec::new(), others: vec![random.random_range(0..500)] };
    let placeholder = Placeholder::new(&text).unwrap();
    let processor =
        LogitProcessor::new(kind, tokenizer.clone(), encoding, Some(&placeholder), specials.clone()).unwrap();
    let constraint = processor.constraint(SKELETON).unwrap();
    let filled = format!("[CONFORMER]{}[/CONFORMER]", SKELETON.replace("<>", &format!("<{text}>")));
    let slow = Slow::new(&tokenizer, kind, lookahead, &filled, &specials);
    (constraint, slow, tokenizer, random, encoding)
}

/// A processor with a placeholder, where token 0 ends a text.
fn template(
    kind: ProcessorKind,
    tokenizer: &Tokenizer,
    encoding: Encoding,
    placeholder: &Placeholder,
) -> LogitProcessor {
    LogitProcessor::new(kind, tokenizer.clone(), encoding, Some(placeholder), 0).unwrap()
}

/// Whether a block's text so far is a complete coordinate, by the words of the proposal.
fn complete(block: &str, encoding: Encoding, argmax: &str) -> bool {
    let numbers: Vec<&str> = block.split(',').collect();
    let [_, _, z] = numbers[..] else { return false };
    match encoding.zeros() {
        Some(TrailingZeros::Kept) => z
            .split_once('.')
            .is_some_and(|(_, decimals)| decimals.bytes().filter(u8::is_ascii_digit).count() >= 4),
        _ => {
            let writes_on = !argmax.is_empty() && argmax.chars().all(|c| "0123456789.,-".contains(c));
            z.contains(|c: char| c.is_ascii_digit()) && !writes_on
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_position_is_masked_as_described(seed: u64) {
        let (constraint, slow, _tokenizer, mut random, encoding) = pair(seed);
        let mut state = constraint.start();
        let (mut at, mut block) = (0, String::new());
        for _ in 0..150 {
            // Any token may be the model's own choice; often it is a number.
            let likely = (0..slow.strings.len()).filter(|id| slow.strings[*id].len() == 1);
            let likely: Vec<usize> = likely.collect();
            let argmax = likely[random.random_range(0..likely.len())];
            if constraint.wants_argmax() {
                constraint.observe(&mut state, argmax as u32);
            }
            if slow.kind == ProcessorKind::Truncating && slow.is_free(at) && complete(&block, encoding, &slow.strings[argmax]) {
                while slow.is_free(at) {
                    at += 1;
                }
            }
            let mask = constraint.mask(&state);
            let token = match slow.template.get(at) {
                None => {
                    prop_assert_eq!(mask, Mask::Forced(0));
                    prop_assert!(constraint.is_over(&state, 0));
                    break;
                }
                Some((id, false, _)) => {
                    prop_assert_eq!(mask, Mask::Forced(*id));
                    block.clear();
                    *id
                }
                Some(_) => {
                    let mut legal = slow.compare(at, mask);
                    // Mostly tokens of numbers, so that coordinates are completed.
                    let numbers: Vec<u32> = legal
                        .iter()
                        .copied()
                        .filter(|id| slow.strings[*id as usize].chars().all(|c| "0123456789.,-".contains(c)))
                        .collect();
                    if !numbers.is_empty() && random.random_range(0..4) > 0 {
                        legal = numbers;
                    }
                    let id = legal[random.random_range(0..legal.len())];
                    block.push_str(&slow.strings[id as usize]);
                    id
                }
            };
            prop_assert!(!constraint.is_over(&state, token));
            constraint.advance(&mut state, token);
            at += 1;
        }
    }
}

#[test]
fn complete_coordinates_end_their_block() {
    let tokenizer = Tokenizer::load(Path::new("qwen-like")).unwrap();
    let placeholder = Placeholder::new("-10.0000,-10.0000,-10.0000").unwrap();
    for (encoding, block) in [(Encoding::FIXED, "1.2345,0.0000,9.8765"), (Encoding::STRIPPED, "1.2,0,9.8")] {
        let processor = template(ProcessorKind::Truncating, &tokenizer, encoding, &placeholder);
        let constraint = processor.constraint("[C]<>[O]<>").unwrap();
        assert_eq!(constraint.wants_argmax(), encoding.is_stripped());
        let text = format!("[CONFORMER][C]<{block}>[O]<{block}>[/CONFORMER]");
        let ids = tokenizer.ids(&text).unwrap();
        let mut state = constraint.start();
        let mut out = Vec::new();
        for &id in &ids {
            if constraint.wants_argmax() {
                constraint.observe(&mut state, id);
            }
            let taken = match constraint.mask(&state) {
                Mask::Forced(forced) => forced,
                mask => {
                    assert!(mask.allows(id));
                    id
                }
            };
            out.push(taken);
            constraint.advance(&mut state, taken);
        }
        assert_eq!(tokenizer.decode(&out).unwrap(), text, "{encoding:?}");
        assert!(constraint.is_over(&state, 0));
    }
}

#[test]
fn each_class_of_block_has_its_own_placeholder() {
    let tokenizer = Tokenizer::load(Path::new("qwen-like")).unwrap();
    let placeholder =
        Placeholder::per_class(Partition::Index, &[("first", "0.0000,0.0000,0.0000")], "0,0,0").unwrap();
    let processor = template(ProcessorKind::Allowlist, &tokenizer, Encoding::FIXED, &placeholder);
    let constraint = processor.constraint("[C]<>[O]<>").unwrap();
    let mut state = constraint.start();
    let mut free = String::new();
    while !constraint.is_over(&state, 0) {
        let (id, mark) = match constraint.mask(&state) {
            Mask::Forced(id) => (id, '.'),
            Mask::Only(ids) => (ids[0], 'f'),
            other => panic!("{other:?}"),
        };
        free.push(mark);
        constraint.advance(&mut state, id);
    }
    let runs: Vec<usize> = free.split('.').map(str::len).filter(|n| *n > 0).collect();
    assert_eq!(runs, [20, 5]);
}

#[test]
fn nothing_is_masked_without_a_processor() {
    let tokenizer = Tokenizer::load(Path::new("qwen-like")).unwrap();
    let processor =
        LogitProcessor::new(ProcessorKind::None, tokenizer.clone(), Encoding::FIXED, None, 5).unwrap();
    let constraint = processor.constraint("[C]<>").unwrap();
    let state = constraint.start();
    assert_eq!(constraint.mask(&state), Mask::Any);
    assert!(constraint.is_over(&state, 5) && !constraint.is_over(&state, 6));
}

#[test]
fn what_a_template_cannot_do_is_refused() {
    let tokenizer = Tokenizer::load(Path::new("qwen-like")).unwrap();
    let error = LogitProcessor::new(ProcessorKind::Generic, tokenizer.clone(), Encoding::FIXED, None, 0)
        .err()
        .unwrap();
    assert!(error.to_string().starts_with("‘placeholder’: the processor `generic` needs one"), "{error}");
    let error = "allow-list".parse::<ProcessorKind>().unwrap_err().to_string();
    assert!(error.contains("there is no `allow-list`") && error.contains("allowlist"), "{error}");

    let fused = extended("qwen-like", &FUSED);
    let placeholder = Placeholder::new("0.0000,0.0000,0.0000").unwrap();
    let processor = template(ProcessorKind::Allowlist, &fused, Encoding::FIXED, &placeholder);
    let error = processor.constraint("[C]<>").err().unwrap().to_string();
    assert!(error.contains(": token `<0.` contains a bracket and digits"), "{error}");

    let separate = extended("qwen-like", &SEPARATE);
    let processor = template(ProcessorKind::Allowlist, &separate, Encoding::FIXED, &placeholder);
    assert!(processor.constraint("[C]<>").is_ok());
}
