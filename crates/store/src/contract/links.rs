//! Tracking links.

use super::fixtures::{
    SharedStore, app, at, first_page, link, name, new_link, organization, origin, refusal,
};
use std::collections::{BTreeMap, BTreeSet};
use tributary_domain::access::{AppsWrite, Authorized};
use tributary_domain::app::{App, AppChange};
use tributary_domain::integration::Network;
use tributary_domain::link::{LinkChange, LinkFilter, LinkKind, Slug};
use tributary_domain::refusal::Refusal;
use tributary_domain::vocabulary::change::Change;
use tributary_domain::vocabulary::page::PageRequest;
use tributary_domain::vocabulary::revision::Precondition;
use tributary_domain::vocabulary::web_url::{DeepLink, HttpsUrl, PageUrl};

fn url(text: &str) -> Change<HttpsUrl> {
    Change::Set(HttpsUrl::parse(text).expect("a URL"))
}

fn everything() -> LinkChange {
    LinkChange {
        name: Some(name("Frühling – social")),
        slug: Some(Slug::parse("spring-social").expect("a slug")),
        kind: Change::Set(LinkKind::WebFunnel),
        network: Change::Set(Network::C),
        active: Change::Set(false),
        is_test: Change::Keep,
        ios_url: url("https://apps.apple.com/app/id1"),
        android_url: url("https://play.google.com/x"),
        fallback_url: url("https://example.com/f"),
        destination_url: Change::Set(PageUrl::parse("https://example.com/d?x=1#y").expect("a URL")),
        pass_params: Change::Set(vec!["gclid".to_owned()]),
        deep_link: Change::Set(DeepLink::parse("runner://offer/42").expect("a deep link")),
        custom_data: Change::Set(BTreeMap::from([("invite".to_owned(), "ab\"c".to_owned())])),
        campaign_id: Change::Set("1".to_owned()),
        campaign_name: Change::Set("2".to_owned()),
        adset_id: Change::Set("3".to_owned()),
        adset_name: Change::Set("4".to_owned()),
        ad_id: Change::Set("5".to_owned()),
        ad_name: Change::Set("6".to_owned()),
        tags: Change::Set(vec!["Influencer".to_owned(), "q\"4".to_owned()]),
        folder: Change::Set("Frühling 2026".to_owned()),
    }
}

/// Lists the scheme of [`everything`]'s deep link for an app.
async fn allow_schemes(
    store: &SharedStore,
    app: &App,
    caller: &Authorized<AppsWrite>,
    schemes: &[&str],
) {
    let change = AppChange {
        deep_link_schemes: Change::Set(schemes.iter().map(ToString::to_string).collect()),
        ..AppChange::default()
    };
    store
        .update_app(caller, app.id, change, Precondition::None, origin(2))
        .await
        .expect("a change");
}

fn deep_link(text: &str) -> LinkChange {
    LinkChange {
        deep_link: Change::Set(DeepLink::parse(text).expect("a deep link")),
        ..LinkChange::default()
    }
}

/// A deep link is refused if the app does not list its scheme, on creation and on update. A stored
/// deep link stays valid when its scheme is removed from the list.
pub async fn deep_links_use_listed_schemes(store: &SharedStore) {
    let caller = organization(store).await;
    let app = app(store, &caller).await;
    let mut new = new_link(app.id, 2);
    new.apply(deep_link("runner://offer/42"));
    let invalid = |refused: Refusal| assert!(matches!(refused, Refusal::Invalid(_)), "{refused:?}");
    invalid(refusal(
        store.create_link(&caller, new.clone(), origin(2)).await,
    ));
    allow_schemes(store, &app, &caller, &["runner"]).await;
    let link = store
        .create_link(&caller, new, origin(2))
        .await
        .expect("a listed scheme");
    let update = async |change| {
        let none = Precondition::None;
        store
            .update_link(&caller, app.id, link.id, change, none, origin(3))
            .await
    };
    update(deep_link("runner://offer/43"))
        .await
        .expect("a listed scheme");
    update(deep_link("https://example.com/offer"))
        .await
        .expect("https");
    update(deep_link("runner://offer/44"))
        .await
        .expect("a listed scheme");
    invalid(refusal(update(deep_link("bank://pay")).await));
    allow_schemes(store, &app, &caller, &[]).await;
    let renamed = LinkChange {
        name: Some(name("Summer")),
        ..deep_link("runner://offer/44")
    };
    update(renamed).await.expect("an unchanged deep link");
    invalid(refusal(update(deep_link("runner://offer/45")).await));
}

fn slug(text: &str) -> LinkChange {
    LinkChange {
        slug: Some(Slug::parse(text).expect("a slug")),
        ..LinkChange::default()
    }
}

