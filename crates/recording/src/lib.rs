//! The transactions of the store, written once for both engines.
//!
//! Each function is one transaction or a part of one. It reads facts from an engine's tables, calls
//! `domain` to decide, and writes the decision. It contains no rules and no SQL. The engines
//! implement [`Tables`], which reads and writes rows and decides nothing.
//!
//! `PostgreSQL` futures wait for the server's responses; `SQLite` futures are ready at the first
//! poll. All transactions take locks in the same order: apps, reserved ids, devices, deliveries. An
//! engine with a single writer needs no locks.
#![deny(missing_docs)]

mod ad_services;
pub mod admin;
mod billing;
mod configure;
mod configure_batch;
mod day_values;
mod device_links;
pub mod duplicates;
mod erase;
mod first_payment;
mod forget;
mod holds;
mod import;
mod payers;
mod person;
mod pivots;
mod plan;
mod queue_leases;
mod queues;
mod rebuild;
mod replay;
mod rollups;
mod settle;
mod tables;
mod tally;
mod wipe;

pub use ad_services::settle_token;
pub use billing::{accept_notifications, settle_trials};
pub use configure::{configure, identify};
pub use configure_batch::{BatchedCall, configure_batch};
pub use erase::{erase_device, erase_own_device};
pub use first_payment::settle_first_payment;
pub use forget::forget_attributions;
pub use holds::{review_install, review_installs};
pub use import::import_events;
pub use payers::fill_payers;
pub use person::{
    note_person_export, person_chains, person_events, person_records, person_subscription,
};
pub use pivots::{PivotStep, apply_pivots, prepare_pivots};
pub use queue_leases::{find_share, lease_queue, lock_lease, release_queue, renew_lease};
pub use queues::{reserve_turns, settle_deliveries, settle_status_check};
pub use rebuild::{rebuild_rollups, rollup_days};
pub use replay::replay_part;
pub use rollups::{merge, unmerged_cohorts, unmerged_figures};
pub use tables::*;
pub use tally::{BillingDay, BillingDayCounts, TransactionTally};
pub use wipe::wipe_test_data;
