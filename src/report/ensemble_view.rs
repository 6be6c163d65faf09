//! Hit@K and clusters in tables, for rows of texts whoever wrote them.

use super::fields::Fields;
use super::format::{bound, hundredths, number, or_dash, thousands};
use super::table::Table;
use drift_data::audit::ensemble::{ClusterFigures, ClusterReport, HitReport, HitsAt, ThresholdClusters};

/// A row of texts with its measures, as far as they were asked for.
pub(super) struct EnsembleRow<'r> {
    /// The cells that name it.
    pub name: Vec<String>,
    /// Whether it is in bold.
    pub strong: bool,
    pub hits: Option<&'r HitReport>,
    pub clusters: Option<&'r ClusterReport>,
}

/// The title of [`hits_table`].
pub(super) const HITS_TITLE: &str = "Hit@K, in percent of molecules";

/// The title of [`clusters_table`].
pub(super) const CLUSTERS_TITLE: &str = "Clusters, means over molecules";

/// Hit@K of each row, over all molecules and by class; `None` if it was not asked for. `table` has the columns that name a row.
pub(super) fn hits_table(table: Table, rows: &[EnsembleRow<'_>]) -> Option<Table> {
    let first = rows.iter().find_map(|row| row.hits.filter(|hits| !hits.at.is_empty()))?;
    let mut table = table.text("molecules").number("number");
    for threshold in &first.at[0].thresholds {
        for at in &first.at {
            table = table.number(&format!("{} Å\nHit@{}", bound(threshold.angstrom), at.k));
        }
    }
    for at in &first.at {
        table = table.number(&format!("RMSD, Å\nbest of {}", at.k));
    }
    for row in rows {
        let Some(hits) = row.hits else { continue };
        add(&mut table, row, "all".to_owned(), hit_cells(hits.molecules, &hits.at));
        for own in &hits.strata {
            add(&mut table, row, own.stratum.name(), hit_cells(own.molecules, &own.at));
        }
    }
    table.note("Of K texts of a molecule in random order one has an RMSD to a reference at or below the threshold: the expectation over all orders.");
    table.note("Texts that do not pass never hit. RMSD: of K conformers that can be compared.");
    Some(table)
}

fn hit_cells(molecules: u64, at: &[HitsAt]) -> Vec<String> {
    let mut cells = vec![thousands(molecules)];
    let thresholds = at.first().map_or(0, |first| first.thresholds.len());
    for threshold in 0..thresholds {
        cells.extend(at.iter().map(|at| hundredths(100.0 * at.thresholds[threshold].hit.mean)));
    }
    cells.extend(at.iter().map(|at| or_dash(at.best_rmsd_angstrom, |rmsd| number(rmsd.mean))));
    cells
}

/// Returns the clusters of each row, over all molecules and by class; `None` if they were not asked for. `table` has the columns that
/// name a row.
pub(super) fn clusters_table(table: Table, rows: &[EnsembleRow<'_>]) -> Option<Table> {
    rows.iter().find_map(|row| row.clusters)?;
    let mut lines: Vec<ClusterLine<'_>> = Vec::new();
    for row in rows {
        let Some(clusters) = row.clusters else { continue };
        lines.extend(ClusterLine::of(row, "all", &clusters.figures));
        for own in &clusters.strata {
            lines.extend(ClusterLine::of(row, &own.stratum.name(), &own.figures));
        }
    }
    let fields = Fields::behind(table, |line: &ClusterLine<'_>| line.row.name.clone())
        .text("molecules", |line| line.molecules.clone())
        .number("number", |line| thousands(line.figures.molecules))
        .number("threshold\nÅ", |line| bound(line.at.angstrom))
        .number("clusters", |line| number(line.at.clusters.mean))
        .number("per 100\nconformers", |line| number(line.at.per_100_conformers.mean))
        .number("effective\nclusters", |line| number(line.at.effective.mean))
        .number("evenness", |line| number(line.at.evenness.mean))
        .number("largest\n%", |line| hundredths(100.0 * line.at.largest_share.mean))
        .number("singletons\n%", |line| hundredths(100.0 * line.at.singleton_share.mean))
        .number("torsion\nspread, °", |line| {
            or_dash(line.figures.torsion_spread_degrees, |spread| number(spread.mean))
        });
    let mut table = fields.marked(&lines, |line| line.row.strong);
    table.note("In order, a conformer joins the nearest cluster whose first member is closer than the threshold, or begins one. Over molecules with a conformer.");
    Some(table)
}

/// The clusters of a class of molecules at one threshold.
struct ClusterLine<'r> {
    row: &'r EnsembleRow<'r>,
    molecules: String,
    figures: &'r ClusterFigures,
    at: &'r ThresholdClusters,
}

impl<'r> ClusterLine<'r> {
    /// Returns a line for each threshold.
    fn of(
        row: &'r EnsembleRow<'r>,
        molecules: &str,
        figures: &'r ClusterFigures,
    ) -> impl Iterator<Item = ClusterLine<'r>> {
        let line = move |at| ClusterLine { row, molecules: molecules.to_owned(), figures, at };
        figures.thresholds.iter().map(line)
    }
}

fn add(table: &mut Table, row: &EnsembleRow<'_>, molecules: String, cells: Vec<String>) {
    let named = row.name.iter().cloned().chain([molecules]);
    table.marked_row(row.strong, named.chain(cells));
}
