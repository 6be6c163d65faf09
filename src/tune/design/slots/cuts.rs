//! Where numbers are cut into pieces: the fewest new tokens for so many pieces a number.

use std::collections::{BTreeMap, BTreeSet};

use super::numbers::{HEAD, NumberForm, POINT, SPACE, SlotNumbers};
use crate::design::extension::base::BaseVocabulary;
use crate::design::scheme::expression::CUT_MARK;
use crate::design::scheme::space::{BaseTokens, MAX_NEW_TOKENS};

/// The parts at which numbers with so many decimals are cut.
pub(in crate::design) type Cuts = BTreeMap<usize, Vec<usize>>;

/// The pieces that a base lacks, by decimals and parts; `None` if they are too many or may not be tokens.
struct Lacking<'v> {
    numbers: &'v SlotNumbers,
    vocabulary: &'v BaseVocabulary<'v>,
    known: BTreeMap<[usize; 3], Option<BTreeSet<String>>>,
}

/// Cuts with the new tokens that they need.
#[derive(Clone)]
pub(in crate::design) struct CutNumbers {
    pub cuts: Cuts,
    pub new: Vec<String>,
}

/// Returns the number of parts of numbers with so many decimals.
fn parts(decimals: usize) -> usize {
    if decimals == 0 { POINT } else { POINT + 1 + decimals }
}

/// Returns the largest number of pieces into which every number can be cut.
pub(in crate::design) fn most_pieces(numbers: &SlotNumbers) -> usize {
    let all = numbers.decimals().into_iter();
    all.map(|decimals| parts(decimals) - usize::from(!numbers.is_spaced(decimals))).min().unwrap_or(0)
}

/// Returns cuts into so many pieces with few new tokens: those of each number of decimals in turn, until none gets better.
/// `None` if there are none with at most [`MAX_NEW_TOKENS`].
pub(in crate::design) fn cut_numbers(
    numbers: &SlotNumbers,
    pieces: usize,
    vocabulary: &BaseVocabulary<'_>,
) -> Option<CutNumbers> {
    let mut lacking = Lacking { numbers, vocabulary, known: BTreeMap::new() };
    let mut chosen: BTreeMap<usize, (Vec<usize>, BTreeSet<String>)> = BTreeMap::new();
    let mut least = usize::MAX;
    loop {
        for decimals in numbers.decimals() {
            let others: BTreeSet<String> =
                chosen.iter().filter(|one| *one.0 != decimals).flat_map(|one| one.1.1.clone()).collect();
            let from = if numbers.is_spaced(decimals) { HEAD } else { POINT };
            let mut best: Option<(usize, Vec<usize>, BTreeSet<String>)> = None;
            for cuts in combinations(from, parts(decimals), pieces - 1) {
                let Some(own) = lacking.of(decimals, &cuts) else { continue };
                let cost = own.difference(&others).count();
                if best.as_ref().is_none_or(|best| cost < best.0) {
                    best = Some((cost, cuts, own));
                }
            }
            let (_, cuts, own) = best?;
            chosen.insert(decimals, (cuts, own));
        }
        let new: BTreeSet<&String> = chosen.values().flat_map(|one| &one.1).collect();
        if new.len() >= least {
            let new: Vec<String> = new.into_iter().cloned().collect();
            let cuts = chosen.into_iter().map(|(decimals, one)| (decimals, one.0)).collect();
            return (new.len() as u64 <= MAX_NEW_TOKENS).then_some(CutNumbers { cuts, new });
        }
        least = new.len();
    }
}

/// Returns all choices of so many of the numbers from one up to another.
fn combinations(from: usize, to: usize, count: usize) -> Vec<Vec<usize>> {
    if count == 0 {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    for first in from..to {
        all.extend(
            combinations(first + 1, to, count - 1).into_iter().map(|rest| [vec![first], rest].concat()),
        );
    }
    all
}

impl Lacking<'_> {
    /// Returns the pieces that the base lacks if numbers with so many decimals are cut so.
    fn of(&mut self, decimals: usize, cuts: &[usize]) -> Option<BTreeSet<String>> {
        let mut all = BTreeSet::new();
        for [from, to] in spans(decimals, cuts) {
            let Lacking { numbers, vocabulary, .. } = self;
            let known = self.known.entry([decimals, from, to]);
            all.extend(known.or_insert_with(|| lacking(numbers, decimals, [from, to], vocabulary)).clone()?);
        }
        Some(all)
    }
}

fn spans(decimals: usize, cuts: &[usize]) -> impl Iterator<Item = [usize; 2]> {
    let starts = std::iter::once(SPACE).chain(cuts.iter().copied());
    starts.zip(cuts.iter().copied().chain([parts(decimals)])).map(|(from, to)| [from, to])
}

/// Returns the pieces of these parts that the base lacks.
fn lacking(
    numbers: &SlotNumbers,
    decimals: usize,
    [from, to]: [usize; 2],
    vocabulary: &BaseVocabulary<'_>,
) -> Option<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    for form in numbers.with(decimals) {
        for space in numbers.spaces(form) {
            for number in &form.numbers {
                let offsets = form.offsets(space, number);
                found.insert(format!("{space}{number}")[offsets[from]..offsets[to]].to_owned());
                if found.len() as u64 > MAX_NEW_TOKENS {
                    return None;
                }
            }
        }
    }
    found.retain(|piece| !piece.is_empty() && !vocabulary.holds(&vocabulary.spelled(piece)));
    let may_be_added = found.iter().all(|piece| !vocabulary.may_not_be_added(piece));
    may_be_added.then_some(found)
}

impl CutNumbers {
    /// Returns the pieces of a number behind white space.
    pub(in crate::design) fn pieces<'t>(
        &self,
        form: &NumberForm,
        space: &str,
        text: &'t str,
    ) -> Vec<&'t str> {
        let offsets = form.offsets(space, &text[space.len()..]);
        let cuts = self.cuts.get(&form.decimals).map_or(&[][..], Vec::as_slice);
        let pieces = spans(form.decimals, cuts).map(|[from, to]| &text[offsets[from]..offsets[to]]);
        pieces.filter(|piece| !piece.is_empty()).collect()
    }

    /// Returns the expression that cuts a text if it is exactly a number, and matches nowhere in any other text.
    pub(in crate::design) fn pattern(&self, numbers: &SlotNumbers) -> String {
        let (mut first, mut later) = (Vec::new(), Vec::new());
        for (decimals, cuts) in &self.cuts {
            let end = parts(*decimals);
            for [from, to] in spans(*decimals, cuts) {
                let piece = numbers.pattern(*decimals, from, to);
                let ahead = format!("(?={}\\z)", numbers.pattern(*decimals, to, end));
                match from {
                    SPACE => first.push(format!("\\A{piece}{ahead}")),
                    // Where no white space stands before the number, it begins with this piece.
                    HEAD => {
                        first.push(format!("\\A{piece}{ahead}"));
                        later.push(format!("(?<![0-9.+\\-]){piece}{ahead}"));
                    }
                    POINT => later.push(format!("{piece}{ahead}")),
                    _ => later.push(format!("(?<=\\.{}){piece}{ahead}", "[0-9]".repeat(from - POINT - 1))),
                }
            }
        }
        let later = if later.is_empty() { String::new() } else { format!("|(?!\\A)(?:{})", later.join("|")) };
        format!("{CUT_MARK}(?:{}){later})", first.join("|"))
    }
}
