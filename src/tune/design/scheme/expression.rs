//! Builds the expression that cuts blocks into the pieces of a scheme.

use std::collections::{BTreeMap, BTreeSet};

use super::blocks::{block, numbers};
use super::cuts::{Scheme, spans};
use super::grammar::{Grammar, SpelledNumber};
use super::slots::{BlockSlot, MOST_SLOTS, pattern};

/// The beginning of every cut pattern, by which an extended tokenizer is recognized.
pub(crate) const CUT_MARK: &str = "\\G(?:";

/// Returns the expression that cuts a text if it is exactly one block of the scheme's grammar, and matches nowhere in any other text.
///
/// The first piece must begin the text (`\A`) and be followed by the rest of a block and the end of the text (`\z`). The other
/// pieces must begin where a match ended (`\G`), and not at the beginning of the text. So they match only within a block, after the
/// first piece matched.
pub(crate) fn cut_pattern(scheme: &Scheme) -> String {
    let (first, later) = if scheme.grammar.is_stripped() { stripped(scheme) } else { fixed(scheme) };
    format!("{CUT_MARK}{first}|(?!\\A)(?:{}))", later.join("|"))
}

/// Returns the first and the later pieces for numbers that have all their digits. Longer pieces are tried first. If this order is not
/// enough to distinguish pieces, each is also recognized by the rest of the block, which is slower.
fn fixed(scheme: &Scheme) -> (String, Vec<String>) {
    let row = scheme.grammar.row();
    let starts = scheme.starts([scheme.grammar.decimals(); 3]);
    let spans: Vec<(usize, usize)> = spans(&starts, row.len()).collect();
    let left = |end: usize| pattern(&row[end..]);
    let mut later: Vec<(&[BlockSlot], Vec<String>)> = Vec::new();
    for &(start, end) in &spans[1..] {
        let piece = &row[start..end];
        match later.iter_mut().find(|(known, _)| *known == piece) {
            Some((_, lefts)) => lefts.push(left(end)),
            None => later.push((piece, vec![left(end)])),
        }
    }
    // An alternation takes the first alternative that matches, so a short piece must not precede a piece that it is a prefix of.
    later.sort_by_key(|(piece, _)| std::cmp::Reverse(piece.len()));
    let pieces: Vec<&[BlockSlot]> = later.iter().map(|(piece, _)| *piece).collect();
    let simple = told_apart(&spans, scheme.grammar, &pieces);
    let later = later.into_iter().map(|(piece, lefts)| {
        let piece = pattern(piece);
        if simple { piece } else { format!("{piece}(?=(?:{})\\z)", lefts.join("|")) }
    });
    // The first piece looks ahead to the end of the block, so that later pieces match only within a block.
    let (_, end) = spans[0];
    let first = format!("\\A{}(?={}\\z)", pattern(&row[..end]), left(end));
    (first, later.collect())
}

/// Returns whether trying `pieces` in their order cuts blocks as the scheme does, for blocks of every shape and many digits. This is not
/// a proof; the check of every number is.
fn told_apart(spans: &[(usize, usize)], grammar: Grammar, pieces: &[&[BlockSlot]]) -> bool {
    let row = grammar.row();
    some_blocks(grammar).iter().all(|(block, slots)| {
        spans[1..].iter().all(|&(start, end)| {
            let [start, end] =
                [start, end].map(|slot| if slot < row.len() { slots[slot] } else { block.len() });
            let length = pieces.iter().find_map(|piece| matched(piece, &block[start..]));
            length == Some(end - start)
        })
    })
}

/// Blocks of every shape and many digits, with the byte offset at which each slot begins.
fn some_blocks(grammar: Grammar) -> Vec<(String, [usize; MOST_SLOTS])> {
    if grammar.encoding().is_decimal() {
        let mut blocks = Vec::new();
        for integer in 0..grammar.range.angstrom() {
            for negative in [false, true] {
                for digits in ["000000", "111111", "141414", "099009", "901990"] {
                    for axis in 0..3 {
                        let mut numbers = [spelled(grammar, false, 0, "104010"); 3];
                        numbers[axis] = spelled(grammar, negative, integer, digits);
                        blocks.push(block(grammar, &numbers));
                    }
                }
            }
        }
        return blocks;
    }
    (0..grammar.numbers()).map(|index| block(grammar, &numbers(grammar, index))).collect()
}

