//! The result of `drift fit` as a table and as a page.
//!
//! The views here have the JSON's field names and nothing else, so that this module knows no search. Shares are
//! fractions of 1.

use super::format::{angstrom, number, percent, thousands};
use super::html::{Page, Section};
use super::plot::{Bar, BarChart, Columns, Scale, Value, bars, columns};
use super::table::Table;
use crate::job::Provenance;

/// One tokenizer and dialect.
#[derive(Debug, Clone, PartialEq)]
pub struct FitView {
    /// The tokenizer's name.
    pub tokenizer: String,
    /// `fixed` or `stripped`.
    pub dialect: String,
    /// How many blocks the figures are of.
    pub blocks: u64,
    /// The placeholder that was chosen.
    pub placeholder: String,
    /// Why none is better.
    pub certificate: CertificateView,
    /// The chosen placeholder and those it was compared with.
    pub candidates: Vec<CandidateView>,
    /// How many blocks take how many FREE tokens in context, the distribution of T.
    pub token_distribution: Vec<(u32, u64)>,
}

/// What was reached, and what no placeholder can undercut; each is unparsable blocks, induced RMSD in Å beyond the
/// tolerance, and junk slots per block, compared in this order.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CertificateView {
    /// What the chosen placeholder reaches.
    pub objective: [f64; 3],
    /// What no placeholder can undercut.
    pub lower_bound: [f64; 3],
    /// The largest difference; 0 proves that there is no better placeholder.
    pub gap: f64,
}

/// One placeholder, replayed on every block.
#[derive(Debug, Clone, PartialEq)]
pub struct CandidateView {
    /// The placeholder.
    pub placeholder: String,
    /// What it is: `theirs, 4.3`; may be empty.
    pub remark: String,
    /// FREE tokens that its block takes, F; a mean where it depends on the context.
    pub free_tokens: f64,
    /// Share of blocks with junk slots.
    pub junk_blocks: f64,
    /// Junk slots per block.
    pub junk_tokens_per_block: f64,
    /// Share of blocks that lose tokens.
    pub truncated_blocks: f64,
    /// Share of blocks that no longer hold three numbers.
    pub unparsable_blocks: f64,
    /// Share of conformers with such a block.
    pub unparsable_conformers: f64,
    /// Mean induced RMSD in Å over the other conformers; none if there are none.
    pub rmsd_angstrom: Option<f64>,
}

impl FitView {
    fn chosen(&self) -> Option<&CandidateView> {
        self.candidates.iter().find(|candidate| candidate.placeholder == self.placeholder)
    }

    /// Which placeholder to use, what harm is left, and whether that is proved; placeholders in backticks.
    pub fn verdict(&self) -> String {
        let mut out =
            format!("Use `{}` with {} ({} dialect)", self.placeholder, self.tokenizer, self.dialect);
        if let Some(candidate) = self.chosen() {
            out.push_str(&format!(": {}", harm(candidate)));
        }
        out.push_str(". ");
        out.push_str(&if self.certificate.gap <= 0.0 {
            "No placeholder does better: the lower bound is reached.".to_owned()
        } else {
            format!(
                "None better was found; the lower bound leaves a gap of {}.",
                number(self.certificate.gap)
            )
        });
        out
    }

    /// The candidates, the chosen one in bold.
    pub fn table(&self) -> Table {
        let remarks = self.candidates.iter().any(|candidate| !candidate.remark.is_empty());
        let mut table = Table::new(format!("{}, {} dialect", self.tokenizer, self.dialect))
            .code("placeholder")
            .number("FREE\ntokens")
            .number("blocks with\njunk slots")
            .number("junk slots\nper block")
            .number("blocks\ntruncated")
            .number("blocks\nunparsable")
            .number("conformers\nunparsable")
            .number("induced\nRMSD, Å");
        if remarks {
            table = table.text("remark");
        }
        for candidate in &self.candidates {
            let chosen = candidate.placeholder == self.placeholder;
            let mut cells = cells(candidate);
            if remarks {
                cells.push(candidate.remark.clone());
            }
            if chosen {
                table.strong_row(cells)
            } else {
                table.row(cells)
            };
        }
        table.note(format!(
            "Shares of {} blocks; the placeholder to use is `{}`.",
            thousands(self.blocks),
            self.placeholder
        ));
        table
    }
}

