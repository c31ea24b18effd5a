//! Refusals: what the rules say no to. They are the caller's business, have a public code that never
//! changes, and know nothing of HTTP; one table in `api` gives each its status.

use crate::vocabulary::fault::Faults;

/// Why something was not done. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// No app of that id in this organization.
    #[error("There is no such app.")]
    AppNotFound,
    /// No link of that id in this app.
    #[error("There is no such link.")]
    LinkNotFound,
    /// No network of that name.
    #[error("There is no such network; there are network_a, network_b, network_c and network_d.")]
    NetworkNotFound,
    /// No such organization (command line only).
    #[error("There is no such organization; `tributary admin organization list` shows them.")]
    OrganizationNotFound,
    /// No such key (command line only).
    #[error("There is no such key; `tributary admin key list` shows them.")]
    KeyNotFound,
    /// A one-time link that was used, has expired or never was.
    #[error("This set-up link was used already or has expired; ask for a new one.")]
    SetupLinkInvalid,
    /// Another account has this e-mail address.
    #[error("Another account has this e-mail address.")]
    EmailTaken,
    /// Another link of this instance has the slug.
    #[error("Another link has this slug; slugs are unique on an instance, so choose another one.")]
    SlugTaken,
    /// Another app of this instance has the App Store id.
    #[error("Another app has this App Store id; an id belongs to one app of an instance.")]
    StoreIdTaken,
    /// Another app of this instance has the link domain.
    #[error("Another app has this link domain; a domain belongs to one app of an instance.")]
    DomainTaken,
    /// `If-Match` names another version than the present one.
    #[error("The object was changed meanwhile; read it again and repeat the change.")]
    VersionConflict,
    /// Fields that are at fault together with what is stored.
    #[error("Some fields are at fault: {0}")]
    Invalid(Faults),
}
