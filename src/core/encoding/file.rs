//! Encodings in files: `drift.encoding/1`, and 3DMolGen's JSON of fitted bins `{mode, L, H, n_bins, edges}` unchanged.

use std::path::Path;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::decimal::{Precision, TrailingZeros};
use super::definition::{Definition, NumberFormat, Slots};
use super::index::{Bins, TailValues};
use super::scale::{RoundTo, Scale};
use super::{Encoding, names};

/// The value of `schema`.
pub(crate) const ENCODING_SCHEMA: &str = "drift.encoding/1";

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
            _ => return Err("`axes`: bins need `edges`, or `low`, `high` and `step`".to_owned()),
        }
        .map_err(|e| e.to_string())
    }
}

/// 3DMolGen's file of bins: `n_bins + 1` edges; coordinates outside of `L` to `H` are in the tails.
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
        named_apart(Definition {
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
                scale: scale.units(),
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
                precision: Precision::new(decimals).ok_or("`decimals`: numbers have 0 to 6 decimals")?,
                zeros: if trailing_zeros { TrailingZeros::Kept } else { TrailingZeros::Removed },
            },
            NumberFile::Index { width, axes } => NumberFormat::Index {
                width,
                axes: axes.into_iter().map(BinsFile::bins).collect::<Result<_, _>>()?,
            },
            NumberFile::Integer { scale, width, most, signed, rounding } => NumberFormat::Integer {
                scale: Scale::new(scale).ok_or_else(|| names::scale_problem(scale))?,
                width,
                most,
                signed,
                rounding,
            },
            NumberFile::Code { codes, width } => NumberFormat::Code { below: codes, width },
        };
        let slots = match &*self.slots {
            "atoms" => Slots::Atoms,
            "symbols" => Slots::Symbols,
            other => return Err(format!("`slots`: {other:?} is neither \"atoms\" nor \"symbols\"")),
        };
        named_apart(Definition {
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

    /// Returns an encoding by its name, the path of its file, or the JSON content of such a file.
    fn from_str(name: &str) -> Result<Self, Self::Err> {
        if name.trim_start().starts_with('{') {
            return of_json(name);
        }
        names::named(name).unwrap_or_else(|| read(name))
    }
}

impl Encoding {
    /// Returns what a command line calls it: its name, or the content of its file.
    pub fn argument(self) -> String {
        match serde_json::to_value(self) {
            Ok(serde_json::Value::String(name)) => name,
            Ok(content) => content.to_string(),
            Err(_) => self.name().to_owned(),
        }
    }
}

/// Returns the encoding in a file.
fn read(path: &str) -> Result<Encoding, String> {
    let unknown = || format!("`{path}` is neither an encoding nor a file; give {}", names::known());
    let metadata = std::fs::metadata(Path::new(path)).map_err(|_| unknown())?;
    // A text that names no encoding may be the path of any file, however large.
    if metadata.len() > MAX_BYTES {
        return Err(format!("`{path}` has more than {} MiB, too much for an encoding", MAX_BYTES >> 20));
    }
    let text = std::fs::read_to_string(path).map_err(|e| format!("`{path}`: {e}"))?;
    of_json(&text).map_err(|problem| format!("`{path}`: {problem}; give {}", names::known()))
}

/// Returns the encoding in a JSON text.
fn of_json(text: &str) -> Result<Encoding, String> {
    of_value(serde_json::from_str(text).map_err(|e| format!("no JSON: {e}"))?)
}

fn of_value(value: serde_json::Value) -> Result<Encoding, String> {
    let not = |e: serde_json::Error| e.to_string();
    if value.get("n_bins").is_some() || value.get("mode").is_some() {
        serde_json::from_value::<UsersBins>(value).map_err(not)?.encoding()
    } else {
        serde_json::from_value::<EncodingFile>(value).map_err(not)?.encoding()
    }
}

impl Encoding {
    /// Returns the encoding that a row of a file states: the name of one of drift's, or the content of an encoding's file. The name of
    /// `asked` stands for it. A path is not followed, because rows are data.
    ///
    /// # Errors
    /// A sentence that says why it is none.
    pub fn stated(row: &serde_json::Value, asked: Option<Encoding>) -> Result<Encoding, String> {
        let stated = match row.as_str() {
            Some(name) => match asked.filter(|asked| asked.name() == name) {
                Some(asked) => Ok(asked),
                None => names::named(name).unwrap_or_else(|| {
                    Err(format!("`{name}` is no encoding; it is one of {}", names::known()))
                }),
            },
            None => of_value(row.clone()),
        };
        stated.map_err(|problem| format!("field \"encoding\": {problem}"))
    }
}

/// Returns the encoding of a file. A row of a corpus may name its encoding, so a name that drift knows belongs to one encoding alone.
fn named_apart(definition: Definition) -> Result<Encoding, String> {
    let encoding = Encoding::new(definition)?;
    match names::named(encoding.name()) {
        Some(Ok(known)) if known == encoding => Ok(known),
        Some(_) => Err(format!("`name`: {} is the name of another encoding; give your own", encoding.name())),
        None => Ok(encoding),
    }
}

impl Serialize for Encoding {
    /// Writes the name of the encoding if that determines it completely, otherwise its `drift.encoding/1`.
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
        enum DecimalForms {
            Name(String),
            File(Box<EncodingFile>),
        }
        let encoding = match DecimalForms::deserialize(deserializer)? {
            DecimalForms::Name(name) => name.parse(),
            DecimalForms::File(file) => file.encoding(),
        };
        encoding.map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests;
