//! The names of encodings: `fixed`, `stripped-3-spaces`, `binned-v1:LOW,HIGH,STEP`, `integers:SCALE,DIGITS`, `lines`, `fsq:N`, or
//! the path of a file.

use std::borrow::Cow;

use super::Encoding;
use super::decimal::{Precision, TrailingZeros};
use super::definition::{Definition, NumberFormat, Slots};
use super::index::{Bins, TailValues};
use super::reading::Reading;
use super::scale::{RoundTo, Scale};

/// Returns the definition of decimals between brackets.
const fn of_decimals(
    name: &'static str,
    zeros: TrailingZeros,
    decimals: usize,
    separator: &'static str,
) -> Definition {
    let precision = match Precision::new(decimals) {
        Some(precision) => precision,
        None => Precision::MOST,
    };
    Definition {
        name: Cow::Borrowed(name),
        slots: Slots::Atoms,
        open: Cow::Borrowed("<"),
        separator: Cow::Borrowed(separator),
        close: Cow::Borrowed(">"),
        numbers: 3,
        number: NumberFormat::Decimal { precision, zeros },
    }
}

/// The definitions of one kind for all numbers of decimals.
macro_rules! decimals {
    ($zeros:expr, $separator:literal, $($name:literal $decimals:literal),*) => {
        [$(of_decimals($name, $zeros, $decimals, $separator)),*]
    };
}

/// Indexed by separator, trailing zeros and decimals.
static DECIMALS: [[[Definition; 7]; 2]; 2] = [
    [
        decimals!(TrailingZeros::Kept, ",", "fixed-0" 0, "fixed-1" 1, "fixed-2" 2, "fixed-3" 3, "fixed" 4, "fixed-5" 5, "fixed-6" 6),
        decimals!(TrailingZeros::Removed, ",", "stripped-0" 0, "stripped-1" 1, "stripped-2" 2, "stripped-3" 3, "stripped" 4, "stripped-5" 5, "stripped-6" 6),
    ],
    [
        decimals!(TrailingZeros::Kept, " ", "fixed-0-spaces" 0, "fixed-1-spaces" 1, "fixed-2-spaces" 2, "fixed-3-spaces" 3, "fixed-spaces" 4, "fixed-5-spaces" 5, "fixed-6-spaces" 6),
        decimals!(TrailingZeros::Removed, " ", "stripped-0-spaces" 0, "stripped-1-spaces" 1, "stripped-2-spaces" 2, "stripped-3-spaces" 3, "stripped-spaces" 4, "stripped-5-spaces" 5, "stripped-6-spaces" 6),
    ],
];

/// Four decimals with their trailing zeros.
pub(super) const FIXED: &Definition = &DECIMALS[0][0][4];
/// Four decimals without trailing zeros.
pub(super) const STRIPPED: &Definition = &DECIMALS[0][1][4];

/// Decimals between brackets.
pub(super) fn decimal(zeros: TrailingZeros, precision: Precision, spaces: bool) -> &'static Definition {
    &DECIMALS[usize::from(spaces)][zeros as usize][precision.decimals()]
}

/// The parts of an encoding that a user asked for: by name, or by the older options for decimals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EncodingRequest {
    /// The whole encoding.
    pub encoding: Option<Encoding>,
    /// Whether trailing zeros are kept.
    pub zeros: Option<TrailingZeros>,
    /// The number of decimals.
    pub precision: Option<Precision>,
    /// Whether numbers are separated by spaces.
    pub spaces: Option<bool>,
}

impl EncodingRequest {
    /// `encoding` with the requested parts replaced.
    pub fn over(self, encoding: Encoding) -> Encoding {
        if let Some(asked) = self.encoding {
            return asked;
        }
        let spaced = self.spaces.map_or(encoding, |spaces| encoding.with_spaces(spaces));
        let precise = self.precision.map_or(spaced, |precision| spaced.with_precision(precision));
        self.zeros.map_or(precise, |zeros| precise.with_zeros(zeros))
    }

    /// Returns how to read texts: as `encoding` with the requested parts replaced. If a precision was requested, excess decimals are
    /// truncated toward zero. Otherwise numbers with more decimals are refused, because they probably come from another file.
    pub fn reading(self, encoding: Encoding) -> Reading {
        Reading::new(self.over(encoding)).cutting(self.precision.is_some() || self.encoding.is_some())
    }

    /// Returns whether it was asked how numbers are written, so that neither a recipe nor texts have to tell.
    pub fn says_how(self) -> bool {
        self.encoding.is_some() || self.zeros.is_some()
    }

    /// Returns whether nothing was asked for.
    pub fn is_empty(self) -> bool {
        self == EncodingRequest::default()
    }
}

