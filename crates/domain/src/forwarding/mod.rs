//! Forwarding: which networks receive an event, which id it has there, when it expires, and what
//! happens after errors.
//!
//! Nothing here sends requests. [`plan`] decides what to send when an event is accepted.
//! [`eligibility`] checks right before sending whether the event may still be sent. A network's
//! adapter encodes a [`Conversion`] and reads the response as a [`ruling::Ruling`]. [`judge`]
//! applies the response to a [`round`]. [`lifecycle`] decides what happens to each delivery after
//! that.

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
pub mod queue_change;
pub mod quota;
pub mod retry;
pub mod round;
pub mod ruling;
#[cfg(test)]
mod samples;
pub mod settlement;
pub mod sharing;
pub mod skipped;
pub mod status_check;
pub mod undelivered;
pub mod waits;

pub use conversion::{Conversion, Sharing, lacks_forwardable_amount};
pub use delivery::{AttemptVerdict, Delivery, DeliveryAttempt, DeliveryStatus};
pub use plan::{PlannedDelivery, SkipReason};
