//! Filters for deliveries: the query of the list, and the body of the bulk retry.

use crate::days::{DayFilter, parse_last_day};
use crate::error::ApiError;
use crate::fields::{Fields, choice, described_body, text_as};
use crate::query::QueryParameters;
use crate::state::ApiState;
use crate::v1::events::list::parse_external_id;
use tributary_domain::access::{AppsRead, Authorized};
use tributary_domain::forwarding::DeliveryStatus;
use tributary_domain::forwarding::delivery::DeliveryFilter;
use tributary_domain::integration::Network;
use tributary_domain::vocabulary::day::Day;
use tributary_domain::vocabulary::fault::{FaultCode, Problem};
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::text::EXTERNAL_ID_BYTES_MAX;
use tributary_domain::vocabulary::timezone::Timezone;

described_body! {
    /// Filter for the deliveries to retry. At least one field other than `timezone` is required.
    pub(super) RetryFields("DeliveryRetryFields") = DeliveriesQuery::from_body
}

/// Filter for deliveries.
#[derive(Debug)]
pub(super) struct DeliveriesQuery {
    status: Option<DeliveryStatus>,
    network: Option<Network>,
    external_id: Option<String>,
    days: DayFilter,
    timezone: Option<Timezone>,
}

impl DeliveriesQuery {
    /// Reads the filter from a query.
    pub(super) fn from_query(parameters: &mut QueryParameters<'_>) -> Self {
        let status = |text: &str| parse_choice(text, DeliveryStatus::ALL, DeliveryStatus::as_str);
        Self {
            status: parameters.optional("status", status),
            network: parameters.optional("network", network),
            external_id: parameters.optional("eventId", parse_external_id),
            days: DayFilter::read(parameters),
            timezone: parameters.optional("timezone", Timezone::parse),
        }
    }

    /// Reads the filter from the body of a bulk retry. At least one criterion is required, so that
    /// a client cannot retry everything by accident.
    pub(super) fn from_body(fields: &mut Fields<'_>) -> Self {
        let retryable = DeliveryStatus::ALL.iter().copied();
        let retryable: Vec<_> = retryable.filter(|status| status.can_be_retried()).collect();
        let status = choice(&retryable, DeliveryStatus::as_str);
        let status = fields.input(
            "status",
            status.about("Final status of the deliveries to retry."),
        );
        let network = choice(&Network::ALL, Network::as_str).about("An ad network.");
        let network = fields.input("network", network);
        let external_id = text_as(parse_external_id).size(1..=EXTERNAL_ID_BYTES_MAX);
        let external_id = fields.input("eventId", external_id.about("The sender's event id."));
        let from = text_as(Day::parse).format("date");
        let from = fields.input("from", from.about("First day, by event time."));
        let first = from.clone().value();
        let to = text_as(parse_last_day(first))
            .format("date")
            .about("Last day, inclusive.");
        let to = fields.input("to", to);
        let timezone = text_as(Timezone::parse);
        let timezone = fields.input(
            "timezone",
            timezone.about("Time zone for day boundaries. Default: the app's time zone."),
        );
        let narrows = status.is_present()
            || network.is_present()
            || external_id.is_present()
            || from.is_present()
            || to.is_present();
        if !narrows {
            let message = "Must contain at least one of status, network, eventId, from and to.";
            fields.check(|faults| faults.add("body", Problem::new(FaultCode::Required, message)));
        }
        Self {
            status: status.value(),
            network: network.value(),
            external_id: external_id.value(),
            days: DayFilter {
                from: first,
                to: to.value(),
            },
            timezone: timezone.value(),
        }
    }

    /// Builds the store's filter. Days are in the app's time zone unless another one is set.
    pub(super) async fn into_filter(
        self,
        state: &ApiState,
        caller: &Authorized<AppsRead>,
        app: AppId,
    ) -> Result<DeliveryFilter, ApiError> {
        let (from, until) = if self.days.is_empty() {
            (None, None)
        } else {
            let zone = match self.timezone {
                Some(zone) => zone,
                None => {
                    state
                        .store
                        .app_timezone(&caller.analytics_access(), app)
                        .await?
                }
            };
            self.days.timestamps(&zone)
        };
        Ok(DeliveryFilter {
            status: self.status,
            network: self.network,
            event_name: None,
            reason: None,
            external_id: self.external_id,
            from,
            until,
        })
    }
}

fn network(text: &str) -> Result<Network, Problem> {
    parse_choice(text, &Network::ALL, Network::as_str)
}

fn parse_choice<T: Copy>(text: &str, all: &[T], word: fn(T) -> &'static str) -> Result<T, Problem> {
    let found = all.iter().copied().find(|one| word(*one) == text);
    found.ok_or_else(|| {
        let words: Vec<&str> = all.iter().map(|one| word(*one)).collect();
        let message = format!("Must be one of {}.", words.join(", "));
        Problem::new(FaultCode::UnknownValue, message)
    })
}
