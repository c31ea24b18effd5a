//! `/apps/{app}/links` — tracking links: create, edit, preview.

pub(crate) mod create;
mod fields;
pub(crate) mod list;
pub(crate) mod preview;
pub(crate) mod update;

use crate::form_state::FormState;
use crate::shell::Shell;
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
}

impl LinkPage {
    fn action(&self) -> String {
        let id = self.id.as_deref().unwrap_or("new");
        format!("/apps/{}/links/{id}", self.shell.app_id())
    }
}
