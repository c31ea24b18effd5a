//! Handle for running the simulator: as a server, within another router, or in a test.

use crate::network::SimulatedNetwork;
use crate::state::SimulatorState;
use crate::{SimulatorConfig, control, routes, server};
use axum::Router;
use serde_json::Value;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// A simulator. Clones share the same state. The methods match the control API: they take the same
/// JSON and return the same error messages.
#[derive(Debug, Clone)]
pub struct Simulator {
    world: Arc<SimulatorState>,
}

impl Simulator {
    /// Creates a simulator that does not listen yet.
    pub fn new(options: SimulatorConfig) -> Self {
        let world = Arc::new(SimulatorState::new(options));
        Self { world }
    }

    /// Starts a simulator on its own task.
    pub async fn start(options: SimulatorConfig) -> std::io::Result<RunningSimulator> {
        let listener = TcpListener::bind(options.listen).await?;
        let address = listener.local_addr()?;
        let simulator = Self::new(options);
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = simulator.clone();
        let task = tokio::spawn(async move {
            // A dropped sender also stops the simulator.
            let stopped = async { stopped.await.unwrap_or_default() };
            serving.serve(listener, stopped).await;
        });
        Ok(RunningSimulator {
            simulator,
            address,
            stop,
            task,
        })
    }

    /// Returns all routes. Connection resets require [`Simulator::serve`]; with other servers they
    /// become empty 500 responses.
    pub fn router(&self) -> Router {
        routes::router(Arc::clone(&self.world))
    }

    /// Serves on a socket until `stop` completes.
    pub async fn serve(&self, listener: TcpListener, stop: impl Future<Output = ()>) {
        server::serve(listener, self.router(), stop).await;
    }

    /// Injects a fault and returns its id.
    pub fn inject_fault(&self, injection: Value) -> Result<u64, String> {
        control::inject_fault(&self.world, injection)
    }

    /// Clears one network's faults, or all faults.
    pub fn clear_faults(&self, network: Option<SimulatedNetwork>) {
        control::clear_faults(&self.world, network);
    }

    /// Registers an account.
    pub fn register(&self, account: Value) -> Result<(), String> {
        control::register(&self.world, account)
    }

    /// Registers an ad account with its spend, replacing what it had.
    pub fn register_report(&self, account: Value) -> Result<(), String> {
        control::register_report(&self.world, account)
    }

    /// Sets the clock offset.
    pub fn set_clock_ahead(&self, milliseconds: i64) {
        self.world.clock.set_ahead(milliseconds);
    }

    /// Stops the clock at this time, in Unix milliseconds, for tests with a clock of their own.
    pub fn set_time(&self, milliseconds: i64) {
        self.world.clock.fix(milliseconds);
    }

    /// Resets everything to the initial options.
    pub fn reset(&self) {
        self.world.reset();
    }

    /// Returns the totals and active faults.
    pub fn state(&self) -> Value {
        control::state(&self.world)
    }

    /// Returns accepted conversions, latest first.
    pub fn conversions(
        &self,
        network: SimulatedNetwork,
        account: Option<&str>,
        event_id: Option<&str>,
        limit: usize,
    ) -> Vec<Value> {
        control::conversions(&self.world, network, account, event_id, limit)
    }

    /// Returns recent requests, latest first.
    pub fn requests(&self, network: SimulatedNetwork, limit: usize) -> Vec<Value> {
        control::requests(&self.world, network, limit)
    }
}

/// A listening simulator. Dropping it stops the simulator.
#[derive(Debug)]
pub struct RunningSimulator {
    simulator: Simulator,
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl RunningSimulator {
    /// Returns the base URL for all networks, without a trailing slash.
    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the address that the simulator listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the handle for injecting faults and reading results.
    pub fn control(&self) -> &Simulator {
        &self.simulator
    }

    /// Stops the simulator and waits until it has stopped.
    pub async fn shutdown(self) {
        drop(self.stop);
        if let Err(error) = self.task.await {
            tracing::warn!(%error, "simulator task failed");
        }
    }
}
