//! The objects of a file of generated text. Only the needed fields are kept, so other content of a file takes no memory.

use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess};
use serde_json::Value;

use super::judging::without_examples;
use super::row_label::RowLabel;
use super::sample::split;
use crate::corpus::fields::{
    self, ENCODING_FIELD, ID_FIELDS, ISOMERS_FIELD, POOL_FIELDS, PROMPT_FIELDS, SMILES_FIELDS, TEXT_FIELDS,
};
use drift_core::encoding::TrailingZeros;
use drift_core::io::{FoldSeed, JsonFold, JsonPart};
use drift_core::text::CONFORMER_OPEN;

/// The field that lists the blocks that were closed by force, as `drift generate` writes it.
const TRUNCATED_FIELD: &str = "truncated_blocks";

/// The fields that may list the texts of one prompt: those of 3DMolGen, of OpenAI's interface, and of vLLM.
const LISTS: [&str; 3] = ["all_generations", "choices", "outputs"];

/// The field in which drift names the logit processor.
pub(super) const LP_FIELD: &str = "lp";

/// The fields that say why a text ended, of drift and of OpenAI's interface and vLLM.
const END_FIELDS: [&str; 2] = ["end", "finish_reason"];

/// Objects that wrap an answer in OpenAI's interface: in a line of a batch, and in a chat.
const AROUND: [&str; 3] = ["response", "body", "message"];

/// The most texts of one molecule.
const MAX_GENERATIONS: usize = 1 << 20;

/// One object.
#[derive(Debug, Default)]
pub(super) struct Row {
    texts: [Option<String>; TEXT_FIELDS.len()],
    prompts: [Option<String>; SMILES_FIELDS.len()],
    /// The logit processor.
    lp: Option<String>,
    /// The model.
    model: Option<String>,
    /// The placeholder of the logit processor.
    placeholder: Option<String>,
    /// Whether the text was cut at its largest number of tokens.
    pub is_cut: bool,
    /// The seconds that it took, if the row states them.
    pub seconds: Option<f64>,
    /// The number of its tokens, if the row states it.
    pub tokens: Option<u64>,
    /// The blocks that were closed by force although the model would have continued the number, if the row states them.
    pub truncated: Option<Box<[usize]>>,
    /// A prompt found between its tags.
    tagged: Option<String>,
    /// Whether the prompt ends with the opening tag of the answer.
    pub opened: bool,
    /// The id of the text in the file.
    pub id: Option<String>,
    /// The index of the text among those of its molecule.
    pub generation: Option<u64>,
    /// Whether its generation is something else than the number of a text.
    pub has_other_generation: bool,
    /// The SMILES under which texts of several isomers are pooled.
    pub pool: Option<String>,
    /// Several texts of one prompt.
    pub all: Option<Listing>,
    /// The texts of each isomer of a grouped row, with its SMILES.
    pub isomers: Vec<(String, Vec<Option<FieldText>>)>,
    /// The encoding of its texts: a name, or an object of format `drift.encoding/1`.
    pub encoding: Option<Value>,
}

/// The fields of one conformer in both ways of writing decimals, with and without trailing zeros.
const BOTH_WAYS: [&str; 2] = ["embedded_smiles", "embedded_smiles_stripped"];

/// The texts of a list.
#[derive(Debug)]
pub(super) struct Listing {
    /// The field name of the list.
    pub name: &'static str,
    /// Its texts; `None` for an entry without a text.
    pub texts: Vec<Option<FieldText>>,
}

/// A text and the field that it comes from.
#[derive(Debug)]
pub(super) struct FieldText {
    /// The field; `None` for a bare entry of a list.
    pub field: Option<&'static str>,
    pub text: String,
    /// Whether trailing zeros are kept, if the fields of the row tell.
    pub zeros: Option<TrailingZeros>,
    /// Whether it was cut at its largest number of tokens.
    pub is_cut: bool,
}

