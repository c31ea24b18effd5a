//! Changes to an app.

use super::audited_fields::{audit_values, differences};
use super::{App, AppSecret, AttributionRules, FraudPolicy, QualifiedTrial, SdkRevenue};
use crate::attestation::AttestationPolicy;
use crate::audit::{Changes, FieldChange};
use crate::device::IdentityMode;
use crate::keyring::seal::SealedSecret;
use crate::ownership::link_domain::LinkDomain;
use crate::refusal::Refusal;
use crate::vocabulary::change::Change;
use crate::vocabulary::revision::Precondition;
use crate::vocabulary::text::Name;
use crate::vocabulary::time::Timestamp;
use crate::vocabulary::timezone::Timezone;
use crate::vocabulary::web_url::{HostName, HttpsUrl};

/// Requested changes to an app. A name has no default, so it can be set but not reset.
#[derive(Debug, Clone, Default)]
#[expect(
    missing_docs,
    reason = "each field is the field of App that it changes"
)]
pub struct AppChange {
    pub name: Option<Name>,
    pub timezone: Change<Timezone>,
    pub archived: Change<bool>,
    pub ios_bundle_id: Change<String>,
    pub ios_app_store_id: Change<String>,
    pub ios_team_id: Change<String>,
    pub android_package_name: Change<String>,
    pub android_sha256_cert_fingerprints: Change<Vec<String>>,
    pub web_events_enabled: Change<bool>,
    pub link_domain: Change<HostName>,
    pub sdk_enabled: Change<bool>,
    pub sdk_revenue: Change<SdkRevenue>,
    pub sdk_attestation: Change<AttestationPolicy>,
    pub sdk_identity: Change<IdentityMode>,
    pub click_window_hours: Change<i64>,
    pub probabilistic_ios: Change<bool>,
    pub probabilistic_android: Change<bool>,
    pub probabilistic_window_hours: Change<i64>,
    pub fraud: Change<FraudPolicy>,
    pub qualified_trial_enabled: Change<bool>,
    pub qualified_trial_delay_hours: Change<i64>,
    pub skan_test_signals: Change<bool>,
    pub revenue_events: Change<Vec<String>>,
    pub deep_link_schemes: Change<Vec<String>>,
    pub alert_webhook_url: Change<HttpsUrl>,
    pub secrets: Vec<(AppSecret, Change<SealedSecret>)>,
    /// Secrets whose replaced value stays valid alongside the new one.
    pub kept_secrets: Vec<AppSecret>,
}

impl AppChange {
    /// Returns a change that rotates a secret. The previous secret stays valid: a billing secret
    /// for a while, an identity secret until the next rotation.
    #[must_use]
    pub fn rotation(secret: AppSecret, sealed: SealedSecret) -> Self {
        Self {
            secrets: vec![(secret, Change::Set(sealed))],
            kept_secrets: vec![secret],
            ..Self::default()
        }
    }
}

/// A step in storing changed secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretStep<'a> {
    /// Copy a stored secret to another name.
    Copy {
        /// Current name.
        from: AppSecret,
        /// New name.
        to: AppSecret,
    },
    /// Remove a secret.
    Remove(AppSecret),
    /// Store a secret and replace any previous one.
    Set(AppSecret, &'a SealedSecret),
}

impl AppChange {
    /// Returns the steps that store the changed secrets. A replaced secret that stays valid gets the
    /// name of the previous secret. Any other change also removes the stored previous secret.
    pub fn secret_steps(&self) -> Vec<SecretStep<'_>> {
        let mut steps = Vec::new();
        for (secret, change) in &self.secrets {
            if let Some(to) = secret.previous() {
                let from = *secret;
                match change {
                    Change::Keep => {}
                    Change::Set(_) if self.kept_secrets.contains(secret) => {
                        steps.push(SecretStep::Copy { from, to });
                    }
                    Change::Set(_) | Change::Reset => steps.push(SecretStep::Remove(to)),
                }
            }
            match change {
                Change::Keep => {}
                Change::Reset => steps.push(SecretStep::Remove(*secret)),
                Change::Set(sealed) => steps.push(SecretStep::Set(*secret, sealed)),
            }
        }
        steps
    }
}

/// A changed object with its audit log fields.
#[derive(Debug, Clone)]
pub struct AuditedChange<T> {
    /// Object to store.
    pub after: T,
    /// Fields that differ. If empty, there is nothing to store.
    pub changes: Vec<FieldChange>,
}

