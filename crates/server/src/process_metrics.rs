//! Metrics about the process, under the names that all Prometheus clients use. They are read when
//! `/metrics` is scraped; values that the system does not provide are left out.

use rustix::process::{Resource, getrlimit};
use rustix::time::{ClockId, clock_gettime};
use std::fmt::Write as _;
use std::fs;
use tributary_domain::vocabulary::time::Timestamp;

/// Renders the metrics in Prometheus's text format.
pub(crate) fn render(started_at: Timestamp) -> String {
    let metrics = [
        (
            "process_cpu_seconds_total",
            "counter",
            "User and system CPU time, in seconds.",
            Some(cpu_seconds()),
        ),
        (
            "process_resident_memory_bytes",
            "gauge",
            "Resident memory, in bytes.",
            resident_bytes().map(|bytes| bytes.to_string()),
        ),
        (
            "process_open_fds",
            "gauge",
            "Open file descriptors.",
            open_descriptors().map(|count| count.to_string()),
        ),
        (
            "process_max_fds",
            "gauge",
            "Maximum number of open file descriptors.",
            getrlimit(Resource::Nofile)
                .current
                .map(|count| count.to_string()),
        ),
        (
            "process_start_time_seconds",
            "gauge",
            "Start time of the process, in Unix seconds.",
            Some((started_at.as_millis() / 1_000).to_string()),
        ),
    ];
    let mut text = String::new();
    for (name, kind, help, value) in metrics {
        if let Some(value) = value {
            // Writing to a `String` cannot fail.
            let _written = writeln!(
                text,
                "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}\n"
            );
        }
    }
    text
}

/// Returns the CPU time of all threads, in seconds with millisecond precision.
fn cpu_seconds() -> String {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    format!("{}.{:03}", time.tv_sec, time.tv_nsec / 1_000_000)
}

fn resident_bytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    resident_bytes_in(&status)
}

fn resident_bytes_in(status: &str) -> Option<u64> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    kibibytes.checked_mul(1_024)
}

fn open_descriptors() -> Option<usize> {
    // Do not count the descriptor that reading this directory opens.
    Some(
        fs::read_dir("/proc/self/fd")
            .ok()?
            .count()
            .saturating_sub(1),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::usual("VmHWM:\t  9 kB\nVmRSS:\t    5120 kB\n", Some(5_242_880))]
    #[case::absent("VmHWM:\t  9 kB\n", None)]
    #[case::another_unit("VmRSS:\t5 MB\n", None)]
    fn parses_resident_memory(#[case] status: &str, #[case] expected: Option<u64>) {
        assert_eq!(resident_bytes_in(status), expected);
    }

    #[test]
    fn every_metric_has_help_type_and_value() {
        let text = render(Timestamp::from_millis(1_794_845_507_123));
        let samples: Vec<&str> = text
            .lines()
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
            .collect();
        assert!(samples.contains(&"process_start_time_seconds 1794845507"));
        for sample in &samples {
            let (name, value) = sample.split_once(' ').unwrap();
            assert!(value.parse::<f64>().unwrap() > 0.0, "{sample}");
            assert!(text.contains(&format!("# HELP {name} ")));
            assert!(text.contains(&format!("# TYPE {name} ")));
        }
        assert!(samples.len() >= 4, "{text}");
    }
}
