//! Runs the command that prints a secret key, for keys in a vault.
//!
//! The program is started directly, without a shell. Nothing that it prints is logged, because it may
//! be a secret.

use super::{Key, file};
use crate::config::SECRET_KEY_BYTES;
use std::io::Read as _;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// How long the command may take: time for a request to a vault, short enough for a start to fail
/// visibly.
const TIME_MAX: Duration = Duration::from_secs(10);
/// How often to look whether it has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// The digits, a line break, and one byte to detect excess output.
const OUTPUT_BYTES_MAX: u64 = 2 * SECRET_KEY_BYTES as u64 + 3;

/// Why a command printed no key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CommandFailure {
    /// The program cannot be started.
    #[error("cannot be started: {0}; check its path and that the server's user may execute it")]
    NotStarted(std::io::ErrorKind),
    /// It took too long.
    #[error("took longer than 10 seconds and was stopped")]
    TimedOut,
    /// It failed.
    #[error("failed; run it by hand as the server's user to see why")]
    Failed,
    /// The output is not a key.
    #[error("must print exactly 64 hexadecimal digits")]
    Malformed,
}

/// Runs the command and returns the key that it prints.
pub(super) fn run(arguments: &[String]) -> Result<Key, CommandFailure> {
    run_for(arguments, TIME_MAX)
}

fn run_for(arguments: &[String], time_max: Duration) -> Result<Key, CommandFailure> {
    let (program, arguments) = arguments.split_first().ok_or(CommandFailure::Malformed)?;
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| CommandFailure::NotStarted(error.kind()))?;
    // The pipe is read on another thread, which a process that never ends does not hold up. It ends
    // when the last process with the pipe does, so it is not joined.
    let output = child.stdout.take();
    let (send, receive) = std::sync::mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let read = output.map(|pipe| pipe.take(OUTPUT_BYTES_MAX).read_to_end(&mut bytes));
        let _gone = send.send(matches!(read, Some(Ok(_))).then_some(bytes));
    });
    let deadline = Instant::now() + time_max;
    let has_succeeded = wait(&mut child, deadline)?;
    if !has_succeeded {
        return Err(CommandFailure::Failed);
    }
    let left = deadline.saturating_duration_since(Instant::now());
    let bytes = receive
        .recv_timeout(left)
        .map_err(|_| CommandFailure::TimedOut)?;
    bytes
        .as_deref()
        .and_then(file::parse)
        .ok_or(CommandFailure::Malformed)
}

/// Waits until the program ends. Returns whether it succeeded. Stops it at the deadline.
fn wait(child: &mut Child, deadline: Instant) -> Result<bool, CommandFailure> {
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Ok(status.success()),
            Ok(None) if Instant::now() < deadline => thread::sleep(POLL_INTERVAL),
            Ok(None) | Err(_) => {
                // It may have ended meanwhile.
                let _ended = child.kill();
                let _reaped = child.wait();
                return Err(CommandFailure::TimedOut);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    const DIGITS: &str = "abababababababababababababababababababababababababababababababab";

    fn shell(script: &str) -> Result<Key, CommandFailure> {
        let arguments = ["sh", "-c", script].map(str::to_owned);
        run_for(&arguments, Duration::from_secs(5))
    }

    #[rstest]
    #[case::digits(&format!("echo {DIGITS}"), Ok([0xab; 32]))]
    #[case::no_line_break(&format!("printf {DIGITS}"), Ok([0xab; 32]))]
    #[case::errors_are_not_read(&format!("echo {DIGITS} >&2"), Err(CommandFailure::Malformed))]
    #[case::two_lines(&format!("echo {DIGITS}; echo x"), Err(CommandFailure::Malformed))]
    #[case::endless_output("yes", Err(CommandFailure::Failed))]
    #[case::nothing("true", Err(CommandFailure::Malformed))]
    #[case::failed(&format!("echo {DIGITS}; exit 3"), Err(CommandFailure::Failed))]
    fn reads_a_key_from_the_output(
        #[case] script: &str,
        #[case] expected: Result<Key, CommandFailure>,
    ) {
        assert_eq!(shell(script), expected);
    }

    #[test]
    fn a_command_that_does_not_end_is_stopped() {
        let arguments = ["sleep", "60"].map(str::to_owned);
        let outcome = run_for(&arguments, Duration::from_millis(50));
        assert_eq!(outcome, Err(CommandFailure::TimedOut));
    }

    #[test]
    fn a_missing_program_is_named() {
        let outcome = run_for(&["/no/such/program".to_owned()], TIME_MAX);
        let not_found = std::io::ErrorKind::NotFound;
        assert_eq!(outcome, Err(CommandFailure::NotStarted(not_found)));
    }
}
