//! Counting FREE tokens by tables learned from a tokenizer.
//!
//! # Why it is exact
//! 1. BPE and Unigram models only ever produce vocabulary tokens, each a part of the text. If none that a text can contain
//!    holds a digit beside what may stand beside it in a block (`<`, `>`, `-`, `.`, `,`), no token crosses the border
//!    between them, so a text falls apart there ([`super::cuts`]). Tokens with digits that no text can contain (`<h1>`) or that
//!    cross no such border (` 155` of GPT-2, `[control_135]` of Mistral) do not matter.
//! 2. A digit run of a block stands between two such borders, so its tokens depend on its digits alone: all runs of one to
//!    four digits (11,110; more where numbers have more decimals) are encoded once, and their cuts stored. So it is for runs that merge by content (GPT-2), by length
//!    (Llama 3), not at all (Qwen, SentencePiece), and for Unigram if no two ways to cut a run score alike.
//! 3. The other parts inside a block are `.`, `,` and `,-`: encoded once. The text before a block ends in `]<` or
//!    `]<-`; FREE in it is at most the `-`, and only if it does not merge with `<`. Where no vocabulary token holds
//!    the character before `]` together with `]`, that is a property of this character alone, else of the atom, if it
//!    holds two characters that no token joins; else the whole text is encoded.
//! 4. The text after a block starts with `>`: nothing in it is FREE, up to the next block.
//!
//! What is *not* proved from the vocabulary is that the pre-tokenizer, a regular expression, cuts a part in a text as it
//! cuts it alone; therefore [`super::Counter`] compares the tables with the reference on whole texts before use.

use std::collections::HashMap;
use std::sync::RwLock;

use super::block_tokens::{BlockTokens, MAX_BLOCK_TOKENS};
use super::boundaries::TokenBoundaries as Borders;
use super::load::Tokenizer;
use crate::encoding::{Encoding, Precision};
use crate::error::Result;

/// The longest digit run that tables can hold.
const MAX_RUN: usize = 6;

/// The longest digit run of tables for numbers of so many decimals: integer parts have up to four digits.
pub fn longest_run(precision: Precision) -> usize {
    precision.decimals().max(4)
}

/// Bit `i` set: a token ends after digit `i + 1` of the run.
type Cuts = u8;

/// See the module's documentation.
pub struct Tables {
    /// Cuts of every digit run, by length and value: `runs[length - 1][value]`.
    runs: Vec<Vec<Cuts>>,
    /// Cuts by length, where all runs of a length are cut alike.
    uniform: Option<[Cuts; MAX_RUN + 1]>,
    /// Whether `,-` is one token.
    comma_minus_is_one: bool,
    /// Whether the `-` after `]<` is a token of its own, by the character before `]`; `None`: ask by atom.
    minus_is_free: [Option<bool>; 128],
    /// The same by atom, filled as atoms come.
    by_atom: RwLock<HashMap<Box<[u8]>, bool>>,
    /// Where texts fall apart.
    borders: Borders,
}

impl Tables {
    /// Learns the tables of blocks with so many decimals, or says in a sentence why this tokenizer has none.
    ///
    /// # Errors
    /// If the tokenizer cannot encode digits at all.
    pub fn learn(tokenizer: &Tokenizer, precision: Precision) -> Result<std::result::Result<Tables, String>> {
        let longest = longest_run(precision);
        let borders = match separated(tokenizer, Encoding::FIXED.with_precision(precision)) {
            Ok(borders) => borders,
            Err(why) => return Ok(Err(why)),
        };
        let Some(runs) = learn_runs(tokenizer, longest)? else {
            return Ok(Err("digits are not separated from the characters beside them".into()));
        };
        let uniform = uniform_cuts(&runs);
        let comma = inner_ends(tokenizer, "0,0,0")?;
        let comma_minus = inner_ends(tokenizer, "0,-0,-0")?;
        if comma != [1, 2, 3, 4, 5] {
            return Ok(Err("a comma or a digit alone is not one token".into()));
        }
        let comma_minus_is_one = match comma_minus.as_slice() {
            // The ends of `0`, `,-`, `0`, `,-`, `0`.
            [1, 3, 4, 6, 7] => true,
            [1, 2, 3, 4, 5, 6, 7] => false,
            _ => return Ok(Err("`,-` is cut in an unknown way".into())),
        };
        if inner_ends(tokenizer, "0.0,0,0")? != [1, 2, 3, 4, 5, 6, 7] {
            return Ok(Err("a point alone is not one token".into()));
        }
        // Letters and digits end most atoms. Behind others (`+]`, `@]`) the whole atom decides, and is asked when it comes.
        let mut minus_is_free = [None; 128];
        for byte in (0..128u8).filter(u8::is_ascii_alphanumeric) {
            if !borders.joins(byte, b']') && borders.is_decided(tokenizer, "]<-", false) {
                minus_is_free[usize::from(byte)] = minus_after(tokenizer, &[b'[', byte, b']'])?;
            }
        }
        let by_atom = RwLock::new(HashMap::new());
        Ok(Ok(Tables { runs, uniform, comma_minus_is_one, minus_is_free, by_atom, borders }))
    }

