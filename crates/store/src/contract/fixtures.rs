//! What the promises are tried on.

use crate::{NewKey, NewSetupLink, Organization, Store, StoreError};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tributary_domain::access::key::{ApiKey, KeyKind, KeyText};
use tributary_domain::access::person::{Role, SETUP_LINK_LIFETIME, SetupLink};
use tributary_domain::access::{Actor, AppsWrite, Authorized, Environment, Permission};
use tributary_domain::app::{App, AppCreation as AppBirth};
use tributary_domain::audit::AuditContext;
use tributary_domain::link::{Link, LinkCreation as LinkBirth, Slug};
use tributary_domain::refusal::Refusal;
use tributary_domain::vocabulary::digest::{Digest, hex};
use tributary_domain::vocabulary::id::{AppId, AuditId, KeyId, LinkId, OrganizationId};
use tributary_domain::vocabulary::page::{Limit, PageRequest};
use tributary_domain::vocabulary::text::Name;
use tributary_domain::vocabulary::time::Timestamp;

/// A store under test, to be shared between tasks.
pub type SharedStore = Arc<dyn Store>;

static COUNTER: AtomicU64 = AtomicU64::new(1);

/// Ten bytes that were never given before in this process. An id keeps its version and variant in some bits
/// of the first three, so those are left alone.
pub fn unique() -> [u8; 10] {
    let counter = COUNTER.fetch_add(1, Ordering::Relaxed).to_be_bytes();
    let mut bytes = [0; 10];
    bytes[3..].copy_from_slice(&counter[1..]);
    bytes
}

/// A moment, some seconds after another.
pub fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis(1_700_000_000_000 + seconds * 1_000)
}

/// An origin for the audit log.
pub fn origin(seconds: i64) -> AuditContext {
    AuditContext {
        actor: Actor::Operator,
        address: Some(std::net::IpAddr::from([192, 0, 2, 7])),
        request_id: Some("request".to_owned()),
        at: at(seconds),
        audit_id: AuditId::new(at(seconds), unique()),
    }
}

/// A name.
pub fn name(text: &str) -> Name {
    Name::parse(text).expect("a name")
}

/// Makes an organization and gives the right to change it.
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
        .expect("an organization is made");
    Authorized::operator(id)
}

/// A key that is not stored yet.
pub fn new_key(organization: OrganizationId) -> NewKey {
    let mut random = [0; 24];
    random[..10].copy_from_slice(&unique());
    let text = KeyText::generate(KeyKind::Private, Environment::Live, random);
    let key = ApiKey {
        id: KeyId::new(at(0), unique()),
        organization,
        name: "CI".to_owned(),
        permission: Permission::ReadOnly,
        environment: Environment::Live,
        hint: text.hint().to_owned(),
        created_at: at(0),
        expires_at: Some(at(1_000)),
        revoked_at: None,
        last_used_at: None,
    };
    NewKey {
        key,
        digest: text.digest(),
    }
}

/// A set-up link that is not stored yet.
pub fn new_setup_link(organization: OrganizationId) -> NewSetupLink {
    let link = SetupLink {
        organization,
        role: Role::Owner,
        email: None,
        expires_at: at(0).plus(SETUP_LINK_LIFETIME),
        used_at: None,
    };
    NewSetupLink {
        link,
        digest: Digest::of(&unique()),
    }
}

/// An app that is not stored yet.
pub fn new_app(caller: &Authorized<AppsWrite>, seconds: i64) -> App {
    let key = hex(&unique());
    let birth = AppBirth {
        id: AppId::new(at(seconds), unique()),
        organization: caller.organization(),
        live_key: format!("pk_live_{key}"),
        test_key: format!("pk_test_{key}"),
        at: at(seconds),
    };
    App::new(birth, name("Runner"))
}

/// Stores an app.
pub async fn app(store: &SharedStore, caller: &Authorized<AppsWrite>) -> App {
    let app = new_app(caller, 1);
    store
        .create_app(caller, app, Vec::new(), origin(1))
        .await
        .expect("an app is made")
}

/// A link that is not stored yet.
pub fn new_link(app: AppId, seconds: i64) -> Link {
    let birth = LinkBirth {
        id: LinkId::new(at(seconds), unique()),
        app,
        at: at(seconds),
    };
    let slug = hex(&unique());
    Link::new(&birth, name("Spring"), Slug::parse(&slug).expect("a slug"))
}

/// Stores a link.
pub async fn link(store: &SharedStore, caller: &Authorized<AppsWrite>, app: AppId) -> Link {
    store
        .create_link(caller, new_link(app, 2), origin(2))
        .await
        .expect("a link is made")
}

/// Rebuilds all figures. A rebuild gives a device's earliest payment the flag of the first one, whichever arrived first.
pub async fn rebuild(store: &SharedStore) {
    for day in store.rollup_days().await.expect("days") {
        let rebuilt = store.rebuild_rollups(day).await;
        rebuilt.expect("figures are rebuilt");
    }
}

/// Figures that are made anew are the ones that are there.
pub async fn assert_rebuild_changes_nothing(store: &SharedStore) {
    for day in store.rollup_days().await.expect("days") {
        let rebuilt = store.rebuild_rollups(day).await;
        assert_eq!(
            rebuilt.expect("figures are made anew").corrected_rows,
            0,
            "{day:?}"
        );
    }
}

/// The first page.
pub fn first_page(limit: &str) -> PageRequest {
    PageRequest {
        limit: Limit::parse(limit).expect("a limit"),
        before: None,
    }
}

/// The refusal that an outcome must be.
pub fn refusal<T: std::fmt::Debug>(outcome: Result<T, StoreError>) -> Refusal {
    match outcome {
        Err(StoreError::Refused(refusal)) => refusal,
        other => panic!("expected a refusal, got {other:?}"),
    }
}

/// Polls three futures at once: enough to provoke a race.
pub async fn join3<T>(
    one: impl Future<Output = T>,
    two: impl Future<Output = T>,
    three: impl Future<Output = T>,
) -> [T; 3] {
    futures_util::future::join3(one, two, three).await.into()
}

/// Polls many futures at once.
pub async fn join_all<T>(futures: Vec<impl Future<Output = T>>) -> Vec<T> {
    futures_util::future::join_all(futures).await
}
