//! JSON Lines: one object a line, as 3DMolGen writes its training data, LlamaFactory its predictions, and engines their answers.
//!
//! The text is in the first field of [`fields::TEXT_FIELDS`] that may hold enriched text, else in the first other field whose string
//! parses as enriched text, with or without tags. The molecule's name is in one of [`fields::SMILES_FIELDS`], else between the tags
//! of a prompt. A row may also group the conformers of several isomers (`isomers`).

use std::borrow::Cow;
use std::sync::Arc;

use serde::de::{DeserializeSeed, MapAccess, SeqAccess};

use super::fields::{
    self, ANY_TEXTS_SCHEMA, ENCODING_FIELD, ID_FIELDS, ISOMERS_FIELD, LABEL_FIELD, POOL_FIELDS,
    PREDICTION_FIELD, PROMPT_FIELDS, SCHEMA_FIELD, SMILES_FIELDS, TEXT_FIELDS,
};
use super::lines::LineFormat;
use super::row_text::RowText;
use super::{BatchSink, Cells, Context, Format, IsomerPool, ReadOptions, Source, json_columns, lines};
use drift_core::Result;
use drift_core::io::{FoldSeed, JsonFold, JsonPart};
use drift_core::text::{SMILES_CLOSE, SMILES_OPEN};

/// Reads a stream of one object a line.
///
/// # Errors
/// If the stream is damaged, the job was cancelled, or `emit` fails.
pub(crate) fn read(source: Source<'_>, context: Context<'_>, emit: &mut BatchSink<'_>) -> Result<()> {
    lines::read(source, context, emit, LineFormat { format: Format::Jsonl, parse: texts })
}

/// Returns the texts of a line; `None` if the row is not one of those that are picked.
fn texts<'t>(line: &'t str, options: &ReadOptions) -> Result<Option<Vec<RowText<'t>>>, String> {
    if !line.starts_with('{') {
        return Err(format!("not a JSON object: {}", drift_core::error::excerpt(line.as_bytes())));
    }
    let mut json = serde_json::Deserializer::from_str(line);
    let row = FoldSeed(Fields).deserialize(&mut json).and_then(|row| json.end().map(|()| row));
    let row = row.map_err(|e| json_reason(&e))?;
    if row.is_header {
        return Ok(Some(Vec::new()));
    }
    if !options.rows.picks_json(line)? {
        return Ok(None);
    }
    let mut texts = row.texts();
    if texts.is_empty() {
        return Err("its isomers have no conformer".to_owned());
    }
    if let [text] = &mut texts[..]
        && options.smiles.required
        && json_columns::may_have(line, &ID_FIELDS)
    {
        let names = json_columns::values(line, &ID_FIELDS)?;
        text.id = names.into_iter().flatten().find(|name| !name.is_empty()).map(Arc::from);
    }
    let columns = options.needs.columns;
    if json_columns::may_have(line, columns) {
        let cells = json_columns::values(line, columns)?;
        let cells: Cells =
            cells.into_iter().map(|cell| cell.filter(|cell| !cell.is_empty()).map(Arc::from)).collect();
        texts.iter_mut().for_each(|text| text.cells = cells.clone());
    }
    Ok(Some(texts))
}

/// serde_json's message without the line number, which is always 1.
fn json_reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let problem = text.split(" at line ").next().unwrap_or(&text);
    format!("column {}: {problem}", error.column())
}

