//! Compresses chunks on several threads and returns them in the order in which they were sent, so that the file's bytes do not
//! depend on the number of threads.
//!
//! The store has its own threads, because a rayon task that waits for another task can deadlock a pool of one thread.

use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use flate2::{Compress, Compression, FlushCompress};

/// A part counts as random if two of its bytes, drawn at random, are equal less often than 1 in this many times.
const RANDOM_ONE_IN: u64 = 160;

/// The number of chunks in flight per thread: one in work, one waiting.
const AHEAD: usize = 2;

/// One chunk of one dataset: whole rows, padded to the chunk's size.
pub(super) struct Chunk {
    /// The index of the dataset.
    pub column: usize,
    /// The index of the chunk in the dataset.
    pub index: usize,
    /// The size of an element in bytes, for the shuffle filter.
    pub element: usize,
    /// The bytes: raw when sent, compressed when returned.
    pub bytes: Vec<u8>,
}

struct Worker {
    jobs: Sender<Chunk>,
    done: Receiver<Chunk>,
}

/// The threads. Chunk `i` is sent to thread `i mod n` and taken back from it.
pub(super) struct Compressor {
    workers: Vec<Worker>,
    sent: usize,
    taken: usize,
}

impl Compressor {
    /// Starts `threads` threads; they end when this is dropped.
    ///
    /// # Errors
    /// If the system refuses a thread.
    pub(super) fn new(threads: usize, level: u32) -> io::Result<Self> {
        let workers = (0..threads.max(1)).map(|_| worker(level)).collect::<io::Result<_>>()?;
        Ok(Compressor { workers, sent: 0, taken: 0 })
    }

    /// Sends a chunk for compression. While [`full`](Self::full), the caller must take chunks back with [`take`](Self::take) first.
    ///
    /// # Errors
    /// If the thread is gone, which only a panic inside it could cause.
    pub(super) fn send(&mut self, chunk: Chunk) -> io::Result<()> {
        let worker = &self.workers[self.sent % self.workers.len()];
        worker.jobs.send(chunk).map_err(|_| gone())?;
        self.sent += 1;
        Ok(())
    }

    /// Returns whether the maximum number of chunks is in flight. This bounds the memory.
    pub(super) fn full(&self) -> bool {
        self.sent - self.taken >= AHEAD * self.workers.len()
    }

    /// Waits for the next compressed chunk. `None` if no chunk is in flight.
    ///
    /// # Errors
    /// The errors of [`send`](Self::send).
    pub(super) fn take(&mut self) -> io::Result<Option<Chunk>> {
        if self.taken == self.sent {
            return Ok(None);
        }
        let worker = &self.workers[self.taken % self.workers.len()];
        let chunk = worker.done.recv().map_err(|_| gone())?;
        self.taken += 1;
        Ok(Some(chunk))
    }
}

fn gone() -> io::Error {
    io::Error::other("a compression thread ended early")
}

fn worker(level: u32) -> io::Result<Worker> {
    let (jobs, inbox) = channel::<Chunk>();
    let (outbox, done) = channel();
    thread::Builder::new().name("drift-deflate".to_owned()).spawn(move || {
        let mut deflate = Compress::new(Compression::new(level), false);
        let mut shuffled = Vec::new();
        for mut chunk in inbox {
            shuffle(&chunk.bytes, chunk.element, &mut shuffled);
            let Ok(bytes) = compress(&mut deflate, &shuffled, chunk.element) else { return };
            chunk.bytes = bytes;
            // The receiver is gone because the store was abandoned.
            if outbox.send(chunk).is_err() {
                return;
            }
        }
    })?;
    Ok(Worker { jobs, done })
}

/// HDF5's shuffle filter: all first bytes of the elements, then all second bytes, and so on.
pub(super) fn shuffle(bytes: &[u8], element: usize, out: &mut Vec<u8>) {
    out.clear();
    if element <= 1 {
        out.extend_from_slice(bytes);
        return;
    }
    for place in 0..element {
        out.extend(bytes.iter().copied().skip(place).step_by(element));
    }
}

/// Compresses into one zlib stream (RFC 1950), as HDF5's deflate filter stores it. The input has `planes` equal parts. `deflate`
/// produces raw deflate data.
///
/// Parts that look random, such as the two low bytes of coordinates, become stored blocks: searching them for matches takes most of
/// the time and saves only one percent.
fn compress(deflate: &mut Compress, bytes: &[u8], planes: usize) -> io::Result<Vec<u8>> {
    let mut out = Vec::with_capacity(bytes.len() * 3 / 4 + 1024);
    // Header: deflate, a window of 32 KiB, the fastest compression class.
    out.extend([0x78, 0x01]);
    for plane in bytes.chunks((bytes.len() / planes.max(1)).max(1)) {
        if looks_random(plane) { stored(plane, &mut out) } else { deflated(deflate, plane, &mut out)? }
    }
    // An empty last block with fixed Huffman codes.
    out.extend([0x03, 0x00]);
    out.extend(adler32(bytes).to_be_bytes());
    Ok(out)
}

