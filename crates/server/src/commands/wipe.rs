//! `tributary admin test-data …`: wipes the test data of an app. Unlike a request, the command may
//! take as long as it needs.

use super::import::find_owner;
use super::print_line;
use std::time::Duration;
use tributary_domain::access::{Actor, Authorized};
use tributary_domain::runtime::Runtime;
use tributary_domain::vocabulary::id::AppId;
use tributary_store::{Store, run_wipe};

/// Wipes the test data of an app.
pub(super) async fn wipe(
    store: &dyn Store,
    runtime: &Runtime,
    app: AppId,
    yes: bool,
) -> anyhow::Result<()> {
    let organization = find_owner(store, app).await?;
    if !yes {
        anyhow::bail!(
            "nothing was removed; this removes all devices, events, clicks and figures of the app's \
             test environment for good. Repeat the command with --yes"
        );
    }
    let caller = Authorized::operator(organization);
    let origin = runtime.origin(Actor::Operator, None, None);
    let report = run_wipe(store, &caller, app, origin, Duration::MAX).await?;
    let removed = report.removed;
    print_line(format!(
        "Removed devices: {}, events: {}, clicks: {}, billing notifications: {}, rows of figures: {}.",
        removed.devices, removed.events, removed.clicks, removed.notifications, removed.figures
    ));
    Ok(())
}
