//! Coordinate statistics as tables and as a page.

use super::fields::Fields;
use super::flaws_view::flaws_tables;
use super::format::{
    counted, first_of, hundredths, number, or_dash, percent, percent_interval, percent_of, sparkline,
    thousands, unread,
};
use super::html::{Page, Section};
use super::plot::{Columns, Labels, Line, Lines, TAIL, columns, lines};
use super::table::{Table, Terminal};
use drift_core::encoding::Precision;
use drift_core::error::shortened_end;
use drift_data::mine::MineReport;
use drift_data::stats::faults::{FaultReport, LONGEST_BOND_ANGSTROM, SHORTEST_BOND_ANGSTROM};
use drift_data::stats::histogram::HistogramView;
use drift_data::stats::report::{AxisReport, GroupReport, Share, StatsReport};

/// Returns the output of `drift mine` in a terminal: a summary and four tables.
pub fn stats_table(report: &StatsReport, terminal: Terminal) -> String {
    let tables = [range_table(report, true), share_table(report), digits_table(report), size_table(report)];
    let tables = tables.map(|table| table.render(terminal));
    format!("{}\n\n{}", summary(report), tables.join("\n"))
}

/// Returns a line on conformers whose geometry cannot be right; empty if there is none.
pub fn faults_line(report: &FaultReport) -> String {
    let kinds = [
        (report.conformers_with_coincident_atoms, "atoms on one point".to_owned()),
        (report.conformers_with_short_bonds, format!("bonds shorter than {SHORTEST_BOND_ANGSTROM} Å")),
        (report.conformers_with_long_bonds, format!("bonds longer than {LONGEST_BOND_ANGSTROM} Å")),
    ];
    let told = kinds.iter().filter(|(count, _)| *count > 0);
    let told: Vec<String> = told.map(|(count, what)| format!("{} with {what}", thousands(*count))).collect();
    let Some(first) = report.conformers.first().filter(|_| !told.is_empty()) else { return String::new() };
    format!(
        "\nImpossible geometry, conformers: {}. The first is number {} ({}): {}; --json lists them.\n",
        told.join(", "),
        thousands(first.number),
        shortened_end(&first.molecule, 60),
        first.fault
    )
}

/// Returns a line on coordinates beyond the range of the encoding; empty if there is none.
pub fn range_line(report: &MineReport) -> String {
    if report.out_of_range == 0 {
        return String::new();
    }
    format!(
        "\nOut of range: {} of {}. They count as the end of the range, and their bonds are not checked.\n",
        counted(report.out_of_range, "coordinate"),
        counted(report.out_of_range_conformers, "conformer")
    )
}

/// Sentences that say what the corpus contains.
pub fn summary(report: &StatsReport) -> String {
    let total = &report.total;
    let mut out = format!(
        "{} of {}, {}.",
        counted(total.conformers, "conformer"),
        counted(total.molecules, "molecule"),
        counted(total.blocks, "block")
    );
    if let Some(atoms) = total.heavy_atoms.summary {
        let sd = atoms.sd.map_or_else(String::new, |sd| format!(", standard deviation {}", number(sd)));
        out.push_str(&format!(
            " Heavy atoms per conformer: mean {}{sd}, median {:.0}, from {:.0} to {:.0}.",
            number(atoms.mean),
            atoms.quantiles.p50,
            atoms.min,
            atoms.max
        ));
    }
    out
}

/// Returns the ranges of coordinates. `with_shape` adds the shape of the distribution as text.
pub fn range_table(report: &StatsReport, with_shape: bool) -> Table {
    let mut table = Table::new("Coordinates by axis, Å").text("axis");
    for title in ["min", "5 %", "median", "95 %", "max", "mean", "sd"] {
        table = table.number(title);
    }
    if with_shape {
        table = table.code("-12 Å to 12 Å");
    }
    for axis in &report.total.axes {
        let mut cells = vec![axis.axis.to_owned()];
        cells.extend(range_cells(axis));
        if with_shape {
            cells.push(axis.histogram.as_ref().map_or_else(String::new, shape));
        }
        table.row(cells);
    }
    table
}

/// Returns the cells for min, 5 %, median, 95 %, max, mean and sd.
fn range_cells(axis: &AxisReport) -> Vec<String> {
    let Some(summary) = axis.summary else { return vec!["-".to_owned(); 7] };
    let q = summary.quantiles;
    let mut cells: Vec<String> =
        [summary.min, q.p05, q.p50, q.p95, summary.max, summary.mean].map(hundredths).to_vec();
    cells.push(or_dash(summary.sd, hundredths));
    cells
}

/// Returns the shares that affect tokens, with their intervals.
pub fn share_table(report: &StatsReport) -> Table {
    Fields::new("Share of coordinates, with 95 % interval")
        .text("axis", |axis: &AxisReport| axis.axis.to_owned())
        .number("negative", |axis| or_dash(axis.negative.share, percent))
        .number("interval", |axis| interval(&axis.negative))
        .number("10 Å or\nmore", |axis| or_dash(axis.ten_or_more.share, percent))
        .number("interval", |axis| interval(&axis.ten_or_more))
        .number("15 Å or\nmore", |axis| or_dash(axis.fifteen_or_more.share, percent))
        .table(&report.total.axes)
}

