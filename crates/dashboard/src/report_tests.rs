//! Tests of what Overview, Explore and Cohorts have in common.

use crate::testing::{NOW, TestDashboard, ad_click};
use rstest::rstest;
use std::time::Duration;
use tributary_domain::access::person::Role;

#[tokio::test]
async fn explore_keeps_its_filters_when_a_combination_is_not_available() {
    let dashboard = TestDashboard::start().await;
    let owner = dashboard.sign_in_as(Role::Owner).await;
    let app = owner.create_app().await;
    let explore = async |query: &str| {
        let page = owner.get(&format!("/apps/{app}/explore?{query}")).await;
        page.text
    };
    let inputs = [
        "name=\"country\" value=\"DE\"",
        "name=\"sort\" value=\"installs\"",
    ];
    for (group, is_answered) in [("platform", true), ("link", false)] {
        let text = explore(&format!("groupBy={group}&country=DE&sort=installs")).await;
        assert_eq!(text.contains("explore.csv"), is_answered, "{text}");
        assert_eq!(text.contains("cannot be combined"), !is_answered, "{text}");
        for input in inputs {
            assert!(text.contains(input), "{group}: {input}");
        }
    }
}

#[tokio::test]
async fn dates_and_filters_stay_between_reports_and_apps() {
    let dashboard = TestDashboard::start().await;
    let owner = dashboard.sign_in_as(Role::Owner).await;
    let (app, other) = (owner.create_app().await, owner.create_app().await);
    let query = "environment=test&range=7d&campaign=c1&country=DE";
    let page = owner
        .get(&format!("/apps/{app}/explore?{query}&sort=clicks"))
        .await;
    let text = page.text.replace("&#38;", "&");
    let kept = "range=7d&campaign=c1&country=DE&environment=test";
    for page in ["", "/explore", "/cohorts"] {
        let link = format!("href=\"/apps/{app}{page}?{kept}\"");
        assert!(text.contains(&link), "{link}: {text}");
    }
    let link = format!("href=\"/apps/{other}?range=7d&country=DE&environment=test\"");
    assert!(text.contains(&link), "campaigns belong to one app: {text}");
}

#[rstest]
#[case::reversed("from=2026-02-01&to=2026-01-01", "first day is after the last day")]
#[case::unreadable("range=fortnight", "dates cannot be read")]
#[case::too_long("from=2020-01-01&to=2026-01-01", "at most 400 days")]
#[tokio::test]
async fn a_page_says_why_it_shows_other_days_than_requested(
    #[case] query: &str,
    #[case] expected: &str,
) {
    let dashboard = TestDashboard::start().await;
    let owner = dashboard.sign_in_as(Role::Owner).await;
    let app = owner.create_app().await;
    for page in ["", "/explore", "/cohorts"] {
        let text = owner.get(&format!("/apps/{app}{page}?{query}")).await.text;
        assert!(text.contains(expected), "{page}: {text}");
    }
}

#[tokio::test]
async fn filters_that_cannot_be_combined_show_no_figures_but_a_way_out() {
    let dashboard = TestDashboard::start().await;
    let owner = dashboard.sign_in_as(Role::Owner).await;
    let app = owner.create_app().await;
    let page = owner
        .get(&format!("/apps/{app}?link=lnk_1&event=purchase"))
        .await;
    assert!(page.text.contains("cannot be combined"), "{}", page.text);
    assert!(
        page.text.contains("Remove Event: purchase"),
        "{}",
        page.text
    );
    assert!(!page.text.contains("kpi-value"), "{}", page.text);
}

#[tokio::test]
async fn a_country_is_filtered_by_its_name_and_an_unknown_one_is_an_error() {
    let dashboard = TestDashboard::start().await;
    let owner = dashboard.sign_in_as(Role::Owner).await;
    let app = owner.create_app().await;
    for page in ["", "/explore", "/cohorts"] {
        let text = owner
            .get(&format!("/apps/{app}{page}?country=Germany"))
            .await
            .text;
        assert!(text.contains("Country: Germany (DE)"), "{page}: {text}");
        let text = owner
            .get(&format!("/apps/{app}{page}?country=Germania"))
            .await
            .text;
        let fault = "id=\"filter-country-fault\">No country matches “Germania”.";
        assert!(text.contains(fault), "{page}: {text}");
        assert!(!text.contains("kpi-value"), "{page}: {text}");
    }
}

#[tokio::test]
async fn panels_without_filters_say_so_and_show_the_status_to_those_who_may_see_it() {
    let dashboard = TestDashboard::start().await;
    let owner = dashboard.sign_in_as(Role::Owner).await;
    let viewer = dashboard.sign_in_as(Role::Viewer).await;
    let app = owner.create_app().await;
    let all = owner.get(&format!("/apps/{app}")).await.text;
    assert!(!all.contains("all networks and countries"), "{all}");
    let path = format!("/apps/{app}?country=DE");
    for (person, is_shown) in [(owner, true), (viewer, false)] {
        let text = person.get(&path).await.text;
        let heading = "last 24 hours, all networks and countries</h2>";
        assert!(text.contains(heading), "{text}");
        let pill = "<span class=\"pill pill-quiet\">Not connected</span>";
        assert_eq!(text.contains(pill), is_shown, "{text}");
    }
}

