//! Attainable numbers of FREE tokens of tokenizers without counting tables: shape by shape, part by part.
//!
//! A pre-tokenizer cuts a block into parts, and the model turns each part into tokens by itself. Where it cuts depends
//! on the *shape* of the block: signs, decimals, and the class of each integer part (an extended tokenizer cuts numbers
//! of its range otherwise than larger ones). So all shapes are cut, every part is filled with all digits that it may
//! hold, and all sums are gone through. That shape alone decides is tried on random digits of each shape, not proved;
//! an integer part's class is found by cutting all of them.

use std::collections::{BTreeMap, HashMap};
use std::sync::{PoisonError, RwLock};

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use super::attainable::{
    Attainable, Spellings, USUAL, best, fill, free_tokens, joined, keep, keep_all, misfit,
};
use super::grammar::{INTEGERS, Number, Numbers, Space};
use drift_core::error::Result;
use drift_core::tokenizer::{Counter, Tokenizer};

/// A part with more fillings than this is not gone through.
const MAX_FILLINGS: usize = 200_000;

/// Random placeholders whose cuts must be those of their shape.
const TRIED: usize = 4_000;

/// The byte offsets inside a block where one part ends and the next begins.
type Cuts = Vec<usize>;

/// A number's shape: sign, class of its integer part, decimals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Kind {
    negative: bool,
    class: usize,
    decimals: u8,
}

/// What a part may hold.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Slot {
    /// This character.
    Literal(char),
    /// The digits `from..to` of an integer part of this class.
    Integer { class: usize, from: usize, to: usize },
    /// A digit of a fraction.
    Fraction,
    /// The last one in the stripped dialect.
    NotZero,
}

/// All sums of some shapes. A class holds integer parts of one length, so all of them are below [`USUAL`] or none.
#[derive(Default)]
struct Sums {
    usual: Spellings,
    other: Spellings,
}

struct Parts<'a> {
    tokenizer: &'a Tokenizer,
    space: Space,
    /// Integer parts that are cut alike.
    classes: Vec<Vec<u16>>,
    /// Class of each integer part.
    class_of: Vec<usize>,
    /// What was counted: part by part.
    known: RwLock<HashMap<Vec<Slot>, Option<Spellings>>>,
}

/// Goes through all shapes of a space.
///
/// # Errors
/// If the tokenizer cannot encode a placeholder.
pub(super) fn of_parts(counter: &Counter<'_>, space: Space) -> Result<Attainable> {
    let best = match Parts::learn(counter.tokenizer(), space)? {
        Some(parts) => parts.best()?,
        None => Err("its pre-tokenizer does not cut a block into parts"),
    };
    match best {
        Ok(best) => match misfit(counter, &best)? {
            None => Ok(Attainable { best, complete: Ok(counted()), proved: false }),
            Some(why) => probed(counter, space, why),
        },
        Err(why) => probed(counter, space, why),
    }
}

fn counted() -> String {
    format!(
        "blocks are cut into parts by their shape alone (tried on {TRIED} random strings, not proved), and all parts were \
         counted"
    )
}

/// What random strings of every shape come to: not all there is.
fn probed(counter: &Counter<'_>, space: Space, why: impl Into<String>) -> Result<Attainable> {
    let mut random = ChaCha8Rng::seed_from_u64(0);
    let mut found = BTreeMap::new();
    // Usual integer parts first: `fill` keeps what is there, so larger ones only serve numbers of tokens that usual ones do not
    // come to.
    for limit in [USUAL, INTEGERS] {
        let below = |number: Number| Number { integer: number.integer % limit, ..number };
        let texts: Vec<String> =
            (0..TRIED).map(|_| space.text(&space.random(&mut random).map(below))).collect();
        let counts: Vec<u8> =
            texts.par_iter().map(|text| free_tokens(counter, text)).collect::<Result<_>>()?;
        let mut drawn = Spellings::new();
        counts.into_iter().zip(texts).for_each(|(tokens, text)| keep(&mut drawn, tokens.into(), text));
        fill(&mut found, best(drawn));
    }
    Ok(Attainable { best: found, complete: Err(why.into()), proved: false })
}

