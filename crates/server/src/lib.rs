//! The server: configuration, command line, wiring and shutdown of the `tributary` binary.

pub mod cli;
pub mod commands;
pub mod config;
pub mod descriptors;
pub mod dns;
pub mod exit_code;
pub mod first_run;
pub mod geo;
pub mod http;
pub mod logging;
pub mod mail;
pub mod metrics;
pub mod notices;
pub mod outbound;
pub mod probe;
mod process_metrics;
pub mod public_address;
pub mod rates;
pub mod secret_key;
pub mod shutdown;
pub mod sign_on;
pub mod system;
pub mod transport;
mod watched_file;
pub mod wiring;
pub mod workers;

#[cfg(test)]
mod testing;

use axum::Router;
use cli::{Cli, ClientCommand, Command, ConfigCommand, DemoOptions};
use config::Config;
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;
pub use tributary_api::DocumentSources;
use tributary_api::{Documents, RateLimits};
use tributary_domain::node_role::NodeRoles;
use wiring::ServerParts;

/// A request makes dozens of small allocations that another thread frees. The system allocator
/// spends a tenth of the CPU time on that (musl's, in a static binary, far more); see
/// `docs/BENCHMARKS.md`.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Time that busy threads get to finish at shutdown. Everything they acknowledged is already
/// committed.
const THREAD_SHUTDOWN_MAX: Duration = Duration::from_secs(2);

/// Runs the command given on the command line. A server shows these documents.
pub fn run(cli: Cli, documents: DocumentSources) -> anyhow::Result<ExitCode> {
    let (file, roles) = (cli.config.clone(), cli.roles);
    let command = cli.into_command();
    // Commands that need no settings must not fail because of bad settings.
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
            demo(file.as_deref(), roles, options, documents)?;
            return Ok(ExitCode::SUCCESS);
        }
        Command::Mcp(options) => {
            runtime()?.block_on(commands::mcp::run(&options))?;
            return Ok(ExitCode::SUCCESS);
        }
        Command::Client(command) => return read_from_server(file.as_deref(), roles, *command),
        command => command,
    };
    let config = Config::load_with(file.as_deref(), config::environment(), roles)?;
    if command == Command::Serve {
        serve(config, |parts| {
            wiring::router(with_documents(parts, documents))
        })?;
        return Ok(ExitCode::SUCCESS);
    }
    let runtime = runtime()?;
    match command {
        Command::Admin(command) => runtime.block_on(commands::admin::run(&config, command))?,
        Command::Fx(command) => runtime.block_on(commands::fx::run(&config, command))?,
        Command::Rollups(command) => {
            runtime.block_on(commands::rollups::run(&config, command))?;
        }
        Command::Audit(command) => {
            return runtime.block_on(commands::audit::run(&config, command));
        }
        Command::Import(options) => {
            return runtime.block_on(commands::import::run(&config, options));
        }
        Command::Move(options) => {
            runtime.block_on(commands::move_database::run(&config, &options))?;
        }
        Command::SecretKey(command) => {
            runtime.block_on(commands::secret_key::run(&config, command))?;
        }
        Command::Backup(options) => commands::backup::run(&config, &options)?,
        Command::Restore { file } => commands::restore::run(&config, &file)?,
        Command::Migrate(options) => {
            // Log each step as it happens: some migrations take minutes.
            let _log = logging::init(&config.log)?;
            runtime.block_on(commands::migrate::run(&config, options))?;
        }
        Command::Simulator(options) => {
            runtime.block_on(commands::simulator::run(&config, options))?;
        }
        Command::Doctor => return runtime.block_on(commands::doctor::run(&config)),
        Command::Config(ConfigCommand::Print) => commands::config::print(&config),
        Command::Config(ConfigCommand::Check) => commands::config::check(&config)?,
        Command::Serve
        | Command::Demo(_)
        | Command::Mcp(_)
        | Command::Client(_)
        | Command::Openapi
        | Command::Completions { .. }
        | Command::Man { .. } => {}
    }
    Ok(ExitCode::SUCCESS)
}

/// Serves until a stop signal, with the router that `wire` builds: [`wiring::router`], or a
/// benchmark's own.
pub fn serve(
    config: Config,
    wire: impl FnOnce(ServerParts) -> (Router, Arc<RateLimits>),
) -> anyhow::Result<()> {
    let runtime = runtime()?;
    let _log = logging::init(&config.log)?;
    for warning in config.warnings() {
        tracing::warn!("{warning}");
    }
    let served = runtime.block_on(commands::serve::run(config, wire));
    // Dropping the runtime would wait indefinitely for a thread that is opening a database.
    runtime.shutdown_timeout(THREAD_SHUTDOWN_MAX);
    served
}

/// Runs the demo with its own settings, so that it never touches a real server's data.
fn demo(
    file: Option<&Path>,
    roles: Option<NodeRoles>,
    options: DemoOptions,
    documents: DocumentSources,
) -> anyhow::Result<()> {
    if file.is_some() {
        anyhow::bail!("the demo does not use a settings file; remove --config");
    }
    if roles.is_some() {
        anyhow::bail!("the demo has every role; remove --roles");
    }
    let runtime = runtime()?;
    let shown = runtime.block_on(commands::demo::run(options, documents));
    runtime.shutdown_timeout(THREAD_SHUTDOWN_MAX);
    shown
}

/// Adds the documents that the server shows.
pub(crate) fn with_documents(parts: ServerParts, documents: DocumentSources) -> ServerParts {
    ServerParts {
        documents: Arc::new(Documents::new(documents)),
        ..parts
    }
}

/// Runs a command that reads from a running server. It needs no settings, and no database.
fn read_from_server(
    file: Option<&Path>,
    roles: Option<NodeRoles>,
    command: ClientCommand,
) -> anyhow::Result<ExitCode> {
    if file.is_some() || roles.is_some() {
        anyhow::bail!("this command reads from a running server; remove --config and --roles");
    }
    runtime()?.block_on(commands::client::run(command))?;
    Ok(ExitCode::SUCCESS)
}

fn runtime() -> std::io::Result<Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
}
