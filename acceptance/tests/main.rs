//! Black-box tests of Tributary.
//!
//! `spec/` tests the API, one file per part. `faults/` injects failures. `hostile/` sends random and
//! hostile requests. `simulation/` compares random histories with a model. `documents/` checks
//! documents and packaging. `operation/` starts, monitors and stops the binary. Tests that use a
//! database run on both engines.

#![expect(clippy::unwrap_used, reason = "a test fails on an unexpected result")]
#![expect(clippy::print_stdout, reason = "the fault tests print their totals")]

mod documents {
    mod commands;
    mod complete;
    mod fences;
    mod links;
    mod packaging;
    mod version;
}
mod audited_writes;
mod layering;
mod openapi;
mod routes;
mod statements;

mod spec {
    mod access;
    mod apps;
    mod archived;
    mod attestation;
    mod audit_chain;
    mod audit_log;
    mod billing;
    mod billing_appstore;
    mod billing_joins;
    mod billing_lifecycle;
    mod billing_overlap;
    mod billing_sdk;
    mod billing_stripe;
    mod billing_tokens;
    mod billing_vectors;
    mod clicks;
    mod cohort_curves;
    mod cohort_pages;
    mod cohort_payers;
    mod compressed_bodies;
    mod cost_sources;
    mod costs;
    mod deliveries;
    mod deliveries_retry;
    mod devices;
    mod erasure;
    mod errors;
    mod events;
    mod export;
    mod forwarding;
    mod held;
    mod identity;
    mod import;
    mod integrations;
    mod integrations_health;
    mod keys;
    mod landing;
    mod links;
    mod mcp;
    mod mcp_keys;
    mod mcp_stdio;
    mod notices;
    mod ownership;
    mod pagination;
    mod patch;
    mod personal_data;
    mod report_pages;
    mod report_pivots;
    mod report_values;
    mod reports;
    mod reports_model;
    mod resources;
    mod sdk_keys;
    mod served_documents;
    mod single_sign_on;
    mod skan;
    mod skan_postbacks;
    mod skan_postbacks_api;
    mod skan_postbacks_fuzz;
    mod tenancy;
    mod tenant_fairness;
    mod track;
    mod track_endpoints;
    mod track_skan;
    mod traffic;
    mod undelivered;
    mod unverified_writes;
    mod web_events;
    mod web_events_concurrency;
    mod web_events_fields;
    mod web_events_ledger;
    mod web_events_money;
    mod web_events_validate;
    mod what_if;
    mod wipe;
}

mod backup;
mod bad_input;
mod billing;
mod client_commands;
mod command_line;
mod demo;
mod first_run;
mod limits;
mod move_database;
mod networks;
mod operation;
mod outbox;
mod postbacks;
mod random;
mod secrets;
mod upgrade;
mod website;

mod faults {
    mod billing_day;
    mod clicks;
    mod damage;
    mod daylight_saving;
    mod device_clocks;
    mod forwarding;
    mod forwarding_kill;
    mod full_disk;
    mod hostile_networks;
    mod kill;
    mod many_nodes;
    mod power_cut;
    mod power_cut_round;
    mod refusals;
    mod standby;
    mod unreachable_networks;
    mod web_events;
    mod years;
}

mod hostile {
    mod connection;
    mod hostile_requests;
    mod requests;
}

mod simulation {
    mod web_cases;
    mod web_compare;
    mod web_events;
    mod web_history;
    mod web_model;
}
