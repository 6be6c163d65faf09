//! Sets of numbers as unions of closed intervals.

/// A union of disjoint closed intervals, in ascending order. Ends may be infinite.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Intervals {
    parts: Vec<[f64; 2]>,
}

impl Intervals {
    /// Returns all numbers.
    pub fn all() -> Self {
        Intervals::of(f64::NEG_INFINITY, f64::INFINITY)
    }

    /// Returns the numbers from `low` to `high`; empty if `low` is larger.
    pub fn of(low: f64, high: f64) -> Self {
        let mut set = Intervals::default();
        set.reset(low, high);
        set
    }

    /// Becomes the numbers from `low` to `high`.
    pub(super) fn reset(&mut self, low: f64, high: f64) {
        self.parts.clear();
        if low <= high {
            self.parts.push([low, high]);
        }
    }

    /// Returns the intervals, each as its ends.
    pub fn parts(&self) -> &[[f64; 2]] {
        &self.parts
    }

    /// Returns whether no number belongs to it.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Returns whether a number belongs to it.
    pub fn contains(&self, x: f64) -> bool {
        let at = self.parts.partition_point(|[_, high]| *high < x);
        self.parts.get(at).is_some_and(|[low, _]| *low <= x)
    }

    /// Returns its parts inside of a range.
    pub(super) fn inside(&self, [low, high]: [f64; 2]) -> impl Iterator<Item = [f64; 2]> {
        let parts = self.parts.iter().map(move |part| [part[0].max(low), part[1].min(high)]);
        parts.filter(|[low, high]| low <= high)
    }

    /// Adds the numbers from `low` to `high`, which begin at or above all numbers of the set.
    pub(super) fn push(&mut self, low: f64, high: f64) {
        match self.parts.last_mut() {
            Some(last) if last[1] >= low => last[1] = last[1].max(high),
            _ => self.parts.push([low, high]),
        }
    }

    /// Removes the numbers strictly between `low` and `high`.
    pub(super) fn remove(&mut self, low: f64, high: f64) {
        let mut at = 0;
        while at < self.parts.len() {
            let [from, to] = self.parts[at];
            if to <= low || from >= high {
                at += 1;
                continue;
            }
            match (from <= low, to >= high) {
                (true, true) => {
                    self.parts[at][1] = low;
                    self.parts.insert(at + 1, [high, to]);
                    return;
                }
                (true, false) => self.parts[at][1] = low,
                (false, true) => self.parts[at][0] = high,
                (false, false) => {
                    self.parts.remove(at);
                    continue;
                }
            }
            at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removed_numbers_leave_the_ends() {
        let mut set = Intervals::of(0.0, 10.0);
        set.remove(2.0, 3.0);
        set.remove(9.0, 12.0);
        set.remove(-1.0, 0.5);
        assert_eq!(set.parts(), [[0.5, 2.0], [3.0, 9.0]]);
        assert!(set.contains(2.0) && set.contains(3.0) && !set.contains(2.5) && !set.contains(9.5));
        set.remove(1.0, 4.0);
        assert_eq!(set.parts(), [[0.5, 1.0], [4.0, 9.0]]);
        set.remove(0.0, 20.0);
        assert!(set.is_empty() && !set.contains(1.0));
        assert!(Intervals::of(1.0, 0.0).is_empty() && Intervals::all().contains(1e300));
    }

    #[test]
    fn pushed_numbers_join_their_neighbours() {
        let mut set = Intervals::default();
        set.push(0.0, 1.0);
        set.push(1.0, 2.0);
        set.push(3.0, 4.0);
        assert_eq!(set.parts(), [[0.0, 2.0], [3.0, 4.0]]);
    }
}
