//! What is read, decided and written when something happens, once for both engines.
//!
//! A function here is one transaction, or a part of one, as a straight line: it reads facts from the tables of an
//! engine, lets `domain` decide, and writes what was decided. It holds no rule and no SQL. The engines implement
//! [`Tables`], which reads and writes rows and decides nothing.
//!
//! `PostgreSQL` waits for answers, `SQLite` does not: its futures are ready when they are first polled. Locks are part of
//! the line, in the one order that all transactions keep: apps, then reserved ids, then devices, then deliveries. An
//! engine with a single writer has nothing to lock.
#![deny(missing_docs)]

mod ad_services;
pub mod admin;
mod billing;
mod configure;
mod device_links;
pub mod duplicates;
mod erase;
mod first_payment;
mod forget;
mod plan;
mod queues;
mod rebuild;
mod rollups;
mod settle;
mod tables;
mod tally;

pub use ad_services::settle_token;
pub use billing::{accept_notifications, settle_trials};
pub use configure::{configure, identify};
pub use erase::erase_device;
pub use first_payment::settle_first_payment;
pub use forget::forget_attributions;
pub use queues::{lease_queue, settle_deliveries, settle_status_check};
pub use rebuild::{rebuild_rollups, rollup_days};
pub use rollups::{merge, unmerged_cohorts, unmerged_figures};
pub use tables::*;
pub use tally::{BillingDay, BillingDayCounts, TransactionTally};
