//! What the automaton has to know of a tokenizer, learned from its encoder.

use super::states::Mode;
use crate::design::Range;
use crate::design::scheme::slots::{BlockSlot, size};
use crate::encoding::Encoding;
use crate::error::{Error, Result};
use crate::text::{CONFORMER_CLOSE, CONFORMER_OPEN};
use crate::tokenizer::cuts::{Cuts, SPACE};
use crate::tokenizer::{SOME_PROMPT, Token, Tokenizer};

/// The parts of blocks and their tokens.
pub(super) struct Pieces {
    /// Tokens of every digit run, by length and value: `runs[length - 1][value]`.
    runs: Vec<Vec<Vec<u32>>>,
    /// `.`
    pub point: Vec<u32>,
    /// The separator, `,`
    pub comma: Vec<u32>,
    /// The same with a sign behind it, `,-`
    pub comma_minus: Vec<u32>,
}

/// How blocks that are cut out of the text are cut further.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Isolation {
    /// Numbers of isolated blocks lie below this in magnitude.
    pub range: Range,
    /// How many decimals their numbers may have, in order.
    pub decimals: Vec<usize>,
    /// How blocks are cut, by the decimals of their three numbers.
    pub ways: Vec<Vec<PreToken>>,
    /// Some isolated block.
    pub sample: String,
}

/// A pre-token of an isolated block: its slots. A last decimal of the stripped dialect is marked, for it is not zero.
pub(super) type PreToken = Vec<(BlockSlot, bool)>;

/// An error that names the tokenizer.
pub(super) fn refuse(tokenizer: &Tokenizer, problem: impl std::fmt::Display) -> Error {
    let problem = format!("the automaton cannot be proved for this tokenizer: {problem}");
    Error::input(&tokenizer.name, problem, "take the allowlist, or another tokenizer")
}

/// The ids of the tokens that cover exactly the bytes from `start` to `end`; `None` if a token crosses a border.
///
/// Tokens may share a place: a space that the tokenizer puts before a text is held to be where the text begins.
pub(super) fn covering(tokens: &[Token], start: usize, end: usize) -> Option<Vec<u32>> {
    let first = tokens.iter().position(|token| token.start >= start)?;
    let count = tokens[first..].iter().take_while(|token| token.end <= end).count();
    let covered = &tokens[first..first + count];
    let whole = covered.first()?.start == start
        && covered.last()?.end == end
        && covered.windows(2).all(|pair| pair[1].start <= pair[0].end)
        // Nor does one that begins before reach in, or one that begins within reach out.
        && tokens[..first].last().is_none_or(|before| before.end <= start)
        && tokens.get(first + count).is_none_or(|behind| behind.start >= end);
    whole.then(|| covered.iter().map(|token| token.id).collect())
}

/// The inside of a block that no tokenizer isolates, since its numbers have seven decimals.
const PLAIN_BLOCK: &str = "0.1234567,0.1234567,0.1234567";

impl Pieces {
    /// Learns the pieces of a dialect's blocks.
    ///
    /// # Errors
    /// If a token crosses the border of a digit run.
    pub(super) fn learn(tokenizer: &Tokenizer, dialect: Encoding) -> Result<Self> {
        // Integer parts have one or two digits.
        let longest = dialect.decimals().max(2);
        let mut runs = Vec::with_capacity(longest);
        for length in 1..=longest {
            let count = 10usize.pow(length as u32);
            let mut all = Vec::with_capacity(count);
            for first in (0..count).step_by(10) {
                let text: String = (first..first + 10).map(|value| format!(".{value:0length$}")).collect();
                let text = format!("[C]<{text}>[C]");
                let tokens = tokenizer.tokens(&text)?;
                for run in 0..10 {
                    let start = 4 + run * (length + 1) + 1;
                    let digits = &text[start..start + length];
                    all.push(covering(&tokens, start, start + length).ok_or_else(|| {
                        refuse(tokenizer, format!("`{digits}` is not cut apart from what is beside it"))
                    })?);
                }
            }
            runs.push(all);
        }
        let between = |separator: &str| {
            let text = format!("[C]<{PLAIN_BLOCK}{separator}{PLAIN_BLOCK}>[C]");
            let start = 4 + PLAIN_BLOCK.len();
            let tokens = tokenizer.tokens(&text)?;
            covering(&tokens, start, start + separator.len()).ok_or_else(|| {
                refuse(tokenizer, format!("`{separator}` is not cut apart from the digits beside it"))
            })
        };
        let separator = dialect.separator();
        Ok(Pieces {
            point: between(".")?,
            comma: between(separator)?,
            comma_minus: between(&format!("{separator}-"))?,
            runs,
        })
    }

