//! The help of the verbs: a line or two for each option, in groups; examples at the end, and the page that has the details.

use drift_core::encoding::ENCODING_FORMS;

/// The heading of options that every verb has.
pub(super) const EVERY_COMMAND: &str = "Options of every command";
/// The heading of conformers that are read.
pub(super) const CONFORMERS: &str = "Conformers";
/// The heading of tokenizers and their vocabularies.
pub(super) const TOKENIZER: &str = "Tokenizer";
/// The heading of models and tokenizers.
pub(super) const MODEL: &str = "Model";
/// The heading of how numbers are written.
pub(super) const NUMBERS: &str = "Numbers";
/// The heading of how texts are judged.
pub(super) const JUDGING: &str = "Judging";
/// The heading of options that name what is written.
pub(super) const OUTPUT: &str = "Output";
/// The heading of how the work is done.
pub(super) const RUNNING: &str = "Running";

/// Returns the end of the help of a verb: examples, and the section of the page with its options in detail.
pub(super) fn end(verb: &str, examples: &[&str]) -> String {
    let examples: String = examples.iter().map(|example| format!("  {example}\n")).collect();
    format!("Examples:\n{examples}\ndocs/options.md#{verb} describes each option in detail")
}

/// Returns the end of the help of `drift encodings`, which also lists the forms of their names.
pub(super) fn end_of_encodings(examples: &[&str]) -> String {
    let longest = ENCODING_FORMS.iter().map(|form| form.form.len()).max().unwrap_or(0);
    let forms: String =
        ENCODING_FORMS.iter().map(|form| format!("  {:longest$}  {}\n", form.form, form.meaning)).collect();
    let file = format!("  {:longest$}  fitted bins, or a definition of your own", "FILE.json");
    format!("Encodings (docs/encodings.md):\n{forms}{file}\n\n{}", end("encodings", examples))
}

