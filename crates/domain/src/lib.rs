//! The rules of Tributary.
//!
//! Everything here is a function from facts to a decision. The crate does no I/O and cannot: its
//! `Cargo.toml` names nothing that reads a file, a socket, a clock or a random source. Time, ids and
//! random bytes are arguments.
//!
//! Entities carry no serialisation: wire shapes belong to `api`, stored shapes to `store`.
#![deny(missing_docs)]

pub mod vocabulary;

pub mod keyring;

pub mod access;

pub mod app;

pub mod link;

pub mod exchange;

pub mod click;

pub mod device;

pub mod attribution;

pub mod event;

pub mod install;

pub mod ledger;

pub mod billing;

pub mod report;

pub mod integration;

pub mod forwarding;

pub mod erasure;

pub mod retention;

pub mod skan;

pub mod audit;

pub mod refusal;

pub mod runtime;
