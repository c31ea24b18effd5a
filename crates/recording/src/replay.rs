//! Reads installs for a replay under other attribution rules.

use crate::tables::{AdvertisingSearch, ReplayTable};
use std::collections::{BTreeMap, BTreeSet};
use tributary_domain::access::Environment;
use tributary_domain::device::DeviceKey;
use tributary_domain::install::what_if::{ReplayClick, ReplayQuery, StoredInstall};
use tributary_domain::vocabulary::id::{AppId, ClickId, EventId};
use tributary_store::ReplayPart;

/// Reads a part of an app's installs with everything that a replay needs. Returns the installs, and
/// the id of the last one unless this is the last part.
pub async fn replay_part<T: ReplayTable>(
    tables: &T,
    (app, environment): (AppId, Environment),
    part: &ReplayPart,
) -> Result<(Vec<StoredInstall>, Option<EventId>), T::Failure> {
    let scope = (app, environment);
    let found = tables.replay_installs(scope, part).await?;
    let queries = found
        .iter()
        .map(|(_, device, one)| ReplayQuery::of(device, one));
    let queries: Vec<ReplayQuery> = queries.collect();
    let named: BTreeSet<ClickId> = queries.iter().flat_map(|one| one.clicks.clone()).collect();
    let clicks = tables.replay_clicks(app, &named).await?;
    let clicks: BTreeMap<ClickId, ReplayClick> =
        clicks.into_iter().map(|one| (one.click.id, one)).collect();
    let mut searches = Vec::new();
    let mut searching = Vec::new();
    for (position, (query, (_, device, _))) in queries.iter().zip(&found).enumerate() {
        if let Some(id) = &query.advertising_id {
            searching.push(position);
            searches.push(AdvertisingSearch {
                hash: part.hasher.advertising_id(id),
                until: device.first_seen_at,
            });
        }
    }
    let mut advertised: BTreeMap<usize, Vec<ReplayClick>> = BTreeMap::new();
    for (search, click) in tables.replay_advertised(app, &searches).await? {
        if let Some(position) = searching.get(search) {
            advertised.entry(*position).or_default().push(click);
        }
    }
    let devices: Vec<DeviceKey> = found
        .iter()
        .map(|(_, device, _)| device.key.clone())
        .collect();
    let revenue = tables.replay_revenue(scope, &devices).await?;
    let sums = revenue
        .into_iter()
        .map(|(device, paid, refunded)| (device, (paid, refunded)));
    let sums: BTreeMap<DeviceKey, (i64, i64)> = sums.collect();
    let is_full = u32::try_from(found.len()).is_ok_and(|count| count >= part.limit);
    let last = found
        .last()
        .map(|(install, ..)| *install)
        .filter(|_| is_full);
    let mut installs = Vec::with_capacity(found.len());
    for (position, (install, device, attribution)) in found.into_iter().enumerate() {
        let named = queries[position].clicks.iter();
        let (revenue_micros, refunded_micros) = sums.get(&device.key).copied().unwrap_or_default();
        installs.push(StoredInstall {
            install,
            clicks: named.filter_map(|id| clicks.get(id).cloned()).collect(),
            same_advertising_id: advertised.remove(&position).unwrap_or_default(),
            device,
            attribution,
            revenue_micros,
            refunded_micros,
        });
    }
    Ok((installs, last))
}
