//! Weights by name, from the safetensors of a checkpoint, or random for a shape without a checkpoint.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use candle_core::{DType, Device, Tensor};
use half::bf16;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use safetensors::tensor::TensorInfo;
use sha2::{Digest, Sha256};

use super::failed;
use drift_core::checkpoint::{Float, Header, ModelFolder, WeightFiles};
use drift_core::error::excerpt;
use drift_core::io::{file_name, hex};
use drift_core::job::InputHash;
use drift_core::{Error, Result};

/// The standard deviation of the initial weights in transformers.
const INITIAL_DEVIATION: f32 = 0.02;

/// How many numbers one thread draws in sequence.
const DRAWN_TOGETHER: usize = 1 << 16;

/// How many bytes of a file are read at once: a multiple of the size of every type, and small enough for a CPU cache.
const READ_TOGETHER: usize = 1 << 20;

/// The end of the names of rotary frequencies, which old checkpoints store.
const FREQUENCIES: &str = "rotary_emb.inv_freq";

/// The name of the embedding.
pub(super) const EMBEDDING: &str = "model.embed_tokens.weight";

/// The name of the LM head.
pub(super) const HEAD: &str = "lm_head.weight";

/// A source of weights.
pub(super) struct Weights {
    place: PathBuf,
    source: Source,
    /// The files that were read.
    files: Vec<InputHash>,
    /// The embedding, once it was taken from files that also have an LM head.
    embedding: Option<Tensor>,
    device: Device,
    dtype: DType,
}

enum Source {
    /// The tensors that were not taken yet, by name.
    Files(HashMap<String, Tensor>),
    Random {
        seed: u64,
        /// The number of matrices drawn so far.
        drawn: u64,
    },
}

impl Weights {
    /// Reads `DIR/model.safetensors`, or the shards listed in `DIR/model.safetensors.index.json`, as `dtype`.
    ///
    /// # Errors
    /// If a file is missing or broken, or holds a number that is not finite.
    pub(super) fn load(dir: &Path, device: &Device, dtype: DType) -> Result<Self> {
        let mut tensors = HashMap::new();
        let read = |file: PathBuf| read_file(&file, device, dtype, &mut tensors);
        let files = weight_files(dir)?.into_iter().map(read).collect::<Result<_>>()?;
        let source = Source::Files(tensors);
        Ok(Weights { place: dir.to_owned(), source, files, embedding: None, device: device.clone(), dtype })
    }

    /// Weights with the standard deviations of transformers' initialisation, but uniformly distributed: norms are 1, all other
    /// weights have the standard deviation 0.02.
    pub(super) fn random(seed: u64, device: &Device, dtype: DType) -> Self {
        let source = Source::Random { seed, drawn: 0 };
        let (place, files) = ("random weights".into(), Vec::new());
        Weights { place, source, files, embedding: None, device: device.clone(), dtype }
    }

    /// Takes a matrix `[out, in]`.
    ///
    /// # Errors
    /// If no tensor has this name, or it has another shape.
    pub(super) fn matrix(&mut self, name: &str, rows: usize, columns: usize) -> Result<Tensor> {
        if let Source::Random { seed, drawn } = &mut self.source {
            let numbers = draw(*seed, *drawn, rows * columns);
            *drawn += 1;
            let tensor = Tensor::from_vec(numbers, (rows, columns), &Device::Cpu).map_err(failed)?;
            return tensor.to_dtype(self.dtype).and_then(|t| t.to_device(&self.device)).map_err(failed);
        }
        self.take(name, &[rows, columns])
    }

    /// Takes the weight of a norm.
    ///
    /// # Errors
    /// If no tensor has this name, or its shape is not `[size]`.
    pub(super) fn norm(&mut self, name: &str, size: usize) -> Result<Tensor> {
        // On the CPU everything except matrix products is computed in f32.
        let dtype = if self.device.is_cpu() { DType::F32 } else { self.dtype };
        match self.source {
            Source::Random { .. } => Tensor::ones(size, dtype, &self.device).map_err(failed),
            Source::Files(_) => self.take(name, &[size])?.to_dtype(dtype).map_err(failed),
        }
    }

