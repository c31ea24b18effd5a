//! Log output that may fail. Lines that cannot be written are dropped and counted: a full disk or a
//! closed pipe must not disturb requests.

use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};

/// Lines dropped since the process started. Kept outside the metrics, because lines may be dropped
/// before the metrics recorder exists.
static DROPPED: AtomicU64 = AtomicU64::new(0);

/// Returns the number of log lines dropped since the process started.
pub(crate) fn dropped_lines() -> u64 {
    DROPPED.load(Ordering::Relaxed)
}

/// A writer that always reports success. Each call to `write` is one line.
pub(super) struct LossyWriter<W>(pub(super) W);

impl<W: Write> Write for LossyWriter<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if self.0.write_all(line).is_err() {
            DROPPED.fetch_add(1, Ordering::Relaxed);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct FullDisk;

    impl Write for FullDisk {
        fn write(&mut self, _line: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::StorageFull.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Err(io::ErrorKind::StorageFull.into())
        }
    }

    #[test]
    fn drops_and_counts_unwritable_lines() {
        let before = dropped_lines();
        let mut full = LossyWriter(FullDisk);
        full.write_all(b"a line\n").unwrap();
        full.flush().unwrap();
        assert!(dropped_lines() > before);
        let mut written = Vec::new();
        LossyWriter(&mut written).write_all(b"a line\n").unwrap();
        assert_eq!(written, b"a line\n");
    }
}
