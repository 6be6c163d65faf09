//! The automaton allows canonical tokens of legal texts and nothing else.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, LazyLock, Mutex, OnceLock};

use drift::constraint::{Constraint, LogitProcessor, Mask, ProcessorKind};
use drift::corpus::EmbeddedConformers;
use drift::design::extension::extend::extend;
use drift::design::{Grammar, Range, Scheme};
use drift::encoding::{Encoding, Fixed, Precision, Reading, TrailingZeros};
use drift::io::hash_bytes;
use drift::text::skeleton::{Spelling, smiles, with_hydrogens};
use drift::text::{tagged, write};
use drift::tokenizer::Tokenizer;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use crate::common::fixture;
use crate::counting::{FIXTURES, embedded_texts, fixture_tokenizer, is_asked_for, trained, whole};
use crate::support::{SHARED_TOKENIZERS, conformers, more, shared, shared_texts, sized};

/// An id that no vocabulary has.
pub(crate) const EOS: u32 = u32::MAX - 7;

/// Skeletons of the embedded corpus, each once.
pub(crate) static SKELETONS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let all: std::collections::BTreeSet<String> =
        conformers(&EmbeddedConformers::default()).into_iter().map(|c| c.skeleton.to_string()).collect();
    all.into_iter().collect()
});

/// A tokenizer of drift's own design, blocks below 15 Å cut at `starts`; without the checks of `drift train-tokenizer`.
pub(crate) fn extended(base: &str, starts: &[usize]) -> Tokenizer {
    let (base, json) = Tokenizer::load_with_json(Path::new(base)).unwrap();
    let scheme = Scheme::fixed(Grammar::fixed(Range::new(15).unwrap(), Precision::FOUR), starts.to_vec());
    let vocabulary = base.vocabulary();
    let new: Vec<String> =
        scheme.strings().into_iter().filter(|piece| !vocabulary.contains_key(piece)).collect();
    let json = serde_json::from_slice(&json).unwrap();
    let json = extend(&json, &base.name, &scheme, &new).unwrap().json.to_string();
    let name = format!("{} {starts:?}", base.name);
    Tokenizer::from_bytes(&name, hash_bytes(&name, json.as_bytes()), json.as_bytes()).unwrap()
}

/// `<-1.` `23` `45` `,7.` `89` `01` `,-0.` `12` `34>`
pub(crate) const FUSED: [usize; 9] = [0, 4, 6, 8, 12, 14, 16, 20, 22];
/// The same with brackets apart.
pub(crate) const SEPARATE: [usize; 11] = [0, 1, 4, 6, 8, 12, 14, 16, 20, 22, 24];
/// `<-1` `.2` `34` `5,-7` `.8` `90` `1,-0` `.1` `234` `>`
const ODD: [usize; 10] = [0, 3, 5, 7, 11, 13, 15, 19, 21, 24];

pub(crate) fn tokenizers() -> Vec<Tokenizer> {
    let mut list = Tokenizer::embedded().unwrap();
    list.extend([
        extended("qwen-like", &FUSED),
        extended("qwen-like", &SEPARATE),
        extended("qwen-like", &ODD),
        extended("llama-like", &FUSED),
        extended("llama-like", &SEPARATE),
    ]);
    // Two ways to cut `111` score alike in it: refused.
    list.extend(FIXTURES.into_iter().filter(|name| *name != "unigram-like").map(fixture_tokenizer));
    list
}

/// The real ones.
pub(crate) fn shared_tokenizers() -> Vec<Tokenizer> {
    // The others are these with a few tokens more or less.
    let few = ["qwen3-custom", "llama-3.2-chem", "cl100k", "mistral-v1"];
    let names = if whole() { &SHARED_TOKENIZERS[..] } else { &few };
    names.iter().map(|name| Tokenizer::load(&shared().join("tokenizers").join(name)).unwrap()).collect()
}

/// Numbers of every magnitude and length.
fn number(precision: Precision, random: &mut ChaCha8Rng) -> Fixed {
    let units = precision.units_per_angstrom();
    let limit = [units, 10 * units, 15 * units + units / 20, 100 * units][random.random_range(0..4)] - 1;
    let step = [1, 1, 10, 100, 1_000, 10_000][random.random_range(0..6)];
    random.random_range(-limit..=limit) / step * step
}

