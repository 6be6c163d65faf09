//! The result of `drift fit` as a table and as a page.
//!
//! Views of [`FitReport`] and its parts. Shares are fractions of 1.

use super::format::{angstrom, number, percent, thousands};
use super::html::{Page, Section};
use super::plot::{Bar, BarChart, Columns, Scale, Value, bars, columns};
use super::table::Table;
use crate::placeholder::{CandidateReport, Certificate, FitReport, FitResult, PartitionReport};

fn chosen(result: &FitResult) -> Option<&CandidateReport> {
    result.candidates.iter().find(|candidate| candidate.placeholder == result.placeholder)
}

/// Which placeholder to use, what harm is left, and whether that is proved; placeholders in backticks.
pub fn verdict(result: &FitResult) -> String {
    let mut out =
        format!("Use `{}` with {} ({} dialect)", result.placeholder, result.tokenizer, result.dialect.name());
    if let Some(candidate) = chosen(result) {
        out.push_str(&format!(": {}", harm(candidate)));
    }
    out.push_str(". ");
    let same = |other: &&CandidateReport| {
        other.placeholder != result.placeholder
            && chosen(result).is_some_and(|best| best.measures == other.measures)
    };
    if let Some(other) = result.candidates.iter().find(same) {
        out.push_str(&format!("`{}` ({}) does the same. ", other.placeholder, other.source));
    }
    out.push_str(&if result.certificate.gap <= 0.0 {
        "No placeholder does better: the lower bound is reached.".to_owned()
    } else {
        format!("None better was found; the lower bound leaves a gap of {}.", number(result.certificate.gap))
    });
    out
}

/// The candidates, the chosen one in bold.
pub fn table(result: &FitResult) -> Table {
    let sources = result.candidates.iter().any(|candidate| !candidate.source.is_empty());
    let mut table = Table::new(format!("{}, {} dialect", result.tokenizer, result.dialect.name()))
        .code("placeholder")
        .number("FREE\ntokens")
        .number("blocks with\njunk slots")
        .number("junk slots\nper block")
        .number("blocks\ntruncated")
        .number("blocks\nunparsable")
        .number("conformers\nunparsable")
        .number("induced\nRMSD, Å");
    if sources {
        table = table.text("where it stands");
    }
    for candidate in &result.candidates {
        let chosen = candidate.placeholder == result.placeholder;
        let mut cells = cells(candidate);
        if sources {
            cells.push(candidate.source.clone());
        }
        if chosen {
            table.strong_row(cells)
        } else {
            table.row(cells)
        };
    }
    table.note(format!(
        "Shares of {} blocks; the placeholder to use is `{}`.",
        thousands(result.blocks),
        result.placeholder
    ));
    table
}

/// What a placeholder does to real blocks, in a clause.
fn harm(candidate: &CandidateReport) -> String {
    let parts = [
        (candidate.measures.unparsable_blocks, "become unparsable"),
        (candidate.measures.truncated_blocks, "lose their last tokens"),
        (candidate.measures.junk_blocks, "have slots left over for junk"),
    ];
    let clauses: Vec<String> = parts
        .iter()
        .filter(|(share, _)| *share > 0.0)
        .map(|(share, what)| format!("{} of blocks {what}", percent(*share)))
        .collect();
    let rmsd = match candidate.measures.rmsd_angstrom {
        Some(rmsd) if rmsd > 0.0 => format!(", {} Å RMSD on average", angstrom(rmsd)),
        _ => String::new(),
    };
    if clauses.is_empty() { "every block fits".to_owned() } else { clauses.join(", ") + &rmsd }
}

fn cells(candidate: &CandidateReport) -> Vec<String> {
    vec![
        candidate.placeholder.clone(),
        candidate.free_tokens.to_string(),
        percent(candidate.measures.junk_blocks),
        format!("{:.2}", candidate.measures.junk_tokens_per_block),
        percent(candidate.measures.truncated_blocks),
        percent(candidate.measures.unparsable_blocks),
        percent(candidate.measures.unparsable_conformers),
        candidate.measures.rmsd_angstrom.map_or_else(|| "-".to_owned(), angstrom),
    ]
}

