//! Two nodes on one database at once. Every outcome must be one that a single writer could produce,
//! and there must be no database errors.

use super::database::Schema;
use crate::PostgresStore;
use std::sync::Arc;
use std::task::Poll;
use tributary_domain::access::{AppsWrite, Authorized};
use tributary_domain::app::{App, AppChange};
use tributary_domain::integration::{IntegrationChange, Network, SettingValue};
use tributary_domain::link::{LinkChange, LinkFilter, Slug};
use tributary_domain::refusal::Refusal;
use tributary_domain::skan::Document;
use tributary_domain::vocabulary::change::Change;
use tributary_domain::vocabulary::currency::Currency;
use tributary_domain::vocabulary::id::OrganizationId;
use tributary_domain::vocabulary::revision::Precondition;
use tributary_domain::vocabulary::web_url::HostName;
use tributary_store::contract::fixtures::{
    SharedStore, app, at, first_page, link, name, new_key, new_link, organization, origin, unique,
};
use tributary_store::{Apps, AuditLog, Integrations, Links, Organization, SkanConfigurations};
use tributary_store::{StoreError, StoreResult, Tenants};

/// Number of concurrent callers, half of them on each node.
pub(super) const CALLERS: i64 = 12;

pub(super) struct Nodes {
    pub(super) nodes: [Arc<PostgresStore>; 2],
    pub(super) schema: Schema,
}

impl Nodes {
    pub(super) async fn start() -> Self {
        let schema = Schema::create().await;
        let nodes = [Arc::new(schema.open().await), Arc::new(schema.open().await)];
        Self { nodes, schema }
    }

    pub(super) fn shared(&self) -> SharedStore {
        self.nodes[0].clone()
    }

    async fn app(&self) -> (Authorized<AppsWrite>, App) {
        let caller = organization(&self.shared()).await;
        let app = app(&self.shared(), &caller).await;
        (caller, app)
    }

