//! Compares the steps of a device with candle's operations and the host, for the self-check.
//!
//! The host keeps a row for each text, as it does when candle computes. After each step of the device, it asks how far each row has
//! read, lets candle read the same tokens, and compares the logits after the last token. It draws from the device's own logits
//! under the host's mask, and follows forced runs. Then text, place in the automaton and end must be the same as on the device. So
//! the first difference is found in the step that makes it, and rounding never makes the two texts diverge.

use super::compared::{BothLogits, StepComparison};
use super::evidence::{ComparedChoice, Evidence};
use super::f32_reference::{F32Reference, InF32, errors, is_rounding};
use super::head::{Choice, rows_of_logits};
use super::on_device::{OnDevice, Starter};
use super::row::Row;
use super::schedule::{Item, longest_first};
use super::{End, Options, Prompt};
use crate::model::cuda::{DeviceRow, EnteringText, RowEnd, WorkDone};
use crate::model::{Cache, Decoder, Feed, HiddenStates, Room};
use drift_core::Result;
use drift_core::constraint::DeviceRule;
use drift_core::sampling::{draw, most_likely};
use drift_data::generation::{NearTie, RecomputedChoice};

/// Writes the texts of the prompts on a device, `steps` steps after the prompts, and compares each step with candle's operations.
///
/// # Errors
/// If the device fails, or has no room.
pub(super) fn check_steps(
    starter: Starter<'_>,
    decoder: &Decoder,
    (prompts, options): (&[Prompt], &Options),
    steps: usize,
    evidence: &mut Evidence<'_>,
) -> Result<StepComparison> {
    let mut beside = DeviceComparison::new(starter, decoder, (prompts, options))?;
    let mut compared = StepComparison::new(decoder, beside.rows.len(), options);
    evidence.begin(prompts, options);
    let mut left = steps;
    let most = beside.most_steps(steps);
    for step in 0..most {
        let reads_prompts = beside.reads_prompts();
        if beside.rows.iter().all(|row| row.end.is_some()) || left == 0 {
            break;
        }
        left -= usize::from(!reads_prompts);
        if beside.step(step, &mut compared, evidence)? {
            return Ok(compared);
        }
    }
    beside.counters(&mut compared)?;
    Ok(compared)
}

/// A batch on a device, and the same batch on the host.
struct DeviceComparison<'c> {
    decoder: &'c Decoder,
    options: &'c Options,
    /// The cache that the device writes; it must live as long as the device.
    _cache: Cache,
    device: OnDevice<'c>,
    candle: Cache,
    reference: F32Reference<'c>,
    rows: Vec<Row<'c>>,
    /// The rows as the device left them after its last step.
    left: Vec<DeviceRow>,
    /// The counters that the device should have.
    work: WorkDone,
}

impl<'c> DeviceComparison<'c> {
    fn new(
        starter: Starter<'_>,
        decoder: &'c Decoder,
        (prompts, options): (&'c [Prompt], &'c Options),
    ) -> Result<Self> {
        let context = decoder.config().max_position_embeddings;
        let longest =
            prompts.iter().map(|p| (p.tokens.len() + p.most_tokens).min(context)).max().unwrap_or(0);
        let row = |(slot, item): (usize, Item)| {
            let mut row = Row::new(&prompts[item.prompt], item, options, context, true);
            row.slot = slot;
            row
        };
        let rows: Vec<Row<'c>> = longest_first(prompts).enumerate().map(row).collect();
        let caches = || decoder.cache(rows.len(), longest, Room::Static);
        let (mut cache, mut candle) = (caches()?, caches()?);
        let mut device = OnDevice::new(starter, (decoder, &cache), (prompts, options))?;
        let running = rows.iter().filter(|row| row.end.is_none());
        let entering: Vec<EnteringText<'_>> = running.map(|row| device.entering(row)).collect();
        // The part of long prompts that candle reads is read into both caches.
        let read: Vec<Feed<'_>> = (entering.iter().filter(|text| text.row.base > 0))
            .map(|text| Feed {
                row: text.slot,
                tokens: &rows[text.slot].prompt.tokens[..text.row.base as usize],
            })
            .collect();
        if !read.is_empty() {
            decoder.forward(&read, &mut cache, HiddenStates::None)?;
            decoder.forward(&read, &mut candle, HiddenStates::None)?;
        }
        device.step.enter(&entering, &cache)?;
        device.running = entering.iter().map(|text| text.slot).collect();
        let left = device.step.rows()?;
        let (reference, work) = (F32Reference::new(decoder), WorkDone::default());
        Ok(DeviceComparison { decoder, options, _cache: cache, device, candle, reference, rows, left, work })
    }

