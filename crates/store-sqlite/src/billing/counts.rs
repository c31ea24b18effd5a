//! How many notifications came, and what became of them.

use crate::Failure;
use rusqlite::{Connection, params};
use tributary_domain::access::Environment;
use tributary_domain::app::BillingProvider;
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

pub(super) fn add(
    connection: &Connection,
    app: AppId,
    provider: BillingProvider,
    environment: Environment,
    at: Timestamp,
    count: Count,
) -> Result<(), Failure> {
    let day = tributary_domain::exchange::Day::of(at).as_days();
    connection
        .prepare_cached(
            "insert into billing_days (app_id, provider, environment, day, notifications, events,
                                       matched, unauthorized, reused)
             values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
             on conflict do update set notifications = notifications + excluded.notifications,
                 events = events + excluded.events, matched = matched + excluded.matched,
                 unauthorized = unauthorized + excluded.unauthorized,
                 reused = reused + excluded.reused",
        )?
        .execute(params![
            app.as_bytes(),
            provider.as_str(),
            environment.as_str(),
            day,
            count.notifications,
            count.events,
            count.matched,
            count.unauthorized,
            count.reused
        ])?;
    Ok(())
}
