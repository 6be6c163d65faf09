//! Blocks to run: every number in every position, and every shape.

use super::grammar::{Grammar, SpelledNumber, power};
use super::slots::{BlockSlot, MOST_SLOTS};

/// How many shapes a number has: sign, one or two integer digits, decimals.
pub fn shapes(grammar: Grammar) -> u64 {
    let integers = if grammar.range.angstrom() > 10 { 2 } else { 1 };
    2 * integers * grammar.counts().count() as u64
}

/// The shape of a block.
pub fn shape(numbers: &[SpelledNumber; 3]) -> u32 {
    numbers.iter().fold(0, |shape, number| {
        let integers = u32::from(number.integer >= 10);
        shape << 5 | u32::from(number.negative) << 4 | integers << 3 | number.decimals as u32
    })
}

/// The block in which number `index` is x and two others are y and z. Over all indices of numbers every number is once
/// in every position: both steps are primes, and larger than any factor of a count. Further indices give a block of
/// every shape.
pub fn numbers(grammar: Grammar, index: u64) -> [SpelledNumber; 3] {
    let count = grammar.numbers();
    if index < count {
        return [index, (index * 7_919 + 17) % count, (index * 104_729 + 4_711) % count]
            .map(|i| grammar.number(i));
    }
    let shapes = shapes(grammar);
    let index = index - count;
    [index / (shapes * shapes), index / shapes % shapes, index % shapes].map(|kind| {
        let counts = grammar.counts().count() as u64;
        let (decimals, rest) = (grammar.fewest_decimals() + (kind % counts) as usize, kind / counts);
        let range = grammar.range.angstrom();
        let one = (index % u64::from(range.min(10))) as u32;
        let integer = if rest / 2 == 0 { one } else { 10 + one % (range - 10) };
        let step = power(grammar.decimals() - decimals);
        let fraction = if decimals == 0 { 0 } else { (index as u32 % 999 * 10 + 7) * step % grammar.units() };
        SpelledNumber { negative: rest % 2 == 1, integer, fraction, decimals }
    })
}

/// The text of a block, with the byte at which each slot begins.
pub fn block(grammar: Grammar, numbers: &[SpelledNumber; 3]) -> (String, [usize; MOST_SLOTS]) {
    let mut text = String::with_capacity(16 + 3 * grammar.decimals());
    let mut starts = [0; MOST_SLOTS];
    let (mut axis, mut decimals) = (0, 0);
    let slots = grammar.slots(numbers.map(|number| number.decimals));
    for (slot, start) in slots.iter().zip(&mut starts) {
        *start = text.len();
        let Some(slot) = slot else { continue };
        let number = numbers[axis];
        match slot {
            BlockSlot::Open => text.push('<'),
            BlockSlot::Sign if number.negative => text.push('-'),
            BlockSlot::Sign => {}
            BlockSlot::Integer => {
                text.push_str(&number.integer.to_string());
                decimals = grammar.units() / 10;
            }
            BlockSlot::Point => text.push('.'),
            BlockSlot::Digit | BlockSlot::Last => {
                text.push(char::from(b'0' + (number.fraction / decimals % 10) as u8));
                decimals /= 10;
            }
            BlockSlot::Comma => {
                text.push(',');
                axis += 1;
            }
            BlockSlot::Close => text.push('>'),
        }
    }
    (text, starts)
}
