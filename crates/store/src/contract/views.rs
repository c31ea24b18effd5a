//! Saved views of reports, and links that share one.

use super::fixtures::{SharedStore, at, name, origin, refusal, unique};
use super::sdk_fixtures::{Tenant, tenant};
use super::sessions::user;
use crate::{NewShareLink, TakeOver};
use tributary_domain::access::Environment;
use tributary_domain::access::person::{Role, User};
use tributary_domain::audit::Action;
use tributary_domain::refusal::Refusal;
use tributary_domain::report::view::{
    ReportPage, SHARES_MAX, SavedView, ShareLink, VIEWS_MAX, share_expiry,
};
use tributary_domain::vocabulary::digest::Digest;
use tributary_domain::vocabulary::id::{ShareId, ViewId};
use tributary_domain::vocabulary::page::{Limit, PageRequest};

/// Builds a view.
fn view(tenant: &Tenant, owner: &User, title: &str) -> SavedView {
    SavedView {
        id: ViewId::new(at(1), unique()),
        app: tenant.app.id,
        user: owner.id,
        name: name(title),
        page: ReportPage::Explore,
        query: "range=7d&network=network_a".to_owned(),
        created_at: at(1),
    }
}

/// Builds a link that is valid for a day.
fn share(tenant: &Tenant, creator: &User, second: i64) -> NewShareLink {
    NewShareLink {
        share: ShareLink {
            id: ShareId::new(at(second), unique()),
            organization: tenant.writer.organization(),
            app: tenant.app.id,
            environment: Environment::Live,
            name: name("For the agency"),
            query: "range=30d".to_owned(),
            created_by: creator.id,
            created_at: at(second),
            expires_at: share_expiry(at(second), 1),
            revoked_at: None,
        },
        digest: Digest::of(&unique()),
    }
}

async fn create(tenant: &Tenant, new: &NewShareLink, second: i64) {
    let created = tenant
        .store
        .create_share(&tenant.writer, new.clone(), origin(second));
    created.await.expect("a link is created");
}

async fn saved(tenant: &Tenant, owner: &User) -> Vec<SavedView> {
    let views = tenant
        .store
        .views(&tenant.reader, tenant.app.id, owner.id)
        .await;
    views.expect("views")
}

/// Users see their own views only, by name. A view replaces the one with the same name.
pub async fn a_user_sees_the_own_views(store: &SharedStore) {
    let tenant = tenant(store).await;
    let organization = tenant.writer.organization();
    let one = user(store, organization, Role::Viewer).await;
    let other = user(store, organization, Role::Viewer).await;
    let (spring, autumn) = (view(&tenant, &one, "Spring"), view(&tenant, &one, "Autumn"));
    for view in [&spring, &autumn] {
        let stored = store.save_view(&tenant.reader, view.clone()).await;
        stored.expect("a view is saved");
    }
    assert_eq!(saved(&tenant, &one).await, [autumn.clone(), spring]);
    assert_eq!(saved(&tenant, &other).await, []);
    let newer = SavedView {
        query: "range=today".to_owned(),
        ..view(&tenant, &one, "Spring")
    };
    let stored = store.save_view(&tenant.reader, newer.clone()).await;
    stored.expect("a view is replaced");
    assert_eq!(saved(&tenant, &one).await, [autumn.clone(), newer.clone()]);
    for owner in [other.id, one.id, one.id] {
        let deleted = store.delete_view(&tenant.reader, tenant.app.id, owner, newer.id);
        deleted.await.expect("nothing or a view is deleted");
    }
    assert_eq!(saved(&tenant, &one).await, [autumn]);
}

/// The number of views per user and app is limited.
pub async fn a_user_saves_a_limited_number_of_views(store: &SharedStore) {
    let tenant = tenant(store).await;
    let owner = user(store, tenant.writer.organization(), Role::Viewer).await;
    let save = async |number: u64| {
        let view = view(&tenant, &owner, &format!("View {number}"));
        store.save_view(&tenant.reader, view).await
    };
    for number in 0..VIEWS_MAX {
        save(number).await.expect("a view is saved");
    }
    assert_eq!(refusal(save(VIEWS_MAX).await), Refusal::TooManyViews);
    save(0).await.expect("a view is replaced");
    assert_eq!(saved(&tenant, &owner).await.len() as u64, VIEWS_MAX);
}

