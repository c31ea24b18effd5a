//! A Stripe event: where its values are, in all versions of Stripe's API.

use super::super::fields::{country, currency, id, name, seconds};
use crate::fields::{FieldKind, InputValue, flag, integer};
use crate::json::JsonNode;
use tributary_domain::access::Environment;
use tributary_domain::billing::money::ReportedPrice;
use tributary_domain::billing::{NotificationMeaning, Subscriber, person_ids};
use tributary_domain::device::DeviceKey;
use tributary_domain::vocabulary::currency::Currency;
use tributary_domain::vocabulary::fault::Problem;
use tributary_domain::vocabulary::money::Amount;
use tributary_domain::vocabulary::time::Timestamp;

/// Metadata key with the SDK's device id.
const DEVICE: &str = "tributary_device_id";
/// Metadata key with the user id that the app passes to the SDK.
const USER: &str = "tributary_user_id";
/// Places of the metadata that the shop set: on the object itself, and the subscription's on its
/// invoices, before and since version 2025-03-31 of Stripe's API.
const METADATA: &[&[&str]] = &[
    &["metadata"],
    &["subscription_details", "metadata"],
    &["parent", "subscription_details", "metadata"],
];
/// Currencies whose smallest unit at Stripe differs from ISO 4217, with their decimals at Stripe.
const STRIPE_DECIMALS: &[(&str, u8)] = &[("ISK", 2), ("MGA", 0), ("UGX", 2)];
/// Decimals of [`Amount`].
const AMOUNT_DECIMALS: u8 = 6;
const NOTHING: &JsonNode = &JsonNode::Null;

/// An event of Stripe: a change to one of its objects.
pub(super) struct StripeEvent<'a> {
    pub(super) id: String,
    pub(super) kind: String,
    /// Type of the object, such as `invoice`.
    pub(super) object: String,
    event: &'a JsonNode,
}

impl<'a> StripeEvent<'a> {
    /// Reads an event. The object may be missing: newer events contain only its id.
    pub(super) fn of(event: &'a JsonNode) -> Option<Self> {
        Some(Self {
            id: read(event, &["id"], id())?,
            kind: read(event, &["type"], id())?,
            object: read(event, &["data", "object", "object"], name()).unwrap_or_default(),
            event,
        })
    }

