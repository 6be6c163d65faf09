//! The numbers of a skeleton: their texts, and the expressions that find them.

use std::collections::{BTreeMap, BTreeSet};

use drift_core::skeleton::{Neighbours, NumberPlace, Skeleton, Slot};
use drift_core::{Error, Result};

/// The most numbers of a slot: each of them is tried.
const MOST_NUMBERS: usize = 2_000_000;

/// Numbers of one slot with the same number of decimals.
pub(in crate::design) struct NumberForm {
    /// The slot.
    pub slot: usize,
    pub decimals: usize,
    pub numbers: Vec<String>,
}

/// The numbers of a skeleton and their places.
pub(in crate::design) struct SlotNumbers {
    pub places: BTreeSet<NumberPlace>,
    pub forms: Vec<NumberForm>,
    /// Whether the base puts a space before a text, which then belongs to a number with which the text begins.
    pub adds_space: bool,
}

/// The characters of numbers and of the white space before them, as SentencePiece spells them.
pub(in crate::design) const CHARACTERS: &str = "\u{2581}\n+-.0123456789";

/// The parts of a number that are never cut: white space, sign and integer, then the point and each decimal.
pub(in crate::design) const SPACE: usize = 0;
pub(in crate::design) const HEAD: usize = 1;
pub(in crate::design) const POINT: usize = 2;

impl SlotNumbers {
    /// Returns the numbers of a skeleton.
    ///
    /// # Errors
    /// If it has none, or a slot has too many.
    pub(in crate::design) fn of(skeleton: &Skeleton, adds_space: bool) -> Result<Self> {
        let mut places = skeleton.number_places();
        for place in places.clone().into_iter().filter(|place| adds_space && place.space.is_empty()) {
            let Some(before) = place.before.as_ref().filter(|before| before.contains(&None)) else {
                continue;
            };
            let others: BTreeSet<Option<u8>> = before.iter().copied().filter(Option::is_some).collect();
            places.remove(&place);
            places.insert(NumberPlace { space: " ".into(), before: Some([None].into()), ..place.clone() });
            if !others.is_empty() {
                places.insert(NumberPlace { before: Some(others), ..place });
            }
        }
        if places.is_empty() {
            let problem = "has no slot of numbers";
            return Err(Error::input(
                &skeleton.name,
                problem,
                "give a skeleton with decimals, integers or bins",
            ));
        }
        let mut forms = Vec::new();
        for slot in places.iter().map(|place| place.slot).collect::<BTreeSet<usize>>() {
            forms.extend(forms_of(slot, &skeleton.slots[slot]).ok_or_else(|| {
                let problem = format!("slot `{}` has too many numbers", skeleton.slots[slot].name);
                let remedy = "give it a smaller range, or fewer decimals";
                Error::input(&skeleton.name, problem, remedy)
            })?);
        }
        // The longest first: an alternation takes the first alternative that matches.
        forms.sort_by_key(|form: &NumberForm| std::cmp::Reverse(form.decimals));
        Ok(SlotNumbers { places, forms, adds_space })
    }

    /// Returns the numbers of decimals.
    pub(in crate::design) fn decimals(&self) -> BTreeSet<usize> {
        self.forms.iter().map(|form| form.decimals).collect()
    }

    /// Returns whether a number with its white space may hold a text. White space before that belongs to it, if it is known.
    pub(in crate::design) fn may_hold(&self, text: &str) -> bool {
        let mut spaces = self.places.iter().map(|place| &*place.space);
        match text.trim().is_empty() {
            true => spaces.any(|space| space.contains(text)),
            false => text.trim().chars().all(|c| matches!(c, '+' | '-' | '.' | '0'..='9')),
        }
    }

    /// Returns the forms with so many decimals.
    pub(in crate::design) fn with(&self, decimals: usize) -> impl Iterator<Item = &NumberForm> {
        self.forms.iter().filter(move |form| form.decimals == decimals)
    }

    /// Returns the white space that may stand before the numbers of a form.
    pub(in crate::design) fn spaces(&self, form: &NumberForm) -> BTreeSet<&str> {
        self.places.iter().filter(|place| place.slot == form.slot).map(|place| &*place.space).collect()
    }

    /// Returns whether white space stands before numbers with so many decimals.
    pub(in crate::design) fn is_spaced(&self, decimals: usize) -> bool {
        self.with(decimals).any(|form| self.spaces(form).iter().any(|space| !space.is_empty()))
    }