    /// Takes a tensor of the files.
    ///
    /// # Errors
    /// If no tensor has this name, or it has another shape.
    pub(super) fn take(&mut self, name: &str, shape: &[usize]) -> Result<Tensor> {
        let Source::Files(tensors) = &mut self.source else { unreachable!("random weights have no names") };
        let Some(tensor) = tensors.remove(name) else {
            let problem = format!("the weights have no `{name}`");
            return Err(Error::input(self.place.display(), problem, "config.json belongs to another model"));
        };
        if tensor.dims() != shape {
            let problem =
                format!("`{name}` is {:?} in the weights and {shape:?} by config.json", tensor.dims());
            return Err(Error::input(self.place.display(), problem, "they belong to two models"));
        }
        if name == EMBEDDING && tensors.contains_key(HEAD) {
            self.embedding = Some(tensor.clone());
        }
        Ok(tensor)
    }

    /// Returns the files of the weights. To be called when every weight was taken.
    ///
    /// # Errors
    /// If a tensor is left that is not known to be redundant, or the LM head of tied embeddings is another matrix.
    pub(super) fn finish(self) -> Result<Vec<InputHash>> {
        let Source::Files(tensors) = &self.source else { return Ok(self.files) };
        // Checkpoints with tied embeddings may store the embedding twice.
        if let (Some(head), Some(embedding)) = (tensors.get(HEAD), &self.embedding)
            && !is_same(head, embedding).map_err(failed)?
        {
            let problem = format!("`{HEAD}` differs from the embedding, and config.json ties them");
            return Err(Error::input(self.place.display(), problem, UNTIE));
        }
        let redundant = |name: &String| name.ends_with(FREQUENCIES) || name == HEAD;
        match tensors.keys().filter(|name| !redundant(name)).min() {
            None => Ok(self.files),
            Some(name) => {
                let problem = format!("the weights contain `{name}`, which config.json does not describe");
                Err(Error::input(self.place.display(), problem, "they belong to two models"))
            }
        }
    }
}

/// The remedy where a tied model stores a head of its own. transformers 4 generates with the embedding, transformers 5 with the head.
const UNTIE: &str =
    "set tie_word_embeddings to false, or remove the tensor, whichever the model was trained with";

/// Returns whether two matrices are equal.
fn is_same(one: &Tensor, other: &Tensor) -> candle_core::Result<bool> {
    Ok(one.dims() == other.dims() && one.ne(other)?.flatten_all()?.max(0)?.to_scalar::<u8>()? == 0)
}

/// Returns the numbers of a random matrix. Each part has its own random stream, so the numbers do not depend on the number of threads.
fn draw(seed: u64, matrix: u64, count: usize) -> Vec<f32> {
    // A uniform draw between ±a has the standard deviation a/√3.
    let most = INITIAL_DEVIATION * 3f32.sqrt();
    let mut numbers = vec![0f32; count];
    numbers.par_chunks_mut(DRAWN_TOGETHER).enumerate().for_each(|(part, numbers)| {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        random.set_stream(matrix << 32 | part as u64);
        numbers.fill_with(|| random.random_range(-most..most));
    });
    numbers
}

/// Returns the safetensors files of a checkpoint.
fn weight_files(dir: &Path) -> Result<Vec<PathBuf>> {
    let file = ModelFolder::new(dir).needed_weights()?;
    let weights = WeightFiles::find(&file, "give the index that came with the shards")?;
    let paths = weights.files();
    match paths.iter().find(|path| !path.is_file()) {
        Some(missing) => {
            let name = missing.file_name().unwrap_or_default();
            let problem = format!("lists {}, which is missing", excerpt(name.as_encoded_bytes()));
            Err(Error::input(file.display(), problem, "fetch it"))
        }
        None => Ok(paths.into_iter().map(Path::to_owned).collect()),
    }
}

/// Reads the tensors of one file part by part into `tensors`, so that no second copy of the file is in memory. Returns the file's
/// hash.
fn read_file(
    path: &Path,
    device: &Device,
    dtype: DType,
    tensors: &mut HashMap<String, Tensor>,
) -> Result<InputHash> {
    let header = Header::read(path)?;
    let mut reader = Reader {
        path,
        file: File::open(path).map_err(|e| Error::io(path, e))?,
        hasher: Sha256::new(),
        part: Vec::new(),
    };
    // Reads the header a second time, because the hash covers the whole file.
    reader.parts(header.data_start as usize, |_, _| Ok(()))?;
    for (name, info) in header.in_order() {
        let tensor = reader.tensor(&name, info, (device, dtype))?;
        tensors.extend(tensor.map(|tensor| (name, tensor)));
    }
    let sha256 = hex(&reader.hasher.finalize());
    Ok(InputHash { name: file_name(path), bytes: header.file_bytes(), sha256 })
}

