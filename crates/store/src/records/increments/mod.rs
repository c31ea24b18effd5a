//! Increments of one app as one JSON text. The text is stored in the transaction that stores the
//! counted rows, and merged into the roll-ups later.
//!
//! The JSON uses arrays instead of objects to stay small, because every batch writes such a text.
//! The next version of the program must be able to read it, because a server that shuts down may
//! leave unmerged increments behind. The previous version must be able to read it as well, because
//! nodes of two versions may share a database: it ignores lists that it does not know.

use super::report::{network, platform};
use super::to_json;
use crate::StoreError;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use tributary_domain::access::Environment;
use tributary_domain::device::DeviceKey;
use tributary_domain::event::EventSource;
use tributary_domain::report::cardinality_cap::{KnownValue, ValueKind};
use tributary_domain::report::cohort::{CohortCredit, CohortEntry, CohortMember};
use tributary_domain::report::{
    BucketKey, CreditKey, Figures, Increments, NameKey, PivotKey, PlaceKey,
};
use tributary_domain::vocabulary::id::{AppId, LinkId};
use tributary_domain::vocabulary::time::Timestamp;

type Text<'a> = Cow<'a, str>;

#[derive(Serialize, Deserialize)]
struct IncrementsJson<'a> {
    #[serde(borrow)]
    credits: Vec<CreditJson<'a>>,
    #[serde(borrow)]
    names: Vec<NameJson<'a>>,
    #[serde(borrow)]
    places: Vec<PlaceJson<'a>>,
    #[serde(borrow)]
    cohorts: Vec<EntryJson<'a>>,
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    known: Vec<KnownJson<'a>>,
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    pivots: Vec<PivotJson<'a>>,
}

/// Kind and value.
#[derive(Serialize, Deserialize)]
struct KnownJson<'a>(#[serde(borrow)] Text<'a>, #[serde(borrow)] Text<'a>);

/// Environment, and start of the quarter of an hour.
#[derive(Serialize, Deserialize)]
struct AtJson<'a>(#[serde(borrow)] Text<'a>, i64);

/// Bucket, network, link, campaign, ad set, ad, figures.
#[derive(Serialize, Deserialize)]
struct CreditJson<'a>(
    #[serde(borrow)] AtJson<'a>,
    #[serde(borrow)] Text<'a>,
    Option<String>,
    #[serde(borrow)] Text<'a>,
    #[serde(borrow)] Text<'a>,
    #[serde(borrow)] Text<'a>,
    Vec<i64>,
);

/// Bucket, source, name, figures.
#[derive(Serialize, Deserialize)]
struct NameJson<'a>(
    #[serde(borrow)] AtJson<'a>,
    #[serde(borrow)] Text<'a>,
    #[serde(borrow)] Text<'a>,
    Vec<i64>,
);

/// Bucket, country, platform, figures.
#[derive(Serialize, Deserialize)]
struct PlaceJson<'a>(
    #[serde(borrow)] AtJson<'a>,
    #[serde(borrow)] Text<'a>,
    #[serde(borrow)] Text<'a>,
    Vec<i64>,
);

/// Bucket, network, campaign, country, platform, figures.
#[derive(Serialize, Deserialize)]
struct PivotJson<'a>(
    #[serde(borrow)] AtJson<'a>,
    #[serde(borrow)] Text<'a>,
    #[serde(borrow)] Text<'a>,
    #[serde(borrow)] Text<'a>,
    #[serde(borrow)] Text<'a>,
    Vec<i64>,
);

/// Environment, device, time, country, is install, revenue, refunds, old credit, new credit.
#[derive(Serialize, Deserialize)]
struct EntryJson<'a>(
    #[serde(borrow)] Text<'a>,
    #[serde(borrow)] Text<'a>,
    i64,
    #[serde(borrow)] Text<'a>,
    bool,
    i64,
    i64,
    #[serde(borrow)] Option<CohortCreditJson<'a>>,
    #[serde(borrow)] Option<CohortCreditJson<'a>>,
);

/// Network, link, campaign.
#[derive(Serialize, Deserialize)]
struct CohortCreditJson<'a>(
    #[serde(borrow)] Text<'a>,
    Option<String>,
    #[serde(borrow)] Text<'a>,
);

