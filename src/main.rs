//! The `drift` program: parse, run, exit code.

use std::process::ExitCode;

// `tokenizers` allocates for each piece of a text. With the C library's allocator that is four tenths of the time of `train-tokenizer`.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    drift::cli::main()
}
