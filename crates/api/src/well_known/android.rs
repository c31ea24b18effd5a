//! `GET /.well-known/assetlinks.json`.

use super::{AppsOfHost, association_file as whole};
use axum::response::Response;
use serde_json::json;
use tributary_domain::app::App;

pub(super) async fn file(AppsOfHost(apps): AppsOfHost) -> Response {
    whole("[", apps.iter().filter_map(statement).collect(), "]")
}

/// That the host lets an app with these certificates open its links. Which links is for the app's manifest
/// to say.
fn statement(app: &App) -> Option<String> {
    let package = app.android.package_name.as_ref()?;
    let certificates = &app.android.sha256_cert_fingerprints;
    let statement = json!({
        "relation": ["delegate_permission/common.handle_all_urls"],
        "target": {
            "namespace": "android_app",
            "package_name": package,
            "sha256_cert_fingerprints": certificates,
        },
    });
    (!certificates.is_empty()).then(|| statement.to_string())
}
