use super::*;
use crate::forwarding::delivery::delivery_id;
use crate::vocabulary::id::EventId;
use rstest::rstest;
use std::collections::BTreeMap;

const NOW: Timestamp = Timestamp::from_millis(1_000);
const ENDED: i64 = 1_000;
const LATER: i64 = 2_000;

const OFF: QueueSharing = QueueSharing::Off;
const OFFERED: QueueSharing = QueueSharing::Offered;
const WANTED: QueueSharing = QueueSharing::Wanted;

/// Backlog from which the queues in these tests are shared.
const LARGE: u32 = 100;
const SMALL: u32 = LARGE - 1;

/// A part's number, whether it is held, and when its lease ends.
type Part = (u8, bool, i64);

fn facts(sharing: QueueSharing, leased_until: i64, parts: &[Part], due: u32) -> SharingFacts {
    let lease = |(part, is_held, until): &Part| PartLease {
        part: QueuePart(*part),
        is_held: *is_held,
        until: Timestamp::from_millis(*until),
    };
    SharingFacts {
        state: QueueState::default(),
        sharing,
        leased_until: Some(Timestamp::from_millis(leased_until)),
        parts: parts.iter().map(lease).collect(),
        due,
        shared_from: LARGE,
    }
}

const fn whole(sharing: QueueSharing) -> ShareDecision {
    ShareDecision::Take {
        share: QueueShare::Whole,
        sharing,
    }
}

const fn part(number: u8) -> ShareDecision {
    ShareDecision::Take {
        share: QueueShare::Part(QueuePart(number)),
        sharing: WANTED,
    }
}

const REFUSE: ShareDecision = ShareDecision::Refuse;
const ASK: ShareDecision = ShareDecision::Announce(WANTED);
const WITHDRAW: ShareDecision = ShareDecision::Announce(OFF);
const ALL_HELD: &[Part] = &[
    (0, true, LATER),
    (1, true, LATER),
    (2, true, LATER),
    (3, true, LATER),
];

#[rstest]
#[case::free(OFF, ENDED, &[], SMALL, whole(OFF))]
#[case::free_and_large(OFF, ENDED, &[], LARGE, whole(OFFERED))]
#[case::still_large(OFFERED, ENDED, &[], LARGE, whole(OFFERED))]
#[case::small_again(OFFERED, ENDED, &[], SMALL, whole(OFF))]
#[case::small_although_shared_before(WANTED, ENDED, &[], SMALL, whole(OFF))]
#[case::free_and_wanted(WANTED, ENDED, &[], LARGE, part(0))]
#[case::leased(OFF, LATER, &[], SMALL, REFUSE)]
#[case::leased_and_large_but_not_offered(OFF, LATER, &[], LARGE, REFUSE)]
#[case::offered(OFFERED, LATER, &[], LARGE, ASK)]
#[case::offered_but_small_by_now(OFFERED, LATER, &[], SMALL, WITHDRAW)]
#[case::holder_has_not_stopped_yet(WANTED, LATER, &[], LARGE, REFUSE)]
#[case::one_part_is_held(WANTED, LATER, &[(0, true, LATER)], LARGE, part(1))]
#[case::a_part_was_released(WANTED, LATER, &[(0, false, 900), (1, true, LATER)], LARGE, part(2))]
#[case::never_leased_parts_come_first(
    WANTED, LATER, &[(0, false, 10), (1, true, LATER), (2, false, 20)], LARGE, part(3)
)]
#[case::then_the_one_that_waits_longest(
    WANTED, LATER, &[(0, false, 30), (1, true, LATER), (2, false, 20), (3, false, 40)], LARGE, part(2)
)]
#[case::a_lost_part_is_taken_over(
    WANTED, LATER, &[(0, true, LATER), (1, true, LATER), (2, true, ENDED), (3, true, LATER)], LARGE, part(2)
)]
#[case::all_parts_are_held(WANTED, LATER, ALL_HELD, LARGE, REFUSE)]
#[case::parts_end_before_the_whole_is_leased(WANTED, LATER, &[(0, true, LATER)], SMALL, REFUSE)]
#[case::all_leases_of_parts_ended(WANTED, ENDED, &[(0, true, ENDED)], SMALL, whole(OFF))]
#[case::parts_of_an_older_split(OFF, LATER, &[(0, false, LATER)], LARGE, REFUSE)]
fn decisions(
    #[case] sharing: QueueSharing,
    #[case] leased_until: i64,
    #[case] parts: &[Part],
    #[case] due: u32,
    #[case] expected: ShareDecision,
) {
    assert_eq!(
        facts(sharing, leased_until, parts, due).decide(NOW),
        expected
    );
}

#[rstest]
#[case::free(OFF, ENDED, &[], false)]
#[case::leased(OFF, LATER, &[], true)]
#[case::offered(OFFERED, LATER, &[], false)]
#[case::holder_has_not_stopped_yet(WANTED, LATER, &[], true)]
#[case::a_part_is_free(WANTED, LATER, &[(0, true, LATER)], false)]
#[case::all_parts_are_held(WANTED, LATER, ALL_HELD, true)]
fn deliveries_are_counted_only_if_their_number_matters(
    #[case] sharing: QueueSharing,
    #[case] leased_until: i64,
    #[case] parts: &[Part],
    #[case] is_refused: bool,
) {
    let decide = |due| facts(sharing, leased_until, parts, due).decide(NOW);
    let refused = [SMALL, LARGE].map(|due| decide(due) == REFUSE);
    assert_eq!(refused == [true, true], is_refused);
    let mut facts = facts(sharing, leased_until, parts, 0);
    assert_eq!(facts.is_refused(NOW), is_refused);
    facts.state.pause(NOW, "190", None);
    assert!(facts.is_refused(NOW), "paused");
}

