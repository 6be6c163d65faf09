//! docs/options.md, generated from the definitions of the options. What the help has no room for stands in docs/options.txt.
//!
//! `DRIFT_UPDATE_PAGES=1 cargo test --release -p drift --lib options_page` writes the page anew.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use clap::builder::StyledStr;
use clap::{Arg, Command, CommandFactory};

use super::Cli;

/// The section of options that several commands have.
const SHARED: &str = "Options of several commands";

/// An option is shared if so many commands have it with the same words.
const SEVERAL: usize = 2;

/// The commands that take the options of another: their own section names it.
const LIKE_EVAL: [&str; 3] = ["generate", "slurm eval", "slurm generate"];

/// The page as it should be.
pub(super) fn page() -> String {
    let notes = Notes::read();
    let commands = commands(&notes);
    notes.refuse_unknown(&commands);
    let mut found: BTreeMap<Words<'_>, usize> = BTreeMap::new();
    for command in commands.iter().filter(|command| !LIKE_EVAL.contains(&&*command.name)) {
        command.rows.iter().for_each(|row| *found.entry(row.words()).or_default() += 1);
    }
    let shared: BTreeSet<Words<'_>> =
        found.into_iter().filter(|(_, count)| *count >= SEVERAL).map(|(words, _)| words).collect();
    let mut out = notes.of("page").intro.clone();
    out.push_str(&format!("\n\n## {SHARED}\n"));
    out.push_str(&intro(notes.of("shared")));
    let all = commands.iter().flat_map(|command| &command.rows);
    let mut listed = BTreeSet::new();
    let rows: Vec<&OptionRow> =
        all.filter(|row| shared.contains(&row.words()) && listed.insert(row.words())).collect();
    out.push_str(&tables(&rows));
    let eval = commands.iter().find(|command| command.name == "eval");
    let of_eval = eval.iter().flat_map(|eval| &eval.rows).map(OptionRow::words);
    let of_eval: BTreeSet<Words<'_>> = of_eval.filter(|words| !shared.contains(words)).collect();
    for command in &commands {
        out.push_str(&format!("\n## {}\n", command.name));
        out.push_str(&intro(notes.of(&command.name)));
        let is_like_eval = LIKE_EVAL.contains(&&*command.name);
        let (several, rest): (Vec<&OptionRow>, Vec<&OptionRow>) =
            command.rows.iter().partition(|row| shared.contains(&row.words()));
        let (eval, own): (Vec<&OptionRow>, Vec<&OptionRow>) =
            rest.into_iter().partition(|row| is_like_eval && of_eval.contains(&row.words()));
        out.push_str(&tables(&own));
        out.push_str(&named("As for [`eval`](#eval)", &eval));
        out.push_str(&named("As for [several commands](#options-of-several-commands)", &several));
    }
    out.push_str(&format!("\n{}\n", notes.of("end").intro));
    out
}

/// A command with its options.
struct CommandOptions {
    name: String,
    rows: Vec<OptionRow>,
}

/// A row of the page.
#[derive(Debug)]
struct OptionRow {
    /// The heading of its group in the help.
    group: String,
    /// The option with its value.
    cell: String,
    /// The option alone.
    name: String,
    meaning: String,
}

/// What a row says, whatever its group: the option with its value, and its meaning.
type Words<'r> = (&'r str, &'r str);

/// The commands in the order of the help.
fn commands(notes: &Notes) -> Vec<CommandOptions> {
    let mut root = Cli::command();
    root.build();
    let mut found = Vec::new();
    collect(&root, "", notes, &mut found);
    found
}

fn collect(command: &Command, before: &str, notes: &Notes, found: &mut Vec<CommandOptions>) {
    for inner in command.get_subcommands().filter(|inner| inner.get_name() != "help" && !inner.is_hide_set())
    {
        let name = format!("{before}{}", inner.get_name());
        let arguments = inner.get_arguments().filter(|argument| !argument.is_hide_set());
        let rows = arguments.map(|argument| OptionRow::new(&name, argument, notes)).collect();
        found.push(CommandOptions { name: name.clone(), rows });
        collect(inner, &format!("{name} "), notes, found);
    }
}

