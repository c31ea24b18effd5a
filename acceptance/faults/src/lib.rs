//! Breaks running servers in every known way and accounts for everything that was acknowledged.
//!
//! An experiment runs the real binary under a mixed load (`load`): taps, first opens, SDK events, web
//! events with refunds, and billing notifications. It injects one kind of fault in several rounds, and
//! then compares what the clients were told with what the server stored, reports and forwarded
//! (`check`). The results of all experiments are added up by fault and engine (`account`).
//!
//! `tests/` runs a short version of each experiment. The binary repeats all of them for as long as it
//! is told (`./test --faults 60m`).

#![expect(
    clippy::unwrap_used,
    reason = "an experiment fails on an unexpected result"
)]
#![expect(clippy::print_stdout, reason = "the runner prints its progress")]

pub mod account;
pub mod check;
pub mod experiments;
pub mod idle;
pub mod instance;
pub mod load;
pub mod postgres;
pub mod power;
pub mod raw_http;
pub mod requests;
pub mod runner;
pub mod site;

#[cfg(test)]
mod fault_proxy_tests;
