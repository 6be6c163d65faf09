//! Chunks compressed on several threads and handed back in the order in which they came, so that the file's bytes do
//! not depend on the number of threads.
//!
//! The threads are the store's own: a rayon task that waits for another one can deadlock a pool of one thread.

use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use flate2::{Compress, Compression, FlushCompress, Status};

/// Chunks in flight per thread: one at work, one waiting.
const AHEAD: usize = 2;

/// One chunk of one dataset: whole rows, padded to the chunk's size.
pub(super) struct Chunk {
    /// Which dataset.
    pub column: usize,
    /// Which chunk of it.
    pub index: usize,
    /// Bytes of an element, for shuffle.
    pub element: usize,
    /// The bytes; compressed once they come back.
    pub bytes: Vec<u8>,
}

struct Worker {
    jobs: Sender<Chunk>,
    done: Receiver<Chunk>,
}

/// The threads. Job `i` goes to thread `i mod n` and is taken back from there.
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
    pub fn new(threads: usize, level: u32) -> io::Result<Self> {
        let workers = (0..threads.max(1)).map(|_| worker(level)).collect::<io::Result<_>>()?;
        Ok(Compressor { workers, sent: 0, taken: 0 })
    }

    /// Hands a chunk over. The caller takes chunks back with [`take`](Self::take) while [`full`](Self::full).
    ///
    /// # Errors
    /// If the thread is gone, which only a panic inside it could cause.
    pub fn send(&mut self, chunk: Chunk) -> io::Result<()> {
        let worker = &self.workers[self.sent % self.workers.len()];
        worker.jobs.send(chunk).map_err(|_| gone())?;
        self.sent += 1;
        Ok(())
    }

    /// Whether as many chunks are in flight as may be; this is what bounds the memory.
    pub fn full(&self) -> bool {
        self.sent - self.taken >= AHEAD * self.workers.len()
    }

    /// The next chunk, compressed; waits for it. `None` if none is in flight.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub fn take(&mut self) -> io::Result<Option<Chunk>> {
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
        let mut deflate = Compress::new(Compression::new(level), true);
        let mut shuffled = Vec::new();
        for mut chunk in inbox {
            shuffle(&chunk.bytes, chunk.element, &mut shuffled);
            let Ok(bytes) = compress(&mut deflate, &shuffled) else { return };
            chunk.bytes = bytes;
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
        out.extend(bytes.iter().skip(place).step_by(element));
    }
}

/// One zlib stream, as HDF5's deflate filter stores it.
fn compress(deflate: &mut Compress, bytes: &[u8]) -> io::Result<Vec<u8>> {
    deflate.reset();
    let mut out = Vec::with_capacity(bytes.len() / 2 + 1024);
    loop {
        let read = deflate.total_in() as usize;
        let status = deflate
            .compress_vec(&bytes[read..], &mut out, FlushCompress::Finish)
            .map_err(io::Error::other)?;
        match status {
            Status::StreamEnd => return Ok(out),
            // The output is full.
            _ => out.reserve(bytes.len() / 4 + 1024),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_come_back_in_order_and_inflate_to_what_was_sent() {
        let mut compressor = Compressor::new(3, 1).unwrap();
        let original = |i: usize| (0..4000u32).map(|n| (n * 7 + i as u32) as u8).collect::<Vec<_>>();
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
    fn shuffle_transposes_bytes() {
        let mut out = Vec::new();
        shuffle(&[1, 2, 3, 4, 5, 6], 2, &mut out);
        assert_eq!(out, [1, 3, 5, 2, 4, 6]);
    }
}
