//! Fuzz targets: one function for each kind of untrusted input.
//!
//! A target panics if the product panics, responds with 5xx, or violates the property that the
//! target checks. `tests/replay.rs` replays `corpus/` and mutations of it on stable Rust;
//! `libfuzzer/` runs the same functions under cargo-fuzz. A new target needs a function, an entry
//! in [`TARGETS`], a folder in `corpus/`, a file in `fuzz_targets/` and an entry in
//! `libfuzzer/Cargo.toml`.

mod requests;
mod service;
mod values;

pub use requests::{body, csv, mcp, postback, query_string, webhook};
pub use values::{click_id, cursor, jws, passkey, referrer};

/// A function that takes any bytes.
pub type Target = fn(&[u8]);

/// The targets with the names of their corpora.
pub const TARGETS: &[(&str, Target)] = &[
    ("body", body),
    ("click_id", click_id),
    ("csv", csv),
    ("cursor", cursor),
    ("jws", jws),
    ("mcp", mcp),
    ("passkey", passkey),
    ("postback", postback),
    ("query_string", query_string),
    ("referrer", referrer),
    ("webhook", webhook),
];
