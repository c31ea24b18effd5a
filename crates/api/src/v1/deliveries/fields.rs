//! Which deliveries are asked for: in the query of the list, in the body of a retry of many.

use crate::days::{Days, last_day};
use crate::error::ApiError;
use crate::fields::{Fields, text_as};
use crate::query::Parameters;
use crate::state::ApiState;
use crate::v1::events::list::given_id;
use tributary_domain::access::{AppsRead, Authorized};
use tributary_domain::forwarding::DeliveryStatus;
use tributary_domain::forwarding::delivery::DeliveryFilter;
use tributary_domain::integration::Network;
use tributary_domain::vocabulary::day::Day;
use tributary_domain::vocabulary::fault::{FaultCode, Problem};
use tributary_domain::vocabulary::given::Given;
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::timezone::Timezone;
use utoipa::ToSchema;

/// Which deliveries are asked for.
#[derive(Debug)]
pub(super) struct Asked {
    status: Option<DeliveryStatus>,
    network: Option<Network>,
    given_id: Option<String>,
    days: Days,
    timezone: Option<Timezone>,
}

impl Asked {
    /// Out of a query.
    pub(super) fn in_query(parameters: &mut Parameters<'_>) -> Self {
        let status = |text: &str| one_of(text, DeliveryStatus::ALL, DeliveryStatus::as_str);
        Self {
            status: parameters.optional("status", status),
            network: parameters.optional("network", network),
            given_id: parameters.optional("eventId", given_id),
            days: Days::read(parameters),
            timezone: parameters.optional("timezone", Timezone::parse),
        }
    }

    /// Out of a body that asks for another try of what fits. It has to narrow it down, so that nobody sends
    /// everything again by accident.
    pub(super) fn in_body(fields: &mut Fields<'_>) -> Self {
        let status = fields.given("status", text_as(retryable));
        let network = fields.given("network", text_as(network));
        let given_id = fields.given("eventId", text_as(given_id));
        let from = fields.given("from", text_as(Day::parse));
        let first = value(&from).copied();
        let to = fields.given("to", text_as(last_day(first)));
        let timezone = fields.given("timezone", text_as(Timezone::parse));
        let narrows = is_given(&status)
            || is_given(&network)
            || is_given(&given_id)
            || is_given(&from)
            || is_given(&to);
        if !narrows {
            let message = "Must hold at least one of status, network, eventId, from and to.";
            fields.check(|faults| faults.add("body", Problem::new(FaultCode::Required, message)));
        }
        Self {
            status: value(&status).copied(),
            network: value(&network).copied(),
            given_id: value(&given_id).cloned(),
            days: Days {
                from: first,
                to: value(&to).copied(),
            },
            timezone: value(&timezone).cloned(),
        }
    }

    /// What the store is asked for; days begin in the app's zone unless another was named.
    pub(super) async fn filter(
        self,
        state: &ApiState,
        caller: &Authorized<AppsRead>,
        app: AppId,
    ) -> Result<DeliveryFilter, ApiError> {
        let (from, until) = if self.days.are_all() {
            (None, None)
        } else {
            let zone = match self.timezone {
                Some(zone) => zone,
                None => state.store.app_timezone(&caller.analytics(), app).await?,
            };
            self.days.moments(&zone)
        };
        Ok(DeliveryFilter {
            status: self.status,
            network: self.network,
            given_id: self.given_id,
            from,
            until,
        })
    }
}

fn value<T>(given: &Given<T>) -> Option<&T> {
    match given {
        Given::Value(value) => Some(value),
        Given::Absent | Given::Faulty => None,
    }
}

const fn is_given<T>(given: &Given<T>) -> bool {
    !matches!(given, Given::Absent)
}

fn network(text: &str) -> Result<Network, Problem> {
    one_of(text, &Network::ALL, Network::as_str)
}

fn retryable(text: &str) -> Result<DeliveryStatus, Problem> {
    let retryable: Vec<DeliveryStatus> = DeliveryStatus::ALL
        .iter()
        .copied()
        .filter(|status| status.can_be_retried())
        .collect();
    one_of(text, &retryable, DeliveryStatus::as_str)
}

fn one_of<T: Copy>(text: &str, all: &[T], word: fn(T) -> &'static str) -> Result<T, Problem> {
    let found = all.iter().copied().find(|one| word(*one) == text);
    found.ok_or_else(|| {
        let words: Vec<&str> = all.iter().map(|one| word(*one)).collect();
        let message = format!("Must be one of {}.", words.join(", "));
        Problem::new(FaultCode::UnknownValue, message)
    })
}

/// Which deliveries are to be tried again. At least one of the fields but `timezone` must be there.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase", title = "DeliveryRetryFields")]
#[expect(
    dead_code,
    reason = "describes what in_body reads; a test compares the two"
)]
pub(super) struct RetryFields {
    #[schema(inline)]
    status: Option<crate::choices::RetryableStatusChoice>,
    #[schema(inline)]
    network: Option<crate::choices::NetworkChoice>,
    /// The id of their event, as its sender gave it.
    #[schema(min_length = 1, max_length = 255)]
    event_id: Option<String>,
    /// The first day of the events' own time.
    #[schema(format = Date)]
    from: Option<String>,
    /// The last day, inclusive.
    #[schema(format = Date)]
    to: Option<String>,
    /// In which zone the days begin; the app's when absent.
    timezone: Option<String>,
}
