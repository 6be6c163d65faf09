//! The decode step on a device: its memory, and the order of its launches.

use std::cell::Cell;
use std::collections::HashMap;

use super::abi::{argument, words};
use super::counting::{CountingDevice, check_steps_fit};
use super::gpu::{Gpu, Product};
use super::layers::Layers;
use super::width::{StepWidth, Widths};
use super::{BatchArguments, DeviceRow, DrawArguments, RowEnd, TableArguments, WorkDone};
use crate::model::failed;
use crate::model::{Cache, Decoder, KernelSteps};
use crate::parameter;
use drift_core::constraint::automaton::DeviceTable;
use drift_core::sampling::Sampling;
use drift_core::{Error, Result};

/// The largest number of rows, because `pack` is one block of threads.
pub(crate) const MOST_ROWS: usize = 1024;

/// Up to this number of rows of the LM head, a kernel of drift computes the logits; for more, a library does.
const MOST_BY_KERNEL: usize = 64;

/// The number of threads of a block for rows with few candidates, with many, and with the whole vocabulary.
const FEW_THREADS: u32 = 64;
const MANY_THREADS: u32 = 256;
const WHOLE_THREADS: u32 = 512;

/// The rule by which tokens are chosen.
#[derive(Debug, Clone, Copy)]
pub(crate) enum TokenRule<'t> {
    /// Among the tokens that the automata of these tables allow.
    Automaton(&'t DeviceTable),
    /// Among all tokens; one of `ends` ends a text.
    Any { ends: &'t [u32] },
}

impl TokenRule<'_> {
    /// Returns the number of slots of a step per row. A row needs one for its last token; under an automaton it gets another one for
    /// forced runs, which is enough on average.
    fn slots_of_row(self) -> usize {
        match self {
            TokenRule::Automaton(_) => 2,
            TokenRule::Any { .. } => 1,
        }
    }
}

/// A text that enters a row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EnteringText<'p> {
    /// The index of the row.
    pub slot: usize,
    pub row: DeviceRow,
    /// The end of the prompt, which the model has not read yet. The row's text begins with it.
    pub unread: &'p [u32],
}

/// The text that a row wrote, without the end token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WrittenText {
    pub tokens: Vec<u32>,
    pub forced: Vec<bool>,
}

/// The state of the recording of steps of one width.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Recording {
    /// Steps are never recorded; each kernel is launched by itself.
    Never,
    /// The next step is launched kernel by kernel, so that libraries prepare what they need.
    Launched,
    /// The next step is recorded.
    RequiredFiles,
    /// Steps replay the recording with this number.
    Is(usize),
}

/// The tables that `choose` follows, or the address of the list of end tokens for `choose_any`.
enum Rules {
    Automaton(Box<TableArguments>),
    Any { ends: u64, count: u32 },
}

/// The rows of the LM head that a step reads.
struct Head {
    /// `[known, hidden]`
    weight: u64,
    /// The number of these rows.
    known: usize,
}

/// A batch on a device.
pub(crate) struct DecodeStep<'d> {
    pub(super) gpu: Box<dyn Gpu + 'd>,
    layers: Layers,
    pub(super) batch: BatchArguments,
    draw: DrawArguments,
    rules: Rules,
    head: Head,
    /// `[rows]`
    entered: u64,
    /// `[rows, known]`, f32
    pub(super) logits: u64,
    widths: Widths,
    /// The state of the recording for each width.
    recordings: HashMap<StepWidth, Recording>,
    records: bool,
    /// A lower bound of the number of prompt tokens that no step has read yet.
    unread: usize,
    /// The sum of the slots of all steps so far.
    slots: u64,
}

