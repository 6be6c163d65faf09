//! Judges texts in memory against reference conformers: `cargo run --release --example judge_texts`.

#![allow(clippy::print_stdout, reason = "a program that shows what it found")]

use drift::Job;
use drift::audit::{Judge, JudgePlan};

/// A conformer of ethanol, as text.
const ETHANOL: &str = "[C]<-1.2000,-0.2000,0.0000>[C]<0.0000,0.5500,0.0000>[O]<1.1700,-0.3000,0.0000>";

fn main() -> drift::Result<()> {
    print!("{}", report()?);
    Ok(())
}

/// A line for each text: whether it passes and is valid, its RMSD to the nearest reference, and what is wrong.
///
/// # Errors
/// None of these texts is refused.
pub(crate) fn report() -> drift::Result<String> {
    let mut judge = Judge::new(JudgePlan::default())?;
    judge.add_texts("CCO", &[ETHANOL])?;

    // What a model wrote: a good conformer, another molecule, and a bond that is too long.
    let texts = [
        format!("[CONFORMER]{}[/CONFORMER]", ETHANOL.replace("1.1700", "1.2100")),
        format!("[CONFORMER]{}[/CONFORMER]", ETHANOL.replace("[O]", "[N]")),
        format!("[CONFORMER]{}[/CONFORMER]", ETHANOL.replace("1.1700", "2.1700")),
    ];
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let scores = judge.score(&["CCO", "CCO", "CCO"], &texts, &Job::default())?;

    let mut lines = String::new();
    for conformer in &scores.conformers {
        let verdict = &conformer.verdict;
        let rmsd = verdict.rmsd_angstrom.map_or_else(|| "-".to_owned(), |rmsd| format!("{rmsd:.3} Å"));
        lines += &format!("passes: {}, valid: {}, RMSD: {rmsd}", verdict.passed, verdict.valid);
        let why = [verdict.why.clone()].into_iter().filter(|why| !why.is_empty());
        for problem in why.chain(verdict.faults.iter().cloned()) {
            lines += &format!("; {problem}");
        }
        lines.push('\n');
    }
    Ok(lines)
}
