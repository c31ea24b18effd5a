//! `GET /.well-known/apple-app-site-association`.

use super::{AppsOfHost, association_file as whole};
use axum::response::Response;
use serde_json::json;
use tributary_domain::app::App;

/// What the apps of a host claim. The first pattern that fits decides.
const CLAIMS: &str =
    r#"],"components":[{"/":"/g/*","exclude":true},{"/":"/w/*","exclude":true},{"/":"/c/*"}]}]}}"#;

pub(super) async fn file(AppsOfHost(apps): AppsOfHost) -> Response {
    let ids = apps.iter().filter_map(app_id).collect();
    whole(r#"{"applinks":{"details":[{"appIDs":["#, ids, CLAIMS)
}

/// The application identifier: the team and the bundle.
fn app_id(app: &App) -> Option<String> {
    let team = app.ios.team_id.as_ref()?;
    let bundle = app.ios.bundle_id.as_ref()?;
    Some(json!(format!("{team}.{bundle}")).to_string())
}