/// Returns the help of an option that takes the name of an encoding. `what` is what the option says.
pub(super) fn encoding(what: &str) -> String {
    let mut kinds: Vec<&str> = ENCODING_FORMS.iter().map(|form| form.kind).collect();
    kinds.dedup();
    format!("{what}: {}, or a JSON file (docs/encodings.md)", kinds.join(", "))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use clap::builder::StyledStr;
    use clap::{Arg, Command, CommandFactory};

    use super::super::{Cli, inspect};

    /// The columns of help that is not printed to a terminal.
    const COLUMNS: usize = 100;
    /// The most lines of help of a verb.
    const MOST_LINES: usize = 130;
    /// The most lines of help of `drift eval`, which has the most options.
    const MOST_LINES_OF_EVAL: usize = 120;

    /// A verb, or the verb of a verb: `slurm eval`.
    struct Verb {
        name: String,
        command: Command,
    }

    impl Verb {
        /// Returns the help that a flag prints to a file.
        fn help(&self, flag: &str) -> String {
            let words = ["drift"].into_iter().chain(self.name.split(' ')).chain([flag]);
            Cli::command().term_width(COLUMNS).try_get_matches_from(words).unwrap_err().to_string()
        }

        /// Returns the options and positional arguments that are its own.
        fn arguments(&self) -> impl Iterator<Item = &Arg> {
            self.command.get_arguments().filter(|argument| !argument.is_global_set())
        }

        /// Returns the section of the page that describes it.
        fn section(&self) -> &str {
            self.name.split(' ').next().unwrap()
        }

        /// Returns the commands at the end of the help.
        fn examples(&self) -> Vec<String> {
            let end = self.command.get_after_help().map(StyledStr::to_string).unwrap_or_default();
            let examples = end.split("Examples:\n").nth(1).unwrap_or_default();
            examples.lines().map_while(|line| line.strip_prefix("  ").map(str::to_owned)).collect()
        }
    }

    /// Returns all verbs but `help`.
    fn verbs() -> Vec<Verb> {
        let mut root = Cli::command();
        root.build();
        let mut verbs = Vec::new();
        let mut next: Vec<Verb> = of(&root, "");
        while let Some(verb) = next.pop() {
            next.extend(of(&verb.command, &format!("{} ", verb.name)));
            verbs.push(verb);
        }
        assert!(verbs.len() > 18, "{}", verbs.len());
        verbs
    }

    fn of(command: &Command, before: &str) -> Vec<Verb> {
        let inner = command.get_subcommands().filter(|inner| inner.get_name() != "help");
        let verb =
            |inner: &Command| Verb { name: format!("{before}{}", inner.get_name()), command: inner.clone() };
        inner.map(verb).collect()
    }

    /// Returns the words of a command as a shell splits them, up to a pipe or a redirection.
    fn words(line: &str) -> Vec<OsString> {
        let mut words = vec![String::new()];
        for (at, part) in line.split('\'').enumerate() {
            if at % 2 == 1 {
                words.last_mut().unwrap().push_str(part);
                continue;
            }
            let mut pieces = part.split(' ');
            words.last_mut().unwrap().push_str(pieces.next().unwrap());
            words.extend(pieces.map(str::to_owned));
        }
        let own = words.into_iter().take_while(|word| !["|", "<", ">"].contains(&&**word));
        own.filter(|word| !word.is_empty()).map(OsString::from).collect()
    }

    #[test]
    fn help_is_short_and_the_same_both_ways() {
        for verb in verbs() {
            let help = verb.help("--help");
            let most = if verb.name == "eval" { MOST_LINES_OF_EVAL } else { MOST_LINES };
            assert!(help.lines().count() <= most, "{}: {} lines", verb.name, help.lines().count());
            let wide: Vec<&str> = help
                .lines()
                // clap does not wrap the usage.
                .filter(|line| line.chars().count() > COLUMNS && !line.starts_with("Usage: "))
                .collect();
            assert!(wide.is_empty(), "{}: {wide:?}", verb.name);
            assert_eq!(help, verb.help("-h"), "{}: -h and --help differ", verb.name);
        }
    }

    #[test]
    fn an_option_has_a_line_or_two() {
        for verb in verbs() {
            let help = verb.help("--help");
            // The next line of an option is indented as far as its text.
            let mut lines = 0;
            for line in help.lines() {
                let is_next = line.starts_with("          ");
                let is_first = line.trim_start().starts_with('-');
                assert!(!(is_first && is_next), "{}: looks like an option: {line}", verb.name);
                lines = if is_first {
                    1
                } else if is_next {
                    lines + 1
                } else {
                    0
                };
                assert!(lines <= 2, "{}: more than two lines: {line}", verb.name);
            }
            for argument in verb.arguments() {
                let said = argument.get_help().map(StyledStr::to_string).unwrap_or_default();
                assert!(!said.is_empty(), "{}: {argument} has no help", verb.name);
                assert!(argument.get_long_help().is_none(), "{}: {argument} has long help", verb.name);
                let names = argument.get_value_names().unwrap_or_default().join(" ");
                for value in argument.get_possible_values() {
                    // Flags have the values true and false.
                    if argument.get_action().takes_values() && argument.is_hide_possible_values_set() {
                        let name = value.get_name();
                        assert!(
                            said.contains(name) || names.contains(name),
                            "{}: {argument} names no {name}",
                            verb.name
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn examples_parse() {
        for verb in verbs() {
            let examples = verb.examples();
            assert!(!examples.is_empty(), "{}: no example", verb.name);
            for example in examples {
                assert!(example.len() + 2 <= COLUMNS, "{example}");
                let command = Cli::command();
                let words = inspect::texts_last(words(&example), &command);
                command.try_get_matches_from(words).unwrap_or_else(|error| panic!("{example}: {error}"));
            }
        }
    }

    #[test]
    fn the_help_names_its_section_of_the_page() {
        let page = super::super::options_page::page();
        for verb in verbs() {
            let end = verb.command.get_after_help().map(StyledStr::to_string).unwrap_or_default();
            assert!(end.contains(&format!("docs/options.md#{}", verb.section())), "{}: {end}", verb.name);
            assert!(page.contains(&format!("\n## {}\n", verb.section())), "{}", verb.name);
        }
    }

    /// clap doesn't ask for what an option requires if that conflicts with another option that is given. The option would be taken, and do
    /// nothing.
    #[test]
    fn what_requires_an_option_conflicts_with_what_excludes_it() {
        let mut taken = Vec::new();
        for verb in verbs() {
            let excludes = |one: &Arg, other: &Arg| {
                let has = |of: &Arg, id: &Arg| {
                    verb.command.get_arg_conflicts_with(of).iter().any(|found| found.get_id() == id.get_id())
                };
                has(one, other) || has(other, one)
            };
            for option in verb.arguments() {
                // What an option requires is public in its debug format only.
                let shown = format!("{option:?}");
                let required =
                    shown.split("requires: [").nth(1).and_then(|rest| rest.split(']').next()).unwrap();
                for needed in
                    verb.arguments().filter(|one| required.contains(&format!("\"{}\"", one.get_id())))
                {
                    let excluding = verb
                        .arguments()
                        .filter(|one| one.get_id() != option.get_id() && excludes(one, needed));
                    let silent = excluding.filter(|one| !excludes(one, option));
                    taken
                        .extend(silent.map(|one| {
                            format!("{}: {} beside {}", verb.name, option.get_id(), one.get_id())
                        }));
                }
            }
        }
        assert!(taken.is_empty(), "{taken:#?}");
    }
}
