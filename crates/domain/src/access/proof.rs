//! Sensitive actions in the dashboard need a recent proof that the user is there, not only the
//! user's open browser. API keys are not affected.
//!
//! A sign-in is a proof, except at a provider that does not say when it last asked. The form that
//! changes a password is not listed, because it always asks for the current one.

use crate::vocabulary::time::Timestamp;
use std::collections::BTreeSet;
use std::time::Duration;

/// How long a proof lasts: enough for a few changes in a row, and short enough that a browser left
/// open on a desk is of little use.
pub const PROOF_LIFETIME: Duration = Duration::from_mins(10);
/// Time of the last proof of a session that began without one.
pub const NO_PROOF: Timestamp = Timestamp::from_millis(0);

/// A sensitive action: a page or the target of a form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SensitiveAction {
    /// Whether the path is a page (GET). Otherwise it is the target of a form (POST).
    pub is_page: bool,
    /// The route's path.
    pub path: &'static str,
    /// Which forms are sensitive.
    pub condition: FormCondition,
    /// What the user is about to do; it follows “to”.
    pub purpose: &'static str,
}

/// Which forms with the path of a sensitive action are sensitive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FormCondition {
    /// All of them.
    Always,
    /// Those that fill in or change certain fields.
    Fields {
        /// Names of fields that are stored or shown nowhere, such as secrets; a field whose name begins
        /// with one of these and a dot counts as well. Such a field changes what it fills in.
        filled: &'static [&'static str],
        /// Name of a field that matters if it differs from what is stored.
        changed: Option<StoredField>,
    },
}

/// A field of a form that is compared with what is stored. Each line is a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoredField {
    /// An app's URL for alerts.
    AlertWebhookUrl,
    /// Email addresses that a notice goes to.
    Recipients,
}

crate::keywords! {
    StoredField {
        AlertWebhookUrl => "alertWebhookUrl",
        Recipients => "recipients",
    }
}

impl StoredField {
    /// Returns whether a submitted value differs from the stored one. Browsers send line breaks as
    /// CRLF, and the order does not matter.
    fn is_changed(submitted: &str, stored: &str) -> bool {
        fn lines(text: &str) -> BTreeSet<&str> {
            let lines = text.lines().map(str::trim);
            lines.filter(|line| !line.is_empty()).collect()
        }
        lines(submitted) != lines(stored)
    }
}

const fn form(path: &'static str, purpose: &'static str) -> SensitiveAction {
    SensitiveAction {
        is_page: false,
        path,
        condition: FormCondition::Always,
        purpose,
    }
}

const fn form_with(
    path: &'static str,
    filled: &'static [&'static str],
    changed: Option<StoredField>,
    purpose: &'static str,
) -> SensitiveAction {
    SensitiveAction {
        condition: FormCondition::Fields { filled, changed },
        ..form(path, purpose)
    }
}

const fn page(path: &'static str, purpose: &'static str) -> SensitiveAction {
    SensitiveAction {
        is_page: true,
        ..form(path, purpose)
    }
}

/// All sensitive actions. Revoking keys, invitations and sessions is not one of them, because it must
/// be quick after a theft.
pub const SENSITIVE_ACTIONS: &[SensitiveAction] = &[
    form("/keys", "create an API key"),
    form("/keys/{key}/rotate", "rotate an API key"),
    form("/keys/{key}/take-over", "take over an API key"),
    form("/team/invite", "invite a member"),
    form("/team/{member}/role", "change the role of a member"),
    form("/team/{member}/remove", "remove a member"),
    form("/account/first-password", "choose a password"),
    page("/account/authenticator", "set up an authenticator app"),
    form("/account/authenticator", "set up an authenticator app"),
    page("/account/passkeys", "add a passkey"),
    form("/account/passkeys", "add a passkey"),
    form("/account/recovery-codes", "create new recovery codes"),
    form(
        "/account/factors/{factor}/remove",
        "remove a passkey or another second factor",
    ),
    form(
        "/team/second-factor",
        "change whether members need a second factor",
    ),
    form("/team/single-sign-on", "change single sign-on"),
    form("/team/single-sign-on/connect", "connect your account"),
    form("/team/single-sign-on/remove", "remove single sign-on"),
    form_with(
        "/apps/{app}/settings",
        &[
            "archived",
            "attribution.socialReferrerKey",
            "android.playDecryptionKey",
            "android.playVerificationKey",
        ],
        Some(StoredField::AlertWebhookUrl),
        "archive an app, or change its keys or where its alerts go",
    ),
    form("/apps/{app}/shares", "share an overview by a link"),
    form("/apps/{app}/notices/new", "send figures to a new place"),
    form_with(
        "/apps/{app}/notices/{notice}",
        &["url"],
        Some(StoredField::Recipients),
        "change where figures are sent",
    ),
    form(
        "/apps/{app}/settings/identity-secret",
        "create an identity secret",
    ),
    form("/apps/{app}/settings/sdk-keys/rotate", "rotate an SDK key"),
    form_with(
        "/apps/{app}/integrations/{network}",
        &["credentials"],
        None,
        "change credentials",
    ),
    form_with(
        "/apps/{app}/costs/{network}",
        &["credentials"],
        None,
        "change credentials",
    ),
    form(
        "/apps/{app}/integrations/billing/{provider}",
        "change the secret of a billing provider",
    ),
    form(
        "/apps/{app}/integrations/billing/{provider}/secret",
        "create the secret of a billing provider",
    ),
    form("/apps/{app}/devices/{device}/erase", "erase a device"),
    page(
        "/apps/{app}/devices/{device}/data",
        "export the data of a person",
    ),
    page(
        "/apps/{app}/users/{user}/data",
        "export the data of a person",
    ),
];

