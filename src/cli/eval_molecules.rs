//! Messages about the reference conformers of molecules.

use std::path::PathBuf;

use crate::report::format::thousands;
use drift_data::prompts::ReferenceCounts;

/// Returns the name of a corpus in messages.
pub(super) fn named(inputs: &[PathBuf]) -> String {
    match inputs {
        [] => "the embedded corpus".to_owned(),
        [one] => drift_core::io::file_name(one),
        several => format!("{} inputs", several.len()),
    }
}

/// Returns a note on references that could not be used and molecules without a reference, if there are any.
pub(super) fn reference_note(counts: &ReferenceCounts) -> Option<String> {
    let parts = [
        (counts.without_order, "whose atoms are not in the order of a SMILES"),
        (counts.other_stereo, "with another stereo than the prompt"),
        (counts.not_asked_for, "of molecules that were not asked for"),
    ];
    let some = parts.iter().filter(|(count, _)| *count > 0);
    let mut said: Vec<String> = some.map(|(count, what)| format!("{} {what}", thousands(*count))).collect();
    if !said.is_empty() {
        let why = counts.unused.first();
        let why =
            why.map_or_else(String::new, |first| format!(" (such as {}: {})", first.record, first.reason));
        said = vec![format!("conformers that could not be used: {}{why}", said.join(", "))];
    }
    if counts.from.is_some() && counts.prompts_without > 0 {
        said.push(format!("molecules without a reference: {}", thousands(counts.prompts_without)));
    }
    (!said.is_empty()).then(|| said.join("; "))
}