    /// Returns the object after the change.
    fn current(&self) -> &'a JsonNode {
        find(self.event, &["data", "object"]).unwrap_or(NOTHING)
    }

    /// Returns the changed members of the object as they were before.
    fn previous(&self) -> &'a JsonNode {
        find(self.event, &["data", "previous_attributes"]).unwrap_or(NOTHING)
    }

    /// Reads a value of the object as text.
    pub(super) fn text(&self, path: &[&str]) -> Option<String> {
        read(self.current(), path, name())
    }

    /// Reads a value of the object before the change as text.
    pub(super) fn previous_text(&self, path: &[&str]) -> Option<String> {
        read(self.previous(), path, name())
    }

    fn whole(&self, path: &[&str]) -> Option<i64> {
        read(self.current(), path, integer())
    }

    /// Returns whether the subscription ends with its period, before and after the change.
    pub(super) fn ends(&self) -> (bool, bool) {
        let is_set = |node: &JsonNode| {
            let at_period_end = read(node, &["cancel_at_period_end"], flag()) == Some(true);
            at_period_end || find(node, &["cancel_at"]).is_some()
        };
        let now = is_set(self.current());
        // The object before the change: members that did not change are those of today.
        let before = ["cancel_at_period_end", "cancel_at"]
            .into_iter()
            .any(|one| {
                let changed = self.previous().member(one);
                let value = changed.or_else(|| self.current().member(one));
                value.is_some_and(|value| !matches!(value, JsonNode::Null | JsonNode::Flag(false)))
            });
        (before, now)
    }

    /// Returns whether the subscription's first price changed. Its periods are in the same list and
    /// change with every payment.
    pub(super) fn changes_price(&self) -> bool {
        let prices: &[&[&str]] = &[&["items", "data", "price", "id"], &["plan", "id"]];
        prices.iter().any(|path| {
            let before = self.previous_text(path);
            before.is_some() && before != self.text(path)
        })
    }

    pub(super) fn environment(&self) -> Environment {
        match read(self.event, &["livemode"], flag()) {
            Some(true) => Environment::Live,
            _ => Environment::Test,
        }
    }

    /// Returns the ids of the payment. The first one is that of the invoice of a subscription, or of
    /// the payment intent of a single payment.
    pub(super) fn transactions(&self) -> Vec<String> {
        let paths: &[&[&str]] = match self.object.as_str() {
            "invoice" => &[&["id"], &["payment_intent"], &["charge"]],
            "invoice_payment" => &[
                &["invoice"],
                &["payment", "payment_intent"],
                &["payment", "charge"],
            ],
            "checkout.session" if self.is_single_payment() => {
                &[&["payment_intent"], &["id"], &["invoice"]]
            }
            "payment_intent" => &[&["id"], &["latest_charge"], &["invoice"]],
            "charge" => &[&["payment_intent"], &["id"], &["invoice"]],
            "refund" | "dispute" => &[&["payment_intent"], &["charge"]],
            _ => &[],
        };
        paths.iter().filter_map(|path| self.text(path)).collect()
    }

    pub(super) fn is_single_payment(&self) -> bool {
        self.text(&["mode"]).as_deref() == Some("payment")
    }

    /// Returns the id of the subscription that the object belongs to.
    pub(super) fn subscription(&self) -> Option<String> {
        let paths: &[&[&str]] = match self.object.as_str() {
            "subscription" => &[&["id"]],
            "invoice" => &[
                &["subscription"],
                &["parent", "subscription_details", "subscription"],
            ],
            "checkout.session" => &[&["subscription"]],
            _ => &[],
        };
        paths.iter().find_map(|path| self.text(path))
    }

    /// Returns the id of the refund or dispute. A charge has the sum of its refunds, which increases
    /// with each refund and so identifies it.
    pub(super) fn refund(&self) -> Option<String> {
        match self.object.as_str() {
            "refund" | "dispute" => self.text(&["id"]),
            "charge" => {
                let refunded = self.whole(&["amount_refunded"]).filter(|sum| *sum > 0)?;
                Some(format!("{}:{refunded}", self.text(&["id"])?))
            }
            _ => None,
        }
    }

    pub(super) fn product(&self) -> Option<String> {
        let paths: &[&[&str]] = &[
            &["lines", "data", "price", "product"],
            &["lines", "data", "pricing", "price_details", "product"],
            &["items", "data", "price", "product"],
            &["plan", "product"],
        ];
        paths.iter().find_map(|path| self.text(path))
    }

    /// Returns why an invoice was made, or the state of a subscription.
    pub(super) fn period(&self) -> Option<String> {
        match self.object.as_str() {
            "invoice" => self.text(&["billing_reason"]),
            "subscription" => self.text(&["status"]),
            _ => None,
        }
    }

    pub(super) fn country(&self) -> Option<String> {
        let paths: &[&[&str]] = &[
            &["customer_address", "country"],
            &["customer_details", "address", "country"],
            &["billing_details", "address", "country"],
        ];
        let mut found = paths.iter();
        found.find_map(|path| read(self.current(), path, country()))
    }

    /// Returns the amount in the currency paid. A trial is free, whatever it costs afterwards.
    pub(super) fn price(&self) -> ReportedPrice {
        let Some(currency) = read(self.current(), &["currency"], currency()) else {
            return ReportedPrice::default();
        };
        let path = match (self.meaning(), self.object.as_str()) {
            (NotificationMeaning::TrialStart, _) => {
                return ReportedPrice {
                    paid: Some((Amount::ZERO, currency)),
                    usd: Some(Amount::ZERO),
                };
            }
            (NotificationMeaning::Payment(_), "invoice") => "amount_paid",
            (NotificationMeaning::Payment(_), "checkout.session") => "amount_total",
            (NotificationMeaning::Payment(_), "payment_intent") => "amount_received",
            (NotificationMeaning::Refund, "charge") => "amount_refunded",
            (NotificationMeaning::Refund | NotificationMeaning::RefundReversed, _) => "amount",
            _ => return ReportedPrice::default(),
        };
        // A charge has the sum of its refunds, so the difference is what this refund returned.
        let before = read(self.previous(), &["amount_refunded"], integer());
        let before = before.filter(|_| path == "amount_refunded").unwrap_or(0);
        let units = self.whole(&[path]).and_then(|now| now.checked_sub(before));
        ReportedPrice {
            paid: units.and_then(|units| Some((amount(units, currency)?, currency))),
            usd: None,
        }
    }

    /// Returns whether an amount of the object is above zero.
    pub(super) fn is_paid(&self, path: &[&str]) -> bool {
        self.whole(path).is_some_and(|amount| amount > 0)
    }

    pub(super) fn happened_at(&self) -> Option<Timestamp> {
        let paid_at = match self.meaning() {
            NotificationMeaning::Payment(_) => read(
                self.current(),
                &["status_transitions", "paid_at"],
                seconds(),
            ),
            _ => None,
        };
        paid_at.or_else(|| read(self.event, &["created"], seconds()))
    }

    /// Returns whether the object's own metadata names a device or a user.
    pub(super) fn names_subscriber(&self) -> bool {
        [DEVICE, USER]
            .into_iter()
            .any(|key| self.text(&["metadata", key]).is_some())
    }

    /// Returns the subscriber. Refunds and mere links between ids have the subscriber of their
    /// payment, so the customer is not stored with them.
    pub(super) fn subscriber(&self) -> Subscriber {
        if matches!(
            self.meaning(),
            NotificationMeaning::Receipt
                | NotificationMeaning::Refund
                | NotificationMeaning::RefundReversed
        ) {
            return Subscriber::default();
        }
        let metadata = |key| {
            METADATA
                .iter()
                .find_map(|path| self.text(&[*path, &[key][..]].concat()))
        };
        let people = [
            metadata(USER),
            self.text(&["client_reference_id"]),
            self.text(&["customer"]),
        ];
        Subscriber {
            device: metadata(DEVICE).and_then(|id| DeviceKey::parse(&id).ok()),
            people: person_ids(people.into_iter().flatten()),
            advertising: Vec::new(),
        }
    }
}

