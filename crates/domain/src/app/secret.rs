//! Billing providers, and the secrets of an app.

/// An app's write-only secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum AppSecret {
    /// Key that decrypts Meta's install referrer.
    SocialReferrerKey,
    /// Key that decrypts Play Integrity tokens.
    PlayDecryptionKey,
    /// Key that verifies Play Integrity tokens.
    PlayVerificationKey,
    /// Secret that authenticates a billing provider's notifications. The App Store requires no
    /// secret; its entry only marks the App Store as connected.
    Billing(BillingProvider),
    /// Previous billing secret, valid for a while after a replacement that keeps it.
    BillingPrevious(BillingProvider),
    /// Separate signing secret, for providers that have one.
    BillingSigning(BillingProvider),
    /// Previous signing secret.
    BillingSigningPrevious(BillingProvider),
    /// Secret for the notifications of the provider's test environment, for providers that have
    /// another one for it.
    BillingTest(BillingProvider),
    /// Previous secret of the test environment.
    BillingTestPrevious(BillingProvider),
    /// Secret that signs user ids.
    Identity,
    /// Previous secret that signed user ids, valid until the next rotation.
    IdentityPrevious,
}

/// A provider of billing notifications.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum BillingProvider {
    /// `RevenueCat`.
    Revenuecat,
    /// Superwall.
    Superwall,
    /// App Store server notifications, for apps without a billing provider.
    Appstore,
    /// Stripe, for payments on a website.
    Stripe,
    /// Adapty.
    Adapty,
    /// Qonversion.
    Qonversion,
}

impl BillingProvider {
    /// Providers that authenticate with a secret.
    pub const WITH_SECRET: &'static [Self] = &[
        Self::Revenuecat,
        Self::Superwall,
        Self::Stripe,
        Self::Adapty,
        Self::Qonversion,
    ];

    /// Returns whether the provider issues its secret, so that only its own secret works.
    pub const fn issues_secret(self) -> bool {
        matches!(self, Self::Stripe)
    }

    /// Returns whether this service can create the provider's secret.
    pub fn has_created_secret(self) -> bool {
        Self::WITH_SECRET.contains(&self) && !self.issues_secret()
    }
}

crate::keywords! {
    BillingProvider {
        Revenuecat => "revenuecat",
        Superwall => "superwall",
        Appstore => "appstore",
        Stripe => "stripe",
        Adapty => "adapty",
        Qonversion => "qonversion",
    }
}

impl AppSecret {
    /// Returns the name under which a replacement keeps this secret, if any.
    pub const fn previous(self) -> Option<Self> {
        match self {
            Self::Billing(provider) => Some(Self::BillingPrevious(provider)),
            Self::BillingSigning(provider) => Some(Self::BillingSigningPrevious(provider)),
            Self::BillingTest(provider) => Some(Self::BillingTestPrevious(provider)),
            Self::Identity => Some(Self::IdentityPrevious),
            _ => None,
        }
    }

