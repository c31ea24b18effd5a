//! Cost sources and imported costs.

use super::fixtures::{SharedStore, at, first_page, organization, origin, refusal};
use super::sdk_fixtures::{Tenant, tenant};
use crate::LeasedCostSource;
use std::collections::BTreeMap;
use tributary_domain::attribution::CreditedNetwork;
use tributary_domain::cost_source::{CostSourceDraft, DaySpan, PullOutcome};
use tributary_domain::integration::{Credential, Network};
use tributary_domain::keyring::seal::SealedSecret;
use tributary_domain::refusal::Refusal;
use tributary_domain::report::cost::{Cost, CostFilter, CostOrigin};
use tributary_domain::vocabulary::change::Change;
use tributary_domain::vocabulary::currency::Currency;
use tributary_domain::vocabulary::day::Day;
use tributary_domain::vocabulary::money::Amount;
use tributary_domain::vocabulary::revision::Precondition;
use tributary_domain::vocabulary::time::Timestamp;

/// Before the times of the leases.
const DUE: i64 = -1_000_000_000;

fn draft() -> CostSourceDraft {
    let credential = Credential {
        sealed: SealedSecret::from_bytes(b"sealed".to_vec()),
        hint: Some("9f2c".to_owned()),
    };
    CostSourceDraft {
        enabled: true,
        settings: BTreeMap::from([("accountId", "77".to_owned())]),
        credentials: BTreeMap::from([("accessToken", Change::Set(credential))]),
    }
}

fn cost(day: i32, campaign: &str, dollars: i64, origin: CostOrigin) -> Cost {
    Cost {
        day: Day::from_days(day),
        network: CreditedNetwork::Ad(Network::A),
        campaign: campaign.to_owned(),
        amount: Amount::from_micros(dollars * 1_000_000),
        currency: Currency::USD,
        origin,
    }
}

fn span(from: i32, to: i32) -> DaySpan {
    DaySpan {
        from: Day::from_days(from),
        to: Day::from_days(to),
    }
}

/// Stores a source that is due, and leases it.
async fn leased(store: &SharedStore, tenant: &Tenant, seconds: i64) -> LeasedCostSource {
    let put = store.put_cost_source(
        &tenant.writer,
        tenant.app.id,
        Network::A,
        draft(),
        Precondition::None,
        origin(DUE + seconds),
    );
    put.await.expect("a source is stored");
    let lease = store.lease_cost_source(at(DUE + seconds), at(0)).await;
    let lease = lease.expect("sources are read").expect("one is due");
    assert_eq!(lease.source.app, tenant.app.id);
    assert_eq!(lease.organization, tenant.writer.organization());
    lease
}

async fn sum(store: &SharedStore, tenant: &Tenant) -> i64 {
    let (from, to) = (Day::from_days(0), Day::from_days(99));
    let sums = store
        .cost_sums(&tenant.reader, vec![tenant.app.id], from, to)
        .await;
    let sums = sums.expect("costs are read").into_iter();
    sums.map(|(_, sum)| sum.usd_micros / 1_000_000).sum()
}