/// A form of the names of encodings: decimals, bins, integers or codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EncodingForm {
    /// The beginning of the names, which all names of a kind share: `integers`.
    pub kind: &'static str,
    /// The whole name, with capitals for what the user chooses: `integers:SCALE,DIGITS`.
    pub form: &'static str,
    /// A name of this form.
    pub example: &'static str,
    /// What the numbers of a text are.
    pub meaning: &'static str,
}

impl EncodingForm {
    const fn new(
        kind: &'static str,
        form: &'static str,
        example: &'static str,
        meaning: &'static str,
    ) -> Self {
        EncodingForm { kind, form, example, meaning }
    }
}

/// All forms of names, in the order of help texts. Files of bins and of `drift.encoding/1` have no name, but a path.
pub const ENCODING_FORMS: [EncodingForm; 10] = [
    EncodingForm::new("fixed", "fixed", "fixed", "four decimals"),
    EncodingForm::new("fixed", "fixed-N", "fixed-3", "N decimals, 0 to 6"),
    EncodingForm::new("stripped", "stripped", "stripped", "four decimals without trailing zeros"),
    EncodingForm::new("stripped", "stripped-N", "stripped-3", "N decimals without trailing zeros"),
    EncodingForm::new("lines", "lines", "lines", "four decimals, a line for each atom"),
    EncodingForm::new("lines", "lines-N", "lines-2", "N decimals, a line for each atom"),
    EncodingForm::new("integers", "integers:SCALE,DIGITS", "integers:10,4", "integers in units of 1/SCALE Å"),
    EncodingForm::new("binned-v1", "binned-v1:LOW,HIGH,STEP", "binned-v1:-21,21,0.05", "bins of one width"),
    EncodingForm::new(
        "binned-v2",
        "binned-v2:LOW,HIGH,STEP",
        "binned-v2:-13,13,0.104",
        "bins of one width, without brackets and commas",
    ),
    EncodingForm::new("fsq", "fsq:N", "fsq:4096", "codes of another program, without coordinates"),
];

/// Returns the values of `--encoding`, for messages.
pub(super) fn known() -> String {
    let forms: Vec<&str> = ENCODING_FORMS.iter().map(|form| form.form).collect();
    format!("{}, or a file of bins or of drift.encoding/1", forms.join(", "))
}

/// Returns the encoding with this name; `None` if the text is not a name of an encoding.
pub(super) fn named(name: &str) -> Option<Result<Encoding, String>> {
    let short = without_default(name);
    let name = short.as_deref().unwrap_or(name);
    if let Some(definition) = DECIMALS.iter().flatten().flatten().find(|known| known.name == name) {
        return Some(Ok(Encoding(definition)));
    }
    if let Some(decimals) = name.strip_prefix("lines") {
        return lines(name, decimals);
    }
    match name.split_once(':')? {
        ("integers", values) => Some(integers(name, values)),
        ("binned-v1", values) => Some(binned(name, values, Version::Brackets)),
        ("binned-v2", values) => Some(binned(name, values, Version::Bare)),
        ("fsq", codes) => Some(codes_of(name, codes)),
        _ => None,
    }
}

/// `fixed-4-spaces` as `fixed-spaces`: an encoding has one name, and four decimals are left out of it.
fn without_default(name: &str) -> Option<String> {
    let kind = ["fixed", "stripped", "lines"].into_iter().find(|kind| name.starts_with(kind))?;
    let rest = name[kind.len()..].strip_prefix("-4")?;
    (rest.is_empty() || rest.starts_with('-')).then(|| format!("{kind}{rest}"))
}

/// Returns the problem with a scale that [`Scale::new`] refuses.
pub(super) fn scale_problem(units: f64) -> String {
    let (least, most) = (Scale::LEAST, Scale::MOST);
    format!("`scale`: 1 Å has {least} to {most} units, not {units}")
}

/// The two ways in which the users write bins.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Version {
    /// `<390,420,462>`
    Brackets,
    /// `390420462;`
    Bare,
}

