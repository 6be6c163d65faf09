//! Generation: the same text whatever the batch and threads, forced runs, shared prompts, draws, and refusals.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use drift::Error;
use drift::constraint::{Constraint, Mask, State};
use drift::generate::{End, Engine, GeneratedText, GenerationResult, Options, Prompt, Sampling, Text};
use drift::job::{Job, Observer, Unit};
use drift::model::{Config, Decoder, Device, Feed, HiddenStates, Room};
use serde_json::json;

use crate::model::{MODELS, load, model, on_threads};
use crate::support::Free;

/// The end of text of all tests.
const END: u32 = 2;

/// A position template: each position is forced, or one of a list; then the end.
struct Template {
    positions: Vec<Vec<u32>>,
    /// Whether runs of forced tokens are told.
    tells_runs: bool,
}

impl Constraint for Template {
    fn start(&self) -> State {
        State::default()
    }
    fn mask(&self, state: &State) -> Mask<'_> {
        match self.positions.get(state.at as usize).map(|ids| &ids[..]) {
            None => Mask::Forced(END),
            Some([token]) => Mask::Forced(*token),
            Some(ids) if state.at % 5 == 4 => Mask::Except(ids),
            Some(ids) => Mask::Only(ids),
        }
    }
    fn advance(&self, state: &mut State, _: u32) {
        state.at += 1;
    }
    fn forced_run(&self, state: &State, run: &mut Vec<u32>) {
        if self.tells_runs {
            let forced = self.positions[state.at as usize..].iter().take_while(|ids| ids.len() == 1);
            run.extend(forced.map(|ids| ids[0]));
            if state.at as usize + run.len() == self.positions.len() {
                run.push(END);
            }
        }
    }
    fn is_over(&self, _: &State, token: u32) -> bool {
        token == END
    }
}

/// Forced runs, short lists, long lists and exclusions, in turn.
fn template(seed: u32, tells_runs: bool) -> Template {
    let position = |at: u32| {
        // The end is on no list of allowed tokens, and on all of excluded ones.
        let first = if at % 5 == 4 { 2 } else { 3 };
        match (at + seed) % 7 {
            0..3 => vec![5 + (at * seed) % 50],
            3 => (first..55).collect(),
            4 => vec![first, 9, 10, 11],
            _ => (first..17).collect(),
        }
    };
    Template { positions: (0..20 + seed % 9).map(position).collect(), tells_runs }
}

/// A prompt of one text of at most `most` tokens.
fn prompt(tokens: Vec<u32>, constraint: Arc<dyn Constraint>, most: usize) -> Prompt {
    Prompt {
        number: 0,
        done: [].into(),
        tokens,
        generations: 1,
        constraint,
        most_tokens: most,
        expected_tokens: most,
    }
}

/// Molecules with prompts of several lengths and one to three texts each.
fn prompts(count: u32, constraint: impl Fn(u32) -> Arc<dyn Constraint>) -> Vec<Prompt> {
    let prompt = |i: u32| Prompt {
        number: i as usize,
        generations: 1 + i as usize % 3,
        expected_tokens: (i as usize * 17) % 29,
        ..prompt((0..1 + (i * 5) % 13).map(|at| 3 + (i * 31 + at * 7) % 55).collect(), constraint(i), 40)
    };
    (0..count).map(prompt).collect()
}

fn mixed_prompts() -> Vec<Prompt> {
    prompts(12, |i| if i % 3 == 0 { Arc::new(Free) } else { Arc::new(template(i, true)) })
}

fn engine(name: &str) -> Engine {
    load(name).into()
}

fn options() -> Options {
    let sampling =
        Sampling { temperature: Some(1.1), top_k: Some(30), top_p: Some(0.95), min_p: Some(0.001) };
    Options { sampling, seed: 5, ..Options::default() }
}

fn run(engine: &mut Engine, prompts: &[Prompt], options: &Options) -> GenerationResult {
    engine.generate(prompts, options, &Job::default()).unwrap()
}

