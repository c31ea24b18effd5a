//! Names of campaigns for reports, which are stored with links, installs and clicks.

use super::fixtures::{SharedStore, at, organization, origin, refusal};
use super::sdk_fixtures::{Tenant, tenant};
use tributary_domain::access::{Authorized, Environment};
use tributary_domain::click::Click;
use tributary_domain::click::agent::BotReason;
use tributary_domain::link::{Campaign, LinkChange};
use tributary_domain::refusal::Refusal;
use tributary_domain::report::{CampaignNames, Dimension, Period};
use tributary_domain::vocabulary::change::Change;
use tributary_domain::vocabulary::revision::Precondition;

const PERIOD: (i64, i64) = (0, 1_000);

fn period() -> Period {
    (at(PERIOD.0), at(PERIOD.1))
}

/// Builds a click on an ad of this campaign.
fn click(tenant: &Tenant, seconds: i64, id: &str, name: &str) -> Click {
    let mut click = tenant.click(seconds);
    click.captured.campaign = Campaign {
        id: Some(id.to_owned()),
        name: Some(name.to_owned()),
        ..Campaign::default()
    };
    click
}

/// The name of a campaign comes from a link, then from an install, then from the newest click in the
/// period. Bots, the other environment and clicks outside the period have no say.
pub async fn campaigns_are_named_by_links_installs_and_clicks(store: &SharedStore) {
    let tenant = tenant(store).await;
    let app = tenant.app.id;
    let change = LinkChange {
        campaign_id: Change::Set("1".to_owned()),
        campaign_name: Change::Set("Link".to_owned()),
        ..LinkChange::default()
    };
    let link = tenant.link.id;
    let none = Precondition::None;
    let changed = store.update_link(&tenant.writer, app, link, change, none, origin(5));
    changed.await.expect("a link is changed");
    let record = async |click: Click| store.record_click(click).await.expect("a click");
    let installed = click(&tenant, 10, "2", "Install");
    record(installed.clone()).await;
    let configured = tenant.configure_with_click("d1", &installed, 20);
    tenant.call_configure(configured).await;
    for (seconds, id, name) in [
        (30, "1", "Click"),
        (40, "2", "Click"),
        (50, "3", "Click"),
        (60, "3", "Renamed"),
        (2_000, "4", "Later"),
    ] {
        record(click(&tenant, seconds, id, name)).await;
    }
    let mut bot = click(&tenant, 70, "5", "Bot");
    bot.bot = Some(BotReason::KnownAgent);
    record(bot).await;
    let mut test = click(&tenant, 80, "6", "Test");
    test.environment = Some(Environment::Test);
    record(test).await;

    let names = store.campaign_names(&tenant.reader, app, period()).await;
    let names = names.expect("names are read");
    let name = |id| names.get(Dimension::Campaign, id);
    let expected = [Some("Link"), Some("Install"), Some("Renamed")];
    assert_eq!(["1", "2", "3"].map(name), expected);
    assert_eq!(["4", "5", "6"].map(name), [None; 3]);
    let test_reader = tenant.test_reader();
    let tested = store.campaign_names(&test_reader, app, period()).await;
    let tested = tested.expect("names are read");
    assert_eq!(tested.get(Dimension::Campaign, "6"), Some("Test"));
    assert_eq!(tested.get(Dimension::Campaign, "3"), None);
}

/// Another organization reads no names.
pub async fn another_organization_reads_no_names(store: &SharedStore) {
    let tenant = tenant(store).await;
    let stranger = organization(store).await;
    let reader = Authorized::operator(stranger.organization());
    let names = store.campaign_names(&reader, tenant.app.id, period()).await;
    assert_eq!(refusal::<CampaignNames>(names), Refusal::AppNotFound);
}