impl AttributionRules {
    /// Returns the rules after a change.
    #[must_use]
    pub fn changed(&self, change: &AppChange) -> Self {
        let (mut rules, default) = (self.clone(), Self::default());
        let change = change.clone();
        change
            .click_window_hours
            .apply(&mut rules.click_window_hours, default.click_window_hours);
        change
            .probabilistic_ios
            .apply(&mut rules.probabilistic_ios, default.probabilistic_ios);
        change.probabilistic_android.apply(
            &mut rules.probabilistic_android,
            default.probabilistic_android,
        );
        change.probabilistic_window_hours.apply(
            &mut rules.probabilistic_window_hours,
            default.probabilistic_window_hours,
        );
        change.fraud.apply(&mut rules.fraud, default.fraud);
        rules
    }
}

impl App {
    /// Returns the entity tag for `If-Match`.
    pub fn tag(&self) -> String {
        self.revision.number().to_string()
    }

    /// Returns the audit log fields for a new app.
    pub fn creation_changes(&self) -> Vec<FieldChange> {
        let mut changes = Changes::new();
        for (field, value) in audit_values(self) {
            changes.initial(field, value);
        }
        for secret in &self.secrets {
            changes.initial(secret.as_str(), Some("set".to_owned()));
        }
        changes.into_vec()
    }

    /// Returns the app after a change, if the precondition holds.
    pub fn changed(
        &self,
        change: AppChange,
        precondition: &Precondition,
        now: Timestamp,
    ) -> Result<AuditedChange<Self>, Refusal> {
        if !precondition.admits(&self.tag()) {
            return Err(Refusal::VersionConflict);
        }
        let mut after = self.clone();
        let mut secrets = Changes::new();
        for (secret, new) in &change.secrets {
            let before = after.secrets.contains(secret).then(|| "set".to_owned());
            match new {
                Change::Keep => {}
                Change::Reset => {
                    after.secrets.remove(secret);
                    secrets.compare(secret.as_str(), before, None);
                }
                Change::Set(_) => {
                    after.secrets.insert(*secret);
                    let is_kept = before.is_some() && change.kept_secrets.contains(secret);
                    let value = if is_kept {
                        "new value; the replaced one stays valid"
                    } else {
                        "new value"
                    };
                    secrets.compare(secret.as_str(), before, Some(value.to_owned()));
                }
            }
        }
        after.apply(change);
        let mut changes = differences(self, &after);
        changes.extend(secrets.into_vec());
        if !changes.is_empty() {
            after.revision = self.revision.next();
            after.updated_at = now;
        }
        Ok(AuditedChange { after, changes })
    }

    /// Returns the app with `skanTestSignals` as set by `/skan`; `None` if it already has that
    /// value.
    pub fn with_skan_test_signals(&self, accepted: bool, at: Option<Timestamp>) -> Option<Self> {
        (self.skan_test_signals != accepted).then(|| Self {
            skan_test_signals: accepted,
            updated_at: at.unwrap_or(self.updated_at),
            revision: self.revision.next(),
            ..self.clone()
        })
    }

    /// Returns the app with its link domain verified, or released to other claims. Refused if the
    /// app has another link domain by now, because the decision was about `host`.
    pub fn with_link_domain_verified(
        &self,
        host: &HostName,
        is_verified: bool,
        now: Timestamp,
    ) -> Result<AuditedChange<Self>, Refusal> {
        let mut after = self.clone();
        match &mut after.link_domain {
            Some(domain) if domain.host == *host => domain.is_verified = is_verified,
            _ => return Err(Refusal::VersionConflict),
        }
        let changes = differences(self, &after);
        if !changes.is_empty() {
            after.revision = self.revision.next();
            after.updated_at = now;
        }
        Ok(AuditedChange { after, changes })
    }

    /// Changes the link domain. A new domain starts as an unverified claim.
    fn change_link_domain(&mut self, change: Change<HostName>) {
        match change {
            Change::Keep => {}
            Change::Reset => self.link_domain = None,
            Change::Set(host) => {
                let current = self.link_domain.take().filter(|domain| domain.host == host);
                self.link_domain = current.or_else(|| Some(LinkDomain::claim(host)));
            }
        }
    }

