//! Chemistry as tables.

use super::fields::Fields;
use super::format::{or_dash, percent_interval, percent_of, thousands};
use super::table::Table;
use drift_data::audit::chemistry::{ChemistryFigure, ChemistryReport};

/// The shares of the table of chemistry, with their headings.
const SHARES: [(&str, ChemistryFigure); 10] = [
    ("valid\nbut stereo", ChemistryFigure::ValidGeometry),
    ("stereocentres\nright", ChemistryFigure::StereocentresRight),
    ("double bonds\nright", ChemistryFigure::DoubleBondsRight),
    ("clashing", ChemistryFigure::Clashing),
    ("wrong\nbonds", ChemistryFigure::BadBonds),
    ("wrong\nangles", ChemistryFigure::BadAngles),
    ("bent\nrings", ChemistryFigure::BentAromaticRings),
    ("flat\nrings", ChemistryFigure::FlatRings),
    ("bent\nC=C, C=O", ChemistryFigure::BentDoubleBonds),
    ("in\npieces", ChemistryFigure::Fragmented),
];

/// The same for the table of flatness.
const FLATNESS: [(&str, ChemistryFigure); 3] = [
    ("all z\nnear 0", ChemistryFigure::Flat),
    ("in one\nplane", ChemistryFigure::Planar),
    ("blocks with\nz = 0", ChemistryFigure::ZeroZ),
];

/// A row of the chemistry tables.
#[derive(Debug, Clone)]
pub struct ChemistryRow<'r> {
    /// The name of the row.
    pub name: String,
    /// Whether the row is highlighted.
    pub strong: bool,
    /// The number of texts that pass; `None` for references.
    pub passed: Option<u64>,
    /// The findings.
    pub chemistry: &'r ChemistryReport,
    /// The number of texts or references.
    pub texts: u64,
}

impl<'r> ChemistryRow<'r> {
    /// Returns the row of the references.
    pub fn references(chemistry: &'r ChemistryReport) -> Self {
        let name = "references".to_owned();
        ChemistryRow { name, strong: false, passed: None, chemistry, texts: chemistry.checked }
    }

    fn of_texts(&self, count: u64) -> String {
        format!("{} of {}", thousands(count), thousands(self.texts))
    }

    fn share(&self, figure: ChemistryFigure) -> String {
        let (count, of) = self.chemistry.share(figure, self.texts);
        percent_of(count, of)
    }

    fn interval(&self, figure: ChemistryFigure) -> String {
        or_dash(self.chemistry.chemistry_intervals.get(&figure), |interval| percent_interval(*interval))
    }
}

/// Returns the chemistry of the texts compared with the references; `None` if nothing was checked.
pub fn chemistry_table(rows: &[ChemistryRow<'_>]) -> Option<Table> {
    if rows.iter().all(|row| row.chemistry.checked == 0) {
        return None;
    }
    let mut fields = Fields::new("Chemistry of the texts that pass, and of the references")
        .code("", |row: &ChemistryRow<'_>| row.name.clone())
        .number("pass", |row| or_dash(row.passed, |count| row.of_texts(count)))
        .number("valid", |row| row.of_texts(row.chemistry.valid))
        .number("95 %", |row| row.interval(ChemistryFigure::Valid));
    for (title, figure) in SHARES {
        fields = fields.number(title, move |row| row.share(figure));
    }
    let mut table = fields.marked(rows, |row| row.strong);
    table.note(
        "Valid: the stereo of the prompt, no clash, and plausible bonds, angles and planes (the rules of PoseBusters on heavy \
         atoms, without the energy). Valid is a share of all texts, stereo a share of the marks in the prompts, the rest are shares of the texts \
         that pass.",
    );
    Some(table)
}

/// Returns how flat the texts are, compared with the references; `None` if nothing was checked.
pub fn flatness_table(rows: &[ChemistryRow<'_>]) -> Option<Table> {
    if rows.iter().all(|row| row.chemistry.checked == 0) {
        return None;
    }
    let mut fields = Fields::new("How flat the texts are")
        .code("", |row: &ChemistryRow<'_>| row.name.clone())
        .number("checked", |row| thousands(row.chemistry.checked));
    for (title, figure) in FLATNESS {
        let share = move |row: &ChemistryRow<'_>| row.share(figure);
        fields = fields.number(title, share).number("95 %", move |row| row.interval(figure));
    }
    let mut table = fields.marked(rows, |row| row.strong);
    table.note(
        "Within 0.05 Å, texts of four atoms or more. z depends on the frame: in that of the first atoms three atoms of each \
         molecule have z = 0. Where z is 0.0000 a truncated last digit costs nothing, so templates of zeros look better on flat \
         texts than they are.",
    );
    Some(table)
}
