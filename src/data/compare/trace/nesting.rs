//! Nested spans of a thread, such as annotations: their own time, and which spans are outermost.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The largest number of spans that are kept, 24 bytes each, and twice this memory while they are sorted.
const MAX_SPANS: usize = 4 << 20;

/// Spans, collected in any order.
pub(super) struct Nesting {
    spans: Vec<Span>,
    most: usize,
    is_lost: bool,
}

#[derive(Debug, Clone, Copy)]
struct Span {
    row: u32,
    name: u32,
    start: i64,
    end: i64,
}

/// The times of nested spans.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Nested {
    /// The times of each name.
    pub of: BTreeMap<u32, SpanTime>,
    /// The rows that have spans.
    pub rows: BTreeSet<u32>,
    /// The number of spans that are not inside another one of their row.
    pub outermost: u64,
    /// The nanoseconds covered by at least one span, summed over rows.
    pub covered: i128,
}

/// The times of the spans of a name in nanoseconds, summed over rows.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct SpanTime {
    pub calls: u64,
    /// The time including nested spans; a span inside one of the same name adds nothing.
    pub total: i128,
    /// The time without nested spans.
    pub own: i128,
}

impl Default for Nesting {
    fn default() -> Self {
        Nesting::new(MAX_SPANS)
    }
}

impl Nesting {
    fn new(most: usize) -> Self {
        Nesting { spans: Vec::new(), most, is_lost: false }
    }

    /// Adds a span of a name to a row. If there are too many, all spans are dropped.
    pub(super) fn add(&mut self, row: u32, name: u32, start: i64, end: i64) {
        if self.spans.len() >= self.most {
            // With only a part of the spans, the own times of outer spans would be wrong, so none are kept.
            self.is_lost = true;
            self.spans = Vec::new();
        }
        if !self.is_lost {
            self.spans.push(Span { row, name, start, end });
        }
    }

    /// Computes the nesting; `None` if there were too many spans.
    ///
    /// At each moment, the time of a row belongs to the span that began last and has not ended. So spans that overlap without being
    /// nested are also counted only once.
    pub(super) fn measure(mut self) -> Option<Nested> {
        if self.is_lost {
            return None;
        }
        // Of two spans that begin together the longer one is the outer one; of equal spans, the first in the file.
        self.spans.sort_by_key(|span| (span.row, span.start, Reverse(span.end)));
        let mut nested = Nested::default();
        for row in self.spans.chunk_by(|a, b| a.row == b.row) {
            nested.rows.insert(row[0].row);
            measure_row(row, &mut nested);
        }
        Some(nested)
    }
}

/// Computes the times of a row; `row` is sorted.
fn measure_row(row: &[Span], nested: &mut Nested) {
    let mut open = OpenSpans { stack: Vec::new(), now: i64::MIN };
    let mut ends: HashMap<u32, i64> = HashMap::new();
    let mut last_end = i64::MIN;
    for span in row {
        open.advance(span.start, nested);
        open.stack.push((span.name, span.end));
        let end = ends.entry(span.name).or_insert(i64::MIN);
        let time = nested.of.entry(span.name).or_default();
        time.calls += 1;
        // Only the time after the last end of the same name, so that recursion is not counted twice.
        time.total += i128::from((span.end - span.start.max(*end)).max(0));
        *end = span.end.max(*end);
        if span.end > last_end {
            nested.outermost += 1;
            nested.covered += i128::from(span.end - span.start.max(last_end));
            last_end = span.end;
        }
    }
    open.advance(i64::MAX, nested);
}

/// The spans of a row that have not ended, the last to begin at the end.
struct OpenSpans {
    stack: Vec<(u32, i64)>,
    now: i64,
}

