//! Checks requests to `network_b`. All violations are reported.

use super::event;
use crate::accounts::{AdsAccount, ConversionAction};
use crate::validation::{BodyNode, PathStep, ReceivedMoney, Violation, ViolationKind, Violations};
use serde_json::Value;
use std::collections::HashMap;

pub(super) const EVENTS_MAX: usize = 2_000;
pub(super) const DESTINATIONS_MAX: usize = 10;
const BODY_FIELDS: &[&str] = &[
    "destinations",
    "events",
    "consent",
    "encoding",
    "validateOnly",
];
const DESTINATION_FIELDS: &[&str] = &[
    "operatingAccount",
    "loginAccount",
    "productDestinationId",
    "reference",
];
pub(super) const CONSENT: &[&str] = &[
    "CONSENT_GRANTED",
    "CONSENT_DENIED",
    "CONSENT_STATUS_UNSPECIFIED",
];

/// A violation. `reason` is the network's reason, set only if the kind of violation does not
/// determine it.
#[derive(Debug)]
pub(super) struct NamedViolation {
    pub(super) violation: Violation,
    pub(super) reason: Option<&'static str>,
}

/// A conversion action named in the request.
#[derive(Debug, Clone)]
pub(super) struct CheckedDestination {
    pub(super) account: String,
    pub(super) action: String,
    pub(super) reference: Option<String>,
    pub(super) one_per_click: bool,
    accepts_app: bool,
    accepts_web: bool,
    terms_signed: bool,
}

/// A valid event.
#[derive(Debug)]
pub(super) struct AcceptedGoogleEvent {
    pub(super) id: String,
    pub(super) source: String,
    pub(super) money: Option<ReceivedMoney>,
    /// Indexes of the event's destinations.
    pub(super) destinations: Vec<usize>,
    pub(super) has_user_data: bool,
    pub(super) has_braid: bool,
    pub(super) is_consent_denied: bool,
}

impl AcceptedGoogleEvent {
    /// Returns why the event is discarded after acceptance.
    pub(super) fn discard_reason(&self, destination: &CheckedDestination) -> Option<&'static str> {
        if self.is_consent_denied {
            return Some("PROCESSING_ERROR_REASON_DENIED_CONSENT");
        }
        let reason =
            "PROCESSING_ERROR_REASON_ONE_PER_CLICK_CONVERSION_ACTION_NOT_PERMITTED_WITH_BRAID";
        (self.has_braid && destination.one_per_click).then_some(reason)
    }
}

/// A valid request.
#[derive(Debug)]
pub(super) struct CheckedGoogleRequest {
    pub(super) destinations: Vec<CheckedDestination>,
    pub(super) events: Vec<AcceptedGoogleEvent>,
    pub(super) validate_only: bool,
}

/// Checks the body alone.
pub(super) fn check(body: &Value, now: i64) -> Result<CheckedGoogleRequest, Vec<NamedViolation>> {
    let mut violations = Violations::default();
    let root = BodyNode::root(body);
    let mut checked = CheckedGoogleRequest {
        destinations: Vec::new(),
        events: Vec::new(),
        validate_only: false,
    };
    if root.object(BODY_FIELDS, &mut violations) {
        if let Some(flag) = root.get("validateOnly") {
            checked.validate_only = flag.flag(&mut violations).unwrap_or_default();
        }
        if let Some(encoding) = root.get("encoding") {
            encoding.choice(&["HEX"], &mut violations);
        }
        let denied = root
            .get("consent")
            .map(|one| consent(&one, &mut violations));
        if let Some(list) = root.require("destinations", &mut violations) {
            list.each(DESTINATIONS_MAX, &mut violations, |one, violations| {
                checked.destinations.extend(destination(&one, violations));
            });
        }
        if let Some(list) = root.require("events", &mut violations) {
            let destinations = &checked.destinations;
            list.each(EVENTS_MAX, &mut violations, |one, violations| {
                let denied = denied.unwrap_or_default();
                checked
                    .events
                    .extend(event::check(&one, destinations, denied, now, violations));
            });
        }
        let has_user_data = checked.events.iter().any(|event| event.has_user_data);
        if has_user_data && !root.has("encoding") {
            root.report_missing("encoding", &mut violations);
        }
    }
    if violations.is_empty() {
        return Ok(checked);
    }
    let named = |violation| NamedViolation {
        violation,
        reason: None,
    };
    Err(violations.into_list().into_iter().map(named).collect())
}

