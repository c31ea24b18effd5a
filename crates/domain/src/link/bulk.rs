//! Creates many links at once: all of them or none.

use super::{Link, LinkChange, LinkCreation, Slug, check_deep_link};
use crate::refusal::Refusal;
use crate::vocabulary::fault::{FaultCode, Faults, Problem};
use crate::vocabulary::id::{AppId, LinkId};
use crate::vocabulary::text::Name;
use crate::vocabulary::time::Timestamp;
use std::collections::BTreeSet;
use std::time::Duration;

/// Maximum number of links that one request creates. They are stored in one transaction, which
/// should take less than a second.
pub const BULK_LINKS_MAX: usize = 500;

/// Name of the list in a request. Faults are named by its items.
const LIST: &str = "links";

/// A link as a caller describes it.
#[derive(Debug, Clone)]
pub struct LinkDraft {
    /// Display name.
    pub name: Name,
    /// Slug; `None` to generate one.
    pub slug: Option<Slug>,
    /// All other fields.
    pub change: LinkChange,
}

/// Returns the path of a field of an item, such as `links[0].slug`.
fn item_field(index: usize, field: &str) -> String {
    format!("{LIST}[{index}].{field}")
}

/// Splits the path of an item's field into the item's index and the field.
pub fn split_item_field(path: &str) -> Option<(usize, &str)> {
    let (index, field) = path
        .strip_prefix(LIST)?
        .strip_prefix('[')?
        .split_once(']')?;
    Some((
        index.parse().ok()?,
        field.strip_prefix('.').unwrap_or(field),
    ))
}

/// Checks the number of links in a request.
pub fn check_bulk_size(count: usize) -> Result<(), Faults> {
    let mut faults = Faults::new();
    if count == 0 {
        let problem = Problem::new(FaultCode::Required, "Must contain at least one link.");
        faults.add(LIST, problem);
    } else if count > BULK_LINKS_MAX {
        let message = format!("Must contain at most {BULK_LINKS_MAX} links.");
        faults.add(LIST, Problem::new(FaultCode::TooLong, message));
    }
    faults.into_result()
}

/// Builds the links and checks the rules for each of them. `random` returns random bytes. Lists show
/// the newest link first, so the first draft gets the latest id.
pub fn new_links(
    app: AppId,
    at: Timestamp,
    drafts: Vec<LinkDraft>,
    mut random: impl FnMut() -> [u8; 10],
) -> Result<Vec<Link>, Faults> {
    let mut faults = Faults::new();
    let mut slugs = BTreeSet::new();
    let count = drafts.len();
    let mut links = Vec::with_capacity(count);
    for (index, draft) in drafts.into_iter().enumerate() {
        let later = u64::try_from(count - index).unwrap_or(0);
        let creation = LinkCreation {
            id: LinkId::new(at.plus(Duration::from_millis(later)), random()),
            app,
            at,
        };
        let slug = draft.slug.unwrap_or_else(|| Slug::random(random()));
        if !slugs.insert(slug.as_str().to_owned()) {
            let problem = Problem::new(FaultCode::NotAllowed, "Another link has the same slug.");
            faults.add(item_field(index, "slug"), problem);
        }
        let mut link = Link::new(&creation, draft.name, slug);
        link.apply(draft.change);
        if let Err(found) = link.check() {
            add_item_faults(&mut faults, index, &found);
        }
        links.push(link);
    }
    faults.into_result()?;
    Ok(links)
}

/// Checks the deep links of new links against the app's schemes.
pub fn check_deep_links<'a>(
    links: impl IntoIterator<Item = &'a Link>,
    schemes: &[String],
) -> Result<(), Faults> {
    let mut faults = Faults::new();
    for (index, link) in links.into_iter().enumerate() {
        if let Err(found) = check_deep_link(link.deep_link.as_ref(), None, schemes) {
            add_item_faults(&mut faults, index, &found);
        }
    }
    faults.into_result()
}