    /// Returns an upper bound of the steps for `steps` steps after the prompts, which are read some tokens at a time.
    fn most_steps(&self, steps: usize) -> usize {
        let unread =
            self.left.iter().map(|row| row.count.saturating_sub(row.read) as usize).max().unwrap_or(0);
        4 * (steps + unread)
    }

    /// Returns whether a row has not read its whole prompt yet.
    fn reads_prompts(&self) -> bool {
        self.rows.iter().zip(&self.left).any(|(row, left)| row.end.is_none() && left.read < left.prompt)
    }

    /// Returns the text of a row as the memory of the device should contain it.
    fn text(&self, at: usize) -> Vec<u32> {
        let row = &self.rows[at];
        let (tokens, forced) = row.so_far();
        let mark = |(token, forced): (&u32, &bool)| token | if *forced { DeviceRow::FORCED } else { 0 };
        let prompt = &row.prompt.tokens[self.left[at].base as usize..];
        prompt.iter().copied().chain(tokens.iter().zip(forced).map(mark)).collect()
    }

    /// Does one step. Returns whether something differs.
    fn step(
        &mut self,
        step: usize,
        compared: &mut StepComparison,
        evidence: &mut Evidence<'_>,
    ) -> Result<bool> {
        let slots = self.device.step.slots();
        let before: Vec<Vec<u32>> = (0..self.rows.len()).map(|at| self.text(at)).collect();
        // Compares the tokens that were forced after the prompts.
        if step == 0 && self.texts(compared)? {
            return Ok(true);
        }
        self.device.step.step(self.device.running.len())?;
        let slots = self.device.step.slots() - slots;
        let (old, now) = (self.left.clone(), self.device.step.rows()?);
        let Some(reads) = self.reads((&old, &now), &before, (step, slots), compared) else { return Ok(true) };
        self.left = now;
        let tokens: Vec<Vec<u32>> = (reads.iter())
            .map(|read| {
                before[read.row][read.from..read.to].iter().map(|token| token & !DeviceRow::FORCED).collect()
            })
            .collect();
        let feeds: Vec<Feed<'_>> =
            reads.iter().zip(&tokens).map(|(read, tokens)| Feed { row: read.row, tokens }).collect();
        let hidden = self.decoder.forward(&feeds, &mut self.candle, HiddenStates::Last)?;
        let (known, device) = (self.device.step.head_rows(), self.device.step.logits()?);
        let ids = self.device.table.as_ref().map(|table| table.head_ids().to_vec());
        let ids = ids.filter(|ids| ids.len() < self.decoder.config().vocab_size);
        let logits = rows_of_logits(self.decoder, &hidden, ids.as_deref())?;
        for (read, candle) in reads.iter().zip(&logits).filter(|(read, _)| read.chooses) {
            let own = &device[read.row * known..(read.row + 1) * known];
            let both = BothLogits { device: own, candle, ids: ids.as_deref() };
            if self.choice((step, read.row), both, compared, evidence)? {
                return Ok(true);
            }
        }
        self.texts(compared)
    }

