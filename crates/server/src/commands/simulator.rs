//! `tributary simulator`: simulates the four ad networks.

use super::print_line;
use crate::cli::SimulatorOptions;
use crate::config::Config;
use crate::logging;
use crate::shutdown::StopSignals;
use anyhow::Context as _;
use tokio::net::TcpListener;
use tributary_simulator::SimulatorConfig;

/// Runs the simulator until SIGTERM or SIGINT.
pub async fn run(config: &Config, options: SimulatorOptions) -> anyhow::Result<()> {
    let _log = logging::init(&config.log)?;
    let mut signals = StopSignals::install().context("cannot install signal handlers")?;
    let listener = TcpListener::bind(options.listen).await.with_context(|| {
        format!(
            "cannot listen on {}; choose another address with --listen",
            options.listen
        )
    })?;
    let address = listener.local_addr()?;
    print_line(format!("The simulator is running at http://{address}/"));
    print_line("");
    print_line("To send events to it, start the server with these settings:");
    print_line("");
    print_line("  TRIBUTARY_NETWORKS__ALLOW_PRIVATE_ADDRESSES=true");
    for network in ["A", "B", "C", "D"] {
        print_line(format!(
            "  TRIBUTARY_NETWORKS__NETWORK_{network}__BASE_URL=http://{address}"
        ));
    }
    print_line(format!(
        "  TRIBUTARY_NETWORKS__NETWORK_B__TOKEN_URL=http://{address}/token"
    ));
    print_line(format!(
        "  TRIBUTARY_NETWORKS__NETWORK_B__REPORTS_URL=http://{address}"
    ));
    let simulated = SimulatorConfig {
        listen: options.listen,
        open: !options.closed,
        ..SimulatorConfig::default()
    };
    tributary_simulator::serve(listener, simulated, async move { signals.wait().await }).await?;
    Ok(())
}