/// Rejects the links at these positions, because other links have their slugs.
pub fn check_slugs_claimed(taken: &[usize]) -> Result<(), Faults> {
    let mut faults = Faults::new();
    for index in taken {
        let problem = Problem::new(FaultCode::NotAllowed, Refusal::SlugTaken.to_string());
        faults.add(item_field(*index, "slug"), problem);
    }
    faults.into_result()
}

fn add_item_faults(faults: &mut Faults, index: usize, found: &Faults) {
    for fault in found {
        let problem = Problem::new(fault.code, fault.message.clone());
        faults.add(item_field(index, &fault.field), problem);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::LinkKind;
    use crate::vocabulary::change::Change;
    use crate::vocabulary::web_url::DeepLink;
    use rstest::rstest;

    const APP: AppId = AppId::from_bytes([2; 16]);

    fn draft(slug: Option<&str>, kind: LinkKind) -> LinkDraft {
        LinkDraft {
            name: Name::parse("Spring").unwrap(),
            slug: slug.map(|slug| Slug::parse(slug).unwrap()),
            change: LinkChange {
                kind: Change::Set(kind),
                ..LinkChange::default()
            },
        }
    }

    fn build(drafts: Vec<LinkDraft>) -> Result<Vec<Link>, Vec<String>> {
        let mut byte = 0;
        let random = || {
            byte += 1;
            [byte; 10]
        };
        let built = new_links(APP, Timestamp::from_millis(1_000), drafts, random);
        built.map_err(|faults| faults.iter().map(|fault| fault.field.clone()).collect())
    }

    #[test]
    fn lists_show_the_links_in_the_given_order() {
        let install = LinkKind::AppInstall;
        let drafts = vec![
            draft(Some("one"), install),
            draft(None, install),
            draft(Some("three"), install),
        ];
        let links = build(drafts).unwrap();
        assert!(links.is_sorted_by(|one, next| one.id > next.id));
        assert!(
            links
                .iter()
                .all(|link| link.created_at.as_millis() == 1_000)
        );
        assert_eq!(links[0].slug.as_str(), "one");
    }

    #[test]
    fn every_fault_names_its_item() {
        let (install, funnel) = (LinkKind::AppInstall, LinkKind::WebFunnel);
        let drafts = vec![
            draft(Some("one"), install),
            draft(Some("two"), funnel),
            draft(Some("one"), funnel),
        ];
        let expected = [
            "links[1].destinationUrl",
            "links[2].slug",
            "links[2].destinationUrl",
        ];
        assert_eq!(build(drafts).unwrap_err(), expected);
        let taken = check_slugs_claimed(&[0, 7]).unwrap_err();
        let fields: Vec<&str> = taken.iter().map(|fault| fault.field.as_str()).collect();
        assert_eq!(fields, ["links[0].slug", "links[7].slug"]);
        assert!(check_slugs_claimed(&[]).is_ok());
    }

    #[test]
    fn deep_links_use_the_schemes_of_the_app() {
        let mut links = build(vec![draft(None, LinkKind::AppInstall); 2]).unwrap();
        links[1].deep_link = Some(DeepLink::parse("runner://offer").unwrap());
        assert!(check_deep_links(&links, &["runner".to_owned()]).is_ok());
        let faults = check_deep_links(&links, &[]).unwrap_err();
        assert_eq!(faults.iter().next().unwrap().field, "links[1].deepLink");
    }

    #[rstest]
    #[case::none(0, false)]
    #[case::one(1, true)]
    #[case::most(BULK_LINKS_MAX, true)]
    #[case::more(BULK_LINKS_MAX + 1, false)]
    fn the_number_of_links_is_limited(#[case] count: usize, #[case] accepted: bool) {
        assert_eq!(check_bulk_size(count).is_ok(), accepted);
    }

    #[rstest]
    #[case("links[12].slug", Some((12, "slug")))]
    #[case("links[0].campaign.id", Some((0, "campaign.id")))]
    #[case("links[3]", Some((3, "")))]
    #[case("links", None)]
    #[case("slug", None)]
    fn splits_paths(#[case] path: &str, #[case] expected: Option<(usize, &str)>) {
        assert_eq!(split_item_field(path), expected);
    }
}