/// Converts one app's increments to JSON.
pub fn increments_to_json(increments: &Increments) -> String {
    to_json(&IncrementsJson {
        credits: increments.credits.iter().map(write_credit).collect(),
        names: increments.names.iter().map(write_name).collect(),
        places: increments.places.iter().map(write_place).collect(),
        cohorts: increments.cohorts.iter().map(write_entry).collect(),
        known: increments.known.iter().map(write_known).collect(),
        pivots: increments.pivots.iter().map(write_pivot).collect(),
    })
}

fn write_known(known: &KnownValue) -> KnownJson<'_> {
    KnownJson(known.kind.as_str().into(), known.value.as_str().into())
}

fn write_at(at: &BucketKey) -> AtJson<'_> {
    let begins_at = at.bucket.begins_at();
    AtJson(at.environment.as_str().into(), begins_at.as_millis())
}

fn write_link(link: Option<LinkId>) -> Option<String> {
    link.map(|link| link.to_string())
}

/// Omits trailing zeros, which are most of the numbers. [`read_figures`] adds them.
fn write_figures(figures: &Figures) -> Vec<i64> {
    let values = figures.values();
    let len = values.iter().rposition(|value| *value != 0);
    values
        .into_iter()
        .take(len.map_or(0, |last| last + 1))
        .collect()
}

fn write_credit<'a>((key, figures): (&'a CreditKey, &Figures)) -> CreditJson<'a> {
    CreditJson(
        write_at(&key.at),
        key.network.into(),
        write_link(key.link),
        key.campaign.as_str().into(),
        key.adset.as_str().into(),
        key.ad.as_str().into(),
        write_figures(figures),
    )
}

fn write_name<'a>((key, figures): (&'a NameKey, &Figures)) -> NameJson<'a> {
    let (source, name) = (key.source.as_str(), key.name.as_str());
    NameJson(
        write_at(&key.at),
        source.into(),
        name.into(),
        write_figures(figures),
    )
}

fn write_place<'a>((key, figures): (&'a PlaceKey, &Figures)) -> PlaceJson<'a> {
    let (country, platform) = (key.country.as_str(), key.platform);
    PlaceJson(
        write_at(&key.at),
        country.into(),
        platform.into(),
        write_figures(figures),
    )
}

fn write_pivot<'a>((key, figures): (&'a PivotKey, &Figures)) -> PivotJson<'a> {
    PivotJson(
        write_at(&key.at),
        key.network.into(),
        key.campaign.as_str().into(),
        key.country.as_str().into(),
        key.platform.into(),
        write_figures(figures),
    )
}

fn write_entry(entry: &CohortEntry) -> EntryJson<'_> {
    EntryJson(
        entry.member.environment.as_str().into(),
        entry.member.device.as_str().into(),
        entry.at.as_millis(),
        entry.country.as_str().into(),
        entry.is_install,
        entry.revenue_micros,
        entry.refunded_micros,
        entry.old_credit.as_ref().map(write_cohort_credit),
        entry.new_credit.as_ref().map(write_cohort_credit),
    )
}

fn write_cohort_credit(credit: &CohortCredit) -> CohortCreditJson<'_> {
    let campaign = credit.campaign.as_str();
    CohortCreditJson(
        credit.network.into(),
        write_link(credit.link),
        campaign.into(),
    )
}

/// Reads JSON written by [`increments_to_json`].
pub fn increments_from_json(app: AppId, text: &str) -> Result<Increments, StoreError> {
    let corrupt = || StoreError::corrupt("rollup_increments", "body", app);
    let json: IncrementsJson<'_> = serde_json::from_str(text).map_err(|_| corrupt())?;
    read(app, json).map_err(|Unreadable| corrupt())
}

/// The JSON contains an unknown value.
struct Unreadable;

fn read(app: AppId, json: IncrementsJson<'_>) -> Result<Increments, Unreadable> {
    let credits = json.credits.into_iter();
    let names = json.names.into_iter();
    let places = json.places.into_iter();
    let entries = json.cohorts.into_iter();
    let known = json.known.into_iter();
    let pivots = json.pivots.into_iter();
    Ok(Increments {
        credits: credits
            .map(|json| read_credit(app, json))
            .collect::<Result<_, _>>()?,
        names: names
            .map(|json| read_name(app, json))
            .collect::<Result<_, _>>()?,
        places: places
            .map(|json| read_place(app, json))
            .collect::<Result<_, _>>()?,
        cohorts: entries
            .map(|json| read_entry(app, json))
            .collect::<Result<_, _>>()?,
        known: known
            .map(|json| read_known(app, json))
            .collect::<Result<_, _>>()?,
        pivots: pivots
            .map(|json| read_pivot(app, json))
            .collect::<Result<_, _>>()?,
    })
}