impl Row {
    /// Returns the object's own text. Of a conformer in both ways of writing decimals it is the one with trailing zeros, unless `zeros`
    /// asks for the other.
    pub(super) fn text(mut self, zeros: Option<TrailingZeros>) -> Option<FieldText> {
        let place = |field: &str| TEXT_FIELDS.iter().position(|known| *known == field);
        let [with, without] = BOTH_WAYS.map(place);
        let has = |at: Option<usize>| at.is_some_and(|at| self.texts[at].is_some());
        let has_both = has(with) && has(without);
        let dropped = if zeros == Some(TrailingZeros::Removed) { with } else { without };
        if let Some(at) = dropped.filter(|_| has_both) {
            self.texts[at] = None;
        }
        let mut texts = TEXT_FIELDS.into_iter().zip(self.texts);
        let (field, text) = texts.find_map(|(field, text)| Some((field, text?)))?;
        let zeros = match BOTH_WAYS.iter().position(|known| *known == field) {
            Some(1) => Some(TrailingZeros::Removed),
            Some(_) if has_both => Some(TrailingZeros::Kept),
            _ => None,
        };
        Some(FieldText { field: Some(field), text, zeros, is_cut: self.is_cut })
    }

    /// Returns what the object says of its origin.
    pub(super) fn label(&mut self) -> RowLabel {
        RowLabel { model: self.model.take(), lp: self.lp.take(), placeholder: self.placeholder.take() }
    }

    /// Returns the object's prompt.
    pub(super) fn prompt(&self) -> Option<&str> {
        self.prompts.iter().chain([&self.tagged]).find_map(Option::as_deref)
    }

    /// Returns whether a field with a single value belongs to a row. `lp` is the field of the logit processor.
    pub(super) fn has_field(field: &str, lp: &str) -> bool {
        let lists: [&[&str]; 5] = [&TEXT_FIELDS, &SMILES_FIELDS, &PROMPT_FIELDS, &POOL_FIELDS, &ID_FIELDS];
        lists.iter().any(|list| list.contains(&field))
            || END_FIELDS.contains(&field)
            || matches!(field, ENCODING_FIELD | "model" | "placeholder" | "generation" | "seconds" | "tokens")
            || field == lp
    }

    /// Takes the value of a field for which [`has_field`](Self::has_field) holds.
    pub(super) fn take(&mut self, field: &str, lp: &str, value: Read) {
        // First, because a user may name any field as that of the logit processor.
        if field == lp {
            self.lp = value.shown();
        } else if let Some(at) = fields::place(&TEXT_FIELDS, field) {
            self.texts[at] = value.text();
        } else if let Some(at) = fields::place(&SMILES_FIELDS, field) {
            self.prompts[at] = value.text();
        } else if fields::place(&PROMPT_FIELDS, field).is_some() {
            self.take_prompt(field, value.text());
        } else if fields::place(&POOL_FIELDS, field).is_some() {
            self.pool = self.pool.take().or(value.text());
        } else if field == ID_FIELDS[0] {
            self.id = value.shown().or(self.id.take());
        } else if field == ID_FIELDS[1] {
            self.id = self.id.take().or(value.shown());
        } else if field == ENCODING_FIELD {
            self.encoding = value.text().map(Value::String);
        } else if END_FIELDS.contains(&field) {
            self.is_cut |= value.text().as_deref() == Some("length");
        } else {
            match field {
                "model" => self.model = value.text(),
                "placeholder" => self.placeholder = value.text(),
                "generation" => {
                    let is_given = value.is_given();
                    self.generation = value.count();
                    self.has_other_generation = is_given && self.generation.is_none();
                }
                "tokens" => self.tokens = value.count(),
                "seconds" => self.seconds = value.number(),
                _ => {}
            }
        }
    }

    /// Stores a prompt as it was given to an engine, and what it implies for the text.
    fn take_prompt(&mut self, field: &str, text: Option<String>) {
        let Some(text) = text else { return };
        let target = without_examples(&text);
        self.opened |= target.trim_end().ends_with(CONFORMER_OPEN);
        self.tagged = self.tagged.take().or_else(|| split(target).prompt.map(str::to_owned));
        if field == "custom_id" {
            self.id = self.id.take().or(Some(text));
        }
    }

