//! Changes to a cost source.

use super::{CostSource, PullState, REPORTING_NETWORKS, settings};
use crate::app::AuditedChange;
use crate::audit::Changes;
use crate::integration::Credential;
use crate::refusal::Refusal;
use crate::vocabulary::change::Change;
use crate::vocabulary::fault::{FaultCode, Faults, Problem};
use crate::vocabulary::revision::Precondition;
use crate::vocabulary::time::Timestamp;
use std::collections::BTreeMap;

/// A cost source as submitted. Settings are replaced as a whole. Credentials that are not mentioned
/// stay, because they cannot be read back.
#[derive(Debug, Clone, Default)]
pub struct CostSourceDraft {
    /// Whether costs are pulled.
    pub enabled: bool,
    /// Settings by name.
    pub settings: BTreeMap<&'static str, String>,
    /// Credentials by name.
    pub credentials: BTreeMap<&'static str, Change<Credential>>,
}

impl CostSource {
    /// Applies a draft. An enabled source must be complete, and is pulled at once.
    pub fn replaced(
        &self,
        draft: CostSourceDraft,
        precondition: &Precondition,
        now: Timestamp,
    ) -> Result<AuditedChange<Self>, Refusal> {
        if !REPORTING_NETWORKS.contains(&self.network) {
            return Err(Refusal::NetworkNotFound);
        }
        self.admit(precondition)?;
        let mut after = self.clone();
        let mut changes = Changes::new();
        after.enabled = draft.enabled;
        changes.compare_values("enabled", self.enabled, after.enabled);
        after.settings = draft
            .settings
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect();
        for spec in settings::cost_settings_of(self.network) {
            let value = |source: &Self| source.settings.get(spec.name).cloned();
            changes.compare(spec.name, value(self), value(&after));
        }
        for (name, change) in draft.credentials {
            let before = self
                .credentials
                .contains_key(name)
                .then(|| "set".to_owned());
            match change {
                Change::Keep => {}
                Change::Reset => {
                    after.credentials.remove(name);
                    changes.compare(name, before, None);
                }
                Change::Set(credential) => {
                    after.credentials.insert(name.to_owned(), credential);
                    changes.compare(name, before, Some("new value".to_owned()));
                }
            }
        }
        after.require_complete()?;
        let same_account = self.settings.get("accountId") == after.settings.get("accountId");
        after.pulls = PullState {
            // Another account has another history.
            pulled_until: self.pulls.pulled_until.filter(|_| same_account),
            problem: None,
            failures: 0,
            due_at: after.enabled.then_some(now),
            ..self.pulls.clone()
        };
        let changes = changes.into_vec();
        after.revision = self.revision.next();
        after.updated_at = Some(now);
        Ok(AuditedChange { after, changes })
    }

    /// Makes the next pull due now, even if the source is paused. [`PullState::requested`] says when
    /// this changes nothing.
    pub fn pulled_now(&self, now: Timestamp) -> Result<Self, Refusal> {
        if !self.enabled {
            let message = "Must be true to pull costs. Turn the cost source on first.";
            let mut faults = Faults::new();
            faults.add("enabled", Problem::new(FaultCode::NotAllowed, message));
            return Err(Refusal::Invalid(faults));
        }
        let mut after = self.clone();
        after.pulls = self.pulls.requested(now);
        Ok(after)
    }

