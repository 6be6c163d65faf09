//! Decode steps on a device. The host sends new texts to it, and checks every few steps which rows have ended.

use std::collections::BTreeSet;

use super::row::Row;
use super::{Options, Prompt, WorkCounts};
use crate::model::cuda::{
    DecodeStep, DeviceRow, EnteringText, Gpu, RowPrompt, TokenRule, VocabularySampler, WorkDone,
};
use crate::model::{Cache, Decoder, FEW_ROWS, KernelSteps, Room};
use crate::parameter;
use drift_core::constraint::DeviceRule;
use drift_core::constraint::automaton::{DeviceTable, MoleculeAutomaton};
use drift_core::{Error, Result};

/// The longest prompt that a device reads in its own steps, in tokens, separately for each text: about as many as one step has
/// slots for. candle reads longer prompts except for the last token, once for all texts of a molecule.
const MOST_READ: usize = 256;

/// Returns whether a device reads a prompt of this many tokens in its own steps.
pub(super) fn reads_prompt(tokens: usize) -> bool {
    tokens <= MOST_READ
}

/// A device that writes texts, and the settings of its kernels.
#[derive(Clone, Copy)]
pub(super) struct Starter<'g> {
    /// Starts a device for the decoder's shape.
    pub start: &'g (dyn Fn() -> Result<Box<dyn Gpu>> + Sync),
    pub steps: KernelSteps,
}

/// The batch on a device.
pub(super) struct OnDevice<'d> {
    pub(super) step: DecodeStep<'d>,
    /// The table of the automata of all prompts, in order; `None` without an automaton.
    pub(super) table: Option<DeviceTable>,
    /// The rows of the cache whose texts are being written.
    pub(super) running: BTreeSet<usize>,
    /// The counters at the last call of [`OnDevice::counts`], and the sum of the slots until then.
    counted: (WorkDone, u64),
}

/// Returns the end of a prompt that a device reads.
fn unread(tokens: &[u32]) -> &[u32] {
    let read_before = if reads_prompt(tokens.len()) { 0 } else { tokens.len() - 1 };
    &tokens[read_before..]
}

/// The common rule of all prompts, if a device can apply it.
enum Rule<'p> {
    Automaton(Vec<&'p MoleculeAutomaton>),
    Any(&'p [u32]),
}

/// Returns the common rule; `None` if masks come from the host, or prompts differ in kind.
fn rule(prompts: &[Prompt]) -> Option<Rule<'_>> {
    let automata = prompts.iter().map(|prompt| match prompt.constraint.device_rule() {
        DeviceRule::Automaton(molecule_automaton) => Some(molecule_automaton),
        _ => None,
    });
    if let Some(automata) = automata.collect::<Option<Vec<_>>>() {
        return (!automata.is_empty()).then_some(Rule::Automaton(automata));
    }
    let ends = prompts.iter().map(|prompt| match prompt.constraint.device_rule() {
        DeviceRule::Any { ends } => Some(ends),
        _ => None,
    });
    let ends = ends.collect::<Option<Vec<&[u32]>>>()?;
    ends.iter().all(|other| *other == ends[0]).then_some(Rule::Any(ends[0]))
}

/// Returns whether a device can do all steps of a run: no feature needs the whole logits on the host, and the cache stays in place.
fn is_for_a_device(prompts: &[Prompt], options: &Options) -> bool {
    let asks = options.logs() || !options.watched.is_empty();
    !asks && options.room == Room::Static && rule(prompts).is_some()
}

/// The work of a device in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DeviceTask {
    /// All steps, under automata.
    Automaton,
    /// All steps, without a logit processor.
    Any,
    /// Only draws from whole vocabularies.
    Draws,
}

impl DeviceTask {
    /// Returns the work for a device in this run; `None` if candle and the host do everything.
    pub(super) fn new(prompts: &[Prompt], options: &Options) -> Option<Self> {
        match rule(prompts) {
            Some(Rule::Automaton(_)) => is_for_a_device(prompts, options).then_some(DeviceTask::Automaton),
            Some(Rule::Any(_)) if is_for_a_device(prompts, options) => Some(DeviceTask::Any),
            _ => (!options.logs() && !prompts.is_empty()).then_some(DeviceTask::Draws),
        }
    }
}

