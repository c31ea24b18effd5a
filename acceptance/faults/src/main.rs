//! Runs all experiments for a given time and prints the account.

use clap::Parser;
use std::process::ExitCode;
use tributary_faults::runner::{RunOptions, run};

#[tokio::main]
async fn main() -> ExitCode {
    run(RunOptions::parse()).await
}
