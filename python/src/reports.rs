//! The functions of drift that return reports, for Python: options in, the JSON of the report out. `moldrift/reports.py` documents
//! the options.

use std::path::PathBuf;

use drift::audit::ensemble::EnsembleMeasures;
use drift::audit::{AuditRequest, MatrixFormat, RowField, VerdictLine};
use drift::checkpoint::{RequiredFiles, locate};
use drift::chem::{AtomLimit, MAX_HEAVY_ATOMS};
use drift::corpus::{ReadOptions, files_or_embedded};
use drift::design::{Aim, Goal, Range, Reuse, SchemeKind, TokenizerRequest};
use drift::encode::EncodePlan;
use drift::encoding::{Encoding, EncodingRequest, OutOfRange, Reading};
use drift::error::{Error, Result};
use drift::flaws::{FlawKind, needing_columns};
use drift::io::{AtomicFile, OutputSet};
use drift::mine::mine_of;
use drift::parameter;
use drift::report::folders::{fit_files, refuse_over, tokenizer_files, write_fit, write_tokenizer};
use drift::run_files::RunFiles;
use drift::tokenizer::Inspector;
use drift::{EncodingChoice, Files, FitPlan, Job, MinePlan, Objective, Tokenizer};
use pyo3::prelude::*;
use serde::Serialize;

use crate::options::{
    BlockOptions, ReadingOptions, TokenizerOption, all_conformers, choice, encoding_named, isotopes, missing,
    picked, thresholds, zeros, zeros_or_auto,
};
use crate::work;

/// The name in messages of the option for the output.
const OUTPUT: &str = "output";

/// Returns the JSON of a report.
fn json(report: &impl Serialize) -> Result<String> {
    serde_json::to_string(report).map_err(|e| Error::internal("the report", e))
}

#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct FitOptions {
    corpus: Vec<PathBuf>,
    reading: ReadingOptions,
    tokenizers: Vec<TokenizerOption>,
    dialect: String,
    candidates: Vec<String>,
    tolerance: f64,
    weights: Option<[f64; 3]>,
    seed: u64,
    classes: bool,
    output: Option<PathBuf>,
}

/// Returns the encodings to fit for: the requested one, or those of decimals that agree with the corpus.
fn encodings(options: &FitOptions) -> Result<EncodingChoice> {
    let asked = EncodingRequest { zeros: zeros_or_auto(&options.dialect)?, ..options.reading.asked()? };
    Ok(if asked.says_how() {
        EncodingChoice::Only(asked.over(Encoding::FIXED))
    } else {
        EncodingChoice::Auto
    })
}

/// Fits the placeholder of least harm for each tokenizer.
#[pyfunction]
pub(crate) fn fit(py: Python<'_>, mut options: FitOptions, progress: Option<Py<PyAny>>) -> PyResult<String> {
    work::run(py, progress, |job| {
        options.tokenizers.iter_mut().try_for_each(TokenizerOption::find)?;
        let tokenizers = match options.tokenizers.as_slice() {
            [] => Tokenizer::embedded()?,
            given => given.iter().map(|one| one.load(job)).collect::<Result<_>>()?,
        };
        let plan = FitPlan {
            tokenizers,
            encodings: encodings(&options)?,
            candidates: options.candidates,
            objective: Objective::new(options.tolerance, options.weights),
            seed: options.seed,
            classes: options.classes,
        };
        let names = fit_files(plan.tokenizers.iter().map(|tokenizer| &*tokenizer.name));
        let files = options.reading.files().reads_all(&options.corpus);
        let files = files.reads_models(options.tokenizers.iter().filter_map(TokenizerOption::path));
        files.writes_in(OUTPUT, options.output.as_deref(), &names)?.check()?;
        let corpus = files_or_embedded(&options.corpus, options.reading.options(job)?);
        let mut report = drift::fit(&plan, &*corpus, job)?;
        drift::design::advice::complete(&mut report, &plan.tokenizers);
        report.refuse_if_empty()?;
        if let Some(folder) = &options.output {
            write_fit(folder, &report)?;
        }
        json(&report)
    })
}