#[test]
fn the_text_does_not_depend_on_batch_threads_or_cache() {
    for name in ["qwen3-tied", "llama-scaled"] {
        let prompts = mixed_prompts();
        let mut engine = engine(name);
        let expected = run(&mut engine, &prompts, &Options { batch: 1, ..options() }).samples;
        assert_eq!(expected.len(), 24);
        assert!(expected.iter().any(|sample| sample.end == End::Eos && sample.tokens.len() > 10));
        for (batch, threads, room) in
            [(7, 1, Room::Static), (7, 2, Room::Growing), (32, 2, Room::Static), (3, 2, Room::Growing)]
        {
            let options = Options { batch, room, ..options() };
            let found = on_threads(threads, || run(&mut engine, &prompts, &options));
            assert!(found.samples == expected, "{name}: batch {batch}, {threads} threads, {room:?}");
        }
        let other = run(&mut engine, &prompts, &Options { seed: 6, ..options() }).samples;
        assert!(other != expected);
    }
}

#[test]
fn candle_operations_write_the_same_texts_in_any_rows_of_the_cache() {
    for name in ["qwen3-tied", "llama-scaled"] {
        let prompts = mixed_prompts();
        let expected = run(&mut engine(name), &prompts, &options()).samples;
        let decoder = Decoder::load(&model(name), &Device::cpu().without_kernels()).unwrap();
        let mut engine = Engine::from(decoder);
        // Rows stay where they are while others come and go; from 16 on they wait for one another to enter.
        for (batch, room) in [(1, Room::Static), (5, Room::Growing), (9, Room::Static), (17, Room::Growing)] {
            let found = run(&mut engine, &prompts, &Options { batch, room, ..options() });
            assert!(found.samples == expected, "{name}: batch {batch}, {room:?}");
        }
    }
}

#[test]
fn forced_runs_in_one_pass_write_what_they_write_token_by_token() {
    let mut engine = engine("qwen3-untied");
    let with = prompts(9, |i| Arc::new(template(i, true)));
    let without = prompts(9, |i| Arc::new(template(i, false)));
    let with = run(&mut engine, &with, &options());
    let without = run(&mut engine, &without, &options());
    assert!(with.samples == without.samples);
    assert!(with.counts.decode_steps < without.counts.decode_steps);
    assert!(with.counts.forced_tokens > 100 && with.counts.generated_tokens > with.counts.forced_tokens);
    for sample in &with.samples {
        let positions = template(sample.prompt as u32, true).positions;
        assert_eq!((sample.end, sample.tokens.len()), (End::Eos, positions.len()));
        for (at, (token, ids)) in sample.tokens.iter().zip(&positions).enumerate() {
            assert!(if ids.len() > 1 && at % 5 == 4 { !ids.contains(token) } else { ids.contains(token) });
            assert_eq!(sample.forced[at], ids.len() == 1);
        }
    }
}

#[test]
fn a_prompt_is_read_once_for_all_its_texts() {
    let mut engine = engine("llama-tied");
    let mut prompts = prompts(5, |_| Arc::new(Free));
    prompts.iter_mut().for_each(|prompt| prompt.generations = 6);
    let read: u64 = prompts.iter().map(|prompt| prompt.tokens.len() as u64 - 1).sum();
    for batch in [1, 4, 32] {
        let counts = run(&mut engine, &prompts, &Options { batch, ..options() }).counts;
        assert_eq!((counts.prompt_tokens, counts.shared_prompt_tokens), (read, 5 * read), "batch {batch}");
        assert_eq!(counts.wasted_positions, 0);
    }
}

/// One row, one token at a time, without any of the engine: tokens, log probabilities, and what is most likely at each.
fn reference(decoder: &Decoder, prompt: &Prompt) -> (Vec<u32>, Vec<f32>, Vec<u32>) {
    let mut cache = decoder.cache(1, 90, Room::Static).unwrap();
    let (mut state, mut tokens, mut log) = (prompt.constraint.start(), Vec::new(), Vec::new());
    let mut preferred = Vec::new();
    let mut feed = prompt.tokens.clone();
    loop {
        let hidden =
            decoder.forward(&[Feed { row: 0, tokens: &feed }], &mut cache, HiddenStates::Last).unwrap();
        let logits: Vec<f32> = decoder.logits(&hidden).unwrap().flatten_all().unwrap().to_vec1().unwrap();
        let allowed: Vec<u32> = match prompt.constraint.mask(&state) {
            Mask::Forced(token) => vec![token],
            Mask::Any => (0..logits.len() as u32).collect(),
            Mask::Only(ids) => ids.to_vec(),
            Mask::Except(ids) => (0..logits.len() as u32).filter(|id| !ids.contains(id)).collect(),
        };
        let best = |a: &u32, b: &u32| logits[*a as usize].total_cmp(&logits[*b as usize]).then(b.cmp(a));
        let token = allowed.into_iter().max_by(best).unwrap();
        preferred.push((0..logits.len() as u32).max_by(best).unwrap());
        let sum: f64 = logits.iter().map(|x| f64::from(*x).exp()).sum();
        log.push((f64::from(logits[token as usize]) - sum.ln()) as f32);
        if prompt.constraint.is_over(&state, token) || tokens.len() == prompt.most_tokens {
            return (tokens, log, preferred);
        }
        prompt.constraint.advance(&mut state, token);
        tokens.push(token);
        feed = vec![token];
    }
}

