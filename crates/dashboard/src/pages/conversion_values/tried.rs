//! What a person who does certain things would be counted as.

use crate::text;
use tributary_domain::skan::Document;
use tributary_domain::skan::try_out::{Deed, TRY_OUT_SECONDS_MAX, play};
use tributary_domain::vocabulary::currency::Currency;
use tributary_domain::vocabulary::money::Amount;
use tributary_fields::Form;

/// Deeds that the form has room for.
pub(super) const DEEDS: usize = 4;
const SECONDS_PER_HOUR: i64 = 3_600;

/// A deed, as it was typed.
#[derive(Debug, Clone, Default)]
pub(super) struct DeedForm {
    pub(super) event: String,
    pub(super) hours: String,
    pub(super) revenue: String,
}

/// A call to Apple, in words.
pub(super) struct CallWords {
    pub(super) when: String,
    pub(super) event: String,
    pub(super) window: u8,
    pub(super) value: String,
    pub(super) names: String,
    pub(super) locks: bool,
}

/// What was typed.
pub(super) fn deeds(form: &Form) -> Vec<DeedForm> {
    let deed = |index: usize| DeedForm {
        event: form.field(&format!("deeds[{index}].event")),
        hours: form.field(&format!("deeds[{index}].hours")),
        revenue: form.field(&format!("deeds[{index}].revenue")),
    };
    (0..DEEDS).map(deed).collect()
}

/// Two deeds to begin with.
pub(super) fn examples() -> Vec<DeedForm> {
    let deed = |event: &str, hours: &str, revenue: &str| DeedForm {
        event: event.to_owned(),
        hours: hours.to_owned(),
        revenue: revenue.to_owned(),
    };
    let mut deeds = vec![deed("sign_up", "1", ""), deed("purchase", "20", "9.99")];
    deeds.resize(DEEDS, DeedForm::default());
    deeds
}

/// Plays them. What cannot be read is left out.
pub(super) fn calls(document: &Document, typed: &[DeedForm]) -> Vec<CallWords> {
    let deed = |typed: &DeedForm| {
        let event = typed.event.trim();
        let hours = typed.hours.trim().parse::<i64>().unwrap_or(0).max(0);
        (!event.is_empty()).then(|| Deed {
            name: event.to_owned(),
            after_seconds: hours
                .saturating_mul(SECONDS_PER_HOUR)
                .min(TRY_OUT_SECONDS_MAX),
            amount: Amount::parse_text(typed.revenue.trim()).ok(),
            currency: None::<Currency>,
        })
    };
    let deeds = typed.iter().filter_map(deed).collect();
    let calls = play(document.clone(), Vec::new(), deeds);
    calls
        .into_iter()
        .map(|call| CallWords {
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