    /// The tokens of a run of `length` digits.
    pub(super) fn run(&self, length: usize, value: usize) -> &[u32] {
        &self.runs[length - 1][value]
    }
}

impl Isolation {
    /// How a tokenizer isolates blocks of a dialect; `None` if it does not.
    ///
    /// # Errors
    /// If it cannot split a block into pre-tokens.
    pub(super) fn learn(tokenizer: &Tokenizer, dialect: Encoding) -> Result<Option<Self>> {
        if dialect.separator() != "," {
            // Extended tokenizers isolate blocks with commas.
            return Ok(None);
        }
        let mut decimals = Vec::new();
        for count in dialect.least_decimals()..=dialect.decimals() {
            if cuts(tokenizer, &slots([count; 3], dialect), 0)?.is_some() {
                decimals.push(count);
            }
        }
        let Some(&most) = decimals.last() else { return Ok(None) };
        let widest = slots([most; 3], dialect);
        let expected = cuts(tokenizer, &widest, 0)?;
        let mut angstrom = 0;
        while angstrom < 100 && cuts(tokenizer, &widest, angstrom)? == expected {
            angstrom += 1;
        }
        let Ok(range) = Range::new(angstrom as u32) else { return Ok(None) };
        let mut ways = Vec::new();
        for x in &decimals {
            for y in &decimals {
                for z in &decimals {
                    let block = slots([*x, *y, *z], dialect);
                    let starts = cuts(tokenizer, &block, 0)?.ok_or_else(|| {
                        refuse(tokenizer, format!("`{}` is not isolated", filled(&block, 0).concat()))
                    })?;
                    let ends = starts.iter().skip(1).copied().chain([block.len()]);
                    ways.push(
                        starts.iter().zip(ends).map(|(&start, end)| block[start..end].to_vec()).collect(),
                    );
                }
            }
        }
        let largest = ways.iter().flatten().map(|piece| spellings(piece, range)).max();
        if largest.is_some_and(|spellings| spellings > MAX_SPELLINGS) {
            return Err(refuse(
                tokenizer,
                format!("blocks are cut into pieces of more than {MAX_SPELLINGS} spellings"),
            ));
        }
        let sample = filled(&widest, 0).concat();
        Ok(Some(Isolation { range, decimals, ways, sample }))
    }
}

/// The most spellings of a piece: the model is asked for the tokens of each.
const MAX_SPELLINGS: u64 = 400_000;

/// How many texts a piece stands for.
fn spellings(piece: &PreToken, range: Range) -> u64 {
    size(&piece.iter().map(|(slot, _)| *slot).collect::<Vec<_>>(), range)
}

/// The slots of a block whose numbers have so many decimals; a number without decimals has no point.
fn slots(decimals: [usize; 3], dialect: Encoding) -> PreToken {
    let mut slots = vec![(BlockSlot::Open, false)];
    for (axis, count) in decimals.into_iter().enumerate() {
        slots.extend([(BlockSlot::Sign, false), (BlockSlot::Integer, false)]);
        if count > 0 {
            slots.push((BlockSlot::Point, false));
            let last = |place| dialect.is_stripped() && place + 1 == count;
            slots.extend((0..count).map(|place| (BlockSlot::Digit, last(place))));
        }
        slots.push((if axis < 2 { BlockSlot::Comma } else { BlockSlot::Close }, false));
    }
    slots
}

/// A block of these slots, with all signs, and with this integer part in x.
fn filled(slots: &[(BlockSlot, bool)], integer: usize) -> Vec<String> {
    let mut integers = [integer, 0, 0].into_iter();
    let text = |slot: &(BlockSlot, bool)| match slot.0 {
        BlockSlot::Open => "<".to_owned(),
        BlockSlot::Sign => "-".to_owned(),
        BlockSlot::Integer => integers.next().unwrap_or(0).to_string(),
        BlockSlot::Point => ".".to_owned(),
        BlockSlot::Digit | BlockSlot::Last => "7".to_owned(),
        BlockSlot::Comma => ",".to_owned(),
        BlockSlot::Close => ">".to_owned(),
    };
    slots.iter().map(text).collect()
}