/// Every field is stored, both on creation and on update.
pub async fn a_link_is_read_as_it_was_stored(store: &SharedStore) {
    let caller = organization(store).await;
    let app = app(store, &caller).await;
    let new = new_link(app.id, 2);
    let created = store
        .create_link(&caller, new.clone(), origin(2))
        .await
        .expect("a link is created");
    assert_eq!(created, new);
    let read = async || {
        store
            .link(&caller.read_access(), app.id, new.id)
            .await
            .expect("the link")
    };
    assert_eq!(read().await, new);

    allow_schemes(store, &app, &caller, &["runner"]).await;
    let change = everything();
    let changed = store
        .update_link(
            &caller,
            app.id,
            new.id,
            change,
            Precondition::None,
            origin(9),
        )
        .await
        .expect("the link is changed");
    assert_eq!(changed.updated_at, at(9));
    assert_eq!(changed.slug.as_str(), "spring-social");
    assert_eq!(read().await, changed);
}

/// A link can only be created for an app of the caller's organization.
pub async fn a_link_needs_an_app_of_the_organization(store: &SharedStore) {
    let (owner, stranger) = (organization(store).await, organization(store).await);
    let app = app(store, &owner).await;
    let outcome = store
        .create_link(&stranger, new_link(app.id, 2), origin(2))
        .await;
    assert_eq!(refusal(outcome), Refusal::AppNotFound);
    let outcome = store
        .links(
            &stranger.read_access(),
            app.id,
            LinkFilter::default(),
            first_page("50"),
        )
        .await;
    assert_eq!(refusal(outcome), Refusal::AppNotFound);
    let links = store
        .links(
            &owner.read_access(),
            app.id,
            LinkFilter::default(),
            first_page("50"),
        )
        .await
        .expect("a list");
    assert!(links.items.is_empty());
}

/// A slug identifies one link on the instance.
pub async fn a_slug_belongs_to_one_link_of_the_instance(store: &SharedStore) {
    let (one, other) = (organization(store).await, organization(store).await);
    let (first, second) = (app(store, &one).await, app(store, &other).await);
    let taken = link(store, &one, first.id).await;
    let mut copy = new_link(second.id, 3);
    copy.slug = taken.slug.clone();
    let outcome = store.create_link(&other, copy.clone(), origin(3)).await;
    assert_eq!(refusal(outcome), Refusal::SlugTaken);
    let outcome = store.link(&other.read_access(), second.id, copy.id).await;
    assert_eq!(
        refusal(outcome),
        Refusal::LinkNotFound,
        "a refused link is not stored"
    );

    let mine = link(store, &other, second.id).await;
    let change = slug(taken.slug.as_str());
    let outcome = store
        .update_link(
            &other,
            second.id,
            mine.id,
            change,
            Precondition::None,
            origin(4),
        )
        .await;
    assert_eq!(refusal(outcome), Refusal::SlugTaken);
}

/// A slug is never reused, because a published ad must not redirect to another app.
pub async fn a_slug_stays_taken_after_the_link_is_gone(store: &SharedStore) {
    let caller = organization(store).await;
    let app = app(store, &caller).await;
    let gone = link(store, &caller, app.id).await;
    let outcome = store
        .delete_link(&caller, app.id, gone.id, Precondition::None, origin(3))
        .await;
    outcome.expect("the link is archived");
    let mut copy = new_link(app.id, 4);
    copy.slug = gone.slug;
    let outcome = store.create_link(&caller, copy, origin(4)).await;
    assert_eq!(refusal(outcome), Refusal::SlugTaken);
}

/// A link keeps its former slugs.
pub async fn a_link_can_take_its_former_slug_back(store: &SharedStore) {
    let caller = organization(store).await;
    let app = app(store, &caller).await;
    let mine = link(store, &caller, app.id).await;
    for text in ["first-slug", "second-slug", "first-slug"] {
        let outcome = store
            .update_link(
                &caller,
                app.id,
                mine.id,
                slug(text),
                Precondition::None,
                origin(3),
            )
            .await;
        assert_eq!(outcome.expect("the link owns the slug").slug.as_str(), text);
    }
    let another = link(store, &caller, app.id).await;
    let outcome = store
        .update_link(
            &caller,
            app.id,
            another.id,
            slug("second-slug"),
            Precondition::None,
            origin(4),
        )
        .await;
    assert_eq!(
        refusal(outcome),
        Refusal::SlugTaken,
        "a former slug still finds its link"
    );
}

/// If a rule involves two fields and a change contains only one of them, the rule is checked with
/// the stored value of the other.
pub async fn a_change_is_validated_with_the_stored_fields(store: &SharedStore) {
    let caller = organization(store).await;
    let app = app(store, &caller).await;
    let mine = link(store, &caller, app.id).await;
    let change = LinkChange {
        kind: Change::Set(LinkKind::WebFunnel),
        ..LinkChange::default()
    };
    let outcome = store
        .update_link(
            &caller,
            app.id,
            mine.id,
            change,
            Precondition::None,
            origin(3),
        )
        .await;
    assert!(matches!(refusal(outcome), Refusal::Invalid(_)));
    let stored = store
        .link(&caller.read_access(), app.id, mine.id)
        .await
        .expect("the link");
    assert_eq!(stored, mine);
}