/// Returns a number with all its decimals, the first of six digits.
fn spelled(grammar: Grammar, negative: bool, integer: u32, digits: &str) -> SpelledNumber {
    let decimals = grammar.decimals();
    SpelledNumber { negative, integer, fraction: digits[..decimals].parse().unwrap_or(0), decimals }
}

/// Returns the number of bytes at the start of a text that the expression of a row of slots matches.
fn matched(slots: &[BlockSlot], text: &str) -> Option<usize> {
    let Some((slot, rest)) = slots.split_first() else { return Some(0) };
    let then = |length: usize| Some(length + matched(rest, &text[length..])?);
    let literal = |literal: &str| if text.starts_with(literal) { then(literal.len()) } else { None };
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    match slot {
        BlockSlot::Open(text) | BlockSlot::Comma(text) | BlockSlot::Close(text) => literal(text),
        BlockSlot::Sign => literal("-").or_else(|| then(0)),
        BlockSlot::Number { below, width } => {
            let width = usize::from(*width).max(1);
            let written = |length: &usize| {
                let long_enough = *length == width || !text.starts_with('0');
                long_enough && text[..*length].parse().is_ok_and(|n: u32| n < *below)
            };
            // The longest first, as in the slot's expression.
            (width..=digits.min(width.max(9))).rev().filter(written).find_map(then)
        }
        BlockSlot::Point => literal("."),
        BlockSlot::Digit => (digits >= 1).then(|| then(1)).flatten(),
        BlockSlot::Last => (digits >= 1 && !text.starts_with('0')).then(|| then(1)).flatten(),
    }
}

/// A piece of the stripped encoding: the expression for the text before it, and its own.
type Rule = (String, String);

/// Where a piece ends: the axis to which it belongs, and the slot after it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct PieceEnd {
    axis: usize,
    slot: usize,
}

/// Where a rule applies, with the possible numbers of decimals of the axis's number.
type Uses = BTreeMap<PieceEnd, BTreeSet<usize>>;

/// Returns the first and the later pieces of the stripped encoding. The cuts of a number depend on its number of decimals. So a piece is
/// recognized by where it begins (for digits, by the number of digits since the point) and by the rest of the block after it. The rest
/// shows which number it is in, and how many decimals that number has.
fn stripped(scheme: &Scheme) -> (String, Vec<String>) {
    let (grammar, row) = (scheme.grammar, scheme.grammar.row());
    let mut first: BTreeMap<(String, usize), BTreeSet<usize>> = BTreeMap::new();
    let mut later: BTreeMap<Rule, Uses> = BTreeMap::new();
    for (axis, decimals) in (0..3).flat_map(|axis| grammar.counts().map(move |decimals| (axis, decimals))) {
        let starts = scheme.cuts(axis, decimals);
        // Units begin at the same slot for any number of decimals, so any number shows where the next unit begins.
        let next = if axis < 2 { scheme.cuts(axis + 1, grammar.decimals())[0] } else { row.len() };
        let slots = grammar.slots([decimals; 3]);
        for (start, end) in spans(starts, next) {
            let present: Vec<BlockSlot> = slots[start..end].iter().flatten().copied().collect();
            let piece = pattern(&present);
            if start == 0 {
                first.entry((piece, end)).or_default().insert(decimals);
                continue;
            }
            let behind = behind(row.place(start).1, grammar.decimals());
            let uses = later.entry((behind, piece)).or_default();
            uses.entry(PieceEnd { axis, slot: end }).or_default().insert(decimals);
        }
    }
    let firsts = first.iter().map(|((piece, end), counts)| {
        let left = rest_of_block(grammar, PieceEnd { axis: 0, slot: *end }, counts);
        if *end == row.len() { piece.clone() } else { format!("{piece}(?={left})") }
    });
    let firsts: Vec<String> = firsts.collect();
    let mut later: Vec<(Rule, Uses)> = later.into_iter().collect();
    // Pieces of numbers with the most decimals are tried first.
    later.sort_by_key(|(_, uses)| std::cmp::Reverse(uses.values().flatten().max().copied()));
    let later = later
        .iter()
        .map(|((behind, piece), uses)| format!("{behind}{piece}{}", rest_of_blocks(grammar, uses)));
    (format!("\\A(?:{})", firsts.join("|")), later.collect())
}