#[test]
fn greedy_text_and_logged_probabilities_are_those_of_a_plain_loop() {
    for name in MODELS {
        let decoder = load(name);
        let prompts = mixed_prompts();
        let options = Options { log_probabilities: true, batch: 5, ..Options::default() };
        let found = run(&mut engine(name), &prompts, &options).samples;
        for sample in &found {
            let (tokens, log, _) = reference(&decoder, &prompts[sample.prompt]);
            assert_eq!(sample.tokens, tokens, "{name}");
            let logged = sample.log_probabilities.as_ref().unwrap();
            assert_eq!(logged.len(), tokens.len() + usize::from(sample.end == End::Eos));
            for (found, expected) in logged.iter().zip(&log) {
                assert!((found - expected).abs() < 1e-4, "{name}: {found} {expected}");
            }
        }
        // A text that is given scores what it scored when it was written.
        let text = |sample: &GeneratedText| {
            let end = (sample.end == End::Eos).then_some(END);
            let answer = sample.tokens.iter().copied().chain(end).collect();
            Text { prompt: prompts[sample.prompt].tokens.clone(), answer }
        };
        let texts: Vec<Text> = found.iter().map(text).collect();
        let nats = engine(name).nats(&texts, &Job::default()).unwrap();
        for (sample, nats) in found.iter().zip(nats) {
            let logged: f32 = sample.log_probabilities.iter().flatten().sum();
            assert!((nats + f64::from(logged)).abs() < 1e-3, "{name}: {nats} {logged}");
        }
        // Logging changes nothing.
        let texts =
            |samples: Vec<GeneratedText>| samples.into_iter().map(|s| (s.tokens, s.forced, s.end)).collect();
        let (logged, plain): (Vec<_>, Vec<_>) =
            (texts(found), texts(run(&mut engine(name), &prompts, &Options::default()).samples));
        assert!(logged == plain, "{name}");
    }
}

#[test]
fn where_watched_tokens_are_forced_the_models_own_choice_is_kept() {
    // About half of what the templates force; never the end of text.
    let watched: Arc<[u32]> = (5..55).filter(|id| id % 2 == 0).collect();
    let (name, batch) = ("qwen3-tied", 5);
    let decoder = load(name);
    for tells_runs in [true, false] {
        let prompts = prompts(12, |i| match i % 4 {
            0 => Arc::new(Free),
            // Its last tokens are forced, and so is the end behind them.
            1 => Arc::new(Template { positions: vec![vec![7, 9], vec![8], vec![6]], tells_runs }),
            _ => Arc::new(template(i, tells_runs)),
        });
        let plain = run(&mut engine(name), &prompts, &Options { batch, ..Options::default() });
        assert!(plain.samples.iter().all(|sample| sample.preferred.is_empty()));
        for log_probabilities in [false, true] {
            let options =
                Options { watched: watched.clone(), log_probabilities, batch, ..Options::default() };
            let found = run(&mut engine(name), &prompts, &options).samples;
            assert_eq!(found.len(), plain.samples.len());
            let mut overruled = 0;
            for (sample, plain) in found.iter().zip(&plain.samples) {
                let (tokens, _, likely) = reference(&decoder, &prompts[sample.prompt]);
                assert_eq!((&sample.tokens, &plain.tokens, plain.end), (&tokens, &tokens, sample.end));
                let asked = |at: &usize| sample.forced[*at] && watched.contains(&tokens[*at]);
                let expected: Vec<(usize, u32)> =
                    (0..tokens.len()).filter(asked).map(|at| (at, likely[at])).collect();
                assert_eq!(sample.preferred, expected);
                overruled += expected.iter().filter(|(at, token)| tokens[*at] != *token).count();
            }
            assert!(overruled > 20, "{overruled}");
        }
    }
}

