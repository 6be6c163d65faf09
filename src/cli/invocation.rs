//! The command line as it was given, in the form that shards keep. It identifies the work of a shard, and a merge runs it again.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::Path;

use clap::parser::ValueSource;
use clap::{ArgMatches, Command, CommandFactory};

use super::paths::{OUTPUTS, inputs};
use drift_core::Error;
use drift_core::command::DriftCommand;
use drift_core::run_files::RunFiles;
use drift_data::shard::{Manifest, Shard};

/// Options that do not change the result of a shard.
const OF_NO_RESULT: [&str; 5] = ["output", "quiet", "shard", "threads", "json"];

/// The key of a verb's positional arguments.
const UNNAMED: &str = "";

/// A verb and its arguments.
#[derive(Debug, Clone, Default)]
pub(super) struct Invocation {
    verb: String,
    options: BTreeMap<String, Vec<OsString>>,
    files: RunFiles,
}

impl Invocation {
    /// Returns the invocation that was parsed.
    pub(super) fn new(command: &Command, matches: &ArgMatches) -> Self {
        let (mut command, mut own) = (command, matches);
        while let Some((verb, inner)) = own.subcommand()
            && let Some(found) = command.find_subcommand(verb)
        {
            (command, own) = (found, inner);
        }
        let mut options = BTreeMap::new();
        for argument in command.get_arguments() {
            let id = argument.get_id().as_str();
            if own.try_contains_id(id).is_err() || own.value_source(id) != Some(ValueSource::CommandLine) {
                continue;
            }
            let name = if argument.is_positional() { UNNAMED } else { argument.get_long().unwrap_or(id) };
            let raw = own.get_raw(id).into_iter().flatten().filter(|_| argument.get_action().takes_values());
            options.insert(name.to_owned(), raw.map(OsStr::to_owned).collect());
        }
        Invocation { verb: command.get_name().to_owned(), options, files: inputs(command, own) }
    }

    /// Returns the files and folders that the command line names as inputs, to which the verb adds its outputs.
    pub(super) fn files(&self) -> RunFiles {
        self.files.clone()
    }

    /// Refuses every option of the command line that has no meaning beside `option`.
    ///
    /// # Errors
    /// The first option that is not among `allowed`.
    pub(super) fn refuse_beside(&self, option: &str, allowed: &[&str]) -> Result<(), Error> {
        match self.options.keys().find(|name| !allowed.contains(&&***name)) {
            None => Ok(()),
            Some(name) => {
                let problem = format!("has no meaning beside {option}");
                Err(Error::input(format!("--{name}"), problem, "leave one of them out"))
            }
        }
    }

    /// Returns the inputs of the command of a manifest, if the current folder is the one where it ran.
    ///
    /// # Errors
    /// As [`Invocation::parsed`].
    pub(super) fn files_of(manifest: &Manifest) -> anyhow::Result<RunFiles> {
        let mut command = super::Cli::command();
        let mut arguments = Invocation::arguments(manifest);
        // Some verbs require it; stdout is no file.
        arguments.insert(1, "--output=-".to_owned());
        let matches = command.try_get_matches_from_mut([vec!["drift".to_owned()], arguments].concat())?;
        Ok(Invocation::new(&command, &matches).files)
    }

    /// Returns the manifest of this invocation, for work that can be split into shards, and interrupted and continued.
    ///
    /// # Errors
    /// If a value is not UTF-8, or the current folder is unknown.
    pub(super) fn manifest(&self, shard: Option<Shard>) -> Result<Manifest, Error> {
        let text = |value: &OsString| {
            let text = value.to_str().map(str::to_owned);
            text.ok_or_else(|| Error::input(value.display(), "is not UTF-8", "rename it"))
        };
        let options = self.options.iter().filter(|(name, _)| !OF_NO_RESULT.contains(&&***name));
        let options = options
            .map(|(name, values)| Ok((name.clone(), values.iter().map(text).collect::<Result<_, Error>>()?)))
            .collect::<Result<_, Error>>()?;
        let folder = std::env::current_dir().map_err(|e| Error::io(Path::new("."), e))?;
        Ok(Manifest::new(&self.verb, shard, options, folder))
    }

    /// Returns the value of an option that was given.
    pub(super) fn value(&self, option: &str) -> Option<&OsStr> {
        self.options.get(option)?.first().map(OsString::as_os_str)
    }

    /// This invocation without some options.
    #[must_use]
    pub(super) fn without(&self, names: &[&str]) -> Self {
        let mut rest = self.clone();
        rest.options.retain(|name, _| !names.contains(&&**name));
        rest
    }

    /// Returns the command, as a reader can run it again: without files that it wrote, and without what changes no result. `None` if a
    /// value is not UTF-8.
    pub(super) fn command(&self) -> Option<String> {
        self.manifest(None).ok().map(|manifest| Invocation::command_of(&manifest))
    }

    /// Returns the command of a manifest, as [`Invocation::command`].
    pub(super) fn command_of(manifest: &Manifest) -> String {
        let named = manifest.options.iter().filter(|(name, _)| !OUTPUTS.contains(&&***name));
        let mut command = DriftCommand::new(&manifest.verb);
        for (name, values) in named.clone().filter(|(name, _)| *name != UNNAMED) {
            let flag = format!("--{name}");
            if values.is_empty() {
                command = command.word(&flag);
            }
            // A value may begin with a hyphen.
            for value in values {
                command = command.word(&format!("{flag}={value}"));
            }
        }
        for value in named.filter(|(name, _)| *name == UNNAMED).flat_map(|(_, values)| values) {
            command = command.word(value);
        }
        command.line()
    }

    /// Returns the arguments in a manifest.
    ///
    /// # Errors
    /// If they do not parse, for example because another version of drift wrote them.
    pub(super) fn parsed<A: clap::Args>(manifest: &Manifest) -> anyhow::Result<A> {
        Invocation::parse(Invocation::arguments(manifest))
    }

    /// Returns the arguments in a manifest of a verb that requires `--output`, which a shard does not keep.
    ///
    /// # Errors
    /// The errors of [`Invocation::parsed`].
    pub(super) fn parsed_writing<A: clap::Args>(manifest: &Manifest, to: &Path) -> anyhow::Result<A> {
        let mut arguments = Invocation::arguments(manifest);
        // After the verb, and so before the positional arguments.
        arguments.insert(1, format!("--output={}", to.display()));
        Invocation::parse(arguments)
    }

    /// Returns the arguments of a command line.
    ///
    /// # Errors
    /// If they do not parse.
    pub(super) fn parse<A: clap::Args>(arguments: Vec<String>) -> anyhow::Result<A> {
        let command = A::augment_args(Command::new("drift"));
        let matches = command.try_get_matches_from(arguments)?;
        Ok(A::from_arg_matches(&matches)?)
    }

    /// Returns the command line that gives this manifest.
    pub(super) fn arguments(manifest: &Manifest) -> Vec<String> {
        let mut arguments = vec![manifest.verb.clone()];
        for (name, values) in manifest.options.iter().filter(|(name, _)| *name != UNNAMED) {
            match values.as_slice() {
                [] => arguments.push(format!("--{name}")),
                values => arguments.extend(values.iter().map(|value| format!("--{name}={value}"))),
            }
        }
        if let Some(unnamed) = manifest.options.get(UNNAMED) {
            arguments.push("--".to_owned());
            arguments.extend_from_slice(unnamed);
        }
        arguments
    }
}
