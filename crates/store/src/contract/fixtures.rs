//! Fixtures for the contract cases.

use crate::{NewKey, NewSetupLink, Organization, Store, StoreError};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tributary_domain::access::key::{ApiKey, KeyCreation, KeyKind, KeyText};
use tributary_domain::access::person::{Role, SETUP_LINK_LIFETIME, SetupLink};
use tributary_domain::access::{Actor, AppsWrite, Authorized, Environment, Permission};
use tributary_domain::app::{App, AppCreation as AppBirth, FraudPolicy};
use tributary_domain::audit::AuditContext;
use tributary_domain::due_work::WorkKind;
use tributary_domain::link::{Link, LinkCreation as LinkBirth, Slug};
use tributary_domain::refusal::Refusal;
use tributary_domain::vocabulary::digest::{Digest, hex};
use tributary_domain::vocabulary::id::{AppId, AuditId, KeyId, LinkId, OrganizationId};
use tributary_domain::vocabulary::page::{Limit, PageRequest};
use tributary_domain::vocabulary::text::Name;
use tributary_domain::vocabulary::time::Timestamp;

/// A store under test that tasks can share.
pub type SharedStore = Arc<dyn Store>;

static COUNTER: AtomicU64 = AtomicU64::new(1);

/// Returns ten bytes that are unique in this process. The first three bytes are zero, because ids
/// have their version and variant bits there. The last one is zero, because a change with several
/// audit entries numbers them from the first id.
pub fn unique() -> [u8; 10] {
    let counter = (COUNTER.fetch_add(1, Ordering::Relaxed) << 8).to_be_bytes();
    let mut bytes = [0; 10];
    bytes[3..].copy_from_slice(&counter[1..]);
    bytes
}

/// Returns a fixed time plus some seconds.
pub fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis(1_700_000_000_000 + seconds * 1_000)
}

/// Returns whether a poll finds this kind of work due.
pub async fn is_due(store: &SharedStore, kind: WorkKind, second: i64) -> bool {
    let kinds = store.due_kinds(at(second)).await;
    kinds.expect("kinds of due work").contains(&kind)
}

/// Address of the clients in the contract cases.
pub const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7));

/// Returns an audit log origin.
pub fn origin(seconds: i64) -> AuditContext {
    AuditContext {
        actor: Actor::Operator,
        address: Some(CLIENT),
        environment: Environment::Live,
        request_id: Some("request".to_owned()),
        at: at(seconds),
        audit_id: AuditId::new(at(seconds), unique()),
    }
}

/// Parses a name.
pub fn name(text: &str) -> Name {
    Name::parse(text).expect("a name")
}

/// Creates an organization. Returns a caller that may change it.
pub async fn organization(store: &SharedStore) -> Authorized<AppsWrite> {
    let id = OrganizationId::new(at(0), unique());
    let organization = Organization {
        id,
        name: name("Example"),
        created_at: at(0),
    };
    store
        .create_organization(organization, origin(0))
        .await
        .expect("an organization is created");
    Authorized::operator(id)
}

/// Builds a key without storing it.
pub fn new_key(organization: OrganizationId) -> NewKey {
    let mut random = [0; 24];
    random[..10].copy_from_slice(&unique());
    let text = KeyText::generate(KeyKind::Private, Environment::Live, random);
    let creation = KeyCreation {
        id: KeyId::new(at(0), unique()),
        organization,
        hint: text.hint().to_owned(),
        at: at(0),
    };
    let key = ApiKey {
        // The creator that `origin` names.
        created_by: Some(Actor::Operator),
        expires_at: Some(at(1_000)),
        ..ApiKey::new(creation, "CI".to_owned(), Permission::ReadOnly)
    };
    NewKey {
        key,
        digest: text.digest(),
    }
}

/// Builds a setup link without storing it.
pub fn new_setup_link(organization: OrganizationId) -> NewSetupLink {
    let link = SetupLink {
        organization,
        role: Role::Owner,
        email: None,
        expires_at: at(0).plus(SETUP_LINK_LIFETIME),
        used_at: None,
        created_by: None,
    };
    NewSetupLink {
        link,
        digest: Digest::of(&unique()),
    }
}

/// Builds an app without storing it.
pub fn new_app(caller: &Authorized<AppsWrite>, seconds: i64) -> App {
    let key = hex(&unique());
    let birth = AppBirth {
        id: AppId::new(at(seconds), unique()),
        organization: caller.organization(),
        live_key: format!("pk_live_{key}"),
        test_key: format!("pk_test_{key}"),
        at: at(seconds),
    };
    let mut app = App::new(birth, name("Runner"));
    // Installs follow their clicks within seconds here, which the default policy would hold.
    app.attribution.fraud = FraudPolicy::Refuse;
    app
}

/// Creates an app.
pub async fn app(store: &SharedStore, caller: &Authorized<AppsWrite>) -> App {
    let app = new_app(caller, 1);
    store
        .create_app(caller, app, Vec::new(), origin(1))
        .await
        .expect("an app is created")
}

/// Builds a link without storing it.
pub fn new_link(app: AppId, seconds: i64) -> Link {
    let birth = LinkBirth {
        id: LinkId::new(at(seconds), unique()),
        app,
        at: at(seconds),
    };
    let slug = hex(&unique());
    Link::new(&birth, name("Spring"), Slug::parse(&slug).expect("a slug"))
}

/// Creates a link.
pub async fn link(store: &SharedStore, caller: &Authorized<AppsWrite>, app: AppId) -> Link {
    store
        .create_link(caller, new_link(app, 2), origin(2))
        .await
        .expect("a link is created")
}

/// Rebuilds all figures. This also moves the first-payment flag to each device's earliest payment.
pub async fn rebuild(store: &SharedStore) {
    for day in store.rollup_days().await.expect("days") {
        let rebuilt = store.rebuild_rollups(day).await;
        rebuilt.expect("figures are rebuilt");
    }
}

/// Asserts that a rebuild changes no figures.
pub async fn assert_rebuild_changes_nothing(store: &SharedStore) {
    for day in store.rollup_days().await.expect("days") {
        let rebuilt = store.rebuild_rollups(day).await;
        assert_eq!(
            rebuilt.expect("figures are rebuilt").corrected_rows,
            0,
            "{day:?}"
        );
    }
}

/// Builds a request for the first page.
pub fn first_page(limit: &str) -> PageRequest {
    PageRequest {
        limit: Limit::parse(limit).expect("a limit"),
        before: None,
    }
}

/// Returns the refusal, or panics if the outcome is not a refusal.
pub fn refusal<T: std::fmt::Debug>(outcome: Result<T, StoreError>) -> Refusal {
    match outcome {
        Err(StoreError::Refused(refusal)) => refusal,
        other => panic!("expected a refusal, got {other:?}"),
    }
}

/// Polls three futures concurrently, enough to provoke a race.
pub async fn join3<T>(
    one: impl Future<Output = T>,
    two: impl Future<Output = T>,
    three: impl Future<Output = T>,
) -> [T; 3] {
    futures_util::future::join3(one, two, three).await.into()
}

/// Polls many futures concurrently.
pub async fn join_all<T>(futures: Vec<impl Future<Output = T>>) -> Vec<T> {
    futures_util::future::join_all(futures).await
}
