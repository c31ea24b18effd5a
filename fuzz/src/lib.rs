//! Fuzz targets: one function from bytes for everything that strangers send.
//!
//! A target panics when the product panics, answers with 5xx, or breaks the rule that the target checks.
//! `tests/replay.rs` replays `corpus/` and mutations of it on stable; `libfuzzer/` is the same functions under cargo-fuzz.
//! A new target needs a function, its line in [`TARGETS`], a folder in `corpus/`, a file in `fuzz_targets/` and its lines
//! in `libfuzzer/Cargo.toml`.

mod requests;
mod service;
mod values;

pub use requests::{body, csv, postback, query_string, webhook};
pub use values::{click_id, cursor, jws, referrer};

/// A function that takes any bytes.
pub type Target = fn(&[u8]);

/// Every target, by the name of its corpus.
pub const TARGETS: &[(&str, Target)] = &[
    ("body", body),
    ("click_id", click_id),
    ("csv", csv),
    ("cursor", cursor),
    ("jws", jws),
    ("postback", postback),
    ("query_string", query_string),
    ("referrer", referrer),
    ("webhook", webhook),
];
