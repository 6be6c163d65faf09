//! Counts FREE tokens with tables learned from a tokenizer.
//!
//! # Why it is exact
//! 1. BPE and Unigram models produce only vocabulary tokens, each a part of the text. If no token that a text can contain joins a
//!    digit with a character that may be adjacent to it in a block (`<`, `>`, `-`, `.`, `,`), no token crosses the border between
//!    them, so a text falls apart there ([`super::boundaries`]). Tokens with digits that no text can contain (`<h1>`), or that cross no
//!    such border (` 155` of GPT-2, `[control_135]` of Mistral), do not matter.
//! 2. A digit run of a block stands between two such borders, so its tokens depend only on its digits. All runs of one to four
//!    digits (11,110; more if numbers have more decimals) are encoded once, and their cuts stored. This covers runs that merge by
//!    content (GPT-2), by length (Llama 3), or not at all (Qwen, SentencePiece), and Unigram if no run has two segmentations of
//!    equal score.
//! 3. The other parts inside a block are `.`, `,` and `,-`, which are encoded once. The text before a block ends in `]<` or `]<-`;
//!    at most its `-` is FREE, if it does not merge with `<`. If no vocabulary token joins the character before `]` with `]`, this
//!    depends only on that character. Otherwise it depends on the atom, if the atom contains two characters that no token joins; if
//!    not, the whole text is encoded.
//! 4. The text after a block starts with `>`: nothing in it is FREE, up to the next block.
//!
//! One assumption is *not* proved from the vocabulary: that the pre-tokenizer, a regular expression, cuts a part inside a text as
//! it cuts the part alone. Therefore [`super::Counter`] compares the tables with the reference on whole texts before use.

use std::collections::HashMap;
use std::sync::RwLock;

use super::block_tokens::{BlockTokens, MAX_BLOCK_TOKENS};
use super::boundaries::TokenBoundaries as Borders;
use super::load::Tokenizer;
use crate::encoding::{Encoding, Precision};
use crate::error::Result;

/// The longest digit run that tables can hold.
const MAX_RUN: usize = 6;

/// Returns the longest digit run in tables for numbers with this precision. Integer parts have up to four digits.
pub(crate) fn longest_run(precision: Precision) -> usize {
    precision.decimals().max(4)
}

/// If bit `i` is set, a token ends after digit `i + 1` of the run.
type Cuts = u8;

/// See the module's documentation.
pub struct Tables {
    /// Cuts of every digit run, by length and value: `runs[length - 1][value]`.
    runs: Vec<Vec<Cuts>>,
    /// The cuts by run length, if all runs of a length are cut alike.
    uniform: Option<[Cuts; MAX_RUN + 1]>,
    /// Whether `,-` is one token.
    comma_minus_is_one: bool,
    /// By the character before `]`, whether the `-` after `]<` is a token of its own; `None` means that the atom decides.
    minus_is_free: [Option<bool>; 128],
    /// The same by atom, filled as atoms occur.
    by_atom: RwLock<HashMap<Box<[u8]>, bool>>,
    /// Where texts fall apart.
    borders: Borders,
}

impl Tables {
    /// Learns the tables for blocks with this precision; the inner error is a sentence that says why this tokenizer has none.
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
        // Most atoms end in letters and digits. After other characters (`+]`, `@]`) the whole atom decides, and is tried when it
        // occurs.
        let mut minus_is_free = [None; 128];
        for byte in (0..128u8).filter(u8::is_ascii_alphanumeric) {
            if !borders.joins(byte, b']') && borders.is_decided(tokenizer, "]<-", false) {
                minus_is_free[usize::from(byte)] = minus_after(tokenizer, &[b'[', byte, b']'])?;
            }
        }
        let by_atom = RwLock::new(HashMap::new());
        Ok(Ok(Tables { runs, uniform, comma_minus_is_one, minus_is_free, by_atom, borders }))
    }

    /// Counts the FREE tokens of every block of a text and appends the counts to `out`. `None` if the text is not plain enriched
    /// text, or a number has more digits before or after the point than the tables hold; `out` then holds the blocks so far.
    pub fn count(&self, tokenizer: &Tokenizer, text: &[u8], out: &mut Vec<u16>) -> Option<()> {
        self.scan(tokenizer, text, |count: Count| out.push(count.0))
    }

    /// Appends the FREE tokens of every block of a text to `out`, with their ends. `None` in the same cases as [`Tables::count`].
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
            // Each case is compiled with its own lookup. The lookup by length touches no table that grows with the values.
            let end = match &self.uniform {
                Some(cuts) => self.block(tokenizer, text, start, &mut sink, |len, _| cuts[len]),
                None => self.block(tokenizer, text, start, &mut sink, |len, value| self.runs[len - 1][value]),
            }?;
            each(sink);
            at = end + 1;
        }
        Some(())
    }

    /// Counts one block whose first byte is at `start`. Returns the offset of its `>`.
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

    /// Returns whether the `-` at `start` is a token of its own.
    #[inline]
    fn minus_free_before(&self, tokenizer: &Tokenizer, text: &[u8], start: usize) -> Option<bool> {
        // The text before the sign is `C]<`.
        let before = *text.get(start.checked_sub(3)?)?;
        if text[start - 2] != b']' {
            return None;
        }
        match self.minus_is_free.get(usize::from(before))? {
            Some(free) => Some(*free),
            None => self.minus_free_after_atom(tokenizer, &text[..start - 1]),
        }
    }

    /// Returns the same, decided by the whole atom, for endings like `+]` and `@]`. Learned when the atom first occurs.
    #[cold]
    fn minus_free_after_atom(&self, tokenizer: &Tokenizer, before: &[u8]) -> Option<bool> {
        let atom = &before[memchr::memrchr(b'[', before)?..];
        // The lock is poisoned only if another thread panicked; then the caller falls back to encoding.
        if let Some(&free) = self.by_atom.read().ok()?.get(atom) {
            return Some(free);
        }
        // If the atom falls apart, its end is independent of the text before it.
        let cut = (1..atom.len()).rfind(|at| !self.borders.joins(atom[at - 1], atom[*at]))?;
        let tail = format!("{}<-", std::str::from_utf8(&atom[cut..]).ok()?);
        if !self.borders.is_decided(tokenizer, &tail, false) {
            return None;
        }
        let free = minus_after(tokenizer, atom).ok()??;
        self.by_atom.write().ok()?.insert(atom.into(), free);
        Some(free)
    }
}

/// Reads the digit run at `at` and passes its token ends to the sink. Returns the offset behind it.
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
    // Bytes below `0` wrap around to large numbers, so one comparison recognises digits.
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

/// Receives token ends and keeps their count or a list of them.
trait Sink: Default {
    /// Notes that a token ends at `end`, in bytes after the block's `<`.
    fn one(&mut self, end: usize);
    /// Tokens end after some digits of a run that begins at `offset`.
    fn many(&mut self, offset: usize, cuts: Cuts);
}

/// The number of set bits of each number. The baseline of x86-64 has no instruction for it.
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
        // Cuts have at most `MAX_RUN` bits: the remainder changes nothing, and removes the bounds check.
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

/// Returns the borders of a tokenizer, if every run of digits in a slot falls apart from its surroundings and is tokenised independently
/// (the first two steps of the proof above).
///
/// # Errors
/// A sentence that names the pieces that are not separate.
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

/// Returns whether `-` is a token of its own after `atom<`; `None` if the tokens are not as expected.
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
        // Many runs in one text: one block holds ten of them.
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

/// Returns the cuts by length (index 0 is unused), if all runs of a length are cut alike.
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
