//! `/api/v1/apps`.

pub(super) mod alert_webhook;
pub(super) mod create;
pub(super) mod get;
pub(super) mod identity_secret;
pub(super) mod list;
pub(super) mod shape;
pub(super) mod update;
pub(super) mod verify_link_domain;

mod fields;