impl OptionRow {
    fn words(&self) -> Words<'_> {
        (&self.cell, &self.meaning)
    }

    fn new(command: &str, argument: &Arg, notes: &Notes) -> Self {
        let key = key(argument);
        // Commands of a command, as those of `slurm`, share its notes.
        let first = command.split(' ').next().unwrap_or_default();
        let like = if LIKE_EVAL.contains(&command) { "eval" } else { first };
        let note = [command, first, like, "shared"].iter().find_map(|name| notes.of(name).options.get(&key));
        let help = argument.get_help().map(StyledStr::to_string).unwrap_or_default();
        let help = lower(&help.replace('\n', " "));
        let mut meaning = note.cloned().unwrap_or(help);
        meaning.push_str(&values(argument, &meaning));
        let name = match argument.get_long() {
            Some(long) => format!("`--{long}`"),
            None => format!("`{key}`"),
        };
        OptionRow {
            group: argument.get_help_heading().unwrap_or_default().to_owned(),
            cell: cell(argument),
            name,
            meaning: meaning.replace('|', "\\|"),
        }
    }
}

/// A line of help as a part of a sentence: its first letter is small unless an abbreviation begins there.
fn lower(help: &str) -> String {
    let mut letters = help.chars();
    match (letters.next(), letters.clone().next()) {
        (Some(first), Some(second)) if !second.is_uppercase() => {
            first.to_lowercase().chain(letters).collect()
        }
        _ => help.to_owned(),
    }
}

/// The name by which notes know an option: its long name, or that of the positional argument's value.
fn key(argument: &Arg) -> String {
    let value = argument.get_value_names().and_then(|names| names.first());
    argument.get_long().map_or_else(|| value.map_or_else(String::new, ToString::to_string), str::to_owned)
}

/// The option as the page shows it: `-o`, `--output FILE`.
fn cell(argument: &Arg) -> String {
    let takes = argument.get_action().takes_values();
    let names = argument.get_value_names().filter(|_| takes).unwrap_or_default();
    let values: Vec<&str> = names.iter().map(|name| &**name).collect();
    let more = if argument.get_num_args().is_some_and(|count| count.max_values() > values.len().max(1)) {
        "…"
    } else {
        ""
    };
    let values = values.join(" ").replace('|', "\\|");
    let Some(long) = argument.get_long() else { return format!("`{values}{more}`") };
    let short = argument.get_short().map(|short| format!("`-{short}`, ")).unwrap_or_default();
    let aliases = argument.get_visible_aliases().unwrap_or_default();
    let aliases: String = aliases.iter().map(|alias| format!(", `--{alias}`")).collect();
    let space = if values.is_empty() { "" } else { " " };
    format!("{short}`--{long}{space}{values}{more}`{aliases}")
}

/// The possible values and the default, as far as the meaning does not name them.
fn values(argument: &Arg, meaning: &str) -> String {
    if !argument.get_action().takes_values() {
        return String::new();
    }
    let possible = argument.get_possible_values();
    let possible: Vec<&str> = possible
        .iter()
        .filter(|value| !value.is_hide_set())
        .map(clap::builder::PossibleValue::get_name)
        .collect();
    let mut out = String::new();
    if !possible.is_empty() && !possible.iter().all(|value| meaning.contains(value)) {
        let listed: Vec<String> = possible.iter().map(|value| format!("`{value}`")).collect();
        out.push_str(&format!(". Values: {}", listed.join(", ")));
    }
    let defaults = argument.get_default_values();
    let shown: Vec<String> = defaults.iter().map(|value| value.to_string_lossy().into_owned()).collect();
    if !shown.is_empty()
        && !argument.is_hide_default_value_set()
        && !meaning.to_lowercase().contains("default")
    {
        out.push_str(&format!(". Default: `{}`", shown.join(" ")));
    }
    out
}

