//! Energies of conformers by a program that is there; drift computes none itself.
//!
//! The protocol, which `docs/energy.md` has in full: the program is started by the shell for each batch of conformers. It reads them on its
//! standard input, one XYZ frame after another (the number of atoms, the SMILES whose atoms the lines are, in its order, and a line
//! `element x y z` an atom, in Å), and writes a line a frame to its standard output, in their order: the energy, and behind it, if it likes,
//! that of the conformer once it is relaxed. `nan` says that it knows none.
//!
//! Usage: [`Energies::new`] once, [`Energies::of`] for the frames at hand. A program that dies, or writes something else, is an error of
//! one line. One that says nothing for too long is ended; the frame that it was at has no energy, and it is started again for those
//! behind.

mod cache;
mod frame;
mod process;

use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use self::cache::Cache;
use self::process::{Ended, run};
pub use frame::EnergyFrame;

use crate::parameter;
use drift_core::error::{Error, Result};
use drift_core::job::{Job, Unit};

/// The unit of what a program writes; here energies are in kcal/mol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum EnergyUnit {
    /// Kilocalories per mole.
    #[serde(rename = "kcal/mol")]
    KcalPerMol,
    /// Kilojoules per mole.
    #[serde(rename = "kJ/mol")]
    KjPerMol,
    /// Electron volts.
    #[serde(rename = "eV")]
    ElectronVolt,
    /// Hartrees.
    #[serde(rename = "hartree")]
    Hartree,
}

impl EnergyUnit {
    /// All, with the names that users give them.
    pub const ALL: [(EnergyUnit, &str); 4] = [
        (EnergyUnit::KcalPerMol, "kcal/mol"),
        (EnergyUnit::KjPerMol, "kJ/mol"),
        (EnergyUnit::ElectronVolt, "eV"),
        (EnergyUnit::Hartree, "hartree"),
    ];

    /// One of them in kcal/mol: CODATA 2018, 1 cal = 4.184 J.
    pub fn kcal_per_mol(self) -> f64 {
        match self {
            EnergyUnit::KcalPerMol => 1.0,
            EnergyUnit::KjPerMol => 1.0 / 4.184,
            EnergyUnit::ElectronVolt => 23.060_547_830_619,
            EnergyUnit::Hartree => 627.509_474_063_1,
        }
    }
}

/// Which program, and how it is run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnergyPlan {
    /// What the shell is given.
    pub command: String,
    /// Of the numbers that it writes.
    pub unit: EnergyUnit,
    /// How long it may write no line.
    pub timeout: Duration,
    /// Conformers that it is given at a time.
    pub batch: usize,
    /// Where its answers are kept, and looked up before it is asked; none if nowhere.
    pub cache: Option<PathBuf>,
}

/// What a program says of a conformer, in kcal/mol.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct EnergyAnswer {
    /// Its energy; none where the program knows none.
    pub energy: Option<f64>,
    /// That of the relaxed conformer, where the program says it.
    pub relaxed: Option<f64>,
    /// Whether the program was ended while it was at it.
    pub timed_out: bool,
}

/// A program, and what it has said.
#[derive(Debug)]
pub struct Energies {
    /// How it is run.
    pub plan: EnergyPlan,
    cache: Mutex<Cache>,
}

/// So often in a row a program may be ended before it has written a line.
const PATIENCE: u32 = 3;

impl Energies {
    /// Of a plan; the cache is read.
    ///
    /// # Errors
    /// If the command is empty, a number of the plan is 0, or the cache cannot be read or is another process's.
    pub fn new(plan: EnergyPlan) -> Result<Self> {
        if plan.command.trim().is_empty() {
            return Err(Error::parameter(parameter::ENERGY, "is empty", "give a shell command"));
        }
        if plan.timeout.is_zero() || plan.batch == 0 {
            let parameter = if plan.batch == 0 { parameter::ENERGY_BATCH } else { parameter::ENERGY_TIMEOUT };
            return Err(Error::parameter(parameter, "is 0", "give 1 or more"));
        }
        let cache = Mutex::new(Cache::open(&plan)?);
        Ok(Energies { plan, cache })
    }

    /// The energies of some conformers, in their order.
    ///
    /// # Errors
    /// If the program dies, writes anything but one or two numbers a frame, or is ended for its silence three times before it has written
    /// a line; if the cache cannot be written; or the job was cancelled. What was answered before is in the cache.
    pub fn of(&self, frames: &[EnergyFrame], job: &Job) -> Result<Vec<EnergyAnswer>> {
        // A thread that fails here ends the process, or holds nothing that is half changed.
        let mut cache = self.cache.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let texts: Vec<String> = frames.iter().map(EnergyFrame::text).collect();
        let keys: Vec<String> = texts.iter().map(|text| cache.key(text)).collect();
        let mut answers: Vec<Option<EnergyAnswer>> = keys.iter().map(|key| cache.get(key)).collect();
        let mut missing: Vec<usize> = (0..frames.len()).filter(|at| answers[*at].is_none()).collect();
        // The same frame is asked for once.
        missing.sort_by_key(|at| (&keys[*at], *at));
        missing.dedup_by_key(|at| &keys[*at]);
        missing.sort_unstable();
        job.observer().begin("energies", Some(missing.len() as u64), Unit::Items);
        let outcome = self.ask(&missing, &texts, &keys, &mut cache, job);
        job.observer().end();
        outcome?;
        for (at, answer) in answers.iter_mut().enumerate() {
            *answer = answer.or_else(|| cache.get(&keys[at]));
        }
        cache.forget_timeouts();
        Ok(answers.into_iter().map(Option::unwrap_or_default).collect())
    }

    /// Asks for frames batch by batch; answers are put into the cache.
    fn ask(
        &self,
        missing: &[usize],
        texts: &[String],
        keys: &[String],
        cache: &mut Cache,
        job: &Job,
    ) -> Result<()> {
        let (mut next, mut silent) = (0, 0);
        while next < missing.len() {
            job.check()?;
            let batch = &missing[next..missing.len().min(next + self.plan.batch)];
            let input: String = batch.iter().map(|at| &*texts[*at]).collect();
            let run = run(&self.plan, input.into_bytes(), batch.len(), job);
            let answered = run.answers.len();
            let told: Vec<(&str, EnergyAnswer)> =
                batch.iter().zip(run.answers).map(|(at, answer)| (&*keys[*at], answer)).collect();
            cache.add(&told)?;
            job.observer().advance(answered as u64);
            next += answered;
            match run.ended {
                Ended::Done => silent = 0,
                Ended::Failed(error) => return Err(error),
                Ended::Silent => {
                    silent = if answered > 0 { 1 } else { silent + 1 };
                    if silent >= PATIENCE {
                        return Err(self.hangs());
                    }
                    let timed_out = EnergyAnswer { timed_out: true, ..EnergyAnswer::default() };
                    cache.add_timeout(&keys[batch[answered]], timed_out);
                    job.observer().advance(1);
                    next += 1;
                }
            }
        }
        Ok(())
    }

    fn hangs(&self) -> Error {
        let seconds = self.plan.timeout.as_secs_f64();
        let problem = format!("wrote no line for {seconds} s, {PATIENCE} times in a row, and was stopped");
        let remedy = format!("try it on one frame, or give it more time with {}", parameter::ENERGY_TIMEOUT);
        Error::parameter(parameter::ENERGY, problem, remedy)
    }
}
