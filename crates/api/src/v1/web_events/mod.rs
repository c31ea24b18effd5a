//! `/api/v1/apps/{appId}/web-events`.

pub(crate) mod accept;
mod fields;

pub use fields::WebEventRequest;
