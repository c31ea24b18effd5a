//! Batches of `configure` calls. A store reads the facts for many calls at once and decides the
//! calls in order. The result must be the same as if it read the facts for each call after writing
//! the one before it. So a call whose facts an earlier call changes is postponed to the next batch,
//! and so are the app's later calls. Calls of different apps do not depend on each other.

use super::configure::{
    CandidateClicks, ClaimedClick, ConfigureCommand, ConfigureDecision, candidate_query,
};
use super::device_state::DeviceState;
use crate::access::Environment;
use crate::click::Click;
use crate::device::{DeviceRef, UserKey};
use crate::vocabulary::digest::Digest;
use crate::vocabulary::id::{AppId, ClickId};
use std::collections::BTreeSet;

/// Returns the calls whose facts can be read at once, in order. These calls come from different
/// devices, and none of them could find the app link click of a later one. Each app's other calls
/// come after these.
pub fn independent_calls(commands: &[ConfigureCommand]) -> Vec<&ConfigureCommand> {
    let mut devices = BTreeSet::new();
    let mut postponed = BTreeSet::new();
    let mut calls: Vec<&ConfigureCommand> = Vec::with_capacity(commands.len());
    for command in commands {
        let mut earlier = calls.iter();
        let click = command.app_link_click.as_ref();
        let depends = !devices.insert(command.device_ref())
            || click.is_some_and(|click| earlier.any(|one| could_find(one, click)));
        if depends {
            postponed.insert(command.app);
        }
        if !postponed.contains(&command.app) {
            calls.push(command);
        }
    }
    calls
}

fn could_find(command: &ConfigureCommand, click: &Click) -> bool {
    let hashes = &command.address_hashes;
    let is_named = |claimed: &ClaimedClick| *claimed == ClaimedClick::Authentic(click.id);
    command.app == click.app
        && (click
            .address_hash
            .is_some_and(|hash| hashes.contains(&hash))
            || (command.advertising_hash.is_some()
                && command.advertising_hash == click.advertising_hash)
            || command.claims.iter().any(|claim| is_named(&claim.click)))
}

/// Changes made by the decided calls of a batch. The facts of the later calls were read before
/// these changes.
#[derive(Debug, Default)]
pub struct BatchChanges {
    taken_clicks: BTreeSet<(AppId, ClickId)>,
    /// Addresses of new installs with a link.
    installs: BTreeSet<(AppId, Environment, Digest)>,
    /// Apps in which a device got another decision. It may have released a click, or moved the
    /// device to another link.
    redecided: BTreeSet<AppId>,
    claimed_users: BTreeSet<(AppId, Environment, UserKey)>,
    /// Addresses that claimed a user.
    claiming: BTreeSet<(AppId, Environment, Digest)>,
    /// Apps with a postponed call.
    postponed: BTreeSet<AppId>,
}

impl BatchChanges {
    /// Adds the changes of a call.
    pub fn add(&mut self, command: &ConfigureCommand, decision: &ConfigureDecision) {
        let (app, environment) = (command.app, command.environment);
        let taken = decision.taken_click.map(|click| (app, click));
        self.taken_clicks.extend(taken);
        if decision.is_first_open {
            let link = decision.attribution.decision.link;
            let address = command.address_hash.filter(|_| link.is_some());
            let address = address.map(|hash| (app, environment, hash));
            self.installs.extend(address);
        } else if decision.is_new_decision {
            self.redecided.insert(app);
        }
        if let Some(claim) = &decision.user_claim {
            let user = (app, environment, claim.user.clone());
            self.claimed_users.insert(user);
            let address = claim.address_hash.map(|hash| (app, environment, hash));
            self.claiming.extend(address);
        }
    }

    /// Returns whether a call must be postponed, because its facts may be outdated by these changes
    /// or because an earlier call of its app was postponed.
    pub fn postpone(
        &mut self,
        command: &ConfigureCommand,
        state: &DeviceState,
        found: &CandidateClicks,
    ) -> bool {
        let is_postponed =
            self.postponed.contains(&command.app) || self.concern(command, state, found);
        if is_postponed {
            self.postponed.insert(command.app);
        }
        is_postponed
    }

