//! When to stop: SIGTERM from whoever supervises us, SIGINT from whoever started us by hand.

use std::io;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Listens for both. Installed before the server says that it runs, so that no signal is missed.
pub struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
}

impl StopSignals {
    /// Begins to listen.
    pub fn install() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// Waits for either.
    pub async fn wait(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
