//! Adapters for the four ad networks, as pure functions: [`encode`] builds a request, [`judge`]
//! classifies its response.
//!
//! Nothing here sends, waits, retries or reads a clock: that is the forwarder's job. The forwarder
//! calls these functions in this order:
//!
//! 1. [`Account::read`]: the integration's settings and decrypted credentials.
//! 2. [`check()`]: each event, right before it is sent, because one bad event fails its whole
//!    batch.
//! 3. [`group_key`]: which events may share a request.
//! 4. [`encode`], and after the request [`judge`].
//!
//! `network_b` also needs an access token before a request, and a status check after it: see
//! [`network_b::token_request`] and [`network_b::status_request`].
//!
//! [`CostReportAccount`] reads the networks' cost reports in the same way: it builds requests and
//! classifies responses.
//!
//! Vendor-specific names and fields occur only in this crate. "The reference" in tests is the
//! description of the networks' APIs that the adapters follow.
#![deny(missing_docs)]

mod account;
mod check;
mod cost_report;
mod facts;
mod json;
mod request;
mod response;
mod retry_after;
mod ruling;
mod secret;
mod test_event;
mod text;

pub mod network_a;
pub mod network_b;
pub mod network_c;
pub mod network_d;

#[cfg(test)]
mod samples;
#[cfg(test)]
mod tests;

pub use account::{Account, UnusableIntegration};
pub use check::Unsendable;
pub use cost_report::{CostReportAccount, REPORT_BYTES_MAX, ReportRuling};
pub use request::{NetworkRequest, RequestMethod};
pub use response::{NetworkResponse, RESPONSE_BYTES_MAX, SendOutcome};
pub use retry_after::RetryAfter;
pub use ruling::{Judgement, NetworkPace, RetryAdvice, Ruling};
pub use secret::Secret;
pub use test_event::test_conversion;

use tributary_domain::forwarding::{Conversion, Sharing, lacks_forwardable_amount};
use tributary_domain::vocabulary::id::DeliveryId;

/// Maximum size of a request body. No network documents a lower limit; larger batches are split.
pub const BODY_BYTES_MAX: usize = 1_000_000;

/// Key for grouping an account's conversions. Conversions with equal keys may share a request.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GroupKey {
    /// May share a request with any other conversion.
    Together,
    /// May share a request only with conversions for the same conversion action, so that a later
    /// status refers to one action.
    ConversionAction(String),
    /// Is sent alone.
    Alone(DeliveryId),
}

/// Returns the key that decides which conversions may share a request.
pub fn group_key(account: &Account, conversion: &Conversion) -> GroupKey {
    match account {
        Account::B(account) => {
            let action = account.action(conversion).unwrap_or_default();
            GroupKey::ConversionAction(action.to_owned())
        }
        // The network does not accept batches of test events.
        Account::C(account) if account.test_code.is_some() => GroupKey::Alone(conversion.delivery),
        Account::A(_) | Account::C(_) | Account::D(_) => GroupKey::Together,
    }
}

/// Checks whether a conversion can be sent now: consent, amount, identity, required fields.
pub fn check(account: &Account, conversion: &Conversion) -> Result<(), Unsendable> {
    if conversion.sharing() == Sharing::Refused {
        return Err(check::CONSENT);
    }
    if lacks_forwardable_amount(&conversion.event, &conversion.network_event) {
        return Err(check::AMOUNT_NOT_FORWARDABLE);
    }
    match account {
        Account::A(account) => network_a::check(account, conversion),
        Account::B(account) => network_b::check(account, conversion),
        Account::C(_) => network_c::check(conversion),
        Account::D(_) => network_d::check(conversion),
    }
}

/// Encodes a batch: one or more conversions from the same group that passed [`check()`].
/// `access_token` is for `network_b`; other accounts contain their token.
pub fn encode(
    account: &Account,
    batch: &[Conversion],
    access_token: Option<&str>,
) -> NetworkRequest {
    match account {
        Account::A(account) => network_a::encode(account, batch),
        Account::B(account) => network_b::encode(account, batch, access_token),
        Account::C(account) => network_c::encode(account, batch),
        Account::D(account) => network_d::encode(account, batch),
    }
}

/// Classifies the outcome of a request that contained `sent` events.
pub fn judge(account: &Account, sent: usize, outcome: &SendOutcome) -> Judgement {
    let response = match outcome {
        SendOutcome::Response(response) => response,
        SendOutcome::NotSent => return Judgement::of(Ruling::retry()),
        SendOutcome::Interrupted => return Judgement::of(Ruling::Unknown),
    };
    let judgement = match account {
        Account::A(_) => network_a::judge(sent, response),
        Account::B(account) => network_b::judge(account, sent, response),
        Account::C(_) => network_c::judge(sent, response),
        Account::D(_) => network_d::judge(sent, response),
    };
    judgement.with_response(account, response)
}
