//! What Tributary costs. Every figure is measured beside its ceiling, in one run on one machine: a ratio says
//! something where a number alone would only describe the machine.
//!
//! Servers are started as processes of their own, out of this very binary: `tributary-bench tributary serve` is
//! `tributary serve`, `tributary-bench bare` is the same server with one route more, and `tributary-bench postback-keys`
//! the same with other keys. See `docs/BENCHMARKS.md`.

mod bare;
mod billing;
mod child;
mod forwarding;
mod load;
mod machine;
mod pace;
mod pages;
mod postbacks;
mod preload;
mod report;
mod reports;
mod response;
mod site;
mod template;
mod web_events;

use clap::{Parser, Subcommand};
use std::ffi::OsString;
use std::process::ExitCode;

/// Measures Tributary.
#[derive(Debug, Parser)]
#[command(name = "tributary-bench", about)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// The door for verified website events, against one that only parses the same body.
    WebEvents(web_events::WebEventsBenchOptions),
    /// Deliveries to a simulated network, and whether one that hangs makes accepting slower.
    Forwarding(forwarding::ForwardingBenchOptions),
    /// The doors for Apple's postbacks, with genuine ones, forged ones and replays.
    Postbacks(postbacks::PostbacksBenchOptions),
    /// Reports on a little and on a lot, loading through the store, export.
    Reports(reports::ReportsBenchOptions),
    /// The door for notifications of billing providers.
    Billing(billing::BillingBenchOptions),
    /// The server, with one route more that only parses (started by the measurements).
    #[command(hide = true)]
    Bare,
    /// The product, with keys of our own for postbacks (started by the measurements).
    #[command(hide = true)]
    PostbackKeys,
    /// The product itself (started by the measurements).
    #[command(hide = true)]
    Tributary {
        /// As for `tributary`.
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
        Command::Billing(options) => billing::run(&options),
        Command::Bare => bare::serve(),
        Command::PostbackKeys => postbacks::serve(),
        Command::Tributary { arguments } => {
            let all = [OsString::from("tributary")].into_iter().chain(arguments);
            tributary_server::run(tributary_server::cli::Cli::parse_from(all))
        }
    }
}