#[test]
fn a_released_queue_is_free_even_if_clocks_differ() {
    let mut facts = facts(OFF, LATER, &[], SMALL);
    facts.leased_until = None;
    assert_eq!(facts.decide(NOW), whole(OFF));
}

#[rstest]
#[case::free(WANTED, ENDED, &[], whole(OFFERED))]
#[case::offered(OFFERED, LATER, &[], REFUSE)]
#[case::parts(WANTED, LATER, &[(0, true, LATER)], REFUSE)]
fn one_holder_probes(
    #[case] sharing: QueueSharing,
    #[case] leased_until: i64,
    #[case] parts: &[Part],
    #[case] expected: ShareDecision,
) {
    let mut facts = facts(sharing, leased_until, parts, LARGE);
    facts.state.is_probing = true;
    assert_eq!(facts.decide(NOW), expected);
}

#[test]
fn a_stopped_queue_is_not_leased() {
    let mut paused = facts(WANTED, ENDED, &[], LARGE);
    paused.state.pause(NOW, "190", None);
    assert_eq!(paused.decide(NOW), REFUSE);
    let mut waiting = facts(OFF, ENDED, &[], SMALL);
    waiting.state.not_before = Some(Timestamp::from_millis(LATER));
    assert_eq!(waiting.decide(NOW), REFUSE);
    assert_eq!(waiting.decide(Timestamp::from_millis(LATER)), whole(OFF));
}

#[rstest]
#[case::none(&[], None)]
#[case::only_this_one(&[(1, true, LATER)], None)]
#[case::another(&[(0, true, 1_500), (1, true, LATER)], Some(1_500))]
#[case::the_last_of_two(&[(0, true, 1_500), (1, true, LATER), (2, true, 1_700)], Some(1_700))]
#[case::released_or_ended(&[(0, false, LATER), (2, true, ENDED)], None)]
fn a_queue_is_leased_until_the_last_part_ends(
    #[case] parts: &[Part],
    #[case] expected: Option<i64>,
) {
    let parts = facts(WANTED, LATER, parts, LARGE).parts;
    let end = lease_end_without(&parts, QueuePart(1), NOW);
    assert_eq!(end, expected.map(Timestamp::from_millis));
}

#[rstest]
#[case::network_a(Network::A, 3_200)]
#[case::network_b(Network::B, 16_000)]
#[case::network_c(Network::C, 3_200)]
#[case::network_d(Network::D, 1_600)]
fn backlogs_of_several_rounds_are_shared(#[case] network: Network, #[case] expected: u32) {
    assert_eq!(shared_from(network), expected);
}

#[test]
fn every_delivery_is_in_one_part_and_parts_are_of_similar_size() {
    let mut sizes: BTreeMap<QueuePart, usize> = BTreeMap::new();
    for number in 0_u64..4_000 {
        let mut random = [0; 10];
        random[..8].copy_from_slice(&number.to_be_bytes());
        let id = delivery_id(EventId::new(NOW, random), Network::A);
        let shares = QueuePart::all().map(QueueShare::Part);
        assert_eq!(shares.filter(|share| share.contains(&id)).count(), 1);
        assert!(QueueShare::Whole.contains(&id));
        *sizes.entry(QueuePart::of(&id)).or_default() += 1;
    }
    assert_eq!(sizes.len(), usize::from(PARTS));
    assert!(
        sizes.values().all(|size| (900..1_100).contains(size)),
        "{sizes:?}"
    );
}

#[rstest]
#[case::first(0, Some(0))]
#[case::last(3, Some(3))]
#[case::too_large(4, None)]
#[case::negative(-1, None)]
fn stored_parts(#[case] number: i64, #[case] expected: Option<i64>) {
    let part = QueuePart::from_number(number);
    assert_eq!(part.map(QueuePart::number), expected);
}

#[test]
fn one_holder_checks_the_status_of_requests() {
    let checking = QueuePart::all().filter(|part| QueueShare::Part(*part).checks_status());
    assert_eq!(checking.count(), 1);
    assert!(QueueShare::Whole.checks_status());
}

const WHOLE: Option<QueueShare> = Some(QueueShare::Whole);
const PART: Option<QueueShare> = Some(QueueShare::Part(QueuePart(2)));

#[rstest]
#[case::whole(WHOLE, OFF, 7, false, WHOLE)]
#[case::offered(WHOLE, OFFERED, 7, false, WHOLE)]
#[case::another_node_wants_a_share(WHOLE, WANTED, 7, false, None)]
#[case::part(PART, WANTED, 7, false, PART)]
#[case::changed(PART, WANTED, 8, false, None)]
#[case::stopped_by_another_holder(PART, WANTED, 7, true, None)]
#[case::lost(None, OFF, 7, false, None)]
fn continuing(
    #[case] share: Option<QueueShare>,
    #[case] sharing: QueueSharing,
    #[case] revision: i64,
    #[case] is_waiting: bool,
    #[case] expected: Option<QueueShare>,
) {
    let facts = LeaseFacts {
        share,
        version: Some(IntegrationVersion {
            revision: 7,
            enabled: true,
        }),
        state: QueueState {
            not_before: is_waiting.then_some(Timestamp::from_millis(LATER)),
            ..QueueState::default()
        },
        sharing,
    };
    assert_eq!(facts.continued_share(revision, NOW), expected);
}
