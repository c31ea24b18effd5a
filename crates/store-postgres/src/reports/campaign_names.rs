//! Names of campaigns, ad sets and ads.

use crate::Failure;
use crate::params::Param;
use crate::rows::uuid;
use crate::tx::Tx;
use tokio_postgres::Row;
use tributary_domain::access::Environment;
use tributary_domain::event::name;
use tributary_domain::report::{CampaignNames, NAME_SOURCES_MAX, Period};
use tributary_domain::vocabulary::id::{AppId, ClickId, EventId};
use tributary_store::records::NameSources;

fn texts(rows: &[Row]) -> Result<Vec<String>, Failure> {
    rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
}

pub(super) async fn find_campaign_names(
    tx: &Tx,
    app: AppId,
    environment: Environment,
    (from, until): Period,
) -> Result<CampaignNames, Failure> {
    let app = uuid(app.as_bytes());
    let (environment, limit) = (environment.as_str(), i64::from(NAME_SOURCES_MAX));
    let events = [from, until].map(|at| uuid(EventId::first_at(at).as_bytes()));
    let clicks = [from, until].map(|at| uuid(ClickId::first_at(at).as_bytes()));
    let links = tx
        .query(
            "select settings from links where app_id = $1 order by link_id desc limit $2",
            &[&app, &limit],
        )
        .await?;
    let key: [&dyn Param; 6] = [
        &app,
        &environment,
        &name::INSTALL,
        &events[0],
        &events[1],
        &limit,
    ];
    let installs = tx
        .query(
            "select coalesce(campaign, '') from events
             where app_id = $1 and environment = $2 and name = $3 and event_id >= $4 and event_id < $5
             order by event_id desc limit $6",
            &key,
        )
        .await?;
    let clicks = tx
        .query(
            "select captured from (
                 select click_id, captured, bot, environment from clicks
                 where app_id = $1 and click_id >= $2 and click_id < $3
                 order by click_id desc limit $4
             ) newest
             where bot is null and coalesce(environment, 'live') = $5
             order by click_id desc",
            &[&app, &clicks[0], &clicks[1], &limit, &environment],
        )
        .await?;
    let sources = NameSources {
        links: texts(&links)?,
        installs: texts(&installs)?,
        clicks: texts(&clicks)?,
    };
    Ok(sources.names())
}