/// The tokens of an answer by the encoder of `tokenizers` itself, of prompt and answer as one text: those that end behind
/// the prompt. The others are the prompt's.
fn encoded_behind(tokenizer: &Tokenizer, prompt: &str, answer: &str) -> Vec<u32> {
    let whole = tokenizer.inner().encode(format!("{prompt}{answer}"), false).unwrap();
    let own = whole.get_offsets().iter().position(|(_, end)| *end > prompt.len()).unwrap();
    let (before, ids) = whole.get_ids().split_at(own);
    let prompted = tokenizer.prompt_ids(prompt).unwrap();
    assert!(prompted.ends_with(before), "{}: {prompt}{answer}", tokenizer.name);
    assert!(prompted.len() <= before.len() + 1, "more than a beginning of text before the prompt");
    ids.to_vec()
}

fn encoded(tokenizer: &Tokenizer, answer: &str) -> Vec<u32> {
    encoded_behind(tokenizer, "[SMILES]CC=O[/SMILES]", answer)
}

/// The text of an answer's tokens, without the end of the prompt that the first may hold, and without the space that a
/// tokenizer puts behind a tag.
fn decoded(tokenizer: &Tokenizer, ids: &[u32], separator: &str) -> String {
    let text = tokenizer.inner().decode(ids, false).unwrap();
    let text = match separator {
        " " => text.trim_start().replace("] ", "]"),
        _ => text.replace(' ', ""),
    };
    assert!("[/SMILES]".ends_with(text.split("[CONFORMER]").next().unwrap()), "{}: {text}", tokenizer.name);
    text[text.find("[CONFORMER]").unwrap()..].to_owned()
}

/// How many of `ids` are legal one after another; more than all of them if the text is over behind them.
fn accepted(constraint: &dyn Constraint, ids: &[u32]) -> usize {
    let mut state = constraint.start();
    for (at, &id) in ids.iter().enumerate() {
        if constraint.is_over(&state, id) || !constraint.mask(&state).allows(id) {
            return at;
        }
        constraint.advance(&mut state, id);
    }
    ids.len() + usize::from(constraint.mask(&state) == Mask::Forced(EOS))
}

/// The grammar again, character by character: with four decimals fixed `-?(0|[1-9]\d?)\.\d{4}`, stripped
/// `-?(0|[1-9]\d?)(\.\d{0,3}[1-9])?`.
fn is_number(text: &str, encoding: Encoding) -> bool {
    let text = text.strip_prefix('-').unwrap_or(text);
    let (integer, decimals) = text.split_once('.').unwrap_or((text, ""));
    let digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
    let integer_holds =
        digits(integer) && (integer.len() == 1 || (integer.len() == 2 && !integer.starts_with('0')));
    let decimals_hold = match encoding.zeros() {
        Some(TrailingZeros::Kept) => decimals.len() == encoding.decimals(),
        Some(TrailingZeros::Removed) if text.contains('.') => {
            (1..=encoding.decimals()).contains(&decimals.len()) && !decimals.ends_with('0')
        }
        _ => true,
    };
    integer_holds && digits(decimals) && decimals_hold
}

fn is_legal(text: &str, skeleton: &str, encoding: Encoding) -> bool {
    let mut rest = text.strip_prefix("[CONFORMER]").unwrap().strip_suffix("[/CONFORMER]").unwrap();
    let mut emptied = String::new();
    while let Some((before, after)) = rest.split_once('<') {
        let (inside, behind) = after.split_once('>').unwrap();
        let numbers: Vec<&str> = inside.split(encoding.separator()).collect();
        if numbers.len() != 3 || !numbers.iter().all(|number| is_number(number, encoding)) {
            return false;
        }
        emptied.push_str(before);
        emptied.push_str("<>");
        rest = behind;
    }
    emptied + rest == skeleton
}

/// A random legal answer.
fn walk(constraint: &dyn Constraint, random: &mut ChaCha8Rng) -> Vec<u32> {
    let mut state = constraint.start();
    let mut ids = Vec::new();
    loop {
        let id = match constraint.mask(&state) {
            Mask::Forced(id) => id,
            Mask::Only(list) => list[random.random_range(0..list.len())],
            other => panic!("{other:?}"),
        };
        if constraint.is_over(&state, id) {
            assert_eq!(id, EOS);
            return ids;
        }
        ids.push(id);
        constraint.advance(&mut state, id);
    }
}