/// The relevant fields of a row, borrowed where the JSON has no escapes.
#[derive(Debug, Default)]
struct Row<'a> {
    texts: [Option<Cow<'a, str>>; TEXT_FIELDS.len()],
    names: [Option<Cow<'a, str>>; SMILES_FIELDS.len()],
    /// The SMILES between the tags of a prompt.
    tagged: Option<Cow<'a, str>>,
    pool: Option<Cow<'a, str>>,
    /// By the SMILES of an isomer: its conformers.
    isomers: Vec<(Cow<'a, str>, Vec<Row<'a>>)>,
    /// How the row's text is encoded: a name, or an object of format `drift.encoding/1`.
    encoding: Option<serde_json::Value>,
    /// Whether it is the first line of a file of generated texts.
    is_header: bool,
    /// Other fields that may contain enriched text.
    others: Vec<(Cow<'a, str>, Cow<'a, str>)>,
}

impl<'a> Row<'a> {
    /// Returns the texts of the row: one for each conformer of a grouped row, or the row's own.
    fn texts(mut self) -> Vec<RowText<'a>> {
        if self.isomers.is_empty() {
            return vec![self.text(None)];
        }
        let counts =
            self.isomers.iter().map(|(smiles, rows)| (smiles.to_string(), rows.len() as u64)).collect();
        let pool = self
            .pool
            .take()
            .map(|smiles| Arc::new(IsomerPool { smiles: smiles.into_owned(), isomers: counts }));
        let encoding = self.encoding.take();
        let mut texts = Vec::new();
        for (smiles, rows) in self.isomers {
            for (at, row) in rows.into_iter().enumerate() {
                let mut text = row.text(Some(&smiles));
                text.encoding = text.encoding.or_else(|| encoding.clone());
                text.place = format!("isomer {smiles}, conformer {}", at + 1);
                text.pool = pool.clone();
                texts.push(text);
            }
        }
        texts
    }

    /// Returns the row's own text; the molecule is named by `isomer`, else by the row.
    fn text(self, isomer: Option<&Cow<'a, str>>) -> RowText<'a> {
        let own = self.names.into_iter().flatten().next().or(self.tagged);
        let name = isomer.cloned().or(own);
        let is_predicted =
            fields::place(&TEXT_FIELDS, PREDICTION_FIELD).is_some_and(|at| self.texts[at].is_some());
        let known = TEXT_FIELDS.into_iter().zip(self.texts);
        let known = known.filter(|(field, _)| !(is_predicted && *field == LABEL_FIELD));
        RowText {
            known: known.filter_map(|(_, text)| text).collect(),
            others: self.others,
            name,
            encoding: self.encoding,
            ..RowText::default()
        }
    }

    /// Takes the SMILES between the last tags of a prompt; worked examples stand before it.
    fn take_prompt(&mut self, prompt: Option<Cow<'a, str>>) {
        let tagged = prompt.as_deref().and_then(|prompt| {
            let (_, after) = prompt.rsplit_once(SMILES_OPEN)?;
            let (inside, _) = after.split_once(SMILES_CLOSE)?;
            Some(inside.trim().to_owned()).filter(|smiles| !smiles.is_empty())
        });
        self.tagged = self.tagged.take().or(tagged.map(Cow::Owned));
    }
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
        while let Some(Some(field)) = map.next_key_seed(FoldSeed(Text))? {
            if field == ENCODING_FIELD {
                row.encoding = map.next_value::<Option<serde_json::Value>>()?;
                continue;
            }
            if field == ISOMERS_FIELD {
                row.isomers = map.next_value_seed(FoldSeed(Isomers))?;
                continue;
            }
            let value = map.next_value_seed(FoldSeed(Text))?;
            if let Some(at) = fields::place(&TEXT_FIELDS, &field) {
                row.texts[at] = value;
            } else if let Some(at) = fields::place(&SMILES_FIELDS, &field) {
                row.names[at] = value;
            } else if fields::place(&POOL_FIELDS, &field).is_some() {
                row.pool = row.pool.or(value);
            } else if fields::place(&PROMPT_FIELDS, &field).is_some() {
                row.take_prompt(value);
            } else if field == SCHEMA_FIELD {
                row.is_header = value.is_some_and(|schema| schema.starts_with(ANY_TEXTS_SCHEMA));
            } else {
                // Whether it is enriched text depends on the encoding, which may follow.
                row.others.extend(value.filter(|v| v.contains(']')).map(|v| (field, v)));
            }
        }
        Ok(row)
    }
}

/// Reads the isomers of a grouped row; empty for any other value.
struct Isomers;

impl<'de> JsonFold<'de> for Isomers {
    type Value = Vec<(Cow<'de, str>, Vec<Row<'de>>)>;

    fn part<E>(self, _: JsonPart<'_>) -> Result<Self::Value, E> {
        Ok(Vec::new())
    }

    fn object<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut isomers = Vec::new();
        while let Some(Some(smiles)) = map.next_key_seed(FoldSeed(Text))? {
            isomers.push((smiles, map.next_value_seed(FoldSeed(Rows))?));
        }
        Ok(isomers)
    }
}