    /// Runs all callers at once. Returns each caller's result or refusal.
    pub(super) async fn all<'a, T, F>(
        &'a self,
        work: impl Fn(&'a PostgresStore, i64) -> F,
    ) -> Vec<Result<T, Refusal>>
    where
        F: Future<Output = StoreResult<T>>,
    {
        let mut callers: Vec<_> = (0..CALLERS)
            .zip(self.nodes.iter().cycle())
            .map(|(number, node)| (Box::pin(work(node, number)), None))
            .collect();
        std::future::poll_fn(|context| {
            for (caller, outcome) in &mut callers {
                if outcome.is_none()
                    && let Poll::Ready(ready) = caller.as_mut().poll(context)
                {
                    *outcome = Some(ready);
                }
            }
            if callers.iter().all(|(_, outcome)| outcome.is_some()) {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
        let refusal_or_panic = |outcome: Option<StoreResult<T>>| match outcome.expect("ready") {
            Ok(value) => Ok(value),
            Err(StoreError::Refused(refusal)) => Err(refusal),
            Err(other) => panic!("{other:?}"),
        };
        callers
            .into_iter()
            .map(|(_, outcome)| refusal_or_panic(outcome))
            .collect()
    }
}

/// Counts the successes; all other outcomes must be this refusal.
fn admitted<T>(outcomes: &[Result<T, Refusal>], refusal: &Refusal) -> usize {
    let refused = outcomes.iter().filter_map(|outcome| outcome.as_ref().err());
    for other in refused.clone() {
        assert_eq!(other, refusal);
    }
    outcomes.len() - refused.count()
}

fn numbered(number: i64) -> usize {
    usize::try_from(number).expect("small")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_node_creates_the_first_organization() {
    let nodes = Nodes::start().await;
    let outcomes = nodes
        .all(|node, _| async move {
            let organization = Organization {
                id: OrganizationId::new(at(0), unique()),
                name: name("First"),
                created_at: at(0),
            };
            node.create_first_organization(organization, origin(0))
                .await
        })
        .await;
    assert_eq!(outcomes.iter().filter(|one| **one == Ok(true)).count(), 1);
    let organizations = nodes.nodes[1].organizations().await.expect("a list");
    assert_eq!(organizations.len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_many_new_links_claims_the_slug() {
    let nodes = Nodes::start().await;
    let (caller, one) = &nodes.app().await;
    let other = app(&nodes.shared(), caller).await;
    let apps = [one.id, other.id];
    let outcomes = nodes
        .all(|node, number| {
            let mut link = new_link(apps[numbered(number) / 2 % 2], 2);
            link.slug = Slug::parse("wanted").expect("a slug");
            async move { node.create_link(caller, link, origin(2)).await }
        })
        .await;
    assert_eq!(admitted(&outcomes, &Refusal::SlugTaken), 1);
    let mut links = 0;
    for app in apps {
        let reading = caller.read_access();
        let page = nodes.nodes[1]
            .links(&reading, app, LinkFilter::default(), first_page("50"))
            .await;
        links += page.expect("a list").items.len();
    }
    assert_eq!(links, 1, "a rejected link is not stored");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn creating_and_changing_links_does_not_deadlock() {
    let nodes = Nodes::start().await;
    let (caller, app) = &nodes.app().await;
    let old = link(&nodes.shared(), caller, app.id).await;
    for round in 0..10 {
        let slug = Slug::parse(&format!("wanted-{round}")).expect("a slug");
        let outcomes = nodes
            .all(|node, number| {
                let slug = slug.clone();
                let mut new = new_link(app.id, 3);
                async move {
                    if number % 3 == 0 {
                        let change = LinkChange {
                            slug: Some(slug),
                            ..LinkChange::default()
                        };
                        let none = Precondition::None;
                        node.update_link(caller, app.id, old.id, change, none, origin(3))
                            .await
                    } else {
                        new.slug = slug;
                        node.create_link(caller, new, origin(3)).await
                    }
                }
            })
            .await;
        let winners: Vec<_> = outcomes.iter().flatten().map(|link| link.id).collect();
        let all_the_same = winners.iter().all(|id| *id == winners[0]);
        assert!(!winners.is_empty() && all_the_same, "{winners:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn apps_cannot_swap_unique_names() {
    let nodes = Nodes::start().await;
    let (caller, one) = &nodes.app().await;
    let other = app(&nodes.shared(), caller).await;
    let change = |number: i64| AppChange {
        ios_app_store_id: Change::Set(number.to_string()),
        link_domain: Change::Set(
            HostName::parse(&format!("go{number}.example.com")).expect("a host"),
        ),
        ..AppChange::default()
    };
    for (app, number) in [(one.id, 1), (other.id, 2)] {
        let outcome =
            nodes.nodes[0].update_app(caller, app, change(number), Precondition::None, origin(2));
        outcome.await.expect("the names are free");
    }
    let outcomes = nodes
        .all(|node, number| {
            let (app, wanted) = [(one.id, 2), (other.id, 1)][numbered(number) / 2 % 2];
            let change = change(wanted);
            async move {
                node.update_app(caller, app, change, Precondition::None, origin(3))
                    .await
            }
        })
        .await;
    assert_eq!(admitted(&outcomes, &Refusal::StoreIdTaken), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_changes_of_an_app_are_all_applied() {
    let nodes = Nodes::start().await;
    let (caller, app) = &nodes.app().await;
    let outcomes = nodes
        .all(|node, number| async move {
            let change = AppChange {
                name: Some(name(&format!("Runner {number}"))),
                ..AppChange::default()
            };
            node.update_app(caller, app.id, change, Precondition::None, origin(2))
                .await
        })
        .await;
    let mut tags: Vec<i64> = outcomes
        .into_iter()
        .map(|app| app.expect("a change").tag().parse().expect("a number"))
        .collect();
    tags.sort_unstable();
    assert_eq!(tags, (2..2 + CALLERS).collect::<Vec<_>>());
    let reading = caller.read_access();
    let log = nodes.nodes[0].audit_log(&reading, Some(app.id), first_page("500"));
    let lines = log.await.expect("the log").items.len();
    assert_eq!(lines, 1 + numbered(CALLERS));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_many_changes_to_the_same_version_succeeds() {
    let nodes = Nodes::start().await;
    let (caller, app) = &nodes.app().await;
    let outcomes = nodes
        .all(|node, number| async move {
            let change = AppChange {
                name: Some(name(&format!("Runner {number}"))),
                ..AppChange::default()
            };
            let first = Precondition::AnyOf(vec!["1".to_owned()]);
            node.update_app(caller, app.id, change, first, origin(2))
                .await
        })
        .await;
    assert_eq!(admitted(&outcomes, &Refusal::VersionConflict), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_is_deleted_once() {
    let nodes = Nodes::start().await;
    let (caller, app) = &nodes.app().await;
    let link = link(&nodes.shared(), caller, app.id).await;
    let outcomes = nodes
        .all(|node, _| async move {
            node.delete_link(caller, app.id, link.id, Precondition::None, origin(3))
                .await
        })
        .await;
    assert_eq!(admitted(&outcomes, &Refusal::LinkNotFound), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_changes_of_a_new_integration_are_all_applied() {
    let nodes = Nodes::start().await;
    let (caller, app) = &nodes.app().await;
    let outcomes = nodes
        .all(|node, number| async move {
            let value = Change::Set(SettingValue::Number(number));
            let change = IntegrationChange {
                settings: [("maxEventAge", value)].into(),
                ..IntegrationChange::default()
            };
            let none = Precondition::None;
            node.update_integration(caller, app.id, Network::A, change, none, origin(2))
                .await
        })
        .await;
    assert!(outcomes.iter().all(Result::is_ok));
    let all = nodes.nodes[1]
        .integrations(&caller.read_access(), app.id)
        .await;
    assert_eq!(all.expect("a list")[0].tag(), CALLERS.to_string());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_skan_changes_make_versions_and_keep_settings() {
    const CURRENCIES: [&str; 12] = [
        "EUR", "USD", "JPY", "GBP", "CHF", "SEK", "NOK", "DKK", "PLN", "CZK", "HUF", "CAD",
    ];
    let nodes = Nodes::start().await;
    let (caller, app) = &nodes.app().await;
    let outcomes = nodes
        .all(|node, number| async move {
            if number % 4 == 3 {
                let (keep, on) = (Change::Keep, Change::Set(true));
                let none = Precondition::None;
                return node
                    .patch_skan(caller, app.id, keep, on, none, origin(2))
                    .await;
            }
            let currency = Currency::parse(CURRENCIES[numbered(number)]).expect("a currency");
            let document = Document {
                enabled: true,
                currency,
                accept_test_signals: true,
                ..Document::disabled()
            };
            node.put_skan(caller, app.id, document, Precondition::None, origin(2))
                .await
        })
        .await;
    assert!(outcomes.iter().all(Result::is_ok));
    let reading = caller.read_access();
    let versions = nodes.nodes[1].skan_versions(&reading, app.id).await;
    let numbers: Vec<i64> = versions
        .expect("a list")
        .iter()
        .map(|(number, _)| *number)
        .collect();
    let present = nodes.nodes[0]
        .skan(&reading, app.id)
        .await
        .expect("configuration");
    assert_eq!(numbers, (1..=present.version).collect::<Vec<_>>());
    assert!(present.document.accept_test_signals);
    let app = nodes.nodes[0].app(&reading, app.id).await.expect("the app");
    assert!(app.skan_test_signals);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_is_revoked_once() {
    let nodes = Nodes::start().await;
    let caller = &organization(&nodes.shared()).await;
    let key = new_key(caller.organization());
    let created = nodes.nodes[0].create_key(key.clone(), origin(0)).await;
    created.expect("create key");
    let outcomes = nodes
        .all(|node, number| async move { node.revoke_key(key.key.id, origin(5 + number)).await })
        .await;
    let times: std::collections::BTreeSet<_> = outcomes
        .into_iter()
        .map(|key| key.expect("a key").revoked_at)
        .collect();
    assert_eq!(times.len(), 1, "{times:?}");
    let reading = caller.read_access();
    let log = nodes.nodes[1].audit_log(&reading, None, first_page("500"));
    assert_eq!(log.await.expect("the log").items.len(), 3);
}