#[tokio::test]
async fn cohorts_say_which_filters_they_do_not_apply() {
    let dashboard = TestDashboard::start().await;
    let owner = dashboard.sign_in_as(Role::Owner).await;
    let app = owner.create_app().await;
    let page = async |query: &str| {
        let page = owner.get(&format!("/apps/{app}/cohorts?{query}")).await;
        page.text
    };
    let text = page("platform=ios&network=network_a").await;
    let told = "Cohorts cannot be filtered by platform. The figures below include all values.";
    assert!(text.contains(told), "{text}");
    assert!(!text.contains("filter-platform"), "{text}");
    assert!(text.contains("Remove filter Network: Meta"), "{text}");
    let kept = "name=\"platform\" value=\"ios\"";
    assert!(text.contains(kept), "other reports use the filter: {text}");
    let text = page("by=country&network=network_a").await;
    assert!(text.contains("cannot be combined"), "{text}");
    assert!(!text.contains("cohorts.csv"), "{text}");
}

#[tokio::test]
async fn links_into_an_app_keep_the_date_range() {
    let dashboard = TestDashboard::start().await;
    let owner = dashboard.sign_in_as(Role::Owner).await;
    let app = owner.create_app().await;
    let portfolio = owner.get("/portfolio?range=7d").await.text;
    assert!(
        portfolio.contains(&format!("href=\"/apps/{app}?range=7d\"")),
        "{portfolio}"
    );
    let overview = owner.get(&format!("/apps/{app}?metric=trials")).await.text;
    assert!(
        overview.contains("name=\"metric\" value=\"trials\""),
        "{overview}"
    );
}

#[tokio::test]
async fn the_overview_of_one_event_has_only_cards_with_values() {
    let dashboard = TestDashboard::start().await;
    let owner = dashboard.sign_in_as(Role::Owner).await;
    let app = owner.create_app().await;
    let card = |label: &str| format!("<span class=\"kpi-label\">{label}</span>");
    let all = owner.get(&format!("/apps/{app}")).await.text;
    assert!(all.contains(&card("Clicks")) && all.contains(&card("Trials")));
    let text = owner.get(&format!("/apps/{app}?event=purchase")).await.text;
    for label in ["Events", "Purchases", "Net revenue"] {
        assert!(text.contains(&card(label)), "{label}: {text}");
    }
    for label in ["Clicks", "Installs", "Trials"] {
        assert!(!text.contains(&card(label)), "{label}: {text}");
    }
    assert!(
        text.contains("<h2 id=\"chart-title\">Events</h2>"),
        "{text}"
    );
    let explore = format!("/apps/{app}/explore?groupBy=country&event=purchase");
    assert!(!owner.get(&explore).await.text.contains("Clicks</a>"));
}

/// Largest first visit of the overview in bytes, before compression.
const FIRST_VISIT_BYTES_MAX: usize = 200_000;

#[tokio::test]
async fn the_first_visit_of_the_overview_is_small() {
    let dashboard = TestDashboard::start().await;
    let owner = dashboard.sign_in_as(Role::Owner).await;
    let app = owner.create_app().await;
    let page = owner.get(&format!("/apps/{app}?range=90d")).await;
    let parts = page.text.split('"');
    let files: std::collections::BTreeSet<&str> =
        parts.filter(|part| part.starts_with("/static/")).collect();
    assert!(files.len() >= 4, "{files:?}");
    let mut bytes = page.text.len();
    for file in files {
        bytes += dashboard.get(file).await.text.len();
    }
    assert!(bytes < FIRST_VISIT_BYTES_MAX, "{bytes} bytes");
}

#[tokio::test]
async fn campaigns_and_links_are_shown_by_name_with_the_id_on_demand() {
    let dashboard = TestDashboard::start().await;
    let owner = dashboard.sign_in_as(Role::Owner).await;
    let app = owner.create_app().await;
    let form = "name=Banner&type=app_install&active=on";
    let link = owner.create_link(&app, form).await;
    let click = ad_click(&app, &link, NOW.minus(Duration::from_hours(3)));
    dashboard.store.record_click(click).await.unwrap();
    for query in [
        "?range=7d&stack=campaign&metric=clicks",
        "/explore?range=7d&groupBy=campaign&then=link",
        "/explore?range=7d&groupBy=campaign&search=spring",
    ] {
        let text = owner.get(&format!("/apps/{app}{query}")).await.text;
        assert!(text.contains(">Spring sale</a>"), "{query}: {text}");
        assert!(text.contains("<code class=\"id\">120210</code>"), "{text}");
    }
    let filtered = format!("/apps/{app}/explore?range=7d&groupBy=link&campaign=120210");
    let text = owner.get(&filtered).await.text;
    assert!(text.contains("Campaign: Spring sale"), "{text}");
    assert!(text.contains(">Banner</a>"), "{text}");
}