/// Shares of tokens in many texts of one token.
fn shares(sampling: Sampling, constraint: impl Constraint + 'static) -> BTreeMap<u32, f64> {
    const DRAWS: usize = 8_000;
    let prompt = Prompt { generations: DRAWS, ..prompt(vec![7, 20, 41], Arc::new(constraint), 1) };
    let options = Options { sampling, batch: 500, ..Options::default() };
    let mut shares = BTreeMap::new();
    for sample in run(&mut engine("qwen3-tied"), &[prompt], &options).samples {
        *shares.entry(sample.tokens.first().copied().unwrap_or(END)).or_default() += 1.0 / DRAWS as f64;
    }
    shares
}

/// What transformers' chain of temperature, top-k, top-p and min-p leaves, renormalised.
fn expected_shares(sampling: Sampling, allowed: impl Fn(u32) -> bool) -> BTreeMap<u32, f64> {
    let decoder = load("qwen3-tied");
    let mut cache = decoder.cache(1, 3, Room::Static).unwrap();
    let hidden =
        decoder.forward(&[Feed { row: 0, tokens: &[7, 20, 41] }], &mut cache, HiddenStates::Last).unwrap();
    let logits: Vec<f32> = decoder.logits(&hidden).unwrap().flatten_all().unwrap().to_vec1().unwrap();
    let scores = (0u32..).zip(&logits).filter(|(id, _)| allowed(*id));
    let mut scores: Vec<(u32, f64)> =
        scores.map(|(id, x)| (id, f64::from(*x) / sampling.temperature.unwrap())).collect();
    scores.sort_by(|a, b| b.1.total_cmp(&a.1));
    scores.truncate(sampling.top_k.unwrap_or(usize::MAX));
    let softmax = |scores: &[(u32, f64)]| -> Vec<f64> {
        let sum: f64 = scores.iter().map(|(_, x)| x.exp()).sum();
        scores.iter().map(|(_, x)| x.exp() / sum).collect()
    };
    if let Some(p) = sampling.top_p {
        // transformers removes, from the least likely on, what adds up to at most 1 - p.
        let probabilities = softmax(&scores);
        let tail = |at: usize| probabilities[at..].iter().sum::<f64>();
        let kept = (1..scores.len()).find(|at| tail(*at) <= 1.0 - p).unwrap_or(scores.len());
        scores.truncate(kept);
    }
    if let Some(p) = sampling.min_p {
        let probabilities = softmax(&scores);
        let kept = probabilities.iter().filter(|probability| **probability >= p * probabilities[0]).count();
        scores.truncate(kept);
    }
    let probabilities = softmax(&scores);
    scores.iter().map(|(id, _)| *id).zip(probabilities).collect()
}

#[test]
fn draws_follow_the_distribution_that_transformers_leaves() {
    let plain = Sampling { temperature: Some(1.0), ..Sampling::GREEDY };
    let settings = [
        plain,
        Sampling::QWEN3,
        Sampling::preset("top-p-0.6-t1.4").unwrap(),
        Sampling::preset("min-p-0.1-t1.2").unwrap(),
        Sampling { temperature: Some(2.0), top_k: Some(12), top_p: Some(0.9), min_p: Some(0.2) },
    ];
    let only: Vec<u32> = (0..61).filter(|id| id % 3 == 0).collect();
    for sampling in settings {
        let list = only.clone();
        let masked = Template { positions: vec![list.clone(), vec![4]], tells_runs: true };
        let found = [shares(sampling, Free), shares(sampling, masked)];
        let expected =
            [expected_shares(sampling, |_| true), expected_shares(sampling, |id| list.contains(&id))];
        for (found, expected) in found.iter().zip(&expected) {
            assert!(found.keys().all(|id| expected.contains_key(id)), "{sampling:?}");
            for (id, share) in expected {
                // Five standard deviations.
                let tolerance = 5.0 * (share * (1.0 - share) / 8_000.0).sqrt() + 1e-9;
                let drawn = found.get(id).copied().unwrap_or(0.0);
                assert!((drawn - share).abs() < tolerance, "{sampling:?}: token {id}, {drawn} for {share}");
            }
        }
    }
}