/// A page of all results.
pub fn fit_page(report: &FitReport) -> Page {
    let results = &report.results;
    let lead = match results.as_slice() {
        [only] => verdict(only),
        _ => format!("The least harmful placeholder of {} tokenizers and dialects.", results.len()),
    };
    let mut page = Page::new("Placeholders that fit", lead);
    for result in results {
        page = page.section(&format!("{}, {} dialect", result.tokenizer, result.dialect.name()), |section| {
            result_section(section, result, results.len() > 1);
        });
    }
    page.section("Method", |section| method(section, report)).section("Provenance", |section| {
        section.provenance(&report.provenance);
    })
}

fn result_section(section: &mut Section, result: &FitResult, with_verdict: bool) {
    if with_verdict {
        section.paragraph(&verdict(result));
    }
    section
        .svg(&distribution_plot(result), "How many FREE tokens a real block takes in its context (T). A template gives every block the same number (F), so each other column drifts.")
        .svg(&drift_plot(result), "Drift by placeholder. Junk slots: T < F, the model must fill positions that the coordinate does not need. Truncated: T > F, the last tokens are lost.")
        .svg(&harm_plot(result), "What truncation does, by replay: mean RMSD of the clipped coordinates over the conformers that can still be read, on a logarithmic scale. Junk slots are not in it.")
        .table(&table(result))
        .heading("Certificate")
        .table(&certificate_table(&result.certificate))
        .paragraph(&format!("Blocks were counted by {}.", result.counted_by));
    if !result.classes.is_empty() {
        section.heading("A placeholder per class of block").paragraph(CLASSES).table(&classes_table(result));
    }
}

const CLASSES: &str = "A template may use another placeholder for each class of block, as long as the class follows \
    from the skeleton. Each row is the best assignment for one way to class blocks, proved by branch and bound.";

/// What placeholders per class of block would gain.
pub fn classes_table(result: &FitResult) -> Table {
    let mut table = Table::new(format!("{}, {}, per class", result.tokenizer, result.dialect.name()))
        .text("classes by")
        .number("classes")
        .text("what differs")
        .number("one\nplaceholder")
        .number("one per\nclass")
        .number("gain by molecule,\n95 % interval")
        .number("gap")
        .text("significant");
    for partition in &result.classes {
        let part = COMPARED.iter().position(|name| *name == partition.compared);
        let shown = |harm: [f64; 3]| part.map_or_else(|| "-".to_owned(), |part| number(harm[part]));
        table.row([
            partition.partition.to_owned(),
            partition.classes.len().to_string(),
            partition.compared.replace('_', " "),
            shown(partition.single),
            shown(partition.certificate.objective),
            partition.gain.map_or_else(
                || "-".to_owned(),
                |gain| format!("{:+.4} to {:+.4}", gain.interval.low, gain.interval.high),
            ),
            number(partition.certificate.gap),
            if partition.significant { "yes" } else { "no" }.to_owned(),
        ]);
    }
    table.note(format!("Judged on the first {} conformers.", thousands(result.class_conformers)));
    table.note(classes_verdict(&result.classes));
    table
}

/// The parts of harm, in their order, as [`PartitionReport::compared`] names them.
const COMPARED: [&str; 3] = ["unparsable_blocks", "rmsd_angstrom", "junk_tokens_per_block"];

/// Whether classes of block are worth it, in a sentence.
fn classes_verdict(partitions: &[PartitionReport]) -> String {
    let significant = partitions.iter().filter(|partition| partition.significant);
    let least = |a: &&PartitionReport, b: &&PartitionReport| {
        let (a, b) = (a.certificate.objective, b.certificate.objective);
        a.partial_cmp(&b).unwrap_or(std::cmp::Ordering::Equal)
    };
    match significant.min_by(least) {
        None => "No way to class blocks gains anything significant: one placeholder is enough.".to_owned(),
        Some(best) => {
            let list: Vec<String> = best
                .classes
                .iter()
                .map(|class| format!("{}: `{}`", class.class, class.placeholder))
                .collect();
            format!("By {}: {}.", best.partition, list.join(", "))
        }
    }
}