    /// Returns whether the facts of a call may be outdated by these changes.
    fn concern(
        &self,
        command: &ConfigureCommand,
        state: &DeviceState,
        found: &CandidateClicks,
    ) -> bool {
        self.concern_candidates(command, state, found) || self.concern_claim(command, state)
    }

    fn concern_candidates(
        &self,
        command: &ConfigureCommand,
        state: &DeviceState,
        found: &CandidateClicks,
    ) -> bool {
        let query = candidate_query(command, state);
        if self.redecided.contains(&command.app) && !query.is_empty() {
            return true;
        }
        let (app, environment) = (command.app, command.environment);
        let mut hashes = query.address_hashes.iter();
        let mut candidates = found.all();
        hashes.any(|hash| self.installs.contains(&(app, environment, *hash)))
            || candidates.any(|one| self.taken_clicks.contains(&(app, one.click.id)))
    }

    fn concern_claim(&self, command: &ConfigureCommand, state: &DeviceState) -> bool {
        let claim = &command.identity;
        if !claim.needs_facts(&state.identity) {
            return false;
        }
        let (app, environment) = (command.app, command.environment);
        let is_claiming = |hash| self.claiming.contains(&(app, environment, hash));
        let user = claim.user.clone();
        user.is_some_and(|user| self.claimed_users.contains(&(app, environment, user)))
            || claim.address_hash.is_some_and(is_claiming)
    }
}

