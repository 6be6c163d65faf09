//! When and where an evaluation ran.

use super::record::Environment;

impl Environment {
    /// This machine, today.
    pub fn here() -> Self {
        Environment {
            date: time::OffsetDateTime::now_utc().date().to_string(),
            system: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
            processor: field("/proc/cpuinfo", "model name"),
            threads: rayon::current_num_threads(),
        }
    }
}

/// The most memory that this process held so far, in bytes; Linux tells it.
pub fn peak_memory_bytes() -> Option<u64> {
    let peak = field("/proc/self/status", "VmHWM")?;
    peak.strip_suffix(" kB")?.trim().parse::<u64>().ok().map(|kibibytes| kibibytes * 1024)
}

/// The value of the first line `key: value` of a file.
fn field(path: &str, key: &str) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    let line = text.lines().find(|line| line.starts_with(key))?;
    line.split_once(':').map(|(_, value)| value.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_days() {
        let date = Environment::here().date;
        assert!(date.len() == 10 && date.split('-').count() == 3 && date.starts_with("20"), "{date}");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn memory_is_more_than_a_megabyte() {
        assert!(peak_memory_bytes().unwrap() > 1 << 20);
    }
}
