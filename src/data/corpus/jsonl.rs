//! JSON Lines: one object a line, as 3DMolGen writes its training data.
//!
//! The text is in `embedded_smiles`, else in `embedded_smiles_stripped`, else in the first field whose string parses as enriched
//! text, with or without tags. The molecule's name is in `canonical_smiles`, else in `smiles`.

use std::borrow::Cow;

use memchr::memmem;
use serde::de::{DeserializeSeed, MapAccess};

use super::lines::LineError;
use super::{Conformer, Context, Emit, Source, lines, plain};
use drift_core::encoding::{Encoding, Reading};
use drift_core::error::Result;
use drift_core::io::{Folded, JsonFold, JsonPart};

/// Reads a stream of one object a line.
///
/// # Errors
/// If the stream is damaged, the job was cancelled, or `emit` fails.
pub(crate) fn read(source: Source<'_>, context: Context<'_>, emit: &mut Emit<'_>) -> Result<()> {
    lines::read(source, context, emit, conformer)
}

fn conformer(line: &str, reading: Reading) -> Result<Conformer, LineError> {
    if !line.starts_with('{') {
        return Err(format!("not a JSON object: {}", drift_core::error::excerpt(line.as_bytes())).into());
    }
    let mut json = serde_json::Deserializer::from_str(line);
    let row = Folded(Fields).deserialize(&mut json).and_then(|row| json.end().map(|()| row));
    let row = row.map_err(|e| json_reason(&e))?;
    let name = row.canonical_smiles.or(row.smiles);
    let reading = match row.encoding {
        Some(stated) => as_stated(Encoding::stated(&stated, Some(reading.encoding))?, reading)?,
        None => reading,
    };
    if let Some(text) = row.embedded_smiles.or(row.embedded_smiles_stripped) {
        return Ok(plain::conformer(&text, name.as_deref(), reading)?);
    }
    let own = reading.texts.unwrap_or(reading.encoding);
    let mut reason = None;
    for (field, text) in row.others.into_iter().filter(|(_, text)| may_be_enriched(text, own)) {
        match plain::conformer(&text, name.as_deref(), reading) {
            Ok(conformer) => return Ok(conformer),
            // The reason of the first field is reported; fields keep the order of the row.
            Err(problem) => _ = reason.get_or_insert_with(|| format!("field {field:?}: {problem}")),
        }
    }
    Err(reason.unwrap_or_else(|| "no field contains enriched SMILES".to_owned()).into())
}

/// How a row is read that states its encoding.
///
/// # Errors
/// If the user names another encoding for the texts, or the row has more decimals than are read and nobody asked to cut them.
fn as_stated(own: Encoding, reading: Reading) -> Result<Reading, LineError> {
    // Bins of different widths look the same in text, so the user and the row cannot both be followed.
    if let Some(wanted) = reading.texts.filter(|wanted| *wanted != own) {
        return Err(LineError::Contradiction { stated: own, wanted });
    }
    let (has, most) = (own.precision(), reading.encoding.precision());
    if own.is_decimal() && reading.encoding.is_decimal() && has > most && !reading.cut {
        return Err(format!("it is written as {own}, with more than {} decimals", most.in_words()).into());
    }
    Ok(Reading { texts: Some(own), ..reading })
}

/// serde_json's message without the line number, which is always 1.
fn json_reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let problem = text.split(" at line ").next().unwrap_or(&text);
    format!("column {}: {problem}", error.column())
}

/// The relevant fields of a row, borrowed where the JSON has no escapes.
#[derive(Default)]
struct Row<'a> {
    embedded_smiles: Option<Cow<'a, str>>,
    embedded_smiles_stripped: Option<Cow<'a, str>>,
    canonical_smiles: Option<Cow<'a, str>>,
    smiles: Option<Cow<'a, str>>,
    /// How the row's text is encoded: a name, or an object of format `drift.encoding/1`.
    encoding: Option<serde_json::Value>,
    /// Other fields that may contain enriched text.
    others: Vec<(Cow<'a, str>, Cow<'a, str>)>,
}

/// Reads a row.
struct Fields;

impl<'de> JsonFold<'de> for Fields {
    type Value = Row<'de>;

    fn part<E: serde::de::Error>(self, _: JsonPart<'_>) -> Result<Row<'de>, E> {
        Err(E::custom("not an object"))
    }

    fn object<A: MapAccess<'de>>(self, mut map: A) -> Result<Row<'de>, A::Error> {
        let mut row = Row::default();
        while let Some(Some(field)) = map.next_key_seed(Folded(Text))? {
            if field == "encoding" {
                row.encoding = map.next_value::<Option<serde_json::Value>>()?;
                continue;
            }
            let value = map.next_value_seed(Folded(Text))?;
            match &*field {
                "embedded_smiles" => row.embedded_smiles = value,
                "embedded_smiles_stripped" => row.embedded_smiles_stripped = value,
                "canonical_smiles" => row.canonical_smiles = value,
                "smiles" => row.smiles = value,
                // Whether it is enriched text depends on the encoding, which may follow.
                _ => row.others.extend(value.filter(|v| v.contains(']')).map(|v| (field, v))),
            }
        }
        Ok(row)
    }
}

/// Whether a string may be enriched text: it contains `]` and the opening of a slot, or its first `]` is followed by a digit.
fn may_be_enriched(text: &str, encoding: Encoding) -> bool {
    let has = |opened: &[u8]| memmem::find(text.as_bytes(), opened).is_some();
    let behind = memmem::find(text.as_bytes(), b"]").and_then(|at| text.as_bytes().get(at + 1));
    let is_opened = |open: &str| !open.is_empty() && has(format!("]{open}").as_bytes());
    let is_number = |byte: &u8| byte.is_ascii_digit() || (*byte == b'-' && encoding.open().is_empty());
    is_opened("<") || is_opened(encoding.open()) || behind.is_some_and(is_number)
}

/// A string. A value of any other type gives `None`.
struct Text;

impl<'de> JsonFold<'de> for Text {
    type Value = Option<Cow<'de, str>>;