    /// Returns the field that a secret is encrypted for. A previous secret was the current one then.
    pub const fn sealed_field(self) -> &'static str {
        self.latest().as_str()
    }

    /// Returns the secret that this one was the previous one of, or itself.
    #[must_use]
    pub const fn latest(self) -> Self {
        match self {
            Self::BillingPrevious(provider) => Self::Billing(provider),
            Self::BillingSigningPrevious(provider) => Self::BillingSigning(provider),
            Self::BillingTestPrevious(provider) => Self::BillingTest(provider),
            Self::IdentityPrevious => Self::Identity,
            other => other,
        }
    }

    /// All valid secrets. Not every provider has every kind.
    pub const ALL: &'static [Self] = &[
        Self::SocialReferrerKey,
        Self::PlayDecryptionKey,
        Self::PlayVerificationKey,
        Self::Billing(BillingProvider::Revenuecat),
        Self::Billing(BillingProvider::Superwall),
        Self::Billing(BillingProvider::Appstore),
        Self::Billing(BillingProvider::Stripe),
        Self::Billing(BillingProvider::Adapty),
        Self::Billing(BillingProvider::Qonversion),
        Self::BillingPrevious(BillingProvider::Revenuecat),
        Self::BillingPrevious(BillingProvider::Superwall),
        Self::BillingPrevious(BillingProvider::Stripe),
        Self::BillingPrevious(BillingProvider::Adapty),
        Self::BillingPrevious(BillingProvider::Qonversion),
        Self::BillingSigning(BillingProvider::Revenuecat),
        Self::BillingSigningPrevious(BillingProvider::Revenuecat),
        Self::BillingTest(BillingProvider::Stripe),
        Self::BillingTest(BillingProvider::Adapty),
        Self::BillingTest(BillingProvider::Qonversion),
        Self::BillingTestPrevious(BillingProvider::Stripe),
        Self::BillingTestPrevious(BillingProvider::Adapty),
        Self::BillingTestPrevious(BillingProvider::Qonversion),
        Self::Identity,
        Self::IdentityPrevious,
    ];

    /// Returns the name used in storage and responses.
    pub const fn as_str(self) -> &'static str {
        use BillingProvider::{Adapty, Appstore, Qonversion, Revenuecat, Stripe, Superwall};
        match self {
            Self::SocialReferrerKey => "social_referrer_key",
            Self::PlayDecryptionKey => "play_decryption_key",
            Self::PlayVerificationKey => "play_verification_key",
            Self::Billing(Revenuecat) => "billing.revenuecat",
            Self::Billing(Superwall) => "billing.superwall",
            Self::Billing(Appstore) => "billing.appstore",
            Self::Billing(Stripe) => "billing.stripe",
            Self::Billing(Adapty) => "billing.adapty",
            Self::Billing(Qonversion) => "billing.qonversion",
            Self::BillingPrevious(Revenuecat) => "billing.revenuecat.before",
            Self::BillingPrevious(Superwall) => "billing.superwall.before",
            Self::BillingPrevious(Appstore) => "billing.appstore.before",
            Self::BillingPrevious(Stripe) => "billing.stripe.before",
            Self::BillingPrevious(Adapty) => "billing.adapty.before",
            Self::BillingPrevious(Qonversion) => "billing.qonversion.before",
            Self::BillingSigning(Revenuecat) => "billing.revenuecat.signing",
            Self::BillingSigning(Superwall) => "billing.superwall.signing",
            Self::BillingSigning(Appstore) => "billing.appstore.signing",
            Self::BillingSigning(Stripe) => "billing.stripe.signing",
            Self::BillingSigning(Adapty) => "billing.adapty.signing",
            Self::BillingSigning(Qonversion) => "billing.qonversion.signing",
            Self::BillingSigningPrevious(Revenuecat) => "billing.revenuecat.signing.before",
            Self::BillingSigningPrevious(Superwall) => "billing.superwall.signing.before",
            Self::BillingSigningPrevious(Appstore) => "billing.appstore.signing.before",
            Self::BillingSigningPrevious(Stripe) => "billing.stripe.signing.before",
            Self::BillingSigningPrevious(Adapty) => "billing.adapty.signing.before",
            Self::BillingSigningPrevious(Qonversion) => "billing.qonversion.signing.before",
            Self::BillingTest(Revenuecat) => "billing.revenuecat.test",
            Self::BillingTest(Superwall) => "billing.superwall.test",
            Self::BillingTest(Appstore) => "billing.appstore.test",
            Self::BillingTest(Stripe) => "billing.stripe.test",
            Self::BillingTest(Adapty) => "billing.adapty.test",
            Self::BillingTest(Qonversion) => "billing.qonversion.test",
            Self::BillingTestPrevious(Revenuecat) => "billing.revenuecat.test.before",
            Self::BillingTestPrevious(Superwall) => "billing.superwall.test.before",
            Self::BillingTestPrevious(Appstore) => "billing.appstore.test.before",
            Self::BillingTestPrevious(Stripe) => "billing.stripe.test.before",
            Self::BillingTestPrevious(Adapty) => "billing.adapty.test.before",
            Self::BillingTestPrevious(Qonversion) => "billing.qonversion.test.before",
            Self::Identity => "identity",
            Self::IdentityPrevious => "identity.before",
        }
    }

    /// Parses the output of [`Self::as_str`].
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|one| one.as_str() == text)
    }
}