/// A processor, or why there is none.
type Made = Result<Arc<LogitProcessor>, String>;

/// The automaton of a tokenizer. It is built once for all tests, because it is proved when it is built, which takes a second.
/// Not for work inside rayon's pool: building needs the pool, and a thread of it that waits here may be the one that is missing.
pub(crate) fn automaton(tokenizer: &Tokenizer, encoding: Encoding, eos: u32) -> Made {
    type Key = (String, String, u32);
    static BUILT: LazyLock<Mutex<HashMap<Key, Arc<OnceLock<Made>>>>> = LazyLock::new(Mutex::default);
    // Tests may give one file two names, and messages name it.
    let file = format!("{} {}", tokenizer.name, tokenizer.source.sha256);
    let one = BUILT.lock().unwrap().entry((file, encoding.to_string(), eos)).or_default().clone();
    let build = || LogitProcessor::new(ProcessorKind::Automaton, tokenizer.clone(), encoding, None, eos);
    one.get_or_init(|| build().map(Arc::new).map_err(|error| error.to_string())).clone()
}

/// The constraint of a skeleton, unless a part of it can be cut in two ways of the same likelihood, as Unigram has them.
fn constraint_of(processor: &LogitProcessor, skeleton: &str) -> Option<Arc<dyn Constraint>> {
    match processor.constraint(skeleton) {
        Ok(constraint) => Some(constraint),
        Err(error) => {
            assert!(error.to_string().contains("are equally likely"), "{error}");
            None
        }
    }
}

/// Both ways between automaton and encoder: a random answer of a skeleton in the encoder's tokens, and a random walk. How
/// many skeletons were refused.
pub(crate) fn check(tokenizer: &Tokenizer, encoding: Encoding, rounds: u64) -> u64 {
    let processor = automaton(tokenizer, encoding, EOS).unwrap();
    let refused = (0..rounds).into_par_iter().filter(|&seed| {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let skeleton = &SKELETONS[random.random_range(0..SKELETONS.len())];
        let Some(constraint) = constraint_of(&processor, skeleton) else { return true };
        let prompt = format!("[SMILES]{}[/SMILES]", smiles(skeleton));
        let blocks = skeleton.matches("<>").count();
        let coordinates: Vec<[Fixed; 3]> =
            (0..blocks).map(|_| std::array::from_fn(|_| number(encoding.precision(), &mut random))).collect();
        let text = tagged(&write(skeleton, &coordinates, encoding));
        let ids = encoded_behind(tokenizer, &prompt, &text);
        assert_eq!(accepted(&*constraint, &ids), ids.len() + 1, "{}: {text}", tokenizer.name);

        let walked = walk(&*constraint, &mut random);
        let text = decoded(tokenizer, &walked, encoding.separator());
        assert!(is_legal(&text, skeleton, encoding), "{}: {text}", tokenizer.name);
        assert_eq!(encoded_behind(tokenizer, &prompt, &text), walked, "{}: {text}", tokenizer.name);
        false
    });
    refused.count() as u64
}

/// A text that the closing tag ends: its tokens are those of the encoder up to the tag, and behind them there is the tag alone.
#[test]
fn the_closing_tag_may_be_what_ends_a_text() {
    let mut checked = 0;
    for tokenizer in tokenizers() {
        let Some(eos) = tokenizer.vocabulary_id("[/CONFORMER]") else { continue };
        for encoding in Encoding::ALL {
            let Ok(processor) = automaton(&tokenizer, encoding, eos) else { continue };
            for (seed, skeleton) in (0..).zip(SKELETONS.iter().step_by(SKELETONS.len() / 6)) {
                let Some(constraint) = constraint_of(&processor, skeleton) else { continue };
                let mut random = ChaCha8Rng::seed_from_u64(seed);
                let prompt = format!("[SMILES]{}[/SMILES]", smiles(skeleton));
                let blocks = skeleton.matches("<>").count();
                let coordinates: Vec<[Fixed; 3]> = (0..blocks)
                    .map(|_| std::array::from_fn(|_| number(encoding.precision(), &mut random)))
                    .collect();
                let text = tagged(&write(skeleton, &coordinates, encoding));
                let ids = encoded_behind(&tokenizer, &prompt, &text);
                let mut state = constraint.start();
                for id in &ids[..ids.len() - 1] {
                    assert!(constraint.mask(&state).allows(*id), "{}: {text}", tokenizer.name);
                    assert!(!constraint.is_over(&state, *id), "{}: {text}", tokenizer.name);
                    constraint.advance(&mut state, *id);
                }
                assert_eq!((constraint.mask(&state), ids.last()), (Mask::Forced(eos), Some(&eos)));
                assert!(constraint.is_over(&state, eos), "{}: {text}", tokenizer.name);
                checked += 1;
            }
        }
    }
    assert!(checked >= 60, "{checked}");
}

