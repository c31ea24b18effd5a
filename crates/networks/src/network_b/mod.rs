//! `network_b`: Google Ads through the Data Manager API.
//!
//! The API has no event names: each key in `conversionActions` maps to one of the account's
//! conversion actions. Google reports twice: immediately whether a request is valid, and hours
//! later what happened to its events.

mod account;
mod cost_report;
mod encode;
mod judge;
mod service_account;
mod status;
mod token;

#[cfg(test)]
mod tests;

pub use account::GoogleAdsAccount;
pub use cost_report::GoogleAdsReport;
pub use status::{StatusProblems, StatusRuling, judge_status, status_request};
pub use token::{TokenRuling, judge_token, token_request};

pub(crate) use encode::{check, encode};
pub(crate) use judge::judge;
