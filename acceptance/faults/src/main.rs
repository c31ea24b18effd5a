//! Runs all experiments for a given time and prints the account.

use clap::{Parser, Subcommand};
use std::process::ExitCode;
use tributary_faults::idle;
use tributary_faults::runner::{RunOptions, run};

/// Breaks running servers and accounts for everything that was acknowledged.
#[derive(Debug, Parser)]
#[command(args_conflicts_with_subcommands = true)]
struct Options {
    #[command(flatten)]
    run: RunOptions,
    #[command(subcommand)]
    command: Option<Helper>,
}

/// What the program starts of itself.
#[derive(Debug, Subcommand)]
enum Helper {
    /// Opens connections to a server and holds them until its input ends.
    HoldIdle {
        /// URL of the server.
        server: String,
        /// Number of connections.
        count: u64,
    },
}

// More threads than experiments run commands at a time. Those wait for their end on a thread, and the
// proxies that they connect through must go on meanwhile.
#[tokio::main(worker_threads = 16)]
async fn main() -> ExitCode {
    let options = Options::parse();
    match options.command {
        None => run(options.run).await,
        Some(Helper::HoldIdle { server, count }) => {
            idle::hold(&server, count).await;
            ExitCode::SUCCESS
        }
    }
}
