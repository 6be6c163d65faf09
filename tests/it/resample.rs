//! What a mask costs, and resampling by it: the distribution given that a text is legal, against all texts enumerated.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use drift::constraint::{Constraint, Mask, State};
use drift::generate::{End, Engine, GenerationResult, Options, Prompt, Resampling, Sampling};
use drift::job::Job;
use drift::model::{Decoder, Feed, HiddenStates, Room};

use crate::model::{load, on_threads};
use crate::support::Free;

const END: u32 = 2;
/// Closes a block.
const CLOSE: u32 = 40;
/// Begins a block of two more tokens, of which few are allowed.
const NARROW: u32 = 5;
/// Begins a block of one more token, of which more are allowed.
const WIDE: u32 = 6;

/// Blocks that begin with one of two tokens: under a mask as the model holds these likely, though what must follow the one is
/// much less likely than what must follow the other. Then a run of forced tokens.
struct Blocks {
    blocks: u32,
    lists: [Vec<u32>; 4],
}

impl Blocks {
    fn new(blocks: u32) -> Self {
        Blocks { blocks, lists: [vec![NARROW, WIDE], vec![7, 8], (10..30).collect(), (30..35).collect()] }
    }
}

impl Constraint for Blocks {
    fn start(&self) -> State {
        State::default()
    }
    fn mask(&self, state: &State) -> Mask<'_> {
        match state.inner {
            0 if state.at == self.blocks => Mask::Forced(END),
            inner @ 0..4 => Mask::Only(&self.lists[inner as usize]),
            4 => Mask::Forced(CLOSE),
            _ => Mask::Forced(50),
        }
    }
    fn advance(&self, state: &mut State, token: u32) {
        (state.at, state.inner) = match (state.inner, token) {
            (0, NARROW) => (state.at, 1),
            (0, WIDE) => (state.at, 3),
            (1, _) => (state.at, 2),
            (2 | 3, _) => (state.at, 4),
            (4, _) => (state.at, 5),
            _ => (state.at + 1, 0),
        };
    }
    fn is_over(&self, _: &State, token: u32) -> bool {
        token == END
    }
}

fn prompt(
    number: usize,
    tokens: &[u32],
    generations: usize,
    constraint: impl Constraint + 'static,
) -> Prompt {
    Prompt {
        number,
        tokens: tokens.to_vec(),
        generations,
        done: [].into(),
        constraint: Arc::new(constraint),
        most_tokens: 60,
        expected_tokens: 20,
    }
}

fn engine(name: &str) -> Engine {
    load(name).into()
}

fn resampling(draws: usize) -> Option<Resampling> {
    Some(Resampling { draws, block_ends: [CLOSE].into() })
}

const HOT: Sampling = Sampling { temperature: Some(1.3), ..Sampling::GREEDY };

fn run(engine: &mut Engine, prompts: &[Prompt], options: &Options) -> GenerationResult {
    engine.generate(prompts, options, &Job::default()).unwrap()
}

/// The softmax of the logits after `tokens`, read afresh, divided by the temperature.
fn probabilities(decoder: &Decoder, tokens: &[u32], temperature: f64) -> Vec<f64> {
    let mut cache = decoder.cache(1, tokens.len(), Room::Static).unwrap();
    let hidden = decoder.forward(&[Feed { row: 0, tokens }], &mut cache, HiddenStates::Last).unwrap();
    let logits: Vec<f32> = decoder.logits(&hidden).unwrap().flatten_all().unwrap().to_vec1().unwrap();
    let best = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let exp: Vec<f64> = logits.iter().map(|logit| (f64::from(logit - best) / temperature).exp()).collect();
    let sum: f64 = exp.iter().sum();
    exp.into_iter().map(|value| value / sum).collect()
}

fn allowed(mask: Mask<'_>, vocabulary: usize) -> Vec<u32> {
    match mask {
        Mask::Forced(token) => vec![token],
        Mask::Only(ids) => ids.to_vec(),
        Mask::Any | Mask::Except(_) => (0..vocabulary as u32).collect(),
    }
}

/// How the blocks of a text begin.
fn pattern(tokens: &[u32]) -> Vec<u32> {
    tokens.iter().copied().filter(|token| [NARROW, WIDE].contains(token)).collect()
}

/// Every legal text: its probability in all by pattern, under the model, and under the mask.
struct Enumerated<'d> {
    decoder: &'d Decoder,
    constraint: Blocks,
    given: BTreeMap<Vec<u32>, f64>,
    masked: BTreeMap<Vec<u32>, f64>,
    prompt: usize,
}

