//! drift's decoders compute the logits of candle-transformers, and write its greedy texts.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use drift::constraint::{Constraint, Mask, State};
use drift::generate::{End, Engine, Options, Prompt};
use drift::job::Job;
use drift::model::{Decoder, Device, Feed, HiddenStates, Room};
use drift_peer::CandleTransformers;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Made by `tests/fixtures/make_models.py`; all have the same vocabulary.
const MODELS: [&str; 4] = ["qwen3-tied", "qwen3-untied", "llama-scaled", "llama-tied"];
const VOCABULARY: u32 = 61;

/// The end of text.
const END: u32 = 2;

fn model(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/models").join(name)
}

#[test]
fn logits_are_those_of_candle_transformers() {
    let mut random = ChaCha8Rng::seed_from_u64(7);
    for name in MODELS {
        let decoder = Decoder::load(&model(name), &Device::cpu()).unwrap();
        let mut peer = CandleTransformers::load(&model(name)).unwrap();
        let tokens: Vec<u32> = (0..40).map(|_| random.random_range(0..VOCABULARY)).collect();
        // Twenty at once, the others one by one, as the keys and values are read in decoding.
        let mut theirs = peer.forward(&[tokens[..20].to_vec()], 0).unwrap();
        for (at, token) in tokens.iter().enumerate().skip(20) {
            theirs.extend(peer.forward(&[vec![*token]], at).unwrap());
        }
        let mut cache = decoder.cache(1, tokens.len(), Room::Static).unwrap();
        let hidden = decoder.forward(&[Feed { row: 0, tokens: &tokens }], &mut cache, HiddenStates::All);
        let ours: Vec<Vec<f32>> = decoder.logits(&hidden.unwrap()).unwrap().to_vec2().unwrap();
        assert_eq!((ours.len(), theirs.len()), (40, 21), "{name}");
        let pairs = || ours[19..].iter().flatten().zip(theirs.iter().flatten());
        let error = pairs().map(|(ours, theirs)| (ours - theirs).abs()).fold(0.0, f32::max);
        let largest = pairs().fold(0f32, |most, (logit, _)| most.max(logit.abs()));
        assert!(error < 1e-5 && largest > 1.0, "{name}: error {error}, largest logit {largest}");
    }
}

/// Each position is forced, or one of a list, or none of a list; then the end. Without positions everything is allowed.
struct Template(Vec<Vec<u32>>);

impl Constraint for Template {
    fn start(&self) -> State {
        State::default()
    }
    fn mask(&self, state: &State) -> Mask<'_> {
        match self.0.get(state.at as usize).map(|ids| &ids[..]) {
            _ if self.0.is_empty() => Mask::Any,
            None => Mask::Forced(END),
            Some([token]) => Mask::Forced(*token),
            Some(ids) if state.at % 5 == 4 => Mask::Except(ids),
            Some(ids) => Mask::Only(ids),
        }
    }
    fn advance(&self, state: &mut State, _: u32) {
        state.at += 1;
    }
    fn is_over(&self, _: &State, token: u32) -> bool {
        token == END
    }
}

/// Molecules with prompts of several lengths and one to three texts each.
fn prompts() -> Vec<Prompt> {
    let mut random = ChaCha8Rng::seed_from_u64(8);
    let mut position = |at: usize| match random.random_range(0..3) {
        0 => vec![random.random_range(5..55)],
        1 => vec![3, 9, 10, 11],
        // The end is on no list of allowed tokens, and on all of excluded ones.
        _ => (if at % 5 == 4 { 2 } else { 3 }..random.random_range(17..55)).collect(),
    };
    let mut prompt = |number: usize| Prompt {
        number,
        done: [].into(),
        tokens: (0..1 + (number as u32 * 5) % 13).map(|at| 3 + (number as u32 * 31 + at * 7) % 55).collect(),
        generations: 1 + number % 3,
        constraint: Arc::new(Template(match number % 4 {
            0 => Vec::new(),
            _ => (0..20 + number % 9).map(&mut position).collect(),
        })),
        most_tokens: 40,
        expected_tokens: (number * 17) % 29,
    };
    (0..24).map(&mut prompt).collect()
}

#[test]
fn greedy_texts_are_those_of_candle_transformers() {
    for name in MODELS {
        let prompts = prompts();
        let mut engine = Engine::load(&model(name), &Device::cpu()).unwrap();
        let ours = engine.generate(&prompts, &Options::default(), &Job::default()).unwrap();
        let mut peer = CandleTransformers::load(&model(name)).unwrap();
        let theirs = peer.generate(&prompts, &Options { batch: 4, ..Options::default() }).unwrap();
        assert!(ours.samples == theirs.samples, "{name}");
        assert!(ours.samples.iter().any(|text| text.end == End::Eos && text.tokens.len() > 10), "{name}");
        assert!(theirs.counts.decode_steps > ours.counts.decode_steps && theirs.counts.wasted_positions > 0);
    }
}