/// A source is stored, changed, read and removed; other organizations see nothing of it.
pub async fn a_cost_source_is_stored_and_removed(store: &SharedStore) {
    let tenant = tenant(store).await;
    let (app, reader) = (tenant.app.id, tenant.writer.read_access());
    let read = async || store.cost_sources(&reader, app).await.expect("sources");
    let networks: Vec<Network> = read().await.iter().map(|one| one.network).collect();
    assert_eq!(networks, [Network::A, Network::B, Network::C]);
    let any = Precondition::None;
    let put = store.put_cost_source(
        &tenant.writer,
        app,
        Network::C,
        draft(),
        any.clone(),
        origin(5),
    );
    let stored = put.await.expect("a source is stored");
    assert_eq!(read().await[2], stored);
    assert_eq!(stored.pulls.due_at, Some(at(5)));
    let incomplete = CostSourceDraft {
        settings: BTreeMap::new(),
        ..draft()
    };
    let put = store.put_cost_source(
        &tenant.writer,
        app,
        Network::C,
        incomplete,
        any.clone(),
        origin(6),
    );
    assert!(matches!(refusal(put.await), Refusal::Invalid(_)));
    assert_eq!(read().await[2], stored, "a refused change stores nothing");
    let pulled = store.pull_cost_source(&tenant.writer, app, Network::C, origin(9));
    assert_eq!(pulled.await.expect("it is due already"), stored);
    let stranger = organization(store).await;
    let read_as_stranger = store.cost_sources(&stranger.read_access(), app).await;
    assert_eq!(refusal(read_as_stranger), Refusal::AppNotFound);
    let put = store.put_cost_source(&stranger, app, Network::C, draft(), any.clone(), origin(7));
    assert_eq!(refusal(put.await), Refusal::AppNotFound);
    let remove = store.remove_cost_source(&tenant.writer, app, Network::C, false, any, origin(10));
    remove.await.expect("the source is removed");
    assert_eq!(read().await[2].updated_at, None);
}

/// A change or a removal that is based on an outdated version is refused and stores nothing. A pull
/// keeps the version.
pub async fn an_outdated_version_is_refused(store: &SharedStore) {
    let tenant = tenant(store).await;
    let (app, reader) = (tenant.app.id, tenant.writer.read_access());
    let put = async |tag: String, seconds| {
        let tag = Precondition::AnyOf(vec![tag]);
        let of = (app, Network::A);
        let put = store.put_cost_source(&tenant.writer, of.0, of.1, draft(), tag, origin(seconds));
        put.await
    };
    let remove = async |tag: String| {
        let tag = Precondition::AnyOf(vec![tag]);
        let removed =
            store.remove_cost_source(&tenant.writer, app, Network::A, false, tag, origin(9));
        removed.await
    };
    let read = async || store.cost_sources(&reader, app).await.expect("sources")[0].clone();
    let opened = read().await.tag();
    let first = put(opened.clone(), DUE).await.expect("the first change");
    let second = put(opened.clone(), DUE + 1).await;
    assert_eq!(refusal(second), Refusal::VersionConflict);
    assert_eq!(refusal(remove(opened).await), Refusal::VersionConflict);
    assert_eq!(read().await, first);
    let lease = store.lease_cost_source(at(DUE + 1), at(0)).await;
    let lease = lease.expect("sources are read").expect("one is due");
    let outcome = PullOutcome::Done {
        until: Day::from_days(8),
    };
    let settled = store.settle_cost_source(lease, outcome, at(2)).await;
    assert!(settled.expect("a pull is settled"));
    assert_eq!(read().await.tag(), first.tag());
    remove(first.tag()).await.expect("the source is removed");
}

/// One node pulls at a time, and a node whose lease ended or whose source changed stores nothing.
pub async fn a_cost_source_has_one_lease(store: &SharedStore) {
    let tenant = tenant(store).await;
    let lease = leased(store, &tenant, 1).await;
    let again = store.lease_cost_source(at(DUE + 1), at(0)).await;
    let again = again.expect("sources are read");
    assert_eq!(again, None);
    let request = async |seconds| {
        let app = tenant.app.id;
        let due = store.pull_cost_source(&tenant.writer, app, Network::A, origin(seconds));
        due.await.expect("a pull is requested").pulls.due_at
    };
    assert_eq!(request(DUE + 2).await, Some(at(0)), "the lease stays");
    let costs = vec![cost(7, "a", 5, CostOrigin::Imported)];
    let put = async |lease: &LeasedCostSource, costs: &Vec<Cost>| {
        let stored = store.store_imported_costs(lease.clone(), span(7, 8), costs.clone(), at(1));
        stored.await.expect("costs are stored")
    };
    let settle = async |lease: &LeasedCostSource| {
        let outcome = PullOutcome::Done {
            until: Day::from_days(8),
        };
        let settled = store.settle_cost_source(lease.clone(), outcome, at(2));
        settled.await.expect("a pull is settled")
    };
    assert!(put(&lease, &costs).await);
    let newer = leased(store, &tenant, 2).await;
    assert!(!put(&lease, &Vec::new()).await && !settle(&lease).await);
    assert_eq!(sum(store, &tenant).await, 5);
    assert!(settle(&newer).await && !settle(&newer).await);
    let reader = tenant.writer.read_access();
    let sources = store
        .cost_sources(&reader, tenant.app.id)
        .await
        .expect("sources");
    assert_eq!(sources[0].pulls.last_success_at, Some(at(2)));
    let planned = sources[0].pulls.due_at;
    assert!(planned > Some(at(2)));
    assert_eq!(request(2 + 299).await, planned, "too soon");
    assert_eq!(request(2 + 300).await, Some(at(302)));
}

