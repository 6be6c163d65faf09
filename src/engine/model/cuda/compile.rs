//! Compiles the kernels with NVRTC for a GPU and loads them into its driver. The result is kept for the next run.
//!
//! The result is machine code (a cubin) and not PTX, because a driver that is older than NVRTC but has the same major version
//! accepts it. candle links NVRTC at build time, so if that library is missing the program does not start at all. Only
//! `libnvrtc-builtins`, which NVRTC opens itself, can be missing here.

// NVRTC and the driver are C libraries; the type system cannot check the memory behind their pointers.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, OsString};
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use candle_core::cuda::cudarc::driver::sys::{CUresult, cuDriverGetVersion};
use candle_core::cuda::cudarc::driver::{CudaContext, CudaModule, DriverError};
use candle_core::cuda::cudarc::nvrtc::result::{self, NvrtcError};
use candle_core::cuda::cudarc::nvrtc::{Ptx, sys};

use super::folder::folder_by;
use super::{KernelShape, without_kernels};
use crate::parameter;
use drift_core::io::{hash_bytes, write_atomic};
use drift_core::{Error, Result};

/// The length of a SHA-256 in hexadecimal, which follows the cubin in a kept file.
const HASH_CHARACTERS: usize = 64;

/// How many of these characters name the file of a compilation.
const NAME_CHARACTERS: usize = 32;

/// Loads the kernels for a model. Also returns their identity, as in [`GpuIdentity::kernels`](super::GpuIdentity).
///
/// # Errors
/// If they cannot be compiled, or the driver does not accept them.
pub(super) fn load(context: &Arc<CudaContext>, shape: KernelShape) -> Result<(Arc<CudaModule>, String)> {
    let place = format!("cuda:{}", context.ordinal());
    let capability = told(&place, "the GPU cannot be used", context.compute_capability())?;
    let compilation = Compilation {
        source: KernelShape::source(),
        options: [vec![architecture(capability), "--std=c++17".into()], shape.options().into()].concat(),
        nvrtc: nvrtc_version()?,
    };
    let file = compilation.file(&|name| std::env::var_os(name));
    let loaded = |cubin: Vec<u8>| {
        let name = hash_bytes("", &cubin).sha256[..NAME_CHARACTERS].to_owned();
        context.load_module(Ptx::from_binary(cubin)).map(|module| (module, name))
    };
    // If the driver does not accept a kept file, the kernels are compiled again.
    let kept = file.as_deref().and_then(kept);
    if let Some(module) = kept.and_then(|cubin| loaded(cubin).ok()) {
        return Ok(module);
    }
    let cubin = compilation.run_once()?;
    let module = loaded(cubin.clone()).map_err(|error| not_taken(&place, &compilation.version(), error))?;
    if let Some(file) = file {
        keep(&file, &cubin);
    }
    Ok(module)
}

/// Turns an error of the driver into drift's error. The failure of a kernel on the GPU is reported by some later call.
pub(super) fn told<T>(place: &str, what: impl Display, done: Result<T, DriverError>) -> Result<T> {
    told_with(place, what, done, without_kernels())
}

/// Like [`told`], with another remedy.
pub(super) fn told_with<T>(
    place: &str,
    what: impl Display,
    done: Result<T, DriverError>,
    remedy: String,
) -> Result<T> {
    done.map_err(|error| Error::input(place, format!("{what}: {}", said(error)), remedy))
}

/// Returns the name and description of an error of the driver.
pub(super) fn said(error: DriverError) -> String {
    let text = |text: Result<&CStr, DriverError>| text.map(|text| text.to_string_lossy().into_owned()).ok();
    match (text(error.error_name()), text(error.error_string())) {
        (Some(name), Some(words)) => format!("{name} ({words})"),
        (Some(name), None) => name,
        (None, _) => format!("{:?}", error.0),
    }
}

/// Returns the compiler option for a compute capability. On Hopper it is `sm_90a`, which the tests compile too.
fn architecture((major, minor): (i32, i32)) -> String {
    let suffix = if (major, minor) == (9, 0) { "a" } else { "" };
    format!("--gpu-architecture=sm_{major}{minor}{suffix}")
}

