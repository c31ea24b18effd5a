//! OpenAPI schemas for the domain's enums.

use tributary_domain::app::{FraudPolicy, SdkRevenue};
use tributary_domain::attestation::AttestationPolicy;
use tributary_domain::attribution::{Flag, HoldState};
use tributary_domain::device::IdentityMode;
use tributary_domain::forwarding::DeliveryStatus;
use tributary_domain::integration::{EventScope, Network};
use tributary_domain::link::LinkKind;
use tributary_domain::skan::CoarseValue;
use tributary_domain::skan::postback::{ConversionType, Protocol, Signature};
use tributary_domain::skan::presets::PresetKind;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

/// Declares an OpenAPI schema for a domain enum, with its name, description and allowed values.
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

/// Returns the keyword that the API uses for each value.
fn words<T: Copy>(all: &[T], word: fn(T) -> &'static str) -> Vec<&'static str> {
    all.iter().copied().map(word).collect()
}

choices! {
    SdkRevenueChoice, "Whether revenue from SDK events counts. `auto`: yes, until a billing \
                       provider is configured.",
        words(SdkRevenue::ALL, SdkRevenue::as_str);
    IdentityChoice, "Which user ids from the SDK are used: all, or only those that the app's \
                     backend signed.",
        words(IdentityMode::ALL, IdentityMode::as_str);
    FraudChoice, "How to handle suspicious installs: flag them; hold them, which neither counts nor \
                  forwards them until they are released; or do not attribute them.",
        words(FraudPolicy::ALL, FraudPolicy::as_str);
    FlagChoice, "Fraud signal.", words(Flag::ALL, Flag::as_str);
    HoldStateChoice, "State of a held install: waiting for a review, released or rejected.",
        words(HoldState::ALL, HoldState::as_str);
    AttestationChoice, "Whether devices must prove that they run the genuine app: no; flag installs \
                        without proof; or also forward no events without proof.",
        words(AttestationPolicy::ALL, AttestationPolicy::as_str);
    LinkTypeChoice, "Where a link redirects to: the app's store page or a web page.",
        words(LinkKind::ALL, LinkKind::as_str);
    NetworkChoice, "Ad network: Meta (`network_a`), Google Ads (`network_b`), TikTok (`network_c`) \
                    or OpenAI Ads (`network_d`).",
        words(&Network::ALL, Network::as_str);
    ScopeChoice, "Forward only events attributed to the network, or all mapped events of the app.",
        words(EventScope::ALL, EventScope::as_str);
    DeliveryStatusChoice, "Status of a delivery.",
        words(DeliveryStatus::ALL, DeliveryStatus::as_str);
    CoarseChoice, "A coarse conversion value.", words(&CoarseValue::ALL, CoarseValue::as_str);
    ProtocolChoice, "Apple's framework.", words(&Protocol::ALL, Protocol::as_str);
    SignatureChoice, "Result of verifying a postback's signature.",
        words(&Signature::ALL, Signature::as_str);
    ConversionTypeChoice, "Kind of conversion.",
        words(&ConversionType::ALL, ConversionType::as_str);
    DecodedChoice, "Result of decoding a conversion value: no value, a value unknown to every \
                    version, one meaning, or several possible meanings.",
        ["withheld", "undecoded", "decoded", "ambiguous"];
    PresetChoice, "Kind of preset.", words(&PresetKind::ALL, PresetKind::as_str);
}
