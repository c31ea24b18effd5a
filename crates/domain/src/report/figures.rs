//! Figures that reports count.

use crate::attribution::HoldState;
use crate::event::Event;

/// Counted figures. Money is in millionths of a US dollar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(missing_docs, reason = "each field is named after its figure")]
pub struct Figures {
    pub clicks: i64,
    pub installs: i64,
    pub organic_installs: i64,
    pub sign_ups: i64,
    pub trials: i64,
    pub qualified_trials: i64,
    pub subscriptions: i64,
    pub purchases: i64,
    pub renewals: i64,
    pub refunds: i64,
    pub events: i64,
    pub paying_devices: i64,
    pub revenue_micros: i64,
    pub refunded_micros: i64,
    pub held_installs: i64,
    pub held_revenue_micros: i64,
}

impl Figures {
    /// Number of figures.
    pub const COUNT: usize = 16;

    /// Column names, in the order of [`Self::values`].
    pub const COLUMNS: [&'static str; Self::COUNT] = [
        "clicks",
        "installs",
        "organic_installs",
        "sign_ups",
        "trials",
        "qualified_trials",
        "subscriptions",
        "purchases",
        "renewals",
        "refunds",
        "events",
        "paying_devices",
        "revenue_micros",
        "refunded_micros",
        "held_installs",
        "held_revenue_micros",
    ];

    /// Returns one number per column.
    pub const fn values(&self) -> [i64; Self::COUNT] {
        [
            self.clicks,
            self.installs,
            self.organic_installs,
            self.sign_ups,
            self.trials,
            self.qualified_trials,
            self.subscriptions,
            self.purchases,
            self.renewals,
            self.refunds,
            self.events,
            self.paying_devices,
            self.revenue_micros,
            self.refunded_micros,
            self.held_installs,
            self.held_revenue_micros,
        ]
    }

    /// Builds figures from the numbers of [`Self::values`].
    pub const fn from_values(values: [i64; Self::COUNT]) -> Self {
        Self {
            clicks: values[0],
            installs: values[1],
            organic_installs: values[2],
            sign_ups: values[3],
            trials: values[4],
            qualified_trials: values[5],
            subscriptions: values[6],
            purchases: values[7],
            renewals: values[8],
            refunds: values[9],
            events: values[10],
            paying_devices: values[11],
            revenue_micros: values[12],
            refunded_micros: values[13],
            held_installs: values[14],
            held_revenue_micros: values[15],
        }
    }

    /// Returns the figures for one event. Only the install that the service records counts as an
    /// install; an `install` sent by a client is an ordinary event. A duplicate adds nothing,
    /// because the verified event counts instead.
    pub fn of_event(event: &Event) -> Self {
        if event.duplicate_of.is_some() {
            return Self::default();
        }
        let is = |wanted: &str| i64::from(event.name == wanted);
        let is_install = i64::from(event.is_install());
        let is_organic = event
            .credit
            .as_ref()
            .is_none_or(|credit| credit.match_type == crate::attribution::MatchType::Organic);
        let counted = event
            .revenue
            .as_ref()
            .map_or(0, |revenue| revenue.counted_usd().micros());
        Self {
            clicks: 0,
            installs: is_install,
            organic_installs: is_install * i64::from(is_organic),
            sign_ups: is("sign_up"),
            trials: is("start_trial"),
            qualified_trials: is("qualified_trial"),
            subscriptions: is("subscribe"),
            purchases: is("purchase"),
            renewals: is("renewal"),
            refunds: is("refund"),
            events: 1,
            paying_devices: i64::from(event.first_payment),
            revenue_micros: counted.max(0),
            refunded_micros: counted.min(0).saturating_neg(),
            held_installs: 0,
            held_revenue_micros: 0,
        }
        .under_hold(event.hold())
    }

    /// Returns the part of an event's figures that counts while its install has this hold. A held
    /// install and its revenue count in figures of their own, a rejected install counts nowhere.
    #[must_use]
    pub fn under_hold(self, hold: Option<HoldState>) -> Self {
        match hold {
            None | Some(HoldState::Released) => self,
            Some(HoldState::Held) => Self {
                held_installs: self.installs,
                held_revenue_micros: self.revenue_micros,
                ..Self::default()
            },
            Some(HoldState::Rejected) => Self::default(),
        }
    }

    /// Returns revenue minus refunds.
    pub const fn net_micros(&self) -> i64 {
        self.revenue_micros.saturating_sub(self.refunded_micros)
    }

    /// Adds `other` times `sign`; a negative sign subtracts.
    pub fn add(&mut self, other: &Self, sign: i64) {
        let mut sum = self.values();
        for (total, value) in sum.iter_mut().zip(other.values()) {
            *total = total.saturating_add(value.saturating_mul(sign));
        }
        *self = Self::from_values(sum);
    }

    /// Returns whether all figures are zero.
    pub fn is_zero(&self) -> bool {
        *self == Self::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn all() -> Figures {
        Figures {
            installs: 1,
            organic_installs: 1,
            events: 1,
            paying_devices: 1,
            revenue_micros: 5,
            refunded_micros: 3,
            ..Figures::default()
        }
    }

    fn held() -> Figures {
        Figures {
            held_installs: 1,
            held_revenue_micros: 5,
            ..Figures::default()
        }
    }

    #[rstest]
    #[case::never_held(None, all())]
    #[case::held(Some(HoldState::Held), held())]
    #[case::released(Some(HoldState::Released), all())]
    #[case::rejected(Some(HoldState::Rejected), Figures::default())]
    fn a_hold_decides_which_figures_count(
        #[case] hold: Option<HoldState>,
        #[case] expected: Figures,
    ) {
        assert_eq!(all().under_hold(hold), expected);
    }
}