/// Bins of equal width from `LOW,HIGH,STEP`, optionally with the number of digits.
fn binned(name: &str, values: &str, version: Version) -> Result<Encoding, String> {
    let kind = name.split(':').next().unwrap_or_default();
    let wrong = || format!("`{name}` does not name its bins; give LOW,HIGH,STEP in Å: {kind}:-21,21,0.05");
    let numbers: Vec<&str> = values.split(',').collect();
    let (bounds, digits) = match &numbers[..] {
        [low, high, step] => ([low, high, step], None),
        [low, high, step, digits] => ([low, high, step], Some(digits)),
        _ => return Err(wrong()),
    };
    let bounds: Vec<f64> = bounds.iter().filter_map(|number| number.trim().parse().ok()).collect();
    let [low, high, step] = bounds[..] else { return Err(wrong()) };
    let bins = Bins::even(low, high, step, |edges| match version {
        // 3DMolGen's first reader takes index 0 for 1, and the last index for one more bin of a step.
        Version::Brackets => TailValues::Middles { step },
        Version::Bare => TailValues::At(edges[0], edges[edges.len() - 1] + step),
    });
    let bins = bins.map_err(|e| format!("`{name}`: {e}"))?;
    let needed = bins.last().to_string().len().max(3);
    let width = match digits {
        None => needed,
        Some(digits) => digits.trim().parse().map_err(|_| wrong())?,
    };
    // The default width is left out of the name, so that an encoding has one name however it was requested.
    let digits = if width == needed { String::new() } else { format!(",{width}") };
    let bare = version == Version::Bare;
    let around = if bare { ["", "", ";"] } else { ["<", ",", ">"] };
    Encoding::new(Definition {
        name: format!("binned-v{}:{low},{high},{step}{digits}", if bare { 2 } else { 1 }).into(),
        slots: Slots::Atoms,
        open: around[0].into(),
        separator: around[1].into(),
        close: around[2].into(),
        numbers: 3,
        number: NumberFormat::Index { axes: vec![bins], width: u8::try_from(width).map_err(|_| wrong())? },
    })
    .map_err(|problem| format!("`{name}`: {problem}"))
}

/// Integers in units of 1/`SCALE` Å with a fixed number of digits, optionally with a largest magnitude: `<0012,-0034,0005>`. Rounded
/// to the nearest, halves to even. (3DSMILES-GPT rounds so, but its texts have coordinates behind the whole SMILES.)
fn integers(name: &str, values: &str) -> Result<Encoding, String> {
    let wrong = || format!("`{name}` does not name its integers; give SCALE,DIGITS: integers:10,4");
    let numbers: Vec<&str> = values.split(',').map(str::trim).collect();
    let (scale, width, most) = match &numbers[..] {
        [scale, width] => (scale, width, None),
        [scale, width, most] => (scale, width, Some(most)),
        _ => return Err(wrong()),
    };
    let scale: f64 = scale.parse().map_err(|_| wrong())?;
    let scale = Scale::new(scale).ok_or_else(|| format!("`{name}`: {}", scale_problem(scale)))?;
    let width: u8 = width.parse().ok().filter(|width| (1..=8).contains(width)).ok_or_else(wrong)?;
    let largest = 10u32.pow(width.into()) - 1;
    let most = most.map_or(Ok(largest), |most| most.parse()).map_err(|_| wrong())?;
    // The default is left out of the name, as with the digits of bins.
    let bound = if most == largest { String::new() } else { format!(",{most}") };
    Encoding::new(Definition {
        name: format!("integers:{scale},{width}{bound}").into(),
        number: NumberFormat::Integer { scale, width, most, signed: true, rounding: RoundTo::Nearest },
        ..Encoding::FIXED.definition().clone()
    })
    .map_err(|problem| format!("`{name}`: {problem}"))
}

/// Returns one line for each atom, as in XYZ: `[C] 1.0000 2.0000 3.0000`.
fn lines(name: &str, decimals: &str) -> Option<Result<Encoding, String>> {
    let decimals = match decimals.strip_prefix('-') {
        // One encoding has one name: `lines-02` is none.
        Some(count) => count.parse().ok().filter(|decimals: &usize| decimals.to_string() == count)?,
        None if decimals.is_empty() => 4,
        None => return None,
    };
    let fixed = Encoding::decimal(TrailingZeros::Kept, Precision::new(decimals)?);
    Some(Encoding::new(Definition {
        name: name.to_owned().into(),
        open: " ".into(),
        separator: " ".into(),
        close: "\n".into(),
        ..fixed.definition().clone()
    }))
}

