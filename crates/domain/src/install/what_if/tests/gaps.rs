//! Installs whose evidence is not stored.

use super::traffic::*;
use crate::erasure::pseudonym;
use crate::install::what_if::StoredInstall;
use crate::retention::redact_attribution;
use rstest::rstest;

/// An install by a click id that the device sent two hours after the click.
fn install() -> StoredInstall {
    let opens = [SampleOpen {
        claims: Some(1),
        ..open(2 * HOUR)
    }];
    let installs = record(&[click(1, 0)], &opens, &rules(|_| ()));
    installs.into_iter().next().unwrap()
}

#[rstest]
#[case::redacted(|install: &mut StoredInstall| {
    install.attribution = redact_attribution(install.attribution.clone());
}, "evidence_removed")]
#[case::erased(|install: &mut StoredInstall| {
    install.device.key = pseudonym([1; 16]);
}, "evidence_removed")]
#[case::imported(|install: &mut StoredInstall| {
    install.attribution.decision.evidence.address_class = None;
}, "evidence_removed")]
#[case::click_removed(|install: &mut StoredInstall| install.clicks.clear(), "click_removed")]
#[case::another_campaign(|install: &mut StoredInstall| {
    install.attribution.decision.campaign.id = Some("other".to_owned());
}, "not_reproduced")]
#[case::improved_without_a_first_decision(|install: &mut StoredInstall| {
    install.attribution.revision = 2;
    install.attribution.decided_at = crate::install::tests::at(90 * HOUR);
}, "late_evidence")]
fn an_install_that_cannot_be_replayed_keeps_its_credit(
    #[case] change: fn(&mut StoredInstall),
    #[case] expected: &str,
) {
    let mut install = install();
    change(&mut install);
    let report = replay(&[install], &rules(|rules| rules.click_window_hours = 1));
    assert_eq!(gaps(&report), [(expected, 1)]);
    assert_eq!((report.moved, report.installs), (0, 1));
    assert_eq!(report.total.now, report.total.then);
}

#[rstest]
#[case::address(|_: &mut StoredInstall| (), "address_unknown")]
#[case::apple_ad(|install: &mut StoredInstall| {
    install.attribution.decision.evidence.ad_services = Some("tap".to_owned());
}, "apple_ad_unknown")]
#[case::store_ad(|install: &mut StoredInstall| {
    install.attribution.decision.evidence.referrer = Some("meta".to_owned());
}, "store_ad_unknown")]
fn a_new_credit_may_be_unknown(#[case] change: fn(&mut StoredInstall), #[case] expected: &str) {
    let mut install = install();
    change(&mut install);
    let same = replay(std::slice::from_ref(&install), &rules(|_| ()));
    assert_eq!((same.moved, same.gaps.len()), (0, 0));
    let report = replay(&[install], &rules(|rules| rules.click_window_hours = 1));
    assert_eq!(gaps(&report), [(expected, 1)]);
    assert_eq!(moves(&report), ["network_b campaign-1 > unknown: 1"]);
    assert_eq!(report.total.then.figures.installs, 1);
    assert_eq!(report.total.then.figures.organic_installs, 0);
}

#[test]
fn a_crowded_address_is_not_replayed() {
    let clicks: Vec<_> = (0..21)
        .map(|number| SampleClick {
            is_near: true,
            ..click(number, i64::from(number))
        })
        .collect();
    let opens = [SampleOpen {
        is_near: true,
        ..open(HOUR)
    }];
    let installs = record(&clicks, &opens, &rules(|_| ()));
    let report = replay(&installs, &rules(|_| ()));
    assert_eq!(gaps(&report), [("candidates_cut", 1)]);
    assert_eq!(report.moved, 0);
}
