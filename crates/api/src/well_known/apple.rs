//! `GET /.well-known/apple-app-site-association`.

use super::{AppsOfHost, association_file};
use axum::response::Response;
use serde_json::json;
use tributary_domain::app::App;

/// Paths that apps claim. The first matching pattern applies.
const CLAIMS: &str =
    r#"],"components":[{"/":"/g/*","exclude":true},{"/":"/w/*","exclude":true},{"/":"/c/*"}]}]}}"#;

pub(super) async fn file(AppsOfHost(apps): AppsOfHost) -> Response {
    let ids = apps.iter().filter_map(app_id).collect();
    association_file(r#"{"applinks":{"details":[{"appIDs":["#, ids, CLAIMS)
}

/// Returns the application identifier: team id and bundle id.
fn app_id(app: &App) -> Option<String> {
    let team = app.ios.team_id.as_ref()?;
    let bundle = app.ios.bundle_id.as_ref()?;
    Some(json!(format!("{team}.{bundle}")).to_string())
}