fn certificate_table(certificate: &Certificate) -> Table {
    let mut table = Table::new("").text("in this order").number("reached").number("lower bound");
    let names =
        ["share of blocks unparsable", "induced RMSD beyond the tolerance, Å", "junk slots per block"];
    for (index, name) in names.into_iter().enumerate() {
        let shown = |value: f64| match index {
            0 => percent(value),
            1 => angstrom(value),
            _ => number(value),
        };
        table.row([
            name.to_owned(),
            shown(certificate.objective[index]),
            shown(certificate.lower_bound[index]),
        ]);
    }
    table.note(match certificate.gap {
        gap if gap <= 0.0 => "Gap 0: no placeholder does better on these blocks.".to_owned(),
        gap => format!("Gap {}: a better placeholder is not excluded.", number(gap)),
    });
    table
}

/// The distribution of T.
pub fn distribution_plot(result: &FitResult) -> String {
    columns(&Columns {
        title: format!(
            "Tokens per block in context, {}, {} dialect",
            result.tokenizer,
            result.dialect.name()
        ),
        x_label: "FREE tokens of a real block in context".to_owned(),
        y_label: "share of blocks".to_owned(),
        counts: result.token_distribution.iter().map(|count| (count.tokens.into(), count.blocks)).collect(),
    })
}

/// Junk and truncation by placeholder.
pub fn drift_plot(result: &FitResult) -> String {
    let value = |share: f64| Value { value: Some(share), text: percent(share) };
    chart(
        result,
        "Drift by placeholder",
        "share of blocks",
        &["blocks with junk slots", "blocks truncated"],
        Scale::Share,
        |candidate| vec![value(candidate.measures.junk_blocks), value(candidate.measures.truncated_blocks)],
    )
}

/// Induced RMSD and unparsable blocks by placeholder.
pub fn harm_plot(result: &FitResult) -> String {
    chart(result, "Harm by placeholder", "induced RMSD, Å", &["induced RMSD"], Scale::Log, |candidate| {
        let unparsable = percent(candidate.measures.unparsable_conformers);
        let text = match (candidate.measures.rmsd_angstrom, candidate.measures.unparsable_conformers > 0.0) {
            (Some(rmsd), false) => format!("{} Å", angstrom(rmsd)),
            (Some(rmsd), true) => format!("{} Å, {unparsable} unparsable", angstrom(rmsd)),
            (None, _) => format!("{unparsable} unparsable"),
        };
        vec![Value { value: candidate.measures.rmsd_angstrom, text }]
    })
}

fn chart(
    result: &FitResult,
    title: &str,
    x_label: &str,
    series: &[&str],
    scale: Scale,
    values: impl Fn(&CandidateReport) -> Vec<Value>,
) -> String {
    let bar = |candidate: &CandidateReport| Bar {
        label: candidate.placeholder.clone(),
        strong: candidate.placeholder == result.placeholder,
        values: values(candidate),
    };
    bars(&BarChart {
        title: format!("{title}, {}, {} dialect", result.tokenizer, result.dialect.name()),
        x_label: x_label.to_owned(),
        series: series.iter().map(|name| (*name).to_owned()).collect(),
        bars: result.candidates.iter().map(bar).collect(),
        scale,
    })
}

