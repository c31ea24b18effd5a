//! How many notifications came, and what became of them.

use crate::Failure;
use crate::rows::uuid;
use crate::tx::Tx;
use tributary_domain::access::Environment;
use tributary_domain::app::BillingProvider;
use tributary_domain::exchange::Day;
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::time::Timestamp;

/// What a day's notifications add up to.
#[derive(Clone, Copy, Default)]
pub(super) struct Count {
    pub(super) notifications: i64,
    pub(super) events: i64,
    pub(super) matched: i64,
    pub(super) unauthorized: i64,
    pub(super) reused: i64,
}

pub(super) async fn add(
    tx: &Tx,
    app: AppId,
    provider: BillingProvider,
    environment: Environment,
    at: Timestamp,
    count: Count,
) -> Result<(), Failure> {
    tx.execute(
        "insert into billing_days as stored (app_id, provider, environment, day, notifications, events,
                                             matched, unauthorized, reused)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
         on conflict (app_id, provider, environment, day) do update
         set notifications = stored.notifications + excluded.notifications,
             events = stored.events + excluded.events, matched = stored.matched + excluded.matched,
             unauthorized = stored.unauthorized + excluded.unauthorized,
             reused = stored.reused + excluded.reused",
        &[
            &uuid(app.as_bytes()),
            &provider.as_str(),
            &environment.as_str(),
            &i64::from(Day::of(at).as_days()),
            &count.notifications,
            &count.events,
            &count.matched,
            &count.unauthorized,
            &count.reused,
        ],
    )
    .await?;
    Ok(())
}
