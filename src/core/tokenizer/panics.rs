//! Catches panics of `tokenizers`: a tokenizer.json can make it panic, either when it is read or only on some texts.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    /// Whether panics of this thread are caught and reported as errors.
    static IS_CAUGHT: Cell<bool> = const { Cell::new(false) };
}

/// Guards the installation of the panic hook. The hook passes all panics to the previous hook, except those that are caught.
static HOOK: Once = Once::new();

/// Returns the result of `work`; `None` if it panicked. A caught panic prints nothing.
///
/// State that `work` changes must not be used after a panic. Here it is a tokenizer that is discarded, or one that is only read.
pub(super) fn caught<T>(work: impl FnOnce() -> T) -> Option<T> {
    HOOK.call_once(|| {
        let before = take_hook();
        set_hook(Box::new(move |panic| {
            if !IS_CAUGHT.get() {
                before(panic);
            }
        }));
    });
    // Calls may be nested, so the outer call's flag is restored.
    let outer = IS_CAUGHT.replace(true);
    let outcome = catch_unwind(AssertUnwindSafe(work));
    IS_CAUGHT.set(outer);
    outcome.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panics_are_caught_and_no_others() {
        assert_eq!(caught(|| 3), Some(3));
        assert_eq!(caught(|| panic!("of a test: must not be seen")).map(|(): ()| 0), None);
        assert_eq!(caught(|| caught(|| panic!("nor this")).map(|(): ()| 0)), Some(None));
        assert!(!IS_CAUGHT.get());
    }
}
