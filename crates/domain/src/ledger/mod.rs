//! Money: what an amount is worth, and whether it counts.

mod countable;
mod receipt;

pub use countable::{
    COUNTABLE_USD_MAX, MoneyKind, MoneyPolicy, Revenue, Uncounted, judge, sdk_policy,
};
pub use receipt::{Parent, PaymentKind, Receipt, refund, renewed};
