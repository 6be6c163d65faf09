//! Encodings in files: `drift.encoding/1`, and the users' JSON of fitted bins `{mode, L, H, n_bins, edges}` unchanged.

use std::path::Path;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::decimal::{Precision, TrailingZeros};
use super::definition::{Definition, NumberFormat, RoundTo, Slots};
use super::index::{Bins, TailValues};
use super::{Encoding, names};

/// The value of `schema`.
pub const ENCODING_SCHEMA: &str = "drift.encoding/1";

/// The largest size of an encoding's file, in bytes.
const MAX_BYTES: u64 = 16 << 20;

/// The fields of `drift.encoding/1`.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct EncodingFile {
    schema: String,
    name: String,
    /// `atoms` or `symbols`.
    #[serde(default = "atoms")]
    slots: String,
    #[serde(default)]
    open: String,
    #[serde(default)]
    separator: String,
    #[serde(default)]
    close: String,
    numbers: usize,
    number: NumberFile,
}

fn atoms() -> String {
    "atoms".to_owned()
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
enum NumberFile {
    Decimal { decimals: usize, trailing_zeros: bool },
    Index { width: u8, axes: Vec<BinsFile> },
    Integer { scale: f64, width: u8, most: u32, signed: bool, rounding: RoundTo },
    Code { codes: u32, width: u8 },
}

/// The bins of one axis: either `edges`, or `low`, `high` and `step`.
#[derive(Serialize, Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct BinsFile {
    #[serde(skip_serializing_if = "Option::is_none")]
    edges: Option<Vec<f64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    low: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    high: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    step: Option<f64>,
    /// The coordinates that the two tails are read as, in Å; by default the first and the last edge.
    #[serde(skip_serializing_if = "Option::is_none")]
    tails: Option<[f64; 2]>,
    /// The bounds of fitted bins, in Å. Fitted bins include their last edge.
    #[serde(skip_serializing_if = "Option::is_none")]
    fitted: Option<[f64; 2]>,
}

impl BinsFile {
    fn of(bins: &Bins) -> Self {
        let (below, above) = bins.tails();
        BinsFile {
            edges: Some(bins.edges().to_vec()),
            tails: Some([below, above]),
            fitted: bins.fitted().map(|(low, high)| [low, high]),
            ..BinsFile::default()
        }
    }

    fn bins(self) -> Result<Bins, String> {
        let at = |edges: &[f64]| match self.tails {
            Some([below, above]) => TailValues::At(below, above),
            None => TailValues::At(edges[0], edges[edges.len() - 1]),
        };
        let fitted = self.fitted.map(|[low, high]| (low, high));
        match (self.edges, self.low, self.high, self.step) {
            (Some(edges), None, None, None) if !edges.is_empty() => {
                let tails = at(&edges);
                Bins::new(edges, tails, fitted)
            }
            (None, Some(low), Some(high), Some(step)) => Bins::even(low, high, step, at),
            _ => return Err("bins need edges, or low, high and step".to_owned()),
        }
        .map_err(|e| e.to_string())
    }
}

/// The users' file of bins: `n_bins + 1` edges; coordinates outside of `L` to `H` are in the tails.
#[derive(Deserialize)]
struct UsersBins {
    mode: String,
    #[serde(rename = "L")]
    low: f64,
    #[serde(rename = "H")]
    high: f64,
    n_bins: usize,
    edges: Option<Vec<f64>>,
}

impl UsersBins {
    fn encoding(self) -> Result<Encoding, String> {
        let edges = self.edges.ok_or("it has no edges")?;
        let (found, bins, needed) = (edges.len(), self.n_bins, self.n_bins + 1);
        if found != needed {
            return Err(format!("it has {found} edges, not the {needed} of {bins} bins"));
        }
        let width = needed.to_string().len().max(3) as u8;
        let bins = Bins::new(edges, TailValues::At(self.low, self.high), Some((self.low, self.high)));
        Encoding::new(Definition {
            name: format!("{}-{}", self.mode, self.n_bins).into(),
            slots: Slots::Atoms,
            open: "".into(),
            separator: "".into(),
            close: ";".into(),
            numbers: 3,
            number: NumberFormat::Index { axes: vec![bins.map_err(|e| e.to_string())?], width },
        })
    }
}

