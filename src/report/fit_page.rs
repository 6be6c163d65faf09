//! The result of `drift fit` as a page.
//!
//! Views of [`FitReport`] and its parts. Shares are fractions of 1.

use super::drift_view::drawn_blocks;
use super::fit_view::{certificate_table, classes_table, figures, grounds, lead, refusal, table};
use super::format::{angstrom, encoding_name, percent, thousands};
use super::html::{Page, Section};
use super::plot::{
    Bar, BarChart, BarValue, Columns, Labels, Scale, Scatter, ScatterPoint, bars, columns, scatter,
};
use super::table::Table;
use drift_tune::placeholder::{CandidateReport, FitReport, FitResult, Objective, SearchReport};

/// Returns the page of all results.
pub fn fit_page(report: &FitReport) -> Page {
    let (results, objective) = (&report.results, &report.objective);
    let first = match results.as_slice() {
        [only] => lead(only),
        _ => format!("The best placeholders of {} tokenizers and dialects.", results.len()),
    };
    let mut page = Page::new("Placeholders that fit", first);
    if results.len() + report.refused.len() > 1 {
        page = page.section("Answers", |section| {
            let all = results.iter().map(lead);
            section.list(all.chain(report.refused.iter().map(refusal)));
        });
    }
    for result in results {
        page =
            page.section(&format!("{}, {}", result.tokenizer, encoding_name(result.encoding)), |section| {
                result_section(section, result, objective);
            });
    }
    page.section("Method", |section| method(section, report)).section("Provenance", |section| {
        section.provenance(&report.provenance);
    })
}

fn result_section(section: &mut Section, result: &FitResult, objective: &Objective) {
    section.paragraph(&lead(result)).table(&table(result));
    drawn_blocks(section, &result.drawn, result.encoding);
    section
        .svg(&distribution_plot(result), "How many FREE tokens a real block takes in its context (T). A template gives every block the same number (F), so every other column drifts.")
        .svg(&drift_plot(result), "Drift by placeholder. Junk slots: T < F, the model must fill positions that the coordinate does not need. Truncated: T > F, the last tokens are lost.")
        .svg(&harm_plot(result), "The mean RMSD that truncation causes, by replay, over the conformers that can still be read, on a logarithmic scale. Junk slots are not in it.")
        .heading("The Pareto front")
        .paragraph(FRONT)
        .svg(&front_plot(result), "Junk slots against truncated blocks: each point is the least that some placeholder does. Hollow: some blocks can no longer be read.")
        .table(&front_table(result))
        .heading("Certificate")
        .list(grounds(result, objective));
    if let Some(certificate) = &result.certificate {
        section.table(&certificate_table(certificate));
    }
    section.paragraph(&format!(
        "Blocks were counted by {}. Borders of blocks were checked after {} atoms, {} templates compared with the encoder.",
        result.counted_by,
        thousands(result.conditions.atoms),
        thousands(result.conditions.templates)
    ));
    section.paragraph(&search(&result.search));
    if !result.classes.is_empty() {
        section
            .heading("A placeholder per class of block")
            .paragraph(CLASSES)
            .table(&classes_table(result, objective));
    }
}

/// Returns the result of an independent check by simulated annealing (argmin).
fn search(search: &SearchReport) -> String {
    let outcome = match search.reached_chosen {
        true => format!("came to the same harm after {}", thousands(search.evaluations_to_best)),
        false => format!("came to no less harm than `{}`", search.placeholder),
    };
    format!(
        "A check by another method: simulated annealing (argmin) over {:.0e} digit strings {outcome}, in {} strings.",
        search.strings,
        thousands(search.evaluations)
    )
}

const FRONT: &str = "No placeholder does better than one of these in all four figures: unparsable blocks, induced RMSD, junk slots, \
    truncated blocks. Which of them is best depends on the order and the tolerance.";

const CLASSES: &str = "A template may use a different placeholder for each class of block, as long as the SMILES alone determines \
    the class. Each row is the best assignment for one way to class blocks, found by branch and bound.";

/// Returns the placeholders on the front.
pub fn front_table(result: &FitResult) -> Table {
    let mut table = Table::new("")
        .code("placeholder")
        .number("FREE\ntokens")
        .number("junk slots\nper block")
        .number("blocks\ntruncated")
        .number("blocks\nunparsable")
        .number("induced\nRMSD, Å");
    for candidate in &result.front {
        let name = [candidate.placeholder.clone(), candidate.free_tokens.to_string()];
        table.row(name.into_iter().chain(figures(&candidate.measures)));
    }
    table
}