impl Enumerated<'_> {
    fn visit(&mut self, text: &mut Vec<u32>, state: State, (model, masked): (f64, f64)) {
        let probabilities = probabilities(self.decoder, text, HOT.temperature.unwrap());
        let next = allowed(self.constraint.mask(&state), 61);
        let left: f64 = next.iter().map(|id| probabilities[*id as usize]).sum();
        for id in next {
            let share = probabilities[id as usize];
            let both = (model * share, masked * share / left);
            if id == END {
                let pattern = pattern(&text[self.prompt..]);
                *self.given.entry(pattern.clone()).or_default() += both.0;
                *self.masked.entry(pattern).or_default() += both.1;
                continue;
            }
            let mut after = state;
            self.constraint.advance(&mut after, id);
            text.push(id);
            self.visit(text, after, both);
            text.pop();
        }
    }
}

fn shares(found: &GenerationResult) -> BTreeMap<Vec<u32>, f64> {
    let mut shares = BTreeMap::new();
    for sample in &found.samples {
        assert_eq!(sample.end, End::Eos);
        *shares.entry(pattern(&sample.tokens)).or_default() += 1.0 / found.samples.len() as f64;
    }
    shares
}

/// Total variation.
fn distance(a: &BTreeMap<Vec<u32>, f64>, b: &BTreeMap<Vec<u32>, f64>) -> f64 {
    let keys: BTreeSet<&Vec<u32>> = a.keys().chain(b.keys()).collect();
    let share = |of: &BTreeMap<Vec<u32>, f64>, key| of.get(key).copied().unwrap_or(0.0);
    keys.into_iter().map(|key| (share(a, key) - share(b, key)).abs()).sum::<f64>() / 2.0
}

#[test]
fn many_draws_follow_the_model_given_that_a_text_is_legal_and_a_mask_alone_does_not() {
    let start = [7, 20, 41];
    let decoder = load("qwen3-tied");
    let mut all = Enumerated {
        decoder: &decoder,
        constraint: Blocks::new(2),
        given: BTreeMap::new(),
        masked: BTreeMap::new(),
        prompt: start.len(),
    };
    all.visit(&mut start.to_vec(), State::default(), (1.0, 1.0));
    let legal: f64 = all.given.values().sum();
    let given: BTreeMap<_, _> = all.given.iter().map(|(key, share)| (key.clone(), share / legal)).collect();
    assert!((all.masked.values().sum::<f64>() - 1.0).abs() < 1e-6);
    assert!(distance(&given, &all.masked) > 0.3, "{given:?} {:?}", all.masked);

    let texts = 6400;
    let mut engine = engine("qwen3-tied");
    let mut drawn = |resampling: Option<Resampling>| {
        let options =
            Options { sampling: HOT, batch: 640, resampling, log_probabilities: true, ..Options::default() };
        run(&mut engine, &[prompt(0, &start, texts, Blocks::new(2))], &options)
    };
    let plain = drawn(None);
    assert!(distance(&shares(&plain), &all.masked) < 0.02);
    let resampled = drawn(resampling(64));
    let apart = distance(&shares(&resampled), &given);
    assert!(apart < 0.03, "{apart}: {:?} {given:?}", shares(&resampled));
    // Two draws are better than one, and worse than many.
    let of_two = distance(&shares(&drawn(resampling(2))), &given);
    assert!(of_two > apart + 0.05 && of_two < distance(&all.masked, &given) - 0.05, "{of_two}");

    // The weights of a plain run, and those of groups, estimate how likely a legal text is.
    let weight =
        |logs: &Option<Vec<f32>>| logs.as_ref().unwrap().iter().map(|log| f64::from(*log)).sum::<f64>().exp();
    let mean = plain.samples.iter().map(|sample| weight(&sample.log_allowed)).sum::<f64>() / texts as f64;
    assert!((mean / legal - 1.0).abs() < 0.1, "{mean} {legal}");
    assert_eq!(resampled.resampled.len(), 100);
    let groups = resampled.resampled.iter();
    let mean = groups.clone().map(|group| group.log_legal.exp()).sum::<f64>() / 100.0;
    assert!((mean / legal - 1.0).abs() < 0.1, "{mean} {legal}");
    for group in groups {
        assert!(group.draws == 64 && (1..64).contains(&group.ancestors));
        assert!(group.least_effective <= group.effective && group.effective <= 64.0 + 1e-9);
    }
}

/// Several molecules of several numbers of texts, that forbid much or nothing.
fn molecules() -> Vec<Prompt> {
    let molecule = |i: u32| {
        let tokens: Vec<u32> = (0..1 + (i * 5) % 7).map(|at| 3 + (i * 31 + at * 7) % 55).collect();
        match i % 4 {
            3 => prompt(i as usize, &tokens, 5, Free),
            _ => prompt(i as usize, &tokens, 1 + i as usize, Blocks::new(3 + i % 3)),
        }
    };
    (0..11).map(molecule).collect()
}

