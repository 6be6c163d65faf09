//! The result of `drift fit` in the terminal: one line with the answer, and tables with the evidence.
//!
//! Views of [`FitResult`] and its parts. Shares are fractions of 1.

use super::fields::Fields;
use super::format::{angstrom, encoding_name, number, or_dash, percent, percent_interval, signed, thousands};
use super::table::Table;
use drift_data::stats::interval::Interval;
use drift_tune::placeholder::{
    CandidateReport, Certificate, FitResult, Measures, Objective, PartitionReport, RefusedTokenizer,
    best_partition,
};

/// Returns the row of the chosen placeholder.
pub fn chosen(result: &FitResult) -> Option<&CandidateReport> {
    result.candidates.iter().find(|candidate| candidate.placeholder == result.placeholder)
}

/// Returns one line: which placeholder to use, whether it is proved, and what it does. Placeholders are in backticks.
pub fn lead(result: &FitResult) -> String {
    let begin = format!("{}, {}", result.tokenizer, result.encoding);
    if let Some(tokens) = result.constant_tokens {
        return format!(
            "{begin}: no drift, every block takes {tokens} FREE tokens (proved); use `{}`.",
            result.placeholder
        );
    }
    let proof = match &result.certificate {
        Some(_) if result.proved => "proved best",
        Some(_) => "the best found, not proved",
        None => "not proved best",
    };
    let harm = chosen(result).map_or_else(String::new, |candidate| format!(": {}", harm(candidate)));
    format!("{begin}: use `{}` ({proof}){harm}.", result.placeholder)
}

/// Sentences that say what "best" means, for which blocks it is proved, and what to use if every lost digit counts.
pub fn grounds(result: &FitResult, objective: &Objective) -> Vec<String> {
    let mut out = vec![result.statement.clone()];
    if result.certificate.is_some() && result.constant_tokens.is_none() {
        out.push(format!("Best: least by {}.", order(objective)));
    }
    if result.without_tolerance.placeholder != result.placeholder {
        out.push(format!("Where every lost digit counts: `{}`.", result.without_tolerance.placeholder));
    }
    out
}

fn order(objective: &Objective) -> String {
    let tolerance = objective.tolerance_angstrom();
    match objective {
        Objective::Lexicographic { .. } => {
            format!("unparsable blocks, then RMSD above {tolerance} Å, then junk slots")
        }
        Objective::Weighted { .. } => {
            format!("the weighted sum of unparsable blocks, RMSD above {tolerance} Å and junk slots")
        }
    }
}

/// Returns one line: why a tokenizer has no placeholder, and what to use instead.
pub fn refusal(refused: &RefusedTokenizer) -> String {
    format!(
        "{}, {}: no placeholder works, because {}; use {}.",
        refused.tokenizer,
        refused.encoding,
        refused.why(),
        refused.instead
    )
}

/// Returns the candidates in at most 100 columns, the chosen one in bold.
pub fn short_table(result: &FitResult) -> Table {
    let table = Table::new("")
        .code("placeholder")
        .number("FREE\ntokens")
        .number("junk slots\nper block")
        .number("blocks\ntruncated")
        .number("blocks\nunparsable")
        .number("RMSD, Å");
    with_candidates(table, result, |candidate| figures(&candidate.measures).to_vec())
}

/// Junk slots per block, the shares of truncated and of unparsable blocks, and the induced RMSD.
pub(super) fn figures(measures: &Measures) -> [String; 4] {
    [
        format!("{:.2}", measures.junk_tokens_per_block),
        percent(measures.truncated_blocks),
        percent(measures.unparsable_blocks),
        or_dash(measures.rmsd_angstrom, angstrom),
    ]
}

/// Returns the candidates with all figures, the chosen one in bold.
pub fn table(result: &FitResult) -> Table {
    let table = Table::new(format!("{}, {}", result.tokenizer, encoding_name(result.encoding)))
        .code("placeholder")
        .number("FREE\ntokens")
        .number("blocks with\njunk slots")
        .number("junk slots\nper block")
        .number("blocks\ntruncated")
        .number("blocks\nunparsable")
        .number("conformers\nunparsable")
        .number("induced\nRMSD, Å");
    let mut table = with_candidates(table, result, cells);
    table.note(format!(
        "Shares of {} blocks; the placeholder to use is `{}`.",
        thousands(result.blocks),
        result.placeholder
    ));
    let conformers = thousands(result.intervals.conformers);
    let intervals = intervals(result);
    if !intervals.is_empty() {
        table.note(format!(
            "95 % intervals by molecule, from a sample of {conformers} conformers: {intervals}."
        ));
    }
    table
}

