//! The words that some fields choose from, as the description shows them. They are the domain's.

use tributary_domain::app::{FraudPolicy, SdkRevenue};
use tributary_domain::forwarding::DeliveryStatus;
use tributary_domain::integration::{EventScope, Network};
use tributary_domain::link::LinkKind;
use tributary_domain::skan::CoarseValue;
use tributary_domain::skan::postback::{ConversionType, Protocol, Signature};
use tributary_domain::skan::presets::PresetKind;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

/// An enum of the domain, as the description shows it: its name here, what it is, and its words.
macro_rules! choices {
    ($($name:ident, $description:literal, $words:expr;)*) => {$(
        #[doc = $description]
        pub(crate) struct $name;

        impl PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                ObjectBuilder::new()
                    .schema_type(Type::String)
                    .enum_values(Some($words.into_iter()))
                    .description(Some($description))
                    .into()
            }
        }

        impl ToSchema for $name {}
    )*};
}

/// The words of some values of the domain.
fn words<T: Copy>(all: &[T], word: fn(T) -> &'static str) -> Vec<&'static str> {
    all.iter().copied().map(word).collect()
}

choices! {
    SdkRevenueChoice, "Whether money that the SDK reports counts; `auto`: until a billing provider is configured.",
        words(SdkRevenue::ALL, SdkRevenue::as_str);
    FraudChoice, "What happens to suspicious installs: marked, marked and not forwarded, not attributed.",
        words(FraudPolicy::ALL, FraudPolicy::as_str);
    LinkTypeChoice, "Where a link leads: to the app in its store, or to a web page.",
        words(LinkKind::ALL, LinkKind::as_str);
    NetworkChoice, "An ad network.", words(&Network::ALL, Network::as_str);
    ScopeChoice, "Events that are attributed to the network, or every mapped event of the app.",
        words(EventScope::ALL, EventScope::as_str);
    DeliveryStatusChoice, "Status of a delivery.", words(DeliveryStatus::ALL, DeliveryStatus::as_str);
    CoarseChoice, "A coarse conversion value.", words(&CoarseValue::ALL, CoarseValue::as_str);
    ProtocolChoice, "One of Apple's two frameworks.", words(&Protocol::ALL, Protocol::as_str);
    SignatureChoice, "What came of checking the signature of a postback.", words(&Signature::ALL, Signature::as_str);
    ConversionTypeChoice, "What the person did.", words(&ConversionType::ALL, ConversionType::as_str);
    DecodedChoice, "Whether a value could be told: there is none, no version knows it, one meaning, several.",
        ["withheld", "undecoded", "decoded", "ambiguous"];
    PresetChoice, "What a preset tells apart.", words(&PresetKind::ALL, PresetKind::as_str);
}
