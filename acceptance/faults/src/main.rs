//! Runs all experiments for a given time and prints the account.

use clap::Parser;
use std::process::ExitCode;
use tributary_faults::runner::{RunOptions, run};

// More threads than experiments run commands at a time. Those wait for their end on a thread, and the
// proxies that they connect through must go on meanwhile.
#[tokio::main(worker_threads = 16)]
async fn main() -> ExitCode {
    run(RunOptions::parse()).await
}