impl ConfigureCommand {
    /// Returns the calling device.
    pub const fn device_ref(&self) -> DeviceRef<'_> {
        DeviceRef {
            app: self.app,
            environment: self.environment,
            key: &self.device,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{ClaimFacts, DeviceKey, IdentityClaim, Platform};
    use crate::forwarding::plan::samples::click;
    use crate::install::tests::{after, call, call_with_click, click_id, configure, found_click};
    use rstest::rstest;

    /// A first call from a device, without evidence.
    fn of_device(name: &str) -> ConfigureCommand {
        ConfigureCommand {
            device: DeviceKey::stored(name.to_owned()),
            address_hashes: Vec::new(),
            advertising_hash: None,
            ..call(Platform::Android, 60)
        }
    }

    fn from_address(name: &str) -> ConfigureCommand {
        let address = Digest::of(b"address");
        ConfigureCommand {
            address_hash: Some(address),
            address_hashes: vec![address],
            ..of_device(name)
        }
    }

    fn claiming(name: &str, user: &str, address: &[u8]) -> ConfigureCommand {
        ConfigureCommand {
            identity: IdentityClaim {
                user: UserKey::parse(user).ok(),
                address_hash: Some(Digest::of(address)),
                ..IdentityClaim::default()
            },
            ..of_device(name)
        }
    }

    fn with_click(name: &str) -> ConfigureCommand {
        ConfigureCommand {
            claims: call_with_click(ClaimedClick::Authentic(click_id(1)), 60).claims,
            ..from_address(name)
        }
    }

    fn opened_link(name: &str) -> ConfigureCommand {
        let mut opened = click();
        opened.app = of_device(name).app;
        opened.address_hash = Some(Digest::of(b"address"));
        ConfigureCommand {
            app_link_click: Some(opened),
            ..of_device(name)
        }
    }

    fn in_other_app(command: ConfigureCommand) -> ConfigureCommand {
        ConfigureCommand {
            app: AppId::from_bytes([9; 16]),
            ..command
        }
    }

    #[rstest]
    #[case::different_devices(&[of_device("a"), of_device("b")], &[0, 1])]
    #[case::one_device_twice(&[of_device("a"), of_device("a"), of_device("b")], &[0])]
    #[case::another_app(
        &[of_device("a"), of_device("a"), in_other_app(of_device("a")), of_device("b")],
        &[0, 2]
    )]
    #[case::click_that_an_earlier_call_could_find(&[from_address("a"), opened_link("b")], &[0])]
    #[case::click_that_a_later_call_could_find(&[opened_link("a"), from_address("b")], &[0, 1])]
    #[case::nothing(&[], &[])]
    fn reads_the_facts_of_independent_calls(
        #[case] commands: &[ConfigureCommand],
        #[case] expected: &[usize],
    ) {
        let expected: Vec<_> = expected.iter().map(|index| &commands[*index]).collect();
        assert_eq!(independent_calls(commands), expected);
    }

    #[test]
    fn a_postponed_call_postpones_the_later_ones_of_its_app() {
        let (state, found) = (DeviceState::default(), CandidateClicks::default());
        let earlier = with_click("a");
        let decision = configure(&earlier, &state, found_click(1, 0));
        let mut changes = BatchChanges::default();
        changes.add(&earlier, &decision);
        let calls = [
            of_device("b"),
            from_address("c"),
            of_device("d"),
            in_other_app(from_address("e")),
        ];
        let postponed = calls.map(|call| changes.postpone(&call, &state, &found));
        assert_eq!(postponed, [false, true, true, false]);
    }

    #[rstest]
    #[case::no_evidence(of_device("b"), false)]
    #[case::same_click(with_click("b"), true)]
    #[case::install_from_the_same_address(from_address("b"), true)]
    fn a_click_that_is_taken_outdates_facts(
        #[case] later: ConfigureCommand,
        #[case] expected: bool,
    ) {
        let earlier = with_click("a");
        let (state, found) = (DeviceState::default(), found_click(1, 0));
        let decision = configure(&earlier, &state, found.clone());
        assert_eq!(decision.taken_click, Some(click_id(1)));
        let mut changes = BatchChanges::default();
        changes.add(&earlier, &decision);
        let found = if later.claims.is_empty() {
            CandidateClicks::default()
        } else {
            found
        };
        assert_eq!(changes.concern(&later, &state, &found), expected);
    }

    #[test]
    fn a_click_taken_by_another_app_outdates_nothing() {
        let earlier = with_click("a");
        let (state, found) = (DeviceState::default(), found_click(1, 0));
        let decision = configure(&earlier, &state, found.clone());
        let mut changes = BatchChanges::default();
        changes.add(&earlier, &decision);
        let later = in_other_app(with_click("b"));
        assert!(!changes.concern(&later, &state, &found));
    }

    #[rstest]
    #[case::same_user(claiming("b", "user", b"other"), true)]
    #[case::same_address(claiming("b", "other", b"address"), true)]
    #[case::another_user(claiming("b", "other", b"other"), false)]
    #[case::no_user(of_device("b"), false)]
    fn a_claim_outdates_facts(#[case] later: ConfigureCommand, #[case] expected: bool) {
        let earlier = claiming("a", "user", b"address");
        let state = DeviceState::default();
        let (found, claims) = (CandidateClicks::default(), ClaimFacts::default());
        let decision = crate::install::configure(&earlier, &state, found.clone(), &claims);
        let mut changes = BatchChanges::default();
        changes.add(&earlier, &decision);
        assert_eq!(changes.concern(&later, &state, &found), expected);
    }

    /// The earlier device's first call had no evidence; the second one names a click.
    #[rstest]
    #[case::evidence(from_address("b"), true)]
    #[case::no_evidence(of_device("b"), false)]
    fn a_better_decision_outdates_all_candidates(
        #[case] later: ConfigureCommand,
        #[case] expected: bool,
    ) {
        let (empty, none) = (DeviceState::default(), CandidateClicks::default());
        let state = after(configure(&of_device("a"), &empty, none.clone()));
        let earlier = with_click("a");
        let decision = configure(&earlier, &state, found_click(1, 0));
        assert!(!decision.is_first_open && decision.is_new_decision);
        let mut changes = BatchChanges::default();
        changes.add(&earlier, &decision);
        assert_eq!(changes.concern(&later, &empty, &none), expected);
    }
}