impl OpenSpans {
    /// Assigns the time until `to` to the spans that own it.
    fn advance(&mut self, to: i64, nested: &mut Nested) {
        while let Some((name, end)) = self.stack.last() {
            let until = to.min(*end);
            if until > self.now {
                nested.of.entry(*name).or_default().own += i128::from(until - self.now);
                self.now = until;
            }
            if *end > to {
                return;
            }
            self.stack.pop();
        }
        self.now = to;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn nested(spans: &[(u32, u32, i64, i64)]) -> Nested {
        let mut nesting = Nesting::default();
        spans.iter().for_each(|(row, name, start, end)| nesting.add(*row, *name, *start, *end));
        nesting.measure().unwrap()
    }

    fn time(nested: &Nested, name: u32) -> (u64, i128, i128) {
        nested.of.get(&name).map(|time| (time.calls, time.total, time.own)).unwrap()
    }

    #[test]
    fn what_lies_inside_is_not_the_outer_ones_own() {
        // A step that contains a forward pass, with another of the same name inside it, and a mask; the file has them in another
        // order.
        let found = nested(&[(0, 2, 60, 80), (0, 1, 10, 50), (0, 1, 20, 30), (0, 0, 0, 100), (1, 1, 0, 7)]);
        assert_eq!(time(&found, 0), (1, 100, 40));
        assert_eq!(time(&found, 1), (3, 47, 47));
        assert_eq!(time(&found, 2), (1, 20, 20));
        assert_eq!((found.outermost, found.covered), (2, 107));
    }

    #[test]
    fn equal_spans_lie_inside_the_first() {
        let found = nested(&[(0, 0, 5, 9), (0, 1, 5, 9), (0, 2, 9, 12)]);
        assert_eq!((time(&found, 0), time(&found, 1)), ((1, 4, 0), (1, 4, 4)));
        assert_eq!((found.outermost, found.covered), (2, 7));
    }

    #[test]
    fn too_many_are_not_told_apart() {
        let mut nesting = Nesting::new(3);
        (0..4).for_each(|n| nesting.add(0, 0, n, n + 1));
        assert_eq!(nesting.measure(), None);
        assert_eq!(Nesting::new(3).measure(), Some(Nested::default()));
    }

    proptest! {
        /// Compares with a check of every nanosecond, also for spans that overlap arbitrarily.
        #[test]
        fn every_moment_belongs_to_one(
            spans in prop::collection::vec((0..3_u32, 0..4_u32, 0..60_i64, 0..25_i64), 0..30)
        ) {
            let spans: Vec<(u32, u32, i64, i64)> =
                spans.into_iter().map(|(row, name, start, length)| (row, name, start, start + length)).collect();
            let found = nested(&spans);
            let (mut own, mut total, mut covered) = ([0; 4], [0; 4], 0);
            let moments = (0..3).flat_map(|row| (0..90).map(move |at| (row, at)));
            for (row, at) in moments {
                let here = || spans.iter().filter(|span| span.0 == row && (span.2..span.3).contains(&at));
                // The span that began last; of these the shortest; of these the last in the file.
                let last = here().max_by_key(|span| (span.2, Reverse(span.3)));
                if let Some(span) = last {
                    own[span.1 as usize] += 1;
                    covered += 1;
                }
                for (name, total) in total.iter_mut().enumerate() {
                    *total += i128::from(here().any(|span| span.1 as usize == name));
                }
            }
            for (name, time) in &found.of {
                prop_assert_eq!((time.own, time.total), (own[*name as usize], total[*name as usize]));
            }
            prop_assert_eq!(found.covered, covered);
            let inside = |a: &(u32, u32, i64, i64), b: &(u32, u32, i64, i64)| {
                a.0 == b.0 && a.2 >= b.2 && a.3 <= b.3 && (a.2, a.3) != (b.2, b.3)
            };
            let mut outer: Vec<(u32, i64, i64)> = spans
                .iter()
                .filter(|a| !spans.iter().any(|b| inside(a, b)))
                .map(|span| (span.0, span.2, span.3))
                .collect();
            outer.sort_unstable();
            outer.dedup();
            prop_assert_eq!(found.outermost, outer.len() as u64);
        }
    }
}
