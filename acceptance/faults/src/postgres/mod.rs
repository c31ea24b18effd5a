//! Faults of PostgreSQL, and of the connections to it.
//!
//! Each experiment has two PostgreSQL servers for itself, a primary and a standby, because it stops,
//! freezes and promotes them. The server under test reaches the primary through a fault proxy. Its
//! time limits are short, so that an outage of a few seconds exceeds them.

mod connections;
mod counter;
mod deadlocks;
mod exhaustion;
mod failover;
mod outages;
mod probe;
mod scene;

pub use counter::{fail_over_without_standby, trust_unanswered_requests};
pub use failover::fail_over;

use crate::account::Totals;
use crate::check::check;
use crate::experiments::Episode;
use crate::load::Load;
use scene::Scene;

/// A fault that ends after some seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PostgresFault {
    /// The server crashes and starts again.
    Restart,
    /// All processes of the server stop, and go on.
    Pause,
    /// The answers to commits are lost, and the connections with them.
    LostCommits,
    /// Connections end at random bytes, in one of three ways.
    RandomCuts,
    /// Every byte is a packet.
    OneBytePieces,
    /// One direction of all connections is held back.
    Stall,
    /// Clients lose the responses to requests that the server has received.
    LostResponses,
    /// Another client locks rows in the opposite order.
    Deadlocks,
    /// Other clients use up all connections of the server.
    TooManyClients,
    /// Another client locks tables, so that every connection of the pool waits.
    LockedTables,
}

impl PostgresFault {
    /// All faults, in the order of a short run.
    pub const ALL: [Self; 10] = [
        Self::Restart,
        Self::Pause,
        Self::LostCommits,
        Self::RandomCuts,
        Self::OneBytePieces,
        Self::Stall,
        Self::LostResponses,
        Self::Deadlocks,
        Self::TooManyClients,
        Self::LockedTables,
    ];

    /// Injects the fault and heals it.
    async fn inject(self, scene: &mut Scene, load: &Load) {
        match self {
            Self::Restart => outages::restart(scene).await,
            Self::Pause => outages::pause(scene).await,
            Self::LostCommits => connections::lose_commits(scene).await,
            Self::RandomCuts => connections::cut_at_random(scene).await,
            Self::OneBytePieces => connections::forward_single_bytes(scene, load).await,
            Self::Stall => connections::stall(scene).await,
            Self::LostResponses => connections::lose_responses(scene).await,
            Self::Deadlocks => deadlocks::storm(scene).await,
            Self::TooManyClients => exhaustion::use_all_connections(scene).await,
            Self::LockedTables => exhaustion::lock_tables(scene).await,
        }
    }
}

/// Injects a fault in every round.
pub async fn break_postgres(fault: PostgresFault, episode: Episode) -> Totals {
    let mut scene = Scene::start(episode.seed).await;
    for _ in 0..episode.rounds {
        round(&mut scene, fault, &episode).await;
    }
    account(scene).await
}

/// Injects each of these faults once, on one instance. Starting the servers takes longer than most
/// faults.
pub async fn break_postgres_in_turn(faults: &[PostgresFault], episode: Episode) -> Totals {
    let mut scene = Scene::start(episode.seed).await;
    for fault in faults {
        round(&mut scene, *fault, &episode).await;
    }
    account(scene).await
}

async fn round(scene: &mut Scene, fault: PostgresFault, episode: &Episode) {
    scene.name = format!("{fault:?}");
    let load = scene.start_load(episode).await;
    fault.inject(scene, &load).await;
    scene.recover(load).await;
    if fault == PostgresFault::LostCommits {
        connections::find_hidden_commits(scene).await;
    }
}

async fn account(scene: Scene) -> Totals {
    let Scene {
        mut instance,
        ledger,
        mut totals,
        // Runs until the check has ended.
        proxy: _proxy,
        servers: _servers,
        ..
    } = scene;
    check(&mut instance, ledger, &mut totals).await;
    totals
}
