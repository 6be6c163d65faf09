//! The names of the fields and columns that rows of text have, in one list for every verb and every format of rows.

/// The fields that may hold a text, in order of preference: what was generated comes before what it was made from.
///
/// `predict` and `label` are LlamaFactory's, `enriched_text` is a column of 3DMolGen's tables; fields whose names begin with
/// `embedded_smiles` hold only the text between the conformer tags.
pub(crate) const TEXT_FIELDS: [&str; 10] = [
    "decoded_text",
    "text",
    "completion",
    "generated_text",
    "predict",
    "content",
    "embedded_smiles",
    "embedded_smiles_stripped",
    "enriched_text",
    "label",
];

/// The fields that may hold the SMILES of the molecule, in order of preference.
pub(crate) const SMILES_FIELDS: [&str; 3] = ["prompt_smiles", "canonical_smiles", "smiles"];

/// The fields that may hold a prompt with its tags, as it was given to an engine. Without tags they are ignored.
pub(crate) const PROMPT_FIELDS: [&str; 2] = ["prompt", "custom_id"];

/// The fields that may hold the name of a row.
pub(crate) const ID_FIELDS: [&str; 2] = ["id", "name"];

/// The fields that may hold the SMILES of GEOM under which several isomers are pooled: those of generated texts, and of grouped rows.
pub(crate) const POOL_FIELDS: [&str; 2] = ["geom_smiles", "geom_key"];

/// The field of a grouped row: an object from the SMILES of each isomer to its conformers.
pub(crate) const ISOMERS_FIELD: &str = "isomers";

/// The field that says how the text of its row is encoded.
pub(crate) const ENCODING_FIELD: &str = "encoding";

/// LlamaFactory's field for what a model wrote, and its field for what it should have written. Where there is a prediction, even an
/// unusable one, the label is not the text of the row.
pub(crate) const PREDICTION_FIELD: &str = "predict";
pub(crate) const LABEL_FIELD: &str = "label";

/// The field of the first line of a file of generated texts, and what its value begins with in every version. The line is no row.
pub(crate) const SCHEMA_FIELD: &str = "schema";
pub(crate) const ANY_TEXTS_SCHEMA: &str = "drift.texts/";

/// Returns the position of a name in a list of fields.
pub(crate) fn place(fields: &[&str], name: &str) -> Option<usize> {
    fields.iter().position(|field| *field == name)
}

/// Returns whether a field holds only the text between the conformer tags.
pub(crate) fn is_inside_tags(field: &str) -> bool {
    field.starts_with("embedded_smiles") || field == "enriched_text"
}
