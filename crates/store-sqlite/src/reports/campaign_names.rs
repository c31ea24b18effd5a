//! Names of campaigns, ad sets and ads.

use crate::Failure;
use rusqlite::{Connection, Params, params};
use tributary_domain::access::Environment;
use tributary_domain::event::name;
use tributary_domain::report::{CampaignNames, NAME_SOURCES_MAX, Period};
use tributary_domain::vocabulary::id::{AppId, ClickId, EventId};
use tributary_store::records::NameSources;

fn texts(connection: &Connection, sql: &str, key: impl Params) -> Result<Vec<String>, Failure> {
    let mut statement = connection.prepare_cached(sql)?;
    let texts = statement.query_map(key, |row| row.get(0))?;
    Ok(texts.collect::<Result<_, _>>()?)
}

pub(super) fn find_campaign_names(
    connection: &Connection,
    app: AppId,
    environment: Environment,
    (from, until): Period,
) -> Result<CampaignNames, Failure> {
    let app = app.as_bytes();
    let (first, last) = (EventId::first_at(from), EventId::first_at(until));
    let (first_click, last_click) = (ClickId::first_at(from), ClickId::first_at(until));
    let sources = NameSources {
        links: texts(
            connection,
            "select settings from links where app_id = ?1 order by link_id desc limit ?2",
            params![app, NAME_SOURCES_MAX],
        )?,
        installs: texts(
            connection,
            "select coalesce(campaign, '') from events
             where app_id = ?1 and environment = ?2 and name = ?3 and event_id >= ?4 and event_id < ?5
             order by event_id desc limit ?6",
            params![
                app,
                environment.as_str(),
                name::INSTALL,
                first.as_bytes(),
                last.as_bytes(),
                NAME_SOURCES_MAX
            ],
        )?,
        clicks: texts(
            connection,
            "select captured from (
                 select click_id, captured, bot, environment from clicks
                 where app_id = ?1 and click_id >= ?2 and click_id < ?3
                 order by click_id desc limit ?4
             )
             where bot is null and coalesce(environment, 'live') = ?5
             order by click_id desc",
            params![
                app,
                first_click.as_bytes(),
                last_click.as_bytes(),
                NAME_SOURCES_MAX,
                environment.as_str()
            ],
        )?,
    };
    Ok(sources.names())
}
