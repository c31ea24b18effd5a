use super::samples::SamplePasskeyDevice;
use super::*;
use crate::vocabulary::digest::from_hex;
use rstest::rstest;
use serde_json::Value;
use std::collections::BTreeMap;

const NOW: Timestamp = Timestamp::from_millis(1_790_000_000_000);
const USER: UserId = UserId::from_bytes([1; 16]);
const STRANGER: UserId = UserId::from_bytes([2; 16]);
/// Test vectors of the specification.
const VECTORS: &str = include_str!("vectors.txt");

fn here() -> RelyingParty {
    RelyingParty::of("https://example.org").unwrap()
}

fn challenge(byte: u8) -> PasskeyChallenge {
    PasskeyChallenge::new([byte; CHALLENGE_RANDOM_BYTES], NOW)
}

fn register(
    registration: &Registration,
    challenge: &PasskeyChallenge,
) -> Result<Passkey, PasskeyFault> {
    let expected = PasskeyExpectation {
        challenge,
        relying_party: &here(),
    };
    check_registration(registration, &expected)
}

fn sign_in(
    assertion: &Assertion,
    passkey: &Passkey,
    asked: Option<UserId>,
) -> Result<PasskeyUse, PasskeyFault> {
    let expected = PasskeyExpectation {
        challenge: &challenge(2),
        relying_party: &here(),
    };
    check_assertion(assertion, (USER, passkey), asked, &expected)
}

fn device() -> SamplePasskeyDevice {
    SamplePasskeyDevice::new(5, USER, &here())
}

fn passkey() -> Passkey {
    register(&device().register(&challenge(1)), &challenge(1)).unwrap()
}

#[test]
fn a_registered_passkey_signs_in() {
    let passkey = passkey();
    assert_eq!(passkey.credential.as_bytes(), [5; 32]);
    assert_eq!(passkey.key.as_cose(), device().cose_key());
    assert!(passkey.can_sync && passkey.is_synced);
    let used = PasskeyUse {
        counter: 0,
        is_synced: true,
        challenged_at: NOW,
    };
    let assertion = device().sign(&challenge(2));
    assert_eq!(sign_in(&assertion, &passkey, None), Ok(used));
    assert_eq!(sign_in(&assertion, &passkey, Some(USER)), Ok(used));
}

#[rstest]
#[case::wrong_origin(|one: &mut SamplePasskeyDevice| one.origin = "https://example.org.evil.test".to_owned(), PasskeyFault::Origin)]
#[case::plain_http(|one: &mut SamplePasskeyDevice| one.origin = "http://example.org".to_owned(), PasskeyFault::Origin)]
#[case::another_port(|one: &mut SamplePasskeyDevice| one.origin = "https://example.org:8443".to_owned(), PasskeyFault::Origin)]
#[case::in_a_frame(|one: &mut SamplePasskeyDevice| one.is_cross_origin = true, PasskeyFault::Origin)]
#[case::another_host(
    |one: &mut SamplePasskeyDevice| one.relying_party = RelyingParty::of("https://evil.test").unwrap(),
    PasskeyFault::RelyingParty
)]
#[case::not_present(|one: &mut SamplePasskeyDevice| one.flags = 0x04, PasskeyFault::NotVerified)]
#[case::not_verified(|one: &mut SamplePasskeyDevice| one.flags = 0x01, PasskeyFault::NotVerified)]
#[case::synced_but_cannot(|one: &mut SamplePasskeyDevice| one.flags = 0x15, PasskeyFault::BackupFlags)]
fn both_ceremonies_check_browser_and_device(
    #[case] change: fn(&mut SamplePasskeyDevice),
    #[case] expected: PasskeyFault,
) {
    let mut changed = device();
    change(&mut changed);
    let registered = register(&changed.register(&challenge(1)), &challenge(1));
    assert_eq!(registered, Err(expected));
    let signed = changed.sign(&challenge(2));
    assert_eq!(sign_in(&signed, &passkey(), None), Err(expected));
}

