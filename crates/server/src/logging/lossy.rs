//! Log output that may fail and must not disturb requests.
//!
//! Requests append their lines to a buffer in memory. A thread writes the buffer to standard error,
//! many lines at a time. Lines are dropped and counted if they cannot be written, because of a full
//! disk or a closed pipe, or if a reader is so slow that the buffer is full.

use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tracing_subscriber::fmt::MakeWriter;

/// Size of the buffer: about 16,000 lines, which a server at full load logs in half a second.
const BUFFER_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Pause between two writes. Without it, every line would wake the thread. Lines are late by at
/// most this time, which people do not notice.
const WRITE_PAUSE: Duration = Duration::from_millis(10);

/// Ends each line.
const LINE_END: u8 = b'\n';

/// Lines dropped since the process started. Kept outside the metrics, because lines may be dropped
/// before the metrics recorder exists.
static DROPPED: AtomicU64 = AtomicU64::new(0);

/// Returns the number of log lines dropped since the process started.
pub(crate) fn dropped_lines() -> u64 {
    DROPPED.load(Ordering::Relaxed)
}

/// Lines between the threads that log and the thread that writes.
#[derive(Debug, Default)]
pub(super) struct LogBuffer {
    pending: Mutex<PendingLines>,
    /// Wakes the writing thread.
    appended: Condvar,
    /// Wakes threads that wait in [`LogBuffer::flush`].
    written: Condvar,
}

#[derive(Debug, Default)]
struct PendingLines {
    bytes: Vec<u8>,
    /// Number of lines appended so far.
    appended: u64,
    /// Number of those lines that were written, or dropped after a failed write.
    settled: u64,
    /// The thread waits for a line.
    is_idle: bool,
    /// A caller has waited in vain since the last write.
    is_stuck: bool,
}

impl LogBuffer {
    /// Starts a thread that writes the lines to `output`.
    pub(super) fn start(output: impl Write + Send + 'static) -> io::Result<Arc<Self>> {
        let buffer = Arc::new(Self::default());
        let lines = buffer.clone();
        std::thread::Builder::new()
            .name("log".to_owned())
            .spawn(move || lines.write_forever(output))?;
        Ok(buffer)
    }

    /// Waits until all lines appended so far are written, but at most `timeout`. Does not wait if
    /// an earlier caller has waited in vain and nothing was written since: many panics while
    /// standard error is blocked must not stop the server.
    pub(super) fn flush(&self, timeout: Duration) {
        let pending = self.lock();
        if pending.is_stuck {
            return;
        }
        let last = pending.appended;
        let waited = self
            .written
            .wait_timeout_while(pending, timeout, |pending| pending.settled < last);
        let (mut pending, _) = waited.unwrap_or_else(PoisonError::into_inner);
        pending.is_stuck = pending.settled < last;
    }

    fn append(&self, line: &[u8]) {
        let mut pending = self.lock();
        if pending.bytes.len() + line.len() > BUFFER_BYTES_MAX {
            drop(pending);
            DROPPED.fetch_add(1, Ordering::Relaxed);
            return;
        }
        pending.bytes.extend_from_slice(line);
        pending.appended += 1;
        let wakes_thread = std::mem::take(&mut pending.is_idle);
        drop(pending);
        if wakes_thread {
            self.appended.notify_one();
        }
    }

    fn write_forever(&self, mut output: impl Write) {
        let is_line_end = |byte: &u8| *byte == LINE_END;
        let (mut batch, mut is_torn) = (Vec::new(), false);
        loop {
            let last = self.take(&mut batch);
            if is_torn {
                batch.insert(0, LINE_END);
            }
            let unwritten = write(&mut output, &batch);
            let dropped = unwritten.split_inclusive(is_line_end).count();
            DROPPED.fetch_add(u64::try_from(dropped).unwrap_or(0), Ordering::Relaxed);
            let written = &batch[..batch.len() - unwritten.len()];
            is_torn = written.last().map_or(is_torn, |byte| !is_line_end(byte));
            batch.clear();
            let mut pending = self.lock();
            pending.settled = last;
            pending.is_stuck = false;
            drop(pending);
            self.written.notify_all();
            std::thread::sleep(WRITE_PAUSE);
        }
    }

    /// Waits for lines and exchanges them for the empty `batch`. Returns the number of the last one.
    fn take(&self, batch: &mut Vec<u8>) -> u64 {
        let mut pending = self.lock();
        while pending.bytes.is_empty() {
            pending.is_idle = true;
            pending = self
                .appended
                .wait(pending)
                .unwrap_or_else(PoisonError::into_inner);
        }
        pending.is_idle = false;
        std::mem::swap(&mut pending.bytes, batch);
        pending.appended
    }

