//! `network_b`: the Google Data Manager API.
//!
//! It has no names for events: each key of `conversionActions` stands for a conversion action of the account. And it
//! answers twice: at once whether a request is sound, and hours later what became of its events.

mod account;
mod encode;
mod judge;
mod service_account;
mod status;
mod token;

#[cfg(test)]
mod tests;

pub use account::GoogleAdsAccount;
pub use status::{StatusProblems, StatusRuling, judge_status, status_request};
pub use token::{TokenRuling, judge_token, token_request};

pub(crate) use encode::{check, encode};
pub(crate) use judge::judge;
