//! Simulates the four ad networks and Google's token endpoint, as strictly as the real networks,
//! with fault injection.
//!
//! The simulator is an independent oracle: it shares no code with the adapters that it checks, and
//! follows only the reference for the networks' APIs. It validates every field, rejects whole
//! requests with the networks' own errors, deduplicates events by each network's deduplication key
//! and window, and keeps a ledger of what arrived. Nothing is written to disk. `GET /` shows the
//! ledger as a page.
//!
//! All networks share one port, because their paths differ. The simulator's URL is the base URL for
//! every network.
//!
//! | Network | Path |
//! |---|---|
//! | `network_a` | `POST /{version}/{pixel id}/events` (JSON, url-encoded and multipart forms) |
//! | `network_b` | `POST /v1/events:ingest`, `GET /v1/requestStatus:retrieve`, `POST /token` |
//! | `network_c` | `POST /open_api/v1.3/event/track/` (with the trailing slash) |
//! | `network_d` | `POST /v1/events?pid={pixel id}` |
//! | `network_a` reports | `GET /{version}/act_{account id}/insights` |
//! | `network_b` reports | `POST /{version}/customers/{account id}/googleAds:search` |
//! | `network_c` reports | `GET /open_api/v1.3/report/integrated/get/` |
//!
//! # Credentials
//!
//! With [`SimulatorConfig::open`], every well-formed credential is valid for every account unless
//! it starts with `bad`; registered accounts accept only their own credentials. Otherwise only
//! registered accounts exist. Access tokens for `network_b` must always come from `POST /token`.
//! Service account assertions are checked for structure and claims; the signature is checked only
//! if the account was registered with its public key.
//!
//! # Stricter than the real networks
//!
//! `null` never counts as a missing field. Amounts with more than six decimals are rejected,
//! because they come from binary floating point. All four networks reject events without
//! identifiers, and fields that the reference does not name, except in `custom_data` and
//! `properties`.
//!
//! # Control API
//!
//! All endpoints are under `/control` and use JSON in camelCase. Unknown fields are rejected with
//! 400.
//!
//! | Call | Effect |
//! |---|---|
//! | `GET /control/state` | clock, each network's totals, active faults |
//! | `GET /control/networks/{network}/conversions?account=&eventId=&limit=` | accepted conversions, latest first, with how often each was received (`times`) and counted (`counted`) |
//! | `GET /control/networks/{network}/requests?limit=` | the last 200 requests and their results, without credentials |
//! | `POST /control/accounts` | registers an [`accounts::SimulatedAccount`]: `{"network": "network_a", "pixelId": "1", …}` |
//! | `POST /control/reports` | registers an ad account with its spend, replacing what it had: `{"network": "network_a", "accountId": "1", "currency": "USD", "rows": [{"day": "2026-11-01", "campaignId": "7", "micros": 1500000}]}`; optional: `accessToken`, `appSecret`, `developerToken`, `loginAccountId`, `pageRows` |
//! | `POST /control/clock` | `{"aheadMs": 0}`: sets the clock offset, which may be negative |
//! | `POST /control/reset` | resets ledger, faults, tokens, accounts and clock to the initial options |
//! | `POST /control/faults` | injects a fault |
//! | `GET /control/faults` | lists the active faults |
//! | `DELETE /control/faults?network=` | clears all faults or one network's faults, and resumes hanging requests |
//!
//! A fault injection is `{"network", "account", "endpoint", "fault", "times"}`. Without an account,
//! the fault applies to all accounts. On `network_b` the account is the operating account; at the
//! token endpoint it is the client id. `endpoint` is `events` (default), `token`, `status`
//! or `reports`.
//! Without `times`, the fault stays active until it is cleared. These faults are queued in order,
//! one per request:
//!
//! | `fault.kind` | Fields | Effect |
//! |---|---|---|
//! | `status` | `status`, `body`, `headers`, `processed` | sends this response; with `processed` the events are accepted anyway |
//! | `delay` | `ms` | accepts the events and delays the response |
//! | `hang` | | sends no response; the request resumes when the faults are cleared |
//! | `reset_before` | | resets the connection before the events are accepted |
//! | `reset_after` | | resets the connection after the events are accepted |
//! | `expire_tokens` | | `network_b`: invalidates all issued access tokens, once; others: rejects the credentials |
//!
//! These faults are not queued:
//!
//! | `fault.kind` | Fields | Effect |
//! |---|---|---|
//! | `poison` | `ids`, `prefix`, `index`, `partial`, `path` | rejects requests with an event that has one of these ids, this id prefix or, with neither, `poison` in `custom_data`, `properties` or `data`; `index` (default true): the response names the event; `partial`: `network_c` accepts the other events and lists these as failed; `path`: `network_d` names the event by its path |
//! | `usage` | `percent`, `regainMinutes` | sets the usage in `network_a`'s headers |
//! | `request_status` | `status`, `reason`, `count` | sets the result of `requestStatus:retrieve` |

pub mod accounts;
mod clock;
mod connection;
mod control;
mod faults;
mod ledger;
mod network;
mod network_a;
mod network_b;
mod network_c;
mod network_d;
mod page;
mod registry;
mod reply;
mod reports;
mod request_pipeline;
mod routes;
mod server;
mod simulator;
mod state;
mod validation;

pub use network::{Endpoint, SimulatedNetwork};
pub use simulator::{RunningSimulator, Simulator};

use accounts::SimulatedAccount;
use std::net::{Ipv4Addr, SocketAddr};
use tokio::net::TcpListener;

/// Options for the simulator.
#[derive(Debug, Clone)]
pub struct SimulatorConfig {
    /// Address for [`Simulator::start`]; port 0 means any free port.
    pub listen: SocketAddr,
    /// Whether unknown accounts and any well-formed credentials are accepted.
    pub open: bool,
    /// Conversions kept per network. Older conversions are dropped; if they arrive again, they are
    /// counted again.
    pub conversions_max: usize,
    /// Conversions kept with their payload, per network.
    pub payloads_max: usize,
    /// Accounts registered at startup.
    pub accounts: Vec<SimulatedAccount>,
    /// Clock offset at startup.
    pub clock_ahead_ms: i64,
}

impl Default for SimulatorConfig {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            open: true,
            conversions_max: 200_000,
            payloads_max: 1_000,
            accounts: Vec::new(),
            clock_ahead_ms: 0,
        }
    }
}

/// Serves on a socket until `stop` completes.
pub async fn serve(
    listener: TcpListener,
    options: SimulatorConfig,
    stop: impl Future<Output = ()>,
) -> std::io::Result<()> {
    tracing::info!(address = %listener.local_addr()?, "simulator ready");
    Simulator::new(options).serve(listener, stop).await;
    Ok(())
}