    fn lock(&self) -> MutexGuard<'_, PendingLines> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes lines, and returns the bytes that could not be written. Waits while a non-blocking output
/// is full; the buffer is bounded meanwhile.
fn write<'a>(output: &mut impl Write, mut lines: &'a [u8]) -> &'a [u8] {
    while !lines.is_empty() {
        match output.write(lines) {
            Ok(0) => break,
            Ok(written) => lines = lines.get(written..).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                std::thread::sleep(WRITE_PAUSE);
            }
            Err(_) => break,
        }
    }
    lines
}

/// Appends to a [`LogBuffer`] and always reports success. Each call to `write` is one line.
pub(super) struct LineWriter<'a>(&'a LogBuffer);

impl Write for LineWriter<'_> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.0.append(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The buffer as the subscriber's output.
pub(super) struct BufferedOutput(pub(super) Arc<LogBuffer>);

impl<'a> MakeWriter<'a> for BufferedOutput {
    type Writer = LineWriter<'a>;

    fn make_writer(&'a self) -> LineWriter<'a> {
        LineWriter(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    /// More than any test needs.
    const LONG: Duration = Duration::from_mins(1);

    struct FullDisk;

    impl Write for FullDisk {
        fn write(&mut self, _line: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::StorageFull.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Err(io::ErrorKind::StorageFull.into())
        }
    }

    /// Passes each write on. A write waits while the channel is full.
    struct Writes(mpsc::SyncSender<Vec<u8>>);

    impl Write for Writes {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let sent = self.0.send(bytes.to_vec());
            sent.map_err(|_| io::ErrorKind::BrokenPipe)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn log(buffer: &LogBuffer, line: &[u8]) {
        LineWriter(buffer).write_all(line).unwrap();
    }

    #[test]
    fn drops_and_counts_unwritable_lines() {
        let before = dropped_lines();
        let full = LogBuffer::start(FullDisk).unwrap();
        log(&full, b"a line\n");
        log(&full, b"another line\n");
        full.flush(LONG);
        assert!(dropped_lines() >= before + 2);
    }

    #[test]
    fn writes_lines_in_order_and_together() {
        let (sender, writes) = mpsc::sync_channel(0);
        let buffer = LogBuffer::start(Writes(sender)).unwrap();
        let lines = |range: std::ops::Range<u32>| -> Vec<u8> {
            let lines = range.map(|line| format!("line {line}\n"));
            lines.collect::<String>().into_bytes()
        };
        log(&buffer, &lines(0..1));
        // The channel takes a write only when it is received, so the thread is busy until then.
        for line in 1..100 {
            log(&buffer, &lines(line..line + 1));
        }
        let mut received = writes.recv().unwrap();
        let mut count = 1;
        while received.len() < lines(0..100).len() {
            received.extend(writes.recv().unwrap());
            count += 1;
        }
        assert_eq!(received, lines(0..100));
        assert!(count <= 2, "{count} writes");
    }

    /// Takes part of a write, then fails once, then works.
    struct Unreliable(mpsc::Sender<Vec<u8>>, u32);

    impl Write for Unreliable {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.1 += 1;
            let taken = match self.1 {
                1 => &bytes[..bytes.len().min(10)],
                2 => return Err(io::ErrorKind::WouldBlock.into()),
                3 => &bytes[..2],
                4 => return Err(io::ErrorKind::StorageFull.into()),
                _ => bytes,
            };
            self.0.send(taken.to_vec()).unwrap();
            Ok(taken.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_torn_line_is_ended_and_only_unwritten_lines_are_dropped() {
        let (sender, writes) = mpsc::channel();
        let buffer = LogBuffer::start(Unreliable(sender, 0)).unwrap();
        log(&buffer, b"the first line\n");
        buffer.flush(LONG);
        log(&buffer, b"the second line\n");
        buffer.flush(LONG);
        let received: Vec<u8> = writes.try_iter().flatten().collect();
        assert_eq!(received, b"the first li\nthe second line\n");
    }

    #[test]
    fn only_the_first_caller_waits_for_a_blocked_output() {
        let (sender, _unread) = mpsc::sync_channel(0);
        let buffer = LogBuffer::start(Writes(sender)).unwrap();
        log(&buffer, b"a line\n");
        buffer.flush(Duration::from_millis(1));
        // Would take a minute, because the output stays blocked.
        buffer.flush(LONG);
        assert!(buffer.lock().is_stuck);
    }

    #[test]
    fn a_blocked_output_drops_lines_and_delays_no_request() {
        let before = dropped_lines();
        let (sender, _unread) = mpsc::sync_channel(0);
        let buffer = LogBuffer::start(Writes(sender)).unwrap();
        let line = vec![b'x'; BUFFER_BYTES_MAX / 2];
        for _ in 0..6 {
            log(&buffer, &line);
        }
        assert!(dropped_lines() >= before + 2, "six lines, room for four");
        buffer.flush(Duration::from_millis(1));
    }
}
