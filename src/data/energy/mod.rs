//! Energies of conformers, computed by an external program; drift computes none itself.
//!
//! `docs/energy.md` describes the protocol in full. The shell starts the program for each batch of conformers. The program reads
//! the batch on its standard input as consecutive XYZ frames: the number of atoms, the SMILES whose atoms follow in its order, and
//! a line `element x y z` per atom, in Å. It writes one line per frame to its standard output, in the same order: the energy and,
//! optionally, the energy of the relaxed conformer. `nan` means that the energy is unknown.
//!
//! Usage: [`Energies::new`] once, then [`Energies::of`] for each set of frames. If a program dies or writes anything else, the
//! error is one line. If a program writes nothing for too long, it is killed, the frame that it was working on gets no energy, and
//! the program is started again for the remaining frames.

mod cache;
mod frame;
mod process;

use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use self::cache::Cache;
use self::process::{RunEnd, run};
pub use frame::EnergyFrame;

use crate::parameter;
use drift_core::job::Unit;
use drift_core::{Error, Job, Result};

/// The unit of the program's output. drift converts all energies to kcal/mol.
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

drift_core::named!(EnergyUnit {
    KcalPerMol: "kcal/mol",
    KjPerMol: "kJ/mol",
    ElectronVolt: "eV",
    Hartree: "hartree"
});

impl EnergyUnit {
    /// Returns one of this unit in kcal/mol, by CODATA 2018 and 1 cal = 4.184 J.
    pub(crate) fn kcal_per_mol(self) -> f64 {
        match self {
            EnergyUnit::KcalPerMol => 1.0,
            EnergyUnit::KjPerMol => 1.0 / 4.184,
            EnergyUnit::ElectronVolt => 23.060_547_830_619,
            EnergyUnit::Hartree => 627.509_474_063_1,
        }
    }
}

/// Which program computes the energies, and how it is run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnergyPlan {
    /// The shell command.
    pub command: String,
    /// The unit of the numbers that the program writes.
    pub unit: EnergyUnit,
    /// The longest time without an output line before the program is killed.
    pub timeout: Duration,
    /// The largest number of conformers per run of the program.
    pub batch: usize,
    /// The file in which answers are cached and looked up first; `None` to cache nothing.
    pub cache: Option<PathBuf>,
}

/// The program's answer for a conformer, in kcal/mol.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct EnergyAnswer {
    /// The energy; `None` if the program does not know it.
    pub energy: Option<f64>,
    /// The energy of the relaxed conformer, if the program writes it.
    pub relaxed: Option<f64>,
    /// Whether the program was killed while working on this conformer.
    pub timed_out: bool,
}

/// A program, and the answers that it has given.
#[derive(Debug)]
pub struct Energies {
    /// Which program, and how it is run.
    pub plan: EnergyPlan,
    cache: Mutex<Cache>,
}

/// The number of times in a row that the program may be killed with no answer in between.
const PATIENCE: u32 = 3;

impl Energies {
    /// Prepares to run the program of a plan; reads the cache.
    ///
    /// # Errors
    /// If the command is empty, a number of the plan is 0, or the cache cannot be read or is in use by another process.
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

    /// Returns the energies of some conformers, in their order.
    ///
    /// # Errors
    /// If the program dies, writes anything but one or two numbers per frame, or is killed three times in a row with no answer
    /// written in between; if the cache cannot be written; or the job was cancelled. Answers from before the error are in the
    /// cache, unless the program wrote more or fewer lines than frames: then none of this batch is.
    pub fn of(&self, frames: &[EnergyFrame], job: &Job) -> Result<Vec<EnergyAnswer>> {
        // If a thread panics here, either the process ends or the cache is left in a consistent state.
        let mut cache = self.cache.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let texts: Vec<String> = frames.iter().map(EnergyFrame::text).collect();
        let keys: Vec<String> = texts.iter().map(|text| cache.key(text)).collect();
        let mut answers: Vec<Option<EnergyAnswer>> = keys.iter().map(|key| cache.get(key)).collect();
        let mut missing: Vec<usize> = (0..frames.len()).filter(|at| answers[*at].is_none()).collect();
        // Each distinct frame is requested only once.
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

    /// Requests frames batch by batch, and puts the answers into the cache.
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
            let (answers, ended) = run(&self.plan, input.into_bytes(), batch.len(), job);
            let answered = answers.len();
            let told: Vec<(&str, EnergyAnswer)> =
                batch.iter().zip(answers).map(|(at, answer)| (&*keys[*at], answer)).collect();
            cache.add(&told)?;
            job.observer().advance(answered as u64);
            next += answered;
            match ended {
                RunEnd::Done => silent = 0,
                RunEnd::Failed(error) => return Err(error),
                RunEnd::Silent => {
                    silent = if answered > 0 { 1 } else { silent + 1 };
                    if silent >= PATIENCE {
                        return Err(self.hangs());
                    }
                    cache.add_timeout(&keys[batch[answered]]);
                    job.observer().advance(1);
                    next += 1;
                }
            }
        }
        Ok(())
    }

    fn hangs(&self) -> Error {
        let seconds = self.plan.timeout.as_secs_f64();
        let problem =
            format!("answered no frame for {seconds} s, {PATIENCE} times in a row, and was stopped");
        let remedy = format!("try it on one frame, or give it more time with {}", parameter::ENERGY_TIMEOUT);
        Error::parameter(parameter::ENERGY, problem, remedy)
    }
}
