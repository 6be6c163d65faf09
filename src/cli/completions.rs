//! `drift completions`: a completion script for a shell.

use clap_complete::Shell;

use super::output::Output;

/// Examples at the end of the help.
pub(super) const EXAMPLES: [&str; 1] =
    ["drift completions bash > ~/.local/share/bash-completion/completions/drift"];

/// The command line of `drift completions`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The shell: bash, elvish, fish, powershell or zsh
    #[arg(hide_possible_values = true)]
    shell: Shell,
}

/// Prints the script.
pub(super) fn run(args: Args, command: &mut clap::Command, output: &Output) -> anyhow::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, command, "drift", &mut script);
    output.text(&String::from_utf8(script)?)
}
