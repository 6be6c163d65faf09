//! The placeholders for the blocks of position templates in an evaluation.

use super::checkpoint::Checkpoint;
use super::plan::{GeneratePlan, PlaceholderChoice};
use crate::parameter;
use drift_core::constraint::{Placeholder, THEIR_PLACEHOLDER, USUAL_PLACEHOLDER, as_written};
use drift_core::encoding::Reading;
use drift_core::{Error, Job, Result};
use drift_data::corpus::EmbeddedConformers;
use drift_data::generation::ClassPlaceholder;
use drift_tune::placeholder::{
    EncodingChoice, FitPlan, FitReport, FittedClasses, FittedFile, Objective, fit, takes_templates,
};

/// A placeholder with its name in reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NamedPlaceholder {
    /// The placeholder text, or how blocks are classified and in which file.
    pub label: String,
    pub placeholder: Placeholder,
    /// The placeholder of each class of blocks, if blocks are classified.
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

    /// Returns the placeholder in a file for the tokenizer of a checkpoint: one per class of blocks if that is an improvement.
    fn of_file(file: &FittedFile, checkpoint: &Checkpoint) -> Result<Self> {
        let fitted = file.of(&checkpoint.tokenizer, checkpoint.encoding)?;
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

/// Returns a plan's placeholders for one checkpoint, each once.
pub(crate) fn placeholders(
    plan: &GeneratePlan,
    checkpoint: &Checkpoint,
    job: &Job,
) -> Result<Vec<NamedPlaceholder>> {
    let mut all: Vec<NamedPlaceholder> = Vec::new();
    if !plan.processors.iter().any(|processor| processor.takes_placeholder()) {
        return Ok(all);
    }
    let text = |text: &str| NamedPlaceholder::of_text(&as_written(text, checkpoint.encoding));
    for choice in &plan.placeholders {
        let named = match choice {
            PlaceholderChoice::Text(own) => vec![text(own)?],
            PlaceholderChoice::Fitted => {
                vec![NamedPlaceholder::of_text(&fitted(checkpoint, plan.seed, job)?)?]
            }
            PlaceholderChoice::File(file) => vec![NamedPlaceholder::of_file(file, checkpoint)?],
            PlaceholderChoice::Usual => {
                let usual = usual(checkpoint, plan.seed, job)?;
                usual.iter().map(|own| text(own)).collect::<Result<_>>()?
            }
        };
        named.into_iter().try_for_each(|named| add(&mut all, named))?;
    }
    Ok(all)
}

/// Adds a placeholder unless it is already in the list.
fn add(all: &mut Vec<NamedPlaceholder>, named: NamedPlaceholder) -> Result<()> {
    match all.iter().find(|known| known.label == named.label) {
        None => all.push(named),
        Some(known) if *known == named => {}
        Some(_) => {
            let problem = format!("two files have placeholders {}", named.label);
            return Err(Error::parameter(parameter::PLACEHOLDER, problem, "rename one of them"));
        }
    }
    Ok(())
}

/// Returns the default placeholders: the one that users have, and the best possible one. No tokenizer is refused for lack of one.
fn usual(checkpoint: &Checkpoint, seed: u64, job: &Job) -> Result<Vec<String>> {
    let encoding = checkpoint.encoding;
    if !takes_templates(&checkpoint.tokenizer, encoding)? {
        return Ok(Vec::new());
    }
    // Bins and codes are not decimals, and users have no placeholder for them.
    if !encoding.is_decimal() {
        return Ok(vec![USUAL_PLACEHOLDER.to_owned()]);
    }
    let fitted = fit_of(checkpoint, seed, job)?.results.into_iter().next();
    Ok([THEIR_PLACEHOLDER.to_owned()].into_iter().chain(fitted.map(|found| found.placeholder)).collect())
}

fn fit_of(checkpoint: &Checkpoint, seed: u64, job: &Job) -> Result<FitReport> {
    let plan = FitPlan {
        tokenizers: vec![(*checkpoint.tokenizer).clone()],
        encodings: EncodingChoice::Only(checkpoint.encoding),
        candidates: Vec::new(),
        objective: Objective::default(),
        seed,
        classes: false,
    };
    fit(
        &plan,
        &EmbeddedConformers { reading: Reading::new(checkpoint.encoding), ..EmbeddedConformers::default() },
        job,
    )
}

fn fitted(checkpoint: &Checkpoint, seed: u64, job: &Job) -> Result<String> {
    let report = fit_of(checkpoint, seed, job)?;
    if let Some(refused) = report.refused.first() {
        let problem = format!("{} has none: {}", refused.tokenizer, refused.why());
        let place = format!("{} fitted", parameter::PLACEHOLDER);
        return Err(Error::input(place, problem, format!("use {}", refused.instead)));
    }
    let result = report.results.into_iter().next();
    result.map(|result| result.placeholder).ok_or_else(|| {
        Error::parameter(parameter::PLACEHOLDER, "nothing was fitted", "give the placeholder itself")
    })
}