    /// Applies everything except secrets.
    pub fn apply(&mut self, change: AppChange) {
        self.attribution = self.attribution.changed(&change);
        let trial = QualifiedTrial::default();
        if let Some(name) = change.name {
            self.name = name;
        }
        change.timezone.apply(&mut self.timezone, Timezone::UTC);
        change.archived.apply(&mut self.archived, false);
        change.ios_bundle_id.apply_optional(&mut self.ios.bundle_id);
        change
            .ios_app_store_id
            .apply_optional(&mut self.ios.app_store_id);
        change.ios_team_id.apply_optional(&mut self.ios.team_id);
        change
            .android_package_name
            .apply_optional(&mut self.android.package_name);
        change
            .android_sha256_cert_fingerprints
            .apply(&mut self.android.sha256_cert_fingerprints, Vec::new());
        change
            .web_events_enabled
            .apply(&mut self.web_events_enabled, false);
        self.change_link_domain(change.link_domain);
        change.sdk_enabled.apply(&mut self.sdk.enabled, true);
        change
            .sdk_revenue
            .apply(&mut self.sdk.revenue, SdkRevenue::Auto);
        change
            .sdk_attestation
            .apply(&mut self.sdk.attestation, AttestationPolicy::Off);
        change
            .sdk_identity
            .apply(&mut self.sdk.identity, IdentityMode::Open);
        change
            .qualified_trial_enabled
            .apply(&mut self.qualified_trial.enabled, trial.enabled);
        change
            .qualified_trial_delay_hours
            .apply(&mut self.qualified_trial.delay_hours, trial.delay_hours);
        change
            .skan_test_signals
            .apply(&mut self.skan_test_signals, false);
        change
            .revenue_events
            .apply(&mut self.revenue_events, Vec::new());
        change
            .deep_link_schemes
            .apply(&mut self.deep_link_schemes, Vec::new());
        change
            .alert_webhook_url
            .apply_optional(&mut self.alert_webhook_url);
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::app::{AppCreation, BillingProvider};
    use crate::vocabulary::id::{AppId, OrganizationId};

    pub(crate) fn any_app() -> App {
        let creation = AppCreation {
            id: AppId::from_bytes([1; 16]),
            organization: OrganizationId::from_bytes([2; 16]),
            live_key: "pk_live_…".to_owned(),
            test_key: "pk_test_…".to_owned(),
            at: Timestamp::from_millis(1),
        };
        App::new(creation, Name::parse("Runner").unwrap())
    }

    const LATER: Timestamp = Timestamp::from_millis(2);

    #[test]
    fn a_replaced_secret_is_kept_only_if_the_change_says_so() {
        let provider = BillingProvider::Superwall;
        let (secret, before) = (
            AppSecret::Billing(provider),
            AppSecret::BillingPrevious(provider),
        );
        let sealed = SealedSecret::from_bytes(vec![1]);
        let rotation = AppChange::rotation(AppSecret::Billing(provider), sealed.clone());
        let (from, to) = (secret, before);
        let expected_steps = [
            SecretStep::Copy { from, to },
            SecretStep::Set(secret, &sealed),
        ];
        assert_eq!(rotation.secret_steps(), expected_steps);
        let steps = |secret, change| {
            let change = AppChange {
                secrets: vec![(secret, change)],
                ..AppChange::default()
            };
            format!("{:?}", change.secret_steps())
        };
        let expected = |steps: &[SecretStep<'_>]| format!("{steps:?}");
        let set = [SecretStep::Remove(before), SecretStep::Set(secret, &sealed)];
        assert_eq!(steps(secret, Change::Set(sealed.clone())), expected(&set));
        let removed = [SecretStep::Remove(before), SecretStep::Remove(secret)];
        assert_eq!(steps(secret, Change::Reset), expected(&removed));
        assert_eq!(steps(secret, Change::Keep), expected(&[]));
        for change in [Change::Reset, Change::Keep] {
            let kept = AppChange {
                secrets: vec![(secret, change.clone())],
                kept_secrets: vec![secret],
                ..AppChange::default()
            };
            let unkept = steps(secret, change);
            assert_eq!(
                format!("{:?}", kept.secret_steps()),
                unkept,
                "nothing to keep"
            );
        }
        let other = AppSecret::SocialReferrerKey;
        let set = [SecretStep::Set(other, &sealed)];
        assert_eq!(steps(other, Change::Set(sealed.clone())), expected(&set));
    }

    #[test]
    fn a_change_bumps_the_revision_and_lists_the_differences() {
        let change = AppChange {
            web_events_enabled: Change::Set(true),
            ..AppChange::default()
        };
        let changed = any_app()
            .changed(change, &Precondition::None, LATER)
            .unwrap();
        assert!(changed.after.web_events_enabled);
        assert_eq!(changed.after.tag(), "2");
        assert_eq!(changed.after.updated_at, LATER);
        assert_eq!(
            changed.changes,
            [FieldChange {
                field: "webEvents.enabled".to_owned(),
                before: Some("false".to_owned()),
                after: Some("true".to_owned())
            }]
        );
    }

    #[test]
    fn a_link_domain_is_verified_until_it_changes() {
        let host = |text: &str| HostName::parse(text).unwrap();
        let claim = |text: &str| AppChange {
            link_domain: Change::Set(host(text)),
            ..AppChange::default()
        };
        let mut app = any_app();
        app.apply(claim("go.example.com"));
        assert_eq!(app.verified_link_domain(), None);
        let set = |app: &App, text: &str, is_verified| {
            app.with_link_domain_verified(&host(text), is_verified, LATER)
        };
        let verified = |app: &App, text: &str| set(app, text, true);
        let refused = verified(&app, "other.example.com").map(|_| ());
        assert_eq!(refused, Err(Refusal::VersionConflict));
        let changed = verified(&app, "go.example.com").unwrap();
        assert_eq!(changed.changes.len(), 1);
        assert_eq!(changed.after.tag(), "2");
        let mut app = changed.after;
        assert!(verified(&app, "go.example.com").unwrap().changes.is_empty());
        app.apply(claim("go.example.com"));
        assert_eq!(app.verified_link_domain(), Some(&host("go.example.com")));
        let released = set(&app, "go.example.com", false).unwrap();
        assert_eq!(released.after.verified_link_domain(), None);
        app.apply(claim("other.example.com"));
        assert_eq!(app.verified_link_domain(), None);
    }

    #[test]
    fn setting_the_same_value_changes_nothing() {
        let change = AppChange {
            archived: Change::Set(false),
            ..AppChange::default()
        };
        let changed = any_app()
            .changed(change, &Precondition::None, LATER)
            .unwrap();
        assert_eq!(changed.after, any_app());
        assert!(changed.changes.is_empty());
    }

    #[test]
    fn null_resets_to_the_default() {
        let mut app = any_app();
        app.attribution.click_window_hours = 5;
        app.sdk.enabled = false;
        app.ios.team_id = Some("ABCDE12345".to_owned());
        let change = AppChange {
            click_window_hours: Change::Reset,
            sdk_enabled: Change::Reset,
            ios_team_id: Change::Reset,
            ..AppChange::default()
        };
        let after = app
            .changed(change, &Precondition::None, LATER)
            .unwrap()
            .after;
        assert_eq!(after.attribution.click_window_hours, 168);
        assert!(after.sdk.enabled);
        assert_eq!(after.ios.team_id, None);
    }

    #[test]
    fn rejects_a_change_of_an_old_version() {
        let old = Precondition::AnyOf(vec!["7".to_owned()]);
        let rejected = any_app().changed(AppChange::default(), &old, LATER);
        assert_eq!(rejected.map(|_| ()), Err(Refusal::VersionConflict));
        let current = Precondition::AnyOf(vec!["7".to_owned(), "1".to_owned()]);
        assert!(
            any_app()
                .changed(AppChange::default(), &current, LATER)
                .is_ok()
        );
    }

    #[test]
    fn replacing_a_secret_is_audited_without_its_value() {
        let secret = AppSecret::Billing(BillingProvider::Revenuecat);
        let mut app = any_app();
        app.secrets.insert(secret);
        let sealed = SealedSecret::from_bytes(b"hush".to_vec());
        let change = AppChange {
            secrets: vec![(secret, Change::Set(sealed))],
            ..AppChange::default()
        };
        let changed = app.changed(change, &Precondition::None, LATER).unwrap();
        assert_eq!(changed.changes.len(), 1);
        assert!(!format!("{:?}", changed.changes).contains("hush"));
        assert_eq!(changed.after.tag(), "2");
    }
}
