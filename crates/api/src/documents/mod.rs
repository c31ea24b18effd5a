//! The documents of this version as Markdown: `/docs`, `/docs/{file}` and `/llms.txt`.

mod links;
mod search;
mod serve;

pub(crate) use serve::{document_path, router};

use axum::http::HeaderValue;
use tributary_domain::vocabulary::digest::{Digest, hex};

/// Document that lists the others with the questions that they answer.
const INDEX: &str = "README.md";
/// Bytes of a text's digest in its `ETag`. Enough to tell the versions of a document apart.
const TAG_BYTES: usize = 12;

/// Names and texts of documents, as the binary embeds them.
pub type DocumentSources = &'static [(&'static str, &'static str)];

/// A document.
#[derive(Debug)]
pub(crate) struct ServedDocument {
    /// File name, such as `API.md`.
    pub(crate) name: String,
    /// First heading.
    pub(crate) title: String,
    /// Questions that the document answers, according to the index.
    pub(crate) summary: String,
    /// Markdown, whose links lead to other documents of this server or to the web.
    pub(crate) text: String,
    tag: HeaderValue,
}

/// The documents that a server shows.
#[derive(Debug, Default)]
pub struct Documents(Vec<ServedDocument>);

impl Documents {
    /// Prepares documents: links between them work at every address, and links to files that are not
    /// served become plain text.
    pub fn new(sources: &[(&str, &str)]) -> Self {
        let index = sources.iter().find(|(name, _)| *name == INDEX);
        let index = index.map_or("", |(_, text)| text);
        let is_served = |name: &str| sources.iter().any(|(served, _)| *served == name);
        let prepare = |(name, text): &(&str, &str)| {
            let text = links::rewrite(text, is_served);
            ServedDocument {
                name: (*name).to_owned(),
                title: title(&text).unwrap_or(name).to_owned(),
                summary: summary(index, name),
                tag: tag(&text),
                text,
            }
        };
        Self(sources.iter().map(prepare).collect())
    }

    /// Returns all documents, the index first.
    pub(crate) fn all(&self) -> &[ServedDocument] {
        &self.0
    }

    /// Returns the document with a name. The ending `.md` may be missing, and case does not matter.
    pub(crate) fn find(&self, name: &str) -> Option<&ServedDocument> {
        let is_wanted = |document: &&ServedDocument| {
            let stem = document.name.trim_end_matches(".md");
            document.name.eq_ignore_ascii_case(name) || stem.eq_ignore_ascii_case(name)
        };
        self.0.iter().find(is_wanted)
    }

    fn index(&self) -> Option<&ServedDocument> {
        self.0.iter().find(|document| document.name == INDEX)
    }
}

impl ServedDocument {
    /// Returns the headings of the document's sections.
    pub(crate) fn headings(&self) -> Vec<&str> {
        let sections = search::sections(&self.text);
        sections.iter().map(|section| section.heading).collect()
    }

    /// Returns the section with a heading, including the sections below it. Case does not matter.
    pub(crate) fn section(&self, heading: &str) -> Option<&str> {
        search::whole_section(&self.text, heading)
    }
}

/// Returns a text's first heading.
fn title(text: &str) -> Option<&str> {
    text.lines().find_map(|line| line.strip_prefix("# "))
}

/// Returns the text beside a document in the tables of the index.
fn summary(index: &str, name: &str) -> String {
    let start = format!("| [{name}](");
    let row = index.lines().find(|line| line.starts_with(&start));
    let cell = row.and_then(|row| row.split(" | ").nth(1));
    cell.map_or("", |cell| cell.trim_end_matches('|').trim())
        .to_owned()
}

fn tag(text: &str) -> HeaderValue {
    let digest = Digest::of(text.as_bytes());
    let short = hex(&digest.as_bytes()[..TAG_BYTES]);
    HeaderValue::from_str(&format!("\"{short}\""))
        .unwrap_or_else(|_| HeaderValue::from_static("\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn documents() -> Documents {
        Documents::new(&[
            (
                "README.md",
                "# Documentation\n\n| Page | Answers |\n|---|---|\n| [API.md](API.md) | How do keys work? |\n",
            ),
            ("API.md", "# The REST API\n\nSee [the index](README.md).\n"),
        ])
    }

    #[test]
    fn titles_and_summaries_come_from_the_texts() {
        let documents = documents();
        let api = documents.find("api").unwrap();
        assert_eq!(
            (api.name.as_str(), api.title.as_str(), api.summary.as_str()),
            ("API.md", "The REST API", "How do keys work?")
        );
        assert_eq!(documents.index().unwrap().title, "Documentation");
        assert!(documents.find("api.MD").is_some() && documents.find("none").is_none());
    }

    #[test]
    fn another_text_has_another_tag() {
        let documents = documents();
        assert_ne!(documents.all()[0].tag, documents.all()[1].tag);
    }
}
