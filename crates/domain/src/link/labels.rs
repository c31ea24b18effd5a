//! Tags and folders, which sort an app's links.

use super::Link;
use crate::vocabulary::fault::{FaultCode, Problem};
use crate::vocabulary::text::check_length;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of tags of a link. A list shows all tags of each link.
pub const TAGS_MAX: usize = 20;
/// Maximum length of a tag in characters.
pub const TAG_CHARS_MAX: usize = 40;
/// Maximum length of a folder's name in characters.
pub const FOLDER_CHARS_MAX: usize = 80;
/// Maximum length of a search text in characters: as long as the longest text that it can match.
pub const LINK_SEARCH_CHARS_MAX: usize = 500;
/// Maximum number of different combinations of folder and tags that a list of labels reads.
pub const LABELED_LINKS_MAX: u32 = 10_000;
/// Maximum number of different tags, and of folders, that a list offers as filters.
pub const LINK_LABELS_MAX: usize = 200;

/// Parses a tag. Surrounding white space is dropped. Forms and CSV files separate tags by commas, so
/// a tag contains none.
pub fn tag(text: &str) -> Result<String, Problem> {
    let tag = line(text, TAG_CHARS_MAX)?;
    if tag.contains(',') {
        let message = "Must not contain a comma, because commas separate tags.";
        return Err(Problem::new(FaultCode::InvalidCharacter, message));
    }
    Ok(tag)
}

/// Parses the name of a folder. Surrounding white space is dropped.
pub fn folder(text: &str) -> Result<String, Problem> {
    line(text, FOLDER_CHARS_MAX)
}

/// Parses a text to search for.
pub fn link_search(text: &str) -> Result<String, Problem> {
    line(text, LINK_SEARCH_CHARS_MAX)
}

fn line(text: &str, chars_max: usize) -> Result<String, Problem> {
    let text = text.trim();
    check_length(text, 1, chars_max)?;
    if text.chars().any(char::is_control) {
        let message = "Must be one line without control characters.";
        return Err(Problem::new(FaultCode::InvalidCharacter, message));
    }
    Ok(text.to_owned())
}

/// Removes repeated tags. Tags that differ only in case are the same; the first spelling stays.
pub fn distinct_tags(tags: Vec<String>) -> Vec<String> {
    let mut seen = BTreeSet::new();
    tags.into_iter()
        .filter(|tag| seen.insert(tag.to_lowercase()))
        .collect()
}

/// Which links a list contains. Comparisons ignore case.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LinkFilter {
    /// Part of the name, slug, campaign, folder or a tag.
    pub search: Option<String>,
    /// A tag.
    pub tag: Option<String>,
    /// The folder.
    pub folder: Option<String>,
}

impl LinkFilter {
    /// Returns whether every link passes.
    pub const fn is_empty(&self) -> bool {
        self.search.is_none() && self.tag.is_none() && self.folder.is_none()
    }

    /// Returns whether a link passes.
    pub fn admits(&self, link: &Link) -> bool {
        let same = |wanted: &String, found: &String| wanted.to_lowercase() == found.to_lowercase();
        let has_tag = |tag: &String| link.tags.iter().any(|found| same(tag, found));
        let in_folder = |folder: &String| link.folder.as_ref().is_some_and(|f| same(folder, f));
        self.tag.as_ref().is_none_or(has_tag)
            && self.folder.as_ref().is_none_or(in_folder)
            && self.search.as_ref().is_none_or(|text| contains(link, text))
    }
}

fn contains(link: &Link, text: &str) -> bool {
    let wanted = text.to_lowercase();
    let optional = [&link.folder, &link.campaign.id, &link.campaign.name];
    let texts = [link.name.as_str(), link.slug.as_str()]
        .into_iter()
        .chain(optional.into_iter().flatten().map(String::as_str))
        .chain(link.tags.iter().map(String::as_str));
    let mut texts = texts.map(str::to_lowercase);
    texts.any(|text| text.contains(&wanted))
}

/// The tags and folders that an app's links use, in alphabetical order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LinkLabels {
    /// Tags.
    pub tags: Vec<String>,
    /// Folders.
    pub folders: Vec<String>,
}