/// A pull replaces the imported costs of its days. Imported and manual costs of a day and network
/// are never added together, in whichever order they arrive.
pub async fn imported_costs_replace_manual_ones(store: &SharedStore) {
    let tenant = tenant(store).await;
    let manual = |day| cost(day, "m", 100, CostOrigin::Manual);
    let put = async |costs, seconds| {
        let put = store.put_costs(&tenant.writer, tenant.app.id, costs, origin(seconds));
        put.await.expect("costs are stored");
    };
    put(vec![manual(7), manual(9)], 3).await;
    let lease = leased(store, &tenant, 3).await;
    let import = async |from, to, costs: Vec<Cost>| {
        let stored = store.store_imported_costs(lease.clone(), span(from, to), costs, at(4));
        assert!(stored.await.expect("costs are stored"));
    };
    let imported =
        |day, campaign: &str, dollars| cost(day, campaign, dollars, CostOrigin::Imported);
    import(
        7,
        8,
        vec![
            imported(7, "a", 5),
            imported(7, "b", 6),
            imported(8, "a", 7),
        ],
    )
    .await;
    assert_eq!(sum(store, &tenant).await, 118);
    put(vec![manual(8)], 5).await;
    assert_eq!(sum(store, &tenant).await, 118, "the import counts");
    import(7, 8, vec![imported(7, "a", 9)]).await;
    assert_eq!(sum(store, &tenant).await, 209, "a restated day is replaced");
    let reader = tenant.writer.read_access();
    let listed = store.costs(
        &reader,
        tenant.app.id,
        CostFilter::default(),
        first_page("50"),
    );
    let listed = listed.await.expect("costs are read").items;
    let counted: Vec<(i32, &str, bool)> = listed
        .iter()
        .map(|one| (one.cost.day.as_days(), &*one.cost.campaign, one.is_counted))
        .collect();
    let mut sorted = counted.clone();
    sorted.sort_unstable();
    assert_eq!(
        sorted,
        [
            (7, "a", true),
            (7, "m", false),
            (8, "m", true),
            (9, "m", true)
        ]
    );
    let unknown = Currency::from_stored("XTS").expect("a code");
    let without_rate = Cost {
        currency: unknown,
        ..imported(7, "a", 1)
    };
    let stored = store.store_imported_costs(lease.clone(), span(7, 8), vec![without_rate], at(6));
    assert!(matches!(refusal(stored.await), Refusal::Invalid(_)));
    assert_eq!(sum(store, &tenant).await, 209, "nothing was removed");
    let remove = store.remove_cost_source(
        &tenant.writer,
        tenant.app.id,
        Network::A,
        true,
        Precondition::None,
        origin(7),
    );
    remove.await.expect("the source is removed");
    assert_eq!(sum(store, &tenant).await, 300, "manual costs count again");
    let lost = store.settle_cost_source(
        lease,
        PullOutcome::Done {
            until: Day::from_days(8),
        },
        Timestamp::from_millis(9),
    );
    assert!(!lost.await.expect("the source is gone"));
}
