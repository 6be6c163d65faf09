//! What an extended tokenizer promises, run before it is written.

use std::collections::{HashMap, HashSet};

use rayon::prelude::*;
use serde::Serialize;
use serde_json::Value;

use super::around::around;
use super::blocks::{block, numbers, shape, shapes};
use super::grammar::Decimals;
use super::layout::Alphabet;
use super::plain::PlainText;
use super::scheme::Scheme;
use super::texts::{ALL_CONTEXTS, CONTEXTS, HEADS};
use crate::error::{Error, Result};
use crate::job::{Job, Unit};
use crate::tokenizer::Tokenizer;

/// What was run, all of it without a difference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Guarantees {
    /// Tokens of the base that have the same id and text.
    pub unchanged_tokens: u64,
    /// New tokens, each of which some block was encoded to.
    pub reached_tokens: u64,
    /// Spellings of one number, every one run in all three positions of a block.
    pub numbers: u64,
    /// Contexts that every one of them was run in: each has an end of one atom and a beginning of what follows it.
    pub contexts: u64,
    /// Blocks encoded, each to exactly the pieces of the scheme.
    pub blocks: u64,
    /// Shapes of blocks among them: signs and one or two integer digits, three times.
    pub shapes: u64,
    /// Bytes of blocks decoded to themselves.
    pub decoded_bytes: u64,
    /// Blocks that are not in the range or not of the dialect, encoded as the base does.
    pub fallbacks: u64,
    /// Texts without blocks, encoded and decoded as the base does, and their bytes.
    pub plain_texts: u64,
    /// Bytes of these texts.
    pub plain_bytes: u64,
    /// Whether equality on all texts without blocks is proved, or only tried.
    pub plain_text: PlainText,
}

/// What each piece of a scheme is encoded to.
pub(super) type Pieces = HashMap<String, Vec<u32>>;

/// Blocks of one text.
const CHUNK: u64 = 512;

/// Runs everything that an extended tokenizer promises; every number in the first `contexts` contexts.
///
/// # Errors
/// The first promise that does not hold, or if the job was cancelled.
pub fn check(
    bases: (&Tokenizer, &Value),
    extended: &Tokenizer,
    scheme: &Scheme,
    new_tokens: &[(u32, String)],
    contexts: usize,
    job: &Job,
) -> Result<Guarantees> {
    let vocabulary = extended.vocabulary();
    let ids = |text: &String| vocabulary.get(text).map(|id| vec![*id]).unwrap_or_default();
    let pieces = scheme.strings().into_iter().map(|text| (ids(&text), text)).map(|(ids, text)| (text, ids));
    check_pieces(bases, extended, (scheme, &pieces.collect()), new_tokens, contexts, job)
}

/// As [`check`], for pieces that need not be one token: `pieces` has the ids that each must be encoded to.
///
/// # Errors
/// As [`check`].
pub(super) fn check_pieces(
    (base, base_json): (&Tokenizer, &Value),
    extended: &Tokenizer,
    (scheme, pieces): (&Scheme, &Pieces),
    new_tokens: &[(u32, String)],
    contexts: usize,
    job: &Job,
) -> Result<Guarantees> {
    let contexts = &CONTEXTS[..contexts.clamp(1, ALL_CONTEXTS)];
    let alphabet = Alphabet::of(base_json);
    let check = Check { base, extended, scheme, contexts, alphabet, place: &base.name };
    let unchanged_tokens = check.vocabulary(new_tokens)?;
    check.normalizer()?;
    let plain_text = match alphabet {
        Alphabet::Bytes => check.plain_pieces(base_json, new_tokens)?,
        Alphabet::Text => check.plain_sections(base_json)?,
    };
    let run = check.numbers(pieces, new_tokens, job)?;
    let fallbacks = check.fallbacks(new_tokens)?;
    let (plain_texts, plain_bytes) = check.plain_texts(job)?;
    Ok(Guarantees {
        unchanged_tokens,
        reached_tokens: new_tokens.len() as u64,
        numbers: scheme.grammar.numbers(),
        contexts: contexts.len() as u64,
        blocks: run.blocks,
        shapes: run.shapes.len() as u64,
        decoded_bytes: run.decoded_bytes,
        fallbacks,
        plain_texts,
        plain_bytes,
        plain_text,
    })
}

pub(super) struct Check<'t> {
    pub(super) base: &'t Tokenizer,
    pub(super) extended: &'t Tokenizer,
    pub(super) scheme: &'t Scheme,
    pub(super) contexts: &'static [&'static str],
    pub(super) alphabet: Alphabet,
    pub(super) place: &'t str,
}

/// What a part of the run over all numbers saw.
#[derive(Default)]
pub(super) struct Run {
    pub(super) blocks: u64,
    decoded_bytes: u64,
    shapes: HashSet<u32>,
    reached: HashSet<u32>,
}

