//! `network_a`: Meta Conversions API.

mod account;
mod app_data;
mod check;
mod cost_report;
mod encode;
mod fbc;
mod judge;
mod usage;

#[cfg(test)]
mod tests;

pub use account::MetaAccount;
pub(crate) use check::check;
pub use cost_report::MetaReport;
pub(crate) use encode::encode;
pub(crate) use judge::judge;
