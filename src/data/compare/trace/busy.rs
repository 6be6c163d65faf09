//! The busy times of devices and threads: unions of intervals that arrive in any order, and the gaps between them.
//!
//! New intervals are collected until there are half as many as joined ones; then both are merged. So n intervals take O(n log n) in
//! any order, and intervals that arrive in order are joined at once. If a trace has more gaps than fit, the shortest gaps are
//! closed. The resolution is the length up to which gaps were closed, and the closed time is an upper bound of the error of the
//! busy time.

/// The largest number of joined intervals that are kept, 16 bytes each.
const MAX_INTERVALS: usize = 8 << 20;

/// At least this many new intervals are collected before they are joined.
const MIN_FRESH: usize = 1 << 16;

/// The first resolution in nanoseconds; each next one is twice as coarse.
const FIRST_RESOLUTION: i64 = 100;

/// The limits of the length classes of gaps, in nanoseconds, exclusive; longer gaps form the last class.
pub(super) const GAP_LIMITS: [i64; 4] = [10_000, 100_000, 1_000_000, 10_000_000];

/// The begin and end of an interval, in nanoseconds.
type Interval = (i64, i64);

/// Unions of intervals, one per key. A key is a device or a thread.
pub(super) struct Busy {
    unions: Vec<Union>,
    fresh: usize,
    joined: usize,
    resolution: i64,
    closed: i64,
    most: usize,
}

#[derive(Default)]
struct Union {
    /// Joined intervals, in order and without overlap; all gaps are longer than the resolution.
    joined: Vec<Interval>,
    /// New intervals, in the order of arrival.
    fresh: Vec<Interval>,
}

/// The results, by key.
#[derive(Default)]
pub(super) struct BusyTimes {
    /// The busy times of each key; `None` for keys without intervals.
    pub of: Vec<Option<BusySpan>>,
    /// Gaps up to this many nanoseconds count as busy; 0 if no gap was closed.
    pub resolution: i64,
    /// An upper bound of the total length of the closed gaps, in nanoseconds.
    pub closed: i64,
}

/// The busy time and the gaps of a key, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct BusySpan {
    /// The time from the first begin to the last end.
    pub span: i64,
    /// The part of the span that is in at least one interval.
    pub busy: i64,
    /// The number and total time of gaps in each length class of [`GAP_LIMITS`].
    pub gaps: [(u64, i64); GAP_LIMITS.len() + 1],
    pub longest_gap: i64,
}

impl Default for Busy {
    fn default() -> Self {
        Busy::new(MAX_INTERVALS)
    }
}

impl Busy {
    fn new(most: usize) -> Self {
        Busy { unions: Vec::new(), fresh: 0, joined: 0, resolution: 0, closed: 0, most }
    }

    /// Adds an interval from `start` to `end` to the union of a key.
    pub(super) fn add(&mut self, key: u32, start: i64, end: i64) {
        let key = key as usize;
        if self.unions.len() <= key {
            self.unions.resize_with(key + 1, Union::default);
        }
        let fresh = &mut self.unions[key].fresh;
        // Operators are nested, and their events mostly arrive in order.
        if let Some(last) = fresh.last_mut()
            && (last.0..=last.1).contains(&start)
        {
            last.1 = last.1.max(end);
            return;
        }
        fresh.push((start, end));
        self.fresh += 1;
        // Half as many as are joined, so that the cost of joining is spread over the new intervals.
        if self.fresh > MIN_FRESH.min(self.most).max(self.joined / 2) {
            self.join();
        }
    }

    /// Joins the new intervals, and closes gaps until there is room.
    fn join(&mut self) {
        for union in &mut self.unions {
            self.closed += union.join(self.resolution);
        }
        let count = |unions: &[Union]| unions.iter().map(|union| union.joined.len()).sum();
        (self.fresh, self.joined) = (0, count(&self.unions));
        if self.joined <= self.most {
            return;
        }
        // Leaves room for more, so that this is rare. At least one interval per key remains.
        while self.joined > (self.most / 2).max(self.unions.len()) {
            self.resolution = self.resolution.saturating_mul(2).max(FIRST_RESOLUTION);
            for union in &mut self.unions {
                self.closed += union.close(self.resolution);
            }
            self.joined = count(&self.unions);
        }
    }

    /// Returns the results over all intervals.
    pub(super) fn measure(mut self) -> BusyTimes {
        self.join();
        let of = self.unions.iter().map(|union| occupied(&union.joined)).collect();
        BusyTimes { of, resolution: self.resolution, closed: self.closed }
    }
}

impl Union {
    /// Merges the new intervals into the joined ones. Returns the time of the gaps that the resolution closed.
    fn join(&mut self, resolution: i64) -> i64 {
        if self.fresh.is_empty() {
            return 0;
        }
        let mut fresh = std::mem::take(&mut self.fresh);
        fresh.sort_unstable();
        // Intervals that end before the first new one begins stay unchanged.
        let from = self.joined.partition_point(|interval| interval.1 < fresh[0].0);
        let rest = self.joined.split_off(from);
        let (mut rest, mut fresh) = (rest.into_iter().peekable(), fresh.into_iter().peekable());
        let mut closed = 0;
        while let Some(next) = match (rest.peek(), fresh.peek()) {
            (Some(a), Some(b)) if a <= b => rest.next(),
            (Some(_), None) => rest.next(),
            _ => fresh.next(),
        } {
            closed += append(&mut self.joined, next, resolution);
        }
        closed
    }

    /// Closes gaps up to a new resolution. Returns their time.
    fn close(&mut self, resolution: i64) -> i64 {
        let mut joined = Vec::new();
        let closed = self.joined.iter().map(|interval| append(&mut joined, *interval, resolution)).sum();
        self.joined = joined;
        closed
    }
}

