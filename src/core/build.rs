//! Passes the git revision to the crate, for the provenance of results. The crate sees `unknown` outside a checkout.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    revision();
}

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

/// The trimmed standard output of a program; `None` if it fails or prints nothing.
fn output(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (output.status.success() && !text.is_empty()).then_some(text)
}