/// Returns the title of a plot, with the tokenizer and the encoding.
fn titled(plot: &str, result: &FitResult) -> String {
    format!("{plot}, {}, {}", result.tokenizer, encoding_name(result.encoding))
}

/// Junk slots and truncated blocks along the front.
pub fn front_plot(result: &FitResult) -> String {
    let points = result.front.iter().map(|candidate| ScatterPoint {
        name: candidate.placeholder.clone(),
        at: (candidate.measures.junk_tokens_per_block, 100.0 * candidate.measures.truncated_blocks),
        hollow: candidate.measures.unparsable_blocks > 0.0,
        strong: candidate.placeholder == result.placeholder,
    });
    scatter(&Scatter {
        labels: Labels::new(
            titled("Front of placeholders", result),
            "junk slots per block",
            "blocks truncated, %",
        ),
        points: points.collect(),
    })
}

/// Returns the distribution of T, the number of tokens of a block.
pub fn distribution_plot(result: &FitResult) -> String {
    columns(&Columns {
        labels: Labels::new(
            titled("Tokens per block in context", result),
            "FREE tokens of a real block in context",
            "share of blocks",
        ),
        counts: result.token_distribution.iter().map(|count| (count.tokens.into(), count.blocks)).collect(),
    })
}

/// Junk and truncation by placeholder.
pub fn drift_plot(result: &FitResult) -> String {
    let value = |share: f64| BarValue { value: Some(share), text: percent(share) };
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
        vec![BarValue { value: candidate.measures.rmsd_angstrom, text }]
    })
}

fn chart(
    result: &FitResult,
    title: &str,
    x_label: &str,
    series: &[&str],
    scale: Scale,
    values: impl Fn(&CandidateReport) -> Vec<BarValue>,
) -> String {
    let candidates = result.candidates.iter().map(|candidate| Bar {
        label: candidate.placeholder.clone(),
        strong: candidate.placeholder == result.placeholder,
        values: values(candidate),
    });
    bars(&BarChart {
        title: titled(title, result),
        x_label: x_label.to_owned(),
        series: series.iter().map(|name| (*name).to_owned()).collect(),
        bars: candidates.collect(),
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
            "Replay: the first F tokens of the real block survive. What is left is parsed as three numbers; a block that no longer contains three is unparsable, else its error against the real values enters the induced RMSD of its conformer, without alignment.",
            "The order of harm: unparsable blocks first, then induced RMSD beyond a tolerance, then junk slots.",
            "Replay does not see what a model makes of its own clipped or padded numbers: it proposes, generation judges.",
        ]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fit_view::tests::sample;
    use drift_core::encoding::Encoding;
    use drift_core::job::Provenance;
    use drift_tune::placeholder::{CorpusReport, RefusedTokenizer, SCHEMA};

    #[test]
    fn the_page_holds_everything_and_loads_nothing() {
        let refused = RefusedTokenizer {
            tokenizer: "fused".to_owned(),
            tokenizer_sha256: String::new(),
            encoding: Encoding::FIXED,
            tokens: vec!["<-0.".to_owned()],
            token_count: 1,
            looked_at_blocks: 0,
            agreeing_blocks: 0,
            reason: "templates would force it".to_owned(),
            instead: "the automaton".to_owned(),
        };
        let html = fit_page(&FitReport {
            schema: SCHEMA.to_owned(),
            provenance: Provenance::from_inputs(vec![]),
            corpus: CorpusReport {
                conformers: 800,
                blocks: 19_123,
                in_file_order: 0,
                skipped: 0,
                skipped_records: vec![],
            },
            objective: Objective::default(),
            results: vec![sample()],
            refused: vec![refused],
        })
        .render();
        let texts = [
            "qwen3-custom",
            "800 conformers",
            "<svg",
            "Certificate",
            "generation judges",
            "The Pareto front",
            "argmin",
        ];
        for text in texts.into_iter().chain(["&lt;-0.", "use the automaton"]) {
            assert!(html.contains(text), "{text}");
        }
        assert!(!html.contains("http"), "an address");
        assert_eq!(html.matches("<svg").count(), 4);
    }
}
