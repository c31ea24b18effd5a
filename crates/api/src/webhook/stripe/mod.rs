//! Stripe: payments on a website, signed with the secret that Stripe issues for the URL.

mod event;
mod meaning;

use super::{HeaderProof, Provider, WebhookHead, WebhookRejection, WebhookRequest};
use crate::json::JsonNode;
use event::StripeEvent;
use tributary_domain::billing::ProviderNotification;
use tributary_domain::billing::signature::is_signed;

pub(super) struct Stripe;

/// Name of the signature header.
const SIGNATURE: &str = "stripe-signature";

impl Provider for Stripe {
    fn check_headers(&self, head: &WebhookHead<'_>) -> Result<HeaderProof, WebhookRejection> {
        if head.secrets.values.is_empty() || head.header(SIGNATURE).is_none() {
            return Err(WebhookRejection::Unauthorized);
        }
        Ok(HeaderProof::NeedsBody)
    }

    fn authenticate(&self, request: &WebhookRequest<'_>) -> Result<JsonNode, WebhookRejection> {
        let header = request.head.header(SIGNATURE).unwrap_or_default();
        let secrets = request.head.secrets.values.iter();
        let is_signed = secrets.fold(false, |found, secret| {
            found | is_signed(header, request.body, secret, request.now)
        });
        if !is_signed {
            return Err(WebhookRejection::Unauthorized);
        }
        request.json()
    }

    fn translate(&self, body: &JsonNode) -> Result<ProviderNotification, WebhookRejection> {
        let event = StripeEvent::of(body).ok_or(WebhookRejection::Malformed)?;
        let mut transactions = event.transactions().into_iter();
        Ok(ProviderNotification {
            environment: event.environment(),
            meaning: event.meaning(),
            store: Some("STRIPE".to_owned()),
            product: event.product(),
            transaction: transactions.next(),
            other_transactions: transactions.collect(),
            original_transaction: event.subscription(),
            refund: event.refund(),
            period: event.period(),
            country: event.country(),
            price: event.price(),
            tax: None,
            commission: None,
            happened_at: event.happened_at(),
            subscriber: event.subscriber(),
            external_id: event.id,
            kind: event.kind,
        })
    }
}
