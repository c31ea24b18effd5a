//! A website that posts its events to two nodes.

use super::database::{Schema, number};
use super::event_batches::{assert_figures_match_events, open_strict};
use crate::PostgresStore;
use std::sync::Arc;
use tributary_domain::click::Click;
use tributary_domain::device::DeviceKey;
use tributary_domain::event::web::{AcceptedWebEvent, WebEvent, WebEventKind};
use tributary_domain::link::{LinkChange, LinkKind};
use tributary_domain::refusal::Refusal;
use tributary_domain::vocabulary::change::Change;
use tributary_domain::vocabulary::currency::Currency;
use tributary_domain::vocabulary::fault::{FaultCode, Faults, Problem};
use tributary_domain::vocabulary::id::EventId;
use tributary_domain::vocabulary::money::Amount;
use tributary_domain::vocabulary::revision::Precondition;
use tributary_domain::vocabulary::web_url::{PageUrl, WebOrigin};
use tributary_store::contract::fixtures::{SharedStore, at, join_all, origin, unique};
use tributary_store::contract::sdk_fixtures::{Tenant, tenant};
use tributary_store::{Links, StoreError, StoreResult, WebEvents};

const SITE: &str = "https://shop.example.com";
pub(super) type WebOutcome = Result<AcceptedWebEvent, Refusal>;

/// Two nodes and an app with a web funnel link.
pub(super) struct Site {
    pub(super) nodes: [Arc<PostgresStore>; 2],
    pub(super) schema: Schema,
    pub(super) tenant: Tenant,
    pub(super) click: Click,
}

impl Site {
    pub(super) async fn start() -> Self {
        let schema = Schema::create().await;
        let nodes = [open_strict(&schema).await, open_strict(&schema).await];
        let shared: SharedStore = nodes[0].clone();
        let tenant = tenant(&shared).await;
        let change = LinkChange {
            kind: Change::Set(LinkKind::WebFunnel),
            destination_url: Change::Set(PageUrl::parse(SITE).expect("a URL")),
            ..LinkChange::default()
        };
        let (app, link, any) = (tenant.app.id, tenant.link.id, Precondition::None);
        let changed = nodes[0].update_link(&tenant.writer, app, link, change, any, origin(3));
        changed.await.expect("link is updated");
        let click = tenant.record_click(5).await;
        Self {
            nodes,
            schema,
            tenant,
            click,
        }
    }

    pub(super) fn purchase(&self, id: &str, amount: usize, device: &str) -> WebEvent {
        WebEvent {
            app: self.click.app,
            id: EventId::new(at(100), unique()),
            external_id: id.to_owned(),
            click_text: self.click.id.to_string(),
            click: Some(self.click.id),
            device: DeviceKey::parse(device).expect("a device id"),
            occurred_at: at(100),
            kind: WebEventKind::Purchase,
            amount: Some(Amount::parse(&amount.to_string()).expect("an amount")),
            currency: Currency::from_stored("USD"),
            source_url: format!("{SITE}/paid"),
            origin: WebOrigin::from_stored(SITE).expect("an origin"),
            parent: None,
            email_sha256: None,
            received_at: at(101),
        }
    }

    pub(super) fn refund(&self, id: &str, amount: usize, parent: &str, device: &str) -> WebEvent {
        WebEvent {
            kind: WebEventKind::Refund,
            amount: Some(Amount::parse(&format!("-{amount}")).expect("an amount")),
            parent: Some(parent.to_owned()),
            ..self.purchase(id, 1, device)
        }
    }

    /// Sends the posts to the two nodes alternately, all at once. Panics on database errors.
    pub(super) async fn send(&self, posts: impl IntoIterator<Item = WebEvent>) -> Vec<WebOutcome> {
        let sent = posts.into_iter().zip(self.nodes.iter().cycle());
        let sent = sent.map(|(posted, node)| node.accept_web_event(posted));
        let outcomes = join_all(sent.collect()).await;
        outcomes.into_iter().map(refusal_or_panic).collect()
    }

    /// Checks that the tables agree with each other.
    pub(super) async fn assert_consistent(&self) {
        let client = self.schema.client().await;
        assert_figures_match_events(&self.schema).await;
        let events = number(&client, "select count(*) from events where source = 'web'").await;
        for counted in [
            "select count(*) from events where source_url is not null",
            "select count(*) from event_keys where source = 'web' and fingerprint is not null",
        ] {
            assert_eq!(number(&client, counted).await, events, "{counted}");
        }
        for none in [
            // A payment row holds the sum and number of its refunds.
            "select count(*) from refunded_payments as payment
             where (refunded_micros, version) <>
                   (select -sum(amount_micros), count(*) from events
                    where source = 'web' and name = 'refund' and parent_given_id = payment.given_id)",
            "select count(*) from events
             where source = 'web' and name = 'refund'
               and parent_given_id not in (select given_id from refunded_payments)",
            "select count(*) from refunded_payments as payment
             where not exists (select from events
                               where source = 'web' and name in ('purchase', 'renewal')
                                 and given_id = payment.given_id and amount_micros >= refunded_micros)",
            "select count(*) from events left join clicks using (app_id, click_id)
             where click_id is not null and not coalesce(kept, false)",
        ] {
            assert_eq!(number(&client, none).await, 0, "{none}");
        }
    }
}

/// Returns the result or refusal; panics on database errors.
fn refusal_or_panic(outcome: StoreResult<AcceptedWebEvent>) -> WebOutcome {
    match outcome {
        Ok(accepted) => Ok(accepted),
        Err(StoreError::Refused(refusal)) => Err(refusal),
        Err(other) => panic!("{other:?}"),
    }
}

/// Counts the newly accepted posts.
pub(super) fn accepted(outcomes: &[WebOutcome]) -> usize {
    let new = outcomes
        .iter()
        .filter(|outcome| matches!(outcome, Ok(accepted) if !accepted.is_duplicate));
    new.count()
}

/// Counts the posts with this refusal.
pub(super) fn refused(outcomes: &[WebOutcome], by: &Refusal) -> usize {
    let refused = outcomes
        .iter()
        .filter(|outcome| outcome.as_ref().err() == Some(by));
    refused.count()
}

/// The refusal of a post that differs from the accepted event in these fields.
pub(super) fn conflict(fields: &[&str]) -> Refusal {
    let mut faults = Faults::new();
    for field in fields {
        let message = "Differs from the accepted event.";
        faults.add(*field, Problem::new(FaultCode::Different, message));
    }
    Refusal::EventIdConflict(faults)
}