impl<'a> Parts<'a> {
    /// Cuts every integer part; `None` if the pre-tokenizer rewrites blocks or does not cut them.
    fn learn(tokenizer: &'a Tokenizer, space: Space) -> Result<Option<Self>> {
        let signature = |integer: u16| -> Result<Option<Vec<Cuts>>> {
            space.decimals().map(|decimals| cuts(tokenizer, &space.text(&like(integer, decimals)))).collect()
        };
        let signatures: Vec<Option<Vec<Cuts>>> =
            (0..INTEGERS).into_par_iter().map(signature).collect::<Result<_>>()?;
        let mut numbers: HashMap<(usize, Vec<Cuts>), usize> = HashMap::new();
        let (mut classes, mut class_of) = (Vec::<Vec<u16>>::new(), Vec::new());
        for (integer, signature) in (0..INTEGERS).zip(signatures) {
            let Some(signature) = signature else { return Ok(None) };
            // The length belongs to the class: a shape must fix how many characters its parts have.
            let digits = integer.to_string().len();
            let class = *numbers.entry((digits, signature)).or_insert_with(|| {
                classes.push(Vec::new());
                classes.len() - 1
            });
            classes[class].push(integer);
            class_of.push(class);
        }
        Ok(Some(Parts { tokenizer, space, classes, class_of, known: RwLock::default() }))
    }

    /// The best of all shapes, usual integer parts first; or why they cannot be told.
    fn best(&self) -> Result<std::result::Result<BTreeMap<u8, String>, &'static str>> {
        if !self.shape_decides()? {
            return Ok(Err("its pre-tokenizer cuts blocks of one shape differently"));
        }
        let kinds = self.kinds();
        let firsts: Vec<(Kind, Kind)> = kinds.iter().flat_map(|x| kinds.iter().map(|y| (*x, *y))).collect();
        let sums: Vec<Option<Sums>> = firsts
            .par_iter()
            .map(|&(x, y)| {
                let mut sums = Sums::default();
                for &z in &kinds {
                    let Some(spellings) = self.shape([x, y, z])? else { return Ok(None) };
                    let usual = [x, y, z].iter().all(|kind| self.classes[kind.class][0] < USUAL);
                    keep_all(if usual { &mut sums.usual } else { &mut sums.other }, spellings);
                }
                Ok(Some(sums))
            })
            .collect::<Result<_>>()?;
        let mut all = Sums::default();
        for sums in sums {
            let Some(sums) = sums else {
                return Ok(Err("a part of a block has too many fillings, or a token crosses a bracket"));
            };
            keep_all(&mut all.usual, sums.usual);
            keep_all(&mut all.other, sums.other);
        }
        let mut found = best(all.usual);
        fill(&mut found, best(all.other));
        Ok(Ok(found))
    }

    fn kinds(&self) -> Vec<Kind> {
        let mut kinds = Vec::new();
        for class in 0..self.classes.len() {
            for decimals in self.space.decimals() {
                kinds.extend([false, true].map(|negative| Kind { negative, class, decimals }));
            }
        }
        kinds
    }

    /// Whether random placeholders are cut as the smallest of their shape.
    fn shape_decides(&self) -> Result<bool> {
        let mut random = ChaCha8Rng::seed_from_u64(1);
        let drawn: Vec<Numbers> = (0..TRIED).map(|_| self.space.random(&mut random)).collect();
        let alike: Vec<bool> = drawn
            .par_iter()
            .map(|numbers| {
                let kinds = numbers.map(|number| Kind {
                    negative: number.negative,
                    class: self.class_of[usize::from(number.integer)],
                    decimals: number.decimals,
                });
                Ok(cuts(self.tokenizer, &self.space.text(numbers))?
                    == cuts(self.tokenizer, &self.space.text(&self.smallest(kinds)))?)
            })
            .collect::<Result<_>>()?;
        Ok(alike.into_iter().all(|alike| alike))
    }

    fn smallest(&self, kinds: [Kind; 3]) -> Numbers {
        kinds.map(|kind| Number {
            negative: kind.negative,
            integer: self.classes[kind.class][0],
            decimals: kind.decimals,
            // 1 and not 0, since the last digit of the stripped dialect is not zero.
            fraction: u32::from(kind.decimals > 0),
        })
    }

    /// The sums of one shape; `None` if they cannot be told.
    fn shape(&self, kinds: [Kind; 3]) -> Result<Option<Spellings>> {
        let Some(cuts) = cuts(self.tokenizer, &self.space.text(&self.smallest(kinds)))? else {
            return Ok(None);
        };
        let slots = self.slots(kinds);
        let mut sums = Spellings::from([((0, 0), String::new())]);
        let mut start = 0;
        for end in cuts {
            let Some(part) = self.part(part_slots(&slots, start, end)) else { return Ok(None) };
            sums = joined(&sums, &part);
            start = end;
        }
        Ok(Some(sums))
    }

    /// One slot per character of a shape's texts.
    fn slots(&self, kinds: [Kind; 3]) -> Vec<Slot> {
        let mut slots = Vec::with_capacity(32);
        for (axis, kind) in kinds.into_iter().enumerate() {
            slots.extend(self.space.0.separator().chars().filter(|_| axis > 0).map(Slot::Literal));
            slots.extend(kind.negative.then_some(Slot::Literal('-')));
            let digits = self.classes[kind.class][0].to_string().len();
            slots.extend((0..digits).map(|at| Slot::Integer { class: kind.class, from: at, to: at + 1 }));
            if kind.decimals > 0 {
                slots.push(Slot::Literal('.'));
            }
            slots.extend((0..kind.decimals).map(|_| Slot::Fraction));
            // The stripped dialect removes trailing zeros, so its last digit is none.
            if kind.decimals > 0 && self.space.0.is_stripped() {
                slots.pop();
                slots.push(Slot::NotZero);
            }
        }
        slots
    }

    /// The spellings of a part by tokens.
    fn part(&self, slots: Vec<Slot>) -> Option<Spellings> {
        // A lock is only poisoned if another thread panicked while it held it; what it holds is whole all the same.
        if let Some(known) = self.known.read().unwrap_or_else(PoisonError::into_inner).get(&slots) {
            return known.clone();
        }
        let counted = self.count(&slots);
        self.known.write().unwrap_or_else(PoisonError::into_inner).insert(slots, counted.clone());
        counted
    }

    fn count(&self, slots: &[Slot]) -> Option<Spellings> {
        let mut texts = vec![String::new()];
        for slot in slots {
            let fillings = self.fillings(slot);
            // The product is looked at before it is made, since a long run of digits has more fillings than memory holds.
            if texts.len() * fillings.len() > MAX_FILLINGS {
                return None;
            }
            texts =
                texts.iter().flat_map(|head| fillings.iter().map(move |f| format!("{head}{f}"))).collect();
        }
        let mut counted = Spellings::new();
        for text in texts {
            let tokens = self.tokenizer.model_ids(&text)?.len();
            keep(&mut counted, tokens as u16, text);
        }
        Some(counted)
    }

    fn fillings(&self, slot: &Slot) -> Vec<String> {
        match *slot {
            Slot::Literal(character) => vec![character.to_string()],
            Slot::Integer { class, from, to } => {
                let digits = |integer: &u16| integer.to_string()[from..to].to_owned();
                let mut all: Vec<String> = self.classes[class].iter().map(digits).collect();
                all.sort();
                all.dedup();
                all
            }
            Slot::Fraction => (0..10).map(|digit| digit.to_string()).collect(),
            Slot::NotZero => (1..10).map(|digit| digit.to_string()).collect(),
        }
    }
}

