//! Plays the four ad networks and Google's token endpoint, as strictly as the real ones, with faults on demand.
//!
//! It is an independent oracle: it shares no code with the adapters that it checks, and knows the wire only from
//! the reference. It checks every field and type, refuses what the networks refuse in their own words, all or
//! nothing, deduplicates by their keys inside their windows, and keeps books of what arrived. Nothing is written to
//! disk. `GET /` shows the books as a page.
//!
//! All networks are on one port, since their paths differ; each one's base URL is the simulator's.
//!
//! | Network | Path |
//! |---|---|
//! | `network_a` | `POST /{version}/{pixel id}/events` (JSON, url-encoded and multipart forms) |
//! | `network_b` | `POST /v1/events:ingest`, `GET /v1/requestStatus:retrieve`, `POST /token` |
//! | `network_c` | `POST /open_api/v1.3/event/track/` (with the slash at the end) |
//! | `network_d` | `POST /v1/events?pid={pixel id}` |
//!
//! # Credentials
//!
//! With [`Options::open`] every well-formed credential is good for every account, unless it begins with `bad`, and
//! registered accounts accept only what they were registered with. Without it only registered accounts exist.
//! Access tokens of `network_b` must come from `POST /token` in any case. The assertion of a service account is
//! checked for structure and claims; its signature only when the account was registered with its public key.
//!
//! # Stricter than the real ones
//!
//! `null` is never taken for a missing field. An amount with more than six digits after the point is refused: it
//! comes from binary floating point. An event that nobody can be recognised by is refused on all four networks,
//! and fields that the reference does not name are refused, except in `custom_data` and `properties`.
//!
//! # Control
//!
//! Everything is under `/control`, JSON in camelCase, and unknown fields are refused with 400.
//!
//! | Call | Effect |
//! |---|---|
//! | `GET /control/state` | clock, totals of each network, active faults |
//! | `GET /control/networks/{network}/conversions?account=&eventId=&limit=` | accepted conversions, the latest first, with how often each came (`times`) and was counted (`counted`) |
//! | `GET /control/networks/{network}/requests?limit=` | the last 200 requests and how they were answered, without credentials |
//! | `POST /control/accounts` | registers an account: an [`accounts::Account`], `{"network": "network_a", "pixelId": "1", …}` |
//! | `POST /control/clock` | `{"aheadMs": 0}`: sets the clock ahead of the machine's, or back |
//! | `POST /control/reset` | back to the options: books, faults, tokens, accounts, clock |
//! | `POST /control/faults` | orders a fault |
//! | `GET /control/faults` | the active ones |
//! | `DELETE /control/faults?network=` | clears them, all or one network's, and lets go of what hangs |
//!
//! An order is `{"network", "account", "endpoint", "fault", "times"}`. Without an account it is meant for all; on
//! `network_b` the account is the operating account, at the token endpoint the client id. `endpoint` is `events`
//! unless it says `token` or `status`. Without `times` it stays until it is cleared. Faults take their turns in the
//! order in which they came, one per request:
//!
//! | `fault.kind` | Fields | Effect |
//! |---|---|---|
//! | `status` | `status`, `body`, `headers`, `processed` | this answer; with `processed` the events are taken in all the same |
//! | `delay` | `ms` | the events are taken in, the answer comes late |
//! | `hang` | | no answer; when the faults are cleared it goes on as if nothing had been |
//! | `reset_before` | | a reset before anything is taken in |
//! | `reset_after` | | a reset after the events were taken in |
//! | `expire_tokens` | | `network_b`: all access tokens issued so far are bad, once; the others: the answer to bad credentials |
//!
//! These stand beside the queue:
//!
//! | `fault.kind` | Fields | Effect |
//! |---|---|---|
//! | `poison` | `ids`, `prefix`, `index`, `partial`, `path` | refuses requests with an event of these ids, or whose id begins so, or, with neither, which has `poison` in `custom_data`, `properties` or `data`; `index` (true) says whether the answer names the event; with `partial` `network_c` takes the other events and lists these as failed; with `path` `network_d` names the event by its path |
//! | `usage` | `percent`, `regainMinutes` | what `network_a`'s headers say |
//! | `request_status` | `status`, `reason`, `count` | what `requestStatus:retrieve` says |

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
mod request_pipeline;
mod routes;
mod server;
mod simulator;
mod validation;
mod world;

pub use network::{Endpoint, SimulatedNetwork};
pub use simulator::{RunningSimulator, Simulator};

use accounts::SimulatedAccount;
use std::net::{Ipv4Addr, SocketAddr};
use tokio::net::TcpListener;

/// How the simulator behaves.
#[derive(Debug, Clone)]
pub struct SimulatorConfig {
    /// Where [`Simulator::start`] listens; port 0 is any free one.
    pub listen: SocketAddr,
    /// Whether unknown accounts and well-formed credentials are accepted.
    pub open: bool,
    /// Conversions kept per network; older ones are forgotten, and would be counted again.
    pub conversions_max: usize,
    /// Conversions kept with what was sent, per network.
    pub payloads_max: usize,
    /// Accounts that exist from the start.
    pub accounts: Vec<SimulatedAccount>,
    /// How far the clock is ahead of the machine's at the start.
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

/// Serves on a socket until told to stop.
pub async fn serve(
    listener: TcpListener,
    options: SimulatorConfig,
    stop: impl Future<Output = ()>,
) -> std::io::Result<()> {
    tracing::info!(address = %listener.local_addr()?, "the simulator is ready");
    Simulator::new(options).serve(listener, stop).await;
    Ok(())
}
