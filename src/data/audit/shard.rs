//! Audits in shards: each shard stores the results of its files, and the report is made when shards are merged.

use std::io::Read;

use serde::{Deserialize, Serialize};

use super::by_text::AuditResult;
use super::judged::{JudgedFile, judge_files};
use super::request::AuditPlan;
use super::run::{JudgedFiles, read_files, report};
use super::text_encoding::{Evidence, TextEncoding};
use crate::parameter;
use crate::shard::files::{FilesDone, FilesShard, FilesSummary, MergedFiles, check_part};
use drift_core::io::{AtomicFile, file_name, open};
use drift_core::{Encoding, Error, Job, Result};

/// The first line of a part's output. Each further line is a judged file.
#[derive(Debug, Serialize, Deserialize)]
struct Head {
    evidence: Evidence,
    #[serde(rename = "dialect")]
    encoding: Encoding,
}

/// Judges the files of a shard.
///
/// # Errors
/// As [`audit`](super::audit()). If the encoding is not given, each part must determine it from its own texts.
pub fn audit_shard(plan: &AuditPlan, shard: &mut FilesShard, job: &Job) -> Result<FilesDone> {
    if let Some(folder) = plan.request.files.iter().find(|path| path.is_dir()) {
        return Err(Error::input(folder.display(), "is a folder", "give the files in it"));
    }
    shard.run("jsonl", job, &mut |_, files, path| {
        let read = read_files(&plan.request.files[files], plan, job)?;
        let evidence = Evidence::of_files(plan, &read)?;
        let encoding = TextEncoding::decide(plan, &evidence, job)?.encoding;
        let mut came = FilesSummary {
            records: read.iter().map(|file| file.records.len() as u64).sum(),
            ..FilesSummary::default()
        };
        came.summary.skipped = read.iter().map(|file| file.skipped).sum();
        let mut file = AtomicFile::create(path)?;
        let mut put = |line: serde_json::Result<Vec<u8>>| {
            file.put(&line.map_err(|e| Error::internal("a judged file", e))?)?;
            file.put(b"\n")
        };
        put(serde_json::to_vec(&Head { evidence, encoding }))?;
        for judged in judge_files(plan, encoding, read, job)? {
            put(serde_json::to_vec(&judged))?;
        }
        Ok((came, file))
    })
}

/// Returns the audit over the files of all shards.
///
/// # Errors
/// If the output of a part is not what its shard wrote, or a part was judged in another encoding than all texts together imply;
/// also the errors of [`audit`](super::audit()).
pub fn merge_audited(plan: &AuditPlan, shards: &MergedFiles, job: &Job) -> Result<AuditResult> {
    let (mut heads, mut files) = (Vec::new(), Vec::new());
    for (path, part) in &shards.parts {
        let fail = |e| job.check().err().unwrap_or_else(|| Error::io(path, e));
        let mut opened = open(path, job);
        let mut lines = Vec::new();
        opened.reader.read_to_end(&mut lines).map_err(fail)?;
        check_part(path, &opened.finish(file_name(path)).map_err(fail)?, part)?;
        let damaged = |e| Error::internal(path.display(), e);
        let mut lines = lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        heads.extend(lines.next().map(serde_json::from_slice::<Head>).transpose().map_err(damaged)?);
        for line in lines {
            files.push(serde_json::from_slice::<JudgedFile>(line).map_err(damaged)?);
        }
    }
    let mut evidence = heads.iter().map(|head| head.evidence.clone());
    let found = evidence.try_fold(Evidence::default(), Evidence::join)?;
    let texts = TextEncoding::decide(plan, &found, job)?;
    // Blocks were counted by the encoding of their own part, which cannot be undone.
    if heads.iter().any(|head| head.encoding != texts.encoding) {
        let problem = "some texts are in another dialect than most";
        let parameter = parameter::DIALECT;
        let remedy = format!("make the shards again with {parameter} fixed or {parameter} stripped");
        return Err(Error::input("the shards", problem, remedy));
    }
    report(plan, JudgedFiles { files, texts, is_partial: shards.is_partial }, job)
}