/// Texts of real conformers are followed. How many, and how many skeletons were refused.
fn check_texts(tokenizer: &Tokenizer, encoding: Encoding, texts: &[String]) -> (usize, usize) {
    let processor = automaton(tokenizer, encoding, EOS).unwrap();
    let refused = texts.par_iter().filter(|text| {
        let skeleton = drift::text::parse(text, Reading::default()).unwrap().skeleton;
        let Some(constraint) = constraint_of(&processor, &skeleton) else { return true };
        let prompt = format!("[SMILES]{}[/SMILES]", smiles(&skeleton));
        let ids = encoded_behind(tokenizer, &prompt, &tagged(text));
        assert_eq!(accepted(&*constraint, &ids), ids.len() + 1, "{}: {text}", tokenizer.name);
        false
    });
    (texts.len(), refused.count())
}

#[test]
fn true_texts_are_followed_and_what_is_followed_is_canonical() {
    check_both_ways(tokenizers());
}

#[test]
#[cfg_attr(not(has_shared), ignore = "needs ../shared or DRIFT_SHARED")]
fn texts_of_the_shared_tokenizers_are_followed_and_canonical() {
    check_both_ways(shared_tokenizers());
}

fn check_both_ways(tokenizers: Vec<Tokenizer>) {
    let shared = if whole() { more() } else { None };
    for (at, tokenizer) in
        tokenizers.into_iter().filter(|tokenizer| is_asked_for(&tokenizer.name)).enumerate()
    {
        let encodings = Encoding::ALL.into_iter().zip(["embedded_smiles", "embedded_smiles_stripped"]);
        // Usually each tokenizer with one of them in turn: an automaton is proved when it is made, which takes a second.
        for (encoding, field) in encodings.skip(sized(0, at % 2)).take(sized(2, 1)) {
            let rounds = if whole() { 10_000 } else { sized(40, 12) };
            let refused = check(&tokenizer, encoding, rounds);
            let texts = shared.as_ref().map(|shared| shared_texts(shared, field)).unwrap_or_default();
            let (followed, refused_texts) = check_texts(&tokenizer, encoding, &texts);
            eprintln!(
                "{}, {}: {rounds} random texts both ways ({refused} refused), {followed} real ones ({refused_texts} refused)",
                tokenizer.name,
                encoding.name()
            );
            let is_unigram = tokenizer.name.starts_with("unigram");
            assert!(is_unigram || refused == 0 && refused_texts == 0, "{}", tokenizer.name);
        }
    }
}

#[test]
fn other_decimals_and_separators_are_followed_too() {
    let mut list = Tokenizer::embedded().unwrap();
    list.push(fixture_tokenizer("gpt2-like"));
    for tokenizer in list {
        for &decimals in sized(&[1, 2, 3, 5][..], &[2]) {
            for encoding in Encoding::both(Precision::new(decimals).unwrap()) {
                assert_eq!(
                    check(&tokenizer, encoding, sized(20, 7)),
                    0,
                    "{}, {}",
                    tokenizer.name,
                    encoding.name()
                );
            }
        }
        // GPT-2 merges a space with the digits behind it: no proof, and refused.
        let spaced = !tokenizer.name.starts_with("gpt2");
        for encoding in Encoding::both(Precision::new(3).unwrap()).into_iter().filter(|_| spaced) {
            let encoding = encoding.with_spaces(true);
            assert_eq!(
                check(&tokenizer, encoding, sized(20, 7)),
                0,
                "{}, {}",
                tokenizer.name,
                encoding.name()
            );
        }
    }
}