#[test]
fn a_challenge_and_a_ceremony_cannot_be_exchanged() {
    let device = device();
    let other = register(&device.register(&challenge(9)), &challenge(1));
    assert_eq!(other, Err(PasskeyFault::Challenge));
    let other = sign_in(&device.sign(&challenge(9)), &passkey(), None);
    assert_eq!(other, Err(PasskeyFault::Challenge));
    let swapped = SamplePasskeyDevice {
        ceremony: Some(Ceremony::SignIn),
        ..device.clone()
    };
    let registered = register(&swapped.register(&challenge(1)), &challenge(1));
    assert_eq!(registered, Err(PasskeyFault::Ceremony));
    let swapped = SamplePasskeyDevice {
        ceremony: Some(Ceremony::Registration),
        ..device
    };
    let signed = sign_in(&swapped.sign(&challenge(2)), &passkey(), None);
    assert_eq!(signed, Err(PasskeyFault::Ceremony));
}

#[rstest]
#[case::another_key(|one: &mut Assertion| *one = SamplePasskeyDevice { key: 6, ..device() }.sign(&challenge(2)), PasskeyFault::Signature)]
#[case::forged_counter(|one: &mut Assertion| one.authenticator_data[36] = 9, PasskeyFault::Signature)]
#[case::forged_client_data(|one: &mut Assertion| one.client_data.json.push(b' '), PasskeyFault::Signature)]
#[case::truncated_signature(|one: &mut Assertion| one.signature.truncate(20), PasskeyFault::Signature)]
#[case::no_signature(|one: &mut Assertion| one.signature.clear(), PasskeyFault::Signature)]
#[case::long_signature(|one: &mut Assertion| one.signature = vec![0; 513], PasskeyFault::Malformed)]
#[case::truncated_data(|one: &mut Assertion| one.authenticator_data.truncate(36), PasskeyFault::Malformed)]
#[case::no_data(|one: &mut Assertion| one.authenticator_data.clear(), PasskeyFault::Malformed)]
#[case::left_over_data(|one: &mut Assertion| one.authenticator_data.push(0), PasskeyFault::Malformed)]
#[case::long_data(|one: &mut Assertion| one.authenticator_data.resize(5_000, 0), PasskeyFault::Malformed)]
#[case::long_client_data(|one: &mut Assertion| one.client_data.json.resize(5_000, b' '), PasskeyFault::Malformed)]
#[case::cannot_sync_any_more(|one: &mut Assertion| {
    *one = SamplePasskeyDevice { flags: 0x05, ..device() }.sign(&challenge(2));
}, PasskeyFault::BackupFlags)]
#[case::another_credential(|one: &mut Assertion| one.credential = CredentialId(vec![6]), PasskeyFault::Owner)]
#[case::of_a_stranger(|one: &mut Assertion| one.user_handle = Some(STRANGER.as_bytes().to_vec()), PasskeyFault::Owner)]
#[case::truncated_user(|one: &mut Assertion| one.user_handle = Some(vec![1; 15]), PasskeyFault::Owner)]
fn rejects_forged_and_truncated_uses(
    #[case] change: fn(&mut Assertion),
    #[case] expected: PasskeyFault,
) {
    let mut assertion = device().sign(&challenge(2));
    change(&mut assertion);
    for asked in [None, Some(USER)] {
        assert_eq!(sign_in(&assertion, &passkey(), asked), Err(expected));
    }
}

#[rstest]
#[case::named(true, None, true)]
#[case::not_named(false, None, false)]
#[case::asked_and_named(true, Some(USER), true)]
#[case::asked(false, Some(USER), true)]
#[case::another_asked(true, Some(STRANGER), false)]
#[case::another_asked_and_not_named(false, Some(STRANGER), false)]
fn a_passkey_belongs_to_one_user(
    #[case] is_named: bool,
    #[case] asked: Option<UserId>,
    #[case] expected: bool,
) {
    let mut assertion = device().sign(&challenge(2));
    if !is_named {
        assertion.user_handle = None;
    }
    let found = sign_in(&assertion, &passkey(), asked);
    assert_eq!(found.is_ok(), expected);
    assert!(expected || found == Err(PasskeyFault::Owner));
}

#[rstest]
#[case::no_cbor(|one: &mut Vec<u8>| one.clear())]
#[case::truncated(|one: &mut Vec<u8>| one.truncate(150))]
#[case::left_over(|one: &mut Vec<u8>| one.push(0))]
#[case::no_new_passkey(|one: &mut Vec<u8>| *one = b"\xa1\x68authData\x58\x25".iter().copied()
    .chain(device().sign(&challenge(1)).authenticator_data).collect())]
