//! A boundary around `tokenizers`: a tokenizer.json can make it panic, when it is read or on some text alone.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    /// Whether a panic of this thread is caught and told as an error.
    static IS_CAUGHT: Cell<bool> = const { Cell::new(false) };
}

/// The hook is put in once, before whatever hook there was, and hands on all panics but the caught ones.
static HOOK: Once = Once::new();

/// What `work` comes to; none if it panicked, of which nothing is printed.
///
/// What `work` changes must not be used after a panic: here it is a tokenizer that is read and thrown away, or one that
/// is only looked at.
pub(super) fn caught<T>(work: impl FnOnce() -> T) -> Option<T> {
    HOOK.call_once(|| {
        let before = take_hook();
        set_hook(Box::new(move |panic| {
            if !IS_CAUGHT.get() {
                before(panic);
            }
        }));
    });
    // Calls may be nested, so the outer one's word is put back.
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
