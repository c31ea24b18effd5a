//! Tracking parameters in URLs.

use super::*;
use rstest::rstest;

fn read(query: &str) -> TrackingParams {
    capture(query, &Campaign::default()).captured
}

#[expect(clippy::unnecessary_wraps, reason = "every field is an Option")]
fn text(text: &str) -> Option<String> {
    Some(text.to_owned())
}

#[test]
fn reads_every_known_parameter() {
    let query = "fbclid=1&gclid=2&gbraid=3&wbraid=4&ttclid=5&oppref=6&campaign_id=7\
                 &campaign_name=8&adset_id=9&adset_name=10&ad_id=11&ad_name=12&creative_id=13\
                 &placement=14&site_source_name=15&keyword=16&utm_source=17&utm_medium=18\
                 &utm_campaign=19&utm_content=20&utm_term=21&fbp=22&fbc=23&ttp=24&obref=25\
                 &offer=trial&utm_id=26&Invite=27";
    let query_params = [("offer", "trial"), ("utm_id", "26"), ("Invite", "27")];
    let expected = TrackingParams {
        click_ids: NetworkClickIds {
            fbclid: text("1"),
            gclid: text("2"),
            gbraid: text("3"),
            wbraid: text("4"),
            ttclid: text("5"),
            oppref: text("6"),
        },
        campaign: Campaign {
            id: text("7"),
            name: text("8"),
            adset_id: text("9"),
            adset_name: text("10"),
            ad_id: text("11"),
            ad_name: text("12"),
        },
        creative_id: text("13"),
        placement: text("14"),
        site_source_name: text("15"),
        keyword: text("16"),
        utm: Utm {
            source: text("17"),
            medium: text("18"),
            campaign: text("19"),
            content: text("20"),
            term: text("21"),
        },
        browser_ids: BrowserIds {
            fbp: text("22"),
            fbc: text("23"),
            ttp: text("24"),
            obref: text("25"),
        },
        offer: Some(Offer::Trial),
        query_params: query_params
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into(),
    };
    assert_eq!(read(query), expected);
}

#[rstest]
#[case::alias("adgroup_id=2", "2")]
#[case::alias_after("adset_id=1&adgroup_id=2", "1")]
#[case::alias_before("adgroup_id=2&adset_id=1", "2")]
#[case::alias_behind_a_macro("adset_id={{adset.id}}&adgroup_id=2", "2")]
fn ad_sets_have_two_names(#[case] query: &str, #[case] expected: &str) {
    assert_eq!(read(query).campaign.adset_id.as_deref(), Some(expected));
    assert!(read(query).query_params.is_empty());
}

#[rstest]
#[case::empty_url("", Some("L"), Some("Link"))]
#[case::id_and_name("campaign_id=1&campaign_name=One", Some("1"), Some("One"))]
#[case::tag_as_name("campaign_id=1&utm_campaign=Tag", Some("1"), Some("Tag"))]
#[case::name_before_tag("utm_campaign=Tag&campaign_name=One", Some("L"), Some("One"))]
#[case::only_macros("campaign_id={campaignid}&campaign_name=", Some("L"), Some("Link"))]
#[case::the_same_campaign("campaign_id=L", Some("L"), Some("Link"))]
#[case::another_campaign("campaign_id=1", Some("1"), None)]
fn the_link_fills_gaps_of_the_url(
    #[case] query: &str,
    #[case] id: Option<&str>,
    #[case] name: Option<&str>,
) {
    let link = Campaign {
        id: text("L"),
        name: text("Link"),
        ..Campaign::default()
    };
    let campaign = capture(query, &link).captured.campaign;
    assert_eq!(
        (campaign.id.as_deref(), campaign.name.as_deref()),
        (id, name)
    );
}

#[test]
fn a_link_with_only_a_name_adds_it_to_any_id() {
    let link = Campaign {
        name: text("Brand"),
        ..Campaign::default()
    };
    let campaign = capture("campaign_id=1", &link).captured.campaign;
    assert_eq!((campaign.id, campaign.name), (text("1"), text("Brand")));
}

#[rstest]
#[case::trial("offer=trial", Some(Offer::Trial))]
#[case::control("offer=control", Some(Offer::Control))]
#[case::capitals("offer=Trial", None)]
#[case::longer("offer=trial2", None)]
#[case::both("offer=trial,control", None)]
#[case::space_after("offer=trial%20", None)]
#[case::plus_after("offer=trial+", None)]
#[case::line_break("offer=%0Acontrol", None)]
#[case::first_of_two("offer=control&offer=trial", Some(Offer::Control))]
#[case::another_first("offer=summer&offer=trial", None)]
#[case::none("", None)]
fn reads_the_offer(#[case] query: &str, #[case] expected: Option<Offer>) {
    assert_eq!(read(query).offer, expected);
}

#[rstest]
#[case::idfa("idfa=6F9619FF-8B86-4011-B42D-00C04FC964FF", true)]
#[case::gaid("GAID=6f9619ff-8b86-4011-b42d-00c04fc964ff", true)]
#[case::opt_out("idfa=00000000-0000-0000-0000-000000000000", false)]
#[case::unexpanded_macro("gaid=__GAID__", false)]
#[case::nonsense("idfa=abc", false)]
fn advertising_ids_are_not_stored_in_clear_text(#[case] query: &str, #[case] found: bool) {
    let read = capture(query, &Campaign::default());
    assert_eq!(read.advertising_id.is_some(), found);
    assert_eq!(read.captured, TrackingParams::default());
}

#[test]
fn offers_round_trip_through_their_text() {
    for offer in Offer::ALL {
        assert_eq!(Offer::parse(offer.as_str()), Some(*offer));
    }
}
