//! Shards as a Slurm job array with a dependent job that merges them: two script files that a person can read and change.
//!
//! The array requests a signal before its time limit (sbatch(1), `--signal`). The script then stops drift like Ctrl-C does and
//! requeues the task, which continues where it stopped.

use std::fmt::Write as _;

use drift_core::command::quoted;

/// The options for Slurm.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SlurmOptions {
    /// The sbatch options for each shard, without the leading dashes: `partition=gpu`.
    pub options: Vec<String>,
    /// The sbatch options for the merge job.
    pub merge_options: Vec<String>,
    /// How many seconds before its time limit a shard is stopped.
    pub grace_seconds: u32,
}

/// A job array and its merge job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Jobs<'j> {
    /// The program's name, as the shell finds it.
    pub program: &'j str,
    /// The verb and its options, without the shard and the output.
    pub command: &'j [String],
    /// What the merge writes: a file or folder.
    pub merged: &'j str,
    /// Options of the merge besides the shards and the output.
    pub merge: &'j [String],
    /// The number of shards.
    pub shards: u32,
    /// The absolute path of the folder for all files.
    pub folder: &'j str,
    /// The absolute path of the folder to which relative names in the command refer.
    pub start: &'j str,
    /// The options for Slurm.
    pub asked: &'j SlurmOptions,
}

/// Returns the seconds of a time limit of Slurm: `M`, `M:S`, `H:M:S`, `D-H`, `D-H:M` or `D-H:M:S`, up to a whole minute, as Slurm counts
/// them (man sbatch). `None` if it is no such time, such as `UNLIMITED`.
pub fn time_limit_seconds(time: &str) -> Option<u64> {
    let (days, clock) = match time.split_once('-') {
        Some((days, clock)) => (Some(days.parse::<u64>().ok()?), clock),
        None => (None, time),
    };
    let fields = clock.split(':').map(|field| field.parse::<u64>().ok()).collect::<Option<Vec<u64>>>()?;
    let [hours, minutes, seconds] = match (days, fields.as_slice()) {
        (Some(_), &[hours]) => [hours, 0, 0],
        (Some(_), &[hours, minutes]) => [hours, minutes, 0],
        (None, &[minutes]) => [0, minutes, 0],
        (None, &[minutes, seconds]) => [0, minutes, seconds],
        (_, &[hours, minutes, seconds]) => [hours, minutes, seconds],
        _ => return None,
    };
    let hours = days.unwrap_or(0).checked_mul(24)?.checked_add(hours)?;
    let all = hours.checked_mul(60)?.checked_add(minutes)?.checked_mul(60)?.checked_add(seconds)?;
    all.div_ceil(60).checked_mul(60)
}

