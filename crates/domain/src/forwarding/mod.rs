//! Forwarding: which network hears of an event, under which id, until when, and what becomes of it.
//!
//! Nothing here sends anything. [`plan`] says, while an event is accepted, what is to be sent; a network's adapter
//! encodes a [`Conversion`] and judges the answer; [`course`] says what becomes of a delivery after that.

pub mod alert;
pub mod conversion;
pub mod course;
pub mod dedup;
pub mod delivery;
pub mod isolation;
pub mod limits;
pub mod plan;
pub mod queue;
pub mod retry;
pub mod skipped;

pub use conversion::{Conversion, Sharing, lacks_money};
pub use delivery::{Attempt, Delivery, DeliveryStatus, Verdict};
pub use plan::{Planned, Skip};
