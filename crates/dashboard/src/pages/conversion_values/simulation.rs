//! Simulates which conversion values a device would report for sample events.

use crate::text;
use tributary_domain::skan::Document;
use tributary_domain::skan::try_out::{SimulatedEvent, TRY_OUT_SECONDS_MAX, simulate};
use tributary_domain::vocabulary::currency::Currency;
use tributary_domain::vocabulary::money::Amount;
use tributary_fields::Form;

/// Number of sample events in the form.
pub(super) const SAMPLE_EVENTS: usize = 4;
const SECONDS_PER_HOUR: i64 = 3_600;

/// A sample event as typed.
#[derive(Debug, Clone, Default)]
pub(super) struct SampleEventForm {
    pub(super) event: String,
    pub(super) hours: String,
    pub(super) revenue: String,
}

/// An update call to Apple, formatted.
pub(super) struct UpdateCallView {
    pub(super) when: String,
    pub(super) event: String,
    pub(super) window: u8,
    pub(super) value: String,
    pub(super) names: String,
    pub(super) locks: bool,
}

/// Reads the sample events from a form.
pub(super) fn sample_events(form: &Form) -> Vec<SampleEventForm> {
    let sample = |index: usize| SampleEventForm {
        event: form.field(&format!("sampleEvents[{index}].event")),
        hours: form.field(&format!("sampleEvents[{index}].hours")),
        revenue: form.field(&format!("sampleEvents[{index}].revenue")),
    };
    (0..SAMPLE_EVENTS).map(sample).collect()
}

/// Returns the initial sample events.
pub(super) fn example_events() -> Vec<SampleEventForm> {
    let sample = |event: &str, hours: &str, revenue: &str| SampleEventForm {
        event: event.to_owned(),
        hours: hours.to_owned(),
        revenue: revenue.to_owned(),
    };
    let mut samples = vec![sample("sign_up", "1", ""), sample("purchase", "20", "9.99")];
    samples.resize(SAMPLE_EVENTS, SampleEventForm::default());
    samples
}

/// Simulates the sample events. Unreadable values are ignored.
pub(super) fn simulate_calls(
    document: &Document,
    typed: &[SampleEventForm],
) -> Vec<UpdateCallView> {
    let simulated = |typed: &SampleEventForm| {
        let event = typed.event.trim();
        let hours = typed.hours.trim().parse::<i64>().unwrap_or(0).max(0);
        (!event.is_empty()).then(|| SimulatedEvent {
            name: event.to_owned(),
            after_seconds: hours
                .saturating_mul(SECONDS_PER_HOUR)
                .min(TRY_OUT_SECONDS_MAX),
            amount: Amount::parse_text(typed.revenue.trim()).ok(),
            currency: None::<Currency>,
        })
    };
    let events = typed.iter().filter_map(simulated).collect();
    let calls = simulate(document.clone(), Vec::new(), events);
    calls
        .into_iter()
        .map(|call| UpdateCallView {
            when: match call.after_seconds {
                0 => "first launch".to_owned(),
                seconds => format!("after {}", text::span(seconds)),
            },
            event: call.event.unwrap_or_else(|| "install".to_owned()),
            window: call.update.window + 1,
            value: if call.update.window == 0 {
                format!("{} ({})", call.update.fine, call.update.coarse.as_str())
            } else {
                call.update.coarse.as_str().to_owned()
            },
            names: call.names.join(", "),
            locks: call.update.lock,
        })
        .collect()
}