fn read_known(app: AppId, KnownJson(kind, value): KnownJson<'_>) -> Result<KnownValue, Unreadable> {
    Ok(KnownValue {
        app,
        kind: ValueKind::parse(&kind).ok_or(Unreadable)?,
        value: value.into_owned(),
    })
}

fn read_environment(text: &str) -> Result<Environment, Unreadable> {
    Environment::parse(text).ok_or(Unreadable)
}

fn read_at(
    app: AppId,
    AtJson(environment, begins_at): &AtJson<'_>,
) -> Result<BucketKey, Unreadable> {
    let environment = read_environment(environment)?;
    let begins_at = Timestamp::from_millis(*begins_at);
    Ok(BucketKey::of(app, environment, begins_at))
}

/// Reads figures. Trailing zeros are omitted, and an older version may know fewer figures. More
/// figures than this version knows are rejected.
fn read_figures(numbers: &[i64]) -> Result<Figures, Unreadable> {
    let mut values = [0; Figures::COUNT];
    let prefix = values.get_mut(..numbers.len()).ok_or(Unreadable)?;
    prefix.copy_from_slice(numbers);
    Ok(Figures::from_values(values))
}

fn read_link(link: Option<String>) -> Result<Option<LinkId>, Unreadable> {
    let link = link.map(|link| LinkId::parse(&link));
    link.transpose().map_err(|_| Unreadable)
}

fn read_credit(app: AppId, json: CreditJson<'_>) -> Result<(CreditKey, Figures), Unreadable> {
    let CreditJson(at, named, link, campaign, adset, ad, figures) = json;
    let key = CreditKey {
        at: read_at(app, &at)?,
        network: network(&named).ok_or(Unreadable)?,
        link: read_link(link)?,
        campaign: campaign.into_owned(),
        adset: adset.into_owned(),
        ad: ad.into_owned(),
    };
    Ok((key, read_figures(&figures)?))
}

fn read_name(app: AppId, json: NameJson<'_>) -> Result<(NameKey, Figures), Unreadable> {
    let NameJson(at, source, name, figures) = json;
    let key = NameKey {
        at: read_at(app, &at)?,
        source: EventSource::parse(&source).ok_or(Unreadable)?,
        name: name.into_owned(),
    };
    Ok((key, read_figures(&figures)?))
}

fn read_place(app: AppId, json: PlaceJson<'_>) -> Result<(PlaceKey, Figures), Unreadable> {
    let PlaceJson(at, country, named, figures) = json;
    let key = PlaceKey {
        at: read_at(app, &at)?,
        country: country.into_owned(),
        platform: platform(&named).ok_or(Unreadable)?,
    };
    Ok((key, read_figures(&figures)?))
}

fn read_pivot(app: AppId, json: PivotJson<'_>) -> Result<(PivotKey, Figures), Unreadable> {
    let PivotJson(at, named, campaign, country, place, figures) = json;
    let key = PivotKey {
        at: read_at(app, &at)?,
        network: network(&named).ok_or(Unreadable)?,
        campaign: campaign.into_owned(),
        country: country.into_owned(),
        platform: platform(&place).ok_or(Unreadable)?,
    };
    Ok((key, read_figures(&figures)?))
}

fn read_entry(app: AppId, json: EntryJson<'_>) -> Result<CohortEntry, Unreadable> {
    let EntryJson(environment, device, at, country, is_install, revenue, refunded, from, to) = json;
    Ok(CohortEntry {
        member: CohortMember {
            app,
            environment: read_environment(&environment)?,
            device: DeviceKey::stored(device.into_owned()),
        },
        at: Timestamp::from_millis(at),
        country: country.into_owned(),
        is_install,
        revenue_micros: revenue,
        refunded_micros: refunded,
        old_credit: from.map(read_cohort_credit).transpose()?,
        new_credit: to.map(read_cohort_credit).transpose()?,
    })
}

fn read_cohort_credit(json: CohortCreditJson<'_>) -> Result<CohortCredit, Unreadable> {
    let CohortCreditJson(named, link, campaign) = json;
    Ok(CohortCredit {
        network: network(&named).ok_or(Unreadable)?,
        link: read_link(link)?,
        campaign: campaign.into_owned(),
    })
}

#[cfg(test)]
mod tests;