/// A link is found by its digest. Revoking it again changes nothing.
pub async fn a_share_link_is_found_until_it_is_revoked(store: &SharedStore) {
    let tenant = tenant(store).await;
    let creator = user(store, tenant.writer.organization(), Role::Admin).await;
    let (first, second) = (share(&tenant, &creator, 3), share(&tenant, &creator, 4));
    for (new, time) in [(&first, 3), (&second, 4)] {
        create(&tenant, new, time).await;
    }
    let found = store.share(first.digest).await.expect("a lookup");
    assert_eq!(found, Some(first.share.clone()));
    let (app, reader) = (tenant.app.id, tenant.writer.read_access());
    let all = store.shares(&reader, app).await.expect("links");
    assert_eq!(all, [second.share.clone(), first.share.clone()]);
    for time in [5, 6] {
        let id = first.share.id;
        let revoked = store.revoke_share(&tenant.writer, app, id, origin(time));
        revoked.await.expect("the link is revoked");
    }
    let found = store.share(first.digest).await.expect("a lookup");
    let found = found.expect("the link");
    assert_eq!(found.revoked_at, Some(at(5)));
    assert!(!found.is_open(at(6)));
    let all = store.shares(&reader, app).await.expect("links");
    assert_eq!(all, [second.share]);
    let newest = PageRequest {
        limit: Limit::DEFAULT,
        before: None,
    };
    let log = store.audit_log(&reader, Some(app), newest).await;
    let log = log.expect("the audit log").items;
    let count = |action| log.iter().filter(|entry| entry.action == action).count();
    assert_eq!(count(Action::ShareLinkCreated), 2);
    assert_eq!(count(Action::ShareLinkRevoked), 1);
}

/// Expired and revoked links do not count towards the limit.
pub async fn an_app_has_a_limited_number_of_open_share_links(store: &SharedStore) {
    let tenant = tenant(store).await;
    let creator = user(store, tenant.writer.organization(), Role::Admin).await;
    for _ in 0..SHARES_MAX {
        create(&tenant, &share(&tenant, &creator, 3), 3).await;
    }
    let more = share(&tenant, &creator, 4);
    let refused = store
        .create_share(&tenant.writer, more.clone(), origin(4))
        .await;
    assert_eq!(refusal(refused), Refusal::TooManyShares);
    let a_day_later = 4 + 24 * 60 * 60;
    create(&tenant, &more, a_day_later).await;
}

/// Another organization neither sees nor changes views and links.
pub async fn another_organization_shares_nothing(store: &SharedStore) {
    let (one, other) = (tenant(store).await, tenant(store).await);
    let owner = user(store, one.writer.organization(), Role::Admin).await;
    let new = share(&one, &owner, 3);
    create(&one, &new, 3).await;
    let app = one.app.id;
    let saved = store
        .save_view(&other.reader, view(&one, &owner, "Theirs"))
        .await;
    assert_eq!(refusal(saved), Refusal::AppNotFound);
    let seen = store.views(&other.reader, app, owner.id).await;
    assert_eq!(refusal(seen), Refusal::AppNotFound);
    let listed = store.shares(&other.writer.read_access(), app).await;
    assert_eq!(refusal(listed), Refusal::AppNotFound);
    let revoked = store
        .revoke_share(&other.writer, app, new.share.id, origin(4))
        .await;
    assert_eq!(refusal(revoked), Refusal::AppNotFound);
    let found = store.share(new.digest).await.expect("a lookup");
    assert!(found.is_some_and(|found| found.is_open(at(4))));
}

/// Removing a member removes the member's views and links.
pub async fn a_removed_member_shares_nothing(store: &SharedStore) {
    let tenant = tenant(store).await;
    let organization = tenant.writer.organization();
    let member = user(store, organization, Role::Admin).await;
    let new = share(&tenant, &member, 3);
    create(&tenant, &new, 3).await;
    let stored = store
        .save_view(&tenant.reader, view(&tenant, &member, "Mine"))
        .await;
    stored.expect("a view is saved");
    let manager = tributary_domain::access::Authorized::operator(organization);
    let removed = store
        .remove_member(&manager, member.id, TakeOver::default(), origin(5))
        .await;
    removed.expect("the member is removed");
    assert_eq!(store.share(new.digest).await.expect("a lookup"), None);
    assert_eq!(saved(&tenant, &member).await, []);
}
