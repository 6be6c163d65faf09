//! drift measures and ends *token drift* in language models that write 3D molecules as text: a SMILES with a block of coordinates after
//! each atom.
//!
//! A position template leaves as many tokens to every block as its placeholder takes. A real block takes T tokens, the placeholder
//! takes F, and F - T is the drift. If it is positive, the model fills the block with junk; if it is negative, the block loses digits.
//!
//! # Where to start
//!
//! | task | use |
//! | --- | --- |
//! | read conformers of any format, their statistics, a store | [`corpus`], [`mine()`] |
//! | count the tokens of blocks | [`Tokenizer`], [`tokenizer::Counter`] |
//! | find the placeholder with the least harm, and prove it | [`fit()`] |
//! | extend a tokenizer so that every block takes the same number of tokens | [`design`] |
//! | restrict a model to legal text without drift | [`LogitProcessor`] |
//! | judge generated text | [`audit()`] |
//! | find the molecules and geometries of one corpus in another | [`against::against()`] |
//!
//! The feature `generate` adds generation, training and evaluation on candle; `hdf5` adds drift's store and other HDF5 files; `report`
//! adds tables, plots and pages; `cli` adds the program. All of these are on by default. Everything on this page works without them.
//!
//! Every function that may take long takes a [`Job`]. A job reports progress and can be cancelled, and does nothing else.
//!
//! # Counting blocks
//!
//! ```
//! use drift::Tokenizer;
//!
//! // A model folder, a tokenizer.json, or the name of a built-in tokenizer.
//! let tokenizer = Tokenizer::load("qwen-like".as_ref())?;
//! let text = "[C]<4.0182,1.0374,-0.0007>=[O]<2.0988,-0.4840,-0.6413>";
//! let blocks = tokenizer.free_ends(text)?;
//! let tokens: Vec<usize> = blocks.iter().map(Vec::len).collect();
//! assert_eq!(tokens, [20, 20]);
//! # Ok::<(), drift::Error>(())
//! ```
//!
//! # The placeholder with the least harm
//!
//! ```
//! use drift::corpus::Texts;
//! use drift::{EncodingChoice, FitPlan, Job, Objective, Tokenizer, fit};
//!
//! let plan = FitPlan {
//!     tokenizers: vec![Tokenizer::load("qwen-like".as_ref())?],
//!     encodings: EncodingChoice::Auto,
//!     candidates: vec!["1.23,-4.56,7.89".to_owned()],
//!     objective: Objective::Lexicographic { tolerance_angstrom: 1e-3 },
//!     seed: 0,
//!     classes: false,
//! };
//! // `Files` reads files and folders; `EmbeddedConformers` is the built-in corpus.
//! let corpus = Texts("[C]<0.5170,1.2034,0.0131>[O]<1.2218,0.0415,0.1142>\n[N]<1.0441,0.1274,0.3005>#[C]<0.0127,2.1406,1.7711>");
//! let report = fit(&plan, &corpus, &Job::default())?;
//! let result = &report.results[0];
//! assert_eq!((report.corpus.blocks, &*result.placeholder), (4, "0.0000,0.0000,0.0000"));
//! # Ok::<(), drift::Error>(())
//! ```
//!
//! # A logit processor without drift
//!
//! A logit processor only works with tokens and masks, so it can be used with any engine.
//!
//! ```
//! use drift::text::skeleton;
//! use drift::{Encoding, Legal, LogitProcessor, ProcessorKind, Tokenizer};
//!
//! let tokenizer = Tokenizer::load("qwen-like".as_ref())?;
//! let vocabulary = tokenizer.vocabulary();
//! let end = vocabulary["<|im_end|>"];
//! let processor = LogitProcessor::new(ProcessorKind::Automaton, tokenizer.clone(), Encoding::FIXED, None, end)?;
//! let skeleton = skeleton::from_smiles("C=O").expect("a SMILES");
//! let constraint = processor.constraint(&skeleton)?;
//!
//! let (mut state, mut listed, mut answer) = (constraint.start(), Vec::new(), Vec::new());
//! loop {
//!     // The logits of a model after `answer`; here they are made up.
//!     let mut logits: Vec<f32> = (0..vocabulary.len()).map(|id| ((id * 37) % 101) as f32).collect();
//!     let legal = constraint.mask(&state).apply(&mut logits, &mut listed);
//!     let Legal::Listed(legal) = legal else { unreachable!("the automaton lists what it allows") };
//!     let (token, _) = *legal.iter().max_by(|a, b| a.1.total_cmp(&b.1)).expect("something is allowed");
//!     if constraint.is_over(&state, token) {
//!         break;
//!     }
//!     constraint.advance(&mut state, token);
//!     answer.push(token);
//! }
//! let text = tokenizer.answer_text(&answer)?;
//! let text = text.trim_start_matches("[CONFORMER]").trim_end_matches("[/CONFORMER]");
//! assert_eq!(drift::text::parse(text, Default::default()).expect("legal").skeleton, "[C]<>=[O]<>");
//! # Ok::<(), drift::Error>(())
//! ```
//!
//! # The same number of tokens for every block
//!
//! ```
//! use drift::corpus::Texts;
//! use drift::design::{Aim, ExtensionPlan, Range, SchemeKind, train};
//! use drift::{Encoding, Job, Tokenizer};
//!
//! let (base, json) = Tokenizer::load_with_json("qwen-like".as_ref())?;
//! let base_json = serde_json::from_slice(&json).expect("JSON");
//! let plan = ExtensionPlan {
//!     range: Range::new(1)?, // numbers below 1 Å, so that this example runs fast
//!     contexts: 1,
//!     ..ExtensionPlan::new(base, base_json, SchemeKind::Fused, Encoding::FIXED, Aim::TokensPerBlock(12))
//! };
//! let extended = train(&plan, &Texts("[C]<0.5170,0.2034,0.0131>[O]<0.2218,0.0415,0.1142>"), &Job::default())?;
//! let source = drift::io::hash_bytes("tokenizer.json", &extended.tokenizer_json);
//! let tokenizer = Tokenizer::from_bytes("extended", source, &extended.tokenizer_json)?;
//! let tokens = tokenizer.tokens("<0.1234,-0.5000,0.9999>")?;
//! assert_eq!(tokens.len(), 12);
//! # Ok::<(), drift::Error>(())
//! ```
//!
//! # Crates
//!
//! This crate re-exports four others under one name. Each builds on the ones before it: `drift_core` (encodings, molecules, tokenizers,
//! logit processors, sampling), `drift_data` (corpora and generated texts), `drift_tune` (placeholders, extended tokenizers,
//! comparisons of encodings) and `drift_engine` (models on candle). A program with its own engine only needs `drift-core`.
//! ARCHITECTURE.md has the map.

