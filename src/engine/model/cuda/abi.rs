//! What the kernels are called with, byte by byte as the CUDA C declares it. Pointers are addresses of device memory.

use std::ops::Range;

use drift_core::constraint::automaton::DeviceTable;
use drift_core::sampling::{Noise, Sampling};

/// How a row of the batch stands: `ends` of [`BatchArguments`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowEnd {
    /// The text was ended.
    Eos,
    /// It has as many tokens as it may.
    Length,
    /// No token that the model has is allowed.
    NothingAllowed,
    /// A logit is no finite number.
    NotFinite,
}

impl RowEnd {
    /// What a number in `ends` says; none if the row runs, or the number is none of them.
    pub fn from_number(number: u32) -> Option<Self> {
        let all = [RowEnd::Eos, RowEnd::Length, RowEnd::NothingAllowed, RowEnd::NotFinite];
        all.get(number.checked_sub(1)? as usize).copied()
    }
}

/// A text that is being written: `Row` of `automaton.cu`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct DeviceRow {
    /// Of its noise.
    pub key: [u32; 8],
    /// In the table.
    pub molecule: u32,
    /// Segment among those of the molecule.
    pub at: u32,
    /// Place in the table.
    pub place: u32,
    /// Tokens of its text.
    pub count: u32,
    /// Of these, those that the model has read.
    pub read: u32,
    /// Tokens that its text may have.
    pub most: u32,
    /// Tokens of the prompt before its text: the length of the row's cache when it enters.
    pub base: u32,
    /// Tokens of its text that are the prompt's.
    pub prompt: u32,
}

/// What the text of a row begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowPrompt {
    /// Tokens of the prompt that the model has read.
    pub read: u32,
    /// Tokens of the prompt behind these, with which the text begins: one at least.
    pub unread: u32,
}

impl DeviceRow {
    /// Bit of a token in a row's text that was forced.
    pub const FORCED: u32 = 1 << 31;

    /// A row behind a prompt, to which `most` tokens may be written. `place` is where the molecule's texts begin
    /// ([`DeviceTable::start`]).
    pub fn new(noise: &Noise, molecule: u32, place: u32, prompt: RowPrompt, most: u32) -> Self {
        let RowPrompt { read: base, unread } = prompt;
        let (key, most) = (noise.key(), unread + most);
        DeviceRow { key, molecule, at: 0, place, count: unread, read: 0, most, base, prompt: unread }
    }

    /// A row for one draw from a whole vocabulary, of the token at `position` of its text.
    pub(super) fn drawing(noise: &Noise, position: u32) -> Self {
        let row = DeviceRow::new(noise, 0, 0, RowPrompt { read: 0, unread: 1 }, 1);
        // The device counts modulo 2³², too: its one token is that many behind the prompt's.
        DeviceRow { prompt: 1u32.wrapping_sub(position), ..row }
    }

    /// The tokens of its text that were written, of a row as it lies in device memory.
    pub(super) fn written_in(words: &[u32]) -> Range<usize> {
        // Behind the key, `molecule`, `at` and `place`.
        match words {
            [.., count, _read, _most, _base, prompt] => *prompt as usize..*count as usize,
            _ => 0..0,
        }
    }

    /// From its words in device memory; none if they are not as many.
    pub(super) fn from_words(words: &[u32]) -> Option<Self> {
        let (key, rest) = words.split_first_chunk::<8>()?;
        let [molecule, at, place, count, read, most, base, prompt] = *<&[u32; 8]>::try_from(rest).ok()?;
        Some(DeviceRow { key: *key, molecule, at, place, count, read, most, base, prompt })
    }

    /// As it lies in device memory.
    pub fn words(&self) -> [u32; 16] {
        let DeviceRow { key, molecule, at, place, count, read, most, base, prompt } = *self;
        let rest = [molecule, at, place, count, read, most, base, prompt];
        std::array::from_fn(|i| if i < 8 { key[i] } else { rest[i - 8] })
    }
}

/// The slots of a row's new tokens: `Run` of `append.cu`. Without tokens the row takes no part in a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct DeviceRun {
    /// The first slot.
    pub first: u32,
    /// How many.
    pub count: u32,
    /// Position of the first in the row.
    pub position: u32,
    /// Zero.
    pub unused: u32,
}

