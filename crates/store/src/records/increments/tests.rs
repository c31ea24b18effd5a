//! Tests of the increments' JSON.

use super::*;

const APP: AppId = AppId::from_bytes([1; 16]);

fn figures(first: i64) -> Figures {
    let mut values = [0; Figures::COUNT];
    for (value, number) in values.iter_mut().zip(first..) {
        *value = number;
    }
    Figures::from_values(values)
}

fn counted() -> Increments {
    let moment = Timestamp::from_millis(1_700_000_123_456);
    let at = BucketKey::of(APP, Environment::Test, moment);
    let credit = CohortCredit {
        network: "network_b",
        link: Some(LinkId::from_bytes([2; 16])),
        campaign: "spring \"sale\" \u{1f33c}".to_owned(),
    };
    let entry = |from, to, is_install| CohortEntry {
        member: CohortMember {
            app: APP,
            environment: Environment::Test,
            device: DeviceKey::stored("device-1".to_owned()),
        },
        at: moment,
        country: "DE".to_owned(),
        is_install,
        revenue_micros: i64::MAX,
        refunded_micros: i64::MIN,
        old_credit: from,
        new_credit: to,
    };
    let nowhere = CreditKey {
        at,
        network: "",
        link: None,
        campaign: String::new(),
        adset: String::new(),
        ad: String::new(),
    };
    let somewhere = CreditKey {
        network: "other",
        link: credit.link,
        campaign: credit.campaign.clone(),
        adset: "a\\b".to_owned(),
        ad: "ad".to_owned(),
        ..nowhere.clone()
    };
    let name = NameKey {
        at,
        source: EventSource::Web,
        name: "purchase".to_owned(),
    };
    let place = |platform| PlaceKey {
        at,
        country: String::new(),
        platform,
    };
    let pivot = PivotKey {
        at,
        network: "network_c",
        campaign: credit.campaign.clone(),
        country: "DE".to_owned(),
        platform: "android",
    };
    let unknown_pivot = PivotKey {
        network: "",
        campaign: String::new(),
        country: String::new(),
        platform: "",
        ..pivot.clone()
    };
    Increments {
        credits: [(nowhere, figures(1)), (somewhere, figures(-20))].into(),
        names: [(name, figures(3))].into(),
        places: [(place(""), figures(4)), (place("ios"), figures(5))].into(),
        pivots: [(pivot, figures(6)), (unknown_pivot, Figures::default())].into(),
        cohorts: vec![
            entry(None, Some(credit.clone()), true),
            entry(Some(credit), None, false),
        ],
        known: [KnownValue {
            app: APP,
            kind: ValueKind::Name,
            value: "boss \"defeated\"".to_owned(),
        }]
        .into(),
    }
}

#[test]
fn increments_round_trip_through_json() {
    for increments in [counted(), Increments::default()] {
        let text = increments_to_json(&increments);
        assert_eq!(increments_from_json(APP, &text).unwrap(), increments);
    }
}

#[test]
fn reads_the_shorter_figures_of_older_versions() {
    let names = r#"[[["live",0],"web","purchase",[7,8]]]"#;
    let text = format!(r#"{{"credits":[],"names":{names},"places":[],"cohorts":[]}}"#);
    let read = increments_from_json(APP, &text).unwrap();
    let mut values = [0; Figures::COUNT];
    (values[0], values[1]) = (7, 8);
    let counted = read.names.into_values().next();
    assert_eq!(counted, Some(Figures::from_values(values)));
}

#[test]
fn omits_trailing_zeros() {
    let clicks = Figures {
        clicks: 1,
        ..Figures::default()
    };
    let key = counted().pivots.into_keys().next().unwrap();
    let increments = Increments {
        pivots: [(key, clicks)].into(),
        ..Increments::default()
    };
    let text = increments_to_json(&increments);
    assert!(text.ends_with("[1]]]}"), "{text}");
    assert_eq!(increments_from_json(APP, &text).unwrap(), increments);
}

#[test]
fn reads_increments_of_versions_without_pivots() {
    let mut increments = counted();
    let text = increments_to_json(&increments);
    let (older, _) = text.split_once(r#","pivots":"#).unwrap();
    increments.pivots.clear();
    let read = increments_from_json(APP, &format!("{older}}}")).unwrap();
    assert_eq!(read, increments);
}

#[test]
fn rejects_unknown_values() {
    let whole = increments_to_json(&counted());
    for (right, wrong) in [
        ("\"test\"", "\"moon\""),
        ("network_b", "network_x"),
        ("network_c", "network_x"),
        ("\"android\"", "\"toaster\""),
        ("\"ios\"", "\"toaster\""),
        ("\"web\"", "\"fax\""),
        ("[1,2,", "[0,0,1,2,"),
        ("{", "["),
    ] {
        let text = whole.replacen(right, wrong, 1);
        assert_ne!(text, whole, "{right}");
        let result = increments_from_json(APP, &text);
        assert!(matches!(result, Err(StoreError::Corrupt { .. })), "{text}");
    }
}
