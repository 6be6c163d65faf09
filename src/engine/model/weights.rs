//! Weights by name: from the safetensors of a checkpoint, or drawn at random for a shape without one.

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
use drift_core::error::{Error, Result, excerpt};
use drift_core::io::{file_name, hex};
use drift_core::job::InputHash;

/// Standard deviation of transformers' initial weights.
const INITIAL_DEVIATION: f32 = 0.02;

/// Numbers that one thread draws, one after the other.
const DRAWN_TOGETHER: usize = 1 << 16;

/// Bytes of a file that are read at once: whole numbers of any type, and few enough to stay in a cache.
const READ_TOGETHER: usize = 1 << 20;

/// How names end of the frequencies of rotary embeddings, which old checkpoints store.
const FREQUENCIES: &str = "rotary_emb.inv_freq";

/// Where weights come from.
pub(super) struct Weights {
    place: PathBuf,
    source: Source,
    /// The files that were read.
    files: Vec<InputHash>,
    device: Device,
    dtype: DType,
}

enum Source {
    /// Tensors that nobody took yet, by name.
    Files(HashMap<String, Tensor>),
    Random {
        seed: u64,
        /// Matrices that were drawn.
        drawn: u64,
    },
}

impl Weights {
    /// Reads `DIR/model.safetensors`, or the shards that `DIR/model.safetensors.index.json` lists, as `dtype`.
    ///
    /// # Errors
    /// If a file is missing or broken, or holds a number that is not finite.
    pub(super) fn load(dir: &Path, device: &Device, dtype: DType) -> Result<Self> {
        let mut tensors = HashMap::new();
        let read = |file: PathBuf| read_file(&file, device, dtype, &mut tensors);
        let files = weight_files(dir)?.into_iter().map(read).collect::<Result<_>>()?;
        let source = Source::Files(tensors);
        Ok(Weights { place: dir.to_owned(), source, files, device: device.clone(), dtype })
    }

    /// Weights as transformers initialises them, but uniform: norms 1, all else of deviation 0.02.
    pub(super) fn random(seed: u64, device: &Device, dtype: DType) -> Self {
        let source = Source::Random { seed, drawn: 0 };
        Weights { place: "random weights".into(), source, files: Vec::new(), device: device.clone(), dtype }
    }

    /// A matrix `[out, in]`.
    ///
    /// # Errors
    /// If there is none of this name, or of another shape.
    pub(super) fn matrix(&mut self, name: &str, rows: usize, columns: usize) -> Result<Tensor> {
        if let Source::Random { seed, drawn } = &mut self.source {
            let numbers = draw(*seed, *drawn, rows * columns);
            *drawn += 1;
            let tensor = Tensor::from_vec(numbers, (rows, columns), &Device::Cpu).map_err(failed)?;
            return tensor.to_dtype(self.dtype).and_then(|t| t.to_device(&self.device)).map_err(failed);
        }
        self.take(name, &[rows, columns])
    }

    /// The weight of a norm.
    ///
    /// # Errors
    /// If there is none of this name, or it is not `[size]`.
    pub(super) fn norm(&mut self, name: &str, size: usize) -> Result<Tensor> {
        // All but products of matrices is computed in f32 on the CPU.
        let dtype = if self.device.is_cpu() { DType::F32 } else { self.dtype };
        match self.source {
            Source::Random { .. } => Tensor::ones(size, dtype, &self.device).map_err(failed),
            Source::Files(_) => self.take(name, &[size])?.to_dtype(dtype).map_err(failed),
        }
    }

    /// A tensor of files.
    ///
    /// # Errors
    /// If there is none of this name, or of another shape.
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
        Ok(tensor)
    }

    /// All of them, by name, and the files that they are from.
    pub(super) fn into_tensors(self) -> (HashMap<String, Tensor>, Vec<InputHash>) {
        match self.source {
            Source::Files(tensors) => (tensors, self.files),
            Source::Random { .. } => (HashMap::new(), self.files),
        }
    }

    /// To be called when every weight was taken; the files that they are from.
    ///
    /// # Errors
    /// If one is left that is not known to be redundant.
    pub(super) fn finish(self) -> Result<Vec<InputHash>> {
        let Source::Files(tensors) = &self.source else { return Ok(self.files) };
        // Tied checkpoints may store the embedding twice.
        let redundant = |name: &String| name.ends_with(FREQUENCIES) || name == "lm_head.weight";
        match tensors.keys().filter(|name| !redundant(name)).min() {
            None => Ok(self.files),
            Some(name) => {
                let problem = format!("the weights contain `{name}`, which config.json does not describe");
                Err(Error::input(self.place.display(), problem, "they belong to two models"))
            }
        }
    }
}

/// The numbers of a random matrix, the same whatever the number of threads: each part has a stream of its own.
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

/// The safetensors files of a checkpoint.
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

/// Adds the tensors of one file, read a part at a time, so that memory holds nothing beside them; its hash.
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
    // The header is read again to be hashed: the hash is of the whole file.
    reader.parts(header.data_start as usize, |_, _| Ok(()))?;
    for (name, info) in header.in_order() {
        let tensor = reader.tensor(&name, info, (device, dtype))?;
        tensors.extend(tensor.map(|tensor| (name, tensor)));
    }
    let sha256 = hex(&reader.hasher.finalize());
    Ok(InputHash { name: file_name(path), bytes: header.file_bytes(), sha256 })
}

/// A file of weights, read from its beginning to its end.
struct Reader<'p> {
    path: &'p Path,
    file: File,
    hasher: Sha256,
    part: Vec<u8>,
}

impl Reader<'_> {
    /// The next tensor; none if it is of no use.
    fn tensor(
        &mut self,
        name: &str,
        info: &TensorInfo,
        (device, dtype): (&Device, DType),
    ) -> Result<Option<Tensor>> {
        let (start, end) = info.data_offsets;
        if name.ends_with(FREQUENCIES) {
            // Read over and hashed like the rest, though its numbers are computed here.
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

    /// Reads so many bytes and gives `take` each part of them, after where it begins, while it is hashed.
    fn parts(&mut self, count: usize, mut take: impl FnMut(usize, &[u8]) -> Result<()> + Send) -> Result<()> {
        for start in (0..count).step_by(READ_TOGETHER) {
            self.part.resize(READ_TOGETHER.min(count - start), 0);
            self.file.read_exact(&mut self.part).map_err(|e| Error::io(self.path, e))?;
            let (part, hasher) = (&self.part, &mut self.hasher);
            // Neither needs the other, so that a part is hashed while it is converted.
            rayon::join(|| hasher.update(part), || take(start, part)).1?;
        }
        Ok(())
    }
}

/// Numbers in the type that they are kept in: f32, or bf16.
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

    /// Adds numbers of a file, each rounded to the nearest.
    fn extend(&mut self, float: Float, bytes: &[u8]) {
        match self {
            // Copied bit for bit, without a way through f32.
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

/// The first number whose exponent bits are all ones: infinite, or not a number.
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