    /// Takes fields from an inner object, where this object has none.
    fn take_from(&mut self, inside: Row) {
        for (own, other) in self.texts.iter_mut().zip(inside.texts) {
            *own = own.take().or(other);
        }
        self.all = self.all.take().or(inside.all);
        self.is_cut |= inside.is_cut;
    }
}

/// The result of reading a value: a [`Row`] for an object, the string for a string.
#[derive(Debug)]
pub(super) enum Read {
    /// An object.
    Row(Box<Row>),
    /// A string.
    Text(String),
    /// An integer of 0 or more.
    Count(u64),
    /// An integer below 0.
    Negative(i64),
    /// Another number.
    Number(f64),
    /// `true` or `false`.
    Truth(bool),
    /// Anything else.
    Other,
}

impl Read {
    /// Returns the string, if it is one.
    pub(super) fn text(self) -> Option<String> {
        if let Read::Text(text) = self { Some(text) } else { None }
    }

    /// Returns a string, a number or a truth value, as text.
    fn shown(self) -> Option<String> {
        match self {
            Read::Text(text) => Some(text),
            Read::Count(count) => Some(count.to_string()),
            Read::Negative(number) => Some(number.to_string()),
            Read::Number(number) => Some(number.to_string()),
            Read::Truth(truth) => Some(truth.to_string()),
            Read::Row(_) | Read::Other => None,
        }
    }

    /// Returns the number, if it is one.
    fn number(self) -> Option<f64> {
        match self {
            Read::Count(count) => Some(count as f64),
            Read::Negative(number) => Some(number as f64),
            Read::Number(number) => Some(number),
            Read::Row(_) | Read::Text(_) | Read::Truth(_) | Read::Other => None,
        }
    }

    /// Returns the integer, if it is one of 0 or more, however it is written: tables write `5.0` where another row has none.
    pub(super) fn count(self) -> Option<u64> {
        match self {
            Read::Count(count) => Some(count),
            Read::Number(number) => whole(number),
            Read::Text(text) => text.trim().parse().ok().and_then(whole),
            Read::Row(_) | Read::Negative(_) | Read::Truth(_) | Read::Other => None,
        }
    }

    /// Returns whether there is a value: not null, and no empty text.
    fn is_given(&self) -> bool {
        match self {
            Read::Text(text) => !text.trim().is_empty(),
            Read::Number(number) => !number.is_nan(),
            other => !matches!(other, Read::Other),
        }
    }

    fn generation(self) -> Option<FieldText> {
        match self {
            Read::Text(text) => Some(FieldText { field: None, text, zeros: None, is_cut: false }),
            Read::Row(row) => row.text(None),
            Read::Count(_) | Read::Negative(_) | Read::Number(_) | Read::Truth(_) | Read::Other => None,
        }
    }
}

/// Returns a number as an integer of 0 or more, if it is one.
fn whole(number: f64) -> Option<u64> {
    // All integers up to 2⁵³ are exact.
    ((0.0..=9_007_199_254_740_992.0).contains(&number) && number.fract() == 0.0).then_some(number as u64)
}

/// Reads any value.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reading<'f> {
    /// The field of an object that names its logit processor.
    pub lp: &'f str,
}

/// Reads any value inside an object, with drift's own names of fields.
const INSIDE: Reading<'static> = Reading { lp: LP_FIELD };

impl<'de> JsonFold<'de> for Reading<'_> {
    type Value = Read;

    fn part<E>(self, part: JsonPart<'_>) -> Result<Read, E> {
        Ok(match part {
            JsonPart::Text(text) => Read::Text(text.to_owned()),
            JsonPart::Count(count) => Read::Count(count),
            JsonPart::Negative(number) => Read::Negative(number),
            JsonPart::Number(number) => Read::Number(number),
            JsonPart::Truth(truth) => Read::Truth(truth),
            _ => Read::Other,
        })
    }

    fn object<A: MapAccess<'de>>(self, mut fields_of: A) -> Result<Read, A::Error> {
        let mut row = Box::<Row>::default();
        while let Some(field) = fields_of.next_key::<String>()? {
            if let Some(at) = fields::place(&LISTS, &field) {
                let texts = fields_of.next_value_seed(Generations)?;
                // A field with this name that is not a list does not replace one found before.
                row.all = texts.map(|texts| Listing { name: LISTS[at], texts }).or(row.all);
            } else if field == ENCODING_FIELD {
                row.encoding = fields_of.next_value::<Option<Value>>()?;
            } else if field == TRUNCATED_FIELD {
                row.truncated = fields_of.next_value::<Option<Value>>()?.and_then(|value| indices(&value));
            } else if field == ISOMERS_FIELD {
                row.isomers = fields_of.next_value_seed(FoldSeed(Isomers))?;
            } else if fields::place(&AROUND, &field).is_some() {
                if let Read::Row(inside) = fields_of.next_value_seed(FoldSeed(INSIDE))? {
                    row.take_from(*inside);
                }
            } else if Row::has_field(&field, self.lp) {
                row.take(&field, self.lp, fields_of.next_value_seed(FoldSeed(INSIDE))?);
            } else {
                fields_of.next_value::<IgnoredAny>()?;
            }
        }
        Ok(Read::Row(row))
    }
}