    fn part<E>(self, part: JsonPart<'_>) -> Result<Self::Value, E> {
        let JsonPart::Text(text) = part else { return Ok(None) };
        Ok(Some(Cow::Owned(text.to_owned())))
    }

    fn borrowed<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Some(Cow::Borrowed(text)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use drift_core::encoding::Written;

    #[test]
    fn fields_in_order_of_preference() {
        let both = r#"{"id": 1, "canonical_smiles": "C\\C", "x": [1, {"y": null}], "smiles": "no",
            "embedded_smiles_stripped": "[C]<1,2,3>", "embedded_smiles": "[C]<1.0000,2.0000,3.0000>"}"#;
        let read = conformer(both, Reading::default()).unwrap();
        assert_eq!((&*read.molecule, &*read.skeleton), ("C\\C", "[C]<>"));
        assert_eq!(read.written, Written { fixed: true, stripped: false });
        for (line, molecule) in [
            (r#"{"embedded_smiles": null, "embedded_smiles_stripped": "[C]<1,2,3>", "smiles": "C"}"#, "C"),
            (r#"{"note": "a]<b", "text": "[SMILES]CC[/SMILES][CONFORMER][C]<1,2,3>[/CONFORMER]"}"#, "CC"),
            (r#"{"t\u0065xt": "[C]\u003c1,2,3>"}"#, "[C]<>"),
        ] {
            let read = conformer(line, Reading::default()).unwrap_or_else(|e| panic!("{line}: {e:?}"));
            assert_eq!(&*read.molecule, molecule, "{line}");
            assert_eq!(read.coordinates, [[10_000, 20_000, 30_000]], "{line}");
        }
    }

    #[test]
    fn broken_rows_say_why() {
        for (line, reason) in [
            (r#"["[C]<1,2,3>"]"#, "not a JSON object: `[\"[C]<1,2,3>\"]`"),
            (r#"{"embedded_smiles": "[C]<1,"#, "column 27: EOF while parsing a string"),
            (r#"{"embedded_smiles": "[C]<1,2,3>"} x"#, "column 35: trailing characters"),
            (r#"{"smiles": "C", "count": 3}"#, "no field contains enriched SMILES"),
            (r#"{"text": "[C]<1,2>"}"#, "field \"text\": byte 4: block contains 2 numbers, not three"),
            (r#"{"embedded_smiles": ""}"#, "byte 0: no atom"),
        ] {
            assert_eq!(conformer(line, Reading::default()).unwrap_err(), reason.to_owned().into(), "{line}");
        }
    }

    #[test]
    fn rows_that_state_their_encoding_are_read_in_it() {
        let fixed = "[C]<1.0000,2.0000,3.0000>";
        for (encoding, text) in [
            (r#""lines""#, "[C] 1.0000 2.0000 3.0000"),
            (r#""binned-v1:-21,21,0.05""#, "[C]<440,460,480>"),
            (r#""fixed-4""#, fixed),
            (r#""stripped-2-spaces""#, "[C]<1 2 3>"),
            (
                r#"{"schema": "drift.encoding/1", "name": "own", "open": "(", "separator": ";", "close": ")", "numbers": 3, "number": {"kind": "decimal", "decimals": 2, "trailing_zeros": true}}"#,
                "[C](1.00;2.00;3.00)",
            ),
        ] {
            // Wherever the encoding stands, and in any field.
            for line in [
                format!(r#"{{"encoding": {encoding}, "text": "{text}"}}"#),
                format!(r#"{{"smiles": "[CH4]", "embedded_smiles": "{text}", "encoding": {encoding}}}"#),
            ] {
                let read = conformer(&line, Reading::default()).unwrap_or_else(|e| panic!("{line}: {e:?}"));
                let off = read.coordinates[0].iter().zip([10_000, 20_000, 30_000]);
                assert!(off.into_iter().all(|(found, right)| (found - right).abs() <= 250), "{line}");
            }
        }
        let bins = r#"{"encoding": "binned-v1:-21,21,0.05", "text": "[C]<440,460,480>"}"#;
        let (stated, wanted) = ("binned-v1:-21,21,0.05", "binned-v1:-11,11,0.05");
        let reading = Reading::new(wanted.parse().unwrap()).of_texts();
        assert_eq!(
            conformer(bins, reading).unwrap_err(),
            LineError::Contradiction { stated: stated.parse().unwrap(), wanted: reading.encoding }
        );
        let six = r#"{"encoding": "lines-6", "text": "[C] 1.000001 2.000000 3.000000"}"#;
        let reason = "it is written as lines-6, with more than four decimals".to_owned();
        assert_eq!(conformer(six, Reading::default()).unwrap_err(), reason.into());
        assert!(conformer(six, Reading::default().cutting(true)).is_ok());
        // A row is data: the paths of files are not followed.
        let path = r#"{"encoding": "Cargo.toml", "text": "[C]<1,2,3>"}"#;
        let LineError::Bad(reason) = conformer(path, Reading::default()).unwrap_err() else { panic!() };
        assert!(reason.starts_with("field \"encoding\": `Cargo.toml` is no encoding;"), "{reason}");
    }
}
