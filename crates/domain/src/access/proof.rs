//! Sensitive actions in the dashboard need a recent proof that the user is there, not only the
//! user's open browser. API keys are not affected.
//!
//! A sign-in is a proof, except at a provider that does not say when it last asked. The form that changes a password is not listed, because it always asks for the
//! current one.

use crate::vocabulary::time::Timestamp;
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
    /// Those that fill in a field whose name is one of these, or begins with one of these and a dot.
    Filled(&'static [&'static str]),
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
    fields: &'static [&'static str],
    purpose: &'static str,
) -> SensitiveAction {
    SensitiveAction {
        condition: FormCondition::Filled(fields),
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
        "archive an app or change its keys",
    ),
    form(
        "/apps/{app}/settings/identity-secret",
        "create an identity secret",
    ),
    form("/apps/{app}/settings/sdk-keys/rotate", "rotate an SDK key"),
    form_with(
        "/apps/{app}/integrations/{network}",
        &["credentials"],
        "change credentials",
    ),
    form_with(
        "/apps/{app}/costs/{network}",
        &["credentials"],
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

impl FormCondition {
    fn is_met<'a>(self, mut fields: impl Iterator<Item = (&'a str, &'a str)>) -> bool {
        match self {
            Self::Always => true,
            Self::Filled(names) => fields.any(|(name, value)| {
                let is_named = |wanted: &&str| {
                    let rest = name.strip_prefix(*wanted);
                    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
                };
                !value.is_empty() && names.iter().any(is_named)
            }),
        }
    }
}

/// Returns the sensitive action of a request; `None` if it needs no proof. `path` is the route's path.
pub fn sensitive_action<'a>(
    is_page: bool,
    path: &str,
    fields: impl Iterator<Item = (&'a str, &'a str)>,
) -> Option<&'static SensitiveAction> {
    let mut actions = SENSITIVE_ACTIONS.iter();
    let found = actions.find(|action| action.is_page == is_page && action.path == path)?;
    found.condition.is_met(fields).then_some(found)
}

/// Returns whether a proof still counts.
pub fn is_recent_proof(proved_at: Timestamp, now: Timestamp) -> bool {
    now.since(proved_at) < PROOF_LIFETIME
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use std::collections::BTreeSet;

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
    fn finds_sensitive_actions(
        #[case] is_page: bool,
        #[case] path: &str,
        #[case] fields: &[(&str, &str)],
        #[case] expected: bool,
    ) {
        let found = sensitive_action(is_page, path, fields.iter().copied());
        assert_eq!(found.is_some(), expected);
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