/// Returns an encoding of codes behind every symbol.
fn codes_of(name: &str, codes: &str) -> Result<Encoding, String> {
    let below = codes.parse().ok().filter(|codes| (1..=1_000_000).contains(codes));
    let below: u32 = below.ok_or_else(|| {
        format!("`{name}` does not say how many codes there are; give 1 to 1,000,000: fsq:4096")
    })?;
    Encoding::new(Definition {
        name: format!("fsq:{below}").into(),
        slots: Slots::Symbols,
        open: "<".into(),
        separator: "".into(),
        close: ">".into(),
        numbers: 1,
        number: NumberFormat::Code { below, width: 0 },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_encodings_are_one_to_one() {
        let read = |name: &str| {
            let encoding: Encoding = name.parse().unwrap();
            let json = serde_json::to_string(&encoding).unwrap();
            assert_eq!(serde_json::from_str::<Encoding>(&json).unwrap(), encoding);
            assert_eq!(encoding.name(), name);
            encoding
        };
        for definition in DECIMALS.iter().flatten().flatten() {
            assert_eq!(read(&definition.name), Encoding(definition));
        }
        assert_eq!((Encoding::FIXED.name(), Encoding::STRIPPED.name()), ("fixed", "stripped"));
        let bins = "binned-v1:-21,21,0.05 binned-v2:-13,13,0.104 binned-v1:-21,21,0.042,3";
        let others = "fsq:4096 lines lines-2 integers:10,4 integers:10,4,399";
        bins.split(' ').chain(others.split(' ')).for_each(|name| _ = read(name));
        for (long, short) in [
            ("fixed-4", "fixed"),
            ("stripped-4", "stripped"),
            ("fixed-4-spaces", "fixed-spaces"),
            ("stripped-4-spaces", "stripped-spaces"),
            ("lines-4", "lines"),
        ] {
            let encoding: Encoding = long.parse().unwrap();
            assert_eq!((encoding, encoding.name()), (short.parse().unwrap(), short));
        }
        let decimals = "fixed-7 fixed-04 fixed-44 fixed-4spaces lines-4-spaces lines-7 lines-x linesx nope";
        let bins = "binned-v1 binned-v1:1,2 binned-v2:1,0,0.1 binned-v1:0,1,x";
        let others =
            "fsq:0 fsq:x integers:10 integers:0,4 integers:10,9 integers:x,4 integers:10,4,0 integers:1e99,4";
        for wrong in [decimals, bins, others].into_iter().flat_map(|names| names.split(' ')) {
            assert!(wrong.parse::<Encoding>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn every_form_has_an_example_that_is_read() {
        for EncodingForm { kind, form, example, .. } in ENCODING_FORMS {
            assert!(form.starts_with(kind) && example.starts_with(kind), "{form}");
            assert_eq!(example.parse::<Encoding>().unwrap().name(), example);
            // What the user chooses is in capitals, and nothing else differs.
            let fixed = form.trim_end_matches(|letter: char| !letter.is_ascii_lowercase() && letter != ':');
            assert!(example.starts_with(fixed.trim_end_matches('-')), "{form}: {example}");
        }
        let problem = "decimal".parse::<Encoding>().unwrap_err();
        assert!(ENCODING_FORMS.iter().all(|form| problem.contains(form.form)), "{problem}");
    }

    #[test]
    fn digits_are_those_of_the_number_of_edges_and_at_least_three() {
        let text = |name: &str, position: [f64; 3]| {
            let encoding: Encoding = name.parse().unwrap();
            let mut out = String::new();
            encoding.write_slot(&encoding.quantize(position).unwrap(), &mut out);
            out
        };
        assert_eq!(text("binned-v1:-21,21,0.05", [0.01, -21.1, 22.0]), "<421,000,840>");
        assert_eq!(text("binned-v1:-21,21,0.042", [0.01, -21.1, 22.0]), "<0501,0000,1000>");
        assert_eq!(text("binned-v1:-21,21,0.042,3", [0.01, -21.1, 22.0]), "<501,000,1000>");
        assert_eq!(text("binned-v2:-13,13,0.104", [0.01, -21.1, 22.0]), "126000250;");
        assert_eq!(text("integers:10,4", [1.23, -3.36, 0.45]), "<0012,-0034,0004>");
        assert_eq!(text("integers:10,4,399", [50.0, -0.04, 0.0]), "<0399,0000,0000>");
        assert_eq!(text("lines", [1.23456, -0.00001, 3.0]), " 1.2345 0.0000 3.0000\n");
        let problem = "binned-v2:-21,21,0.042,3".parse::<Encoding>().unwrap_err();
        assert!(problem.contains("1000"), "{problem}");
    }

    #[test]
    fn what_was_asked_for_goes_before_what_there_is() {
        let asked = EncodingRequest {
            precision: Precision::new(3),
            spaces: Some(true),
            ..EncodingRequest::default()
        };
        assert_eq!(asked.over(Encoding::STRIPPED).name(), "stripped-3-spaces");
        assert_eq!(EncodingRequest::default().over(Encoding::FIXED), Encoding::FIXED);
        let fsq: Encoding = "fsq:16".parse().unwrap();
        assert_eq!(EncodingRequest { encoding: Some(fsq), ..asked }.over(Encoding::FIXED), fsq);
    }
}