/// An archived link can be neither read nor changed.
pub async fn a_deleted_link_is_not_found(store: &SharedStore) {
    let caller = organization(store).await;
    let app = app(store, &caller).await;
    let gone = link(store, &caller, app.id).await;
    let other = link(store, &caller, app.id).await;
    let delete = || store.delete_link(&caller, app.id, gone.id, Precondition::None, origin(3));
    delete().await.expect("the link is archived");
    assert_eq!(refusal(delete().await), Refusal::LinkNotFound);
    let read = store.link(&caller.read_access(), app.id, gone.id).await;
    assert_eq!(refusal(read), Refusal::LinkNotFound);
    let change = slug("another-slug");
    let outcome = store
        .update_link(
            &caller,
            app.id,
            gone.id,
            change,
            Precondition::None,
            origin(4),
        )
        .await;
    assert_eq!(refusal(outcome), Refusal::LinkNotFound);
    let links = store
        .links(
            &caller.read_access(),
            app.id,
            LinkFilter::default(),
            first_page("50"),
        )
        .await
        .expect("a list");
    assert_eq!(links.items, [other]);
}

/// A deletion with an outdated `If-Match` is refused, too.
pub async fn a_deletion_obeys_its_precondition(store: &SharedStore) {
    let caller = organization(store).await;
    let app = app(store, &caller).await;
    let mine = link(store, &caller, app.id).await;
    let delete = |tag: &str| {
        let precondition = Precondition::AnyOf(vec![tag.to_owned()]);
        store.delete_link(&caller, app.id, mine.id, precondition, origin(3))
    };
    assert_eq!(refusal(delete("9").await), Refusal::VersionConflict);
    delete(&mine.tag()).await.expect("the link is archived");
}

/// Links of other organizations are not found.
pub async fn another_organization_finds_no_link(store: &SharedStore) {
    let (owner, stranger) = (organization(store).await, organization(store).await);
    let app = app(store, &owner).await;
    let mine = link(store, &owner, app.id).await;
    let read = store.link(&stranger.read_access(), app.id, mine.id).await;
    assert_eq!(refusal(read), Refusal::AppNotFound);
    let change = everything();
    let outcome = store
        .update_link(
            &stranger,
            app.id,
            mine.id,
            change,
            Precondition::None,
            origin(3),
        )
        .await;
    assert_eq!(refusal(outcome), Refusal::AppNotFound);
    let outcome = store
        .delete_link(&stranger, app.id, mine.id, Precondition::None, origin(3))
        .await;
    assert_eq!(refusal(outcome), Refusal::AppNotFound);
    let stored = store
        .link(&owner.read_access(), app.id, mine.id)
        .await
        .expect("the link");
    assert_eq!(stored, mine);
}

/// A link is found only under its own app.
pub async fn another_app_finds_no_link(store: &SharedStore) {
    let caller = organization(store).await;
    let (one, other) = (app(store, &caller).await, app(store, &caller).await);
    let mine = link(store, &caller, one.id).await;
    let read = store.link(&caller.read_access(), other.id, mine.id).await;
    assert_eq!(refusal(read), Refusal::LinkNotFound);
    let outcome = store
        .delete_link(&caller, other.id, mine.id, Precondition::None, origin(3))
        .await;
    assert_eq!(refusal(outcome), Refusal::LinkNotFound);
}

/// While links are added, paging lists every link that existed at the start exactly once.
pub async fn pages_neither_skip_nor_repeat_while_links_arrive(store: &SharedStore) {
    let caller = organization(store).await;
    let app = app(store, &caller).await;
    let mut there = BTreeSet::new();
    for seconds in 0..30 {
        let new = new_link(app.id, seconds);
        there.insert(new.id);
        store
            .create_link(&caller, new, origin(seconds))
            .await
            .expect("a link is created");
    }
    let mut seen = Vec::new();
    let mut request = first_page("7");
    for seconds in 100.. {
        let page = store
            .links(
                &caller.read_access(),
                app.id,
                LinkFilter::default(),
                request,
            )
            .await
            .expect("a page");
        seen.extend(page.items.iter().map(|link| link.id));
        store
            .create_link(&caller, new_link(app.id, seconds), origin(seconds))
            .await
            .expect("a link is created");
        if !page.has_more {
            break;
        }
        let last = page.items.last().map(|link| *link.id.as_bytes());
        request = PageRequest {
            before: last,
            ..request
        };
    }
    assert!(
        seen.is_sorted_by(|one, other| one > other),
        "newest first, no duplicates"
    );
    let seen: BTreeSet<_> = seen.into_iter().collect();
    assert!(there.is_subset(&seen), "nothing skipped");
}
