//! A link's clicks by country and platform.

use crate::Failure;
use rusqlite::{Connection, params};
use tributary_domain::access::Environment;
use tributary_domain::report::{CLICKS_SCANNED_MAX, ClickBreakdown, Period};
use tributary_domain::vocabulary::id::{AppId, ClickId, LinkId};

pub(super) fn find_click_breakdown(
    connection: &Connection,
    app: AppId,
    environment: Environment,
    link: LinkId,
    (from, until): Period,
) -> Result<ClickBreakdown, Failure> {
    let mut statement = connection.prepare_cached(
        "select country, platform, count(*) from (
             select link_id, country, platform, bot, environment from clicks
             where app_id = ?1 and click_id >= ?2 and click_id < ?3
             order by click_id desc limit ?4
         )
         where link_id = ?5 and bot is null and coalesce(environment, 'live') = ?6
         group by country, platform",
    )?;
    let (from, until) = (ClickId::first_at(from), ClickId::first_at(until));
    let key = params![
        app.as_bytes(),
        from.as_bytes(),
        until.as_bytes(),
        CLICKS_SCANNED_MAX,
        link.as_bytes(),
        environment.as_str()
    ];
    let groups = statement
        .query_map(key, |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
        .collect::<Result<Vec<_>, _>>()?;
    Ok(ClickBreakdown::of(groups))
}