impl LinkLabels {
    /// Collects the labels of links: at most [`LINK_LABELS_MAX`] of each kind.
    pub fn of(links: impl IntoIterator<Item = (Option<String>, Vec<String>)>) -> Self {
        let (mut tags, mut folders) = (BTreeMap::new(), BTreeMap::new());
        for (folder, own_tags) in links {
            if let Some(folder) = folder {
                folders.entry(folder.to_lowercase()).or_insert(folder);
            }
            for tag in own_tags {
                tags.entry(tag.to_lowercase()).or_insert(tag);
            }
        }
        let first = |map: BTreeMap<String, String>| map.into_values().take(LINK_LABELS_MAX);
        Self {
            tags: first(tags).collect(),
            folders: first(folders).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::Campaign;
    use crate::link::tests::any_link;
    use rstest::rstest;

    #[rstest]
    #[case::plain("Frühling", Ok("Frühling"))]
    #[case::trimmed("  q4 ", Ok("q4"))]
    #[case::inner_space("black friday", Ok("black friday"))]
    #[case::empty("  ", Err(FaultCode::TooShort))]
    #[case::comma("a,b", Err(FaultCode::InvalidCharacter))]
    #[case::two_lines("a\nb", Err(FaultCode::InvalidCharacter))]
    #[case::nul("a\0", Err(FaultCode::InvalidCharacter))]
    fn parses_tags(#[case] text: &str, #[case] expected: Result<&str, FaultCode>) {
        let parsed = tag(text);
        assert_eq!(parsed.as_deref().map_err(|problem| problem.code), expected);
    }

    #[test]
    fn lengths_are_limited() {
        assert!(tag(&"ä".repeat(40)).is_ok());
        assert!(tag(&"ä".repeat(41)).is_err());
        assert!(folder(&"ä".repeat(80)).is_ok());
        assert!(folder(&"ä".repeat(81)).is_err());
        assert_eq!(folder(" a, b ").unwrap(), "a, b");
        assert!(link_search(&"a".repeat(501)).is_err());
    }

    fn texts(list: &[&str]) -> Vec<String> {
        list.iter().map(|&text| text.to_owned()).collect()
    }

    #[rstest]
    #[case::different(&["a", "b"], &["a", "b"])]
    #[case::repeated(&["a", "b", "a"], &["a", "b"])]
    #[case::other_case(&["Äpfel", "äpfel", "b"], &["Äpfel", "b"])]
    fn a_tag_appears_once(#[case] given: &[&str], #[case] kept: &[&str]) {
        assert_eq!(distinct_tags(texts(given)), texts(kept));
    }

    #[rstest]
    #[case::all(None, None, None, true)]
    #[case::part_of_the_name(Some("ÜHL"), None, None, true)]
    #[case::slug(Some("spri"), None, None, true)]
    #[case::campaign_id(Some("238"), None, None, true)]
    #[case::campaign_name(Some("launch"), None, None, true)]
    #[case::part_of_a_tag(Some("infl"), None, None, true)]
    #[case::part_of_the_folder(Some("2026/q"), None, None, true)]
    #[case::elsewhere(Some("winter"), None, None, false)]
    #[case::tag(None, Some("INFLUENCER"), None, true)]
    #[case::part_is_not_the_tag(None, Some("influ"), None, false)]
    #[case::folder(None, None, Some("2026/Q4"), true)]
    #[case::other_folder(None, None, Some("2026"), false)]
    #[case::every_condition_counts(Some("frühling"), Some("influencer"), Some("x"), false)]
    fn filters(
        #[case] search: Option<&str>,
        #[case] tag: Option<&str>,
        #[case] folder: Option<&str>,
        #[case] expected: bool,
    ) {
        let link = Link {
            name: crate::vocabulary::text::Name::parse("Frühling").unwrap(),
            tags: texts(&["Influencer", "eu"]),
            folder: Some("2026/q4".to_owned()),
            campaign: Campaign {
                id: Some("23857".to_owned()),
                name: Some("Launch".to_owned()),
                ..Campaign::default()
            },
            ..any_link()
        };
        let owned = |text: Option<&str>| text.map(str::to_owned);
        let filter = LinkFilter {
            search: owned(search),
            tag: owned(tag),
            folder: owned(folder),
        };
        assert_eq!(filter.admits(&link), expected);
        assert_eq!(
            filter.is_empty(),
            (search, tag, folder) == (None, None, None)
        );
    }

    #[test]
    fn a_link_without_labels_passes_no_label_filter() {
        let tag = LinkFilter {
            tag: Some("a".to_owned()),
            ..LinkFilter::default()
        };
        assert!(!tag.admits(&any_link()));
        let folder = LinkFilter {
            folder: Some("a".to_owned()),
            ..LinkFilter::default()
        };
        assert!(!folder.admits(&any_link()));
    }

    #[test]
    fn labels_are_sorted_and_distinct() {
        let links = [
            (Some("b".to_owned()), texts(&["z", "a"])),
            (None, texts(&["Z"])),
            (Some("A".to_owned()), Vec::new()),
        ];
        let labels = LinkLabels::of(links);
        assert_eq!(labels.tags, texts(&["a", "z"]));
        assert_eq!(labels.folders, texts(&["A", "b"]));
        let many = (0..300).map(|number| (None, vec![number.to_string()]));
        assert_eq!(LinkLabels::of(many).tags.len(), LINK_LABELS_MAX);
    }
}
