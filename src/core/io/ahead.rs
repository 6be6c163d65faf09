//! Reads on a separate thread, a few blocks ahead.

use std::io::{self, BufRead, Read};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use crate::job::Job;

const BLOCK: usize = 1 << 20;

/// Reads on a separate thread, a few blocks ahead, so that decompression and parsing overlap. A source that blocks (a pipe, a
/// terminal) cannot block a cancelled job.
pub struct ReadAhead {
    blocks: Receiver<io::Result<Vec<u8>>>,
    job: Job,
    current: Vec<u8>,
    at: usize,
}

/// The interval at which a job that waits for input checks for cancellation.
const PATIENCE: Duration = Duration::from_millis(50);

impl ReadAhead {
    /// Starts the thread, which opens the source. The thread ends at the end of the source, at an error, or when this value is
    /// dropped.
    pub fn new<R: Read>(job: &Job, open: impl FnOnce() -> io::Result<R> + Send + 'static) -> Self {
        // Four blocks are 4 MiB: enough for overlap, and a bound on memory.
        let (send, blocks) = sync_channel(4);
        std::thread::spawn(move || {
            // Sending fails only if the reader was dropped.
            let _ = match open() {
                Ok(inner) => send_blocks(inner, &send),
                Err(error) => send.send(Err(error)).map_err(drop),
            };
        });
        ReadAhead { blocks, job: job.clone(), current: Vec::new(), at: 0 }
    }
}

/// Sends the content of `inner` in blocks, then an empty block or an error.
fn send_blocks(mut inner: impl Read, send: &SyncSender<io::Result<Vec<u8>>>) -> Result<(), ()> {
    loop {
        let mut block = Vec::with_capacity(BLOCK);
        let outcome = inner.by_ref().take(BLOCK as u64).read_to_end(&mut block);
        let is_last = block.is_empty();
        if outcome.is_ok() || !is_last {
            // The bytes before an error are valid.
            send.send(Ok(block)).map_err(drop)?;
        }
        if let Err(error) = outcome {
            return send.send(Err(error)).map_err(drop);
        }
        if is_last {
            return Ok(());
        }
    }
}

impl Read for ReadAhead {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        read_buffered(self, out)
    }
}

/// Implements `Read::read` for a reader that has a buffer.
pub fn read_buffered(reader: &mut impl BufRead, out: &mut [u8]) -> io::Result<usize> {
    let available = reader.fill_buf()?;
    let n = available.len().min(out.len());
    out[..n].copy_from_slice(&available[..n]);
    reader.consume(n);
    Ok(n)
}

impl BufRead for ReadAhead {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        while self.at == self.current.len() {
            // Checked while nothing arrives, too: a pipe may never deliver anything.
            self.job.check().map_err(io::Error::other)?;
            match self.blocks.recv_timeout(PATIENCE) {
                Ok(Ok(block)) if block.is_empty() => return Ok(&[]),
                Ok(Ok(block)) => (self.current, self.at) = (block, 0),
                Ok(Err(error)) => return Err(error),
                Err(RecvTimeoutError::Timeout) => {}
                // The thread has ended: its last block was already read.
                Err(RecvTimeoutError::Disconnected) => return Ok(&[]),
            }
        }
        Ok(&self.current[self.at..])
    }

    fn consume(&mut self, n: usize) {
        self.at += n;
    }
}
