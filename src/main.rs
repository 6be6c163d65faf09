//! The `drift` program: parse, run, exit code.

use std::process::ExitCode;

fn main() -> ExitCode {
    drift::cli::main()
}