/// How to draw: `Sampling` of `sample.cu`.
#[derive(Debug, Clone, Copy, PartialEq)]
#[repr(C)]
pub struct DrawArguments {
    /// 0: always the most likely.
    pub temperature: f64,
    /// 1: all.
    pub top_p: f64,
    /// Minus infinity: none.
    pub log_min_p: f64,
    /// 0: all.
    pub top_k: u32,
    /// Zeros.
    pub unused: [u32; 3],
}

impl From<&Sampling> for DrawArguments {
    fn from(sampling: &Sampling) -> Self {
        DrawArguments {
            temperature: sampling.temperature.unwrap_or(0.0),
            top_p: sampling.top_p.unwrap_or(1.0),
            log_min_p: sampling.min_p.map_or(f64::NEG_INFINITY, f64::ln),
            top_k: sampling.top_k.map_or(0, |k| u32::try_from(k).unwrap_or(0)),
            unused: [0; 3],
        }
    }
}

impl DrawArguments {
    /// As it is passed.
    pub fn bytes(&self) -> Vec<u8> {
        let numbers = [self.temperature, self.top_p, self.log_min_p].map(f64::to_le_bytes).concat();
        [numbers, words(&[self.top_k, 0, 0, 0])].concat()
    }
}

/// Addresses of a [`DeviceTable`]: `Tables` of `automaton.cu`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct TableArguments {
    /// `offsets`, `slots`, `targets`, `exits`, `roots`, `order`, `molecules` and `tokens` of the table.
    pub arrays: [u64; 8],
    /// States of a block.
    pub states: u32,
    /// Slots that have logits.
    pub known: u32,
    /// Zeros.
    pub unused: [u32; 4],
}

impl TableArguments {
    /// Of a table whose arrays `upload` copies, giving their addresses.
    ///
    /// # Errors
    /// What `upload` says.
    pub fn new<E>(table: &DeviceTable, mut upload: impl FnMut(&[u32]) -> Result<u64, E>) -> Result<Self, E> {
        let DeviceTable { offsets, slots, targets, exits, roots, order, molecules, tokens, .. } = table;
        let mut arrays = [0; 8];
        let all = [offsets, slots, targets, exits, roots, order, molecules, tokens];
        for (address, array) in arrays.iter_mut().zip(all) {
            *address = upload(array)?;
        }
        Ok(TableArguments { arrays, states: table.states(), known: table.known, unused: [0; 4] })
    }

    /// As it is passed.
    pub fn bytes(&self) -> Vec<u8> {
        [addresses(&self.arrays), words(&[self.states, self.known, 0, 0, 0, 0])].concat()
    }
}

/// The batch: `Batch` of `automaton.cu`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct BatchArguments {
    /// [`DeviceRow`]s.
    pub rows: u64,
    /// Tokens `[rows, stride]`, the prompt's first.
    pub texts: u64,
    /// `[rows]`: 0 while a row runs, else what [`RowEnd::from_number`] reads.
    pub ends: u64,
    /// `[1]`: counts rows as they end.
    pub ended: u64,
    /// `[5]`, 64 bits each: counts what steps come to, as [`WorkDone::from_numbers`] reads it.
    pub work: u64,
    /// Rows.
    pub count: u32,
    /// The most tokens of a text.
    pub stride: u32,
}

impl BatchArguments {
    /// As it is passed.
    pub fn bytes(&self) -> Vec<u8> {
        let BatchArguments { rows, texts, ends, ended, work, count, stride } = *self;
        [addresses(&[rows, texts, ends, ended, work]), words(&[count, stride])].concat()
    }
}

/// What the steps of a batch came to, added up: `work` of [`BatchArguments`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WorkDone {
    /// Rows that read a token.
    pub row_passes: u64,
    /// Tokens that they read.
    pub positions: u64,
    /// Positions whose keys and values were read, each once for a row of a step.
    pub keys_read: u64,
    /// Pairs of a token and a position that it looked at.
    pub keys_seen: u64,
    /// Rows whose last token was read, so that their next one was chosen.
    pub choices: u64,
}

impl WorkDone {
    /// Numbers that are counted.
    pub const NUMBERS: usize = 5;

    /// From device memory.
    pub fn from_numbers(numbers: [u64; WorkDone::NUMBERS]) -> Self {
        let [row_passes, positions, keys_read, keys_seen, choices] = numbers;
        WorkDone { row_passes, positions, keys_read, keys_seen, choices }
    }
}