/// Replaces the name of a repository by its path in the cache of Hugging Face.
fn find(model: &mut Option<PathBuf>, wanted: RequiredFiles) -> Result<()> {
    if let Some(model) = model {
        *model = locate(model, wanted)?;
    }
    Ok(())
}

#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct MineOptions {
    inputs: Vec<PathBuf>,
    reading: ReadingOptions,
    output: Option<PathBuf>,
    check: bool,
    list: Option<PathBuf>,
}

/// Computes statistics of conformers, and writes a store.
#[pyfunction]
pub(crate) fn mine(py: Python<'_>, options: MineOptions, progress: Option<Py<PyAny>>) -> PyResult<String> {
    work::run(py, progress, |job| {
        let MineOptions { inputs, reading, output, check, list } = options;
        let (store, list) = (output.as_deref(), list.as_deref());
        if list.is_some() && !check {
            return Err(Error::input("list", "nothing is checked", "give check=True"));
        }
        let files = reading.files().reads_all(&inputs);
        files.writes(OUTPUT, store)?.writes("list", list)?.check()?;
        let mut options = reading.options(job)?;
        options.reading = options.reading.of_texts();
        if !check {
            return json(&drift::mine(&MinePlan { inputs, options, store: output }, job)?);
        }
        let source = Files { inputs, options: needing_columns(&options) };
        let mut list = list.map(AtomicFile::create).transpose()?;
        let mut put = |lines: &[u8]| list.as_mut().map_or(Ok(()), |list| list.put(lines));
        let (report, store) = mine_of(&source, store, Some(&mut put), job)?;
        let mut written = OutputSet::new();
        [list, store].into_iter().flatten().for_each(|file| written.add(file));
        written.commit()?;
        json(&report)
    })
}

#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct EncodeOptions {
    inputs: Vec<PathBuf>,
    reading: ReadingOptions,
    output: Option<PathBuf>,
    input_encoding: Option<String>,
    out_of_range: String,
    drop: Vec<String>,
}

/// Writes the training text of conformers. Returns the report, and the lines if no file was given.
#[pyfunction]
pub(crate) fn encode(
    py: Python<'_>,
    options: EncodeOptions,
    progress: Option<Py<PyAny>>,
) -> PyResult<(String, Option<Vec<u8>>)> {
    work::run(py, progress, |job| {
        let EncodeOptions { inputs, reading, output, input_encoding, out_of_range, drop } = options;
        let files = reading.files().reads_all(&inputs).reads_all(&input_encoding);
        files.writes(OUTPUT, output.as_deref())?.check()?;
        let mut read = reading.options(job)?;
        let words = [("clip", OutOfRange::Clip), ("skip", OutOfRange::Skip)];
        let texts = input_encoding.as_deref().map(encoding_named).transpose()?;
        let out_of_range = choice("out_of_range", &out_of_range, &words)?;
        read.reading = Reading { texts, rewrites: true, out_of_range, ..read.reading };
        let kinds = FlawKind::ALL.map(|kind| (kind.name(), kind));
        let drop = drop.iter().map(|name| choice("drop", name, &kinds)).collect::<Result<_>>()?;
        let plan = EncodePlan { inputs, options: read, drop };
        let Some(path) = output else {
            let mut lines = Vec::new();
            let report = drift::encode::encode(&plan, job, &mut |bytes| {
                lines.extend_from_slice(bytes);
                Ok(())
            })?;
            return Ok((json(&report)?, Some(lines)));
        };
        let mut file = AtomicFile::create(&path)?;
        let report = drift::encode::encode(&plan, job, &mut |bytes| file.put(bytes))?;
        file.commit()?;
        Ok((json(&report)?, None))
    })
}

