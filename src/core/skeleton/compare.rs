//! Compares the items of a text with those of its prompt.

use std::collections::BTreeMap;

use super::prompt::{Arrangement, Bound};
use super::read::{FaultKind, Reader};
use super::template::ItemText;

/// Adds the faults of the items that a text lists.
pub(super) fn compare(reader: &mut Reader<'_>) {
    for items in 0..reader.bound.items.len() {
        // A loop that is absent from the skeleton lists nothing.
        if !reader.bound.skeleton.loops_over(items) {
            continue;
        }
        if let Some((kind, problem)) = difference(reader, items) {
            reader.fault(kind, reader.out.start, problem);
        }
    }
}

fn difference(reader: &Reader<'_>, items: usize) -> Option<(FaultKind, String)> {
    let bound = reader.bound;
    let name = &bound.skeleton.items[items].0;
    let read = &reader.out.items[items];
    let known = &bound.items[items];
    let [least, most] = match reader.stated[items] {
        Some(times) => {
            let one = known.range()[0] / known.times()[0].max(1);
            match known.arrangement {
                Arrangement::Number { .. } => [times; 2],
                _ => [one * times; 2],
            }
        }
        None => known.range(),
    };
    let count = read.len() as u32;
    let range = if least == most { least.to_string() } else { format!("{least} to {most}") };
    let count_fault = (FaultKind::Count, format!("{count} items `{name}` instead of {range}"));
    // Items without words can only differ in their number.
    let has_words = !known.words.is_empty() && bound.skeleton.writes_words(items);
    if !has_words {
        return (!(least..=most).contains(&count)).then_some(count_fault);
    }
    let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
    read.iter().for_each(|item| *counts.entry(&item.word).or_default() += 1);
    let one: BTreeMap<&str, u32> = known.words.iter().map(|word| &**word).zip(known.counts()).collect();
    let total: u32 = one.values().sum();
    let is_multiple = |divisor: u32| {
        one.len() == counts.len()
            && one.iter().all(|(word, n)| {
                counts.get(word).is_some_and(|own| {
                    u64::from(*own) * u64::from(total) == u64::from(*n) * u64::from(divisor)
                })
            })
    };
    if count == 0 {
        return Some(count_fault);
    }
    if !is_multiple(count) {
        let shown: Vec<String> = counts.iter().map(|(word, n)| format!("{word}{n}")).take(8).collect();
        let wanted: Vec<String> = one.iter().map(|(word, n)| format!("{word}{n}")).take(8).collect();
        let problem = format!("the items `{name}` are {} instead of {}", shown.join(" "), wanted.join(" "));
        return Some((FaultKind::Composition, problem));
    }
    let [low, high] = known.times();
    let is_whole = count.is_multiple_of(total) && (low..=high).contains(&(count / total));
    if !is_whole || !(least..=most).contains(&count) {
        return Some(count_fault);
    }
    let expected: Vec<u32> = match &known.arrangement {
        Arrangement::Sequence(sequence) => sequence.clone(),
        Arrangement::Composition { counts, any_order: false, .. } => {
            let times = count / total;
            let of = |(word, n): (usize, &u32)| std::iter::repeat_n(word as u32, (n * times) as usize);
            counts.iter().enumerate().flat_map(of).collect()
        }
        _ => return None,
    };
    let wrong =
        read.iter().zip(&expected).position(|(item, word)| *item.word != *known.words[*word as usize])?;
    let word = &known.words[expected[wrong] as usize];
    let problem = format!("item {} of `{name}` is {} instead of {word}", wrong + 1, read[wrong].word);
    Some((FaultKind::Order, problem))
}

impl Bound<'_> {
    /// The least and the largest multiple of a prompt's items, or the least and the largest number of items without words.
    pub(super) fn multiples(&self, items: usize) -> [u32; 2] {
        match self.items[items].arrangement {
            Arrangement::Number { least, most } => [least, most],
            _ => self.items[items].times(),
        }
    }

    /// What a text states of its items, for a multiple of them.
    pub fn stated(&self, items: usize, text: ItemText, times: u32) -> String {
        let known = &self.items[items];
        let counts = known.counts();
        let divisor = counts.iter().fold(0, |a, b| gcd(a, *b)).max(1);
        let write = |by: u32, ones: bool, between: &str| {
            let of = |(word, count): (&Box<str>, &u32)| match (count * times / by, ones) {
                (1, false) => word.to_string(),
                (count, _) => format!("{word}{count}"),
            };
            known.words.iter().zip(&counts).map(of).collect::<Vec<_>>().join(between)
        };
        match text {
            ItemText::Count => match known.arrangement {
                Arrangement::Number { .. } => times.to_string(),
                _ => (counts.iter().sum::<u32>() * times).to_string(),
            },
            ItemText::Sum => write(1, true, " "),
            ItemText::Reduced => write(divisor * times, false, ""),
            ItemText::Units => (divisor * times).to_string(),
            // These stand in loops, where they are known from the item.
            ItemText::Word | ItemText::Index(_) => String::new(),
        }
    }
}

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}
