//! Forwarding: which network hears of an event, under which id, until when, and what becomes of it.
//!
//! Nothing here sends anything. [`plan`] says, while an event is accepted, what is to be sent. [`eligibility`] says,
//! right before it is sent, whether it still may be; a network's adapter encodes a [`Conversion`] and reads the answer as
//! a [`ruling::Ruling`]; [`judge`] says what the answer means for a [`round`]; [`course`] says what becomes of each
//! delivery after that.

pub mod alert;
pub mod conversion;
pub mod dedup;
pub mod delivery;
pub mod eligibility;
pub mod isolation;
pub mod judge;
pub mod lifecycle;
pub mod limits;
pub mod plan;
pub mod queue;
pub mod retry;
pub mod round;
pub mod ruling;
#[cfg(test)]
mod samples;
pub mod settlement;
pub mod skipped;
pub mod status_check;

pub use conversion::{Conversion, Sharing, lacks_forwardable_amount};
pub use delivery::{AttemptVerdict, Delivery, DeliveryAttempt, DeliveryStatus};
pub use plan::{PlannedDelivery, SkipReason};
