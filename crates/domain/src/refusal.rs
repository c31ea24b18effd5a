//! Refusals: requests that a rule rejects. Each has a public code that never changes. A table in
//! `api` maps the code to an HTTP status.

use crate::access::single_sign_on::SignOnRefusal;
use crate::vocabulary::fault::Faults;

/// Why a request was rejected. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The organization has no app with this id.
    #[error("App not found.")]
    AppNotFound,
    /// The app has no link with this id.
    #[error("Link not found.")]
    LinkNotFound,
    /// The app has no notice with this id.
    #[error("Notice not found.")]
    NoticeNotFound,
    /// The app has as many notices as it may have.
    #[error("An app can have at most 50 notices. Delete one that is no longer needed.")]
    TooManyNotices,
    /// The app has no device with this id in this environment.
    #[error("Device not found in this environment. A test key only sees test devices.")]
    DeviceNotFound,
    /// Nothing is stored about this user in this environment.
    #[error("User not found in this environment. A test key only sees test data.")]
    AppUserNotFound,
    /// The token does not prove that the request comes from the device's user.
    #[error(
        "The token is not the one that this device sent first to configure, or the device is unknown."
    )]
    InvalidEraseToken,
    /// The app has no delivery with this id.
    #[error("Delivery not found. Finished deliveries are deleted after some time.")]
    DeliveryNotFound,
    /// The delivery is pending or was delivered.
    #[error("Only failed, expired and unconfirmed deliveries can be retried.")]
    DeliveryNotRetryable,
    /// The released install's events were sent to a network.
    #[error(
        "Events of this install were already sent to a network, which cannot take them back. The \
         install stays released."
    )]
    InstallForwarded,
    /// The device's install was never held.
    #[error(
        "This install was never held. List the held installs with GET /api/v1/apps/{{appId}}/held."
    )]
    InstallNotHeld,
    /// Unknown network identifier.
    #[error("Unknown network. Use network_a, network_b, network_c or network_d.")]
    NetworkNotFound,
    /// Unknown organization (command line only).
    #[error("Organization not found. Run `tributary admin organization list` to list them.")]
    OrganizationNotFound,
    /// The organization has no key with this id that the caller sees.
    #[error("Key not found. List the keys with GET /api/v1/keys or `tributary admin key list`.")]
    KeyNotFound,
    /// The key was revoked or has expired.
    #[error("The key was revoked or has expired, which is final. Create a new one.")]
    KeyEnded,
    /// The key has a successor already.
    #[error("The key was rotated already. Rotate or revoke its successor.")]
    KeyRotated,
    /// The secret that the last rotation replaced is still valid.
    #[error(
        "The secret was rotated already, and the replaced one is still valid. Get the new one with \
         GET …/alert-webhook, or rotate with `overlapHours` 0, which ends the former secrets at once."
    )]
    AlertSecretRotated,
    /// The organization has as many valid keys as it may have.
    #[error(
        "An organization can have at most 500 valid keys. Revoke one that is no longer needed."
    )]
    TooManyKeys,
    /// The app has no replaced SDK key with this text.
    #[error(
        "The app has no replaced SDK key with this text. The current key ends only by a rotation, \
         with `overlapDays` 0. List the keys with GET /api/v1/apps/{{appId}}/sdk-keys."
    )]
    SdkKeyNotFound,
    /// The app has as many valid SDK keys as it may have.
    #[error(
        "An app can have at most 5 valid SDK keys per environment. Revoke a replaced one that is no \
         longer used."
    )]
    TooManySdkKeys,
    /// The key could do more, or would live longer, than the key or member that manages it. Contains
    /// the fields that exceed.
    #[error("The key can do more than yours; see details.")]
    KeyExceedsManager(Faults),
    /// The acting key or member lost the right to manage keys meanwhile.
    #[error("You may no longer manage keys. Sign in again, or use a valid key.")]
    KeyManagerInvalid,
    /// The key is limited to apps, and the request concerns the whole organization.
    #[error("This key is limited to certain apps. Use a key for all apps.")]
    AppNotAllowed,
    /// The user has no such second factor.
    #[error("This second factor was removed already. Reload the page.")]
    FactorNotFound,
    /// The user has an authenticator app.
    #[error("You have an authenticator app. Remove it before you set up another one.")]
    AuthenticatorExists,
    /// The user has as many factors as a user may have.
    #[error(
        "An account can have at most 10 passkeys and other second factors. Remove one that is no longer needed."
    )]
    TooManyFactors,
    /// The organization requires a factor, and it is the user's last one.
    #[error(
        "Your organization requires a second factor, and this is your last one. Set up another one \
         first."
    )]
    LastFactor,
    /// The passkey is the user's only way to sign in.
    #[error("You sign in with this passkey only. Add another passkey first.")]
    LastPasskey,
    /// The device's passkey is registered already.
    #[error("This passkey is registered already.")]
    PasskeyExists,
    /// The owner who requires second factors has none.
    #[error("Set up a second factor for your own account before you require one of all members.")]
    OwnFactorMissing,
    /// The one-time link was used, has expired or does not exist.
    #[error("This setup link was already used or has expired. Ask for a new one.")]
    SetupLinkInvalid,
    /// The one-time link for a new password was used, has expired or does not exist.
    #[error("This link was already used or has expired. Ask for a new one.")]
    ResetLinkInvalid,
    /// The password or the organization's single sign-on changed while a sign-in was checked (dashboard
    /// only).
    #[error(
        "Your password or your organization's single sign-on changed meanwhile. Sign in again."
    )]
    CredentialChanged,
    /// No account has this email address (command line only).
    #[error("No account has this email address. Run `tributary admin user list` to list them.")]
    AccountNotFound,
    /// Another account of the organization has this email address. Accounts elsewhere do not count,
    /// because refusing them would reveal that they exist.
    #[error("Another member of this organization uses this email address.")]
    EmailTaken,
    /// The organization has no such member (dashboard only).
    #[error("Member not found. They may have been removed meanwhile.")]
    MemberNotFound,
    /// The change would leave the organization without an owner (dashboard only).
    #[error("This is the last owner. Make another member an owner first.")]
    LastOwner,
    /// Another link on this instance has the slug.
    #[error("Another link on this instance uses this slug. Choose a different one.")]
    SlugTaken,
    /// Another app of the organization has the App Store id, or another organization has proven that
    /// it owns the id.
    #[error("Another app uses this App Store id. Ask the operator if the id is yours.")]
    StoreIdTaken,
    /// Another app on this instance has verified the link domain.
    #[error("Another app on this instance has verified this link domain.")]
    DomainTaken,
    /// No TXT record proves that the organization controls the link domain.
    #[error(
        "The TXT record that verifies this domain was not found. Add the record that \
         linkDomainVerification shows, and try again when DNS serves it."
    )]
    DomainUnproven,
    /// The DNS servers did not answer.
    #[error("The DNS lookup failed. Try again.")]
    DnsUnavailable,
    /// `If-Match` names a version that is not current.
    #[error("The object was changed meanwhile. Read it again and repeat the change.")]
    VersionConflict,
    /// The user has saved as many views of the app as allowed.
    #[error("You have saved 50 views of this app. Delete one of them first.")]
    TooManyViews,
    /// The app has as many links that share a report as allowed.
    #[error("This app has 50 share links. Revoke one of them first.")]
    TooManyShares,
    /// The organization has no settings for single sign-on (dashboard only).
    #[error("This organization does not use single sign-on.")]
    SingleSignOnNotFound,
    /// The provider's identity may not sign in (dashboard only).
    #[error("{0}")]
    SignOnRefused(SignOnRefusal),
    /// No owner could sign in without the provider (dashboard only).
    #[error(
        "No owner has a password, so nobody could sign in without the provider. Choose a password on \
         the account page first."
    )]
    OwnerNeedsPassword,
    /// Web events are disabled for the app.
    #[error(
        "Web events are disabled for this app. Set webEvents.enabled with PATCH \
         /api/v1/apps/{{appId}}."
    )]
    WebEventsDisabled,
    /// The app is archived.
    #[error(
        "This app is archived and accepts no events. Set archived to false with PATCH \
         /api/v1/apps/{{appId}}."
    )]
    AppArchived,
    /// The event id was used with a different payload. Contains the fields that differ.
    #[error("eventId was already used with a different payload. Use a new id for a new event.")]
    EventIdConflict(Faults),
    /// The click is unknown, forged, expired, from a bot, or belongs to another app.
    #[error("The click is not verified. Send the ar_click_id that the redirect added to your URL.")]
    ClickNotVerified,
    /// The click is on a test link.
    #[error(
        "The click is on a test link, so it never counts. Send the event to web-events/validate, or \
         use a click on a link that is no test link."
    )]
    TestClick,
    /// The click is not credited to a supported ad network.
    #[error("The click does not come from a supported ad network, which web events require.")]
    ClickNetworkUnsupported,
    /// The event's page is not on the origin that the click's link redirects to.
    #[error("The origin of sourceUrl is not the destination of the click's web_funnel link.")]
    OriginMismatch,
    /// The referenced payment is not recorded (yet).
    #[error(
        "The payment named by originalTransactionId is not recorded yet. Send it first, then retry."
    )]
    OriginalTransactionUnavailable,
    /// The referenced event is not a payment of the required kind.
    #[error(
        "A renewal's originalTransactionId must name the initial purchase; a refund's, a payment."
    )]
    OriginalTransactionInvalid,
    /// Refunds would exceed the payment.
    #[error("The refunds would exceed the payment.")]
    RefundExceedsPayment,
    /// The refund's currency differs from its payment's.
    #[error("A refund must use the currency of its payment.")]
    CurrencyMismatch,
    /// Fields that are invalid in combination with stored values.
    #[error("Some fields are invalid: {0}")]
    Invalid(Faults),
}