    /// Returns the expression for the parts from one up to another of numbers with so many decimals.
    pub(in crate::design) fn pattern(&self, decimals: usize, from: usize, to: usize) -> String {
        let mut pattern = String::new();
        if from == SPACE && to > SPACE {
            let spaces = self.with(decimals).flat_map(|form| self.spaces(form)).collect::<BTreeSet<_>>();
            let spaces = spaces.into_iter().rev().filter(|space| to > HEAD || !space.is_empty());
            pattern += &any_of(spaces.map(escaped));
        }
        if (from..to).contains(&HEAD) {
            let heads = self.with(decimals).map(NumberForm::head).collect::<BTreeSet<_>>();
            pattern += &any_of(heads.into_iter().rev());
        }
        if (from..to).contains(&POINT) {
            pattern += "\\.";
        }
        match to.saturating_sub(from.max(POINT + 1)) {
            0 => {}
            digits => pattern += &format!("[0-9]{{{digits}}}"),
        }
        pattern
    }

    /// Returns the expression that finds the numbers in texts, and the one for a number alone.
    pub(in crate::design) fn patterns(&self) -> [String; 2] {
        let (mut isolating, mut alone) = (Vec::new(), BTreeSet::new());
        for form in &self.forms {
            let digits =
                if form.decimals == 0 { String::new() } else { format!("\\.[0-9]{{{}}}", form.decimals) };
            for NumberPlace { space, before, after, .. } in
                self.places.iter().filter(|place| place.slot == form.slot)
            {
                let number = format!("{}{}{digits}", escaped(space), form.head());
                isolating.push(format!(
                    "{}{number}{}",
                    beside(before, ["(?<=", "\\A"]),
                    beside(after, ["(?=", "\\z"])
                ));
                alone.insert(number);
            }
        }
        [isolating, alone.into_iter().rev().collect()].map(|all| any_of(all.into_iter()))
    }
}

impl NumberForm {
    /// Returns the expression of a sign and an integer, by their number of digits.
    fn head(&self) -> String {
        let heads = self.numbers.iter().map(|number| number.split('.').next().unwrap_or_default());
        let digits = heads.map(|head| head.trim_start_matches(['-', '+']).len());
        let (least, most) =
            digits.fold((usize::MAX, 0), |(least, most), own| (least.min(own), most.max(own)));
        let sign = match self.numbers.iter().filter(|number| number.starts_with(['-', '+'])).count() {
            0 => "",
            all if all == self.numbers.len() => "[+-]",
            _ => "-?",
        };
        format!("{sign}[0-9]{{{least},{most}}}")
    }

    /// Returns the beginnings of the parts of a number behind white space, and its end.
    pub(in crate::design) fn offsets(&self, space: &str, number: &str) -> Vec<usize> {
        let head = number.find('.').unwrap_or(number.len());
        let mut offsets = vec![0, space.len(), space.len() + head];
        offsets.extend((head + 1..=number.len()).map(|at| space.len() + at));
        offsets
    }
}

/// Returns the numbers of a slot by their decimals; `None` if they are too many.
fn forms_of(slot: usize, of: &Slot) -> Option<Vec<NumberForm>> {
    let mut forms: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    for number in of.dfa().strings(MOST_NUMBERS)? {
        let decimals = number.split_once('.').map_or(0, |parts| parts.1.len());
        forms.entry(decimals).or_default().push(number);
    }
    Some(forms.into_iter().map(|(decimals, numbers)| NumberForm { slot, decimals, numbers }).collect())
}

/// Returns the expression for one of several.
fn any_of(all: impl Iterator<Item = String>) -> String {
    let all: Vec<String> = all.collect();
    if let [one] = &all[..] { one.clone() } else { format!("(?:{})", all.join("|")) }
}

/// Returns the expression for what stands beside a place.
fn beside(neighbours: &Neighbours, [look, border]: [&str; 2]) -> String {
    let Some(neighbours) = neighbours else { return String::new() };
    let bytes: String =
        neighbours.iter().flatten().map(|byte| escaped(&char::from(*byte).to_string())).collect();
    let class = (!bytes.is_empty()).then(|| format!("{look}[{bytes}])"));
    any_of(class.into_iter().chain(neighbours.contains(&None).then(|| border.to_owned())))
}

/// Returns the expression of a text of ASCII characters.
pub(in crate::design) fn escaped(text: &str) -> String {
    let bytes = text.bytes().map(|byte| match byte {
        b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' => char::from(byte).to_string(),
        _ => format!("\\x{byte:02x}"),
    });
    bytes.collect()
}