/// Converts an amount in a currency's smallest unit at Stripe.
fn amount(units: i64, currency: Currency) -> Option<Amount> {
    let mut own = STRIPE_DECIMALS.iter();
    let own = own.find(|(code, _)| *code == currency.as_str());
    let decimals = own.map_or(currency.decimals(), |(_, decimals)| *decimals);
    let missing = AMOUNT_DECIMALS.checked_sub(decimals)?;
    let micros = units.checked_mul(10_i64.pow(u32::from(missing)))?;
    Some(Amount::from_micros(micros))
}

/// Finds a value; null is absent. A list stands for its first item.
fn find<'a>(node: &'a JsonNode, path: &[&str]) -> Option<&'a JsonNode> {
    let mut node = node;
    for name in path {
        if let JsonNode::List(items) = node {
            node = items.first()?;
        }
        node = node.member(name)?;
    }
    (*node != JsonNode::Null).then_some(node)
}

/// Reads a value. An invalid value is absent.
fn read<T>(
    node: &JsonNode,
    path: &[&str],
    kind: FieldKind<impl FnOnce(InputValue<'_>) -> Result<T, Problem>>,
) -> Option<T> {
    kind.parse_value(InputValue::Tree(find(node, path)?)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::two_decimals(1_099, "EUR", "10.99")]
    #[case::none(500, "JPY", "500")]
    #[case::three(5_120, "KWD", "5.12")]
    #[case::none_in_iso_but_two_at_stripe(500, "UGX", "5")]
    #[case::iceland(70_000, "ISK", "700")]
    #[case::two_in_iso_but_none_at_stripe(5_000, "MGA", "5000")]
    #[case::negative(-250, "USD", "-2.5")]
    fn converts_the_smallest_unit(#[case] units: i64, #[case] code: &str, #[case] expected: &str) {
        let currency = Currency::from_stored(code).unwrap();
        assert_eq!(amount(units, currency).unwrap().to_string(), expected);
        assert_eq!(amount(i64::MAX, currency), None);
    }

    #[test]
    fn a_list_stands_for_its_first_item() {
        let node =
            crate::json::parse(r#"{"items": {"data": [{"id": "a"}, {"id": "b"}]}, "none": []}"#);
        let node = node.unwrap();
        let found = read(&node, &["items", "data", "id"], name());
        assert_eq!(found.as_deref(), Some("a"));
        assert_eq!(find(&node, &["none", "id"]), None);
    }
}