    /// Returns the tokens that each running row read in a step; `None` if the device's numbers are impossible.
    fn reads(
        &mut self,
        (old, now): (&[DeviceRow], &[DeviceRow]),
        texts: &[Vec<u32>],
        (step, slots): (usize, u64),
        compared: &mut StepComparison,
    ) -> Option<Vec<RowRead>> {
        let mut reads = Vec::new();
        let mut total = 0;
        for (at, row) in self.rows.iter().enumerate() {
            let runs = row.end.is_none();
            let (from, to) = (old[at].read as usize, now[at].read as usize);
            let is_sound = if runs { from < to && to <= texts[at].len() } else { from == to };
            if !is_sound {
                let of = texts[at].len();
                let problem = format!("step {step}, row {at}: it read its tokens {from} to {to} of {of}");
                compared.differs(problem);
                return None;
            }
            if runs {
                total += to - from;
                let (position, count) = ((old[at].base as usize + from) as u64, (to - from) as u64);
                let chooses = to == texts[at].len();
                self.work.row_passes += 1;
                self.work.positions += count;
                self.work.keys_read += position + count;
                self.work.keys_seen += count * position + count * (count + 1) / 2;
                self.work.choices += u64::from(chooses);
                reads.push(RowRead { row: at, from, to, chooses });
            }
        }
        if total as u64 > slots {
            compared.differs(format!("step {step}: {total} tokens were read in {slots} slots"));
            return None;
        }
        Some(reads)
    }

    /// Compares the logits of a row, and appends the token that the device's logits give. Returns whether something differs.
    fn choice(
        &mut self,
        (step, at): (usize, usize),
        logits: BothLogits<'_>,
        compared: &mut StepComparison,
        evidence: &mut Evidence<'_>,
    ) -> Result<bool> {
        let position = self.rows[at].written();
        let (worst, part) = compared.logits(logits.device, logits.candle);
        compared.choices += 1;
        evidence.choices.push(ComparedChoice {
            step,
            row: at,
            position,
            largest_difference: part,
            logits: logits.best().into_iter().chain([worst]).map(|slot| logits.of(slot)).collect(),
        });
        let place = format!("step {step}, row {at}, token {position}");
        if part > compared.bound
            && let Some(in_f32) = self.doubt((at, position, worst), logits, compared)?
        {
            let bound = compared.bound;
            let (id, device, candle) = logits.of(worst);
            let f32 = in_f32.of(worst);
            evidence.whole = Some(logits.whole(step, at, in_f32.logits()));
            return Ok(compared.differs(format!(
                "{place}: the logit of id {id} is {device}, by candle's operations {candle}{f32}: {part:.1e} of the \
                 largest, where {bound:.1e} is rounding"
            )));
        }
        let row = &mut self.rows[at];
        let constraint = row.prompt.constraint.clone();
        let mask = constraint.mask(&row.state);
        let (taken, forced) = match Choice::of_known(logits.device, logits.ids, mask) {
            Choice::Forced(token) => (token, true),
            Choice::Draw(left) => match draw(left, &self.options.sampling, &mut row.noise, position) {
                Ok(token) => (token, false),
                Err(error) => {
                    evidence.whole = Some(logits.whole(step, at, None));
                    return Ok(compared.differs(format!("{place}: {error}")));
                }
            },
        };
        if !compared.is_drawn
            && let Choice::Draw(left) = Choice::of_known(logits.candle, logits.ids, mask)
        {
            let preferred = most_likely(left)?;
            if preferred != taken
                && let Some(gap) = logits.gap(preferred, taken)
            {
                let (by_kernels, by_candle) = (taken, preferred);
                compared.near_ties.push(NearTie { row: at, position, by_kernels, by_candle, gap });
            }
        }
        row.take(taken, forced, true);
        Ok(false)
    }

