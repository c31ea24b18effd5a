//! The server: configuration, command line, wiring and shutdown of the `tributary` binary.

pub mod cli;
pub mod commands;
pub mod config;
pub mod descriptors;
pub mod exit_code;
pub mod first_run;
pub mod geo;
pub mod http;
pub mod logging;
pub mod metrics;
pub mod outbound;
pub mod probe;
mod process_metrics;
pub mod public_address;
pub mod rates;
pub mod secret_key;
pub mod shutdown;
pub mod system;
pub mod transport;
pub mod wiring;
pub mod workers;

#[cfg(test)]
mod testing;

use axum::Router;
use cli::{Cli, Command, ConfigCommand, DemoOptions};
use config::Config;
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;
use tributary_api::RateLimits;
use wiring::ServerParts;

/// A request is some dozens of small allocations that another thread frees. The system's allocator takes a tenth of the
/// processor for that (musl's, in a static binary, far more); see `docs/BENCHMARKS.md`.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How long threads that are at work get when the server ends. What they promised is committed.
const THREAD_SHUTDOWN_MAX: Duration = Duration::from_secs(2);

/// Does what the command line asks for.
pub fn run(cli: Cli) -> anyhow::Result<ExitCode> {
    let file = cli.config.clone();
    let command = cli.into_command();
    // What needs no settings must not fail by them.
    let command = match command {
        Command::Openapi => {
            write!(
                std::io::stdout().lock(),
                "{}",
                tributary_api::openapi_yaml()
            )?;
            return Ok(ExitCode::SUCCESS);
        }
        Command::Completions { shell } => {
            commands::manual::completions(shell)?;
            return Ok(ExitCode::SUCCESS);
        }
        Command::Man { folder } => {
            commands::manual::pages(folder.as_deref())?;
            return Ok(ExitCode::SUCCESS);
        }
        Command::Demo(options) => {
            demo(file.as_deref(), options)?;
            return Ok(ExitCode::SUCCESS);
        }
        command => command,
    };
    let config = Config::load(file.as_deref(), config::environment())?;
    if command == Command::Serve {
        serve(config, wiring::router)?;
        return Ok(ExitCode::SUCCESS);
    }
    let runtime = runtime()?;
    match command {
        Command::Admin(command) => runtime.block_on(commands::admin::run(&config, command))?,
        Command::Fx(command) => runtime.block_on(commands::fx::run(&config, command))?,
        Command::Rollups(command) => {
            runtime.block_on(commands::rollups::run(&config, command))?;
        }
        Command::Backup(options) => commands::backup::run(&config, &options)?,
        Command::Restore { file } => commands::restore::run(&config, &file)?,
        Command::Migrate => {
            // Each step is told as it is taken: some of them take minutes.
            logging::init(&config.log)?;
            runtime.block_on(commands::migrate::run(&config))?;
        }
        Command::Simulator(options) => {
            runtime.block_on(commands::simulator::run(&config, options))?;
        }
        Command::Doctor => return runtime.block_on(commands::doctor::run(&config)),
        Command::Config(ConfigCommand::Print) => commands::config::print(&config),
        Command::Config(ConfigCommand::Check) => commands::config::check(&config)?,
        Command::Serve
        | Command::Demo(_)
        | Command::Openapi
        | Command::Completions { .. }
        | Command::Man { .. } => {}
    }
    Ok(ExitCode::SUCCESS)
}

/// Serves until told to stop what the router is made to be: [`wiring::router`], but for whoever measures.
pub fn serve(
    config: Config,
    wire: impl FnOnce(ServerParts) -> (Router, Arc<RateLimits>),
) -> anyhow::Result<()> {
    let runtime = runtime()?;
    logging::init(&config.log)?;
    for warning in config.warnings() {
        tracing::warn!("{warning}");
    }
    let served = runtime.block_on(commands::serve::run(config, wire));
    // Dropping the runtime would wait without end for a thread that opens a database.
    runtime.shutdown_timeout(THREAD_SHUTDOWN_MAX);
    served
}

/// The demo has settings of its own, so that it never meets the data of a real server.
fn demo(file: Option<&Path>, options: DemoOptions) -> anyhow::Result<()> {
    if file.is_some() {
        anyhow::bail!("the demo has settings of its own: leave --config out");
    }
    let runtime = runtime()?;
    let shown = runtime.block_on(commands::demo::run(options));
    runtime.shutdown_timeout(THREAD_SHUTDOWN_MAX);
    shown
}

fn runtime() -> std::io::Result<Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
}