impl Check<'_> {
    pub(super) fn broken(&self, promise: &str) -> Error {
        let problem = format!("this base cannot be extended: {promise}");
        Error::input(self.place, problem, "nothing was written")
    }

    /// Old tokens keep their ids, new ones have theirs, and there are no others.
    fn vocabulary(&self, new_tokens: &[(u32, String)]) -> Result<u64> {
        let (old, new) = (self.base.vocabulary(), self.extended.vocabulary());
        if let Some((text, id)) = old.iter().find(|(text, id)| new.get(*text) != Some(id)) {
            return Err(self.broken(&format!("token {id}, {text:?}, would change")));
        }
        if let Some((id, text)) = new_tokens.iter().find(|(id, text)| new.get(text) != Some(id)) {
            return Err(self.broken(&format!("new token {id}, {text:?}, is not in its place")));
        }
        let ids: HashSet<u32> = new.values().copied().collect();
        if new.len() != old.len() + new_tokens.len() || ids.len() != new.len() {
            return Err(self.broken("two tokens share an id"));
        }
        Ok(old.len() as u64)
    }

    /// Some block of the range.
    pub(super) fn some_block(&self) -> String {
        block(self.scheme.grammar, &numbers(self.scheme.grammar, 0)).0
    }

    /// The normalizer leaves blocks alone, whatever stands around them.
    fn normalizer(&self) -> Result<()> {
        let blocks = "<-0.1234,5.6789,-1.0000>";
        for context in CONTEXTS {
            let text = format!("[C]{blocks}{context}{blocks}");
            let normalized = self.base.normalized(&text)?;
            let marked = text.replace(' ', "▁");
            let marks = self.alphabet == Alphabet::Text
                && (normalized == marked || normalized.strip_prefix('▁') == Some(&*marked));
            if normalized != text && !marks {
                return Err(self.broken("its normalizer rewrites blocks or the text around them"));
            }
        }
        Ok(())
    }

    /// Every number in every position and context gives exactly the tokens of the scheme's pieces.
    pub(super) fn numbers(&self, pieces: &Pieces, new_tokens: &[(u32, String)], job: &Job) -> Result<Run> {
        let grammar = self.scheme.grammar;
        // Numbers of few decimals are rare: in the stripped dialect every shape of block is run beside.
        let shapes = shapes(grammar).pow(3);
        let blocks = grammar.numbers() + if grammar.decimals == Decimals::Four { 0 } else { shapes };
        let chunks = blocks.div_ceil(CHUNK);
        let tasks: Vec<(usize, u64)> = (0..self.contexts.len())
            .flat_map(|context| (0..chunks).map(move |chunk| (context, chunk)))
            .collect();
        let glued: Vec<Vec<u32>> =
            self.contexts.iter().map(|glue| self.between(glue)).collect::<Result<_>>()?;
        let heads: Vec<Vec<u32>> = HEADS.iter().map(|head| self.before(head)).collect::<Result<_>>()?;
        job.observer().begin("checking", Some(tasks.len() as u64), Unit::Items);
        let outcome = tasks
            .par_iter()
            .map(|&(context, chunk)| {
                job.check()?;
                let head = chunk as usize % HEADS.len();
                let mut text = HEADS[head].to_owned();
                let mut expected = heads[head].clone();
                let mut run = Run::default();
                for index in chunk * CHUNK..((chunk + 1) * CHUNK).min(blocks) {
                    if run.blocks > 0 {
                        text.push_str(self.contexts[context]);
                        expected.extend(&glued[context]);
                    }
                    let numbers = numbers(grammar, index);
                    let (block, starts) = block(grammar, &numbers);
                    let cuts = self.scheme.starts(numbers.map(|number| number.decimals));
                    let cuts = cuts.iter().map(|slot| starts[*slot]);
                    let ends = cuts.clone().skip(1).chain([block.len()]);
                    for (start, end) in cuts.zip(ends) {
                        let ids = pieces.get(&block[start..end]).filter(|ids| !ids.is_empty());
                        expected.extend(ids.ok_or_else(|| self.broken("a piece is missing"))?);
                    }
                    text.push_str(&block);
                    run.shapes.insert(shape(&numbers));
                    run.blocks += 1;
                }
                if self.extended.ids(&text)? != expected {
                    return Err(self.broken(&format!(
                        "blocks between {:?} do not take the pieces of the scheme",
                        self.contexts[context]
                    )));
                }
                if context == 0 {
                    if !self.decodes(&expected, &text)? {
                        return Err(self.broken("blocks are not decoded to themselves"));
                    }
                    run.decoded_bytes = text.len() as u64;
                    run.reached = expected.into_iter().collect();
                }
                job.observer().advance(1);
                Ok(run)
            })
            .try_reduce(Run::default, |mut sum, part| {
                sum.blocks += part.blocks;
                sum.decoded_bytes += part.decoded_bytes;
                sum.shapes.extend(part.shapes);
                sum.reached.extend(part.reached);
                Ok(sum)
            });
        job.observer().end();
        let run = outcome?;
        if run.shapes.len() as u64 != shapes {
            return Err(self.broken("not every shape of block was run"));
        }
        match new_tokens.iter().find(|(id, _)| !run.reached.contains(id)) {
            Some((id, text)) => Err(self.broken(&format!("no block reaches new token {id}, {text:?}"))),
            None => Ok(run),
        }
    }

    /// The ids of what stands before the first block of a text.
    fn before(&self, head: &str) -> Result<Vec<u32>> {
        match self.alphabet {
            Alphabet::Bytes => self.kept(head),
            Alphabet::Text => {
                let block = self.some_block();
                Ok(around(self.base, &format!("{head}{block}"), &block)?.swap_remove(0))
            }
        }
    }

    /// The ids of what stands between two blocks.
    fn between(&self, glue: &str) -> Result<Vec<u32>> {
        let kept = self.kept(glue)?;
        match self.alphabet {
            Alphabet::Bytes => Ok(kept),
            Alphabet::Text => {
                let block = self.some_block();
                Ok(around(self.base, &format!("[C]{block}{glue}{block}"), &block)?.swap_remove(1))
            }
        }
    }

    /// What is not a block of the range is encoded as the base does; the number of such texts.
    fn fallbacks(&self, new_tokens: &[(u32, String)]) -> Result<u64> {
        let grammar = self.scheme.grammar;
        let outside = grammar.range.angstrom();
        let fixed = grammar.decimals == Decimals::Four;
        let mut wrong: Vec<String> =
            ["123.4567", "-1000.1234", "1.50", "0.12345", "01.1234", "+1.1234", " 1.1234"]
                .into_iter()
                .chain(["--1.1234", "1,1234", "١.1234", "1.", "-", ""])
                .map(String::from)
                .collect();
        let ends = if fixed { ["0000", "0000", "9999"] } else { ["0001", "1234", "9999"] };
        wrong.extend([
            format!("{outside}.{}", ends[0]),
            format!("-{outside}.{}", ends[1]),
            format!("{}.{}", outside + 1, ends[2]),
        ]);
        if fixed {
            wrong.extend(["0.000".into(), "-2".into()]);
        } else {
            let few = ["2", "0.5", "0.25", "0.125"].into_iter().take(grammar.fewest_decimals());
            wrong.extend(few.map(String::from).chain(["0.0000", "-1.0500", "0.0"].map(String::from)));
        }
        let right = if fixed { ["0.0000", "-0.2500", "3.1416"] } else { ["0.1234", "-0.0005", "3.1416"] };
        let mut texts: Vec<String> = Vec::new();
        for wrong in &wrong {
            for context in CONTEXTS {
                for position in 0..3 {
                    let mut numbers = right;
                    numbers[position] = wrong;
                    texts.push(format!("[C]<{}>{context}", numbers.join(",")));
                    texts.push(format!("<{}>", numbers.join(",")));
                }
            }
        }
        let [x, y, z] = right;
        for part in
            [format!("<{x},{y},{z}"), format!("{x},{y},{z}>"), format!("{x},{y},{z}"), format!("<{x},{y}>")]
        {
            texts.extend([part.clone(), format!("[C]{part}"), format!("{part}[C]")]);
        }
        for (_, text) in new_tokens {
            texts.extend([text.clone(), format!("[C]{text}"), format!("{text}[C]"), format!("1.{text}")]);
        }
        texts.par_iter().try_for_each(|text| self.same_ids(text).map(|_| ()))?;
        for context in CONTEXTS {
            self.kept(&format!("[C]<-{outside}.2345,{outside}.6789,0.1000>{context}"))?;
        }
        Ok(texts.len() as u64)
    }

    /// The ids of a text, which must be the base's and lose nothing: a base without a token for a character drops it.
    fn kept(&self, text: &str) -> Result<Vec<u32>> {
        let ids = self.same_ids(text)?;
        if self.decodes(&ids, text)? {
            Ok(ids)
        } else {
            Err(self.broken(&format!("it loses a part of {text:?}")))
        }
    }

    /// Whether ids are decoded to their text. Bases that mark the beginnings of sections decode a space after each added
    /// token, before as after.
    fn decodes(&self, ids: &[u32], text: &str) -> Result<bool> {
        let decoded = self.extended.decode(ids)?;
        if decoded == text || self.alphabet == Alphabet::Bytes {
            return Ok(decoded == text);
        }
        let as_before = decoded == self.base.decode(&self.base.ids(text)?)?;
        Ok(as_before && decoded.replace(' ', "") == text.replace(' ', ""))
    }

    /// The ids of a text, which must be the base's.
    pub(super) fn same_ids(&self, text: &str) -> Result<Vec<u32>> {
        let ids = self.extended.ids(text)?;
        if ids == self.base.ids(text)? {
            return Ok(ids);
        }
        let text = crate::error::excerpt(text.as_bytes());
        Err(self.broken(&format!("text without a block, {text}, would take other tokens")))
    }
}