    fn require_complete(&self) -> Result<(), Refusal> {
        let mut faults = Faults::new();
        let missing = settings::missing(self).into_iter();
        for (section, name) in missing.filter(|_| self.enabled) {
            let message = "Required while enabled is true.";
            let problem = Problem::new(FaultCode::Required, message);
            faults.add(format!("{section}.{name}"), problem);
        }
        faults.into_result().map_err(Refusal::Invalid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost_source::PullProblem;
    use crate::integration::{IntegrationStatus, Network};
    use crate::keyring::seal::SealedSecret;
    use crate::vocabulary::day::Day;
    use crate::vocabulary::id::AppId;

    const NOW: Timestamp = Timestamp::from_millis(5);
    const ANY: Precondition = Precondition::None;

    fn source(network: Network) -> CostSource {
        CostSource::new(AppId::from_bytes([1; 16]), network)
    }

    fn secret() -> Change<Credential> {
        Change::Set(Credential {
            sealed: SealedSecret::from_bytes(b"hush".to_vec()),
            hint: None,
        })
    }

    fn draft(account: &str) -> CostSourceDraft {
        CostSourceDraft {
            enabled: true,
            settings: BTreeMap::from([("accountId", account.to_owned())]),
            credentials: BTreeMap::from([("accessToken", secret())]),
        }
    }

    #[test]
    fn an_enabled_source_must_be_complete_and_is_pulled_at_once() {
        let empty = CostSourceDraft {
            enabled: true,
            ..CostSourceDraft::default()
        };
        let Err(Refusal::Invalid(faults)) = source(Network::B).replaced(empty, &ANY, NOW) else {
            panic!("it is incomplete");
        };
        let fields: Vec<&str> = faults.iter().map(|fault| &*fault.field).collect();
        let expected = [
            "settings.accountId",
            "settings.clientId",
            "credentials.developerToken",
            "credentials.clientSecret",
            "credentials.refreshToken",
        ];
        assert_eq!(fields, expected);
        let off = source(Network::B).replaced(CostSourceDraft::default(), &ANY, NOW);
        assert_eq!(off.unwrap().after.pulls.due_at, None);
        let on = source(Network::C).replaced(draft("7"), &ANY, NOW).unwrap();
        assert_eq!(on.after.pulls.due_at, Some(NOW));
        assert!(!format!("{on:?}").contains("hush"));
        assert!(source(Network::D).replaced(draft("7"), &ANY, NOW).is_err());
    }

    #[test]
    fn credentials_stay_and_another_account_is_pulled_from_the_start() {
        let mut first = source(Network::A)
            .replaced(draft("7"), &ANY, NOW)
            .unwrap()
            .after;
        first.pulls.pulled_until = Some(Day::from_days(9));
        first.pulls.failures = 3;
        let kept = CostSourceDraft {
            credentials: BTreeMap::new(),
            ..draft("7")
        };
        let same = first.replaced(kept.clone(), &ANY, NOW).unwrap().after;
        assert_eq!(same.credentials.len(), 1);
        assert_eq!(same.pulls.pulled_until, Some(Day::from_days(9)));
        assert_eq!(same.pulls.failures, 0);
        let other = CostSourceDraft {
            settings: BTreeMap::from([("accountId", "8".to_owned())]),
            ..kept
        };
        assert_eq!(
            first
                .replaced(other, &ANY, NOW)
                .unwrap()
                .after
                .pulls
                .pulled_until,
            None
        );
    }

    #[test]
    fn an_outdated_version_is_refused_even_after_a_removal() {
        let first = source(Network::A).replaced(draft("7"), &ANY, NOW);
        let first = first.unwrap().after;
        let tag = |one: &CostSource| Precondition::AnyOf(vec![one.tag()]);
        let never_set = tag(&source(Network::A));
        let later = Timestamp::from_millis(6);
        assert_eq!(
            first.replaced(draft("8"), &never_set, later).err(),
            Some(Refusal::VersionConflict)
        );
        assert!(first.replaced(draft("8"), &tag(&first), later).is_ok());
        let set_again = source(Network::A).replaced(draft("9"), &never_set, later);
        let set_again = set_again.unwrap().after;
        assert_eq!(set_again.revision, first.revision);
        assert!(set_again.admit(&tag(&first)).is_err());
    }

    #[test]
    fn a_paused_source_can_be_pulled_and_one_that_is_off_cannot() {
        let mut on = source(Network::A)
            .replaced(draft("7"), &ANY, NOW)
            .unwrap()
            .after;
        on.pulls.due_at = None;
        on.pulls.problem = Some(PullProblem {
            code: "190".to_owned(),
            message: "Expired.".to_owned(),
            is_refusal: true,
        });
        assert_eq!(on.status().0, IntegrationStatus::Paused);
        assert_eq!(on.pulled_now(NOW).unwrap().pulls.due_at, Some(NOW));
        assert!(source(Network::A).pulled_now(NOW).is_err());
        assert_eq!(
            source(Network::A).status().0,
            IntegrationStatus::NotConfigured
        );
    }
}
