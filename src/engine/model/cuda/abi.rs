//! The arguments of the kernels, with the byte layout that the CUDA C declares. Pointers are addresses of device memory.

use std::ops::Range;

use drift_core::constraint::automaton::DeviceTable;
use drift_core::sampling::{Noise, Sampling};

/// The reason why a row of the batch ended: a value of `ends` of [`BatchArguments`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowEnd {
    /// The text was ended by the end token.
    Eos,
    /// The text has as many tokens as allowed.
    Length,
    /// No token of the model's vocabulary is allowed.
    NothingAllowed,
    /// A logit is not finite.
    NotFinite,
}

impl RowEnd {
    /// Decodes a number of `ends`; `None` if the row is running or the number is unknown.
    pub fn from_number(number: u32) -> Option<Self> {
        let all = [RowEnd::Eos, RowEnd::Length, RowEnd::NothingAllowed, RowEnd::NotFinite];
        all.get(number.checked_sub(1)? as usize).copied()
    }
}

/// The state of a text that is being written: `Row` of `automaton.cu`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct DeviceRow {
    /// The key of the row's noise.
    pub key: [u32; 8],
    /// The index of the molecule in the table.
    pub molecule: u32,
    /// The index of the current segment among the segments of the molecule.
    pub at: u32,
    /// The current place in the table.
    pub place: u32,
    /// The number of tokens of the row's text.
    pub count: u32,
    /// How many of these the model has read.
    pub read: u32,
    /// The largest number of tokens that the text may have.
    pub most: u32,
    /// The number of prompt tokens before the row's text: the length of the row's cache when the row enters.
    pub base: u32,
    /// How many tokens of the row's text belong to the prompt.
    pub prompt: u32,
}

/// The prompt of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowPrompt {
    /// The number of prompt tokens that the model has read already.
    pub read: u32,
    /// The number of prompt tokens after these, at least one. The row's text begins with them.
    pub unread: u32,
}

impl DeviceRow {
    /// The bit that marks a forced token in a row's text.
    pub const FORCED: u32 = 1 << 31;

    /// Returns a row that continues a prompt with at most `most` new tokens. `place` is the place where the texts of the molecule begin
    /// ([`DeviceTable::start`]).
    pub fn new(noise: &Noise, molecule: u32, place: u32, prompt: RowPrompt, most: u32) -> Self {
        let RowPrompt { read: base, unread } = prompt;
        let (key, most) = (noise.key(), unread + most);
        DeviceRow { key, molecule, at: 0, place, count: unread, read: 0, most, base, prompt: unread }
    }

    /// Returns a row for one draw from a whole vocabulary, of the token at `position` of its text.
    pub(super) fn drawing(noise: &Noise, position: u32) -> Self {
        let row = DeviceRow::new(noise, 0, 0, RowPrompt { read: 0, unread: 1 }, 1);
        // The device also counts modulo 2³², so the row's one token gets `position` although it comes first.
        DeviceRow { prompt: 1u32.wrapping_sub(position), ..row }
    }

    /// Returns the range of written tokens in the text of a row, given the row's words in device memory.
    pub(super) fn written_in(words: &[u32]) -> Range<usize> {
        // The key, `molecule`, `at` and `place` come before these words.
        match words {
            [.., count, _read, _most, _base, prompt] => *prompt as usize..*count as usize,
            _ => 0..0,
        }
    }

    /// Returns a row from its words in device memory; `None` if their number is wrong.
    pub(super) fn from_words(words: &[u32]) -> Option<Self> {
        let (key, rest) = words.split_first_chunk::<8>()?;
        let [molecule, at, place, count, read, most, base, prompt] = *<&[u32; 8]>::try_from(rest).ok()?;
        Some(DeviceRow { key: *key, molecule, at, place, count, read, most, base, prompt })
    }

    /// Returns the words of the row in device memory.
    pub fn words(&self) -> [u32; 16] {
        let DeviceRow { key, molecule, at, place, count, read, most, base, prompt } = *self;
        let rest = [molecule, at, place, count, read, most, base, prompt];
        std::array::from_fn(|i| if i < 8 { key[i] } else { rest[i - 8] })
    }
}

/// The slots of a row's new tokens: `Run` of `append.cu`. A row with zero tokens takes no part in the step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct DeviceRun {
    /// The first slot.
    pub first: u32,
    /// The number of slots.
    pub count: u32,
    /// The position of the first token in the row.
    pub position: u32,
    /// Zero.
    pub unused: u32,
}

/// The settings of a draw: `Sampling` of `sample.cu`.
#[derive(Debug, Clone, Copy, PartialEq)]
#[repr(C)]
pub struct DrawArguments {
    /// The temperature; 0 means greedy decoding.
    pub temperature: f64,
    /// The bound of top-p; 1 keeps all tokens.
    pub top_p: f64,
    /// The natural logarithm of min-p; minus infinity keeps all tokens.
    pub log_min_p: f64,
    /// The k of top-k; 0 keeps all tokens.
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
    /// Returns the bytes of the kernel argument.
    pub fn bytes(&self) -> Vec<u8> {
        let numbers = [self.temperature, self.top_p, self.log_min_p].map(f64::to_le_bytes).concat();
        [numbers, words(&[self.top_k, 0, 0, 0])].concat()
    }
}

/// The addresses of the arrays of a [`DeviceTable`]: `Tables` of `automaton.cu`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct TableArguments {
    /// The addresses of `offsets`, `slots`, `targets`, `exits`, `roots`, `order`, `molecules` and `tokens` of the table.
    pub arrays: [u64; 8],
    /// The number of states of a block.
    pub states: u32,
    /// The number of slots that have logits.
    pub known: u32,
    /// Zeros.
    pub unused: [u32; 4],
}