#[case::no_data(|one: &mut Vec<u8>| *one = b"\xa1\x63fmt\x64none".to_vec())]
#[case::not_bytes(|one: &mut Vec<u8>| *one = b"\xa1\x68authData\x01".to_vec())]
#[case::nested(|one: &mut Vec<u8>| *one = [vec![0x81; 1_000], vec![0]].concat())]
#[case::long(|one: &mut Vec<u8>| one.resize(ATTESTATION_BYTES_MAX + 1, 0))]
fn rejects_truncated_registrations(#[case] change: fn(&mut Vec<u8>)) {
    let mut registration = device().register(&challenge(1));
    change(&mut registration.attestation_object);
    let found = register(&registration, &challenge(1));
    assert_eq!(found, Err(PasskeyFault::Malformed));
}

#[rstest]
#[case::no_id(0, false)]
#[case::short(1, true)]
#[case::longest(1_023, true)]
#[case::too_long(1_024, false)]
fn limits_the_length_of_ids(#[case] length: usize, #[case] expected: bool) {
    let device = SamplePasskeyDevice {
        credential: vec![1; length],
        ..device()
    };
    let found = register(&device.register(&challenge(1)), &challenge(1));
    assert_eq!(found.is_ok(), expected);
}

#[rstest]
#[case::first_use(0, None, 0, 0, true)]
#[case::replayed(0, Some(0), 0, 0, false)]
#[case::earlier_challenge(0, Some(5), 0, 4, false)]
#[case::later_challenge(0, Some(5), 0, 6, true)]
#[case::counted(7, Some(5), 8, 6, true)]
#[case::same_count(7, Some(5), 7, 6, false)]
#[case::smaller_count(7, Some(5), 6, 6, false)]
#[case::no_longer_counted(7, Some(5), 0, 6, false)]
#[case::counts_from_now_on(0, Some(5), 1, 6, true)]
#[case::counted_but_replayed(7, Some(5), 8, 5, false)]
fn each_challenge_works_once_and_counters_grow(
    #[case] stored: u32,
    #[case] last: Option<i64>,
    #[case] counter: u32,
    #[case] challenged: i64,
    #[case] expected: bool,
) {
    let before = Passkey {
        counter: stored,
        last_challenge_at: last.map(Timestamp::from_millis),
        ..passkey()
    };
    let used = PasskeyUse {
        counter,
        is_synced: false,
        challenged_at: Timestamp::from_millis(challenged),
    };
    let now = used.challenged_at;
    let after = before.after_use(used, now);
    assert_eq!(after.is_some(), expected);
    if let Some(after) = after {
        assert_eq!((after.counter, after.is_synced), (counter, false));
        assert_eq!(after.after_use(used, now), None, "replayed");
    }
}

#[rstest]
#[case::slightly_ahead(60, false)]
#[case::as_long_as_challenges_work(300, false)]
#[case::longer(301, true)]
#[case::a_year(365 * 86_400, true)]
fn a_challenge_of_a_clock_that_was_ahead_does_not_lock_the_passkey(
    #[case] seconds: u64,
    #[case] expected: bool,
) {
    let before = Passkey {
        last_challenge_at: Some(NOW.plus(Duration::from_secs(seconds))),
        ..passkey()
    };
    let used = PasskeyUse {
        counter: 0,
        is_synced: false,
        challenged_at: NOW,
    };
    let after = before.after_use(used, NOW);
    assert_eq!(after.is_some(), expected);
    if let Some(after) = after {
        assert_eq!(after.last_challenge_at, Some(NOW));
        assert_eq!(after.after_use(used, NOW), None, "replayed");
    }
}

