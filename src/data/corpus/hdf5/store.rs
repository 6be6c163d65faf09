//! Reads drift's own store.

use std::collections::VecDeque;
use std::sync::Arc;

use super::Container;
use super::stream::{Dataset, Stream};
use crate::corpus::store::layout::{self, Field};
use crate::corpus::{Batch, BatchSink, Conformer, Context, Frame, ReadOptions, SkippedRecord, frame};
use crate::parameter;
use drift_core::encoding::{Fixed, Reading};
use drift_core::{Encoding, Error, Result};

/// The number of conformers in a batch.
const BATCH: usize = 4096;
/// The number of blocks after which a batch is full.
const BATCH_BLOCKS: usize = 1 << 17;
/// The largest number of blocks of a conformer.
const MAX_BLOCKS: u64 = 1 << 20;

/// Reads all conformers of a store, in order.
///
/// # Errors
/// If the datasets contradict each other or cannot be decompressed.
pub(super) fn read(container: &Container<'_>, context: Context<'_>, emit: &mut BatchSink<'_>) -> Result<()> {
    let ReadOptions { frame, reading, .. } = *context.options;
    let mut reader = Reader::open(container, context.options)?;
    let mut batch = Batch::default();
    let mut blocks = 0;
    for index in 0..reader.conformers {
        let mut conformer = reader.next(index)?;
        conformer.encoding = reading.as_written.then_some(reader.own);
        blocks += conformer.coordinates.len();
        let turned = frame::turn(&mut conformer, frame, (reader.own, reading.encoding));
        match turned.and_then(|()| reading.keep(&conformer.coordinates)) {
            Ok(()) => batch.conformers.push(conformer),
            Err(reason) => {
                let (file, record) = (container.name.to_owned(), format!("conformer {index}"));
                batch.skipped.push(SkippedRecord { file, record, reason });
            }
        }
        if batch.conformers.len() == BATCH || blocks >= BATCH_BLOCKS {
            context.job.check()?;
            emit(std::mem::take(&mut batch))?;
            blocks = 0;
        }
    }
    if reader.at != reader.coordinates.rows() as u64 {
        return Err(
            container.inconsistent(layout::OFFSET.path, "does not end with the number of coordinate rows")
        );
    }
    emit(batch)
}

/// The streams of conformer datasets, and the molecules.
struct Reader<'a> {
    container: &'a Container<'a>,
    /// The encoding of the file.
    own: Encoding,
    /// The encoding of the returned values.
    given: Encoding,
    conformers: usize,
    /// The number of coordinate rows taken so far.
    at: u64,
    offset: Stream<'a, u64>,
    molecule: Stream<'a, u32>,
    flags: Stream<'a, u8>,
    coordinates: Stream<'a, Fixed>,
    molecules: Molecules<'a>,
}

/// Refuses a store in another encoding than requested, unless its values may be converted: decimals may be truncated, or other
/// coordinates may be rewritten, if no encoding of texts was requested or it is that of the store.
fn check_encoding(container: &Container<'_>, own: Encoding, reading: Reading) -> Result<()> {
    let asked = reading.encoding;
    if let (true, true) = (own.is_decimal(), asked.is_decimal()) {
        let (precision, wanted) = (own.precision(), asked.precision());
        if wanted == precision || wanted < precision && reading.cut {
            return Ok(());
        }
        let (own, asked) = (precision.in_words(), wanted.in_words());
        let problem = format!("its coordinates have {own} decimals, not {asked}");
        return Err(Error::input(
            container.name,
            problem,
            format!("read it with {} {precision}", parameter::DECIMALS),
        ));
    }
    if own == asked
        || reading.texts.is_none_or(|texts| texts == own) && own.has_coordinates() && reading.rewrites
    {
        return Ok(());
    }
    let problem = format!("its values are written as {own}, not as {asked}");
    Err(Error::input(container.name, problem, format!("read it with {} {own}", parameter::ENCODING)))
}

impl<'a> Reader<'a> {
    fn open(container: &'a Container<'a>, options: &ReadOptions) -> Result<Self> {
        let reading = options.reading;
        let own = container.encoding()?;
        check_encoding(container, own, reading)?;
        let mut offset = Stream::open(container, layout::OFFSET)?;
        let molecule = Stream::open(container, layout::MOLECULE)?;
        let flags = Stream::open(container, layout::FLAGS)?;
        let conformers = molecule.rows();
        if flags.rows() != conformers || offset.rows() != conformers + 1 || offset.take(1)? != [0] {
            return Err(container.inconsistent("conformers", "the datasets differ in length"));
        }
        let coordinates = Stream::open(container, layout::COORDINATES)?;
        let molecules = Molecules::open(container)?;
        Ok(Reader {
            container,
            own,
            // If the frame changes, values are rounded only once, after the rotation.
            given: if options.frame == Frame::Keep && !reading.as_written { reading.encoding } else { own },
            conformers,
            at: 0,
            offset,
            molecule,
            flags,
            coordinates,
            molecules,
        })
    }

