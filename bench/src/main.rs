//! Benchmarks. Each result is compared with a baseline from the same run on the same machine,
//! because absolute numbers mostly describe the machine.
//!
//! Servers run as child processes of this binary: `tributary-bench tributary serve` is
//! `tributary serve`, `tributary-bench postback-keys` also trusts test keys, and
//! `tributary-bench bare` is axum without Tributary. See `docs/BENCHMARKS.md`.

mod bare;
mod child;
mod endpoints;
mod engine;
mod forwarding;
mod growth;
mod idle;
mod import;
mod instructions;
mod load;
mod load_process;
mod machine;
mod noisy_tenant;
mod options;
mod pace;
mod pages;
mod postbacks;
mod preload;
mod quiet_tenants;
mod recent_clicks;
mod report;
mod reports;
mod response;
mod rounds;
mod site;
mod template;

use clap::{Parser, Subcommand};
use std::ffi::OsString;
use std::process::ExitCode;

/// Benchmarks Tributary.
#[derive(Debug, Parser)]
#[command(name = "tributary-bench", about)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Each endpoint that records data, compared with bare axum.
    Endpoints(endpoints::EndpointsBenchOptions),
    /// A large database compared with an empty one; disk, memory, start and idle connections.
    Growth(growth::GrowthBenchOptions),
    /// Instructions per request under callgrind, compared with a baseline.
    Instructions(instructions::InstructionsBenchOptions),
    /// Deliveries to a simulated network, and ingestion while that network hangs.
    Forwarding(forwarding::ForwardingBenchOptions),
    /// Apple's postbacks: genuine, forged and replayed.
    Postbacks(postbacks::PostbacksBenchOptions),
    /// Reports on a small and a large month, bulk loading, and export.
    Reports(reports::ReportsBenchOptions),
    /// `tributary import` of a month of events into an empty app.
    Import(import::ImportBenchOptions),
    /// Quiet tenants' taps and web events beside one noisy tenant, and slow readers of exports.
    NoisyTenant(noisy_tenant::NoisyTenantBenchOptions),
    /// Serve with bare axum (started by the benchmarks).
    #[command(hide = true)]
    Bare,
    /// Generate load (started by the benchmarks).
    #[command(hide = true)]
    Load,
    /// Serve with test keys for postbacks (started by the benchmarks).
    #[command(hide = true)]
    PostbackKeys,
    /// Run a `tributary` command (started by the benchmarks).
    #[command(hide = true)]
    Tributary {
        /// Arguments for `tributary`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
}

fn main() -> anyhow::Result<ExitCode> {
    match Arguments::parse().command {
        Command::Endpoints(options) => endpoints::run(&options),
        Command::Growth(options) => growth::run(&options),
        Command::Instructions(options) => instructions::run(&options),
        Command::Forwarding(options) => forwarding::run(&options),
        Command::Postbacks(options) => postbacks::run(&options),
        Command::Reports(options) => reports::run(&options),
        Command::Import(options) => import::run(&options),
        Command::NoisyTenant(options) => noisy_tenant::run(&options),
        Command::Bare => bare::serve(),
        Command::Load => load_process::serve(),
        Command::PostbackKeys => postbacks::serve(),
        Command::Tributary { arguments } => {
            let all = [OsString::from("tributary")].into_iter().chain(arguments);
            tributary_server::run(tributary_server::cli::Cli::parse_from(all), &[])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }
}