    /// Counts the FREE tokens of every block of a text, appending to `out`; `None` if the text is not plain enriched
    /// text with numbers of no more digits before and after the point than the tables hold (`out` then holds the blocks so far).
    pub fn count(&self, tokenizer: &Tokenizer, text: &[u8], out: &mut Vec<u16>) -> Option<()> {
        self.scan(tokenizer, text, |count: Count| out.push(count.0))
    }

    /// The FREE tokens of every block of a text, with their ends.
    pub fn tokens(&self, tokenizer: &Tokenizer, text: &[u8], out: &mut Vec<BlockTokens>) -> Option<()> {
        self.scan(tokenizer, text, |ends: BlockTokens| out.push(ends))
    }

    fn scan<S: Sink>(&self, tokenizer: &Tokenizer, text: &[u8], mut each: impl FnMut(S)) -> Option<()> {
        if self.borders.is_watched(text) {
            return None;
        }
        let mut at = 0;
        while let Some(open) = memchr::memchr(b'<', &text[at..]) {
            let start = at + open + 1;
            let mut sink = S::default();
            // Each way is compiled with its own lookup; the one by length touches no table that grows with the values.
            let end = match &self.uniform {
                Some(cuts) => self.block(tokenizer, text, start, &mut sink, |len, _| cuts[len]),
                None => self.block(tokenizer, text, start, &mut sink, |len, value| self.runs[len - 1][value]),
            }?;
            each(sink);
            at = end + 1;
        }
        Some(())
    }

    /// Counts one block whose first byte is at `start`; returns the place of its `>`.
    #[inline(always)]
    fn block<S: Sink>(
        &self,
        tokenizer: &Tokenizer,
        text: &[u8],
        start: usize,
        sink: &mut S,
        cuts: impl Fn(usize, usize) -> Cuts,
    ) -> Option<usize> {
        let mut at = start;
        if *text.get(at)? == b'-' {
            at += 1;
            if self.minus_free_before(tokenizer, text, start)? {
                sink.one(at - start);
            }
        }
        for axis in 0..3 {
            at = run(text, at, start, sink, self.runs.len(), &cuts)?;
            let mut next = *text.get(at)?;
            if next == b'.' {
                at += 1;
                sink.one(at - start);
                at = run(text, at, start, sink, self.runs.len(), &cuts)?;
                next = *text.get(at)?;
            }
            if axis == 2 {
                return (next == b'>').then_some(at);
            }
            if next != b',' {
                return None;
            }
            at += 1;
            if *text.get(at)? == b'-' {
                if !self.comma_minus_is_one {
                    sink.one(at - start);
                }
                at += 1;
            }
            sink.one(at - start);
        }
        None
    }

    /// Whether the `-` at `start` is a token of its own.
    #[inline]
    fn minus_free_before(&self, tokenizer: &Tokenizer, text: &[u8], start: usize) -> Option<bool> {
        // `C]<` stands before the sign.
        let before = *text.get(start.checked_sub(3)?)?;
        if text[start - 2] != b']' {
            return None;
        }
        match self.minus_is_free.get(usize::from(before))? {
            Some(free) => Some(*free),
            None => self.minus_free_after_atom(tokenizer, &text[..start - 1]),
        }
    }

    /// The same by the whole atom, for endings like `+]` and `@]`; learned on first sight.
    #[cold]
    fn minus_free_after_atom(&self, tokenizer: &Tokenizer, before: &[u8]) -> Option<bool> {
        let atom = &before[memchr::memrchr(b'[', before)?..];
        // The lock is only poisoned if another thread panicked; then this one may as well fall back.
        if let Some(&free) = self.by_atom.read().ok()?.get(atom) {
            return Some(free);
        }
        // Where the atom falls apart, its end is separate from what stands before it.
        let cut = (1..atom.len()).rfind(|at| !self.borders.joins(atom[at - 1], atom[*at]))?;
        let tail = format!("{}<-", std::str::from_utf8(&atom[cut..]).ok()?);
        let free = if self.borders.is_decided(tokenizer, &tail, false) {
            minus_after(tokenizer, atom).ok()??
        } else {
            return None;
        };
        self.by_atom.write().ok()?.insert(atom.into(), free);
        Some(free)
    }
}

/// Reads one digit run at `at` and hands its token ends to the sink; returns the place after it.
#[inline(always)]
fn run<S: Sink>(
    text: &[u8],
    at: usize,
    start: usize,
    sink: &mut S,
    longest: usize,
    cuts: impl Fn(usize, usize) -> Cuts,
) -> Option<usize> {
    let mut value = 0usize;
    let mut end = at;
    // Bytes below `0` wrap around to large numbers, so that one comparison tells digits.
    while let Some(digit) = text.get(end).map(|b| b.wrapping_sub(b'0')).filter(|d| *d < 10) {
        value = value * 10 + usize::from(digit);
        end += 1;
        if end - at > longest {
            return None;
        }
    }
    if end == at {
        return None;
    }
    sink.many(at - start, cuts(end - at, value));
    Some(end)
}

