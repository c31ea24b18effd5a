//! Every route with the access that it needs and a valid request. A route without a row here fails
//! `openapi::every_route_is_described_and_tested`.

mod bodies;
mod fixture;
mod request;
mod table;

pub(crate) use fixture::RouteFixture;
pub(crate) use table::ROUTES;

use serde_json::Value;

/// Access that a route needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Needs {
    /// No key.
    Nothing,
    /// The app's own SDK key, live or test.
    SdkKey,
    /// `analytics:read`.
    AnalyticsRead,
    /// `apps:read`.
    AppsRead,
    /// `apps:read`, and a live key.
    AuditExport,
    /// `apps:read`, for data that only live events have; a test key gets 404.
    DeliveryRead,
    /// `apps:write`, and a live key.
    AppsWrite,
    /// `apps:write`, with a key of either environment.
    PeopleErase,
    /// `keys:write`, with a key of either environment.
    KeysWrite,
}

/// A route and how to call it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Route {
    pub(crate) method: &'static str,
    pub(crate) path: &'static str,
    pub(crate) needs: Needs,
    /// Builds a valid body.
    body: Option<fn() -> Value>,
    /// Status of a successful response.
    pub(crate) success: u16,
}

const fn route(
    method: &'static str,
    path: &'static str,
    needs: Needs,
    body: Option<fn() -> Value>,
    success: u16,
) -> Route {
    Route {
        method,
        path,
        needs,
        body,
        success,
    }
}

/// Device of every [`RouteFixture`], live and test.
pub(crate) const DEVICE: &str = "6f9619ff-8b86-4011-b42d-00c04fc964ff";
/// User of the device.
pub(crate) const USER: &str = "user-42";
