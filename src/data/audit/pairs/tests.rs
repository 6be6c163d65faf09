//! Which row advice prefers.

use super::super::chemistry::ChemistryReport;
use super::super::counts::SampleCounts;
use super::super::row_label::RowLabel;
use super::{
    AdvisedRow, BatchTimes, ComparedFigure, FigureDifference, PairedComparison, SpeedMeasure, advice,
};
use crate::stats::Interval;

/// Returns a comparison that knows nothing but these figures.
pub(super) fn compared(row: RowLabel, figures: Vec<FigureDifference>) -> PairedComparison {
    PairedComparison {
        row,
        unpaired: 0,
        passed_difference: 0,
        well_formed_without: 0,
        identical: 0,
        bond_error_difference_angstrom: None,
        mat_precision_difference_angstrom: None,
        mat_recall_difference_angstrom: None,
        speed_ratio: None,
        speed: None,
        rows: 2,
        figures,
        valid_against_automaton: None,
        rescued: None,
    }
}

/// The counts of a row of 40 texts.
struct Counted {
    lp: &'static str,
    counts: SampleCounts,
    chemistry: ChemistryReport,
    seconds: Vec<f64>,
}

impl Counted {
    fn new(lp: &'static str, passed: u64, valid: u64) -> Self {
        let counts = SampleCounts { samples: 40, passed, ..SampleCounts::default() };
        let chemistry = ChemistryReport { checked: passed, valid, ..ChemistryReport::default() };
        Counted { lp, counts, chemistry, seconds: Vec::new() }
    }

    fn label(&self) -> RowLabel {
        RowLabel { lp: Some(self.lp.to_owned()), ..RowLabel::default() }
    }

    fn row(&self) -> AdvisedRow<'_> {
        AdvisedRow {
            label: self.label(),
            tokenizer: None,
            counts: &self.counts,
            chemistry: &self.chemistry,
            geometry: None,
            times: BatchTimes { measure: SpeedMeasure::Cpu, seconds: self.seconds.clone(), texts: 64 },
        }
    }

    /// Returns the row beside a base, and beside the automaton if that is another row. `half`: of the interval.
    fn beside(&self, base: &Counted, automaton: Option<&Counted>, half: f64) -> PairedComparison {
        let valid = |other: &Counted| {
            let [without, with] = [other, self].map(|row| row.chemistry.valid as f64 / 40.0);
            FigureDifference {
                figure: ComparedFigure::Valid,
                without,
                with,
                difference: with - without,
                interval: Some(Interval::around(with - without, half)),
            }
        };
        PairedComparison {
            passed_difference: self.counts.passed as i64 - base.counts.passed as i64,
            valid_against_automaton: automaton.map(valid),
            ..compared(self.label(), vec![valid(base)])
        }
    }
}

/// Returns the advice on a model alone, under the automaton, and under a third processor.
fn said(none: &Counted, automaton: &Counted, third: &Counted, half: f64) -> Vec<String> {
    let pairs = [automaton.beside(none, None, half), third.beside(none, Some(automaton), half)];
    advice(&[none.row(), automaton.row(), third.row()], &pairs, None)
}

fn beside_geometry(geometry: &Counted, half: f64) -> Vec<String> {
    said(&Counted::new("none", 36, 20), &Counted::new("automaton", 40, 22), geometry, half)
}

#[test]
fn a_row_with_certainly_more_valid_texts_is_advised_with_its_price() {
    let timed = |row: Counted, batch: f64| Counted { seconds: vec![batch; 4], ..row };
    let none = Counted::new("none", 36, 20);
    let automaton = timed(Counted::new("automaton", 40, 22), 1.0);
    let said = said(&none, &automaton, &timed(Counted::new("geometry", 40, 39), 2.0), 0.2);
    let expected = "use `geometry`: 39 of 40 texts are valid instead of 22 with `automaton` (+42.5 [+22.5, +62.5] percentage points), 40 pass instead of 40, 0.50 times as fast [0.50, 0.50] by texts per CPU second. Its mask and the judge share their bounds, so a part of `valid` is by construction.";
    assert_eq!(said[0], expected);
    assert!(said[1].starts_with("with `automaton`, more texts pass"), "{said:?}");
    assert!(said[1].contains("(40 of 40 pass instead of 36, 22 are valid instead of 20)"), "{said:?}");
    // Another processor shares no bounds with the judge; without times, no speed is named.
    let said = beside_geometry(&Counted::new("truncating", 40, 39), 0.2);
    assert!(
        said[0].starts_with("use `truncating`: ") && said[0].ends_with("40 pass instead of 40."),
        "{said:?}"
    );
}