/// What a placeholder does to real blocks, in a clause.
fn harm(candidate: &CandidateView) -> String {
    let parts = [
        (candidate.unparsable_blocks, "become unparsable"),
        (candidate.truncated_blocks, "lose their last tokens"),
        (candidate.junk_blocks, "have slots left over for junk"),
    ];
    let clauses: Vec<String> = parts
        .iter()
        .filter(|(share, _)| *share > 0.0)
        .map(|(share, what)| format!("{} of blocks {what}", percent(*share)))
        .collect();
    let rmsd = match candidate.rmsd_angstrom {
        Some(rmsd) if rmsd > 0.0 => format!(", {} Å RMSD on average", angstrom(rmsd)),
        _ => String::new(),
    };
    if clauses.is_empty() { "every block fits".to_owned() } else { clauses.join(", ") + &rmsd }
}

fn cells(candidate: &CandidateView) -> Vec<String> {
    let tokens = candidate.free_tokens;
    vec![
        candidate.placeholder.clone(),
        if tokens.fract() == 0.0 { format!("{tokens:.0}") } else { format!("{tokens:.1}") },
        percent(candidate.junk_blocks),
        format!("{:.2}", candidate.junk_tokens_per_block),
        percent(candidate.truncated_blocks),
        percent(candidate.unparsable_blocks),
        percent(candidate.unparsable_conformers),
        candidate.rmsd_angstrom.map_or_else(|| "-".to_owned(), angstrom),
    ]
}

/// A page of all results; `corpus` says in a sentence what they were measured on.
pub fn fit_page(corpus: &str, results: &[FitView], provenance: &Provenance) -> Page {
    let lead = match results {
        [only] => only.verdict(),
        _ => format!("The least harmful placeholder of {} tokenizers and dialects.", results.len()),
    };
    let mut page = Page::new("Placeholders that fit", lead);
    for result in results {
        page = page.section(&format!("{}, {} dialect", result.tokenizer, result.dialect), |section| {
            result_section(section, result, results.len() > 1);
        });
    }
    page.section("Method", |section| method(section, corpus)).section("Provenance", |section| {
        section.provenance(provenance);
    })
}

fn result_section(section: &mut Section, result: &FitView, with_verdict: bool) {
    if with_verdict {
        section.paragraph(&result.verdict());
    }
    section
        .svg(&distribution_plot(result), "How many FREE tokens a real block takes in its context (T). A template gives every block the same number (F), so each other column drifts.")
        .svg(&drift_plot(result), "Drift by placeholder. Junk slots: T < F, the model must fill positions that the coordinate does not need. Truncated: T > F, the last tokens are lost.")
        .svg(&harm_plot(result), "What truncation does, by replay: mean RMSD of the clipped coordinates over the conformers that can still be read, on a logarithmic scale. Junk slots are not in it.")
        .table(&result.table())
        .heading("Certificate")
        .table(&certificate_table(&result.certificate));
}

