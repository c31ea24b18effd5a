//! Revenue: the value of an amount, and whether it counts.

mod countable;
mod receipt;

pub use countable::{
    COUNTABLE_USD_MAX, MoneyKind, MoneyPolicy, Revenue, UncountedReason, assess_revenue, sdk_policy,
};
pub use receipt::{ParentEvent, PaymentKind, Receipt, refund, renewed_payment};
