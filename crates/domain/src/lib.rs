//! The business rules of Tributary.
//!
//! Everything here is a pure function from facts to a decision. The crate cannot do I/O:
//! `Cargo.toml` lists no dependency that reads a file, a socket, a clock or a random source.
//! Callers pass time, ids and random bytes as arguments.
//!
//! Entities are not serialised here: `api` defines the wire formats, `store` the stored formats.
#![deny(missing_docs)]

pub mod vocabulary;

pub mod keyring;

pub mod access;

pub mod ownership;

pub mod app;

pub mod link;

pub mod exchange;

pub mod click;

pub mod device;

pub mod attestation;

pub mod attribution;

pub mod event;

pub mod install;

pub mod ledger;

pub mod billing;

pub mod report;

pub mod integration;

pub mod cost_source;

pub mod forwarding;

pub mod erasure;

pub mod personal_data;

pub mod retention;

pub mod wipe;

pub mod partitioning;

pub mod skan;

pub mod audit;

pub mod node_role;

pub mod notice;

pub mod standby;

pub mod due_work;

pub mod refusal;

pub mod runtime;
