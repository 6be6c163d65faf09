//! Passes the git revision to this crate, for the provenance of results, and tells the tests what is available on this machine, so that
//! tests that need something else report themselves as ignored.

use std::path::Path;
use std::process::Command;

/// Python modules that tests need, and the names of the `cfg` flags by which they ask for them.
const MODULES: [(&str, &[&str]); 6] = [
    ("has_h5py", &["h5py"]),
    ("has_numpy", &["numpy"]),
    ("has_posebusters", &["posebusters", "rdkit"]),
    ("has_rdkit", &["rdkit"]),
    ("has_safetensors", &["numpy", "safetensors"]),
    ("has_transformers", &["tokenizers", "transformers"]),
];

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    revision();
    all_tests();
    shared();
    python();
    programs();
}

/// `DRIFT_REVISION`: the git revision; not set outside a checkout. The crates below would have to be compiled anew after every commit if they
/// had it, so the program passes it to them when it starts.
fn revision() {
    if let Some(revision) = output("git", &["rev-parse", "--short=12", "HEAD"]) {
        println!("cargo:rustc-env=DRIFT_REVISION={revision}");
    }
    // HEAD names a branch; its tip moves in the branch's own file, or in packed-refs.
    let branch = output("git", &["symbolic-ref", "-q", "HEAD"]);
    for name in ["HEAD", "packed-refs"].into_iter().chain(branch.as_deref()) {
        if let Some(path) = output("git", &["rev-parse", "--git-path", name])
            && Path::new(&path).exists()
        {
            println!("cargo:rerun-if-changed={path}");
        }
    }
}

/// `all_tests`: if `DRIFT_ALL` is set, tests that take longer than a few seconds run too.
fn all_tests() {
    println!("cargo:rustc-check-cfg=cfg(all_tests)");
    println!("cargo:rerun-if-env-changed=DRIFT_ALL");
    if std::env::var_os("DRIFT_ALL").is_some_and(|value| !value.is_empty()) {
        println!("cargo:rustc-cfg=all_tests");
    }
}

/// `has_shared`: whether the shared development data are there, in `$DRIFT_SHARED` or by default in `../shared`.
fn shared() {
    println!("cargo:rustc-check-cfg=cfg(has_shared)");
    println!("cargo:rerun-if-env-changed=DRIFT_SHARED");
    let folder = std::env::var("DRIFT_SHARED").unwrap_or_else(|_| "../shared".to_owned());
    if Path::new(&folder).join("tokenizers").is_dir() {
        println!("cargo:rustc-cfg=has_shared");
    }
}

/// Finds out which modules `$DRIFT_PYTHON`, by default `python3`, can import.
fn python() {
    println!("cargo:rerun-if-env-changed=DRIFT_PYTHON");
    let python = std::env::var("DRIFT_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    for (name, modules) in MODULES {
        println!("cargo:rustc-check-cfg=cfg({name})");
        let found = format!("import importlib.util as u; print(all(map(u.find_spec, {modules:?})))");
        if output(&python, &["-c", &found]).as_deref() == Some("True") {
            println!("cargo:rustc-cfg={name}");
        }
    }
}

/// Programs that a test runs, with the `cfg` flags by which it asks for them; and `is_root`, which may write everywhere.
fn programs() {
    for (name, program) in [("has_script", "script"), ("has_parallel", "parallel"), ("has_xtb", "xtb")] {
        println!("cargo:rustc-check-cfg=cfg({name})");
        if output(program, &["--version"]).is_some() {
            println!("cargo:rustc-cfg={name}");
        }
    }
    println!("cargo:rustc-check-cfg=cfg(has_cxx)");
    println!("cargo:rerun-if-env-changed=CXX");
    let named = std::env::var("CXX").ok().into_iter();
    if named.chain(["c++".to_owned(), "g++".to_owned()]).any(|cxx| output(&cxx, &["--version"]).is_some()) {
        println!("cargo:rustc-cfg=has_cxx");
    }
    println!("cargo:rustc-check-cfg=cfg(is_root)");
    if output("id", &["-u"]).as_deref() == Some("0") {
        println!("cargo:rustc-cfg=is_root");
    }
}

/// The output of a program, if it succeeds and prints something.
fn output(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (output.status.success() && !text.is_empty()).then_some(text)
}
