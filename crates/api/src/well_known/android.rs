//! `GET /.well-known/assetlinks.json`.

use super::{AppsOfHost, association_file};
use axum::response::Response;
use serde_json::json;
use tributary_domain::app::App;

pub(super) async fn file(AppsOfHost(apps): AppsOfHost) -> Response {
    association_file("[", apps.iter().filter_map(statement).collect(), "]")
}

/// Returns the statement that allows an app with these certificates to open the host's links. The
/// app's manifest selects which links.
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
