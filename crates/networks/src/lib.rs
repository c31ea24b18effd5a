//! The adapters of the four ad networks, as pure functions: [`encode`] a request, [`judge`] its answer.
//!
//! Nothing here sends, waits, retries or looks at a clock; the engine does, and asks in this order:
//!
//! 1. [`Account::read`] – the integration's settings and its opened credentials.
//! 2. [`check()`] – each event again, right before it is sent: one bad event takes its whole batch with it.
//! 3. [`group_key`] – which events may share a request.
//! 4. [`encode`], and after the request [`judge`].
//!
//! `network_b` needs an access token before, and is asked afterwards what became of a request: see
//! [`network_b::token_request`] and [`network_b::status_request`].
//!
//! The vendors' names and fields occur here and nowhere else. What they are is in the wire reference, whose
//! sections the modules cite.
#![deny(missing_docs)]

mod account;
mod check;
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
pub use request::{NetworkRequest, RequestMethod};
pub use response::{NetworkResponse, RESPONSE_BYTES_MAX, SendOutcome};
pub use retry_after::RetryAfter;
pub use ruling::{Judgement, NetworkPace, RetryAdvice, Ruling};
pub use secret::Secret;
pub use test_event::test_conversion;

use tributary_domain::forwarding::{Conversion, Sharing, lacks_forwardable_amount};
use tributary_domain::vocabulary::id::DeliveryId;

/// Bytes of a request's body. No network documents less; a longer one is to be sent in halves.
pub const BODY_BYTES_MAX: usize = 1_000_000;

/// Conversions of one account with equal keys may go out in one request.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GroupKey {
    /// With any other.
    Together,
    /// With those of the same conversion action, so that the status asked for later is that action's.
    ConversionAction(String),
    /// By itself.
    Alone(DeliveryId),
}

/// Which conversions may go out in one request together.
pub fn group_key(account: &Account, conversion: &Conversion) -> GroupKey {
    match account {
        Account::B(account) => {
            let action = account.action(conversion).unwrap_or_default();
            GroupKey::ConversionAction(action.to_owned())
        }
        // Test events are not batched there.
        Account::C(account) if account.test_code.is_some() => GroupKey::Alone(conversion.delivery),
        Account::A(_) | Account::C(_) | Account::D(_) => GroupKey::Together,
    }
}

/// Whether a conversion can be sent as things stand now: consent, money, identity, required fields.
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

/// The request that carries a batch: conversions of one group, each of which passed [`check()`], at least one.
/// `access_token` is `network_b`'s; the others know their token from their account.
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

/// What an attempt came to. `sent` is how many events the request carried.
pub fn judge(account: &Account, sent: usize, outcome: &SendOutcome) -> Judgement {
    let answer = match outcome {
        SendOutcome::Response(answer) => answer,
        SendOutcome::NotSent => return Judgement::of(Ruling::retry()),
        SendOutcome::Interrupted => return Judgement::of(Ruling::Unknown),
    };
    let judgement = match account {
        Account::A(_) => network_a::judge(sent, answer),
        Account::B(account) => network_b::judge(account, sent, answer),
        Account::C(_) => network_c::judge(sent, answer),
        Account::D(_) => network_d::judge(sent, answer),
    };
    judgement.with_response(account, answer)
}
