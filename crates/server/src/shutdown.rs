//! When to stop: SIGTERM from a supervisor, SIGINT from a terminal, SIGHUP when that terminal closes. All of them drain.

use std::io;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Listens for the signals. Installed before the server says that it runs, so that no signal is missed.
pub struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
}

impl StopSignals {
    /// Begins to listen.
    pub fn install() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    /// Waits for any of them.
    pub async fn wait(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
            _ = self.hang_up.recv() => {}
        }
    }
}
