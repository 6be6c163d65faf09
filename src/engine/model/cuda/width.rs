//! The number of tokens for which a step has room. Each width is recorded once, so there are only a few widths: powers of two.

/// The least number of slots of a step, because a product takes as long for this many as for one.
const LEAST_SLOTS: usize = 8;

/// The largest number of slots of a step that reads prompts, unless the rows alone need more.
const MOST_SLOTS: usize = 512;

/// The number of slots of a step, and how attention treats them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct StepWidth {
    /// The number of slots.
    pub slots: usize,
    /// Whether rows read many tokens at once. Then all their keys and values are written before any token attends to them.
    pub reads_prompts: bool,
}

/// The widths that the steps of a batch may have.
#[derive(Debug, Clone, Copy)]
pub(super) struct Widths {
    /// The number of slots per running row.
    of_row: usize,
    rows: usize,
}

impl Widths {
    /// Returns the widths for a batch of `rows` rows with `of_row` slots per running row.
    pub(super) fn new(rows: usize, of_row: usize) -> Self {
        Widths { of_row, rows }
    }

    /// Returns the largest number of slots of a step that reads no prompts.
    pub(super) fn few(self) -> usize {
        (self.of_row * self.rows).max(LEAST_SLOTS)
    }

    /// Returns the largest number of slots of any step.
    pub(super) fn most(self) -> usize {
        self.few().max(MOST_SLOTS)
    }

    /// Returns all widths of steps that read no prompts.
    pub(super) fn without_prompts(self) -> impl Iterator<Item = StepWidth> {
        let slots = std::iter::successors(Some(LEAST_SLOTS), |slots| Some(2 * slots));
        let widths = slots.take_while(move |slots| *slots < self.few()).chain([self.few()]);
        widths.map(|slots| StepWidth { slots, reads_prompts: false })
    }

    /// Returns the largest number of running rows in steps of a width without prompts.
    pub(super) fn rows(self, width: StepWidth) -> usize {
        (width.slots / self.of_row).clamp(1, self.rows)
    }

    /// Returns the width of a step with `running` running rows. `unread` is the number of unread prompt tokens, without the last token of
    /// each prompt.
    pub(super) fn of(self, running: usize, unread: usize) -> StepWidth {
        let wanted = (self.of_row * running + unread).next_power_of_two().max(LEAST_SLOTS);
        let reads_prompts = unread > 0;
        let most = if reads_prompts { self.most() } else { self.few() };
        StepWidth { slots: wanted.min(most), reads_prompts }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_that_runs_has_its_slots() {
        for (rows, of_row) in [(1, 1), (1, 2), (3, 1), (32, 2), (100, 2), (1024, 1)] {
            let widths = Widths::new(rows, of_row);
            let mut seen = std::collections::HashSet::new();
            for running in 1..=rows {
                for unread in [0, 1, 60, 300, 100_000] {
                    let StepWidth { slots, reads_prompts } = widths.of(running, unread);
                    assert!(slots >= running && slots <= widths.most(), "{rows}, {running}, {unread}");
                    assert!(reads_prompts || (slots >= of_row * running && slots <= widths.few()));
                    assert_eq!(reads_prompts, unread > 0);
                    seen.insert((slots, reads_prompts));
                    let width = StepWidth { slots, reads_prompts };
                    assert!(reads_prompts || widths.without_prompts().any(|of_all| of_all == width));
                    assert!(reads_prompts || widths.rows(width) >= running);
                }
            }
            assert!(seen.len() <= 16, "{seen:?}");
        }
        assert_eq!(Widths::new(32, 2).of(32, 0), StepWidth { slots: 64, reads_prompts: false });
        assert_eq!(Widths::new(32, 2).of(32, 100), StepWidth { slots: 256, reads_prompts: true });
        assert_eq!(Widths::new(100, 2).of(100, 0).slots, 200);
    }
}