/// Joins words into a shell command, each quoted.
fn line(words: &[String]) -> String {
    words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

impl Jobs<'_> {
    /// Returns the script of the array, for sbatch.
    pub fn array(&self) -> String {
        let Jobs { program, command, shards, folder, start, asked, .. } = *self;
        let mut out = self.head(&format!("drift-{}", command.first().map_or("", String::as_str)));
        let _ = writeln!(out, "#SBATCH --array=1-{shards}");
        let _ = writeln!(out, "#SBATCH --output=\"{folder}/logs/%a.log\"");
        // A requeued task appends to the log of its first run.
        out.push_str("#SBATCH --open-mode=append\n#SBATCH --requeue\n");
        // The signal goes only to the shell (`B:`), whose trap then stops drift itself.
        let _ = writeln!(out, "#SBATCH --signal=B:USR1@{}", asked.grace_seconds);
        out.extend(asked.options.iter().map(|option| format!("#SBATCH --{option}\n")));
        let folder = quoted(folder);
        let _ = write!(
            out,
            "\n\
             cd {start} || exit\n\
             {program} {command} --shard slurm --quiet -o {folder}/shards/\"$SLURM_ARRAY_TASK_ID\" &\n\
             shard=$!\n\
             \n\
             # Before its time is over: what is finished is kept, and the task goes on later.\n\
             again() {{\n    \
                 kill -INT \"$shard\"\n    \
                 wait \"$shard\"\n    \
                 ended=$?\n    \
                 [ $ended -eq 130 ] || exit $ended\n    \
                 scontrol requeue \"${{SLURM_ARRAY_JOB_ID}}_$SLURM_ARRAY_TASK_ID\"\n    \
                 exit\n\
             }}\n\
             trap again USR1\n\
             wait \"$shard\"\n",
            start = quoted(start),
            program = quoted(program),
            command = line(command),
        );
        out
    }

    /// Returns the script of the merge job, for sbatch. It must depend on the array.
    pub fn merging(&self) -> String {
        let Jobs { program, merge, merged, shards, folder, asked, .. } = *self;
        let mut out = self.head("drift-merge");
        let _ = writeln!(out, "#SBATCH --output=\"{folder}/logs/merge.log\"");
        out.push_str("#SBATCH --open-mode=append\n");
        out.extend(asked.merge_options.iter().map(|option| format!("#SBATCH --{option}\n")));
        let folder = quoted(folder);
        let merged = quoted(merged);
        let more = if merge.is_empty() { String::new() } else { format!(" {}", line(merge)) };
        let _ = write!(
            out,
            "\ncd {folder}/shards || exit\n{program} merge $(seq {shards}) -o {merged} --quiet{more}\n",
            program = quoted(program),
        );
        out
    }

    fn head(&self, name: &str) -> String {
        format!("#!/bin/bash\n#SBATCH --job-name={name}\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_come_back_from_the_shell() {
        assert_eq!(quoted("--preset=top-p-0.8-t1.0"), "--preset=top-p-0.8-t1.0");
        for word in ["", "a b", "it's", "$HOME", "*", "a\nb", "Å", "#", "~", "`x`", "\"", "a;b", "!!"] {
            let printed = std::process::Command::new("bash")
                .args(["-c", &format!("printf %s {}", quoted(word))])
                .output()
                .unwrap();
            assert_eq!(String::from_utf8(printed.stdout).unwrap(), word);
        }
    }

    #[test]
    fn scripts_are_sound_bash() {
        let command = ["eval", "--smiles=my molecules.smi", "--likelihood"].map(str::to_owned);
        let merge = ["--texts=the texts.jsonl".to_owned()];
        let asked = SlurmOptions {
            options: vec!["partition=gpu".to_owned(), "gres=gpu:h100:1".to_owned()],
            merge_options: vec!["partition=cpu".to_owned()],
            grace_seconds: 120,
        };
        let jobs = Jobs {
            program: "/opt/drift",
            command: &command,
            merge: &merge,
            merged: "/scratch/an evaluation",
            shards: 8,
            folder: "/scratch/an evaluation",
            start: "/home/me",
            asked: &asked,
        };
        for script in [jobs.array(), jobs.merging()] {
            let checked = std::process::Command::new("bash").args(["-n", "-c", &script]).output().unwrap();
            assert!(checked.status.success(), "{script}");
            assert!(script.starts_with("#!/bin/bash\n#SBATCH --job-name=drift-"));
        }
        let array = jobs.array();
        assert!(array.contains("\n#SBATCH --array=1-8\n") && array.contains("\n#SBATCH --gres=gpu:h100:1\n"));
        assert!(array.contains("\n/opt/drift eval '--smiles=my molecules.smi' --likelihood --shard slurm"));
        assert!(array.contains("-o '/scratch/an evaluation'/shards/\"$SLURM_ARRAY_TASK_ID\" &\n"));
        assert!(
            jobs.merging()
                .contains("merge $(seq 8) -o '/scratch/an evaluation' --quiet '--texts=the texts.jsonl'\n")
        );
    }

    #[test]
    fn times_are_those_of_slurm() {
        let times = [
            ("2", 120),
            ("0:30", 60),
            ("1:30", 120),
            ("01:00:00", 3600),
            ("1-2", 93_600),
            ("1-0:30", 88_200),
        ];
        for (time, expected) in times {
            assert_eq!(time_limit_seconds(time), Some(expected), "{time}");
        }
        assert_eq!(time_limit_seconds("0-0:0:61"), Some(120));
        for time in ["UNLIMITED", "", "1:2:3:4", "-1", "18446744073709551615-0"] {
            assert_eq!(time_limit_seconds(time), None, "{time}");
        }
    }
}
