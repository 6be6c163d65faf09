//! The one error type of the library: what went wrong, where, and what to do about it.

use std::path::Path;

/// Shorthand for results of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Everything that can go wrong. `Display` is one line: `place: problem; remedy`.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An input (file, record, option value) that cannot be used.
    #[error("{place}: {problem}{}", remedy_suffix(.remedy))]
    Input {
        /// File and position, or the option at fault.
        place: String,
        /// What is wrong.
        problem: String,
        /// What the user can do; may be empty.
        remedy: String,
    },
    /// A value of a plan that cannot be used. Whoever took it from a user knows what it is called there.
    #[error("{parameter}: {problem}{}", remedy_suffix(.remedy))]
    Parameter {
        /// Which.
        parameter: Parameter,
        /// What is wrong.
        problem: String,
        /// What the user can do; may be empty.
        remedy: String,
    },
    /// A fault of drift's own, not of its input.
    #[error("{place}: {problem}")]
    Internal {
        /// What was being made.
        place: String,
        /// What went wrong.
        problem: String,
    },
    /// The operating system refused something.
    #[error("{place}: {source}")]
    Io {
        /// The path at fault.
        place: String,
        /// The system's own words.
        source: std::io::Error,
    },
    /// Ctrl-C; nothing was half-written.
    #[error("interrupted; nothing was written")]
    Interrupted,
    /// Ctrl-C; what was done so far is on disk, whole.
    #[error("interrupted; {kept}")]
    Stopped {
        /// What was kept, and how to go on.
        kept: String,
    },
}

/// Defines [`Parameter`].
macro_rules! parameters {
    ($($(#[$doc:meta])* $parameter:ident = $name:literal,)*) => {
        /// What a user can set, across all plans. In messages it stands in single quotes, ‘tokens per block’.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum Parameter {
            $($(#[$doc])* $parameter,)*
        }

        impl Parameter {
            /// All of them.
            pub const ALL: &[Parameter] = &[$(Parameter::$parameter,)*];

            /// Its name in words.
            pub fn name(self) -> &'static str {
                match self {
                    $(Parameter::$parameter => $name,)*
                }
            }
        }
    };
}

parameters! {
    /// Rows of a batch.
    Batch = "batch",
    /// Tokens of an update.
    BatchTokens = "batch tokens",
    /// New tokens at most.
    Budget = "budget",
    /// A placeholder to judge.
    Candidate = "candidate",
    /// The greatest norm of a gradient.
    Clip = "clip",
    /// Whether other ways are set beside.
    Compare = "compare",
    /// The longest document.
    Context = "context",
    /// The conformers.
    Corpus = "corpus",
    /// Decimals of coordinates.
    Decimals = "decimals",
    /// What computes.
    Device = "device",
    /// How decimals are written.
    Dialect = "dialect",
    /// Whose decoders compute.
    Engine = "engine",
    /// The fewest decimals of a number.
    FewestDecimals = "fewest decimals",
    /// Texts for each molecule.
    Generations = "generations",
    /// Width of an attention head.
    HeadDim = "head dim",
    /// Query heads.
    Heads = "heads",
    /// Width of the residual stream.
    Hidden = "hidden",
    /// Key and value heads.
    KvHeads = "kv heads",
    /// Decoder layers.
    Layers = "layers",
    /// The highest learning rate.
    LearningRate = "learning rate",
    /// Whether reference conformers are scored.
    Likelihood = "likelihood",
    /// The logit processor.
    Lp = "logit processor",
    /// The largest molecule that is compared.
    MaxAtoms = "max atoms",
    /// Merges to learn.
    Merges = "merges",
    /// The model.
    Model = "model",
    /// What templates hold in their blocks.
    Placeholder = "placeholder",
    /// How tokens are drawn.
    Preset = "preset",
    /// Which numbers are meant.
    Range = "range",
    /// Conformers to compare with.
    References = "references",
    /// Whether to go on from a saved state.
    Resume = "resume",
    /// A file of SMILES.
    Smiles = "smiles",
    /// Updates of the weights.
    Steps = "steps",
    /// A shape for random weights.
    Synthetic = "synthetic",
    /// Tokens of every block.
    TokensPerBlock = "tokens per block",
    /// Tokens in all.
    VocabSize = "vocab size",
    /// The decay of matrices.
    WeightDecay = "weight decay",
}

impl std::fmt::Display for Parameter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "‘{}’", self.name())
    }
}

fn remedy_suffix(remedy: &str) -> String {
    if remedy.is_empty() { String::new() } else { format!("; {remedy}") }
}

impl Error {
    /// An unusable input at `place`.
    pub fn input(place: impl ToString, problem: impl ToString, remedy: impl ToString) -> Self {
        Error::Input {
            place: one_line(&place.to_string()),
            problem: one_line(&problem.to_string()),
            remedy: one_line(&remedy.to_string()),
        }
    }

    /// An unusable value of a plan. Where problem and remedy speak of a parameter, they write it as [`Parameter`] does.
    pub fn parameter(parameter: Parameter, problem: impl ToString, remedy: impl ToString) -> Self {
        let (problem, remedy) = (one_line(&problem.to_string()), one_line(&remedy.to_string()));
        Error::Parameter { parameter, problem, remedy }
    }

    /// What should not happen, whatever the input.
    pub fn internal(place: impl ToString, problem: impl ToString) -> Self {
        Error::Internal { place: one_line(&place.to_string()), problem: one_line(&problem.to_string()) }
    }

    /// A system error at `path`.
    pub fn io(path: &Path, source: std::io::Error) -> Self {
        Error::Io { place: path.display().to_string(), source }
    }

    /// The process's exit code: 130 interrupted, 70 a fault of drift's own, else 2 (usage or input).
    pub fn exit_code(&self) -> u8 {
        match self {
            Error::Interrupted | Error::Stopped { .. } => 130,
            Error::Internal { .. } => 70,
            _ => 2,
        }
    }
}

/// Messages are one line: control characters and line breaks in names or quoted input are escaped.
fn one_line(text: &str) -> String {
    text.chars()
        .flat_map(|c| if c.is_control() { c.escape_default().collect::<Vec<_>>() } else { vec![c] })
        .collect()
}

/// A text on one line, to be shown as it would be written in code: line breaks, quotes and what cannot be seen are escaped.
pub fn escaped(text: &str) -> String {
    text.chars().flat_map(char::escape_debug).collect()
}

/// A short, printable excerpt of input, for messages.
pub fn excerpt(bytes: &[u8]) -> String {
    let shown = &bytes[..bytes.len().min(40)];
    let text = one_line(&String::from_utf8_lossy(shown));
    if bytes.len() > shown.len() { format!("`{text}…`") } else { format!("`{text}`") }
}