impl EncodingFile {
    fn of(definition: &Definition) -> Self {
        let number = match &definition.number {
            NumberFormat::Decimal { precision, zeros } => NumberFile::Decimal {
                decimals: precision.decimals(),
                trailing_zeros: *zeros == TrailingZeros::Kept,
            },
            NumberFormat::Index { axes, width } => {
                NumberFile::Index { width: *width, axes: axes.iter().map(BinsFile::of).collect() }
            }
            NumberFormat::Integer { scale, width, most, signed, rounding } => NumberFile::Integer {
                scale: *scale,
                width: *width,
                most: *most,
                signed: *signed,
                rounding: *rounding,
            },
            NumberFormat::Code { below, width } => NumberFile::Code { codes: *below, width: *width },
        };
        EncodingFile {
            schema: ENCODING_SCHEMA.to_owned(),
            name: definition.name.to_string(),
            slots: if definition.slots == Slots::Atoms { atoms() } else { "symbols".to_owned() },
            open: definition.open.to_string(),
            separator: definition.separator.to_string(),
            close: definition.close.to_string(),
            numbers: definition.numbers,
            number,
        }
    }

    fn encoding(self) -> Result<Encoding, String> {
        if self.schema != ENCODING_SCHEMA {
            return Err(format!("its schema is {:?}, not {ENCODING_SCHEMA:?}", self.schema));
        }
        let number = match self.number {
            NumberFile::Decimal { decimals, trailing_zeros } => NumberFormat::Decimal {
                precision: Precision::new(decimals).ok_or("numbers have 0 to 6 decimals")?,
                zeros: if trailing_zeros { TrailingZeros::Kept } else { TrailingZeros::Removed },
            },
            NumberFile::Index { width, axes } => NumberFormat::Index {
                width,
                axes: axes.into_iter().map(BinsFile::bins).collect::<Result<_, _>>()?,
            },
            NumberFile::Integer { scale, width, most, signed, rounding } => {
                NumberFormat::Integer { scale, width, most, signed, rounding }
            }
            NumberFile::Code { codes, width } => NumberFormat::Code { below: codes, width },
        };
        let slots = match &*self.slots {
            "atoms" => Slots::Atoms,
            "symbols" => Slots::Symbols,
            other => return Err(format!("its slots are {other:?}; give \"atoms\" or \"symbols\"")),
        };
        Encoding::new(Definition {
            name: self.name.into(),
            slots,
            open: self.open.into(),
            separator: self.separator.into(),
            close: self.close.into(),
            numbers: self.numbers,
            number,
        })
    }
}

impl FromStr for Encoding {
    type Err = String;

    /// An encoding by its name, the path of its file, or the JSON content of such a file.
    fn from_str(name: &str) -> Result<Self, Self::Err> {
        if name.trim_start().starts_with('{') {
            return of_json(name);
        }
        names::named(name).unwrap_or_else(|| read(name))
    }
}

impl Encoding {
    /// What a command line calls it: its name, or the content of its file.
    pub fn argument(self) -> String {
        match serde_json::to_value(self) {
            Ok(serde_json::Value::String(name)) => name,
            Ok(content) => content.to_string(),
            Err(_) => self.name().to_owned(),
        }
    }
}

/// The encoding in a file.
fn read(path: &str) -> Result<Encoding, String> {
    let unknown = || format!("`{path}` is neither an encoding nor a file; give {}", names::KNOWN);
    let metadata = std::fs::metadata(Path::new(path)).map_err(|_| unknown())?;
    // A text that names no encoding may be the path of any file, however large.
    if metadata.len() > MAX_BYTES {
        return Err(format!("`{path}` has more than {} MiB, too much for an encoding", MAX_BYTES >> 20));
    }
    let text = std::fs::read_to_string(path).map_err(|e| format!("`{path}`: {e}"))?;
    of_json(&text).map_err(|problem| format!("`{path}`: {problem}; give {}", names::KNOWN))
}

