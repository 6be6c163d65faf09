//! The NVIDIA libraries that a drift built with CUDA needs, and which of them this machine has. Nothing is loaded here: a drift
//! that was built with CUDA does not start if a library is missing, and a drift built without CUDA cannot use them.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// The names that the loader looks for (CUDA 13), and the PyPI package of each library. The driver's library is in no package.
const WANTED: [(&str, Option<&str>); 7] = [
    ("libcuda.so.1", None),
    ("libcudart.so.13", Some("nvidia-cuda-runtime==13.*")),
    ("libnvrtc.so.13", Some("nvidia-cuda-nvrtc==13.*")),
    ("libnvrtc-builtins.so.13.", Some("nvidia-cuda-nvrtc==13.*")),
    ("libcublas.so.13", Some("nvidia-cublas==13.*")),
    ("libcublasLt.so.13", Some("nvidia-cublas==13.*")),
    ("libcurand.so.10", Some("nvidia-curand==10.*")),
];

/// Folders that loaders search, and the folder of CUDA's own installer.
const FOLDERS: [&str; 6] = [
    "/lib64",
    "/usr/lib64",
    "/usr/lib/x86_64-linux-gnu",
    "/lib/x86_64-linux-gnu",
    "/usr/lib/wsl/lib",
    "/usr/local/cuda/lib64",
];

/// The loader's own list of libraries.
const LOADER_CACHE: &str = "/etc/ld.so.cache";

/// A library that a drift built with CUDA needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CudaLibrary {
    /// The beginning of the library's file name.
    pub name: String,
    /// The folder in which the library was found; `None` if it was not found.
    pub folder: Option<String>,
    /// The PyPI package of the library; `None` for the driver's library.
    pub package: Option<String>,
}

/// Returns all libraries that a drift built with CUDA needs, and their folders.
pub(crate) fn cuda_libraries() -> Vec<CudaLibrary> {
    let set = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let folders: Vec<PathBuf> =
        std::env::split_paths(&set).chain(FOLDERS.iter().map(PathBuf::from)).collect();
    let listed = std::fs::read(LOADER_CACHE).unwrap_or_default();
    let folder = |name: &str| {
        let found =
            folders.iter().find(|folder| has(folder, name)).map(|folder| folder.display().to_string());
        found.or_else(|| listed_in(&listed, name))
    };
    WANTED
        .iter()
        .map(|(name, package)| CudaLibrary {
            name: (*name).to_owned(),
            folder: folder(name),
            package: package.map(str::to_owned),
        })
        .collect()
}

/// Returns the commands that install the missing libraries; `None` if none is missing.
pub(crate) fn install_line(libraries: &[CudaLibrary]) -> Option<String> {
    let missing = || libraries.iter().filter(|library| library.folder.is_none());
    let mut packages: Vec<&str> = missing().filter_map(|library| library.package.as_deref()).collect();
    packages.dedup();
    let driver = missing().any(|library| library.package.is_none());
    let driver = driver
        .then(|| "install NVIDIA's driver of CUDA 13 or newer (its package is the system's)".to_owned());
    let others = (!packages.is_empty()).then(|| {
        let quoted: Vec<String> = packages.iter().map(|package| format!("'{package}'")).collect();
        format!(
            "pip install --target cuda-libraries {} && export LD_LIBRARY_PATH=$PWD/cuda-libraries/nvidia/cu13/lib:$LD_LIBRARY_PATH",
            quoted.join(" ")
        )
    });
    let lines: Vec<String> = driver.into_iter().chain(others).collect();
    (!lines.is_empty()).then(|| lines.join("; "))
}

fn has(folder: &Path, name: &str) -> bool {
    let Ok(entries) = std::fs::read_dir(folder) else { return false };
    entries.flatten().any(|entry| entry.file_name().to_string_lossy().starts_with(name))
}

/// Returns the folder of a library in the loader's list, which contains paths as zero-terminated strings.
fn listed_in(list: &[u8], name: &str) -> Option<String> {
    let paths = list.split(|byte| *byte == 0).filter_map(|text| std::str::from_utf8(text).ok());
    let mut paths = paths.filter(|text| text.starts_with('/')).filter_map(|text| text.rsplit_once('/'));
    paths.find(|(_, file)| file.starts_with(name)).map(|(folder, _)| folder.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_installed_by_one_line() {
        let library = |name: &str, found: bool, package: Option<&str>| CudaLibrary {
            name: name.to_owned(),
            folder: found.then(|| "/lib".to_owned()),
            package: package.map(str::to_owned),
        };
        let all =
            [library("a", true, None), library("b", false, Some("p==1")), library("c", false, Some("p==1"))];
        let line = install_line(&all).unwrap();
        assert!(line.starts_with("pip install --target cuda-libraries 'p==1' && "), "{line}");
        assert!(install_line(&[library("a", false, None)]).unwrap().contains("driver"));
        assert_eq!(install_line(&all[..1]), None);
    }

    #[test]
    fn libraries_are_found_in_folders_and_in_the_loaders_list() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("libcublas.so.13.0.2"), "").unwrap();
        assert!(has(folder.path(), "libcublas.so.13") && !has(folder.path(), "libcublasLt.so.13"));
        let list = b"glibc-ld.so.cache1.1\0\x01\xff\0libcuda.so.1\0/usr/lib/libcuda.so.1\0";
        assert_eq!(listed_in(list, "libcuda.so.1").as_deref(), Some("/usr/lib"));
        assert_eq!(listed_in(list, "libnvrtc"), None);
    }
}
