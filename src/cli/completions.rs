//! `drift completions`: a completion script for a shell.

use clap_complete::Shell;

use super::output::Output;

/// The command line of `drift completions`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The shell
    shell: Shell,
}

/// Prints the script.
pub(super) fn run(args: Args, command: &mut clap::Command, output: &Output) -> anyhow::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, command, "drift", &mut script);
    output.text(&String::from_utf8(script)?)
}