/// A file of weights that is read from the beginning to the end.
struct Reader<'p> {
    path: &'p Path,
    file: File,
    hasher: Sha256,
    part: Vec<u8>,
}

impl Reader<'_> {
    /// Returns the next tensor; `None` if drift does not need it.
    fn tensor(
        &mut self,
        name: &str,
        info: &TensorInfo,
        (device, dtype): (&Device, DType),
    ) -> Result<Option<Tensor>> {
        let (start, end) = info.data_offsets;
        if name.ends_with(FREQUENCIES) {
            // These bytes are read and hashed like the others, although drift computes the frequencies itself.
            self.parts(end - start, |_, _| Ok(()))?;
            return Ok(None);
        }
        let Some(float) = Float::from_dtype(info.dtype) else {
            let problem = format!("`{name}` is stored as {:?}", info.dtype);
            return Err(Error::input(self.path.display(), problem, "drift reads F32, F16 and BF16"));
        };
        let path = self.path;
        let mut numbers = Numbers::with_capacity(dtype, (end - start) / float.bytes());
        self.parts(end - start, |at, bytes| {
            if let Some(place) = first_not_finite(float, bytes) {
                let problem = format!("number {} of `{name}` is not finite", at / float.bytes() + place);
                return Err(Error::input(path.display(), problem, "the checkpoint is broken"));
            }
            numbers.extend(float, bytes);
            Ok(())
        })?;
        let tensor = numbers.into_tensor(&info.shape);
        tensor.and_then(|tensor| tensor.to_device(device)).map_err(failed).map(Some)
    }

    /// Reads `count` bytes and passes each part with its offset to `take`. Each part is hashed at the same time.
    fn parts(&mut self, count: usize, mut take: impl FnMut(usize, &[u8]) -> Result<()> + Send) -> Result<()> {
        for start in (0..count).step_by(READ_TOGETHER) {
            self.part.resize(READ_TOGETHER.min(count - start), 0);
            self.file.read_exact(&mut self.part).map_err(|e| Error::io(self.path, e))?;
            let (part, hasher) = (&self.part, &mut self.hasher);
            // Hashing and converting a part are independent, so they run in parallel.
            rayon::join(|| hasher.update(part), || take(start, part)).1?;
        }
        Ok(())
    }
}

/// Numbers in the type of the tensor: f32 or bf16.
enum Numbers {
    F32(Vec<f32>),
    Bf16(Vec<bf16>),
}

impl Numbers {
    fn with_capacity(dtype: DType, count: usize) -> Self {
        match dtype {
            DType::BF16 => Numbers::Bf16(Vec::with_capacity(count)),
            _ => Numbers::F32(Vec::with_capacity(count)),
        }
    }

    /// Appends numbers of a file, each rounded to the nearest value of the type.
    fn extend(&mut self, float: Float, bytes: &[u8]) {
        match self {
            // Copied bit by bit, without a conversion to f32.
            Numbers::Bf16(numbers) if float == Float::Bf16 => {
                numbers.extend(bytes.chunks_exact(2).map(|b| bf16::from_le_bytes([b[0], b[1]])));
            }
            Numbers::Bf16(numbers) => numbers.extend(float.read(bytes).into_iter().map(bf16::from_f32)),
            Numbers::F32(numbers) => numbers.extend(float.read(bytes)),
        }
    }

    fn into_tensor(self, shape: &[usize]) -> candle_core::Result<Tensor> {
        match self {
            Numbers::F32(numbers) => Tensor::from_vec(numbers, shape, &Device::Cpu),
            Numbers::Bf16(numbers) => Tensor::from_vec(numbers, shape, &Device::Cpu),
        }
    }
}

/// Returns the index of the first number whose exponent bits are all ones: an infinity or a NaN.
fn first_not_finite(float: Float, bytes: &[u8]) -> Option<usize> {
    let halves = |mask: u16| {
        let mut numbers = bytes.chunks_exact(2).map(|b| u16::from_le_bytes([b[0], b[1]]));
        numbers.position(|bits| bits & mask == mask)
    };
    match float {
        Float::Bf16 => halves(0x7f80),
        Float::F16 => halves(0x7c00),
        Float::F32 => {
            let mut numbers = bytes.chunks_exact(4);
            numbers.position(|b| !f32::from_le_bytes([b[0], b[1], b[2], b[3]]).is_finite())
        }
    }
}