/// Returns the major and minor version of NVRTC.
fn nvrtc_version() -> Result<(i32, i32)> {
    let (mut major, mut minor) = (0, 0);
    // SAFETY: NVRTC writes one number to each address.
    let found = unsafe { sys::nvrtcVersion(&mut major, &mut minor) }.result();
    found.map_err(|error| Error::input("NVRTC", format!("{:?}", error.0), without_kernels()))?;
    Ok((major, minor))
}

/// Returns the newest CUDA version that the driver supports.
pub(super) fn driver_version() -> String {
    let mut version = 0;
    // SAFETY: the driver writes one number to this address.
    match unsafe { cuDriverGetVersion(&mut version) }.result() {
        Ok(()) => format!("{}.{}", version / 1000, version % 1000 / 10),
        Err(error) => said(error),
    }
}

/// Returns the error for kernels that the driver refused.
fn not_taken(place: &str, nvrtc: &str, error: DriverError) -> Error {
    if error.0 == CUresult::CUDA_ERROR_OUT_OF_MEMORY {
        let problem = format!("{place} has no room for the kernels");
        return Error::parameter(parameter::BATCH, problem, "give fewer rows");
    }
    let problem = format!(
        "{nvrtc} compiled kernels that the driver, of CUDA {}, does not take: {}",
        driver_version(),
        said(error)
    );
    let remedy =
        format!("install the libnvrtc of the driver's version, or a newer driver, or {}", without_kernels());
    Error::input(place, problem, remedy)
}

/// The source, options and compiler version of a compilation.
#[derive(Clone, PartialEq, Eq)]
struct Compilation {
    source: String,
    options: Vec<String>,
    nvrtc: (i32, i32),
}

impl Compilation {
    fn version(&self) -> String {
        format!("NVRTC {}.{}", self.nvrtc.0, self.nvrtc.1)
    }

    /// Returns the file that keeps the result, if the user has a cache folder.
    fn file(&self, variable: &dyn Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
        let folder = folder_by(variable)?;
        let all = format!("{}\0{}\0{}", self.version(), self.options.join("\0"), self.source);
        let hash = hash_bytes("", all.as_bytes()).sha256;
        Some(folder.join("kernels").join(format!("{}.cubin", &hash[..NAME_CHARACTERS])))
    }

    /// Returns the cubin, compiled only once in this process, because both the self-check and the run after it start the device.
    fn run_once(&self) -> Result<Vec<u8>> {
        static COMPILED: Mutex<Vec<(Compilation, Vec<u8>)>> = Mutex::new(Vec::new());
        // If a thread panicked, the list that it left is still complete.
        let mut compiled = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, cubin)) = compiled.iter().find(|(known, _)| known == self) {
            return Ok(cubin.clone());
        }
        let cubin = self.run()?;
        compiled.push((self.clone(), cubin.clone()));
        Ok(cubin)
    }

    /// Compiles and returns the cubin.
    fn run(&self) -> Result<Vec<u8>> {
        let source = CString::new(self.source.as_str());
        let source =
            source.map_err(|_| Error::internal("the kernels", "their source contains a NUL byte"))?;
        let program = Program::new(source).map_err(|error| self.failed(error, ""))?;
        program.compile(&self.options).map_err(|error| self.failed(error, &program.log()))?;
        program.cubin().map_err(|error| self.failed(error, ""))
    }

    /// Returns the error for a failed compilation, with the first line of the compiler's log that contains an error.
    fn failed(&self, error: NvrtcError, log: &str) -> Error {
        let mut lines = log.lines().filter(|line| !line.trim().is_empty());
        let line = lines.clone().find(|line| line.contains("error")).or_else(|| lines.next());
        let problem = match line {
            Some(line) => format!("{:?}: {}", error.0, line.trim()),
            None => format!("{:?}", error.0),
        };
        let cause = match error.0 {
            // This NVRTC does not know the architecture, which is newer.
            sys::nvrtcResult::NVRTC_ERROR_INVALID_OPTION => "install a newer libnvrtc, or ",
            sys::nvrtcResult::NVRTC_ERROR_BUILTIN_OPERATION_FAILURE => {
                "install the libnvrtc-builtins of this version beside libnvrtc, or "
            }
            _ => "",
        };
        Error::input(self.version(), problem, format!("{cause}{}", without_kernels()))
    }
}

/// An NVRTC program.
struct Program {
    handle: sys::nvrtcProgram,
    /// Kept because NVRTC may read it as long as the program exists.
    _source: CString,
}