#[test]
fn a_mask_leaves_draws_alone_that_it_allows() {
    let sampling = Sampling { temperature: Some(1.3), ..Sampling::GREEDY };
    let draw = |constraint: Arc<dyn Constraint>| {
        let prompt = |i: u32| Prompt {
            number: i as usize,
            generations: 5,
            ..prompt(vec![5 + i % 40, 9], constraint.clone(), 1)
        };
        let prompts: Vec<Prompt> = (0..200).map(prompt).collect();
        run(&mut engine("qwen3-tied"), &prompts, &Options { sampling, ..Options::default() }).samples
    };
    let only: Vec<u32> = (0..61).filter(|id| id % 4 != 1).collect();
    let free = draw(Arc::new(Free));
    let masked = draw(Arc::new(Template { positions: vec![only.clone(), vec![4]], tells_runs: true }));
    let legal: Vec<usize> =
        (0..free.len()).filter(|at| free[*at].tokens.first().is_some_and(|id| only.contains(id))).collect();
    assert!(legal.len() > 400 && legal.len() < 950, "{}", legal.len());
    assert!(legal.iter().all(|at| free[*at].tokens == masked[*at].tokens));
}

/// Cancels its job once so many texts are finished.
struct CancelAfter(usize, AtomicUsize, Arc<AtomicBool>);

impl Observer for CancelAfter {
    fn begin(&self, phase: &str, total: Option<u64>, _: Unit) {
        assert_eq!((phase, total), ("generate", Some(24)));
    }
    fn advance(&self, n: u64) {
        if self.1.fetch_add(n as usize, Ordering::Relaxed) + n as usize >= self.0 {
            self.2.store(true, Ordering::Relaxed);
        }
    }
    fn end(&self) {}
}

#[test]
fn a_cancelled_job_keeps_what_is_finished() {
    let prompts = mixed_prompts();
    let mut engine = engine("qwen3-tied");
    let options = Options { batch: 3, ..Options::default() };
    let all = run(&mut engine, &prompts, &options);
    assert!(!all.interrupted);
    let cancelled = Arc::new(AtomicBool::new(false));
    let observer = CancelAfter(4, AtomicUsize::new(0), cancelled.clone());
    let some = engine.generate(&prompts, &options, &Job::new(Arc::new(observer), cancelled)).unwrap();
    assert!(some.interrupted && (4..12).contains(&some.samples.len()), "{}", some.samples.len());
    assert!(some.samples.iter().all(|sample| all.samples.contains(sample)));
}

#[test]
fn time_and_work_are_accounted_for() {
    let options = Options { trace: true, batch: 6, ..options() };
    let done = run(&mut engine("qwen3-tied"), &mixed_prompts(), &options);
    let timing = done.timing;
    for part in [timing.prefill, timing.forward, timing.logit_processor, timing.sampling, timing.other] {
        assert!(part > 0.0, "{timing:?}");
    }
    let spans: f64 = done.spans.iter().map(|span| span.duration).sum();
    assert!((spans - timing.total()).abs() < 1e-6);
    assert!(done.spans.is_sorted_by(|a, b| a.start <= b.start));
    let tokens: usize = done.samples.iter().map(|sample| sample.tokens.len()).sum();
    assert_eq!(done.counts.generated_tokens, tokens as u64);
    assert!(done.counts.decode_steps > 0 && done.counts.row_passes <= 6 * done.counts.decode_steps);
}

#[test]
fn presets_have_the_values_of_their_names() {
    let names = Sampling::names();
    assert_eq!(names.len(), 2 + 12 + 12);
    for name in &names {
        Sampling::preset(name).unwrap();
    }
    let top_p = Sampling { temperature: Some(1.2), top_k: None, top_p: Some(0.8), min_p: None };
    assert_eq!(Sampling::preset("top-p-0.8-t1.2").unwrap(), top_p);
    let min_p = Sampling { temperature: Some(0.8), top_k: None, top_p: None, min_p: Some(0.075) };
    assert_eq!(Sampling::preset("min-p-0.075-t0.8").unwrap(), min_p);
    assert_eq!(Sampling::preset("greedy").unwrap(), Sampling::GREEDY);
    let qwen3 = Sampling { temperature: Some(0.7), top_k: Some(20), top_p: Some(0.8), min_p: None };
    assert_eq!(Sampling::preset("qwen3").unwrap(), qwen3);
    for wrong in ["", "top-p", "top-p-1.5-t1.0", "min-p-0.1-t0", "top-p-x-t1", "top-p-0.5-tinf", "Greedy"] {
        let error = Sampling::preset(wrong).unwrap_err().to_string();
        assert!(error.starts_with("‘preset’"), "{error}");
    }
}

