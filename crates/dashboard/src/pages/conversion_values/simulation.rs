//! What a person who does certain things would be counted as.

use crate::text;
use tributary_domain::skan::Document;
use tributary_domain::skan::try_out::{SimulatedEvent, TRY_OUT_SECONDS_MAX, simulate};
use tributary_domain::vocabulary::currency::Currency;
use tributary_domain::vocabulary::money::Amount;
use tributary_fields::Form;

/// Deeds that the form has room for.
pub(super) const SAMPLE_EVENTS: usize = 4;
const SECONDS_PER_HOUR: i64 = 3_600;

/// A deed, as it was typed.
#[derive(Debug, Clone, Default)]
pub(super) struct SampleEventForm {
    pub(super) event: String,
    pub(super) hours: String,
    pub(super) revenue: String,
}

/// A call to Apple, in words.
pub(super) struct UpdateCallView {
    pub(super) when: String,
    pub(super) event: String,
    pub(super) window: u8,
    pub(super) value: String,
    pub(super) names: String,
    pub(super) locks: bool,
}

/// What was typed.
pub(super) fn sample_events(form: &Form) -> Vec<SampleEventForm> {
    let deed = |index: usize| SampleEventForm {
        event: form.field(&format!("deeds[{index}].event")),
        hours: form.field(&format!("deeds[{index}].hours")),
        revenue: form.field(&format!("deeds[{index}].revenue")),
    };
    (0..SAMPLE_EVENTS).map(deed).collect()
}

/// Two deeds to begin with.
pub(super) fn example_events() -> Vec<SampleEventForm> {
    let deed = |event: &str, hours: &str, revenue: &str| SampleEventForm {
        event: event.to_owned(),
        hours: hours.to_owned(),
        revenue: revenue.to_owned(),
    };
    let mut deeds = vec![deed("sign_up", "1", ""), deed("purchase", "20", "9.99")];
    deeds.resize(SAMPLE_EVENTS, SampleEventForm::default());
    deeds
}

/// Plays them. What cannot be read is left out.
pub(super) fn simulate_calls(
    document: &Document,
    typed: &[SampleEventForm],
) -> Vec<UpdateCallView> {
    let deed = |typed: &SampleEventForm| {
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
    let deeds = typed.iter().filter_map(deed).collect();
    let calls = simulate(document.clone(), Vec::new(), deeds);
    calls
        .into_iter()
        .map(|call| UpdateCallView {
            when: match call.after_seconds {
                0 => "at first launch".to_owned(),
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
