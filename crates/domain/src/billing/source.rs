//! One source per store: which billing providers may report the payments of a store.
//!
//! The payments that Stripe took are joined by their ids, whichever provider reports them. Payments
//! of other stores are not joined across providers, so a payment that two providers report counts
//! twice. Apple's own notifications are refused while another provider can report the App Store,
//! because that provider knows more. Two providers that report the payments of several stores are
//! both accepted: each may report another store, or the customers of another release of the app.

use crate::app::{App, BillingProvider};

/// A store that takes payments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PaymentStore {
    /// Apple's App Store, also on the Mac.
    AppStore,
    /// Google Play.
    PlayStore,
    /// Stripe.
    Stripe,
    /// Any other store, such as Amazon's.
    Other,
}

impl PaymentStore {
    /// All variants.
    pub const ALL: [Self; 4] = [Self::AppStore, Self::PlayStore, Self::Stripe, Self::Other];

    /// Returns the store that a notification names, in any case of letters.
    pub fn named(name: &str) -> Self {
        let is = |known: &str| name.eq_ignore_ascii_case(known);
        if is("APP_STORE") || is("MAC_APP_STORE") {
            Self::AppStore
        } else if is("PLAY_STORE") {
            Self::PlayStore
        } else if is("STRIPE") {
            Self::Stripe
        } else {
            Self::Other
        }
    }
}

/// What happens to the notifications that a provider sends about a store's payments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceRuling {
    /// They are accepted, and each payment counts once.
    Accept,
    /// They are accepted. A payment that this provider reports too counts twice.
    AcceptOverlap(BillingProvider),
    /// They are refused, because this provider reports the same payments.
    Refuse(BillingProvider),
}

/// Returns the store that a provider belongs to, if it reports the payments of no other store.
const fn own_store(provider: BillingProvider) -> Option<PaymentStore> {
    match provider {
        BillingProvider::Appstore => Some(PaymentStore::AppStore),
        BillingProvider::Stripe => Some(PaymentStore::Stripe),
        BillingProvider::Revenuecat
        | BillingProvider::Superwall
        | BillingProvider::Adapty
        | BillingProvider::Qonversion => None,
    }
}

/// Returns whether a provider can report the payments of a store.
fn can_report(provider: BillingProvider, store: PaymentStore) -> bool {
    match provider {
        BillingProvider::Revenuecat | BillingProvider::Superwall | BillingProvider::Adapty => true,
        BillingProvider::Qonversion => store != PaymentStore::Other,
        BillingProvider::Appstore | BillingProvider::Stripe => own_store(provider) == Some(store),
    }
}

/// Decides about the notifications that `sender` sends about the payments of `store`, given the
/// providers that are connected to the app.
pub fn source_ruling(
    sender: BillingProvider,
    store: PaymentStore,
    connected: &[BillingProvider],
) -> SourceRuling {
    if store == PaymentStore::Stripe {
        // Joined by the ids of the payment.
        return SourceRuling::Accept;
    }
    // A store's own notifications are refused in favour of other providers, so they repeat nothing.
    let mut others = connected.iter().copied().filter(|other| {
        *other != sender && own_store(*other).is_none() && can_report(*other, store)
    });
    match others.next() {
        None => SourceRuling::Accept,
        Some(other) if own_store(sender).is_some() => SourceRuling::Refuse(other),
        Some(other) => SourceRuling::AcceptOverlap(other),
    }
}

impl App {
    /// Returns whether all notifications of a provider are refused, because another connected
    /// provider reports the same payments.
    pub fn refuses_source(&self, sender: BillingProvider) -> bool {
        let connected: Vec<BillingProvider> = self.providers().collect();
        own_store(sender).is_some_and(|store| {
            let ruling = source_ruling(sender, store, &connected);
            matches!(ruling, SourceRuling::Refuse(_))
        })
    }

