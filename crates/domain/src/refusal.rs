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
    /// No device of that id in this app and environment.
    #[error("There is no such device in this environment; a test key sees test devices only.")]
    DeviceNotFound,
    /// No delivery of that id in this app.
    #[error("There is no such delivery; they are kept for a while after their end.")]
    DeliveryNotFound,
    /// A delivery that is on its way, or arrived.
    #[error("Only failed, expired and unconfirmed deliveries can be tried again.")]
    DeliveryNotRetryable,
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
    /// No such person in this organization (dashboard only).
    #[error("There is no such member; somebody may have removed them meanwhile.")]
    MemberNotFound,
    /// Nobody would be left to manage the members (dashboard only).
    #[error("This is the last owner; make somebody else an owner first.")]
    LastOwner,
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
    /// The app takes no website events.
    #[error(
        "This app takes no website events; enable them with PATCH /api/v1/apps/{{appId}}, webEvents.enabled."
    )]
    WebEventsDisabled,
    /// An archived app.
    #[error(
        "This app is archived and takes no events; set archived to false with PATCH /api/v1/apps/{{appId}}."
    )]
    AppArchived,
    /// Another payload has this event id. Holds the fields that differ.
    #[error(
        "eventId was already used with a different payload; give a different event a different id."
    )]
    EventIdConflict(Faults),
    /// Unknown, forged, expired, a bot's or another app's click.
    #[error(
        "This click is not verified: send the ar_click_id that the redirect to your page carried."
    )]
    ClickNotVerified,
    /// A click that came from none of the four networks.
    #[error(
        "This click came from none of the four networks; only their clicks can carry website events."
    )]
    ClickNetworkUnsupported,
    /// The event happened elsewhere than the click's link leads to.
    #[error("The origin of sourceUrl is not where the click's web_funnel link leads to.")]
    OriginMismatch,
    /// The payment is not here (yet).
    #[error(
        "The payment that this event refers to is not here yet; send it first, then repeat this one."
    )]
    OriginalTransactionUnavailable,
    /// What it refers to is no payment of the kind it needs.
    #[error(
        "originalTransactionId must name the initial purchase for a renewal, a payment for a refund."
    )]
    OriginalTransactionInvalid,
    /// More would be given back than was paid.
    #[error("With this refund more would be given back than was paid.")]
    RefundExceedsPayment,
    /// A refund in another currency than its payment.
    #[error("A refund must be in the currency of its payment.")]
    CurrencyMismatch,
    /// Fields that are at fault together with what is stored.
    #[error("Some fields are at fault: {0}")]
    Invalid(Faults),
}
