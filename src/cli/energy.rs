//! `--energy`: energies by a program that is there.

use std::path::PathBuf;
use std::time::Duration;

use super::values::one_of;
use drift_core::error::{Error, Parameter};
use drift_data::energy::{Energies, EnergyPlan, EnergyUnit};

/// Which program computes energies, and how it is run.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct EnergyArgs {
    /// Strain too, by a program that computes energies: a command for the shell that reads XYZ frames, their SMILES as comments, and
    /// writes a line a frame, the energy and, if it likes, that of the relaxed conformer; `nan` where there is none. docs/energy.md has
    /// the protocol, and a program for xtb
    #[arg(long, value_name = "CMD", allow_hyphen_values = true)]
    energy: Option<String>,
    /// The unit of its numbers
    #[arg(long, value_name = "UNIT", value_parser = one_of(&UNITS, name), default_value = "kcal/mol", requires = "energy")]
    energy_unit: EnergyUnit,
    /// How many seconds it may write no line; then it is ended, the frame it was at has no energy, and it goes on with the next
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 600.0,
        requires = "energy",
        allow_hyphen_values = true
    )]
    energy_timeout: f64,
    /// How many conformers it is given at a time
    #[arg(long, value_name = "N", default_value_t = 64, requires = "energy")]
    energy_batch: usize,
    /// Where its answers are kept, so that nothing is computed twice and a run that was stopped goes on; one file for each process
    #[arg(long, value_name = "FILE", requires = "energy")]
    energy_cache: Option<PathBuf>,
    /// A line of JSON for each text: its energy, that of the relaxed conformer and of the best reference, its strain
    #[arg(long, value_name = "FILE.jsonl", requires = "energy", conflicts_with = "shard")]
    pub energy_list: Option<PathBuf>,
}

const UNITS: [EnergyUnit; 4] =
    [EnergyUnit::KcalPerMol, EnergyUnit::KjPerMol, EnergyUnit::ElectronVolt, EnergyUnit::Hartree];

fn name(unit: EnergyUnit) -> &'static str {
    EnergyUnit::ALL.iter().find(|(one, _)| *one == unit).map_or("", |(_, name)| name)
}

impl EnergyArgs {
    /// The program, where one was asked for.
    pub(super) fn energies(&self) -> Result<Option<Energies>, Error> {
        let Some(command) = self.energy.clone() else { return Ok(None) };
        let timeout = Duration::try_from_secs_f64(self.energy_timeout).map_err(|_| {
            let problem = format!("is {}, and no number of seconds", self.energy_timeout);
            Error::parameter(Parameter::EnergyTimeout, problem, "give for example 600")
        })?;
        let plan = EnergyPlan {
            command,
            unit: self.energy_unit,
            timeout,
            batch: self.energy_batch,
            cache: self.energy_cache.clone(),
        };
        Energies::new(plan).map(Some)
    }
}