fn certificate_table(certificate: &CertificateView) -> Table {
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
pub fn distribution_plot(result: &FitView) -> String {
    columns(&Columns {
        title: format!("Tokens per block in context, {}, {} dialect", result.tokenizer, result.dialect),
        x_label: "FREE tokens of a real block in context".to_owned(),
        y_label: "share of blocks".to_owned(),
        counts: result.token_distribution.clone(),
    })
}

/// Junk and truncation by placeholder.
pub fn drift_plot(result: &FitView) -> String {
    let value = |share: f64| Value { value: Some(share), text: percent(share) };
    chart(
        result,
        "Drift by placeholder",
        "share of blocks",
        &["blocks with junk slots", "blocks truncated"],
        Scale::Share,
        |candidate| vec![value(candidate.junk_blocks), value(candidate.truncated_blocks)],
    )
}

/// Induced RMSD and unparsable blocks by placeholder.
pub fn harm_plot(result: &FitView) -> String {
    chart(result, "Harm by placeholder", "induced RMSD, Å", &["induced RMSD"], Scale::Log, |candidate| {
        let unparsable = percent(candidate.unparsable_conformers);
        let text = match (candidate.rmsd_angstrom, candidate.unparsable_conformers > 0.0) {
            (Some(rmsd), false) => format!("{} Å", angstrom(rmsd)),
            (Some(rmsd), true) => format!("{} Å, {unparsable} unparsable", angstrom(rmsd)),
            (None, _) => format!("{unparsable} unparsable"),
        };
        vec![Value { value: candidate.rmsd_angstrom, text }]
    })
}

fn chart(
    result: &FitView,
    title: &str,
    x_label: &str,
    series: &[&str],
    scale: Scale,
    values: impl Fn(&CandidateView) -> Vec<Value>,
) -> String {
    let bar = |candidate: &CandidateView| Bar {
        label: candidate.placeholder.clone(),
        strong: candidate.placeholder == result.placeholder,
        values: values(candidate),
    };
    bars(&BarChart {
        title: format!("{title}, {}, {} dialect", result.tokenizer, result.dialect),
        x_label: x_label.to_owned(),
        series: series.iter().map(|name| (*name).to_owned()).collect(),
        bars: result.candidates.iter().map(bar).collect(),
        scale,
    })
}

fn method(section: &mut Section, corpus: &str) {
    if !corpus.is_empty() {
        section.paragraph(corpus);
    }
    section
        .list([
            "T: the FREE tokens that a real block takes in context, counted inside the whole text. F: those of the placeholder's block. Drift is F - T.",
            "Replay: the first F tokens of the real block survive. What is left is parsed as three numbers; a block that no longer holds three is unparsable, else its error against the real values enters the induced RMSD of its conformer, without alignment.",
            "The order of harm: unparsable blocks first, then induced RMSD beyond a tolerance, then junk slots.",
            "Replay does not see what a model makes of its own clipped or padded numbers. `drift eval` does.",
        ]);
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::report::table::Terminal;

    /// Figures of the shape that Qwen3's tokenizer gives.
    pub(crate) fn sample() -> FitView {
        let candidate = |placeholder: &str, tokens, junk, truncated, unparsable, rmsd| CandidateView {
            placeholder: placeholder.to_owned(),
            remark: String::new(),
            free_tokens: tokens,
            junk_blocks: junk,
            junk_tokens_per_block: junk,
            truncated_blocks: truncated,
            unparsable_blocks: unparsable,
            unparsable_conformers: unparsable,
            rmsd_angstrom: rmsd,
        };
        FitView {
            tokenizer: "qwen3-custom".to_owned(),
            dialect: "fixed".to_owned(),
            blocks: 19_123,
            placeholder: "0.0000,0.0000,0.0000".to_owned(),
            certificate: CertificateView { objective: [0.0; 3], lower_bound: [0.0; 3], gap: 0.0 },
            candidates: vec![
                candidate("0.0000,0.0000,0.0000", 20.0, 0.0, 0.501, 0.0, Some(0.0004)),
                candidate("-0.0000,0.0000,0.0000", 21.0, 0.499, 0.0, 0.0, Some(0.0)),
                candidate("0.000,0.000,0.000", 17.0, 0.0, 1.0, 0.0, Some(0.325)),
                candidate("1.23,-4.56,7.89", 14.0, 0.0, 1.0, 1.0, None),
            ],
            token_distribution: vec![(20, 9_542), (21, 9_400), (22, 178), (23, 3)],
        }
    }

    #[test]
    fn the_verdict_says_what_to_do() {
        let mut view = sample();
        assert_eq!(
            view.verdict(),
            "Use `0.0000,0.0000,0.0000` with qwen3-custom (fixed dialect): 50.1 % of blocks lose their last tokens, \
             0.0004 Å RMSD on average. No placeholder does better: the lower bound is reached."
        );
        view.certificate.gap = 0.25;
        assert!(view.verdict().ends_with("the lower bound leaves a gap of 0.250."));
        view.candidates.clear();
        assert!(view.verdict().starts_with("Use `0.0000,0.0000,0.0000` with qwen3-custom (fixed dialect). "));
    }

    #[test]
    fn the_table_of_candidates() {
        let got = sample().table().render(Terminal::default());
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
        let inputs = vec![];
        let html = fit_page("Measured on 800 conformers.", &[sample()], &Provenance::of(inputs)).render();
        for text in ["qwen3-custom", "Measured on 800", "<svg", "Certificate", "drift eval"] {
            assert!(html.contains(text), "{text}");
        }
        assert!(!html.contains("http"), "an address");
        assert_eq!(html.matches("<svg").count(), 3);
    }
}