/// The encoding in a JSON text.
fn of_json(text: &str) -> Result<Encoding, String> {
    let value: serde_json::Value = serde_json::from_str(text).map_err(|e| format!("no JSON: {e}"))?;
    let not = |e: serde_json::Error| e.to_string();
    if value.get("n_bins").is_some() || value.get("mode").is_some() {
        serde_json::from_value::<UsersBins>(value).map_err(not)?.encoding()
    } else {
        serde_json::from_value::<EncodingFile>(value).map_err(not)?.encoding()
    }
}

impl Definition {
    /// Checks that texts in this encoding can be parsed again.
    ///
    /// # Errors
    /// A sentence that says why they cannot.
    pub(super) fn check(&self) -> Result<(), String> {
        if self.name.is_empty() || self.name.len() > 200 {
            return Err("its name is empty, or longer than 200 bytes".to_owned());
        }
        if self.numbers != 1 && self.numbers != 3 {
            return Err(format!("slots have 1 number or 3, not {}", self.numbers));
        }
        for around in [&self.open, &self.separator, &self.close] {
            // The text around numbers must not look like a part of a number.
            let digit = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'-' | b'.');
            let fits = |byte: u8| !digit(byte) && (byte.is_ascii_graphic() || matches!(byte, b' ' | b'\n'));
            if around.len() > 16 || !around.bytes().all(fits) {
                return Err(format!(
                    "{around:?} cannot stand around numbers: it contains digits, signs or points, or is not ASCII"
                ));
            }
        }
        let Definition { open, separator, close, .. } = self;
        if !separator.is_empty() && !close.is_empty() && separator.contains(&**close) {
            // A slot ends at the first occurrence of its closing text.
            return Err(format!("{close:?} cannot close a slot whose numbers stand {separator:?} apart"));
        }
        if self.numbers == 1 && open.is_empty() {
            return Err("a single number needs text before it".to_owned());
        }
        self.check_number()
    }

    fn check_number(&self) -> Result<(), String> {
        match &self.number {
            NumberFormat::Index { axes, .. } if axes.len() != 1 && axes.len() != 3 => {
                return Err(format!("bins are given for 1 axis or 3, not {}", axes.len()));
            }
            NumberFormat::Integer { scale, most, .. }
                if !(scale.is_finite() && *scale > 0.0) || *most > 99_999_999 =>
            {
                let needs = "an integer needs a scale above 0 and a largest magnitude below 100,000,000";
                return Err(needs.to_owned());
            }
            NumberFormat::Code { below, .. } if !(1..=1_000_000).contains(below) => {
                return Err(format!("there are 1 to 1,000,000 codes, not {below}"));
            }
            _ => {}
        }
        let width = self.number.width();
        if width > 9 {
            return Err(format!("numbers have at most 9 digits, not {width}"));
        }
        // Each axis may have its own bins.
        let largest = (0..self.numbers).map(|axis| self.number.limits(axis).1).max().unwrap_or(0);
        let longest = largest.to_string().len();
        if self.separator.is_empty() && self.numbers > 1 {
            if self.number.is_signed() {
                return Err("numbers with signs or decimals need a separator between them".to_owned());
            }
            if longest > usize::from(width) {
                return Err(format!(
                    "{largest} does not fit into {width} digits, and nothing separates the numbers"
                ));
            }
        } else if self.close.is_empty() {
            return Err("numbers of varying length need text that closes the slot".to_owned());
        }
        Ok(())
    }
}

impl Serialize for Encoding {
    /// As its name if that determines it completely, otherwise as `drift.encoding/1`.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match names::named(self.name()) {
            Some(Ok(named)) if named == *self => serializer.serialize_str(self.name()),
            _ => EncodingFile::of(self.definition()).serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Encoding {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Name(String),
            File(Box<EncodingFile>),
        }
        let encoding = match Written::deserialize(deserializer)? {
            Written::Name(name) => name.parse(),
            Written::File(file) => file.encoding(),
        };
        encoding.map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests;
