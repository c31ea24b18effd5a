//! Exports of everything that is stored about one person: `/api/v1/apps/{appId}/devices/{deviceId}/data`
//! and `/api/v1/apps/{appId}/users/{userId}/data`.

pub(super) mod device;
pub(super) mod user;

mod shape;
mod stream;
