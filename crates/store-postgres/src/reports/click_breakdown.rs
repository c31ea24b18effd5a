//! A link's clicks by country and platform.

use crate::Failure;
use crate::params::Param;
use crate::rows::uuid;
use crate::tx::Tx;
use tokio_postgres::Row;
use tributary_domain::access::Environment;
use tributary_domain::report::{CLICKS_SCANNED_MAX, ClickBreakdown, Period};
use tributary_domain::vocabulary::id::{AppId, ClickId, LinkId};

pub(super) async fn find_click_breakdown(
    tx: &Tx,
    app: AppId,
    environment: Environment,
    link: LinkId,
    (from, until): Period,
) -> Result<ClickBreakdown, Failure> {
    let key: [&dyn Param; 6] = [
        &uuid(app.as_bytes()),
        &uuid(ClickId::first_at(from).as_bytes()),
        &uuid(ClickId::first_at(until).as_bytes()),
        &i64::from(CLICKS_SCANNED_MAX),
        &uuid(link.as_bytes()),
        &environment.as_str(),
    ];
    let rows = tx
        .query(
            "select country, platform, count(*) from (
                 select link_id, country, platform, bot, environment from clicks
                 where app_id = $1 and click_id >= $2 and click_id < $3
                 order by click_id desc limit $4
             ) newest
             where link_id = $5 and bot is null and coalesce(environment, 'live') = $6
             group by country, platform",
            &key,
        )
        .await?;
    let group = |row: &Row| Ok((row.try_get(0)?, row.try_get(1)?, row.try_get(2)?));
    let groups = rows
        .iter()
        .map(group)
        .collect::<Result<Vec<_>, Failure>>()?;
    Ok(ClickBreakdown::of(groups))
}
