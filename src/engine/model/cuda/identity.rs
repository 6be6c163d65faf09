//! The identity of a GPU, its driver and the compiled kernels.

use std::sync::Arc;

use candle_core::cuda::cudarc::driver::CudaContext;

use super::GpuIdentity;
use super::compile::{driver_version, said};

/// The file in which NVIDIA's Linux driver reports its version.
const DRIVER_FILE: &str = "/proc/driver/nvidia/version";

/// Returns the combination for which a verdict on these kernels is valid. If the driver does not report a name, the identity contains the
/// error instead, so the verdict is valid only for the same error.
pub(super) fn identity_of(
    context: &Arc<CudaContext>,
    (major, minor): (i32, i32),
    kernels: String,
) -> GpuIdentity {
    let name = context.name().unwrap_or_else(|error| format!("unknown ({})", said(error)));
    let own = std::fs::read_to_string(DRIVER_FILE).ok().and_then(|text| own_version(&text));
    let own = own.map_or_else(String::new, |own| format!(", driver {own}"));
    GpuIdentity {
        gpu: format!("{name}, {major}.{minor}"),
        driver: format!("CUDA {}{own}", driver_version()),
        kernels,
    }
}

/// Returns the version in the first line of the driver's file: `NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06  Sun …`.
fn own_version(text: &str) -> Option<String> {
    let is_version = |word: &&str| {
        word.contains('.') && word.chars().all(|character| character.is_ascii_digit() || character == '.')
    };
    text.lines().next()?.split_whitespace().find(is_version).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_in_the_line_of_the_module() {
        let line = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build\nGCC version: 12";
        assert_eq!(own_version(line).as_deref(), Some("580.65.06"));
        assert_eq!((own_version(""), own_version("NVRM")), (None, None));
    }
}