/// The work of a device in a run, with its state.
pub(super) enum DeviceWork {
    /// Nothing.
    Nothing,
    /// Draws from whole vocabularies, whose logits stay on the device.
    Draws(VocabularySampler<'static>),
    /// All steps.
    Steps(Box<OnDevice<'static>>),
}

impl DeviceWork {
    /// Sets up as much work as the device supports. If the device fails, candle's operations do the work, only slower, and the
    /// decoder notes the reason.
    ///
    /// # Errors
    /// If there is no room for a batch of this size, because candle's operations would need even more; or as for [`given_up`].
    pub(super) fn new(
        starter: Option<Starter<'_>>,
        (decoder, cache): (&Decoder, &Cache),
        (prompts, options): (&[Prompt], &Options),
    ) -> Result<Self> {
        let Some(starter) = starter.filter(|_| cache.rows() > 0) else { return Ok(DeviceWork::Nothing) };
        let made = match DeviceTask::new(prompts, options) {
            None => return Ok(DeviceWork::Nothing),
            Some(DeviceTask::Automaton | DeviceTask::Any) => {
                let made = OnDevice::new(starter, (decoder, cache), (prompts, options));
                made.map(Box::new).map(DeviceWork::Steps)
            }
            Some(DeviceTask::Draws) => {
                let made = (starter.start)();
                let made = made.and_then(|gpu| VocabularySampler::new(gpu, cache.rows(), &options.sampling));
                made.map(DeviceWork::Draws)
            }
        };
        made.or_else(|error| match error {
            // The user chose a batch that does not fit, and candle's operations would need even more room.
            Error::Parameter { .. } => Err(error),
            _ => {
                given_up(decoder, &error, options)?;
                Ok(DeviceWork::Nothing)
            }
        })
    }
}

/// Leaves the work of a failed device to candle's operations, and notes the reason.
///
/// # Errors
/// If the run insists on drift's kernels, or candle cannot use the device any more either.
pub(super) fn given_up(decoder: &Decoder, error: &Error, options: &Options) -> Result<()> {
    if options.self_check.insists {
        let problem = format!("the run insists on drift's kernels: {error}");
        let remedy = format!("leave {} out", parameter::ENGINE);
        return Err(Error::input(decoder.device().name(), problem, remedy));
    }
    if !decoder.device_works() {
        let remedy =
            format!("start the program again without this device, or with {} candle", parameter::ENGINE);
        return Err(Error::device_lost(decoder.device().name(), error, remedy));
    }
    decoder.note_refusal(error);
    Ok(())
}

impl<'d> OnDevice<'d> {
    /// Allocates the memory of a run on the device.
    ///
    /// # Errors
    /// If the device cannot be started, has no room, or does not support this run.
    pub(super) fn new(
        starter: Starter<'_>,
        (decoder, cache): (&Decoder, &Cache),
        (prompts, options): (&[Prompt], &Options),
    ) -> Result<Self> {
        let vocab = decoder.config().vocab_size;
        let table = match rule(prompts) {
            Some(Rule::Automaton(automata)) => {
                let table = DeviceTable::new(&automata, vocab, false)?;
                // If many ids are legal, the table is made for the whole vocabulary, because the whole LM head is one product.
                let are_few = table.known as usize * FEW_ROWS <= vocab;
                Some(if are_few { table } else { DeviceTable::new(&automata, vocab, true)? })
            }
            _ => None,
        };
        let choosing = match (&table, rule(prompts)) {
            (Some(table), _) => TokenRule::Automaton(table),
            (None, Some(Rule::Any(ends))) => TokenRule::Any { ends },
            (None, _) => {
                return Err(Error::input("the logit processor", "asks the host", "leave it to the host"));
            }
        };
        let of_prompt = |prompt: &Prompt| unread(&prompt.tokens).len() + prompt.most_tokens;
        let longest = prompts.iter().map(of_prompt).max().unwrap_or(1);
        let longest = longest.min(decoder.config().max_position_embeddings + 1);
        let gpu = (starter.start)()?;
        let how = (choosing, &options.sampling);
        DecodeStep::check_fits((decoder, cache), longest, how, starter.steps)?;
        let mut step = DecodeStep::new(gpu, (decoder, cache), longest, how, starter.steps)?;
        step.warm_up()?;
        Ok(OnDevice { step, table, running: BTreeSet::new(), counted: Default::default() })
    }

    /// Returns the initial state of a row on the device.
    pub(super) fn entering<'r>(&self, row: &Row<'r>) -> EnteringText<'r> {
        let prompt = row.item.prompt;
        let place = self.table.as_ref().map_or(0, |table| table.start(prompt));
        let tokens: &'r [u32] = &row.prompt.tokens;
        let unread = unread(tokens);
        let read = RowPrompt { read: (tokens.len() - unread.len()) as u32, unread: unread.len() as u32 };
        let state = DeviceRow::new(&row.noise, prompt as u32, place, read, row.most as u32);
        EnteringText { slot: row.slot, row: state, unread }
    }

    /// Returns the work since the last call.
    pub(super) fn counts(&mut self, steps: u64) -> Result<WorkCounts> {
        let ((before, slots_before), now, slots) = (self.counted, self.step.work()?, self.step.slots());
        self.counted = (now, slots);
        let positions = now.positions - before.positions;
        let known = self.step.head_rows() as u64;
        Ok(WorkCounts {
            decode_steps: steps,
            kernel_steps: steps,
            row_passes: now.row_passes - before.row_passes,
            positions,
            wasted_positions: (slots - slots_before).saturating_sub(positions),
            keys_read: now.keys_read - before.keys_read,
            keys_seen: now.keys_seen - before.keys_seen,
            head_rows: (now.choices - before.choices) * known,
            head_weights: steps * known,
            ..WorkCounts::default()
        })
    }
}