impl SensitiveAction {
    /// Finds the action of a route's path. It needs a proof if [`includes`](Self::includes) says so.
    pub fn at(is_page: bool, path: &str) -> Option<&'static Self> {
        let mut actions = SENSITIVE_ACTIONS.iter();
        actions.find(|action| action.is_page == is_page && action.path == path)
    }

    /// Returns the field that is compared with what is stored.
    pub const fn stored_field(&self) -> Option<StoredField> {
        match self.condition {
            FormCondition::Always => None,
            FormCondition::Fields { changed, .. } => changed,
        }
    }

    /// Returns whether a request with these fields is sensitive. `stored` is the value of
    /// [`stored_field`](Self::stored_field) before the request.
    pub fn includes<'a>(
        &self,
        mut fields: impl Iterator<Item = (&'a str, &'a str)>,
        stored: &str,
    ) -> bool {
        let FormCondition::Fields { filled, changed } = self.condition else {
            return true;
        };
        let mut submitted = "";
        let is_filled = fields.any(|(name, value)| {
            if changed.is_some_and(|field| field.as_str() == name) {
                submitted = value;
            }
            let is_named = |wanted: &&str| {
                let rest = name.strip_prefix(*wanted);
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            };
            !value.is_empty() && filled.iter().any(is_named)
        });
        is_filled || (changed.is_some() && StoredField::is_changed(submitted, stored))
    }
}

/// Returns whether a proof still counts.
pub fn is_recent_proof(proved_at: Timestamp, now: Timestamp) -> bool {
    now.since(proved_at) < PROOF_LIFETIME
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::form(false, "/keys", &[], true)]
    #[case::page_of_the_form(true, "/keys", &[], false)]
    #[case::revocation(false, "/keys/{key}/revoke", &[], false)]
    #[case::export(true, "/apps/{app}/users/{user}/data", &[], true)]
    #[case::name(false, "/apps/{app}/settings", &[("name", "x"), ("archived", "")], false)]
    #[case::archived(false, "/apps/{app}/settings", &[("archived", "on")], true)]
    #[case::key_removed(
        false, "/apps/{app}/settings", &[("android.playDecryptionKey.remove", "on")], true
    )]
    #[case::credential(
        false, "/apps/{app}/integrations/{network}", &[("credentials.accessToken", "x")], true
    )]
    #[case::empty_credential(
        false, "/apps/{app}/integrations/{network}", &[("credentials.accessToken", "")], false
    )]
    #[case::similar_name(
        false, "/apps/{app}/integrations/{network}", &[("credentialsOf", "x")], false
    )]
    #[case::share(false, "/apps/{app}/shares", &[], true)]
    #[case::end_of_a_share(false, "/apps/{app}/shares/{share}/revoke", &[], false)]
    #[case::new_notice(false, "/apps/{app}/notices/new", &[], true)]
    #[case::notice_to_another_url(
        false, "/apps/{app}/notices/{notice}", &[("url", "https://example.com")], true
    )]
    #[case::test_of_a_notice(false, "/apps/{app}/notices/{notice}/test", &[], false)]
    fn finds_sensitive_actions(
        #[case] is_page: bool,
        #[case] path: &str,
        #[case] fields: &[(&str, &str)],
        #[case] expected: bool,
    ) {
        let found = SensitiveAction::at(is_page, path);
        let is_sensitive = found.is_some_and(|one| one.includes(fields.iter().copied(), ""));
        assert_eq!(is_sensitive, expected);
    }

    #[rstest]
    #[case::none("", "", false)]
    #[case::same("you@example.com", "you@example.com", false)]
    #[case::browsers_line_breaks("b@x.test\r\na@x.test\r\n", "a@x.test\nb@x.test", false)]
    #[case::another("other@example.com", "you@example.com", true)]
    #[case::one_more("a@x.test\r\nb@x.test", "a@x.test", true)]
    #[case::one_less("a@x.test", "a@x.test\nb@x.test", true)]
    #[case::removed("", "a@x.test", true)]
    #[case::first("a@x.test", "", true)]
    fn a_changed_target_is_sensitive(
        #[case] submitted: &str,
        #[case] stored: &str,
        #[case] expected: bool,
    ) {
        for (path, field) in [
            ("/apps/{app}/settings", "alertWebhookUrl"),
            ("/apps/{app}/notices/{notice}", "recipients"),
        ] {
            let action = SensitiveAction::at(false, path).unwrap();
            assert_eq!(action.stored_field().map(StoredField::as_str), Some(field));
            let fields = [("name", "x"), (field, submitted), ("url", "")];
            assert_eq!(
                action.includes(fields.into_iter(), stored),
                expected,
                "{path}"
            );
        }
    }

    #[rstest]
    #[case::now(0, true)]
    #[case::ten_minutes_less(599, true)]
    #[case::ten_minutes(600, false)]
    #[case::the_clock_was_ahead(-30, true)]
    fn a_proof_lasts_ten_minutes(#[case] seconds: i64, #[case] expected: bool) {
        let now = Timestamp::from_millis(seconds * 1_000);
        let proved_at = Timestamp::from_millis(0);
        assert_eq!(is_recent_proof(proved_at, now), expected);
    }

    #[test]
    fn each_action_is_listed_once() {
        let actions = SENSITIVE_ACTIONS.iter();
        let keys: BTreeSet<_> = actions.map(|one| (one.is_page, one.path)).collect();
        assert_eq!(keys.len(), SENSITIVE_ACTIONS.len());
    }
}