#[test]
fn rows_that_are_copied_hold_the_keys_and_values_of_their_tokens() {
    for name in ["qwen3-tied", "llama-scaled"] {
        let decoder = load(name);
        let prompts = molecules();
        let options =
            Options { sampling: HOT, batch: 9, resampling: resampling(5), seed: 3, ..Options::default() };
        let found = run(&mut engine(name), &prompts, &options);
        assert!(found.resampled.iter().map(|group| group.resamplings).sum::<usize>() > 2);
        assert_eq!(found.samples.len(), prompts.iter().map(|prompt| prompt.generations).sum::<usize>());
        for sample in &found.samples {
            let Prompt { tokens, constraint, .. } = &prompts[sample.prompt];
            let (mut text, mut state) = (tokens.clone(), constraint.start());
            let logged =
                sample.log_probabilities.as_ref().unwrap().iter().zip(sample.log_allowed.as_ref().unwrap());
            let written = sample.tokens.iter().chain((sample.end == End::Eos).then_some(&END));
            assert_eq!(logged.len(), written.clone().count());
            for (&token, (log, left)) in written.zip(logged) {
                let own = probabilities(&decoder, &text, 1.0)[token as usize].ln();
                assert!((f64::from(*log) - own).abs() < 1e-4, "{name}: {log} {own}");
                let probabilities = probabilities(&decoder, &text, 1.3);
                let mask = allowed(constraint.mask(&state), probabilities.len());
                let own = mask.iter().map(|id| probabilities[*id as usize]).sum::<f64>().ln();
                assert!(
                    (f64::from(*left) - own).abs() < 1e-4,
                    "{name}: {left} {own} prompt {} text {:?} token {token} mask {}",
                    sample.prompt,
                    text,
                    mask.len()
                );
                assert!(mask.contains(&token));
                constraint.advance(&mut state, token);
                text.push(token);
            }
        }
        // Copies go their own way.
        let distinct: BTreeSet<(usize, &[u32])> =
            found.samples.iter().map(|sample| (sample.prompt, &sample.tokens[..])).collect();
        let ancestors: usize = found.resampled.iter().map(|group| group.ancestors).sum();
        assert!(
            distinct.len() > ancestors && ancestors < found.samples.len(),
            "{} {ancestors}",
            distinct.len()
        );
    }
}

#[test]
fn resampled_texts_do_not_depend_on_batch_threads_or_cache() {
    let prompts = molecules();
    let mut engine = engine("qwen3-tied");
    let options = Options { sampling: HOT, resampling: resampling(4), seed: 5, ..Options::default() };
    let expected = run(&mut engine, &prompts, &Options { batch: 4, ..options.clone() });
    for (batch, threads, room) in [(4, 1, Room::Growing), (7, 2, Room::Static), (64, 2, Room::Growing)] {
        let options = Options { batch, room, ..options.clone() };
        let found = on_threads(threads, || run(&mut engine, &prompts, &options));
        assert!(found.samples == expected.samples, "batch {batch}, {threads} threads, {room:?}");
        assert_eq!(found.resampled, expected.resampled);
    }
    let other = run(&mut engine, &prompts, &Options { seed: 6, ..options });
    assert!(other.samples != expected.samples);
}

#[test]
fn a_mask_that_forbids_nothing_leaves_weights_and_texts_as_they_are() {
    let prompts: Vec<Prompt> = (0..6).map(|i| prompt(i as usize, &[4 + i, 30], 7, Free)).collect();
    for sampling in [HOT, Sampling::QWEN3, Sampling::preset("min-p-0.05-t1.2").unwrap()] {
        let plain = Options { sampling, batch: 16, log_probabilities: true, ..Options::default() };
        let resampled = Options { resampling: resampling(4), ..plain.clone() };
        let mut engine = engine("llama-tied");
        let (plain, found) = (run(&mut engine, &prompts, &plain), run(&mut engine, &prompts, &resampled));
        assert!(plain.samples == found.samples && plain.resampled.is_empty());
        assert!(plain.samples.iter().any(|sample| sample.tokens.contains(&CLOSE)));
        for sample in &found.samples {
            assert!(sample.log_allowed.iter().flatten().all(|log| *log == 0.0));
        }
        assert_eq!(found.resampled.len(), 12);
        for group in &found.resampled {
            let draws = group.draws;
            assert_eq!((group.effective, group.least_effective), (draws as f64, draws as f64));
            assert_eq!((group.resamplings, group.ancestors, group.log_legal), (0, draws, 0.0));
        }
    }
}

#[test]
fn what_cannot_be_resampled_is_refused() {
    let prompts = [prompt(0, &[4], 8, Free)];
    let refusal = |engine: &mut Engine, options: Options| {
        engine.generate(&prompts, &options, &Job::default()).unwrap_err().to_string()
    };
    let options = |draws| Options { sampling: HOT, resampling: resampling(draws), ..Options::default() };
    let mut own = engine("qwen3-tied");
    let wide = refusal(&mut own, Options { batch: 7, ..options(8) });
    assert!(wide.contains("8 texts are drawn together, a batch has 7 rows"), "{wide}");
    assert!(refusal(&mut own, options(1)).contains("give at least 2"));
    let greedy = refusal(&mut own, Options { sampling: Sampling::GREEDY, ..options(4) });
    assert!(greedy.contains("greedy"), "{greedy}");
}