/// Appends an interval that does not begin before the last one. Returns the time of the gap if it was closed, otherwise 0.
fn append(joined: &mut Vec<Interval>, next: Interval, resolution: i64) -> i64 {
    match joined.last_mut() {
        Some(last) if next.0 - last.1 <= resolution => {
            // Intervals that overlap close no gap.
            let gap = (next.0 - last.1).max(0);
            last.1 = last.1.max(next.1);
            gap
        }
        _ => {
            joined.push(next);
            0
        }
    }
}

fn occupied(joined: &[Interval]) -> Option<BusySpan> {
    let (first, last) = (joined.first()?, joined.last()?);
    let mut occupied = BusySpan { span: last.1 - first.0, ..BusySpan::default() };
    occupied.busy = joined.iter().map(|(start, end)| end - start).sum();
    for pair in joined.windows(2) {
        let gap = pair[1].0 - pair[0].1;
        let (count, time) = &mut occupied.gaps[GAP_LIMITS.partition_point(|limit| *limit <= gap)];
        (*count, *time) = (*count + 1, *time + gap);
        occupied.longest_gap = occupied.longest_gap.max(gap);
    }
    Some(occupied)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn measured(intervals: &[Interval], most: usize) -> (Option<BusySpan>, i64, i64) {
        let mut busy = Busy::new(most);
        intervals.iter().for_each(|(start, end)| busy.add(0, *start, *end));
        let measured = busy.measure();
        (measured.of.first().copied().flatten(), measured.resolution, measured.closed)
    }

    /// Returns a reference that checks every nanosecond by itself.
    fn naive(intervals: &[Interval]) -> Option<BusySpan> {
        let first = intervals.iter().map(|interval| interval.0).min()?;
        let last = intervals.iter().map(|interval| interval.1).max()?;
        let is_busy = |at: i64| intervals.iter().any(|(start, end)| (*start..*end).contains(&at));
        let mut occupied = BusySpan { span: last - first, ..BusySpan::default() };
        let mut gap = 0;
        for at in first..=last {
            // Intervals of zero length end a gap too.
            if at == last || is_busy(at) || intervals.iter().any(|interval| interval.0 == at) {
                if gap > 0 {
                    let (count, time) = &mut occupied.gaps[0];
                    (*count, *time) = (*count + 1, *time + gap);
                    occupied.longest_gap = occupied.longest_gap.max(gap);
                }
                gap = 0;
            }
            if at < last {
                (occupied.busy, gap) =
                    if is_busy(at) { (occupied.busy + 1, 0) } else { (occupied.busy, gap + 1) };
            }
        }
        Some(occupied)
    }

    fn intervals() -> impl Strategy<Value = Vec<Interval>> {
        let interval = (-300..300_i64, 0..40_i64).prop_map(|(start, length)| (start, start + length));
        prop::collection::vec(interval, 0..60)
    }

    proptest! {
        #[test]
        fn the_union_is_that_of_a_naive_count(intervals in intervals()) {
            let (occupied, resolution, closed) = measured(&intervals, MAX_INTERVALS);
            prop_assert_eq!((occupied, resolution, closed), (naive(&intervals), 0, 0));
        }

        #[test]
        fn small_memory_changes_no_more_than_it_says(intervals in intervals(), most in 1..12_usize) {
            let (occupied, resolution, closed) = measured(&intervals, most);
            let exact = naive(&intervals);
            prop_assert_eq!(occupied.map(|o| o.span), exact.map(|e| e.span));
            if let (Some(occupied), Some(exact)) = (occupied, exact) {
                prop_assert!(occupied.busy >= exact.busy && occupied.busy <= exact.busy + closed);
                prop_assert!(resolution > 0 || occupied == exact);
                prop_assert!(occupied.longest_gap == exact.longest_gap || exact.longest_gap <= resolution);
            }
        }

        #[test]
        fn joining_in_between_changes_nothing(intervals in intervals(), every in 1..9_usize) {
            let mut busy = Busy::default();
            for (index, (start, end)) in intervals.iter().enumerate() {
                busy.add(0, *start, *end);
                if index % every == 0 {
                    busy.join();
                }
            }
            prop_assert_eq!(busy.measure().of.first().copied().flatten(), naive(&intervals));
        }
    }

    #[test]
    fn gaps_are_told_apart_by_length() {
        let starts = [0, 10_000, 110_000, 1_110_000, 11_110_000, 111_110_000];
        let intervals: Vec<Interval> = starts.iter().map(|start| (*start, start + 1)).collect();
        let occupied = measured(&intervals, MAX_INTERVALS).0.unwrap();
        assert_eq!(occupied.gaps.map(|(count, _)| count), [1, 1, 1, 1, 1]);
        assert_eq!(occupied.gaps.map(|(_, time)| time), [9_999, 99_999, 999_999, 9_999_999, 99_999_999]);
        assert_eq!((occupied.busy, occupied.longest_gap), (6, 99_999_999));
    }

    #[test]
    fn many_gaps_are_closed_and_that_is_said() {
        let intervals: Vec<Interval> = (0..200_000).map(|n| (n * 1_000, n * 1_000 + 10 + n % 900)).collect();
        let (occupied, resolution, closed) = measured(&intervals, 50_000);
        let exact = measured(&intervals, MAX_INTERVALS).0.unwrap().busy;
        let busy = occupied.unwrap().busy;
        assert!(
            resolution >= 100 && busy > exact && busy <= exact + closed,
            "{resolution} {busy} {exact} {closed}"
        );
    }
}