    fn next(&mut self, index: usize) -> Result<Conformer> {
        let broken = |dataset: Field, problem: &str| {
            self.container.inconsistent(dataset.path, format!("conformer {index}: {problem}"))
        };
        let end = self.offset.take(1)?[0];
        let blocks = match end.checked_sub(self.at) {
            Some(blocks @ 1..=MAX_BLOCKS) => blocks as usize,
            _ => return Err(broken(layout::OFFSET, "its number of blocks is not between 1 and 1,048,576")),
        };
        self.at = end;
        let bits = self.flags.take(1)?[0];
        let (order, written) =
            layout::from_flags(bits).ok_or_else(|| broken(layout::FLAGS, "unknown flags"))?;
        let row = self.molecule.take(1)?[0] as usize;
        let values = self.coordinates.take(blocks)?;
        let mut coordinates: Vec<[Fixed; 3]> = values.chunks_exact(3).map(|v| [v[0], v[1], v[2]]).collect();
        for values in &mut coordinates {
            // A damaged file may contain values that no writer writes.
            self.own.check(values).map_err(|e| broken(layout::COORDINATES, &e.to_string()))?;
            *values = self
                .given
                .convert(values, self.own)
                .map_err(|e| broken(layout::COORDINATES, &e.to_string()))?;
        }
        let molecule = self.molecules.get(row)?;
        // If the row points to a wrong molecule, only the number of blocks reveals it.
        if molecule.blocks != blocks {
            return Err(broken(layout::OFFSET, "its number of blocks is not that of its skeleton"));
        }
        let Molecule { smiles, skeleton, .. } = molecule.clone();
        Ok(Conformer { order, written, ..Conformer::new(smiles, skeleton, coordinates) })
    }
}

/// A row of the molecules.
#[derive(Clone)]
struct Molecule {
    smiles: Arc<str>,
    skeleton: Arc<str>,
    /// The number of blocks of the skeleton.
    blocks: usize,
}

/// The number of molecules read at a time.
const WINDOW: usize = 1024;
/// The number of cached windows: enough for the writer's back references, plus one.
const WINDOWS: usize = crate::corpus::store::RECENT_MOLECULES / WINDOW + 1;
/// The largest size of cached text in bytes: enough for the writer's back references, plus a window.
const WINDOWS_BYTES: usize = crate::corpus::store::RECENT_BYTES * 2;
/// The largest size of one window, in bytes.
const WINDOW_BYTES: u64 = 64 << 20;

/// The names and skeletons, read in windows of rows. The most recent windows are cached.
struct Molecules<'a> {
    smiles: Texts<'a>,
    skeletons: Texts<'a>,
    windows: VecDeque<Window>,
}

/// `WINDOW` molecules, fewer at the end.
struct Window {
    number: usize,
    bytes: usize,
    molecules: Vec<Molecule>,
}

impl<'a> Molecules<'a> {
    fn open(container: &'a Container<'a>) -> Result<Self> {
        let smiles = Texts::open(container, layout::SMILES, layout::SMILES_OFFSET)?;
        let skeletons = Texts::open(container, layout::SKELETON, layout::SKELETON_OFFSET)?;
        if smiles.count != skeletons.count {
            return Err(container.inconsistent("molecules", "the datasets differ in length"));
        }
        Ok(Molecules { smiles, skeletons, windows: VecDeque::new() })
    }

    fn get(&mut self, row: usize) -> Result<&Molecule> {
        let number = row / WINDOW;
        // The wanted window is nearly always the one used last, which is at the front.
        if let Some(at) = self.windows.iter().position(|w| w.number == number) {
            self.windows.make_contiguous()[..=at].rotate_right(1);
        } else {
            let window = self.load(number)?;
            self.windows.push_front(window);
            while self.windows.len() > 1 && (self.windows.len() > WINDOWS || self.bytes() > WINDOWS_BYTES) {
                self.windows.pop_back();
            }
        }
        self.windows[0].molecules.get(row % WINDOW).ok_or_else(|| {
            self.smiles.bytes.container.inconsistent(layout::MOLECULE.path, format!("no molecule {row}"))
        })
    }

    fn bytes(&self) -> usize {
        self.windows.iter().map(|w| w.bytes).sum()
    }

    fn load(&self, number: usize) -> Result<Window> {
        let smiles = self.smiles.read(number)?;
        let skeletons = self.skeletons.read(number)?;
        let bytes = smiles.iter().chain(&skeletons).map(|text| text.len()).sum();
        let molecules = smiles
            .into_iter()
            .zip(skeletons)
            .map(|(smiles, skeleton)| {
                let blocks = skeleton.matches("<>").count();
                Molecule { smiles, skeleton, blocks }
            })
            .collect();
        Ok(Window { number, bytes, molecules })
    }
}

/// Texts stored as a sequence of bytes with offsets.
struct Texts<'a> {
    bytes: Dataset<'a, u8>,
    offsets: Dataset<'a, u64>,
    count: usize,
}

impl<'a> Texts<'a> {
    fn open(container: &'a Container<'a>, field: Field, offset_field: Field) -> Result<Self> {
        let (bytes, offsets) = (Dataset::open(container, field)?, Dataset::open(container, offset_field)?);
        let count = offsets.rows.checked_sub(1).ok_or_else(|| offsets.inconsistent("is empty"))?;
        Ok(Texts { bytes, offsets, count })
    }

    /// Returns the texts of one window.
    fn read(&self, number: usize) -> Result<Vec<Arc<str>>> {
        let first = (number * WINDOW).min(self.count);
        let count = WINDOW.min(self.count - first);
        if count == 0 {
            return Ok(Vec::new());
        }
        let offsets: Vec<u64> = self.offsets.slice(first, count + 1)?;
        let (start, end) = (offsets[0], offsets[count]);
        let ordered = offsets.is_sorted() && end <= self.bytes.rows as u64 && end - start <= WINDOW_BYTES;
        if !ordered {
            return Err(self.offsets.inconsistent(format!("the rows from {first} on are invalid")));
        }
        let bytes = match end - start {
            0 => Vec::new(),
            len => self.bytes.slice(start as usize, len as usize)?,
        };
        let text = |pair: &[u64]| {
            let part = &bytes[(pair[0] - start) as usize..(pair[1] - start) as usize];
            std::str::from_utf8(part).map(Arc::from).map_err(|_| self.bytes.inconsistent("not UTF-8"))
        };
        offsets.windows(2).map(text).collect()
    }
}