#[test]
fn texts_without_an_end_are_named() {
    let mut row = Counted::new("automaton", 30, 20);
    let said = |row: &Counted| advice(&[row.row()], &[], None);
    row.counts.no_eos = 3;
    assert!(said(&row).iter().all(|one| !one.contains("EOS")), "{:?}", said(&row));
    row.counts.no_eos = 4;
    let expected = "`automaton`: 4 of 40 texts have no end (no EOS). Give them more tokens, or see why the model ends none.";
    assert!(said(&row).iter().any(|one| one == expected), "{:?}", said(&row));
}

#[test]
fn a_gain_that_may_be_chance_is_named_and_not_advised() {
    let said = beside_geometry(&Counted::new("geometry", 40, 24), 0.2);
    assert!(said[0].starts_with("use `automaton`: more texts pass"), "{said:?}");
    let expected = "with `geometry`, 24 of 40 texts are valid instead of 22 with `automaton` (+5.0 [-15.0, +25.0] percentage points), which may be chance.";
    assert_eq!(said[1], expected);
    let said = beside_geometry(&Counted::new("geometry", 40, 22), 0.2);
    assert!(!said.iter().any(|one| one.contains("`geometry`")), "{said:?}");
}

#[test]
fn a_row_that_loses_texts_that_pass_is_not_advised() {
    let said = beside_geometry(&Counted::new("geometry", 39, 38), 0.2);
    assert!(said[0].starts_with("use `automaton`: "), "{said:?}");
    assert!(said[1].ends_with("percentage points), but 39 pass instead of 40."), "{said:?}");
}

#[test]
fn the_automaton_is_not_advised_if_it_certainly_loses_valid_texts() {
    let none = Counted::new("none", 36, 30);
    let fewer = |valid, half| {
        let automaton = Counted::new("automaton", 40, valid);
        let pairs = [automaton.beside(&none, None, half)];
        advice(&[none.row(), automaton.row()], &pairs, None)[0].clone()
    };
    assert!(fewer(10, 0.2).starts_with("use no logit processor. With `automaton` more texts pass"));
    assert!(fewer(28, 0.2).starts_with("use `automaton`: more texts pass"));
    // As many texts pass: what is certainly more valid is needed.
    let (all, better) = (Counted::new("none", 40, 10), Counted::new("automaton", 40, 30));
    let said = |half| advice(&[all.row(), better.row()], &[better.beside(&all, None, half)], None)[0].clone();
    assert!(said(0.2).starts_with("use `automaton`: as many texts pass"), "{}", said(0.2));
    assert!(said(0.6).starts_with("no logit processor is needed."), "{}", said(0.6));
}

#[test]
fn rows_without_the_automaton_are_weighed_against_their_base() {
    let (base, other) = (Counted::new("plain.jsonl", 40, 20), Counted::new("masked.jsonl", 40, 36));
    let rows = [base.row(), other.row()];
    let said = advice(&rows, &[other.beside(&base, None, 0.2)], None);
    assert!(
        said[0].starts_with("use `masked.jsonl`: 36 of 40 texts are valid instead of 20 with `plain.jsonl`")
    );
    let said = advice(&rows, &[other.beside(&base, None, 0.5)], None);
    assert_eq!(said[0], "most texts pass with `masked.jsonl` (40 of 40), and most are valid (36).");
    let (alone, geometry) = (Counted::new("none", 36, 20), Counted::new("geometry", 40, 39));
    let said = advice(&[alone.row(), geometry.row()], &[geometry.beside(&alone, None, 0.2)], None);
    assert!(
        said[0].starts_with(
            "use `geometry`: 39 of 40 texts are valid instead of 20 without a logit processor (+47.5 [+27.5,"
        ),
        "{said:?}"
    );
    let passing = Counted::new("passing.jsonl", 40, 2);
    let lossy = Counted::new("lossy.jsonl", 38, 9);
    let said = advice(&[passing.row(), lossy.row()], &[], None);
    assert_eq!(
        said[0],
        "most texts pass with `passing.jsonl` (40 of 40), and most are valid with `lossy.jsonl` (9 of 40)."
    );
    // Nothing was checked: nothing is said of what is valid.
    let unchecked = |mut row: Counted| {
        row.chemistry = ChemistryReport::default();
        row
    };
    let (one, two) = (unchecked(Counted::new("a", 4, 0)), unchecked(Counted::new("b", 5, 0)));
    assert_eq!(advice(&[one.row(), two.row()], &[], None)[0], "most texts pass with `b` (5 of 40).");
}