#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct AuditOptions {
    files: Vec<PathBuf>,
    rows: Vec<String>,
    dialect: String,
    blocks: BlockOptions,
    model: Option<PathBuf>,
    tokenizer: Option<TokenizerOption>,
    placeholder: String,
    references: Vec<PathBuf>,
    thresholds: Vec<f64>,
    hits: Vec<f64>,
    at: Vec<u64>,
    clusters: Vec<f64>,
    passing: String,
    missing: String,
    pool: bool,
    conformers: String,
    verdicts: Option<PathBuf>,
    matrix: Option<PathBuf>,
    max_atoms: Option<usize>,
    isotopes: String,
    row_field: String,
    against_row: Option<String>,
}

/// Judges generated text.
#[pyfunction]
pub(crate) fn audit(
    py: Python<'_>,
    mut options: AuditOptions,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    work::run(py, progress, |job| {
        options.tokenizer.iter_mut().try_for_each(TokenizerOption::find)?;
        find(&mut options.model, RequiredFiles::Folder)?;
        let (verdicts, matrix) = (options.verdicts, options.matrix);
        let files = RunFiles::new().reads_all(&options.files).reads_all(&options.references);
        let files = files.reads_all(options.blocks.file()).reads_models(&options.model);
        let files = files.reads_models(options.tokenizer.as_ref().and_then(TokenizerOption::path));
        let files = files.writes("verdicts", verdicts.as_deref())?.writes("matrix", matrix.as_deref())?;
        files.check()?;
        matrix.as_deref().map(MatrixFormat::from_path).transpose()?;
        let request = AuditRequest {
            files: options.files,
            rows: picked(&options.rows)?,
            zeros: zeros_or_auto(&options.dialect)?,
            blocks: options.blocks.asked()?,
            model: options.model,
            tokenizer: options.tokenizer.as_ref().map(|tokenizer| tokenizer.load(job)).transpose()?,
            tokenizer_path: options.tokenizer.as_ref().and_then(TokenizerOption::path).cloned(),
            placeholder: Some(options.placeholder),
            references: options.references,
            thresholds: thresholds(options.thresholds)?,
            ensembles: EnsembleMeasures { hits: options.hits, draws: options.at, clusters: options.clusters },
            as_3dmolgen: choice("passing", &options.passing, &[("drift", false), ("3dmolgen", true)])?,
            missing: missing(&options.missing)?,
            pool: options.pool,
            all_conformers: all_conformers(&options.conformers)?,
            by_text: verdicts.is_some() || matrix.is_some(),
            max_atoms: AtomLimit(options.max_atoms.unwrap_or(MAX_HEAVY_ATOMS)),
            isotopes: isotopes(&options.isotopes)?,
            row_field: RowField::named(options.row_field),
            against_row: options.against_row,
        };
        let audited = drift::audit::audit_texts(&request.plan()?, job)?;
        let mut files = OutputSet::new();
        if let Some(path) = &verdicts {
            files.add(VerdictLine::file(path, &audited.texts.lines())?);
        }
        if let Some(path) = &matrix {
            files.add(audited.texts.matrix().file(path)?);
        }
        files.commit()?;
        json(&audited.report)
    })
}

/// Existing tokens whose ids new tokens take over.
#[derive(FromPyObject)]
enum ReuseOption {
    /// `"unused"`.
    Unused(String),
    /// The texts and ids of the tokens.
    Named(Vec<String>),
}

impl ReuseOption {
    fn reuse(&self) -> Result<Reuse> {
        match self {
            ReuseOption::Unused(word) => choice("reuse", word, &[("unused", ())]).map(|()| Reuse::Unused),
            ReuseOption::Named(names) => Ok(Reuse::Named(names.clone())),
        }
    }
}

#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct TokenizerOptions {
    base: Option<TokenizerOption>,
    tokens_per_block: Option<usize>,
    budget: Option<u64>,
    merges: Option<u64>,
    vocab_size: Option<usize>,
    compare: bool,
    reuse: Option<ReuseOption>,
    kind: String,
    range: u32,
    dialect: String,
    fewest_decimals: Option<usize>,
    corpus: Vec<PathBuf>,
    reading: ReadingOptions,
    model: Option<PathBuf>,
    seed: u64,
    output: PathBuf,
}