/// Reads the conformers of an isomer: a list of rows, or a single row or text.
struct Rows;

impl<'de> JsonFold<'de> for Rows {
    type Value = Vec<Row<'de>>;

    fn part<E: serde::de::Error>(self, part: JsonPart<'_>) -> Result<Self::Value, E> {
        Ok(vec![AnyRow.part(part)?])
    }

    fn list<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut rows = Vec::new();
        while let Some(row) = list.next_element_seed(FoldSeed(AnyRow))? {
            rows.push(row);
        }
        Ok(rows)
    }

    fn object<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        Fields.object(map).map(|row| vec![row])
    }
}

/// Reads a conformer of an isomer: a row, or its text alone. Any other value is a row without a text.
struct AnyRow;

impl<'de> JsonFold<'de> for AnyRow {
    type Value = Row<'de>;

    fn part<E>(self, part: JsonPart<'_>) -> Result<Row<'de>, E> {
        let JsonPart::Text(text) = part else { return Ok(Row::default()) };
        Ok(Row { others: vec![(Cow::Borrowed(""), Cow::Owned(text.to_owned()))], ..Row::default() })
    }

    fn object<A: MapAccess<'de>>(self, map: A) -> Result<Row<'de>, A::Error> {
        Fields.object(map)
    }
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
    use crate::corpus::row_text::RowError;
    use crate::corpus::{Conformer, RowFilter};
    use drift_core::encoding::{DecimalForms, Reading};

    /// Returns the conformers of a line, or why it has none.
    fn conformers(line: &str) -> Result<Vec<Conformer>, RowError> {
        let options = ReadOptions::default();
        let texts = texts(line, &options)?.unwrap();
        texts.iter().map(|text| text.conformer(&options)).collect()
    }

    fn conformer(line: &str) -> Result<Conformer, RowError> {
        Ok(conformers(line)?.remove(0))
    }

    /// Returns the first conformer of a line that is read in this way.
    fn read_in(line: &str, reading: Reading) -> Result<Conformer, RowError> {
        let options = ReadOptions { reading, ..ReadOptions::default() };
        texts(line, &options)?.unwrap()[0].conformer(&options)
    }

    #[test]
    fn fields_in_order_of_preference() {
        let both = r#"{"id": 1, "canonical_smiles": "C\\C", "x": [1, {"y": null}], "smiles": "no",
            "embedded_smiles_stripped": "[C]<1,2,3>", "embedded_smiles": "[C]<1.0000,2.0000,3.0000>"}"#;
        let read = conformer(both).unwrap();
        assert_eq!((&*read.molecule, &*read.skeleton), ("C\\C", "[C]<>"));
        assert_eq!(read.written, DecimalForms { fixed: true, stripped: false });
        for (line, molecule) in [
            (r#"{"embedded_smiles": null, "embedded_smiles_stripped": "[C]<1,2,3>", "smiles": "C"}"#, "C"),
            (r#"{"note": "a]<b", "text": "[SMILES]CC[/SMILES][CONFORMER][C]<1,2,3>[/CONFORMER]"}"#, "CC"),
            (r#"{"t\u0065xt": "[C]\u003c1,2,3>"}"#, "C"),
            (r#"{"name": "PubChem3D_1", "enriched_text": "[C]<1,2,3>"}"#, "C"),
            (
                r#"{"label": "[N]<1,2,3>", "predict": "[C]<1,2,3>", "prompt": "x [SMILES]CC[/SMILES]\n"}"#,
                "CC",
            ),
            (r#"{"label": "[C]<1,2,3>"}"#, "C"),
            (r#"{"content": "prose", "other": "[C]<1,2,3>"}"#, "C"),
        ] {
            let read = conformer(line).unwrap_or_else(|e| panic!("{line}: {e:?}"));
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
            (r#"{"label": "[C]<1,2,3>", "predict": "a refusal"}"#, "byte 0: unexpected 'a'"),
            (r#"{"text": "[C]<1,2>"}"#, "byte 4: block contains 2 numbers, not three"),
            (r#"{"note": "[C]<1,2>"}"#, "field \"note\": byte 4: block contains 2 numbers, not three"),
            (r#"{"embedded_smiles": ""}"#, "byte 0: no atom"),
        ] {
            assert_eq!(conformer(line).unwrap_err(), reason.to_owned().into(), "{line}");
        }
    }

    #[test]
    fn the_header_of_generated_texts_is_no_row() {
        for line in [
            r#"{"schema": "drift.texts/1", "runs": [{"text": "[C]<1,2>"}]}"#,
            r#"{"runs": [], "schema": "drift.texts/9"}"#,
        ] {
            assert_eq!(conformers(line).unwrap().len(), 0, "{line}");
        }
        assert_eq!(conformers(r#"{"schema": "other/1", "text": "[C]<1,2,3>"}"#).unwrap().len(), 1);
    }

    #[test]
    fn a_grouped_row_gives_all_its_conformers_under_one_pool() {
        let row = r#"{"geom_key": "C[C@H](F)O", "geom_id": "0", "isomers": {
            "C[C@H](F)O": [{"embedded_smiles": "[C]<1,2,3>", "energy": -1.5, "weight": null}, "[C]<2,2,3>"],
            "C[C@@H](F)O": {"embedded_smiles": "[C]<3,2,3>"}}}"#;
        let read = conformers(row).unwrap();
        assert_eq!(read.iter().map(|c| c.coordinates[0][0]).collect::<Vec<_>>(), [10_000, 20_000, 30_000]);
        assert_eq!(
            read.iter().map(|c| &*c.molecule).collect::<Vec<_>>(),
            ["C[C@H](F)O", "C[C@H](F)O", "C[C@@H](F)O"]
        );
        let pool = read[2].pool.as_ref().unwrap();
        assert_eq!(pool.smiles, "C[C@H](F)O");
        assert_eq!(pool.isomers, [("C[C@H](F)O".to_owned(), 2), ("C[C@@H](F)O".to_owned(), 1)]);
        let broken = texts(r#"{"isomers": {"C": [{"energy": 1}, 3, [1]]}}"#, &ReadOptions::default());
        let places: Vec<String> = broken.unwrap().unwrap().into_iter().map(|text| text.place).collect();
        assert_eq!(places, ["isomer C, conformer 1", "isomer C, conformer 2", "isomer C, conformer 3"]);
    }

    #[test]
    fn rows_are_picked_by_their_fields() {
        let options =
            ReadOptions { rows: RowFilter::new(["dataset=GEOM"]).unwrap(), ..ReadOptions::default() };
        let picked = |dataset: &str| {
            let line = format!(r#"{{"dataset": "{dataset}", "text": "[C]<1,2,3>"}}"#);
            texts(&line, &options).map(|texts| texts.is_some())
        };
        assert_eq!((picked("GEOM"), picked("ZINC")), (Ok(true), Ok(false)));
        assert!(texts(r#"{"text": "[C]<1,2,3>"}"#, &options).unwrap_err().contains("no field `dataset`"));
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
                let read = read_in(&line, Reading::default()).unwrap_or_else(|e| panic!("{line}: {e:?}"));
                let off = read.coordinates[0].iter().zip([10_000, 20_000, 30_000]);
                assert!(off.into_iter().all(|(found, right)| (found - right).abs() <= 250), "{line}");
            }
        }
        let bins = r#"{"encoding": "binned-v1:-21,21,0.05", "text": "[C]<440,460,480>"}"#;
        let (stated, wanted) = ("binned-v1:-21,21,0.05", "binned-v1:-11,11,0.05");
        let reading = Reading::new(wanted.parse().unwrap()).of_texts();
        assert_eq!(
            read_in(bins, reading).unwrap_err(),
            RowError::Contradiction { stated: stated.parse().unwrap(), wanted: reading.encoding }
        );
        let six = r#"{"encoding": "lines-6", "text": "[C] 1.000001 2.000000 3.000000"}"#;
        let reason = "it is written as lines-6, with more than four decimals".to_owned();
        assert_eq!(read_in(six, Reading::default()).unwrap_err(), reason.into());
        assert!(read_in(six, Reading::default().cutting(true)).is_ok());
        // A row is data: the paths of files are not followed.
        let path = r#"{"encoding": "Cargo.toml", "text": "[C]<1,2,3>"}"#;
        let RowError::Bad(reason) = read_in(path, Reading::default()).unwrap_err() else { panic!() };
        assert!(reason.starts_with("field \"encoding\": `Cargo.toml` is no encoding;"), "{reason}");
    }
}
