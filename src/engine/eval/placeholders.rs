//! What position templates hold in their blocks in an evaluation.

use super::checkpoint::Checkpoint;
use super::plan::{EvalPlan, PlaceholderChoice};
use super::record::ClassPlaceholder;
use drift_core::constraint::{Placeholder, as_written};
use drift_core::encoding::Reading;
use drift_core::error::{Error, Parameter, Result};
use drift_core::job::Job;
use drift_data::corpus::Embedded;
use drift_tune::placeholder::{DialectChoice, FitPlan, FittedClasses, FittedFile, Objective, fit};

/// A placeholder with its name in reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NamedPlaceholder {
    /// The placeholder itself, or how blocks are classed and in which file.
    pub label: String,
    pub placeholder: Placeholder,
    /// What each class of block holds, if blocks are classed.
    pub classes: Vec<ClassPlaceholder>,
}

impl NamedPlaceholder {
    fn of_text(text: &str) -> Result<Self> {
        Ok(NamedPlaceholder {
            label: text.to_owned(),
            placeholder: Placeholder::new(text)?,
            classes: Vec::new(),
        })
    }

    /// What a file says for the tokenizer of a checkpoint: one per class of block where that gains something.
    fn of_file(file: &FittedFile, checkpoint: &Checkpoint) -> Result<Self> {
        let fitted = file.of(&checkpoint.tokenizer, checkpoint.dialect)?;
        let in_file = |error: Error| Error::input(file.place(), error, "");
        let Some(FittedClasses { partition, placeholders }) = &fitted.classes else {
            return NamedPlaceholder::of_text(&fitted.placeholder).map_err(in_file);
        };
        let pairs: Vec<(&str, &str)> = placeholders.iter().map(|(class, text)| (&**class, &**text)).collect();
        let placeholder = Placeholder::per_class(*partition, &pairs, &fitted.placeholder).map_err(in_file)?;
        let class = |(class, placeholder): &(&str, &str)| ClassPlaceholder {
            class: (*class).to_owned(),
            placeholder: (*placeholder).to_owned(),
        };
        Ok(NamedPlaceholder {
            label: format!("{placeholder} of {}", file.source.name),
            classes: pairs.iter().map(class).collect(),
            placeholder,
        })
    }
}

/// A plan's placeholders for one checkpoint, each once.
pub(super) fn placeholders(
    plan: &EvalPlan,
    checkpoint: &Checkpoint,
    job: &Job,
) -> Result<Vec<NamedPlaceholder>> {
    let mut all: Vec<NamedPlaceholder> = Vec::new();
    if !plan.processors.iter().any(|processor| processor.takes_placeholder()) {
        return Ok(all);
    }
    for choice in &plan.placeholders {
        let named = match choice {
            PlaceholderChoice::Text(text) => {
                NamedPlaceholder::of_text(&as_written(text, checkpoint.dialect))?
            }
            PlaceholderChoice::Fitted => NamedPlaceholder::of_text(&fitted(checkpoint, plan.seed, job)?)?,
            PlaceholderChoice::File(file) => NamedPlaceholder::of_file(file, checkpoint)?,
        };
        match all.iter().find(|known| known.label == named.label) {
            None => all.push(named),
            Some(known) if *known == named => {}
            Some(_) => {
                let problem = format!("two files have placeholders {}", named.label);
                return Err(Error::parameter(Parameter::Placeholder, problem, "rename one of them"));
            }
        }
    }
    Ok(all)
}

fn fitted(checkpoint: &Checkpoint, seed: u64, job: &Job) -> Result<String> {
    let plan = FitPlan {
        tokenizers: vec![(*checkpoint.tokenizer).clone()],
        dialects: DialectChoice::Only(checkpoint.dialect),
        candidates: Vec::new(),
        objective: Objective::default(),
        seed,
        classes: false,
    };
    let report = fit(&plan, &Embedded { reading: Reading::of(checkpoint.dialect) }, job)?;
    if let Some(refused) = report.refused.first() {
        let problem = format!("{} has none: {}", refused.tokenizer, refused.why());
        return Err(Error::input(
            format!("{} fitted", Parameter::Placeholder),
            problem,
            format!("use {}", refused.instead),
        ));
    }
    let result = report.results.into_iter().next();
    result.map(|result| result.placeholder).ok_or_else(|| {
        Error::parameter(Parameter::Placeholder, "nothing was fitted", "give the placeholder itself")
    })
}
