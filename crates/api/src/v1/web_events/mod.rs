//! `/api/v1/apps/{appId}/web-events`.

pub(crate) mod accept;
mod fields;
mod request;
mod shape;
pub(crate) mod validate;

pub use fields::WebEventRequest;
