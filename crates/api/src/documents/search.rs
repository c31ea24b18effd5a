//! Search in the documents, section by section.

use super::{Documents, ServedDocument};
use std::cmp::Reverse;

/// Sections that a search returns: as many as a reader compares.
const HITS_MAX: usize = 8;
/// Bytes of a section that a search shows. The document has the rest.
const EXCERPT_BYTES: usize = 1_200;
/// Words of a query that count. More words find the same sections.
const WORDS_MAX: usize = 16;
/// Occurrences of a word that count, so that long tables do not come first.
const OCCURRENCES_MAX: usize = 5;
/// Weight of a word in the heading of a section, and in the title of its document.
const HEADING_WEIGHT: usize = 10;
const TITLE_WEIGHT: usize = 4;

/// A heading and the text below it, up to the next heading.
pub(super) struct TextSection<'a> {
    pub(super) heading: &'a str,
    text: &'a str,
}

/// A section that a search found.
pub(crate) struct SearchHit<'a> {
    pub(crate) document: &'a ServedDocument,
    pub(crate) heading: &'a str,
    pub(crate) excerpt: &'a str,
}

impl Documents {
    /// Returns the sections that match a query best. Sections that contain more of its words come
    /// first.
    pub(crate) fn search(&self, query: &str) -> Vec<SearchHit<'_>> {
        let query = query.to_ascii_lowercase();
        let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
        let words: Vec<&str> = query
            .split(|letter| !is_part(letter))
            .filter(|word| word.len() > 1)
            .take(WORDS_MAX)
            .collect();
        let mut hits = Vec::new();
        for document in self.all() {
            for section in sections(&document.text) {
                let lower = section.text.to_ascii_lowercase();
                let score = score(&words, &document.title, section.heading, &lower);
                if score > 0 {
                    let excerpt = excerpt(section.text, &lower, &words);
                    let heading = section.heading;
                    let hit = SearchHit {
                        document,
                        heading,
                        excerpt,
                    };
                    hits.push((score, hit));
                }
            }
        }
        hits.sort_by_key(|(score, _)| Reverse(*score));
        hits.truncate(HITS_MAX);
        hits.into_iter().map(|(_, hit)| hit).collect()
    }
}

fn score(words: &[&str], title: &str, heading: &str, text: &str) -> usize {
    let (title, heading) = (title.to_ascii_lowercase(), heading.to_ascii_lowercase());
    let (mut found, mut sum) = (0, 0);
    for word in words {
        let mut weight = text.matches(word).count().min(OCCURRENCES_MAX);
        if heading.contains(word) {
            weight += HEADING_WEIGHT;
        }
        if weight > 0 && title.contains(word) {
            weight += TITLE_WEIGHT;
        }
        if weight > 0 {
            found += 1;
        }
        sum += weight;
    }
    found * found * sum
}

/// Returns the part of a section that begins with it, or, in a long section, with the line of the
/// first match.
fn excerpt<'a>(text: &'a str, lower: &str, words: &[&str]) -> &'a str {
    let matched = words.iter().filter_map(|word| lower.find(word)).min();
    let begin = match matched {
        // Lower-casing ASCII letters keeps all positions.
        Some(at) if at > EXCERPT_BYTES / 2 => text[..at].rfind('\n').map_or(0, |end| end + 1),
        _ => 0,
    };
    let rest = &text[begin..];
    let end = rest.floor_char_boundary(EXCERPT_BYTES);
    rest[..end].trim()
}

/// Returns a text's sections.
pub(super) fn sections(text: &str) -> Vec<TextSection<'_>> {
    let mut sections: Vec<TextSection<'_>> = Vec::new();
    let (mut begin, mut heading) = (0, "");
    for (offset, line) in headings(text) {
        if offset > begin {
            let text = &text[begin..offset];
            sections.push(TextSection { heading, text });
        }
        (begin, heading) = (offset, line.trim_start_matches('#').trim());
    }
    let text = &text[begin..];
    sections.push(TextSection { heading, text });
    sections
}

/// Returns the section with a heading, up to the next heading of the same or a higher level.
pub(super) fn whole_section<'a>(text: &'a str, heading: &str) -> Option<&'a str> {
    let level = |line: &str| line.len() - line.trim_start_matches('#').len();
    let wanted = heading.trim_start_matches('#').trim();
    let mut headings = headings(text).into_iter();
    let (begin, depth) = headings.find_map(|(offset, line)| {
        let name = line.trim_start_matches('#').trim();
        name.eq_ignore_ascii_case(wanted)
            .then(|| (offset, level(line)))
    })?;
    let end = headings.find(|(_, line)| level(line) <= depth);
    Some(&text[begin..end.map_or(text.len(), |(offset, _)| offset)])
}

/// Returns the lines with headings and their positions.
fn headings(text: &str) -> Vec<(usize, &str)> {
    let (mut found, mut offset, mut in_code) = (Vec::new(), 0, false);
    for line in text.split_inclusive('\n') {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        }
        if !in_code && line.starts_with('#') {
            found.push((offset, line.trim_end()));
        }
        offset += line.len();
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# Keys\n\nIntroduction.\n\n## Limits\n\nA key has limits.\n\n```sh\n# no heading\n```\n\n\
                        ### Apps\n\nAt most 50.\n\n## Rotation\n\nRotate a key.\n";

    fn headings_of(hits: &[SearchHit<'_>]) -> Vec<String> {
        hits.iter().map(|hit| hit.heading.to_owned()).collect()
    }

    #[test]
    fn a_section_ends_at_the_next_heading() {
        let names: Vec<&str> = sections(TEXT).iter().map(|one| one.heading).collect();
        assert_eq!(names, ["Keys", "Limits", "Apps", "Rotation"]);
        let limits = whole_section(TEXT, "limits").unwrap();
        assert!(limits.starts_with("## Limits") && limits.ends_with("At most 50.\n\n"));
        assert!(
            whole_section(TEXT, "## Rotation")
                .unwrap()
                .contains("Rotate")
        );
        assert_eq!(whole_section(TEXT, "no heading"), None);
    }

    #[test]
    fn sections_with_more_of_the_words_come_first() {
        let documents = Documents::new(&[("KEYS.md", TEXT)]);
        assert_eq!(headings_of(&documents.search("rotate KEY"))[0], "Rotation");
        assert_eq!(headings_of(&documents.search("key limits?"))[0], "Limits");
        assert!(documents.search("nothing of this").is_empty());
        assert!(documents.search("").is_empty());
    }

    #[test]
    fn an_excerpt_of_a_long_section_begins_at_the_match() {
        let long = format!(
            "## Long\n\n{}\nThe needle is here: ü.\n",
            "straw ".repeat(400)
        );
        let documents = Documents::new(&[("LONG.md", &long)]);
        let hits = documents.search("needle");
        assert!(hits[0].excerpt.starts_with("The needle is here"));
    }
}
