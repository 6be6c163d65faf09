//! Whatever comes in: inputs, options, signals and full disks that nobody would make, thrown at every reader and every verb.
//!
//! What it proves of each case that is run: no panic, no abort, no hang; bounded memory; an exit code of 0, 2 or 130; an
//! error of one printable line of at most 400 characters that names the file; as many records read and skipped as the file
//! announces; inputs unchanged, outputs whole or absent, nothing left behind. What it cannot see: whether what was read is
//! right (other tests and other programs say that), and cases that nobody drew.
//!
//! Cases are drawn by seed, target and number, so a failure names one that can be run again alone:
//!
//! ```text
//! DRIFT_FUZZ_SEED=1 DRIFT_FUZZ_CASE=123 cargo test --release --test fuzz -- --exact jsonl --nocapture
//! DRIFT_FUZZ_SECONDS=600 cargo test --release --test fuzz -- --nocapture     # that long for every target
//! DRIFT_FUZZ_CASES=100000 cargo test --release --test fuzz                   # that many of every target
//! ```
//!
//! Failing cases are kept in `tests/fuzz/kept`, one for each kind of failure, and run first every time.

#![cfg(target_os = "linux")]
#![allow(clippy::print_stderr, reason = "each target says how many cases it ran")]

mod announced;
mod corpus;
mod documents;
mod faults;
mod harness;
mod mutate;
mod program;
mod run;
mod scene;
mod texts;

use harness::Target;

/// Counts what is allocated.
#[global_allocator]
static MEMORY: peak_alloc::PeakAlloc = peak_alloc::PeakAlloc;

fn targets() -> Vec<Target> {
    [corpus::targets(), texts::targets(), documents::targets(), program::targets()]
        .into_iter()
        .flatten()
        .collect()
}

/// Carries out what a parent process asks for; without one there is nothing to do.
#[test]
fn child() {
    harness::obey(&targets());
}

/// A test for each target, by its name.
macro_rules! tests {
    ($($name:ident)*) => {
        $(#[test]
        fn $name() {
            let name = stringify!($name).replace('_', "-");
            harness::fuzz(targets().iter().find(|target| target.name == name).unwrap());
        })*

        #[test]
        fn every_target_has_a_test() {
            let mut tests = vec![$(stringify!($name).replace('_', "-")),*];
            let mut names: Vec<&str> = targets().iter().map(|target| target.name).collect();
            tests.sort();
            names.sort();
            assert_eq!(tests, names);
        }
    };
}

tests! {
    jsonl plain sdf xyz msgpack pickle hdf5 containers wrapped smiles enriched
    tokenizer audit record config weights index fitted state smiles_file
    options inputs
}
