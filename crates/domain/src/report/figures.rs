//! What reports count.

use crate::event::Event;

/// What is counted. Money is in millionths of a dollar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(missing_docs, reason = "each is the figure it is named after")]
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
}

impl Figures {
    /// How many there are.
    pub const COUNT: usize = 14;

    /// The columns, in the order of [`Self::values`].
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
    ];

    /// One number a column.
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
        ]
    }

    /// Reads what [`Self::values`] gave.
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
        }
    }

    /// What one event adds. An `install` that a client sent is in the log like any event; the one install of
    /// a device is the service's own.
    /// A duplicate adds nothing: the verified event counts.
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
        }
    }

    /// What came in and was not given back.
    pub const fn net_micros(&self) -> i64 {
        self.revenue_micros.saturating_sub(self.refunded_micros)
    }

    /// Adds others, or takes them out again where `sign` is negative.
    pub fn add(&mut self, other: &Self, sign: i64) {
        let mut sum = self.values();
        for (total, value) in sum.iter_mut().zip(other.values()) {
            *total = total.saturating_add(value.saturating_mul(sign));
        }
        *self = Self::from_values(sum);
    }

    /// True when nothing would change.
    pub fn is_zero(&self) -> bool {
        *self == Self::default()
    }
}
