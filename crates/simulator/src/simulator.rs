//! The simulator as a value: served, embedded in another router, or run beside a test.

use crate::network::SimulatedNetwork;
use crate::world::World;
use crate::{SimulatorConfig, control, routes, server};
use axum::Router;
use serde_json::Value;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// A handle on the simulator; clones are the same one. Its methods do what the control interface does, with the
/// same JSON, and say in words what is wrong.
#[derive(Debug, Clone)]
pub struct Simulator {
    world: Arc<World>,
}

impl Simulator {
    /// One that does not listen yet.
    pub fn new(options: SimulatorConfig) -> Self {
        let world = Arc::new(World::new(options));
        Self { world }
    }

    /// Starts one on its own task.
    pub async fn start(options: SimulatorConfig) -> std::io::Result<RunningSimulator> {
        let listener = TcpListener::bind(options.listen).await?;
        let address = listener.local_addr()?;
        let simulator = Self::new(options);
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = simulator.clone();
        let task = tokio::spawn(async move {
            // Dropping the other end stops it too.
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

    /// All routes. Served by anything but [`Simulator::serve`], resets become empty answers with status 500.
    pub fn router(&self) -> Router {
        routes::router(Arc::clone(&self.world))
    }

    /// Serves on a socket until told to stop.
    pub async fn serve(&self, listener: TcpListener, stop: impl Future<Output = ()>) {
        server::serve(listener, self.router(), stop).await;
    }

    /// Orders a fault; gives its id.
    pub fn inject_fault(&self, order: Value) -> Result<u64, String> {
        control::inject_fault(&self.world, order)
    }

    /// Clears the faults of a network, or all.
    pub fn clear_faults(&self, network: Option<SimulatedNetwork>) {
        control::clear_faults(&self.world, network);
    }

    /// Registers an account.
    pub fn register(&self, account: Value) -> Result<(), String> {
        control::register(&self.world, account)
    }

    /// Sets the clock ahead of the machine's, or back.
    pub fn set_clock_ahead(&self, milliseconds: i64) {
        self.world.clock.set_ahead(milliseconds);
    }

    /// Back to the options.
    pub fn reset(&self) {
        self.world.reset();
    }

    /// The totals and the active faults.
    pub fn state(&self) -> Value {
        control::state(&self.world)
    }

    /// Accepted conversions, the latest first.
    pub fn conversions(
        &self,
        network: SimulatedNetwork,
        account: Option<&str>,
        event_id: Option<&str>,
        limit: usize,
    ) -> Vec<Value> {
        control::conversions(&self.world, network, account, event_id, limit)
    }

    /// The last requests, the latest first.
    pub fn requests(&self, network: SimulatedNetwork, limit: usize) -> Vec<Value> {
        control::requests(&self.world, network, limit)
    }
}

/// A simulator that listens. It stops when this is dropped.
#[derive(Debug)]
pub struct RunningSimulator {
    simulator: Simulator,
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl RunningSimulator {
    /// The base URL of every network, without a slash at the end.
    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// For scripting it and looking into it.
    pub fn control(&self) -> &Simulator {
        &self.simulator
    }

    /// Stops it, and waits until it has.
    pub async fn shutdown(self) {
        drop(self.stop);
        if let Err(error) = self.task.await {
            tracing::warn!(%error, "the simulator did not end well");
        }
    }
}
