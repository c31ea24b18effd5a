//! `tributary simulator`: the four ad networks, played strictly.

use super::say;
use crate::cli::SimulatorOptions;
use crate::config::Config;
use crate::logging;
use crate::shutdown::StopSignals;
use anyhow::Context as _;
use tokio::net::TcpListener;
use tributary_simulator::Options;

/// Plays them until SIGTERM or SIGINT.
pub async fn run(config: &Config, options: SimulatorOptions) -> anyhow::Result<()> {
    logging::init(&config.log)?;
    let mut signals = StopSignals::install().context("signals cannot be listened for")?;
    let listener = TcpListener::bind(options.listen).await.with_context(|| {
        format!(
            "cannot listen on {}; --listen takes another",
            options.listen
        )
    })?;
    let address = listener.local_addr()?;
    say(format!("The simulator is running at http://{address}/"));
    say("");
    say("Start the server with these settings to have it send there:");
    say("");
    say("  TRIBUTARY_NETWORKS__ALLOW_PRIVATE_ADDRESSES=true");
    for network in ["A", "B", "C", "D"] {
        say(format!(
            "  TRIBUTARY_NETWORKS__NETWORK_{network}__BASE_URL=http://{address}"
        ));
    }
    say(format!(
        "  TRIBUTARY_NETWORKS__NETWORK_B__TOKEN_URL=http://{address}/token"
    ));
    let simulated = Options {
        listen: options.listen,
        open: !options.closed,
        ..Options::default()
    };
    tributary_simulator::serve(listener, simulated, async move { signals.wait().await }).await?;
    Ok(())
}