/// Writes stored blocks (RFC 1951, 3.2.4). The stream is at a byte boundary before and after.
fn stored(bytes: &[u8], out: &mut Vec<u8>) {
    for block in bytes.chunks(usize::from(u16::MAX)) {
        // The length fits 16 bits because of `chunks`.
        let len = block.len() as u16;
        out.push(0);
        out.extend(len.to_le_bytes());
        out.extend((!len).to_le_bytes());
        out.extend_from_slice(block);
    }
}

/// Writes compressed blocks, none of which is marked as the last. The flush brings the stream to a byte boundary.
fn deflated(deflate: &mut Compress, bytes: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
    deflate.reset();
    loop {
        let read = deflate.total_in() as usize;
        deflate.compress_vec(&bytes[read..], out, FlushCompress::Sync).map_err(io::Error::other)?;
        // The flush is complete once some room is left after it.
        if deflate.total_in() as usize == bytes.len() && out.len() < out.capacity() {
            return Ok(());
        }
        out.reserve(bytes.len() / 4 + 1024);
    }
}

/// Returns the checksum of RFC 1950: `1 + Σ byte`, and the sum of the partial sums, modulo 65,521.
fn adler32(bytes: &[u8]) -> u32 {
    const MODULUS: u32 = 65_521;
    let (mut low, mut high) = (1u32, 0u32);
    // The largest number of bytes after which `high` still fits 32 bits.
    for part in bytes.chunks(5552) {
        for &byte in part {
            low += u32::from(byte);
            high += low;
        }
        low %= MODULUS;
        high %= MODULUS;
    }
    high << 16 | low
}

/// Returns whether two bytes drawn from `plane` are equal hardly more often than random bytes, 1 in 256 times.
fn looks_random(plane: &[u8]) -> bool {
    let mut counts = [0u64; 256];
    for &byte in plane {
        counts[usize::from(byte)] += 1;
    }
    let equal: u64 = counts.iter().map(|n| n * n).sum();
    // A part has at most 768 KiB, so this is far from overflow.
    equal * RANDOM_ONE_IN < (plane.len() * plane.len()) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_come_back_in_order_and_inflate_to_what_was_sent() {
        let mut compressor = Compressor::new(3, 1).unwrap();
        // Low bytes that look random, high ones that do not; every size of the last block.
        let original = |i: usize| {
            (0..70_000 * (i as u32 % 3) + i as u32)
                .flat_map(|n| (n.wrapping_mul(2_654_435_761) >> 14).to_le_bytes())
                .collect::<Vec<u8>>()
        };
        let mut taken = 0;
        let mut check = |chunk: Chunk| {
            assert_eq!(chunk.index, taken);
            let mut inflated = Vec::new();
            io::Read::read_to_end(&mut flate2::read::ZlibDecoder::new(&chunk.bytes[..]), &mut inflated)
                .unwrap();
            let mut expected = Vec::new();
            shuffle(&original(taken), 4, &mut expected);
            assert_eq!(inflated, expected);
            taken += 1;
        };
        for index in 0..20 {
            compressor.send(Chunk { column: 0, index, element: 4, bytes: original(index) }).unwrap();
            while compressor.full() {
                check(compressor.take().unwrap().unwrap());
            }
        }
        while let Some(chunk) = compressor.take().unwrap() {
            check(chunk);
        }
        assert_eq!(taken, 20);
    }

    #[test]
    #[ignore = "a measurement: DRIFT_CORPUS=FILE cargo test --release --lib levels -- --ignored --nocapture"]
    fn levels() {
        let corpus = std::env::var("DRIFT_CORPUS").unwrap();
        let mut bytes: Vec<u8> = Vec::new();
        let add = &mut |batch: crate::corpus::Batch| {
            let values = batch.conformers.iter().flat_map(|c| c.coordinates.iter().flatten());
            bytes.extend(values.flat_map(|value| value.to_le_bytes()));
            Ok(())
        };
        crate::corpus::read(&[corpus.into()], &Default::default(), &Default::default(), add).unwrap();
        bytes.truncate(crate::corpus::store::layout::CHUNK_BYTES);
        let mut shuffled = Vec::new();
        shuffle(&bytes, 4, &mut shuffled);
        for level in 1..=9 {
            for planes in [1, 4] {
                let mut deflate = Compress::new(Compression::new(level), false);
                let start = std::time::Instant::now();
                let mut size = 0;
                for _ in 0..10 {
                    size = compress(&mut deflate, &shuffled, planes).unwrap().len();
                }
                let rate = bytes.len() as f64 * 10.0 / start.elapsed().as_secs_f64() / 1e6;
                println!(
                    "level {level}, {planes} parts: {:.3}, {rate:.0} MB/s",
                    size as f64 / bytes.len() as f64
                );
            }
        }
    }

    #[test]
    fn shuffle_transposes_bytes() {
        let mut out = Vec::new();
        shuffle(&[1, 2, 3, 4, 5, 6], 2, &mut out);
        assert_eq!(out, [1, 3, 5, 2, 4, 6]);
    }
}
