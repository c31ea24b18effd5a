//! Tests the binary from outside.

mod signals;
mod workers;
