//! Verified website events.

pub(crate) mod accept;
mod fields;

pub use fields::WebEventRequest;
