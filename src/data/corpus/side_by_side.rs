//! Reads small pickles in parallel: GEOM's `rdkit_folder` has hundreds of thousands of them.

use std::fs::File;
use std::io::Read;

use rayon::prelude::*;

use super::damage::read_error;
use super::walk::InputFile;
use super::{Batch, Context, pickles};
use drift_core::Result;
use drift_core::io;
use drift_core::job::InputHash;

/// The largest file, in bytes, that is read in parallel with others.
const MAX_BYTES: u64 = 4 << 20;

/// The number of files per thread that are read together.
const FILES_A_THREAD: usize = 8;

/// The result of reading a file; `None` for a file that must be read on its own.
type Outcome = Option<Result<(InputHash, Vec<Batch>)>>;

/// Splits the files, in order, into runs: consecutive small files together, each other file on its own.
pub(super) fn runs(files: &[InputFile]) -> impl Iterator<Item = &[InputFile]> {
    let together = FILES_A_THREAD * rayon::current_num_threads();
    let small = |file: &InputFile| file.regular && file.bytes <= MAX_BYTES;
    files.chunk_by(move |a, b| small(a) && small(b)).flat_map(move |run| run.chunks(together))
}

/// Reads those of the files that are uncompressed pickles of protocol 2 and above; returns one outcome per file.
pub(super) fn read(run: &[InputFile], context: Context<'_>) -> Vec<Outcome> {
    // Where rows are needed, the ordinary reader refuses each file that has none.
    let needs_rows = !context.options.rows.is_empty() || context.options.needs.bytes_for.is_some();
    if run.len() < 2 || needs_rows {
        return run.iter().map(|_| None).collect();
    }
    run.par_iter().map(|file| is_pickle(file).then(|| read_one(file, context))).collect()
}

/// Decides by the first bytes. A file that cannot be opened is not a pickle here, so that the ordinary reader reports the error.
fn is_pickle(file: &InputFile) -> bool {
    let mut start = [0; 2];
    let read = File::open(&file.path).and_then(|mut opened| opened.read_exact(&mut start));
    read.is_ok() && matches!(start, [0x80, 2..=5])
}

fn read_one(file: &InputFile, context: Context<'_>) -> Result<(InputHash, Vec<Batch>)> {
    let place = file.place();
    let whole =
        io::read_small(&file.path, MAX_BYTES, file.name(), context.job).map_err(|e| read_error(&place, e))?;
    let (mut batches, name) = (Vec::new(), place.as_str().into());
    pickles::read(&whole.bytes, &place, context, &mut |batch| {
        batches.push(batch.of_file(&name));
        Ok(())
    })?;
    Ok((whole.source, batches))
}