#[test]
fn the_grammar_has_few_states_and_few_legal_tokens() {
    let size = |name: &str, encoding| {
        let tokenizer = Tokenizer::load(Path::new(name)).unwrap();
        let processor =
            LogitProcessor::new(ProcessorKind::Automaton, tokenizer.clone(), encoding, None, EOS).unwrap();
        let automaton = processor.automaton().unwrap().automaton();
        (automaton.size(), automaton.alphabet())
    };
    // Per number: start, second digit or point, point, four decimals, comma; instead of the last comma an end. Before a
    // first sign: one more.
    assert_eq!(size("qwen-like", Encoding::FIXED), (25, 14));
    assert_eq!(size("qwen-like", Encoding::STRIPPED), (34, 14));
    // Digits in threes: start, point, three decimals, the fourth, comma. 10 + 90 + 1,000 runs, `.`, `,`, `,-`, `-`.
    assert_eq!(size("llama-like", Encoding::FIXED), (16, 1_104));
    assert_eq!(size("llama-like", Encoding::STRIPPED), (19, 1_113));
    // Digits merge by content: a state for what is left of a run.
    let fixture_size =
        |name: &str, encoding| size(fixture("tokenizers").join(name).to_str().unwrap(), encoding);
    assert_eq!(fixture_size("gpt2-like", Encoding::FIXED), (604, 1_207));
    assert_eq!(fixture_size("gpt2-like", Encoding::STRIPPED), (598, 1_244));
    assert_eq!(fixture_size("o200k-like", Encoding::FIXED), (16, 1_104));
    assert_eq!(fixture_size("o200k-like", Encoding::STRIPPED), (19, 1_113));
    for name in
        FIXTURES.into_iter().filter(|name| !["gpt2-like", "o200k-like", "unigram-like"].contains(name))
    {
        assert_eq!(fixture_size(name, Encoding::FIXED), (25, 14), "{name}");
        assert_eq!(fixture_size(name, Encoding::STRIPPED), (34, 14), "{name}");
    }
}

#[test]
fn other_spellings_of_legal_texts_are_not_legal() {
    let tokenizer = Tokenizer::load(Path::new("qwen-like")).unwrap();
    let processor =
        LogitProcessor::new(ProcessorKind::Automaton, tokenizer.clone(), Encoding::FIXED, None, EOS).unwrap();
    let constraint = processor.constraint("[C]<>[O]<>").unwrap();
    let vocabulary = tokenizer.vocabulary();
    let canonical =
        encoded(&tokenizer, "[CONFORMER][C]<-1.2345,0.0000,-9.8765>[O]<1.0000,2.0000,3.0000>[/CONFORMER]");
    assert_eq!(accepted(&*constraint, &canonical), canonical.len() + 1);
    for (merged, parts) in [(">[", [">", "["]), ("]<", ["]", "<"]), (",-", [",", "-"])] {
        let at = canonical.iter().position(|id| *id == vocabulary[merged]).unwrap();
        let mut split = canonical.clone();
        split.splice(at..=at, parts.map(|part| vocabulary[part]));
        // A comma alone is legal, but then no sign is.
        assert_eq!(accepted(&*constraint, &split), at + usize::from(merged == ",-"), "{merged}");
    }
    for text in [
        "[CONFORMER][C]<1.2345,0.0000,9.8765>[N]<1.0000,2.0000,3.0000>[/CONFORMER]",
        "[CONFORMER][C]<1.234,0.0000,9.8765>[O]<1.0000,2.0000,3.0000>[/CONFORMER]",
        "[CONFORMER][C]<1.23456,0.0000,9.8765>[O]<1.0000,2.0000,3.0000>[/CONFORMER]",
        "[CONFORMER][C]<01.2345,0.0000,9.8765>[O]<1.0000,2.0000,3.0000>[/CONFORMER]",
        "[CONFORMER][C]<1.2345,0.0000>[O]<1.0000,2.0000,3.0000>[/CONFORMER]",
        "[CONFORMER][C]<1.2345,0.0000,100.0000>[O]<1.0000,2.0000,3.0000>[/CONFORMER]",
        "[CONFORMER][C]<1.2345,0.0000,9.8765>[O]<1.0000,2.0000,3.0000>",
    ] {
        let ids = encoded(&tokenizer, text);
        assert!(accepted(&*constraint, &ids) <= ids.len(), "{text}");
    }
}