/// Adds a row for each candidate: the placeholder and its tokens, then `cells`, then the origin of the placeholder.
fn with_candidates(
    mut table: Table,
    result: &FitResult,
    cells: impl Fn(&CandidateReport) -> Vec<String>,
) -> Table {
    let sources = result.candidates.iter().any(|candidate| !candidate.source.is_empty());
    if sources {
        table = table.text("origin");
    }
    for candidate in &result.candidates {
        let mut row = vec![candidate.placeholder.clone(), candidate.free_tokens.to_string()];
        row.extend(cells(candidate));
        if sources {
            row.push(candidate.source.clone());
        }
        table.marked_row(candidate.placeholder == result.placeholder, row);
    }
    table
}

/// Returns the confidence intervals of the chosen placeholder's figures.
fn intervals(result: &FitResult) -> String {
    let share = |name: &str, interval: Option<Interval>| {
        interval.map(|interval| format!("{name} {}", percent_interval(interval)))
    };
    let of = &result.intervals;
    // Lengths are not negative, but an interval around their mean may reach below 0.
    let rmsd =
        of.rmsd_angstrom.map(|i| format!("RMSD [{}, {}] Å", angstrom(i.low.max(0.0)), angstrom(i.high)));
    let junk = of.junk_tokens_per_block.map(|i| format!("junk slots [{:.2}, {:.2}]", i.low.max(0.0), i.high));
    let all =
        [share("truncated", of.truncated_blocks), share("unparsable", of.unparsable_blocks), junk, rmsd];
    all.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Returns what a placeholder does to real blocks, as a clause.
fn harm(candidate: &CandidateReport) -> String {
    let parts = [
        (candidate.measures.unparsable_blocks, "become unparsable"),
        (candidate.measures.truncated_blocks, "lose digits"),
        (candidate.measures.junk_blocks, "have junk slots"),
    ];
    let clauses: Vec<String> = parts
        .iter()
        .filter(|(share, _)| *share > 0.0)
        .map(|(share, what)| format!("{} of blocks {what}", percent(*share)))
        .collect();
    let rmsd = match candidate.measures.rmsd_angstrom {
        Some(rmsd) if rmsd > 0.0 => format!(", RMSD {} Å", angstrom(rmsd)),
        _ => String::new(),
    };
    if clauses.is_empty() { "every block keeps its text".to_owned() } else { clauses.join(", ") + &rmsd }
}

fn cells(candidate: &CandidateReport) -> Vec<String> {
    let measures = &candidate.measures;
    let [junk, truncated, unparsable, rmsd] = figures(measures);
    let conformers = percent(measures.unparsable_conformers);
    vec![percent(measures.junk_blocks), junk, truncated, unparsable, conformers, rmsd]
}

/// Returns the gain of a different placeholder for each class of blocks.
pub fn classes_table(result: &FitResult, objective: &Objective) -> Table {
    let shown = |partition: &PartitionReport, harm| or_dash(partition.compared.of(harm, objective), number);
    let mut table = Fields::new(format!("{}, {}, per class", result.tokenizer, result.encoding.name()))
        .text("classes by", |partition: &PartitionReport| partition.partition.name().to_owned())
        .number("classes", |partition| partition.classes.len().to_string())
        .text("what differs", |partition| partition.compared.name().replace('_', " "))
        .number("one\nplaceholder", |partition| shown(partition, partition.judged.single))
        .number("one per\nclass", |partition| shown(partition, partition.judged.classes))
        .number("gain by molecule,\n95 % interval", |partition| {
            or_dash(partition.gain.as_ref(), |gain| {
                format!("{} to {}", signed(gain.interval.low, 4), signed(gain.interval.high, 4))
            })
        })
        .text("significant", |partition| if partition.significant { "yes" } else { "no" }.to_owned())
        .table(&result.classes);
    let judged = result.classes.first().map_or(0, |partition| partition.judged.conformers);
    table.note(format!(
        "Of a sample of {} conformers: chosen on one half of the molecules, judged on the {} conformers of the other.",
        thousands(result.class_conformers),
        thousands(judged)
    ));
    table.note(classes_verdict(&result.classes, objective));
    table
}

/// Returns whether classes of blocks are worthwhile, as a sentence.
pub fn classes_verdict(partitions: &[PartitionReport], objective: &Objective) -> String {
    match best_partition(objective, partitions) {
        None => "No division of blocks into classes gains anything significant: one placeholder is enough."
            .to_owned(),
        Some(best) => {
            let of_class = best.classes.iter().map(|one| format!("{}: `{}`", one.class, one.placeholder));
            format!("By {}: {}.", best.partition.name(), of_class.collect::<Vec<_>>().join(", "))
        }
    }
}

/// Returns the harm of the chosen placeholder and the least possible harm.
pub fn certificate_table(certificate: &Certificate) -> Table {
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
    table
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::report::table::Terminal;
    use drift_core::encoding::Encoding;
    use drift_tune::placeholder::{
        Alternative, Conditions, Intervals, SearchReport, SearchSettings, TokenCount,
    };

    fn certificate() -> Certificate {
        Certificate { objective: [0.0; 3], lower_bound: [0.0; 3], gap: [0.0; 3], proof: None }
    }

    /// Figures of the shape that Qwen3's tokenizer gives.
    #[allow(clippy::too_many_lines, reason = "one literal")]
    pub(crate) fn sample() -> FitResult {
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
        let candidates = vec![
            candidate("0.0000,0.0000,0.0000", 20, 0.0, 0.501, 0.0, Some(0.0004)),
            candidate("-0.0000,0.0000,0.0000", 21, 0.499, 0.0, 0.0, Some(0.0)),
            candidate("0.000,0.000,0.000", 17, 0.0, 1.0, 0.0, Some(0.325)),
            candidate("1.23,-4.56,7.89", 14, 0.0, 1.0, 1.0, None),
        ];
        FitResult {
            tokenizer: "qwen3-custom".to_owned(),
            tokenizer_sha256: String::new(),
            encoding: Encoding::FIXED,
            conformers: 800,
            blocks: 19_123,
            placeholder: "0.0000,0.0000,0.0000".to_owned(),
            free_tokens: 20,
            certificate: Some(certificate()),
            constant_tokens: None,
            proved: true,
            statement: "No number of FREE tokens does less harm.".to_owned(),
            conditions: Conditions { atoms: 39, templates: 448, broken: None },
            intervals: Intervals {
                molecules: 400,
                conformers: 800,
                unparsable_blocks: None,
                truncated_blocks: None,
                junk_tokens_per_block: None,
                rmsd_angstrom: None,
            },
            without_tolerance: Alternative {
                placeholder: "-0.0000,0.0000,0.0000".to_owned(),
                free_tokens: 21,
                certificate: Some(certificate()),
            },
            front: candidates[..2].to_vec(),
            candidates,
            token_distribution: distribution.map(|(tokens, blocks)| TokenCount { tokens, blocks }).to_vec(),
            crossed_blocks: 0,
            exact: true,
            counted_by: "tables".to_owned(),
            search: SearchReport {
                settings: SearchSettings { seed: 0, iterations: 1 },
                strings: 8e24,
                evaluations: 1,
                evaluations_to_best: 0,
                placeholder: String::new(),
                objective: [0.0; 3],
                reached_bound: true,
                reached_chosen: true,
            },
            drawn: vec![],
            class_conformers: 0,
            classes: Vec::new(),
        }
    }

    #[test]
    fn the_first_line_says_what_to_do() {
        let mut view = sample();
        assert_eq!(
            lead(&view),
            "qwen3-custom, fixed: use `0.0000,0.0000,0.0000` (proved best): 50.1 % of blocks lose digits, RMSD 0.0004 Å."
        );
        let grounds = grounds(&view, &Objective::default());
        assert_eq!(
            grounds[1..],
            [
                "Best: least by unparsable blocks, then RMSD above 0.001 Å, then junk slots.",
                "Where every lost digit counts: `-0.0000,0.0000,0.0000`."
            ]
        );
        view.proved = false;
        assert!(lead(&view).contains("(the best found, not proved): "));
        view.certificate = None;
        assert!(lead(&view).contains("(not proved best): "));
        view.constant_tokens = Some(7);
        assert!(lead(&view).contains(": no drift, every block takes 7 FREE tokens (proved); use `"));
    }

    #[test]
    fn the_short_table_fits_100_columns() {
        let mut view = sample();
        view.candidates[0].source = "LP 2.1 generic, LP 3.8".to_owned();
        let shown = short_table(&view).render(Terminal::default());
        assert!(shown.lines().all(|line| line.chars().count() <= 100), "\n{shown}");
        assert_eq!(shown.lines().count(), 3 + view.candidates.len(), "\n{shown}");
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
}
