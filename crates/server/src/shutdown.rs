//! Stop signals: SIGTERM from a supervisor, SIGINT from a terminal, SIGHUP when that terminal
//! closes. All of them drain requests before the process exits.

use std::io;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Listens for stop signals. Install it before the server prints its address, so that no signal is
/// missed.
pub struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
}

impl StopSignals {
    /// Starts listening.
    pub fn install() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    /// Waits for any of the signals.
    pub async fn wait(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
            _ = self.hang_up.recv() => {}
        }
    }
}