#[test]
fn what_cannot_work_is_refused_before_it_starts() {
    let mut engine = engine("qwen3-tied");
    let prompt = |tokens: Vec<u32>| prompt(tokens, Arc::new(Free), 10);
    let mut refusal = |tokens: Vec<u32>, options: &Options| -> String {
        let prompts = [prompt(vec![4]), prompt(tokens)];
        let error = engine.generate(&prompts, options, &Job::default()).unwrap_err();
        assert!(matches!(error, Error::Input { .. } | Error::Parameter { .. }));
        error.to_string()
    };
    let options = Options::default();
    assert!(
        refusal(vec![4; 96], &options)
            .contains("the prompt of molecule 1: has 96 tokens, the model's context 96")
    );
    assert!(refusal(vec![], &options).contains("the prompt of molecule 1: is empty"));
    assert!(refusal(vec![4, 61], &options).contains("contains token 61"));
    assert!(refusal(vec![4], &Options { batch: 0, ..options.clone() }).contains("‘batch’"));
    // A prompt that just fits may write what is left of the context.
    let done = run(&mut engine, &[prompt(vec![4; 95])], &options);
    assert_eq!((done.samples[0].tokens.len(), done.samples[0].end), (1, End::Length));
}

#[test]
fn a_cache_that_cannot_fit_is_refused_before_it_starts() {
    let config = json!({"model_type": "llama", "vocab_size": 10, "hidden_size": 2, "intermediate_size": 2,
        "num_hidden_layers": 2, "num_attention_heads": 1, "head_dim": 2, "max_position_embeddings": 2_000_000});
    let mut config: Config = serde_json::from_value(config).unwrap();
    config.num_hidden_layers = 3;
    let decoder = Decoder::random(config, 1, &Device::cpu()).unwrap();
    let prompt = prompt(vec![4], Arc::new(Free), 1_900_000);
    let prompt = Prompt { generations: 1_000_000, expected_tokens: 1, ..prompt };
    let options = Options { batch: 1_000_000, ..Options::default() };
    let mut engine = Engine::from(decoder);
    let error = engine.generate(&[prompt], &options, &Job::default()).unwrap_err().to_string();
    assert!(error.contains("‘batch’") && error.contains("would fit"), "{error}");
}

#[test]
fn a_logit_processor_that_allows_nothing_is_an_error() {
    let prompt = |ids: Vec<u32>| {
        let template = Template { positions: vec![ids, vec![1]], tells_runs: true };
        prompt(vec![4], Arc::new(template), 10)
    };
    for ids in [vec![], vec![61, 62]] {
        for sampling in [Sampling::GREEDY, Sampling::QWEN3] {
            let options = Options { sampling, ..Options::default() };
            let done = engine("qwen3-tied").generate(&[prompt(ids.clone())], &options, &Job::default());
            assert!(done.unwrap_err().to_string().contains("allows no token"));
        }
    }
}

/// Forces whatever the unmasked model finds most likely.
struct MostLikely;

impl Constraint for MostLikely {
    fn start(&self) -> State {
        State { at: 0, inner: u32::MAX }
    }
    fn mask(&self, state: &State) -> Mask<'_> {
        if state.inner == u32::MAX { Mask::Any } else { Mask::Forced(state.inner) }
    }
    fn advance(&self, state: &mut State, _: u32) {
        state.inner = u32::MAX;
    }
    fn is_over(&self, _: &State, token: u32) -> bool {
        token == END
    }
    fn wants_argmax(&self) -> bool {
        true
    }
    fn observe(&self, state: &mut State, argmax: u32) {
        state.inner = argmax;
    }
}

#[test]
fn a_logit_processor_sees_the_most_likely_token_before_its_mask() {
    let greedy = run(&mut engine("llama-tied"), &prompts(6, |_| Arc::new(Free)), &Options::default());
    let found = run(&mut engine("llama-tied"), &prompts(6, |_| Arc::new(MostLikely)), &options());
    for (found, greedy) in found.samples.iter().zip(&greedy.samples) {
        assert_eq!((&found.tokens, found.end), (&greedy.tokens, greedy.end));
        assert!(found.forced.iter().all(|forced| *forced));
    }
    assert_eq!(found.samples.len(), greedy.samples.len());
}
