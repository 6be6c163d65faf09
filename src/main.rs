//! The `drift` program: parse, run, exit code.

use std::process::ExitCode;

// `tokenizers` allocates for each piece of a text, which takes the C library's allocator longer than all else together.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    drift::cli::main()
}