pub use drift_core::{
    checkpoint, chem, constraint, encoding, error, geometry, io, job, run_files, sampling, skeleton, text,
    tokenizer,
};
pub use drift_data::{
    against, audit, compare, corpus, encode, energy, export, flaws, generation, mine, prompts, shard, stats,
};
#[cfg(feature = "generate")]
pub use drift_engine::{device, eval, generate, model, runs, train};
pub use drift_tune::{design, encodings, parameter, placeholder};

/// The git revision that this crate was built from, or `unknown`; [`job::set_revision`] puts it into the provenance of results.
pub const REVISION: &str = match option_env!("DRIFT_REVISION") {
    Some(revision) => revision,
    None => "unknown",
};

#[cfg(feature = "report")]
pub mod report;

#[cfg(feature = "cli")]
#[allow(clippy::disallowed_methods, reason = "the only place that prints")]
pub mod cli;

pub use drift_core::constraint::{Constraint, Legal, LogitProcessor, Mask, ProcessorKind};
pub use drift_core::{Encoding, Error, Job, Result, Tokenizer};
pub use drift_data::audit::{AuditPlan, AuditReport, Judge, audit};
pub use drift_data::corpus::{Conformer, Conformers, EmbeddedConformers, Files};
pub use drift_data::mine::{MinePlan, MineReport, mine};
pub use drift_tune::placeholder::{EncodingChoice, FitPlan, FitReport, Objective, fit};
