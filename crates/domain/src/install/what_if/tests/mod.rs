//! Replays of recorded installs, compared with recording them under the other rules.

mod gaps;
mod moves;
mod properties;
mod traffic;