    /// Compares with f32 if a choice differs by more than the bound. The arguments are the row, the token's position in its text,
    /// and the index with the largest difference. Returns f32's answer if the kernels are wrong or f32 is not available, and `None`
    /// if rounding takes candle's operations about as far.
    fn doubt(
        &mut self,
        (at, position, worst): (usize, usize, usize),
        logits: BothLogits<'_>,
        compared: &mut StepComparison,
    ) -> Result<Option<InF32>> {
        if !compared.is_bf16 {
            return Ok(Some(InF32::NotAsked));
        }
        let row = &self.rows[at];
        let tokens: Vec<u32> = row.prompt.tokens.iter().chain(row.so_far().0).copied().collect();
        let in_f32 = self.reference.logits(&tokens, logits.ids)?;
        let InF32::Logits(exact) = &in_f32 else { return Ok(Some(in_f32)) };
        let (kernels_off, candle_off) = errors(logits.device, logits.candle, exact);
        let doubt = RecomputedChoice { row: at, position, id: logits.of(worst).0, kernels_off, candle_off };
        compared.in_doubt.push(doubt);
        Ok((!is_rounding(&doubt)).then_some(in_f32))
    }

    /// Returns whether text, state or end of a row differs from the host's.
    fn texts(&mut self, compared: &mut StepComparison) -> Result<bool> {
        let (ends, now) = (self.device.step.ends()?, self.device.step.rows()?);
        for (at, (row, end)) in self.rows.iter().zip(&ends).enumerate() {
            if !self.device.running.contains(&at) {
                continue;
            }
            let expected = self.text(at);
            let count = now[at].count as usize;
            let found = self.device.step.raw_text(at, count.min(expected.len()))?;
            let problem =
                if let Some(place) = (0..found.len()).find(|place| found[*place] != expected[*place]) {
                    let said = |token: u32| match token & DeviceRow::FORCED {
                        0 => format!("{token}"),
                        _ => format!("{}, forced", token & !DeviceRow::FORCED),
                    };
                    let (found, expected) = (said(found[place]), said(expected[place]));
                    Some(format!("token {place} of its text is {found}, by the host {expected}"))
                } else if count != expected.len() {
                    Some(format!("its text has {count} tokens, by the host {}", expected.len()))
                } else {
                    self.state_differs(row, &now[at]).or_else(|| end_differs(*end, row.end))
                };
            if let Some(problem) = problem {
                return Ok(compared.differs(format!("row {at}: {problem}")));
            }
        }
        let rows = &self.rows;
        self.device.running.retain(|at| rows[*at].end.is_none());
        self.left = now;
        Ok(false)
    }

    /// Describes the state of a row if it differs from the host's.
    fn state_differs(&self, row: &Row<'_>, found: &DeviceRow) -> Option<String> {
        let DeviceRule::Automaton(molecule_automaton) = row.prompt.constraint.device_rule() else {
            return None;
        };
        let expected = self.device.table.as_ref()?.place_of(molecule_automaton, row.item.prompt, row.state);
        let found = (found.at, found.place);
        // The host does not follow a text further once it has its last token.
        let is_over = row.end.is_some();
        (found != expected && !is_over)
            .then(|| format!("it stands at segment and place {found:?}, by the host at {expected:?}"))
    }

    /// Compares the device's counters with the host's.
    fn counters(&mut self, compared: &mut StepComparison) -> Result<()> {
        let (found, expected) = (self.device.step.work()?, self.work);
        if found != expected {
            compared.differs(format!("it counted {found:?}, the host {expected:?}"));
        }
        Ok(())
    }
}

/// The tokens of its text that a row read in a step.
struct RowRead {
    row: usize,
    from: usize,
    to: usize,
    /// Whether the text's last token was among them, so that the next token is chosen.
    chooses: bool,
}

/// Describes the end of a row if it differs from the host's.
fn end_differs(found: Option<RowEnd>, expected: Option<End>) -> Option<String> {
    let is_same = matches!(
        (found, expected),
        (None, None) | (Some(RowEnd::Eos), Some(End::Eos)) | (Some(RowEnd::Length), Some(End::Length))
    );
    (!is_same).then(|| format!("its end is {found:?}, by the host {expected:?}"))
}
