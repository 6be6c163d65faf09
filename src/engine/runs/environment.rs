//! The date and machine of an evaluation.

use drift_data::generation::Environment;

/// Returns the environment of this process.
pub(crate) fn here() -> Environment {
    Environment {
        date: time::OffsetDateTime::now_utc().date().to_string(),
        system: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
        processor: field("/proc/cpuinfo", "model name"),
        threads: rayon::current_num_threads(),
        shards: None,
    }
}

/// Returns the peak memory of this process so far, in bytes; known on Linux only.
pub(crate) fn peak_memory_bytes() -> Option<u64> {
    let peak = field("/proc/self/status", "VmHWM")?;
    peak.strip_suffix(" kB")?.trim().parse::<u64>().ok().map(|kibibytes| kibibytes * 1024)
}

/// Returns the CPU seconds of this process so far, summed over all threads, user and system. Linux reports them in 100 ticks per second.
pub fn cpu_seconds() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The name may contain spaces. The fields after it begin with field 3; user and system time are fields 14 and 15 (proc(5)).
    let fields = stat.rsplit(')').next()?.split_whitespace().skip(11).take(2);
    let ticks: u64 = fields.map(|field| field.parse::<u64>().ok()).sum::<Option<u64>>()?;
    Some(ticks as f64 / 100.0)
}

/// Returns the value of the first line `key: value` of a file.
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
        let date = here().date;
        assert!(date.len() == 10 && date.split('-').count() == 3 && date.starts_with("20"), "{date}");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn work_takes_cpu_seconds() {
        let before = cpu_seconds().unwrap();
        let start = std::time::Instant::now();
        let mut sum = 0u64;
        while start.elapsed().as_millis() < 300 {
            sum = sum.wrapping_mul(31).wrapping_add(1);
        }
        std::hint::black_box(sum);
        // A busy machine gives less than the clock says; other tests run in this process too.
        assert!(cpu_seconds().unwrap() > before);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn memory_is_more_than_a_megabyte() {
        assert!(peak_memory_bytes().unwrap() > 1 << 20);
    }
}