impl Program {
    fn new(source: CString) -> Result<Self, NvrtcError> {
        let handle = result::create_program(&source, Some(c"drift.cu"))?;
        Ok(Program { handle, _source: source })
    }

    fn compile(&self, options: &[String]) -> Result<(), NvrtcError> {
        // SAFETY: the program exists until `self` is dropped.
        unsafe { result::compile_program(self.handle, options) }
    }

    /// Returns the compiler's log; empty if it cannot be read.
    fn log(&self) -> String {
        // SAFETY: the program exists until `self` is dropped.
        let log = unsafe { result::get_program_log(self.handle) }.unwrap_or_default();
        // The C type `char` is signed on some machines.
        let log: Vec<u8> =
            log.iter().map(|byte| byte.to_ne_bytes()[0]).take_while(|byte| *byte != 0).collect();
        String::from_utf8_lossy(&log).into_owned()
    }

    /// Returns the machine code, after the compilation.
    fn cubin(&self) -> Result<Vec<u8>, NvrtcError> {
        let mut bytes = 0;
        // SAFETY: the program exists until `self` is dropped, and NVRTC writes one number.
        unsafe { sys::nvrtcGetCUBINSize(self.handle, &mut bytes) }.result()?;
        let mut cubin = vec![0u8; bytes];
        // SAFETY: as above, and the buffer has the size that NVRTC reported.
        unsafe { sys::nvrtcGetCUBIN(self.handle, cubin.as_mut_ptr().cast()) }.result()?;
        Ok(cubin)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // SAFETY: nothing uses the program any more. An error cannot be reported here.
        let _ = unsafe { result::destroy_program(self.handle) };
    }
}

/// Returns the cubin of a kept file, if it is intact. The driver is not told its length, so a truncated or modified cubin must not reach
/// it.
fn kept(file: &Path) -> Option<Vec<u8>> {
    let mut cubin = std::fs::read(file).ok()?;
    let hash = cubin.split_off(cubin.len().checked_sub(HASH_CHARACTERS)?);
    (hash_bytes("", &cubin).sha256.as_bytes() == hash).then_some(cubin)
}

/// Keeps a cubin, followed by its hash. If that fails, the next run compiles again.
fn keep(file: &Path, cubin: &[u8]) {
    let made = file.parent().is_some_and(|folder| std::fs::create_dir_all(folder).is_ok());
    if made {
        let _ = write_atomic(file, &[cubin, hash_bytes("", cubin).sha256.as_bytes()].concat());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compilation() -> Compilation {
        let shape = KernelShape { bf16: true, head_dim: 128, group: 2 };
        let options = [vec![architecture((9, 0)), "--std=c++17".into()], shape.options().into()].concat();
        Compilation { source: KernelShape::source(), options, nvrtc: (13, 0) }
    }

    #[test]
    fn what_was_kept_is_taken_only_whole() {
        let folder = tempfile::tempdir().unwrap();
        let variable = |name: &str| (name == "XDG_CACHE_HOME").then(|| folder.path().into());
        let file = compilation().file(&variable).unwrap();
        assert_eq!(kept(&file), None);
        keep(&file, b"cubin");
        assert_eq!(kept(&file).unwrap(), b"cubin");
        let other = Compilation { nvrtc: (13, 1), ..compilation() };
        assert_ne!(other.file(&variable).unwrap(), file);
        let whole = std::fs::read(&file).unwrap();
        for changed in [&whole[..whole.len() - 1], &whole[1..], b"", b"cubin"] {
            std::fs::write(&file, changed).unwrap();
            assert_eq!(kept(&file), None);
        }
    }

    #[test]
    fn files_lie_in_the_cache_of_the_user() {
        let home = |name: &str| (name == "HOME").then(|| "/home/u".into());
        let file = compilation().file(&home).unwrap();
        assert!(file.starts_with("/home/u/.cache/drift/kernels") && file.extension().unwrap() == "cubin");
        assert_eq!(compilation().file(&|_| None), None);
        assert_eq!(compilation().file(&|_| Some("relative".into())), None);
    }

    #[test]
    fn architectures_are_those_that_the_tests_compile_for() {
        let options = [(8, 0), (9, 0), (10, 0)].map(architecture);
        assert_eq!(
            options.map(|option| option.split_once('=').unwrap().1.to_owned()),
            ["sm_80", "sm_90a", "sm_100"]
        );
    }
}
