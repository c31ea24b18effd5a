//! `tributary admin test-data …`: wipes the test data of an app. Only a command does, because it may take
//! as long as it needs, and holds figures of all apps back for moments.

use super::import::find_owner;
use super::print_line;
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
    let removed = run_wipe(store, &caller, app, origin).await?;
    print_line(format!(
        "Removed devices: {}, events: {}, clicks: {}, billing notifications: {}, rows of figures: {}.",
        removed.devices, removed.events, removed.clicks, removed.notifications, removed.figures
    ));
    Ok(())
}
