//! The result of `drift fit` in the terminal: the answer in a line, the tables behind it.
//!
//! Views of [`FitResult`] and its parts. Shares are fractions of 1.

use super::format::{angstrom, encoding_name, number, percent, percent_interval, thousands};
use super::table::Table;
use drift_data::stats::interval::Interval;
use drift_tune::placeholder::{
    CandidateReport, Certificate, FitResult, Objective, PartitionReport, Refused, best_partition,
};

/// The row of the chosen placeholder.
pub fn chosen(result: &FitResult) -> Option<&CandidateReport> {
    result.candidates.iter().find(|candidate| candidate.placeholder == result.placeholder)
}

/// Which placeholder to use, what it does, and whether that is proved, in one line; placeholders in backticks.
pub fn lead(result: &FitResult, objective: &Objective) -> String {
    let mut out =
        format!("{}, {}: use `{}`", result.tokenizer, encoding_name(result.dialect), result.placeholder);
    if let Some(candidate) = chosen(result) {
        out.push_str(&format!(": {}", harm(candidate)));
    }
    if let Some(tokens) = result.constant_tokens {
        out.push_str(&format!(
            "; no drift: every block takes {tokens} FREE tokens, whatever its numbers (proved)."
        ));
        return out;
    }
    out.push_str(&match &result.certificate {
        None => "; not proved to be the best".to_owned(),
        Some(_) if result.proved => {
            format!("; proved least in replay, by {}", order(objective))
        }
        Some(_) => "; the least that was found, not proved to be the best".to_owned(),
    });
    if result.without_tolerance.placeholder != result.placeholder {
        out.push_str(&format!("; if every lost digit counts: `{}`", result.without_tolerance.placeholder));
    }
    out.push('.');
    out
}

fn order(objective: &Objective) -> String {
    let tolerance = objective.tolerance_angstrom();
    match objective {
        Objective::Lexicographic { .. } => {
            format!("unparsable blocks, RMSD above {tolerance} Å, junk slots, in this order")
        }
        Objective::Weighted { .. } => {
            format!("the weighted sum of unparsable blocks, RMSD above {tolerance} Å and junk slots")
        }
    }
}

/// Why a tokenizer has no placeholder, and what to use, in one line.
pub fn refusal(refused: &Refused) -> String {
    format!(
        "{}, {}: no placeholder: {}; use {}.",
        refused.tokenizer,
        encoding_name(refused.dialect),
        refused.why(),
        refused.instead
    )
}

/// The candidates, the chosen one in bold.
pub fn table(result: &FitResult) -> Table {
    let sources = result.candidates.iter().any(|candidate| !candidate.source.is_empty());
    let mut table = Table::new(format!("{}, {}", result.tokenizer, encoding_name(result.dialect)))
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
    let conformers = thousands(result.intervals.conformers);
    let intervals = intervals(result);
    if !intervals.is_empty() {
        table.note(format!(
            "95 % intervals by molecule, from a sample of {conformers} conformers: {intervals}."
        ));
    }
    table
}

/// What the sample leaves open of the chosen placeholder.
fn intervals(result: &FitResult) -> String {
    let share = |name: &str, interval: Option<Interval>| {
        interval.map(|interval| format!("{name} {}", percent_interval(interval)))
    };
    let of = &result.intervals;
    // A length has no negative values, but an interval around its mean may reach below 0.
    let rmsd =
        of.rmsd_angstrom.map(|i| format!("RMSD [{}, {}] Å", angstrom(i.low.max(0.0)), angstrom(i.high)));
    let junk = of.junk_tokens_per_block.map(|i| format!("junk slots [{:.2}, {:.2}]", i.low.max(0.0), i.high));
    let all =
        [share("truncated", of.truncated_blocks), share("unparsable", of.unparsable_blocks), junk, rmsd];
    all.into_iter().flatten().collect::<Vec<_>>().join(", ")
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

/// What placeholders per class of block would gain.
pub fn classes_table(result: &FitResult, objective: &Objective) -> Table {
    let mut table = Table::new(format!("{}, {}, per class", result.tokenizer, result.dialect.name()))
        .text("classes by")
        .number("classes")
        .text("what differs")
        .number("one\nplaceholder")
        .number("one per\nclass")
        .number("gain by molecule,\n95 % interval")
        .text("significant");
    for partition in &result.classes {
        let shown =
            |harm: [f64; 3]| partition.compared.of(harm, objective).map_or_else(|| "-".to_owned(), number);
        table.row([
            partition.partition.name().to_owned(),
            partition.classes.len().to_string(),
            partition.compared.name().replace('_', " "),
            shown(partition.judged.single),
            shown(partition.judged.classes),
            partition.gain.map_or_else(
                || "-".to_owned(),
                |gain| format!("{:+.4} to {:+.4}", gain.interval.low, gain.interval.high),
            ),
            if partition.significant { "yes" } else { "no" }.to_owned(),
        ]);
    }
    let judged = result.classes.first().map_or(0, |partition| partition.judged.conformers);
    table.note(format!(
        "Of a sample of {} conformers: chosen on one half of the molecules, judged on the {} conformers of the other.",
        thousands(result.class_conformers),
        thousands(judged)
    ));
    table.note(classes_verdict(&result.classes, objective));
    table
}

/// Whether classes of block are worth it, in a sentence.
pub fn classes_verdict(partitions: &[PartitionReport], objective: &Objective) -> String {
    match best_partition(objective, partitions) {
        None => "No way to class blocks gains anything significant: one placeholder is enough.".to_owned(),
        Some(best) => {
            let list: Vec<String> = best
                .classes
                .iter()
                .map(|class| format!("{}: `{}`", class.class, class.placeholder))
                .collect();
            format!("By {}: {}.", best.partition.name(), list.join(", "))
        }
    }
}

/// Harm reached and harm possible.
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
        Alternative, Conditions, Intervals, Measures, SearchReport, SearchSettings, TokenCount,
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
            dialect: Encoding::FIXED,
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
            class_conformers: 0,
            classes: Vec::new(),
        }
    }

    #[test]
    fn the_first_line_says_what_to_do() {
        let objective = Objective::default();
        let mut view = sample();
        assert_eq!(
            lead(&view, &objective),
            "qwen3-custom, fixed dialect: use `0.0000,0.0000,0.0000`: 50.1 % of blocks lose their last tokens, 0.0004 Å RMSD \
             on average; proved least in replay, by unparsable blocks, RMSD above 0.001 Å, junk slots, in this order; if every lost digit counts: `-0.0000,0.0000,0.0000`."
        );
        view.proved = false;
        assert!(lead(&view, &objective).contains("; the least that was found, not proved to be the best; "));
        view.certificate = None;
        view.without_tolerance.placeholder.clone_from(&view.placeholder);
        assert!(lead(&view, &objective).ends_with("; not proved to be the best."));
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
