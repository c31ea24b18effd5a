//! Tests the simulator over HTTP, as an adapter uses it.

mod client;
mod control;
mod faults;
mod network_a;
mod network_b;
mod network_c;
mod network_d;
mod page;
mod reports;