/// Returns the indices of a list; `None` if the value is no list of indices.
fn indices(list: &Value) -> Option<Box<[usize]>> {
    list.as_array()?.iter().map(|index| usize::try_from(index.as_u64()?).ok()).collect()
}

/// Reads the texts of a molecule; `None` if they are not a list.
struct Generations;

impl<'de> DeserializeSeed<'de> for Generations {
    type Value = Option<Vec<Option<FieldText>>>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        let mut texts = Vec::new();
        let each = |read: Read| {
            texts.push(read.generation());
            if texts.len() > MAX_GENERATIONS {
                Err("more texts of one molecule than drift reads")
            } else {
                Ok(())
            }
        };
        let is_list = FoldSeed(ListVisitor { each, null_is_list: false, lp: LP_FIELD.to_owned() })
            .deserialize(deserializer)?;
        Ok(is_list.then_some(texts))
    }
}

/// Reads the isomers of a grouped row: by SMILES a list of texts or objects, or one of them.
struct Isomers;

impl<'de> JsonFold<'de> for Isomers {
    type Value = Vec<(String, Vec<Option<FieldText>>)>;

    fn part<E>(self, _: JsonPart<'_>) -> Result<Self::Value, E> {
        Ok(Vec::new())
    }

    fn object<A: MapAccess<'de>>(self, mut isomers: A) -> Result<Self::Value, A::Error> {
        let mut read = Vec::new();
        while let Some(smiles) = isomers.next_key::<String>()? {
            read.push((smiles, isomers.next_value_seed(FoldSeed(OneOrMore))?));
        }
        Ok(read)
    }
}

/// Reads a list of texts or objects, or one of them.
struct OneOrMore;

impl<'de> JsonFold<'de> for OneOrMore {
    type Value = Vec<Option<FieldText>>;

    fn part<E: serde::de::Error>(self, part: JsonPart<'_>) -> Result<Self::Value, E> {
        Ok(vec![INSIDE.part(part)?.generation()])
    }

    fn list<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut texts = Vec::new();
        while let Some(read) = list.next_element_seed(FoldSeed(INSIDE))? {
            texts.push(read.generation());
        }
        Ok(texts)
    }

    fn object<A: MapAccess<'de>>(self, fields: A) -> Result<Self::Value, A::Error> {
        Ok(vec![INSIDE.object(fields)?.generation()])
    }
}

/// Passes each value of a list to a function while it is read. Its value says whether there is a list.
pub(super) struct ListVisitor<F> {
    pub each: F,
    /// The field of an object that names its logit processor.
    pub lp: String,
    /// Whether `null` counts as an empty list.
    pub null_is_list: bool,
}

impl<'de, F: FnMut(Read) -> Result<(), &'static str>> JsonFold<'de> for ListVisitor<F> {
    type Value = bool;

    fn part<E>(self, part: JsonPart<'_>) -> Result<bool, E> {
        Ok(self.null_is_list && part == JsonPart::Null)
    }

    fn list<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<bool, A::Error> {
        while let Some(read) = list.next_element_seed(FoldSeed(Reading { lp: &self.lp }))? {
            (self.each)(read).map_err(A::Error::custom)?;
        }
        Ok(true)
    }
}