/// Returns the lookbehind for a piece that begins at this place of a number with this many decimals.
fn behind(place: usize, decimals: usize) -> String {
    match place {
        // A sign or an integer part does not follow a digit. Without this, decimals would match as an integer part.
        0 | 1 => "(?<![.0-9])".to_owned(),
        3 => "(?<=\\.)".to_owned(),
        4 if decimals > 1 => "(?<=\\.[0-9])".to_owned(),
        5.. if place < 3 + decimals => format!("(?<=\\.[0-9]{{{}}})", place - 3),
        _ => String::new(),
    }
}

/// Returns the lookahead for the rest of the block after a piece.
fn rest_of_blocks(grammar: Grammar, uses: &Uses) -> String {
    let rests = uses.iter().filter(|(end, _)| end.slot < grammar.row().len());
    let rests: Vec<String> = rests.map(|(end, counts)| rest_of_block(grammar, *end, counts)).collect();
    if rests.is_empty() { String::new() } else { format!("(?={})", rests.join("|")) }
}

/// Returns the expression for the rest of a block after a piece of an axis whose number has one of these numbers of decimals.
fn rest_of_block(grammar: Grammar, end: PieceEnd, counts: &BTreeSet<usize>) -> String {
    let any: BTreeSet<usize> = grammar.counts().collect();
    let (axis, from) = grammar.row().place(end.slot);
    let mut out = grammar.rest(from, if axis == end.axis { counts } else { &any });
    for _ in axis..2 {
        out.push(',');
        out.push_str(&grammar.rest(0, &any));
    }
    out + ">\\z"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::design::scheme::grammar::stripped_grammar;
    use crate::design::scheme::slots::MOST_DECIMALS;

    #[test]
    fn pieces_are_told_apart_by_place_and_decimals() {
        let grammar = stripped_grammar(10, 4, 1);
        let number = |first: usize| {
            let point = first + 3;
            let mut cuts: [Vec<usize>; MOST_DECIMALS + 1] = Default::default();
            cuts[1] = vec![first, point, point + 1];
            cuts[2] = vec![first, point + 1, point + 2];
            cuts[3] = vec![first, point + 1, point + 3];
            cuts[4] = cuts[3].clone();
            cuts
        };
        let mut cuts = [number(0), number(8), number(16)];
        let with_close = |starts: &mut Vec<usize>| starts.push(24);
        cuts[2].iter_mut().filter(|starts| !starts.is_empty()).for_each(with_close);
        let scheme = Scheme::stripped(grammar, cuts);
        assert_eq!(scheme.example(1), "<-1|.|2|,6|.|7|,-0|.|1|>");
        assert_eq!(scheme.example(2), "<-1.|2|3|,6.|7|8|,-0.|1|2|>");
        assert_eq!(scheme.example(3), "<-1.|23|4|,6.|78|9|,-0.|12|3|>");
        assert_eq!(scheme.tokens_per_block(), 10);
        let number = "-?[0-9]\\.[0-9]{0,3}[1-9]";
        let pattern = cut_pattern(&scheme);
        let first = format!("\\G(?:\\A(?:<-?[0-9](?=\\.[1-9],{number},{number}>\\z)|<-?[0-9]\\.(?=");
        assert!(pattern.starts_with(&first), "{pattern}");
        for part in [
            ",-?[0-9]\\.(?=[0-9]{1,3}[1-9],-?[0-9]\\.[0-9]{0,3}[1-9]>\\z|[0-9]{1,3}[1-9]>\\z)",
            "(?<=\\.)[0-9]{2}(?=[0-9]{0,1}[1-9],",
            "(?<=\\.)[0-9](?=[1-9],",
            "(?<=\\.)[1-9](?=,",
            "(?<=\\.[0-9]{2})[0-9][1-9](?=,",
        ] {
            assert!(pattern.contains(part), "{part} in {pattern}");
        }
    }
}