impl TokenizerOptions {
    /// Returns the only goal that was given.
    fn goal(&self) -> Result<Goal> {
        let goals = [
            self.tokens_per_block.map(|tokens| Goal::Aim(Aim::TokensPerBlock(tokens))),
            self.budget.map(|tokens| Goal::Aim(Aim::Budget(tokens))),
            self.merges.map(Goal::Merges),
            self.vocab_size.map(Goal::VocabSize),
        ];
        let given: Vec<Goal> = goals.into_iter().flatten().collect();
        match given.as_slice() {
            [Goal::VocabSize(_)] if self.base.is_some() => {
                let problem = "learns from nothing, and cannot be used with a base";
                Err(Error::parameter(parameter::VOCAB_SIZE, problem, "leave one of them out"))
            }
            [goal] => Ok(*goal),
            _ => {
                let problem = format!("{} goals are given, not one", given.len());
                let names = "give one of tokens_per_block, budget, merges and vocab_size";
                Err(Error::input("train_tokenizer", problem, names))
            }
        }
    }

    fn request(&self) -> Result<TokenizerRequest> {
        let kinds = [("fused", SchemeKind::Fused), ("separate", SchemeKind::Separate)];
        let asked = EncodingRequest { zeros: Some(zeros(&self.dialect)?), ..self.reading.asked()? };
        let encoding = asked.over(Encoding::FIXED);
        let request = TokenizerRequest {
            goal: self.goal()?,
            kind: choice("kind", &self.kind, &kinds)?,
            range: Range::new(self.range)?,
            reading: Reading { encoding, rewrites: !encoding.is_decimal(), ..self.reading.reading()? },
            fewest_decimals: self.fewest_decimals,
            reuse: self.reuse.as_ref().map(ReuseOption::reuse).transpose()?,
            compare: self.compare,
            seed: self.seed,
        };
        request.check()?;
        Ok(request)
    }

    fn make(mut self, job: &Job) -> Result<String> {
        self.base.iter_mut().try_for_each(TokenizerOption::find)?;
        find(&mut self.model, RequiredFiles::Weights)?;
        let request = self.request()?;
        let beside =
            [("base", self.base.as_ref().and_then(TokenizerOption::path)), ("model", self.model.as_ref())];
        refuse_over(&self.output, &beside.map(|(what, path)| (what, path.map(PathBuf::as_path))))?;
        let files = self.reading.files().reads_all(&self.corpus).reads_models(&self.model);
        let files = files.reads_models(self.base.as_ref().and_then(TokenizerOption::path));
        files.writes_in(OUTPUT, Some(&self.output), &tokenizer_files())?.check()?;
        let mut base = self.base.map(|base| base.base(job)).transpose()?;
        if let (Some(base), Some(model)) = (&mut base, &self.model) {
            base.beside = std::mem::take(&mut base.beside).with_model(model, &base.tokenizer, job)?;
        }
        let read = ReadOptions { reading: request.reading, ..self.reading.options(job)? };
        let corpus = files_or_embedded(&self.corpus, read);
        let made = request.make(base, &*corpus, job)?;
        job.check()?;
        write_tokenizer(&self.output, &made)?;
        json(&made.trained.report)
    }
}

/// Designs a tokenizer that needs few tokens for a block, and writes it into a folder.
#[pyfunction]
pub(crate) fn train_tokenizer(
    py: Python<'_>,
    options: TokenizerOptions,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    work::run(py, progress, |job| options.make(job))
}

/// Counts the tokens of texts, and the drift of their blocks.
#[pyfunction]
pub(crate) fn inspect(
    py: Python<'_>,
    texts: Vec<String>,
    mut tokenizer: TokenizerOption,
    placeholder: &str,
) -> PyResult<String> {
    work::run(py, None, |job| {
        tokenizer.find()?;
        Inspector::check(placeholder, Encoding::FIXED)?;
        let inspector = Inspector::new(tokenizer.load(job)?, placeholder, Encoding::FIXED)?;
        let mut reports = Vec::with_capacity(texts.len());
        for text in texts {
            job.check()?;
            reports.push(inspector.inspect(text)?);
        }
        json(&reports)
    })
}
