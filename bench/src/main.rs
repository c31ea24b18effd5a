//! Benchmarks. Each result is compared with a baseline from the same run on the same machine,
//! because absolute numbers mostly describe the machine.
//!
//! Servers run as child processes of this binary: `tributary-bench tributary serve` is
//! `tributary serve`, `tributary-bench bare` adds a parse-only route, and
//! `tributary-bench postback-keys` trusts test keys. See `docs/BENCHMARKS.md`.

mod bare;
mod billing;
mod child;
mod forwarding;
mod load;
mod machine;
mod noisy_tenant;
mod pace;
mod pages;
mod postbacks;
mod preload;
mod quiet_tenants;
mod report;
mod reports;
mod response;
mod site;
mod template;
mod web_events;

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
    /// Web events, compared with a route that only parses the same body.
    WebEvents(web_events::WebEventsBenchOptions),
    /// Deliveries to a simulated network, and ingestion while that network hangs.
    Forwarding(forwarding::ForwardingBenchOptions),
    /// Apple's postbacks: genuine, forged and replayed.
    Postbacks(postbacks::PostbacksBenchOptions),
    /// Reports on a small and a large month, bulk loading, and export.
    Reports(reports::ReportsBenchOptions),
    /// Quiet tenants' taps and web events beside one noisy tenant, and slow readers of exports.
    NoisyTenant(noisy_tenant::NoisyTenantBenchOptions),
    /// Billing webhooks.
    Billing(billing::BillingBenchOptions),
    /// Serve with an extra parse-only route (started by the benchmarks).
    #[command(hide = true)]
    Bare,
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
        Command::WebEvents(options) => web_events::run(&options),
        Command::Forwarding(options) => forwarding::run(&options),
        Command::Postbacks(options) => postbacks::run(&options),
        Command::Reports(options) => reports::run(&options),
        Command::NoisyTenant(options) => noisy_tenant::run(&options),
        Command::Billing(options) => billing::run(&options),
        Command::Bare => bare::serve(),
        Command::PostbackKeys => postbacks::serve(),
        Command::Tributary { arguments } => {
            let all = [OsString::from("tributary")].into_iter().chain(arguments);
            tributary_server::run(tributary_server::cli::Cli::parse_from(all))
        }
    }
}