fn interval(share: &Share) -> String {
    or_dash(share.interval, percent_interval)
}

/// Returns the histogram from -12 to 12 Å in 24 characters of 1 Å.
fn shape(histogram: &HistogramView) -> String {
    let mut counts = [0u64; 24];
    for (bin, count) in histogram.counts.iter().enumerate() {
        let middle = histogram.from_angstrom + (bin as f64 + 0.5) * histogram.width_angstrom;
        if (-12.0..12.0).contains(&middle) {
            // Bins are assigned by their middle, so that rounding of an edge does not move a bin to the neighbour.
            counts[(middle + 12.0) as usize] += count;
        }
    }
    sparkline(&counts, 24)
}

/// Returns how numbers are written: digits before the point, trailing zeros.
pub fn digits_table(report: &StatsReport) -> Table {
    let total = &report.total;
    let mut table =
        Table::new("Digits before the point and trailing zeros, share of coordinates").text("axis");
    let zeros = (0..total.axes[0].trailing_zeros.len()).map(|zeros| match zeros {
        0 => "no zero".to_owned(),
        1 => "1 zero".to_owned(),
        more => format!("{more} zeros"),
    });
    for title in ["1 digit", "2 digits", "3 or\nmore"].map(str::to_owned).into_iter().chain(zeros) {
        table = table.number(&title);
    }
    for axis in &total.axes {
        let counts = axis.integer_digits.iter().chain(&axis.trailing_zeros);
        let mut cells = vec![axis.axis.to_owned()];
        cells.extend(counts.map(|&count| percent_of(count, total.blocks)));
        table.row(cells);
    }
    if let Some(saved) = total.stripped_characters_per_block {
        table.note(format!(
            "The stripped dialect shortens {} of coordinates, 95 % interval {}, and saves {} characters per block.",
            or_dash(total.shortened.share, percent),
            interval(&total.shortened),
            number(saved)
        ));
    }
    table
}

/// Counts and extent by size of the molecule.
pub fn size_table(report: &StatsReport) -> Table {
    let sizes = report.by_size.iter().map(|size| (size.class, &size.group));
    let rows: Vec<(&str, &GroupReport)> = sizes.chain([("all", &report.total)]).collect();
    Fields::new("By heavy atoms")
        .text("heavy atoms", |row: &(&str, &GroupReport)| row.0.to_owned())
        .number("conformers", |row| thousands(row.1.conformers))
        .number("molecules", |row| thousands(row.1.molecules))
        .number("blocks", |row| thousands(row.1.blocks))
        .number("x negative", |row| or_dash(row.1.axes[0].negative.share, percent))
        .number("sd of x, Å", |row| deviation(&row.1.axes[0]))
        .number("of y", |row| deviation(&row.1.axes[1]))
        .number("of z", |row| deviation(&row.1.axes[2]))
        .number("largest |x|", |row| {
            or_dash(row.1.axes[0].summary, |summary| hundredths(summary.max.max(-summary.min)))
        })
        .number("x of 10 Å\nor more", |row| or_dash(row.1.axes[0].ten_or_more.share, percent))
        .marked(&rows, |row| row.0 == "all")
}

fn deviation(axis: &AxisReport) -> String {
    or_dash(axis.summary.and_then(|summary| summary.sd), hundredths)
}

/// Shares of the first digit written, by axis.
fn first_digit_table(report: &StatsReport) -> Table {
    let mut table = Table::new("First digit, share of coordinates (0: below 1 Å)").text("axis");
    for digit in 0..10 {
        table = table.number(&digit.to_string());
    }
    for axis in &report.total.axes {
        let mut cells = vec![axis.axis.to_owned()];
        cells.extend(axis.first_digit.iter().map(|&count| percent_of(count, report.total.blocks)));
        table.row(cells);
    }
    table
}

/// Returns the page of the statistics, and of what a check found if there was one.
pub fn stats_page(mined: &MineReport) -> Page {
    let report = &mined.stats;
    let mut page = Page::new("Coordinates of a corpus", summary(report));
    let remarks = remarks(mined);
    if !remarks.is_empty() {
        page = page.section("What is missing or cannot be right", |section| _ = section.list(&remarks));
    }
    if let Some(check) = &mined.check {
        page = page.section("Check of the corpus", |section| {
            flaws_tables(check).iter().for_each(|table| _ = section.table(table));
        });
    }
    page.section("Where coordinates lie", |section| {
        section
            .svg(&axes_plot(report), &axes_caption(report))
            .table(&range_table(report, false))
            .table(&share_table(report));
    })
    .section("How they are written", |section| {
        section.table(&digits_table(report)).table(&first_digit_table(report));
    })
    .section("Size of molecules", |section| {
        section.svg(&size_plot(report), "Heavy atoms per conformer.").table(&size_table(report));
    })
    .section("Method", |section| method(section, report))
    .section("Provenance", |section| {
        section.provenance(&mined.provenance);
    })
}