fn method(section: &mut Section, report: &FitReport) {
    let corpus = &report.corpus;
    let mut sentence = format!(
        "{} conformers with {} blocks were replayed; {} records were skipped.",
        thousands(corpus.conformers),
        thousands(corpus.blocks),
        thousands(corpus.skipped)
    );
    if corpus.in_file_order > 0 {
        sentence.push_str(&format!(
            " {} conformers come from formats without text and were counted as chains of bare atoms.",
            thousands(corpus.in_file_order)
        ));
    }
    section.paragraph(&sentence);
    section
        .list([
            "T: the FREE tokens that a real block takes in context, counted inside the whole text. F: those of the placeholder's block. Drift is F - T.",
            "Replay: the first F tokens of the real block survive. What is left is parsed as three numbers; a block that no longer holds three is unparsable, else its error against the real values enters the induced RMSD of its conformer, without alignment.",
            "The order of harm: unparsable blocks first, then induced RMSD beyond a tolerance, then junk slots.",
            "Replay does not see what a model makes of its own clipped or padded numbers: it proposes, generation judges.",
        ]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::Provenance;
    use crate::placeholder::{
        CorpusReport, Measures, Objective, SCHEMA, SearchReport, SearchSettings, TokenCount,
    };
    use crate::report::table::Terminal;
    use crate::text::Dialect;

    /// Figures of the shape that Qwen3's tokenizer gives.
    fn sample() -> FitResult {
        let candidate = |placeholder: &str, free_tokens, junk, truncated, unparsable, rmsd| CandidateReport {
            placeholder: placeholder.to_owned(),
            source: String::new(),
            free_tokens,
            measures: Measures {
                junk_blocks: junk,
                junk_tokens_per_block: junk,
                truncated_blocks: truncated,
                unparsable_blocks: unparsable,
                unparsable_conformers: unparsable,
                rmsd_angstrom: rmsd,
            },
        };
        let distribution = [(20, 9_542), (21, 9_400), (22, 178), (23, 3)];
        FitResult {
            tokenizer: "qwen3-custom".to_owned(),
            tokenizer_sha256: String::new(),
            dialect: Dialect::Fixed,
            conformers: 800,
            blocks: 19_123,
            placeholder: "0.0000,0.0000,0.0000".to_owned(),
            free_tokens: 20,
            certificate: Certificate { objective: [0.0; 3], lower_bound: [0.0; 3], gap: 0.0 },
            candidates: vec![
                candidate("0.0000,0.0000,0.0000", 20, 0.0, 0.501, 0.0, Some(0.0004)),
                candidate("-0.0000,0.0000,0.0000", 21, 0.499, 0.0, 0.0, Some(0.0)),
                candidate("0.000,0.000,0.000", 17, 0.0, 1.0, 0.0, Some(0.325)),
                candidate("1.23,-4.56,7.89", 14, 0.0, 1.0, 1.0, None),
            ],
            token_distribution: distribution.map(|(tokens, blocks)| TokenCount { tokens, blocks }).to_vec(),
            exact: true,
            counted_by: "tables".to_owned(),
            search: SearchReport {
                settings: SearchSettings { seed: 0, iterations: 1 },
                evaluations: 1,
                reached_bound: true,
            },
            class_conformers: 0,
            classes: Vec::new(),
        }
    }

    #[test]
    fn the_verdict_says_what_to_do() {
        let mut view = sample();
        assert_eq!(
            verdict(&view),
            "Use `0.0000,0.0000,0.0000` with qwen3-custom (fixed dialect): 50.1 % of blocks lose their last tokens, \
             0.0004 Å RMSD on average. No placeholder does better: the lower bound is reached."
        );
        view.certificate.gap = 0.25;
        assert!(verdict(&view).ends_with("the lower bound leaves a gap of 0.250."));
        view.candidates.clear();
        assert!(verdict(&view).starts_with("Use `0.0000,0.0000,0.0000` with qwen3-custom (fixed dialect). "));
    }

    #[test]
    fn the_table_of_candidates() {
        let got = table(&sample()).render(Terminal::default());
        let want = "\
qwen3-custom, fixed dialect
placeholder              FREE  blocks with  junk slots     blocks      blocks  conformers  induced
                       tokens   junk slots   per block  truncated  unparsable  unparsable  RMSD, Å
──────────────────────────────────────────────────────────────────────────────────────────────────
0.0000,0.0000,0.0000       20          0 %        0.00     50.1 %         0 %         0 %   0.0004
-0.0000,0.0000,0.0000      21       49.9 %        0.50        0 %         0 %         0 %        0
0.000,0.000,0.000          17          0 %        0.00      100 %         0 %         0 %    0.325
1.23,-4.56,7.89            14          0 %        0.00      100 %       100 %       100 %        -
Shares of 19,123 blocks; the placeholder to use is `0.0000,0.0000,0.0000`.
";
        assert_eq!(got, want, "\n{got}");
    }

    #[test]
    fn the_page_holds_everything_and_loads_nothing() {
        let html = fit_page(&FitReport {
            schema: SCHEMA,
            provenance: Provenance::of(vec![]),
            corpus: CorpusReport {
                conformers: 800,
                blocks: 19_123,
                in_file_order: 0,
                skipped: 0,
                skipped_records: vec![],
            },
            objective: Objective::default(),
            results: vec![sample()],
        })
        .render();
        for text in ["qwen3-custom", "800 conformers", "<svg", "Certificate", "generation judges"] {
            assert!(html.contains(text), "{text}");
        }
        assert!(!html.contains("http"), "an address");
        assert_eq!(html.matches("<svg").count(), 3);
    }
}