/// The slots of a part; neighbouring digits of an integer part together, for they are not all of any digits.
fn part_slots(slots: &[Slot], start: usize, end: usize) -> Vec<Slot> {
    let mut part: Vec<Slot> = Vec::new();
    for slot in &slots[start..end] {
        match (part.last_mut(), slot) {
            (Some(Slot::Integer { class, to, .. }), Slot::Integer { class: same, from, to: next })
                if *class == *same && *to == *from =>
            {
                *to = *next;
            }
            _ => part.push(slot.clone()),
        }
    }
    part
}

/// A placeholder with an integer part on x, of so many decimals.
fn like(integer: u16, decimals: u8) -> Numbers {
    let fraction = u32::from(decimals > 0);
    let number = |integer| Number { negative: false, integer, decimals, fraction };
    [number(integer), number(0), number(0)]
}

/// Where the parts of a block end, the last at its end; the sign of x, which stands beside the bracket, is a part of its
/// own. `None` if the pre-tokenizer rewrites the text, or does not cut the block from the text around it.
fn cuts(tokenizer: &Tokenizer, placeholder: &str) -> Result<Option<Cuts>> {
    // An atom on both sides, since pre-tokenizers may join a bracket with what stands beside it (`]<`, `>[`).
    const BEFORE: &str = "[C]<";
    let whole = format!("{BEFORE}{placeholder}>[C]");
    let pieces = tokenizer.pre_tokens(&tokenizer.normalized(&whole)?)?;
    if pieces.len() < 2 || pieces.concat() != whole {
        return Ok(None);
    }
    let (start, end) = (BEFORE.len(), BEFORE.len() + placeholder.len());
    let sign = usize::from(placeholder.starts_with('-'));
    let mut at = 0;
    let mut cuts = Vec::new();
    for piece in pieces {
        let from = at;
        at += piece.len();
        if from < start && at > start {
            // The bracket's piece may hold the sign behind it, but no digit.
            if at > start + sign {
                return Ok(None);
            }
            cuts.extend((at > start).then_some(at - start));
        // The last piece would hold characters behind the block, so its tokens would depend on what follows.
        } else if from < end && at > end {
            return Ok(None);
        } else if from >= start && at <= end {
            cuts.push(at - start);
        }
    }
    Ok((cuts.last() == Some(&placeholder.len())).then_some(cuts))
}
