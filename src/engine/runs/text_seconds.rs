//! The share of each text in the time of its run.

use std::collections::{BTreeMap, BTreeSet};

/// A text of a run: the index of its molecule, and of the text among the molecule's texts.
pub(crate) type TextPlace = (usize, usize);

/// The time of a text, in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct TextSeconds {
    /// Wall time.
    pub wall: f64,
    /// CPU time; `None` on a GPU, or if the system does not report it.
    pub cpu: Option<f64>,
}

impl TextSeconds {
    const ZERO: TextSeconds = TextSeconds { wall: 0.0, cpu: Some(0.0) };

    fn plus(self, more: TextSeconds) -> Self {
        let cpu = self.cpu.zip(more.cpu).map(|(own, more)| own + more);
        TextSeconds { wall: self.wall + more.wall, cpu }
    }

    /// Returns the share of each of `texts` texts or conformers.
    pub(crate) fn shared_by(self, texts: usize) -> Self {
        let texts = texts.max(1) as f64;
        TextSeconds { wall: self.wall / texts, cpu: self.cpu.map(|cpu| cpu / texts) }
    }
}

/// Texts that finished together, and the time since the texts before them.
#[derive(Debug)]
struct Finish {
    texts: Vec<TextPlace>,
    seconds: TextSeconds,
}

/// When the texts of a run finished: a list for each shard, in order.
#[derive(Debug, Default)]
pub(crate) struct FinishTimes {
    shards: Vec<Vec<Finish>>,
}

impl FinishTimes {
    /// Adds texts that finished together, after those added before. There may be none, at the end or before an interruption.
    pub(crate) fn add(&mut self, texts: Vec<TextPlace>, seconds: TextSeconds) {
        if texts.is_empty() && seconds.wall == 0.0 {
            return;
        }
        let finish = Finish { texts, seconds };
        match self.shards.last_mut() {
            Some(shard) => shard.push(finish),
            None => self.shards.push(vec![finish]),
        }
    }

    /// Adds the texts of other shards.
    pub(crate) fn join(&mut self, more: FinishTimes) {
        self.shards.extend(more.shards);
    }

    /// Returns the share of each of these texts. Time without a text belongs to the texts that finish next, or to the last ones.
    pub(crate) fn shares(&self, texts: &BTreeSet<TextPlace>) -> BTreeMap<TextPlace, TextSeconds> {
        let mut shares = BTreeMap::new();
        for shard in &self.shards {
            add_shares(shard, texts, &mut shares);
        }
        shares
    }
}

fn add_shares(shard: &[Finish], texts: &BTreeSet<TextPlace>, shares: &mut BTreeMap<TextPlace, TextSeconds>) {
    // A text that was drawn twice counts where it finished last.
    let finishes = shard.iter().enumerate();
    let last: BTreeMap<TextPlace, usize> =
        finishes.flat_map(|(at, finish)| finish.texts.iter().map(move |text| (*text, at))).collect();
    let (mut seconds, mut latest) = (TextSeconds::ZERO, Vec::new());
    for (at, finish) in shard.iter().enumerate() {
        seconds = seconds.plus(finish.seconds);
        let own = finish.texts.iter().copied().filter(|text| texts.contains(text) && last[text] == at);
        let own: Vec<TextPlace> = own.collect();
        if !own.is_empty() {
            let share = seconds.shared_by(own.len());
            shares.extend(own.iter().map(|text| (*text, share)));
            (seconds, latest) = (TextSeconds::ZERO, own);
        }
    }
    let rest = seconds.shared_by(latest.len());
    for text in &latest {
        if let Some(share) = shares.get_mut(text) {
            *share = share.plus(rest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(wall: f64) -> TextSeconds {
        TextSeconds { wall, cpu: Some(wall * 2.0) }
    }

    fn sum(shares: &BTreeMap<TextPlace, TextSeconds>) -> f64 {
        shares.values().map(|share| share.wall).sum()
    }

    #[test]
    fn shares_sum_to_the_time() {
        let mut times = FinishTimes::default();
        times.add(vec![], seconds(1.0));
        times.add(vec![(0, 0), (2, 1)], seconds(3.0));
        times.add(vec![(1, 0)], seconds(0.5));
        times.add(vec![], seconds(0.25));
        let texts = BTreeSet::from([(0, 0), (2, 1), (1, 0)]);
        let shares = times.shares(&texts);
        assert_eq!(
            (shares[&(0, 0)], shares[&(2, 1)], shares[&(1, 0)]),
            (seconds(2.0), seconds(2.0), seconds(0.75))
        );
        assert_eq!(sum(&shares), 4.75);
        // Another shard does not take what is left of the first one.
        let mut other = FinishTimes::default();
        other.add(vec![(3, 0)], seconds(8.0));
        times.join(other);
        let shares = times.shares(&BTreeSet::from([(0, 0), (2, 1), (1, 0), (3, 0)]));
        assert_eq!((shares[&(1, 0)], shares[&(3, 0)]), (seconds(0.75), seconds(8.0)));
    }

    #[test]
    fn texts_that_were_drawn_again_count_once() {
        let mut times = FinishTimes::default();
        times.add(vec![(0, 0)], seconds(1.0));
        times.add(vec![(0, 0), (0, 1)], seconds(2.0));
        let shares = times.shares(&BTreeSet::from([(0, 0), (0, 1)]));
        assert_eq!((shares[&(0, 0)], sum(&shares)), (seconds(1.5), 3.0));
        // A text whose group did not finish is forgotten, but not its time.
        times.add(vec![(1, 0)], seconds(1.0));
        let shares = times.shares(&BTreeSet::from([(0, 0), (0, 1)]));
        assert_eq!((shares.len(), sum(&shares)), (2, 4.0));
    }

    #[test]
    fn unknown_cpu_seconds_stay_unknown() {
        let mut times = FinishTimes::default();
        times.add(vec![(0, 0)], TextSeconds { wall: 1.0, cpu: None });
        times.add(vec![(1, 0)], seconds(1.0));
        let shares = times.shares(&BTreeSet::from([(0, 0), (1, 0)]));
        assert_eq!((shares[&(0, 0)].cpu, shares[&(1, 0)].cpu), (None, Some(2.0)));
    }
}
