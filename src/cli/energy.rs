//! `--energy`: energies that an external program computes.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::values::{is_stdout, one_of};
use drift_core::Error;
use drift_data::audit::EnergyReport;
use drift_data::energy::{Energies, EnergyPlan, EnergyUnit};
use drift_data::parameter;

/// The options of the program that computes energies.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Energy")]
pub(super) struct EnergyArgs {
    /// A shell command that computes energies (docs/energy.md)
    #[arg(long, value_name = "CMD", allow_hyphen_values = true)]
    energy: Option<String>,
    /// Its unit: kcal/mol, kJ/mol, eV or hartree
    #[arg(long, hide_possible_values = true, value_name = "UNIT", value_parser = one_of(&EnergyUnit::ALL, EnergyUnit::name), default_value = "kcal/mol", requires = "energy")]
    energy_unit: EnergyUnit,
    /// The longest time without an answer
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 600.0,
        requires = "energy",
        allow_hyphen_values = true
    )]
    energy_timeout: f64,
    /// Conformers for each start of the command
    #[arg(long, value_name = "N", default_value_t = 64, requires = "energy")]
    energy_batch: usize,
    /// Keep answers in this file, so that nothing is computed twice
    #[arg(long, value_name = "FILE", requires = "energy")]
    energy_cache: Option<PathBuf>,
    /// Write the energies and strain of each text as JSON Lines
    #[arg(long, value_name = "FILE.jsonl", requires = "energy", conflicts_with = "shard")]
    energy_list: Option<PathBuf>,
}

impl EnergyArgs {
    /// The names of the options.
    pub(super) const OPTIONS: [&str; 6] =
        ["energy", "energy-unit", "energy-timeout", "energy-batch", "energy-cache", "energy-list"];

    /// Returns whether `--energy` was given.
    pub(super) fn is_asked(&self) -> bool {
        self.energy.is_some()
    }

    /// Returns the file in which answers are kept.
    pub(super) fn cache(&self) -> Option<&Path> {
        self.energy_cache.as_deref()
    }

    /// Returns the file for the energies of texts.
    ///
    /// # Errors
    /// If it is stdout.
    pub(super) fn list(&self) -> Result<Option<PathBuf>, Error> {
        if self.energy_list.as_deref().is_some_and(is_stdout) {
            let problem = "stdout takes either the tables or the record";
            return Err(Error::input("--energy-list -", problem, "write the list to a file"));
        }
        Ok(self.energy_list.clone())
    }

    /// Returns the program that computes energies, if `--energy` was given.
    pub(super) fn energies(&self) -> Result<Option<Energies>, Error> {
        let Some(command) = self.energy.clone() else { return Ok(None) };
        let timeout = Duration::try_from_secs_f64(self.energy_timeout).map_err(|_| {
            let problem = format!("is {}, which is not a number of seconds", self.energy_timeout);
            Error::parameter(parameter::ENERGY_TIMEOUT, problem, "give for example 600")
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

/// Returns the energies of texts, as JSON Lines.
pub(super) fn energy_lines(report: &EnergyReport) -> serde_json::Result<String> {
    report.texts.iter().map(|text| Ok(serde_json::to_string(text)? + "\n")).collect()
}
