//! The drift of the texts of a run: how many tokens more or fewer the template leaves to each block than the block takes.

use rayon::prelude::*;

use crate::runs::checkpoint::Checkpoint;
use drift_core::Result;
use drift_core::constraint::Placeholder;
use drift_core::text::skeleton::placed;
use drift_core::text::write;
use drift_data::audit::{self, DriftHistogram};

/// Returns the drift of texts that have the skeletons of their prompts. Each text comes with its skeleton.
///
/// # Errors
/// If the tokenizer cannot encode a text.
pub(super) fn drift_of(
    checkpoint: &Checkpoint,
    placeholder: &Placeholder,
    texts: &[CopiedText<'_>],
) -> Result<DriftHistogram> {
    let one = |text: &CopiedText<'_>| {
        let mut drift = DriftHistogram::default();
        add_drift(checkpoint, placeholder, *text, &mut drift)?;
        Ok(drift)
    };
    let mut all = DriftHistogram::default();
    for drift in texts.par_iter().map(one).collect::<Result<Vec<_>>>()? {
        all.merge(&drift);
    }
    Ok(all)
}

/// A text that has the skeleton of its prompt.
#[derive(Debug, Clone, Copy)]
pub(super) struct CopiedText<'t> {
    pub text: &'t str,
    pub skeleton: &'t str,
}

/// Adds F - T for each readable block: the number of FREE tokens of the placeholder minus the number of tokens of the block in
/// canonical form, which is the block without junk and with missing decimals filled with zeros.
fn add_drift(
    checkpoint: &Checkpoint,
    placeholder: &Placeholder,
    CopiedText { text, skeleton }: CopiedText<'_>,
    drift: &mut DriftHistogram,
) -> Result<()> {
    let blocks = audit::readable(text, checkpoint.encoding);
    let coordinates: Vec<_> = blocks.iter().map(|block| block.unwrap_or_default()).collect();
    let mended = write(&placed(skeleton, checkpoint.encoding.slots()), &coordinates, checkpoint.encoding);
    let template = placeholder.fill(skeleton, checkpoint.encoding);
    drift.add(&checkpoint.tokenizer, checkpoint.encoding, &mended, &template, |block| {
        blocks.get(block).is_some_and(Option::is_some)
    })
}
