//! The words that some fields choose from, as the description shows them. The domain parses and writes
//! them; a test holds that both have the same words.

use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, OneOfBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

/// An amount of a request, as the description shows it: a number, or a string with its exact digits.
pub(crate) struct AmountChoice;

impl PartialSchema for AmountChoice {
    fn schema() -> RefOr<Schema> {
        let digits = r"^-?[0-9]{1,12}(\.[0-9]{1,6})?$";
        OneOfBuilder::new()
            .item(ObjectBuilder::new().schema_type(Type::Number))
            .item(
                ObjectBuilder::new()
                    .schema_type(Type::String)
                    .pattern(Some(digits)),
            )
            .description(Some("A number, or a string with its exact digits."))
            .into()
    }
}

impl ToSchema for AmountChoice {}

macro_rules! choices {
    ($($(#[$doc:meta])* $name:ident { $($variant:ident = $text:literal),* $(,)? })*) => {$(
        $(#[$doc])*
        #[derive(ToSchema)]
        #[expect(dead_code, reason = "only the description uses it")]
        pub(crate) enum $name {
            $(#[schema(rename = $text)] $variant,)*
        }

        impl $name {
            #[cfg(test)]
            const WORDS: &'static [&'static str] = &[$($text),*];
        }
    )*};
}

choices! {
    /// Whether money that the SDK reports counts; `auto`: until a billing provider is configured.
    SdkRevenueChoice { Count = "count", Ignore = "ignore", Auto = "auto" }
    /// What happens to suspicious installs: marked, marked and not forwarded, not attributed.
    FraudChoice { Flag = "flag", Hold = "hold", Refuse = "refuse" }
    /// Where a link leads: to the app in its store, or to a web page.
    LinkTypeChoice { AppInstall = "app_install", WebFunnel = "web_funnel" }
    /// An ad network.
    NetworkChoice { A = "network_a", B = "network_b", C = "network_c", D = "network_d" }
    /// Events that are attributed to the network, or every mapped event of the app.
    ScopeChoice { Attributed = "attributed", All = "all" }
    /// Where a delivery stands.
    DeliveryStatusChoice {
        Pending = "pending",
        Delivered = "delivered",
        Validated = "validated",
        Unconfirmed = "unconfirmed",
        Failed = "failed",
        Expired = "expired",
        Cancelled = "cancelled",
    }
    /// How a delivery ended that can be tried again.
    RetryableStatusChoice {
        Unconfirmed = "unconfirmed",
        Failed = "failed",
        Expired = "expired",
    }
    /// A coarse conversion value.
    CoarseChoice { Low = "low", Medium = "medium", High = "high" }
    /// One of Apple's two frameworks.
    ProtocolChoice { SkAdNetwork = "skadnetwork", AdAttributionKit = "adattributionkit" }
    /// What came of checking the signature of a postback.
    SignatureChoice {
        Valid = "valid",
        Invalid = "invalid",
        Development = "development",
        Unverifiable = "unverifiable",
    }
    /// What the person did.
    ConversionTypeChoice {
        Download = "download",
        Redownload = "redownload",
        ReEngagement = "re-engagement",
    }
    /// Whether a value could be told: there is none, no version knows it, one meaning, several.
    DecodedChoice {
        Withheld = "withheld",
        Undecoded = "undecoded",
        Decoded = "decoded",
        Ambiguous = "ambiguous",
    }
    /// What a preset tells apart.
    PresetChoice { RevenueBuckets = "revenue_buckets", EventBits = "event_bits", Funnel = "funnel" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tributary_domain::app::{FraudPolicy, SdkRevenue};
    use tributary_domain::forwarding::DeliveryStatus;
    use tributary_domain::integration::{EventScope, Network};
    use tributary_domain::link::LinkKind;
    use tributary_domain::skan::COARSE_VALUES;
    use tributary_domain::skan::decode::Decoded;
    use tributary_domain::skan::postback::{ConversionType, Protocol, Signature};

    #[test]
    fn the_description_has_the_words_of_the_domain() {
        let words = |words: Vec<&'static str>| words;
        let revenue = SdkRevenue::ALL.iter().map(|one| one.as_str()).collect();
        assert_eq!(SdkRevenueChoice::WORDS, words(revenue));
        let fraud = FraudPolicy::ALL.iter().map(|one| one.as_str()).collect();
        assert_eq!(FraudChoice::WORDS, words(fraud));
        let types = LinkKind::ALL.iter().map(|one| one.as_str()).collect();
        assert_eq!(LinkTypeChoice::WORDS, words(types));
        let networks = Network::ALL.iter().map(|one| one.as_str()).collect();
        assert_eq!(NetworkChoice::WORDS, words(networks));
        let scopes = EventScope::ALL.iter().map(|one| one.as_str()).collect();
        assert_eq!(ScopeChoice::WORDS, words(scopes));
        let statuses = DeliveryStatus::ALL.iter().map(|one| one.as_str()).collect();
        assert_eq!(DeliveryStatusChoice::WORDS, words(statuses));
        let retryable = DeliveryStatus::ALL
            .iter()
            .filter(|one| one.can_be_retried());
        let retryable = retryable.map(|one| one.as_str()).collect();
        assert_eq!(RetryableStatusChoice::WORDS, words(retryable));
        let coarse = COARSE_VALUES.iter().map(|one| one.as_str()).collect();
        assert_eq!(CoarseChoice::WORDS, words(coarse));
        let protocols = Protocol::ALL.iter().map(|one| one.as_str()).collect();
        assert_eq!(ProtocolChoice::WORDS, words(protocols));
        let signatures = Signature::ALL.iter().map(|one| one.as_str()).collect();
        assert_eq!(SignatureChoice::WORDS, words(signatures));
        let types = ConversionType::ALL.iter().map(|one| one.as_str()).collect();
        assert_eq!(ConversionTypeChoice::WORDS, words(types));
        let none = [Decoded::Withheld, Decoded::Undecoded].map(|one| one.as_str());
        assert!(DecodedChoice::WORDS.starts_with(&none));
        assert_eq!(PresetChoice::WORDS.len(), 3);
    }
}