/// Sentences on what was not read or counted, and on conformers whose geometry cannot be right.
fn remarks(report: &MineReport) -> Vec<String> {
    let mut out = Vec::new();
    if report.interrupted {
        out.push("Some of the shards, or a part of them, are missing.".to_owned());
    }
    out.extend(unread(report.skipped, &report.skipped_records, report.left_out));
    if report.in_file_order > 0 {
        let count = counted(report.in_file_order, "conformer");
        out.push(format!(
            "{count} in file order, without a SMILES.{}",
            first_of(&report.in_file_order_records)
        ));
    }
    let lines = [range_line(report), faults_line(&report.faults)];
    out.extend(lines.iter().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty()));
    out
}

/// Returns the caption of the plot of the axes: what lies outside of it.
fn axes_caption(report: &StatsReport) -> String {
    let histograms = report.total.axes.iter().filter_map(|axis| axis.histogram.as_ref());
    let outside = histograms.map(|all| drift_data::stats::share(all.below.max(all.above), all.total()));
    let outside = percent(outside.fold(TAIL, f64::max));
    format!(
        "Coordinates by axis in bins of 0.1 Å; {outside} of values at either end may lie outside. In a principal-axis frame x is the longest axis."
    )
}

fn axes_plot(report: &StatsReport) -> String {
    let named = report.total.axes.iter().filter_map(|axis| {
        axis.histogram.as_ref().map(|histogram| Line { name: axis.axis.to_owned(), histogram })
    });
    lines(&Lines {
        labels: Labels::new("Coordinates by axis", "coordinate, Å", "share per 0.1 Å"),
        lines: named.collect(),
    })
}

fn size_plot(report: &StatsReport) -> String {
    let counts = report.total.heavy_atoms.histogram.iter().map(|bin| (bin.atoms.into(), bin.conformers));
    columns(&Columns {
        labels: Labels::new("Heavy atoms per conformer", "heavy atoms", "share of conformers"),
        counts: counts.collect(),
    })
}

fn method(section: &mut Section, report: &StatsReport) {
    // As many as there can be trailing zeros.
    let decimals = report.total.axes[0].trailing_zeros.len().checked_sub(1);
    let truncated = decimals.map(|decimals| {
        let precision = Precision::new(decimals).unwrap_or_default();
        format!(
            "Coordinates are truncated toward zero to {} decimals, as texts contain them; so zero means below {:.decimals$} Å in magnitude.",
            precision.in_words(),
            1.0 / f64::from(precision.units_per_angstrom())
        )
    });
    section.list([
        "Counts, means, standard deviations, minima and maxima are exact. Quantiles of coordinates come from bins of 0.1 Å, linear inside a bin.".to_owned(),
        "Intervals are for the population that the molecules are a sample of. Blocks of one molecule are not independent, so the spread between molecules counts: ratio estimator, Cochran, Sampling Techniques (1977), section 3.12, with Student's t.".to_owned(),
        "A molecule is a SMILES as it is written. If a corpus spells its molecules in several ways, intervals are too narrow.".to_owned(),
    ].into_iter().chain(truncated));
}

#[cfg(test)]
mod tests {
    use super::*;
    use drift_core::Encoding;
    use drift_core::job::Provenance;
    use drift_data::corpus::Conformer;
    use drift_data::stats::{CoordinateStats, TextReport};

    fn report() -> StatsReport {
        let mut stats = CoordinateStats::default();
        for (molecule, coordinates) in [
            ("CO", vec![[-10_500, 1, 123_456], [20_001, -1, 1_500_000]]),
            ("CC", vec![[5_000, -98_700, 0], [-1_234, 5, -150_000]]),
        ] {
            stats.add(&Conformer::new(molecule.into(), "[C]<>[O]<>".into(), coordinates));
        }
        stats.report()
    }

    fn mined(stats: StatsReport) -> MineReport {
        MineReport {
            encoding: Encoding::FIXED,
            out_of_range: 0,
            out_of_range_conformers: 0,
            stats,
            texts: TextReport::default(),
            faults: FaultReport::default(),
            check: None,
            interrupted: false,
            left_out: 0,
            skipped: 0,
            skipped_records: Vec::new(),
            in_file_order: 0,
            in_file_order_records: Vec::new(),
            provenance: Provenance::from_inputs(vec![]),
        }
    }

    #[test]
    fn the_tables_of_a_terminal() {
        let got = stats_table(&report(), Terminal::default());
        let want = "\
2 conformers of 2 molecules, 4 blocks. Heavy atoms per conformer: mean 2.00, standard deviation 0, median 2, from 2 to 2.
";
        assert!(got.starts_with(want), "\n{got}");
    }

    #[test]
    fn the_page_loads_nothing() {
        let html = stats_page(&mined(report())).render();
        assert!(!html.contains("http"));
        assert_eq!(html.matches("<svg").count(), 2);
        // Nothing counted is no reason to fail.
        let empty = CoordinateStats::default().report();
        assert!(stats_page(&mined(empty.clone())).render().contains("0 conformers"));
        assert!(stats_table(&empty, Terminal::default()).contains("0 conformers"));
    }
}