/// Where token ends go: a count, or the list.
trait Sink: Default {
    /// A token ends at `end` (bytes after the block's `<`).
    fn one(&mut self, end: usize);
    /// Tokens end after digits of a run that begins at `offset`.
    fn many(&mut self, offset: usize, cuts: Cuts);
}

/// How many bits of a number are set; the baseline of x86-64 has no instruction for it.
const ONES_IN: [u8; 1 << MAX_RUN] = {
    let mut ones = [0; 1 << MAX_RUN];
    let mut number = 1;
    while number < ones.len() {
        ones[number] = ones[number / 2] + (number % 2) as u8;
        number += 1;
    }
    ones
};

#[derive(Default)]
struct Count(u16);

impl Sink for Count {
    #[inline(always)]
    fn one(&mut self, _: usize) {
        self.0 += 1;
    }
    #[inline(always)]
    fn many(&mut self, _: usize, cuts: Cuts) {
        // Cuts have at most `MAX_RUN` bits: the remainder changes none, and spares the check of the bounds.
        self.0 += u16::from(ONES_IN[usize::from(cuts) % ONES_IN.len()]);
    }
}

impl Sink for BlockTokens {
    #[inline(always)]
    fn one(&mut self, end: usize) {
        // A block of the tables has at most 3 · (1 + 4 + 1 + 6) + 2 characters, so at most that many tokens.
        debug_assert!(usize::from(self.free) < MAX_BLOCK_TOKENS);
        self.ends[usize::from(self.free)] = end as u8;
        self.free += 1;
    }
    #[inline(always)]
    fn many(&mut self, offset: usize, mut cuts: Cuts) {
        while cuts != 0 {
            self.one(offset + cuts.trailing_zeros() as usize + 1);
            cuts &= cuts - 1;
        }
    }
}

/// Where a text falls apart, if it does so around every run of digits in a slot, each tokenised by itself (the first two steps of the
/// proof above); if not, why.
///
/// # Errors
/// A sentence that names what is not separate.
pub fn separated(tokenizer: &Tokenizer, encoding: Encoding) -> std::result::Result<Borders, String> {
    let borders = Borders::learn(tokenizer, encoding)?;
    borders.separate_digits()?;
    let longest =
        if encoding.is_decimal() { longest_run(encoding.precision()) } else { encoding.width().max(1) };
    borders.decide_numbers(tokenizer, longest)?;
    Ok(borders)
}

/// Encodes `<inside>` in a neutral context and returns the ends of its FREE tokens.
fn inner_ends(tokenizer: &Tokenizer, inside: &str) -> Result<Vec<usize>> {
    let ends = tokenizer.free_ends(&format!("[C]<{inside}>[C]"))?;
    Ok(ends.into_iter().next().unwrap_or_default())
}

/// Whether `-` is a token of its own after `atom<`; `None` if the tokens are not as expected.
fn minus_after(tokenizer: &Tokenizer, atom: &[u8]) -> Result<Option<bool>> {
    let Ok(atom) = std::str::from_utf8(atom) else { return Ok(None) };
    let text = format!("[C]<0,0,0>{atom}<-1,0,0>[C]");
    let ends = tokenizer.free_ends(&text)?;
    Ok(match ends.get(1).map(Vec::as_slice) {
        Some([1, 2, 3, ..]) => Some(true),
        Some([2, 3, ..]) => Some(false),
        _ => None,
    })
}

/// Encodes every digit run of one to `longest` digits; `None` if a token crosses its borders.
fn learn_runs(tokenizer: &Tokenizer, longest: usize) -> Result<Option<Vec<Vec<Cuts>>>> {
    let mut runs = Vec::with_capacity(longest);
    for len in 1..=longest {
        let count = 10usize.pow(len as u32);
        let mut cuts: Vec<Cuts> = Vec::with_capacity(count);
        // Many runs a text: one block holds ten of them.
        for first in (0..count).step_by(10) {
            let text: String = (first..first + 10).map(|value| format!(".{value:0len$}")).collect();
            let ends = inner_ends(tokenizer, &text)?;
            for run in 0..10 {
                let start = run * (len + 1) + 1;
                if !ends.contains(&start) || !ends.contains(&(start + len)) {
                    return Ok(None);
                }
                cuts.push((1..=len).filter(|n| ends.contains(&(start + n))).map(|n| 1 << (n - 1)).sum());
            }
        }
        runs.push(cuts);
    }
    Ok(Some(runs))
}

/// Cuts by length (index 0 unused) if every run of a length has the same.
fn uniform_cuts(runs: &[Vec<Cuts>]) -> Option<[Cuts; MAX_RUN + 1]> {
    let mut uniform = [0; MAX_RUN + 1];
    for (index, cuts) in runs.iter().enumerate() {
        uniform[index + 1] = cuts[0];
        if cuts.iter().any(|c| *c != cuts[0]) {
            return None;
        }
    }
    Some(uniform)
}