/// Checks consent, and returns whether `adUserData` is denied.
pub(super) fn consent(consent: &BodyNode<'_, '_>, violations: &mut Violations) -> bool {
    if !consent.object(&["adUserData", "adPersonalization"], violations) {
        return false;
    }
    if let Some(personalization) = consent.get("adPersonalization") {
        personalization.choice(CONSENT, violations);
    }
    let user_data = consent
        .get("adUserData")
        .and_then(|one| one.choice(CONSENT, violations));
    user_data == Some("CONSENT_DENIED")
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn account(node: &BodyNode<'_, '_>, violations: &mut Violations) -> Option<String> {
    if !node.object(&["accountType", "accountId"], violations) {
        return None;
    }
    if let Some(kind) = node.require("accountType", violations) {
        kind.choice(&["GOOGLE_ADS"], violations);
    }
    let id = node.require("accountId", violations)?;
    id.text_matching(is_digits, "must be digits only", violations)
        .map(str::to_owned)
}

fn destination(node: &BodyNode<'_, '_>, violations: &mut Violations) -> Option<CheckedDestination> {
    if !node.object(DESTINATION_FIELDS, violations) {
        return None;
    }
    let operating = node
        .require("operatingAccount", violations)
        .and_then(|one| account(&one, violations));
    if let Some(login) = node.get("loginAccount") {
        account(&login, violations);
    }
    let reference = node.get("reference").and_then(|one| one.text(violations));
    let action = node.require("productDestinationId", violations);
    let action =
        action.and_then(|one| one.text_matching(is_digits, "must be digits only", violations));
    Some(CheckedDestination {
        account: operating?,
        action: action?.to_owned(),
        reference: reference.map(str::to_owned),
        one_per_click: false,
        accepts_app: true,
        accepts_web: true,
        terms_signed: true,
    })
}

/// Checks the request against the accounts: whether actions exist, what they accept, and which
/// terms are signed.
pub(super) fn check_against_accounts(
    checked: &mut CheckedGoogleRequest,
    body: &Value,
    accounts: &HashMap<String, AdsAccount>,
    is_open: bool,
) -> Vec<NamedViolation> {
    let mut wrong = Vec::new();
    for (position, one) in checked.destinations.iter_mut().enumerate() {
        let login = body["destinations"][position]["loginAccount"]["accountId"].as_str();
        let field = |name| {
            vec![
                PathStep::Field("destinations".to_owned()),
                PathStep::Index(position),
                PathStep::Field(name),
            ]
        };
        let (name, reason, message) = match accounts.get(&one.account) {
            None if is_open => continue,
            None => (
                "operatingAccount",
                "DESTINATION_ACCOUNT_NOT_FOUND",
                "does not exist",
            ),
            Some(known) => match apply_account(one, known, login) {
                Ok(()) => continue,
                Err(refused) => refused,
            },
        };
        wrong.push(named_violation(field(name.to_owned()), reason, message));
    }
    for (index, event) in checked.events.iter().enumerate() {
        for destination in event
            .destinations
            .iter()
            .map(|&position| &checked.destinations[position])
        {
            let field = |name: &str| {
                vec![
                    PathStep::Field("events".to_owned()),
                    PathStep::Index(index),
                    PathStep::Field(name.to_owned()),
                ]
            };
            let is_accepted = match event.source.as_str() {
                "APP" => destination.accepts_app,
                "WEB" => destination.accepts_web,
                _ => true,
            };
            if !is_accepted {
                let reason = "EVENT_SOURCE_AND_DESTINATION_MISMATCH";
                wrong.push(named_violation(
                    field("eventSource"),
                    reason,
                    "is not accepted by the destination",
                ));
            }
            if event.has_user_data && !destination.terms_signed {
                let reason = "DESTINATION_ACCOUNT_ENHANCED_CONVERSIONS_TERMS_NOT_SIGNED";
                let message = "requires the terms for enhanced conversions to be signed";
                wrong.push(named_violation(field("userData"), reason, message));
            }
        }
    }
    wrong
}

type Refused = (&'static str, &'static str, &'static str);

/// Applies the account's settings to a destination. The error contains field, reason and message.
fn apply_account(
    one: &mut CheckedDestination,
    known: &AdsAccount,
    login: Option<&str>,
) -> Result<(), Refused> {
    let manager = known.login_account_id.as_deref();
    if login.is_some() && manager.is_some() && login != manager {
        let reason = "OPERATING_ACCOUNT_LOGIN_ACCOUNT_MISMATCH";
        return Err((
            "loginAccount",
            reason,
            "does not manage the operating account",
        ));
    }
    one.terms_signed = known.enhanced_conversions_terms_signed.unwrap_or(true);
    if known.conversion_actions.is_empty() {
        return Ok(());
    }
    let is_it = |action: &&ConversionAction| action.id == one.action;
    let Some(action) = known.conversion_actions.iter().find(is_it) else {
        let reason = "INVALID_CONVERSION_ACTION_ID";
        return Err((
            "productDestinationId",
            reason,
            "is not a conversion action of the account",
        ));
    };
    if action.created_recently {
        let reason = "CONVERSION_ACTION_TOO_RECENTLY_CREATED";
        return Err(("productDestinationId", reason, "was created too recently"));
    }
    one.accepts_app = action.accepts_app;
    one.accepts_web = action.accepts_web;
    one.one_per_click = action.one_per_click;
    Ok(())
}

fn named_violation(
    steps: Vec<PathStep>,
    reason: &'static str,
    message: &'static str,
) -> NamedViolation {
    NamedViolation {
        violation: Violation {
            steps,
            kind: ViolationKind::Conflict(message),
        },
        reason: Some(reason),
    }
}
