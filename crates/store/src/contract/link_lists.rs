//! Filtered lists of links, and links that are created together.

use super::fixtures::{
    SharedStore, app, first_page, link, name, new_link, organization, origin, refusal,
};
use tributary_domain::audit::AuditContext;
use tributary_domain::link::{Link, LinkFilter, LinkLabels};
use tributary_domain::refusal::Refusal;
use tributary_domain::vocabulary::page::PageRequest;
use tributary_domain::vocabulary::revision::Precondition;
use tributary_domain::vocabulary::web_url::DeepLink;

/// A filter is applied before paging, and the labels of deleted links and other apps are not listed.
pub async fn links_are_filtered_by_search_tag_and_folder(store: &SharedStore) {
    let caller = organization(store).await;
    let (mine, other) = (app(store, &caller).await, app(store, &caller).await);
    let create = async |app, seconds, title: &str, tags: &[&str], folder: Option<&str>| {
        let mut new = new_link(app, seconds);
        new.name = name(title);
        new.tags = tags.iter().map(ToString::to_string).collect();
        new.folder = folder.map(str::to_owned);
        store
            .create_link(&caller, new, origin(seconds))
            .await
            .expect("a link is created")
    };
    let first = create(mine.id, 1, "Frühling", &["EU", "Influencer"], Some("2026")).await;
    create(mine.id, 2, "Winter", &["us"], None).await;
    let third = create(mine.id, 3, "Other", &["eu"], Some("Äpfel")).await;
    create(mine.id, 4, "Plain", &[], None).await;
    let gone = create(mine.id, 5, "Frühling gone", &["gone"], Some("gone")).await;
    create(other.id, 6, "Frühling elsewhere", &["elsewhere"], None).await;
    let deleted = store
        .delete_link(&caller, mine.id, gone.id, Precondition::None, origin(7))
        .await;
    deleted.expect("the link is archived");
    let reader = caller.read_access();
    let find = async |search: Option<&str>, tag: Option<&str>, folder: Option<&str>, page| {
        let owned = |text: Option<&str>| text.map(str::to_owned);
        let filter = LinkFilter {
            search: owned(search),
            tag: owned(tag),
            folder: owned(folder),
        };
        store
            .links(&reader, mine.id, filter, page)
            .await
            .expect("a page")
    };
    let whole = || first_page("50");
    assert_eq!(
        find(Some("FRÜHLING"), None, None, whole()).await.items,
        std::slice::from_ref(&first)
    );
    assert_eq!(
        find(None, None, Some("äpfel"), whole()).await.items,
        std::slice::from_ref(&third)
    );
    let none = find(Some("frühling"), Some("us"), None, whole()).await;
    assert!(none.items.is_empty() && !none.has_more);
    let page = find(None, Some("eu"), None, first_page("1")).await;
    assert!(page.has_more);
    assert_eq!(page.items, std::slice::from_ref(&third));
    let next = PageRequest {
        before: Some(*third.id.as_bytes()),
        ..first_page("1")
    };
    let page = find(None, Some("eu"), None, next).await;
    assert_eq!((page.items, page.has_more), (vec![first], false));

    let labels = store.link_labels(&reader, mine.id).await.expect("labels");
    let texts = |list: &[&str]| {
        list.iter()
            .map(ToString::to_string)
            .collect::<Vec<String>>()
    };
    assert_eq!(labels.folders, texts(&["2026", "Äpfel"]));
    let tags = labels.tags.iter().map(|tag| tag.to_lowercase());
    assert_eq!(tags.collect::<Vec<_>>(), texts(&["eu", "influencer", "us"]));
    let stranger = organization(store).await.read_access();
    let refused = store.link_labels(&stranger, mine.id).await;
    assert_eq!(refusal(refused), Refusal::AppNotFound);
    let empty = app(store, &caller).await;
    let labels = store.link_labels(&reader, empty.id).await;
    assert_eq!(labels.expect("labels"), LinkLabels::default());
}

fn with_origins(links: &[Link]) -> Vec<(Link, AuditContext)> {
    let links = links.iter();
    links.map(|link| (link.clone(), origin(2))).collect()
}

/// Many links are created together or not at all. Faults name the item.
pub async fn many_links_are_created_or_none(store: &SharedStore) {
    let caller = organization(store).await;
    let app = app(store, &caller).await;
    let taken = link(store, &caller, app.id).await;
    let count = async || {
        let filter = LinkFilter::default();
        let reader = caller.read_access();
        let page = store.links(&reader, app.id, filter, first_page("50")).await;
        page.expect("a list").items.len()
    };
    let mut links: Vec<_> = (2..5).map(|seconds| new_link(app.id, seconds)).collect();
    links[0].slug = taken.slug.clone();
    links[2].slug = taken.slug.clone();
    let refused = store
        .create_links(&caller, app.id, with_origins(&links))
        .await;
    let Refusal::Invalid(faults) = refusal(refused) else {
        panic!("the slugs are faults");
    };
    let fields: Vec<_> = faults.iter().map(|fault| fault.field.as_str()).collect();
    assert_eq!(fields, ["links[0].slug", "links[2].slug"]);
    assert_eq!(count().await, 1, "no link of the request is stored");

    let mut links: Vec<_> = (5..8).map(|seconds| new_link(app.id, seconds)).collect();
    let custom = DeepLink::parse("runner://offer/42").expect("a deep link");
    links[1].deep_link = Some(custom);
    let refused = store
        .create_links(&caller, app.id, with_origins(&links))
        .await;
    assert!(matches!(refusal(refused), Refusal::Invalid(_)));
    links[1].deep_link = None;
    let stranger = organization(store).await;
    let refused = store
        .create_links(&stranger, app.id, with_origins(&links))
        .await;
    assert_eq!(refusal(refused), Refusal::AppNotFound);
    let created = store
        .create_links(&caller, app.id, with_origins(&links))
        .await;
    assert_eq!(created.expect("the links are created"), links);
    assert_eq!(count().await, 4);
    let read = store.link(&caller.read_access(), app.id, links[2].id).await;
    assert_eq!(read.expect("the link"), links[2]);
}