/// A paragraph, if there is one.
fn intro(notes: &CommandNotes) -> String {
    if notes.intro.is_empty() { String::new() } else { format!("\n{}\n", notes.intro) }
}

/// A table for each group of the help.
fn tables(rows: &[&OptionRow]) -> String {
    let mut groups: Vec<&str> = Vec::new();
    for row in rows {
        if !groups.contains(&&*row.group) {
            groups.push(&row.group);
        }
    }
    let mut out = String::new();
    for group in groups {
        let title = if group.is_empty() { "option" } else { group };
        out.push_str(&format!("\n| {title} | meaning |\n| --- | --- |\n"));
        for row in rows.iter().filter(|row| row.group == group) {
            out.push_str(&format!("| {} | {} |\n", row.cell, row.meaning));
        }
    }
    out
}

/// A line with the names of options that another section describes.
fn named(what: &str, rows: &[&OptionRow]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let names: Vec<&str> = rows.iter().map(|row| &*row.name).collect();
    format!("\n{what}: {}.\n", names.join(", "))
}

/// What docs/options.txt says beside the help.
struct Notes(BTreeMap<String, CommandNotes>);

/// What it says of a command.
#[derive(Default)]
struct CommandNotes {
    /// The text before the options.
    intro: String,
    /// By option, its meaning in place of the help's.
    options: BTreeMap<String, String>,
}

impl Notes {
    fn read() -> Self {
        let text = std::fs::read_to_string(root().join("docs/options.txt")).unwrap();
        let mut all: BTreeMap<String, CommandNotes> = BTreeMap::new();
        let mut current = String::new();
        for line in text.lines().filter(|line| !line.starts_with("//")) {
            let notes = all.entry(current.clone()).or_default();
            if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
                current = name.to_owned();
            } else if let Some((option, meaning)) = option_note(line) {
                let before = notes.options.insert(option.to_owned(), meaning.to_owned());
                assert!(before.is_none(), "docs/options.txt: [{current}] has {option} twice");
            } else {
                notes.intro.push_str(line);
                notes.intro.push('\n');
            }
        }
        for notes in all.values_mut() {
            notes.intro = notes.intro.trim().to_owned();
        }
        Notes(all)
    }

    fn of(&self, command: &str) -> &CommandNotes {
        static NONE: CommandNotes = CommandNotes { intro: String::new(), options: BTreeMap::new() };
        self.0.get(command).unwrap_or(&NONE)
    }

    /// A note of an option that was renamed or is gone does not stay.
    fn refuse_unknown(&self, commands: &[CommandOptions]) {
        for (name, notes) in self.0.iter().filter(|(name, _)| !["", "page", "end"].contains(&&***name)) {
            let own = commands.iter().filter(|command| {
                let is_below = command.name.split(' ').next() == Some(name);
                command.name == *name || is_below || name == "shared"
            });
            let known: BTreeSet<String> =
                own.flat_map(|command| &command.rows).map(|row| row.name.replace(['`', '-'], "")).collect();
            assert!(!known.is_empty(), "docs/options.txt: no command [{name}]");
            for option in notes.options.keys() {
                let is_known = known.contains(&option.replace('-', ""));
                assert!(is_known, "docs/options.txt: [{name}] has {option}, which the command does not take");
            }
        }
    }
}

/// `samples: text` as option and meaning.
fn option_note(line: &str) -> Option<(&str, &str)> {
    let (option, meaning) = line.split_once(": ")?;
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
    (!option.is_empty() && option.chars().all(is_name)).then_some((option, meaning))
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

#[test]
fn the_page_of_options_is_that_of_the_definitions() {
    let (path, wanted) = (root().join("docs/options.md"), page());
    if std::env::var_os("DRIFT_UPDATE_PAGES").is_some() {
        std::fs::write(&path, &wanted).unwrap();
    }
    let is_current = std::fs::read_to_string(&path).unwrap() == wanted;
    assert!(
        is_current,
        "docs/options.md is stale: DRIFT_UPDATE_PAGES=1 cargo test --release -p drift --lib options_page"
    );
}
