//! `/apps/{app}/links` — tracking links: create, edit, preview.

mod analytics;
pub(crate) mod bulk;
pub(crate) mod create;
mod fields;
pub(crate) mod list;
pub(crate) mod preview;
pub(crate) mod qr;
pub(crate) mod update;

use crate::form_state::FormState;
use crate::shell::Shell;
use analytics::LinkAnalytics;
use askama::Template;
use preview::Preview;

/// The form for a new or stored link.
#[derive(Template)]
#[template(path = "link.html")]
struct LinkPage {
    shell: Shell,
    /// `None` for a new link.
    id: Option<String>,
    name: String,
    tag: String,
    form: FormState,
    preview: Preview,
    /// `None` for a new link, and while a form has faults.
    analytics: Option<LinkAnalytics>,
}

/// Form fields outside the folds. The section "Advanced" has all others.
const SHORT_FORM: [&str; 4] = ["name", "network", "type", "destinationUrl"];

impl LinkPage {
    /// Returns the URL of a stored link.
    fn url(&self) -> Option<&str> {
        self.id.as_ref().map(|_| self.preview.url.as_str())
    }

    /// Returns whether this is a stored test link.
    fn is_test_link(&self) -> bool {
        self.id.is_some() && self.form.is_ticked("test")
    }

    /// Returns whether the UTM parameters are shown: one was entered, so the form has a fault.
    fn opens_utm(&self) -> bool {
        let names = ["source", "medium", "campaign", "term", "content"];
        let is_filled = |name| !self.form.value(&format!("utm.{name}")).is_empty();
        names.into_iter().any(is_filled)
    }

    /// Returns whether "Advanced" is open, because one of its fields has a fault.
    fn opens_advanced(&self) -> bool {
        let is_advanced = |field: &str| !(SHORT_FORM.contains(&field) || field.starts_with("utm."));
        let mut faults = self.form.faults().iter();
        faults.any(|fault| is_advanced(&fault.field))
    }

    /// Returns the URL of the form for a new link with the values of this one.
    fn duplicate_url(&self, id: &str) -> String {
        let page = self.shell.app_url("links/new");
        let mark = if page.contains('?') { '&' } else { '?' };
        format!("{page}{mark}from={id}")
    }

    fn action(&self) -> String {
        let id = self.id.as_deref().unwrap_or("new");
        self.shell.item_url("links", id)
    }
}

#[cfg(test)]
mod tests;
