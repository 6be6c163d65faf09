//! Chemistry as tables.

use super::format::{or_dash, percent, percent_interval, thousands};
use super::table::Table;
use drift_data::audit::chemistry::{ChemistryFigure, ChemistryReport};

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

    fn share(&self, figure: ChemistryFigure) -> String {
        match self.chemistry.share(figure, self.texts) {
            (_, 0) => "-".to_owned(),
            (count, of) => percent(drift_data::stats::share(count, of)),
        }
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
    let mut table = Table::new("Chemistry of the texts that pass, and of the references")
        .code("")
        .number("pass")
        .number("valid")
        .number("95 %")
        .number("valid\nbut stereo")
        .number("stereocentres\nright")
        .number("double bonds\nright")
        .number("clashing")
        .number("wrong\nbonds")
        .number("wrong\nangles")
        .number("bent\nrings")
        .number("flat\nrings")
        .number("bent\nC=C, C=O")
        .number("in\npieces");
    for row in rows {
        let count = |count: u64| format!("{} of {}", thousands(count), thousands(row.texts));
        let (passed, valid) = (or_dash(row.passed, count), count(row.chemistry.valid));
        let mut cells = vec![row.name.clone(), passed, valid, row.interval(ChemistryFigure::Valid)];
        cells.extend(
            [
                ChemistryFigure::ValidGeometry,
                ChemistryFigure::StereocentresRight,
                ChemistryFigure::DoubleBondsRight,
                ChemistryFigure::Clashing,
                ChemistryFigure::BadBonds,
                ChemistryFigure::BadAngles,
                ChemistryFigure::BentAromaticRings,
                ChemistryFigure::FlatRings,
                ChemistryFigure::BentDoubleBonds,
                ChemistryFigure::Fragmented,
            ]
            .map(|figure| row.share(figure)),
        );
        table.marked_row(row.strong, cells);
    }
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
    let mut table = Table::new("How flat the texts are")
        .code("")
        .number("checked")
        .number("all z\nnear 0")
        .number("95 %")
        .number("in one\nplane")
        .number("95 %")
        .number("blocks with\nz = 0")
        .number("95 %");
    for row in rows {
        let mut cells = vec![row.name.clone(), thousands(row.chemistry.checked)];
        for figure in [ChemistryFigure::Flat, ChemistryFigure::Planar, ChemistryFigure::ZeroZ] {
            cells.push(row.share(figure));
            cells.push(row.interval(figure));
        }
        table.marked_row(row.strong, cells);
    }
    table.note(
        "Within 0.05 Å, texts of four atoms or more. z depends on the frame: in that of the first atoms three atoms of each \
         molecule have z = 0. Where z is 0.0000 a truncated last digit costs nothing, so templates of zeros look better on flat \
         texts than they are.",
    );
    Some(table)
}