impl TableArguments {
    /// Uploads the arrays of a table by `upload`, which returns the address of its copy.
    ///
    /// # Errors
    /// If `upload` fails.
    pub fn new<E>(table: &DeviceTable, mut upload: impl FnMut(&[u32]) -> Result<u64, E>) -> Result<Self, E> {
        let DeviceTable { offsets, slots, targets, exits, roots, order, molecules, tokens, .. } = table;
        let mut arrays = [0; 8];
        let all = [offsets, slots, targets, exits, roots, order, molecules, tokens];
        for (address, array) in arrays.iter_mut().zip(all) {
            *address = upload(array)?;
        }
        Ok(TableArguments { arrays, states: table.states(), known: table.known, unused: [0; 4] })
    }

    /// Returns the bytes of the kernel argument.
    pub fn bytes(&self) -> Vec<u8> {
        [addresses(&self.arrays), words(&[self.states, self.known, 0, 0, 0, 0])].concat()
    }
}

/// The state of the batch: `Batch` of `automaton.cu`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct BatchArguments {
    /// The address of the [`DeviceRow`]s.
    pub rows: u64,
    /// The tokens of the texts, `[rows, stride]`; the prompt's tokens come first.
    pub texts: u64,
    /// `[rows]`: 0 while a row is running, otherwise a number for [`RowEnd::from_number`].
    pub ends: u64,
    /// `[1]`: the number of rows that have ended.
    pub ended: u64,
    /// `[5]`, 64 bits each: counters of the work of all steps, for [`WorkDone::from_numbers`].
    pub work: u64,
    /// The number of rows.
    pub count: u32,
    /// The largest number of tokens of a text.
    pub stride: u32,
}

impl BatchArguments {
    /// Returns the bytes of the kernel argument.
    pub fn bytes(&self) -> Vec<u8> {
        let BatchArguments { rows, texts, ends, ended, work, count, stride } = *self;
        [addresses(&[rows, texts, ends, ended, work]), words(&[count, stride])].concat()
    }
}

/// The total work of the steps of a batch: `work` of [`BatchArguments`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WorkDone {
    /// The number of passes of a row, counting each row that read tokens in a step.
    pub row_passes: u64,
    /// The number of tokens that they read.
    pub positions: u64,
    /// The number of positions whose keys and values were read, each counted once per row and step.
    pub keys_read: u64,
    /// The number of pairs of a token and a position that it attended to.
    pub keys_seen: u64,
    /// How often the last token of a row was read, so that the next token was chosen.
    pub choices: u64,
}

impl WorkDone {
    /// The number of counters.
    pub const NUMBERS: usize = 5;

    /// Returns the counters as they are in device memory.
    pub fn from_numbers(numbers: [u64; WorkDone::NUMBERS]) -> Self {
        let [row_passes, positions, keys_read, keys_seen, choices] = numbers;
        WorkDone { row_passes, positions, keys_read, keys_seen, choices }
    }
}

/// The result of a product: `Sums` of `sums.cu`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct SumsArguments {
    /// The address of `[slots, columns]` in the type of the model, or of `[parts, slots, columns]` in f32 if there are parts.
    pub from: u64,
    /// The number of parts that the reader has to add, or 0.
    pub parts: u32,
    /// The distance from one part to the next, in numbers.
    pub stride: u32,
}

impl SumsArguments {
    /// Returns a result without parts.
    pub fn whole(from: u64) -> Self {
        SumsArguments { from, parts: 0, stride: 0 }
    }

    /// Returns the bytes of the kernel argument.
    pub fn bytes(&self) -> Vec<u8> {
        [addresses(&[self.from]), words(&[self.parts, self.stride])].concat()
    }
}

/// The arguments of attention in one layer: `Attention` of `append.cu`.
#[derive(Debug, Clone, Copy, PartialEq)]
#[repr(C)]
pub struct AttentionArguments {
    /// `[slots, columns]`
    pub qkv: SumsArguments,
    /// `[rows, kv heads, capacity, head dim]`
    pub keys: u64,
    /// `[rows, kv heads, capacity, head dim]`
    pub values: u64,
    /// `[positions, head dim / 2]`, f32
    pub cosines: u64,
    /// `[positions, head dim / 2]`, f32
    pub sines: u64,
    /// `[head dim]`, or 0.
    pub query_norm: u64,
    /// `[head dim]`, or 0.
    pub key_norm: u64,
    /// `[slots, queries, splits, head dim + 2]`, f32; used only if there is more than one split.
    pub parts: u64,
    /// `[slots, kv heads]`, zero before the first launch and after each launch; used like `parts`.
    pub tickets: u64,
    /// The number of key and value heads.
    pub kv_heads: u32,
    /// The number of positions of the cache.
    pub capacity: u32,
    /// The number of positions of the rotary tables.
    pub positions: u32,
    /// The epsilon of the norms.
    pub epsilon: f32,
}

impl AttentionArguments {
    /// Returns the bytes of the kernel argument.
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

/// Returns the bytes of an address as a kernel argument.
pub(super) fn argument(address: u64) -> Vec<u8> {
    address.to_le_bytes().to_vec()
}

fn addresses(addresses: &[u64]) -> Vec<u8> {
    addresses.iter().flat_map(|address| address.to_le_bytes()).collect()
}

/// Returns the bytes of numbers as kernel arguments, or in device memory.
pub(super) fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The arguments have as many bytes as the structs. The emulator compares the structs with those of CUDA C.
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