/// The first slots of a block's pre-tokens; `None` if one crosses its brackets, or is cut inside a slot.
fn cuts(tokenizer: &Tokenizer, slots: &[(BlockSlot, bool)], integer: usize) -> Result<Option<Vec<usize>>> {
    let filled = filled(slots, integer);
    let pieces = tokenizer.pre_tokens(&format!("[C]{}[C]", filled.concat()))?;
    let mut borders = std::collections::BTreeSet::from([0]);
    let mut at = 0;
    for piece in &pieces {
        // A space that the tokenizer puts before a text is no part of it.
        at += if at == 0 { piece.trim_start_matches(SPACE).len() } else { piece.len() };
        borders.insert(at);
    }
    let mut starts = Vec::new();
    let mut place = 3;
    for (slot, text) in filled.iter().enumerate() {
        if borders.contains(&place) {
            starts.push(slot);
        }
        if (place + 1..place + text.len()).any(|inside| borders.contains(&inside)) {
            return Ok(None);
        }
        place += text.len();
    }
    let whole = starts.first() == Some(&0) && borders.contains(&place) && at == place + 3;
    Ok(whole.then_some(starts))
}

/// What stands on one side of a copied text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    /// The answer begins or ends.
    End,
    /// A block of this mode; if it is the next one, whether it begins with `-`.
    Block(Mode, bool),
}

/// What copied texts are asked with.
pub(super) struct Copier<'a> {
    /// The tokenizer.
    pub tokenizer: &'a Tokenizer,
    /// Some block that the tokenizer isolates, if it does.
    pub isolated_block: &'a str,
    /// Where texts fall apart; none for a tokenizer that isolates blocks.
    pub cuts: Option<&'a Cuts>,
}

impl Copier<'_> {
    /// The tokens of a copied text between two blocks, with those brackets and that sign that are tokenised with it.
    ///
    /// # Errors
    /// If a token crosses the border between them and a digit, or two ways to cut them are equally likely.
    pub(super) fn tokens(&self, before: Side, text: &str, after: Side) -> Result<Vec<u32>> {
        let mut whole = match before {
            Side::End => String::new(),
            Side::Block(Mode::Plain, _) => format!("[C]<{PLAIN_BLOCK}"),
            Side::Block(Mode::Isolated, _) => format!("[C]{}", self.isolated_block),
        };
        let start = whole.len();
        if let Side::Block(Mode::Plain, _) = before {
            whole.push('>');
        }
        whole.push_str(text);
        if let Side::Block(Mode::Plain, negative) = after {
            whole.push_str(if negative { "<-" } else { "<" });
        }
        let end = whole.len();
        match after {
            Side::End => {}
            Side::Block(Mode::Plain, _) => whole.extend([PLAIN_BLOCK, ">"]),
            Side::Block(Mode::Isolated, _) => whole.push_str(self.isolated_block),
        }
        if start == end {
            return Ok(Vec::new());
        }
        let copied = &whole[start..end];
        if !self.is_decided(copied, before == Side::End) {
            return Err(refuse(self.tokenizer, format!("two ways to cut `{copied}` are equally likely")));
        }
        // An answer's first token may begin in the prompt.
        let tokens = if before == Side::End {
            self.tokenizer.answer_tokens(&whole)?
        } else {
            self.tokenizer.tokens(&whole)?
        };
        covering(&tokens, start, end).ok_or_else(|| {
            refuse(self.tokenizer, format!("`{copied}` is not cut apart from the digits beside it"))
        })
    }

    /// Whether the tokens of a copied text depend on nothing else. Tags that are tokens are no part of it.
    fn is_decided(&self, copied: &str, begins: bool) -> bool {
        let Some(cuts) = self.cuts else { return true };
        let tag = |text: &str| self.tokenizer.is_added(text);
        if begins && !tag(CONFORMER_OPEN) {
            return cuts.is_decided(self.tokenizer, &format!("{SOME_PROMPT}{copied}"), true);
        }
        let inner = copied.strip_prefix(CONFORMER_OPEN).filter(|_| tag(CONFORMER_OPEN)).unwrap_or(copied);
        let inner = inner.strip_suffix(CONFORMER_CLOSE).filter(|_| tag(CONFORMER_CLOSE)).unwrap_or(inner);
        inner.is_empty() || cuts.is_decided(self.tokenizer, inner, begins)
    }
}