impl<'d> DecodeStep<'d> {
    /// Allocates memory for a batch with as many rows as `cache`. The texts have at most `longest` tokens, including the unread
    /// tokens of their prompts.
    ///
    /// # Errors
    /// If the device has no room, or does not support a batch of this size.
    pub(crate) fn new(
        mut gpu: Box<dyn Gpu + 'd>,
        (decoder, cache): (&Decoder, &Cache),
        longest: usize,
        (choosing, sampling): (TokenRule<'_>, &Sampling),
        steps: KernelSteps,
    ) -> Result<Self> {
        let rows = cache.rows();
        if rows > MOST_ROWS {
            let remedy = format!("give {} at most {MOST_ROWS}", parameter::BATCH);
            return Err(Error::input("the batch", format!("kernels do not take {rows} rows"), remedy));
        }
        let widths = Widths::new(rows, choosing.slots_of_row());
        let layers = Layers::new(&mut *gpu, (decoder, cache), (widths, steps))?;
        let stride = longest;
        // A row takes no part in steps until a text enters it.
        let ends = gpu.allocate(4 * rows)?;
        gpu.write(ends, &words(&vec![RowEnd::Eos as u32 + 1; rows]))?;
        let batch = BatchArguments {
            rows: gpu.allocate(size_of::<DeviceRow>() * rows)?,
            texts: gpu.allocate(4 * rows * stride)?,
            ends,
            ended: gpu.allocate(4)?,
            work: gpu.allocate(8 * WorkDone::NUMBERS)?,
            count: rows as u32,
            stride: stride as u32,
        };
        let (rules, head) = rules_and_head(&mut *gpu, decoder, choosing)?;
        let (entered, logits) = (gpu.allocate(4 * rows)?, gpu.allocate(4 * rows * head.known)?);
        let draw = DrawArguments::from(sampling);
        let (recordings, unread, slots) = Default::default();
        Ok(DecodeStep {
            gpu,
            layers,
            batch,
            draw,
            rules,
            head,
            entered,
            logits,
            widths,
            recordings,
            records: steps.recorded,
            unread,
            slots,
        })
    }

    /// Refuses a batch whose steps do not fit into the free memory of the decoder's device. The arguments are those of
    /// [`DecodeStep::new`].
    ///
    /// # Errors
    /// If the steps do not fit; the error names the batch that would. Or if there are no steps of this size.
    pub(crate) fn check_fits(
        (decoder, cache): (&Decoder, &Cache),
        longest: usize,
        how: (TokenRule<'_>, &Sampling),
        steps: KernelSteps,
    ) -> Result<()> {
        let wanted = Cell::new(0);
        DecodeStep::new(Box::new(CountingDevice(&wanted)), (decoder, cache), longest, how, steps)?;
        let sides = cache.tensors().map(|side| (side.elem_count() * side.dtype().size_in_bytes()) as u64);
        match decoder.device().free_bytes() {
            Some(free) => check_steps_fit(cache.rows(), sides.sum(), wanted.get(), free),
            None => Ok(()),
        }
    }

    /// Runs steps of a full batch without any running row, so that libraries load what they need and graphs are recorded before the
    /// first text.
    ///
    /// # Errors
    /// If a launch is refused, or the device fails.
    pub(crate) fn warm_up(&mut self) -> Result<()> {
        let rows = self.batch.count as usize;
        for width in [self.widths.of(rows, self.widths.most()), self.widths.of(rows, 0)] {
            for _ in 0..2 {
                self.step_of(width)?;
            }
        }
        self.ends().map(drop)
    }

    /// Returns the sum of the slots of all steps so far.
    pub(crate) fn slots(&self) -> u64 {
        self.slots
    }

    /// Returns the number of rows of the LM head that a step reads.
    pub(crate) fn head_rows(&self) -> usize {
        self.head.known
    }

    /// Puts texts into rows whose prompts are in the cache except for their unread tokens. Also writes the tokens that are forced
    /// after the prompts.
    ///
    /// # Errors
    /// If the device fails.
    pub(crate) fn enter(&mut self, texts: &[EnteringText<'_>], cache: &Cache) -> Result<()> {
        if texts.is_empty() {
            return Ok(());
        }
        for text in texts {
            if text.row.base > 0 {
                self.refresh(cache, text.slot)?;
            }
            let at = text.slot as u64;
            self.gpu
                .write(self.batch.rows + size_of::<DeviceRow>() as u64 * at, &words(&text.row.words()))?;
            self.gpu.write(self.batch.texts + 4 * at * u64::from(self.batch.stride), &words(text.unread))?;
            self.unread += text.unread.len() - 1;
            self.gpu.write(self.batch.ends + 4 * at, &words(&[0]))?;
        }
        // Without an automaton nothing is forced.
        let Rules::Automaton(tables) = &self.rules else { return Ok(()) };
        let slots: Vec<u32> = texts.iter().map(|text| text.slot as u32).collect();
        self.gpu.write(self.entered, &words(&slots))?;
        let count = slots.len() as u32;
        let arguments = [tables.bytes(), self.batch.bytes(), argument(self.entered), words(&[count])];
        self.gpu.launch("enter", [count.div_ceil(FEW_THREADS), 1, 1], FEW_THREADS, &arguments)
    }

    /// Tells the device that candle wrote into a row of the cache.
    fn refresh(&mut self, cache: &Cache, row: usize) -> Result<()> {
        for side in cache.tensors() {
            let size = side.elem_count() / cache.rows();
            self.gpu.refresh(side, row * size..(row + 1) * size)?;
        }
        Ok(())
    }

    /// Launches one step while at most `running` rows are running. The model reads the unread tokens of the rows, as far as they
    /// fit. Rows whose last token was read get their next token, and the tokens that are forced after it.
    ///
    /// # Errors
    /// If a launch is refused. Later failures are reported by the next call that reads.
    pub(crate) fn step(&mut self, running: usize) -> Result<()> {
        let width = self.widths.of(running, self.unread);
        // The step reads at least this many prompt tokens, unless forced runs have taken the slots; then later steps read the rest.
        self.unread = self.unread.saturating_sub(width.slots - running);
        self.slots += width.slots as u64;
        self.step_of(width)
    }

    /// Does a step of this width. The second step of a width is recorded.
    fn step_of(&mut self, width: StepWidth) -> Result<()> {
        let first = if self.records { Recording::Launched } else { Recording::Never };
        let recording = *self.recordings.entry(width).or_insert(first);
        let next = match recording {
            Recording::Is(number) => return self.gpu.replay(number),
            Recording::Never => return self.launch(width),
            Recording::Launched => {
                self.launch(width)?;
                Recording::RequiredFiles
            }
            Recording::RequiredFiles => self.record(width)?,
        };
        self.recordings.insert(width, next);
        Ok(())
    }

    /// Records a step, and then executes it.
    fn record(&mut self, width: StepWidth) -> Result<Recording> {
        if !self.gpu.record()? {
            self.launch(width)?;
            return Ok(Recording::Never);
        }
        let launched = self.launch(width);
        // The recording has to end even if a launch failed.
        let recorded = self.gpu.recorded();
        launched?;
        let number = recorded?;
        self.gpu.replay(number)?;
        Ok(Recording::Is(number))
    }

    fn launch(&mut self, width: StepWidth) -> Result<()> {
        let (rows, batch) = (self.batch.count, self.batch.bytes());
        let normed = self.layers.launch(&mut *self.gpu, &self.batch, width)?;
        let lasts = self.layers.lasts();
        let (columns, known) = (self.layers.columns(), self.head.known);
        if known <= MOST_BY_KERNEL {
            let sizes = [columns, known, known].map(|size| words(&[size as u32]));
            let arrays = [normed, self.head.weight, lasts, self.logits].map(argument);
            let parts = (known as u32).div_ceil(MANY_THREADS / 32);
            self.gpu.launch("head", [parts, rows, 1], MANY_THREADS, &[&arrays[..], &sizes].concat())?;
        } else {
            let (weight, rows) = (self.head.weight, rows as usize);
            let product = Product {
                x: normed,
                weight,
                out: self.logits,
                rows,
                terms: columns,
                columns: known,
                transposed: true,
                wide: true,
            };
            self.gpu.product(&product)?;
        }
        let stride = words(&[known as u32]);
        match &self.rules {
            Rules::Automaton(tables) => {
                let threads = if known <= MOST_BY_KERNEL { FEW_THREADS } else { MANY_THREADS };
                let arguments = [
                    tables.bytes(),
                    batch,
                    self.draw.bytes(),
                    argument(lasts),
                    argument(self.logits),
                    stride,
                ];
                self.gpu.launch("choose", [rows, 1, 1], threads, &arguments)
            }
            Rules::Any { ends, count } => {
                let head = [batch, self.draw.bytes(), argument(lasts), argument(self.logits)];
                // No token is excluded.
                let ends = [argument(*ends), words(&[*count])];
                let lists = [vec![stride.clone(), stride, argument(0), words(&[0])], ends.to_vec()].concat();
                self.gpu.launch("choose_any", [rows, 1, 1], WHOLE_THREADS, &[head.to_vec(), lists].concat())
            }
        }
    }

    /// Returns the end of each row after all steps so far; `None` for running rows.
    ///
    /// # Errors
    /// If the device failed in one of the steps.
    pub(crate) fn ends(&mut self) -> Result<Vec<Option<RowEnd>>> {
        let ends = self.numbers(self.batch.ends, self.batch.count as usize)?;
        Ok(ends.into_iter().map(RowEnd::from_number).collect())
    }

    /// Returns the text that a row wrote.
    ///
    /// # Errors
    /// If the device fails.
    pub(crate) fn text(&mut self, slot: usize) -> Result<WrittenText> {
        let size = size_of::<DeviceRow>() / 4;
        let row = self.numbers(self.batch.rows + 4 * (slot * size) as u64, size)?;
        let written = DeviceRow::written_in(&row);
        let text = self.batch.texts + 4 * (slot * self.batch.stride as usize + written.start) as u64;
        let written = self.numbers(text, written.len())?;
        let forced = written.iter().map(|token| token & DeviceRow::FORCED != 0).collect();
        Ok(WrittenText { tokens: written.iter().map(|token| token & !DeviceRow::FORCED).collect(), forced })
    }

    /// Returns the total work of all steps so far.
    ///
    /// # Errors
    /// If the device fails.
    pub(crate) fn work(&mut self) -> Result<WorkDone> {
        let bytes = self.gpu.read(self.batch.work, 8 * WorkDone::NUMBERS)?;
        let mut numbers = [0; WorkDone::NUMBERS];
        for (number, bytes) in numbers.iter_mut().zip(bytes.as_chunks::<8>().0) {
            *number = u64::from_le_bytes(*bytes);
        }
        Ok(WorkDone::from_numbers(numbers))
    }

    pub(super) fn numbers(&mut self, address: u64, count: usize) -> Result<Vec<u32>> {
        let bytes = self.gpu.read(address, 4 * count)?;
        Ok(bytes.as_chunks::<4>().0.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect())
    }
}

/// Returns the rules for choosing tokens, and the rows of the LM head that they need.
fn rules_and_head(gpu: &mut dyn Gpu, decoder: &Decoder, choosing: TokenRule<'_>) -> Result<(Rules, Head)> {
    let whole = decoder.head();
    let (vocab, hidden) = whole.dims2().map_err(failed)?;
    let weight = gpu.address(whole)?;
    let mut upload = |numbers: &[u32]| -> Result<u64> {
        let address = gpu.allocate(4 * numbers.len().max(1))?;
        gpu.write(address, &words(numbers))?;
        Ok(address)
    };
    match choosing {
        TokenRule::Any { ends } => {
            let rules = Rules::Any { ends: upload(ends)?, count: ends.len() as u32 };
            Ok((rules, Head { weight, known: vocab }))
        }
        TokenRule::Automaton(table) => {
            let rules = Rules::Automaton(Box::new(TableArguments::new(table, &mut upload)?));
            let ids = table.head_ids();
            if ids.len() == vocab {
                return Ok((rules, Head { weight, known: vocab }));
            }
            let listed = upload(ids)?;
            let known = ids.len();
            let bytes = super::number_bytes(whole.dtype())?;
            let rows = gpu.allocate(known * hidden * bytes)?;
            let arrays = [weight, listed, rows].map(argument);
            let sizes = [vocab, hidden].map(|size| words(&[size as u32]));
            gpu.launch("gather", [known as u32, 1, 1], MANY_THREADS, &[&arrays[..], &sizes].concat())?;
            Ok((rules, Head { weight: rows, known }))
        }
    }
}
