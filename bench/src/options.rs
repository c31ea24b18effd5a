//! Command-line options that several benchmarks have in common.

use crate::endpoints::traffic::MeasuredEndpoint;
use crate::engine::EngineArgument;
use clap::{Args, ValueEnum as _};
use std::time::Duration;

/// The database, the rounds and the load.
#[derive(Debug, Args)]
pub(crate) struct RunOptions {
    /// Database engine. PostgreSQL uses the server in `TEST_DATABASE_URL`, in a temporary schema.
    #[arg(long, value_enum, default_value_t = EngineArgument::Sqlite)]
    pub(crate) engine: EngineArgument,
    /// Number of rounds for each measurement.
    #[arg(long, default_value_t = 3)]
    pub(crate) rounds: usize,
    /// Length of a round in seconds.
    #[arg(long, default_value_t = 10)]
    pub(crate) seconds: u64,
    /// Number of client connections.
    #[arg(long, default_value_t = 64)]
    pub(crate) connections: usize,
}

impl RunOptions {
    /// Returns the length of a round.
    pub(crate) const fn round_time(&self) -> Duration {
        Duration::from_secs(self.seconds)
    }
}

/// The endpoints to measure.
#[derive(Debug, Args)]
pub(crate) struct EndpointSelection {
    /// Endpoints, separated by commas.
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        default_values_t = MeasuredEndpoint::value_variants().to_vec()
    )]
    pub(crate) endpoint: Vec<MeasuredEndpoint>,
}
