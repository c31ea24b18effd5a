//! Copies of postbacks that differ in what Apple does not sign.

use super::fixtures::SharedStore;
use super::postback_fixtures::{
    accept, advertised_app, advertised_app_with_id, again, arrival, list, total, unused_store_id,
};
use crate::{PostbackFilter, PostbackOutcome};
use tributary_domain::report::postback::VARIANTS_MAX;
use tributary_domain::skan::postback::Signature;

/// Postbacks that differ only in what Apple does not sign are stored up to a limit. They do not
/// block the genuine postback.
pub async fn variants_of_a_postback_are_limited(store: &SharedStore) {
    let one = advertised_app(store).await;
    let genuine = arrival(one.store_id, 10);
    let variant = |number: u32| {
        let mut variant = again(&genuine, 11, &format!("{{\"relay\":{number}}}"));
        variant.parsed.signature = Signature::Invalid;
        variant
    };
    for number in 0..VARIANTS_MAX {
        assert_eq!(
            accept(store, &variant(number)).await,
            PostbackOutcome::Stored
        );
    }
    let next = variant(VARIANTS_MAX);
    assert_eq!(accept(store, &next).await, PostbackOutcome::Dropped);
    assert_eq!(accept(store, &variant(0)).await, PostbackOutcome::Duplicate);
    assert_eq!(accept(store, &genuine).await, PostbackOutcome::Stored);
    assert_eq!(accept(store, &next).await, PostbackOutcome::Dropped);
    let stored = list(store, &one, PostbackFilter::default()).await;
    assert_eq!(stored.len(), VARIANTS_MAX as usize + 1);
    assert_eq!(total(store, &one).await, (1, 0));
    let other = again(&arrival(one.store_id, 12), 12, "{\"relay\":0}");
    assert_eq!(accept(store, &other).await, PostbackOutcome::Stored);
}

/// The same for postbacks of an unknown app, separately for genuine and forged ones.
pub async fn waiting_variants_of_a_postback_are_limited(store: &SharedStore) {
    let id = unused_store_id();
    let genuine = arrival(id, 10);
    let variant = |number: u32, signature: Signature| {
        let mut variant = again(&genuine, 11, &format!("{{\"{number}\":\"{signature:?}\"}}"));
        variant.parsed.signature = signature;
        variant
    };
    for signature in [Signature::Invalid, Signature::Valid] {
        for number in 0..VARIANTS_MAX {
            let outcome = accept(store, &variant(number, signature)).await;
            assert_eq!(outcome, PostbackOutcome::Unclaimed);
        }
        let next = variant(VARIANTS_MAX, signature);
        assert_eq!(accept(store, &next).await, PostbackOutcome::Dropped);
        let copy = variant(0, signature);
        assert_eq!(accept(store, &copy).await, PostbackOutcome::Duplicate);
    }
    let one = advertised_app_with_id(store, id).await;
    assert_eq!(total(store, &one).await, (1, 0));
}
