//! Filters for held installs, and the bodies of decisions.

use crate::days::{DayFilter, parse_last_day};
use crate::error::ApiError;
use crate::fields::{Fields, choice, described_body, text_as};
use crate::query::QueryParameters;
use crate::state::ApiState;
use tributary_domain::access::{AppsRead, Authorized};
use tributary_domain::attribution::{Flag, HoldDecision, HoldFilter, HoldState};
use tributary_domain::vocabulary::day::Day;
use tributary_domain::vocabulary::fault::{FaultCode, Problem};
use tributary_domain::vocabulary::id::{AppId, LinkId};
use tributary_domain::vocabulary::timezone::Timezone;

described_body! {
    /// Decision about a held install.
    pub(super) DecisionFields("HoldDecisionFields") = read_decision
}

described_body! {
    /// Decision about the held installs that match all given fields. At least one field other than
    /// `decision` and `timezone` is required.
    pub(super) DecisionsFields("HoldDecisionsFields") = HeldQuery::from_body
}

/// Filter for held installs.
#[derive(Debug)]
pub(super) struct HeldQuery {
    state: HoldState,
    flag: Option<Flag>,
    link: Option<LinkId>,
    days: DayFilter,
    timezone: Option<Timezone>,
}

/// Reads the decision.
pub(super) fn read_decision(fields: &mut Fields<'_>) -> Option<HoldDecision> {
    let decision = choice(HoldDecision::ALL, HoldDecision::as_str);
    fields.required(
        "decision",
        decision.about("`release` counts and forwards the install; `reject` excludes it."),
    )
}

impl HeldQuery {
    /// Reads the filter from a query.
    pub(super) fn from_query(parameters: &mut QueryParameters<'_>) -> Self {
        let unknown = |message: String| Problem::new(FaultCode::UnknownValue, message);
        let one_of = |words: Vec<&str>| unknown(format!("Must be one of {}.", words.join(", ")));
        let states = || HoldState::ALL.iter().map(|one| one.as_str()).collect();
        let flags = || Flag::ALL.iter().map(|one| one.as_str()).collect();
        let state = parameters.optional("state", |text| {
            HoldState::parse(text).ok_or_else(|| one_of(states()))
        });
        Self {
            state: state.unwrap_or(HoldState::Held),
            flag: parameters.optional("flag", |text| {
                Flag::parse(text).ok_or_else(|| one_of(flags()))
            }),
            link: parameters.optional("linkId", parse_link),
            days: DayFilter::read(parameters),
            timezone: parameters.optional("timezone", Timezone::parse),
        }
    }

    /// Reads the decision and the filter from a body. At least one criterion is required, so that a
    /// client cannot release everything by accident. Returns `None` after a fault.
    pub(super) fn from_body(fields: &mut Fields<'_>) -> Option<(HoldDecision, Self)> {
        let decision = read_decision(fields);
        let flag = choice(Flag::ALL, Flag::as_str).about("A flag of the installs.");
        let flag = fields.input("flag", flag);
        let link = text_as(parse_link).about("Credited link id.");
        let link = fields.input("linkId", link);
        let from = text_as(Day::parse).format("date");
        let from = fields.input("from", from.about("First day, by first open."));
        let first = from.clone().value();
        let to = text_as(parse_last_day(first)).format("date");
        let to = fields.input("to", to.about("Last day, inclusive."));
        let timezone = text_as(Timezone::parse);
        let timezone = fields.input(
            "timezone",
            timezone.about("Time zone for day boundaries. Default: the app's time zone."),
        );
        let narrows =
            flag.is_present() || link.is_present() || from.is_present() || to.is_present();
        if !narrows {
            let message = "Must contain at least one of flag, linkId, from and to.";
            fields.check(|faults| faults.add("body", Problem::new(FaultCode::Required, message)));
        }
        let filter = Self {
            state: HoldState::Held,
            flag: flag.value(),
            link: link.value(),
            days: DayFilter {
                from: first,
                to: to.value(),
            },
            timezone: timezone.value(),
        };
        Some((decision?, filter))
    }

    /// Builds the store's filter. Days are in the app's time zone unless another one is set.
    pub(super) async fn into_filter(
        self,
        state: &ApiState,
        caller: &Authorized<AppsRead>,
        app: AppId,
    ) -> Result<HoldFilter, ApiError> {
        let (from, until) = if self.days.is_empty() {
            (None, None)
        } else {
            let zone = if let Some(zone) = self.timezone {
                zone
            } else {
                let reader = caller.analytics_access();
                state.store.app_timezone(&reader, app).await?
            };
            self.days.timestamps(&zone)
        };
        Ok(HoldFilter {
            state: self.state,
            flag: self.flag,
            link: self.link,
            from,
            until,
        })
    }
}

fn parse_link(text: &str) -> Result<LinkId, Problem> {
    let message = "Must be a link id (lnk_…).";
    LinkId::parse(text).map_err(|_| Problem::new(FaultCode::UnknownValue, message))
}
