//! The memory that a Slurm job or a container may still allocate. The limit is set by control groups and does not show in the
//! machine's free memory. The kernel kills a process that exceeds it without any message.
//!
//! For the files and their meaning see the kernel's `Documentation/admin-guide/cgroup-v1/memory.rst` and `cgroup-v2.rst`. The
//! limits of all groups above a group apply to it too. Part of the memory in use is page cache that was not read lately; the kernel
//! frees it before it refuses an allocation.

use std::fs::read_to_string;
use std::path::Path;

/// The names of the files of a group.
struct Files {
    limit: &'static str,
    used: &'static str,
    /// The line of `memory.stat` that counts the page cache that the kernel can free.
    inactive: &'static str,
}

const FIRST_VERSION: Files =
    Files { limit: "memory.limit_in_bytes", used: "memory.usage_in_bytes", inactive: "total_inactive_file" };
const SECOND_VERSION: Files =
    Files { limit: "memory.max", used: "memory.current", inactive: "inactive_file" };

/// Returns the number of bytes that the groups of this process still allow; `None` if no group has a limit.
pub(super) fn free_bytes() -> Option<u64> {
    free_in(Path::new("/sys/fs/cgroup"), &read_to_string("/proc/self/cgroup").ok()?)
}

/// Like [`free_bytes`], for groups mounted at `mounted`. `groups` has lines of the form `hierarchy:controllers:path`; in cgroup
/// version 2 the controllers are empty.
fn free_in(mounted: &Path, groups: &str) -> Option<u64> {
    let of_line = |line: &str| {
        let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
        let (top, files) = match controllers {
            "" => (mounted.to_owned(), SECOND_VERSION),
            some if some.split(',').any(|name| name == "memory") => (mounted.join("memory"), FIRST_VERSION),
            _ => return None,
        };
        // A container may see its own group as the top, and be given a path that does not exist inside the container.
        let above = Path::new(path.trim_start_matches('/')).ancestors();
        // The minimum over the group and all groups above it, because each of them limits everything below.
        above.filter_map(|group| files.free(&top.join(group))).min()
    };
    groups.lines().filter_map(of_line).min()
}

impl Files {
    /// Returns the number of bytes that this group still allows; `None` without a limit.
    fn free(&self, group: &Path) -> Option<u64> {
        let number = |name: &str| read_to_string(group.join(name)).ok()?.trim().parse::<u64>().ok();
        let limit = number(self.limit)?;
        let stat = read_to_string(group.join("memory.stat")).unwrap_or_default();
        let mut lines = stat.lines().filter_map(|line| line.split_once(' '));
        let inactive =
            lines.find(|(name, _)| *name == self.inactive).and_then(|(_, bytes)| bytes.parse().ok());
        // The usage includes the other processes of the group, because the limit holds for all of them together.
        Some(limit.saturating_sub(number(self.used)?.saturating_sub(inactive.unwrap_or(0))))
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{create_dir_all, write};

    use super::*;

    fn group(place: &Path, files: &Files, [limit, used, inactive]: [&str; 3]) {
        create_dir_all(place).unwrap();
        write(place.join(files.limit), limit).unwrap();
        write(place.join(files.used), used).unwrap();
        write(place.join("memory.stat"), format!("cache 9\n{} {inactive}\nmapped_file 7\n", files.inactive))
            .unwrap();
    }

    #[test]
    fn the_tightest_group_counts() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path();
        let job = "0::/slurm/job_7/step_0\n";
        assert_eq!(free_in(top, job), None);
        group(&top.join("slurm/job_7/step_0"), &SECOND_VERSION, ["max\n", "500\n", "0"]);
        assert_eq!(free_in(top, job), None);
        group(&top.join("slurm/job_7"), &SECOND_VERSION, ["1000\n", "600\n", "150"]);
        assert_eq!(free_in(top, job), Some(550));
        group(&top.join("slurm"), &SECOND_VERSION, ["2000\n", "1900\n", "0"]);
        assert_eq!(free_in(top, job), Some(100));
        // The usage exceeds the limit, as can happen after a limit was lowered.
        group(&top.join("slurm"), &SECOND_VERSION, ["2000\n", "2900\n", "0"]);
        assert_eq!(free_in(top, job), Some(0));
        assert_eq!(free_in(top, "0::/\n"), None);
    }

    #[test]
    fn the_first_version_has_its_memory_in_a_tree_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let memory = folder.path().join("memory");
        let groups = "9:name=systemd:/\n4:cpu,memory:/docker/abc\n1:cpu:/tight\n0::/\n";
        // A container sees its own group at the top.
        group(&memory, &FIRST_VERSION, ["4096\n", "1024\n", "24"]);
        group(&memory.join("tight"), &FIRST_VERSION, ["1\n", "1\n", "0"]);
        assert_eq!(free_in(folder.path(), groups), Some(3096));
        group(&memory.join("docker/abc"), &FIRST_VERSION, ["3000\n", "1000\n", "0"]);
        assert_eq!(free_in(folder.path(), groups), Some(2000));
        assert_eq!(free_in(folder.path(), "no line\n4:memory\n"), None);
    }
}