#[test]
fn forced_runs_are_what_is_forced() {
    let tokenizer = Tokenizer::load(Path::new("qwen-like")).unwrap();
    let processor =
        LogitProcessor::new(ProcessorKind::Automaton, tokenizer.clone(), Encoding::FIXED, None, EOS).unwrap();
    let constraint = processor.constraint("[C]<>").unwrap();
    let mut run = Vec::new();
    constraint.forced_run(&constraint.start(), &mut run);
    // Up to the bracket, whose token depends on the sign of x.
    let whole = encoded(&tokenizer, "[CONFORMER][C]<1.0000,2.0000,3.0000>[/CONFORMER]");
    assert!(!run.is_empty() && whole.starts_with(&run));
    let mut state = constraint.start();
    whole[..whole.len() - 1].iter().for_each(|id| constraint.advance(&mut state, *id));
    run.clear();
    constraint.forced_run(&state, &mut run);
    assert_eq!(run, [whole[whole.len() - 1], EOS]);
}

#[test]
fn tokenizers_without_a_proof_are_refused_by_name() {
    let tokenizer = trained(&embedded_texts(200), false);
    let error = LogitProcessor::new(ProcessorKind::Automaton, tokenizer.clone(), Encoding::FIXED, None, EOS)
        .err()
        .unwrap();
    let message = error.to_string();
    assert!(message.starts_with("trained: the automaton cannot be proved"), "{message}");
    assert!(message.contains("joins a digit with another character"), "{message}");
    let tokenizer = fixture_tokenizer("unigram-like");
    let error = LogitProcessor::new(ProcessorKind::Automaton, tokenizer.clone(), Encoding::FIXED, None, EOS)
        .err()
        .unwrap();
    let expected = "unigram-like: the automaton cannot be proved for this tokenizer: two ways to cut `111` are equally likely";
    assert!(error.to_string().starts_with(expected), "{error}");
}

#[test]
fn a_prompt_that_shares_a_token_with_its_answer_leaves_it_to_the_answer() {
    let tokenizer = fixture_tokenizer("llama-2-like-untagged");
    let prompt = "[SMILES]CC=O[/SMILES]";
    let answer = "[CONFORMER][C]<-1.5,0,2>[/CONFORMER]";
    let whole = tokenizer.ids(&format!("{prompt}{answer}")).unwrap();
    let prompted = tokenizer.prompt_ids(prompt).unwrap();
    let ids = tokenizer.answer_ids(answer).unwrap();
    let bos = tokenizer.vocabulary()["<s>"];
    assert_eq!([&[bos], &whole[..]].concat(), [&prompted[..], &ids[..]].concat());
    assert_eq!(tokenizer.answer_tokens(answer).unwrap()[0].text, "][");
    // Alone, either has other tokens.
    assert_ne!(tokenizer.ids(answer).unwrap(), ids);
    assert_eq!(tokenizer.decode(&ids).unwrap(), format!("]{answer}"));
    assert_eq!(tokenizer.answer_text(&ids).unwrap(), answer);
}

#[test]
fn molecules_that_can_be_cut_in_two_equally_likely_ways_are_refused() {
    let tokenizer = fixture_tokenizer("unigram-digits-like");
    let processor =
        LogitProcessor::new(ProcessorKind::Automaton, tokenizer.clone(), Encoding::FIXED, None, EOS).unwrap();
    assert!(processor.constraint("[C]<>[C@@H]<>").is_ok());
    // `@@` and `@`, or `@` and `@@`.
    let error = processor.constraint("[C]<>[C@@@H]<>").err().unwrap().to_string();
    assert!(error.contains("two ways to cut `>[C@@@H]<` are equally likely"), "{error}");
}

#[test]
fn skeletons_that_the_model_never_saw_are_refused() {
    let tokenizer = Tokenizer::load(Path::new("qwen-like")).unwrap();
    let processor =
        LogitProcessor::new(ProcessorKind::Automaton, tokenizer.clone(), Encoding::FIXED, None, EOS).unwrap();
    let corpus =
        SKELETONS.iter().map(|s| Spelling::from_skeleton(s)).fold(Spelling::default(), Spelling::join);
    let processor = processor.spelled_as(corpus);
    assert!(processor.constraint("[C]<>[O]<>").is_ok());
    let error = processor.constraint(&with_hydrogens("[C]<>[O]<>").unwrap()).err().unwrap().to_string();
    assert!(error.contains("the model never saw them"), "{error}");
    for skeleton in ["", "CO", "C<>", "[C]<1,2,3>", "<>"] {
        let error = processor.constraint(skeleton).err().unwrap().to_string();
        assert!(error.contains("is not a skeleton") && !error.contains('\n'), "{error}");
    }
}