/// What a product came to: `Sums` of `sums.cu`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct SumsArguments {
    /// `[slots, columns]` in the type of the model, or `[parts, slots, columns]` in f32 where there are parts.
    pub from: u64,
    /// Parts that are yet to be added, or 0.
    pub parts: u32,
    /// Numbers from one part to the next.
    pub stride: u32,
}

impl SumsArguments {
    /// A result that is no parts.
    pub fn whole(from: u64) -> Self {
        SumsArguments { from, parts: 0, stride: 0 }
    }

    /// As it is passed.
    pub fn bytes(&self) -> Vec<u8> {
        [addresses(&[self.from]), words(&[self.parts, self.stride])].concat()
    }
}

/// What one layer attends with: `Attention` of `append.cu`.
#[derive(Debug, Clone, Copy, PartialEq)]
#[repr(C)]
pub struct AttentionArguments {
    /// `[slots, columns]`
    pub qkv: SumsArguments,
    /// `[rows, kv heads, capacity, head dim]`
    pub keys: u64,
    /// As `keys`.
    pub values: u64,
    /// `[positions, head dim / 2]`, f32
    pub cosines: u64,
    /// As `cosines`.
    pub sines: u64,
    /// `[head dim]`, or 0.
    pub query_norm: u64,
    /// `[head dim]`, or 0.
    pub key_norm: u64,
    /// `[slots, queries, splits, head dim + 2]`, f32; only read and written where there is more than one split.
    pub parts: u64,
    /// `[slots, kv heads]`, zero before the first launch and after each; as `parts`.
    pub tickets: u64,
    /// Key and value heads.
    pub kv_heads: u32,
    /// Positions of the cache.
    pub capacity: u32,
    /// Positions of the rotary tables.
    pub positions: u32,
    /// Of the norms.
    pub epsilon: f32,
}

impl AttentionArguments {
    /// As it is passed.
    pub fn bytes(&self) -> Vec<u8> {
        let a = *self;
        let arrays = [a.keys, a.values, a.cosines, a.sines, a.query_norm, a.key_norm, a.parts, a.tickets];
        [
            a.qkv.bytes(),
            addresses(&arrays),
            words(&[a.kv_heads, a.capacity, a.positions, a.epsilon.to_bits()]),
        ]
        .concat()
    }
}

/// An address as it is passed.
pub(super) fn argument(address: u64) -> Vec<u8> {
    address.to_le_bytes().to_vec()
}

fn addresses(addresses: &[u64]) -> Vec<u8> {
    addresses.iter().flat_map(|address| address.to_le_bytes()).collect()
}

/// Numbers as they are passed, or lie in device memory.
pub(super) fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes that are passed are as many as the structs of CUDA C have; the emulator compares with those.
    #[test]
    fn bytes_are_those_of_the_structs() {
        let batch = BatchArguments { rows: 1, texts: 2, ends: 3, ended: 4, work: 5, count: 6, stride: 7 };
        assert_eq!(batch.bytes().len(), size_of::<BatchArguments>());
        let table = TableArguments { arrays: [0; 8], states: 1, known: 2, unused: [0; 4] };
        assert_eq!(table.bytes().len(), size_of::<TableArguments>());
        let draw = DrawArguments::from(&Sampling::QWEN3);
        assert_eq!((draw.bytes().len(), draw.top_k), (size_of::<DrawArguments>(), 20));
        let row = DeviceRow::new(&Noise::new(1, 2, 3), 4, 5, RowPrompt { read: 6, unread: 2 }, 7);
        assert_eq!(DeviceRow::written_in(&DeviceRow { count: 5, ..row }.words()), 2..5);
        assert_eq!((DeviceRow::from_words(&row.words()), DeviceRow::from_words(&[0; 15])), (Some(row), None));
        assert_eq!(row.words(), [1, 0, 2, 0, 3, 0, 0, 0, 4, 0, 5, 2, 0, 9, 6, 2]);
        assert_eq!(size_of::<DeviceRow>(), 64);
        assert_eq!(
            (RowEnd::from_number(0), RowEnd::from_number(2), RowEnd::from_number(9)),
            (None, Some(RowEnd::Length), None)
        );
    }
}