    /// Returns the connected providers that report the same payments as this one, so that these
    /// count twice, or this provider's notifications are refused. Empty if this provider is not
    /// connected.
    pub fn overlapping_sources(&self, provider: BillingProvider) -> Vec<BillingProvider> {
        // Apple's notifications need no secret, so they may arrive before Apple is connected.
        if !self.has_provider(provider) && provider != BillingProvider::Appstore {
            return Vec::new();
        }
        let overlaps = |other: &BillingProvider| {
            PaymentStore::ALL.iter().any(|store| {
                can_report(provider, *store)
                    && source_ruling(provider, *store, &[*other]) != SourceRuling::Accept
            })
        };
        self.providers().filter(overlaps).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::AppSecret;
    use crate::app::samples::any_app;
    use BillingProvider::{Adapty, Appstore, Qonversion, Revenuecat, Stripe, Superwall};
    use SourceRuling::{Accept, AcceptOverlap, Refuse};
    use rstest::rstest;

    #[rstest]
    #[case::nothing_connected(Appstore, "APP_STORE", &[], Accept)]
    #[case::alone(Revenuecat, "APP_STORE", &[Revenuecat], Accept)]
    #[case::apple_alone(Appstore, "APP_STORE", &[Appstore], Accept)]
    #[case::apple_beside_stripe(Appstore, "APP_STORE", &[Appstore, Stripe], Accept)]
    #[case::apple_beside_revenuecat(Appstore, "APP_STORE", &[Revenuecat], Refuse(Revenuecat))]
    #[case::apple_beside_superwall(Appstore, "APP_STORE", &[Superwall], Refuse(Superwall))]
    #[case::apple_beside_adapty(Appstore, "APP_STORE", &[Appstore, Adapty], Refuse(Adapty))]
    #[case::apple_beside_qonversion(Appstore, "APP_STORE", &[Qonversion], Refuse(Qonversion))]
    #[case::beside_apple(Revenuecat, "MAC_APP_STORE", &[Appstore, Revenuecat], Accept)]
    #[case::stripe_alone(Stripe, "STRIPE", &[Stripe], Accept)]
    #[case::stripe_twice(Stripe, "STRIPE", &[Revenuecat, Stripe], Accept)]
    #[case::stripe_through_two(Adapty, "stripe", &[Adapty, Superwall, Stripe], Accept)]
    #[case::app_store_twice(Adapty, "app_store", &[Revenuecat, Adapty], AcceptOverlap(Revenuecat))]
    #[case::play_twice(Revenuecat, "PLAY_STORE", &[Revenuecat, Qonversion], AcceptOverlap(Qonversion))]
    #[case::play_beside_apple(Qonversion, "PLAY_STORE", &[Appstore, Qonversion, Stripe], Accept)]
    #[case::other_store_twice(Superwall, "PADDLE", &[Superwall, Adapty], AcceptOverlap(Adapty))]
    #[case::other_store_once(Superwall, "PADDLE", &[Superwall, Qonversion], Accept)]
    fn decides_about_a_source(
        #[case] sender: BillingProvider,
        #[case] store: &str,
        #[case] connected: &[BillingProvider],
        #[case] expected: SourceRuling,
    ) {
        let store = PaymentStore::named(store);
        assert_eq!(source_ruling(sender, store, connected), expected);
    }

    /// Every payment that a connected provider can report is accepted from one of them.
    #[test]
    fn a_store_always_keeps_a_source() {
        let all = BillingProvider::ALL;
        for chosen in 0..1_u32 << all.len() {
            let connected = all.iter().enumerate();
            let connected = connected.filter(|(place, _)| (chosen >> place) & 1 == 1);
            let connected: Vec<BillingProvider> = connected.map(|(_, one)| *one).collect();
            for store in PaymentStore::ALL {
                let mut sources = connected.iter().filter(|one| can_report(**one, store));
                let is_refused = |one: &BillingProvider| {
                    matches!(source_ruling(*one, store, &connected), Refuse(_))
                };
                let has_source = sources.clone().next().is_some();
                let all_are_refused = sources.all(is_refused);
                assert!(!has_source || !all_are_refused, "{connected:?} {store:?}");
            }
        }
    }

    #[rstest]
    #[case::alone(Revenuecat, &[Revenuecat, Stripe], &[])]
    #[case::two(Revenuecat, &[Revenuecat, Superwall, Adapty], &[Superwall, Adapty])]
    #[case::not_connected(Superwall, &[Revenuecat], &[])]
    #[case::beside_apple(Revenuecat, &[Revenuecat, Appstore], &[])]
    #[case::apple(Appstore, &[Revenuecat, Appstore, Stripe], &[Revenuecat])]
    #[case::apple_not_connected(Appstore, &[Qonversion], &[Qonversion])]
    #[case::stripe(Stripe, &[Revenuecat, Stripe], &[])]
    fn names_the_sources_that_overlap(
        #[case] provider: BillingProvider,
        #[case] connected: &[BillingProvider],
        #[case] expected: &[BillingProvider],
    ) {
        let mut app = any_app();
        app.secrets
            .extend(connected.iter().map(|one| AppSecret::Billing(*one)));
        assert_eq!(app.overlapping_sources(provider), expected);
        let is_refused = provider == Appstore && !expected.is_empty();
        assert_eq!(app.refuses_source(provider), is_refused);
    }
}
