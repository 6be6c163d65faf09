//! Which part of the work belongs to a shard.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The largest number of shards.
const MOST: u32 = 100_000;

/// One of several shards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Shard {
    number: u32,
    of: u32,
}

impl Shard {
    /// Shard `number`, counted from 1, of `of` shards.
    ///
    /// # Errors
    /// If there is no such shard; the error says why.
    pub fn new(number: u32, of: u32) -> Result<Self, String> {
        match (number, of) {
            (_, 0) => Err("the number of shards must be at least 1".to_owned()),
            (_, of) if of > MOST => Err(format!("{of} shards are too many: at most {MOST}")),
            (0, _) => Err("the first shard is 1".to_owned()),
            (number, of) if number > of => Err(format!("there is no shard {number} of {of}")),
            (number, of) => Ok(Shard { number, of }),
        }
    }

    /// Returns the shard of a task in a Slurm array, from the variables `SLURM_ARRAY_TASK_ID`, `…_MIN`, `…_STEP` and `…_COUNT`
    /// (sbatch(1)).
    ///
    /// # Errors
    /// If the variables do not determine a shard; the error says why.
    pub fn of_slurm(variable: impl Fn(&str) -> Option<String>) -> Result<Self, String> {
        let number = |name: &str, default: Option<u32>| {
            let name = format!("SLURM_ARRAY_TASK_{name}");
            match (variable(&name), default) {
                (Some(text), _) => text.trim().parse().map_err(|_| format!("{name} is {text:?}, no number")),
                (None, Some(default)) => Ok(default),
                (None, None) => Err(format!("{name} is not set: this is not a task of a Slurm array")),
            }
        };
        let (id, of) = (number("ID", None)?, number("COUNT", None)?);
        let (first, step) = (number("MIN", Some(1))?, number("STEP", Some(1))?.max(1));
        let place = id.checked_sub(first).filter(|place| place % step == 0);
        let place = place.ok_or_else(|| format!("SLURM_ARRAY_TASK_ID {id} is outside its own array"))?;
        Shard::new(place / step + 1, of)
    }

    /// Returns the number of the shard, from 1.
    pub fn number(self) -> u32 {
        self.number
    }

    /// Returns the number of shards.
    pub fn of(self) -> u32 {
        self.of
    }

    /// Returns the shard's run of items with the given weights. The runs of all shards cover all items in order, and weigh about the
    /// same. An item belongs to the shard in whose share of the total weight its middle lies.
    pub(crate) fn run_of(self, weights: &[u64]) -> Range<usize> {
        // Items of weight 0 also take a little time.
        let weight = |item: &u64| u128::from(*item) + 1;
        let whole: u128 = weights.iter().map(weight).sum();
        let begin = |shard: u32| {
            let mut before = 0;
            let is_behind = |item: &u64| {
                // Twice the middle, so that it is an integer and rounding cannot give an item to two shards.
                let twice_middle = 2 * before + weight(item);
                before += weight(item);
                twice_middle * u128::from(self.of) >= 2 * whole * u128::from(shard)
            };
            weights.iter().position(is_behind).unwrap_or(weights.len())
        };
        begin(self.number - 1)..begin(self.number)
    }

    /// Returns whether the item at this index, from 0, belongs to the shard if items are dealt out in turn: every `of`-th.
    pub fn has(self, place: usize) -> bool {
        place % self.of as usize == self.number as usize - 1
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.of)
    }
}

impl FromStr for Shard {
    type Err = String;

    /// Parses a shard written as `3/8`.
    fn from_str(text: &str) -> Result<Self, String> {
        let numbers = text.split_once('/').and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
        let (number, of) = numbers.ok_or("give a shard and how many there are, such as 3/8")?;
        Shard::new(number, of)
    }
}

impl TryFrom<String> for Shard {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Shard> for String {
    fn from(shard: Shard) -> String {
        shard.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_is_in_one_shard() {
        for of in [1, 2, 7] {
            let shards: Vec<Shard> = (1..=of).map(|number| Shard::new(number, of).unwrap()).collect();
            for place in 0..40 {
                assert_eq!(shards.iter().filter(|shard| shard.has(place)).count(), 1);
            }
        }
    }

    #[test]
    fn runs_follow_each_other_and_weigh_about_the_same() {
        for weights in [vec![5; 12], vec![0, 0, 0], vec![1_000, 1, 1, 1], vec![1, 1, 1, 1_000], vec![7]] {
            for of in [1, 2, 3, 5, 40] {
                let runs = (1..=of).map(|number| Shard::new(number, of).unwrap().run_of(&weights));
                let end = runs.fold(0, |end, run| {
                    assert_eq!(run.start, end);
                    run.end
                });
                assert_eq!(end, weights.len());
            }
        }
        let runs: Vec<_> = (1..=4).map(|number| Shard { number, of: 4 }.run_of(&[3; 8])).collect();
        assert_eq!(runs, [0..2, 2..4, 4..6, 6..8]);
        let runs: Vec<_> = (1..=2).map(|number| Shard { number, of: 2 }.run_of(&[1, 9])).collect();
        assert_eq!(runs, [0..1, 1..2]);
    }

    #[test]
    fn what_is_no_shard_is_refused() {
        assert_eq!("3/8".parse::<Shard>().unwrap().to_string(), "3/8");
        for (text, part) in [
            ("5/4", "no shard 5 of 4"),
            ("0/4", "first shard is 1"),
            ("1/0", "must be at least 1"),
            ("1/100001", "at most 100000"),
            ("3", "such as 3/8"),
            ("-1/4", "such as 3/8"),
            ("1/2/3", "such as 3/8"),
        ] {
            let error = text.parse::<Shard>().unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
        assert!(serde_json::from_str::<Shard>("\"9/8\"").is_err());
    }

    #[test]
    fn tasks_of_slurm_are_shards() {
        let of = |variables: &[(&str, &str)]| {
            Shard::of_slurm(|name| {
                let own = name.strip_prefix("SLURM_ARRAY_TASK_")?;
                variables.iter().find(|(known, _)| *known == own).map(|(_, value)| (*value).to_owned())
            })
        };
        assert_eq!(of(&[("ID", "3"), ("COUNT", "8")]).unwrap().to_string(), "3/8");
        assert_eq!(of(&[("ID", "0"), ("MIN", "0"), ("COUNT", "4")]).unwrap().to_string(), "1/4");
        let stepped = [("ID", "14"), ("MIN", "10"), ("STEP", "2"), ("COUNT", "5")];
        assert_eq!(of(&stepped).unwrap().to_string(), "3/5");
        assert!(of(&[]).unwrap_err().contains("not a task of a Slurm array"));
        assert!(of(&[("ID", "x"), ("COUNT", "8")]).unwrap_err().contains("no number"));
        assert!(of(&[("ID", "0"), ("COUNT", "8")]).unwrap_err().contains("outside its own array"));
    }
}