/// A vector of the specification.
struct Vector(BTreeMap<&'static str, Vec<u8>>);

impl Vector {
    fn named(name: &str) -> Self {
        let mut lines = VECTORS.lines().skip_while(|line| *line != name);
        lines.next().expect("the vector exists");
        let values = lines
            .map_while(|line| line.strip_prefix("  ")?.split_once(' '))
            .map(|(name, value)| (name, from_hex(value).unwrap()));
        Self(values.collect())
    }

    fn get(&self, name: &str) -> Vec<u8> {
        self.0[name].clone()
    }

    fn challenge(&self, name: &str) -> PasskeyChallenge {
        PasskeyChallenge::new(self.get(name).try_into().unwrap(), NOW)
    }

    fn client_data(&self, name: &str) -> ClientData {
        let json = self.get(name);
        let parsed: Value = serde_json::from_slice(&json).unwrap();
        let text = |name: &str| parsed[name].as_str().unwrap().to_owned();
        ClientData {
            ceremony: text("type"),
            challenge: text("challenge"),
            origin: text("origin"),
            is_cross_origin: parsed["crossOrigin"].as_bool().unwrap(),
            json,
        }
    }

    fn register(&self) -> Result<Passkey, PasskeyFault> {
        let registration = Registration {
            client_data: self.client_data("registration.client"),
            attestation_object: self.get("registration.attestation"),
        };
        register(&registration, &self.challenge("registration.challenge"))
    }

    /// Reads the passkey without the rules of the registration, which most vectors do not meet.
    fn passkey(&self) -> Option<Passkey> {
        let attestation = self.get("registration.attestation");
        let object = CborValue::parse(&attestation).unwrap();
        let data = object.get("authData").unwrap().bytes().unwrap();
        let data = AuthenticatorData::parse(data).unwrap();
        let attested = data.credential.as_ref().unwrap();
        assert_eq!(attested.id, self.get("credential"));
        assert_eq!(*data.relying_party, here().hash());
        Some(Passkey {
            credential: CredentialId(attested.id.to_vec()),
            key: PasskeyKey::parse(attested.key)?,
            counter: data.counter,
            can_sync: data.can_sync(),
            is_synced: data.is_synced(),
            last_challenge_at: None,
        })
    }

    fn sign_in(&self, passkey: &Passkey) -> Result<PasskeyUse, PasskeyFault> {
        let assertion = Assertion {
            credential: passkey.credential.clone(),
            client_data: self.client_data("signIn.client"),
            authenticator_data: self.get("signIn.authenticator"),
            signature: self.get("signIn.signature"),
            user_handle: None,
        };
        let expected = PasskeyExpectation {
            challenge: &self.challenge("signIn.challenge"),
            relying_party: &here(),
        };
        check_assertion(&assertion, (USER, passkey), Some(USER), &expected)
    }
}

#[rstest]
#[case("none-es256", Err(PasskeyFault::NotVerified))]
#[case("self-es256", Err(PasskeyFault::NotVerified))]
#[case("cross-origin", Err(PasskeyFault::Origin))]
#[case("top-origin", Err(PasskeyFault::Origin))]
#[case("long-id", Ok(()))]
#[case("rs256", Err(PasskeyFault::NotVerified))]
#[case("ed25519", Err(PasskeyFault::NotVerified))]
fn vectors_of_the_specification_are_read(
    #[case] name: &str,
    #[case] sign_in: Result<(), PasskeyFault>,
) {
    let vector = Vector::named(name);
    let passkey = vector.passkey().expect("a supported key");
    assert_eq!(vector.sign_in(&passkey).map(|_| ()), sign_in);
    let signed = [
        vector.get("signIn.authenticator"),
        vector
            .client_data("signIn.client")
            .hash()
            .as_bytes()
            .to_vec(),
    ]
    .concat();
    let mut signature = vector.get("signIn.signature");
    assert!(passkey.key.verifies(&signed, &signature));
    assert!(!passkey.key.verifies(&signed[1..], &signature));
    *signature.last_mut().unwrap() ^= 1;
    assert!(!passkey.key.verifies(&signed, &signature));
}

#[rstest]
#[case("none-es256", Some(PasskeyFault::NotVerified))]
#[case("self-es256", None)]
#[case("cross-origin", Some(PasskeyFault::Origin))]
#[case("top-origin", Some(PasskeyFault::Origin))]
#[case("long-id", Some(PasskeyFault::NotVerified))]
#[case("rs256", None)]
#[case("ed25519", Some(PasskeyFault::NotVerified))]
fn vectors_with_a_verified_user_are_registered(
    #[case] name: &str,
    #[case] fault: Option<PasskeyFault>,
) {
    let vector = Vector::named(name);
    let registered = vector.register();
    assert_eq!(registered.as_ref().err().copied(), fault);
    let expected = vector.passkey().map(|passkey| Passkey {
        last_challenge_at: Some(NOW),
        ..passkey
    });
    assert!(fault.is_some() || registered.ok() == expected);
}

#[test]
fn other_algorithms_are_rejected() {
    assert_eq!(Vector::named("es384").passkey(), None);
}
