//! Whether a conversion can be sent.

use super::account::Account;
use super::app_data::AppData;
use super::encode::{UserData, is_app};
use crate::check::{INSUFFICIENT_IDENTITY, NO_DEVICE_DATA, NO_SOURCE_URL, Unsendable, ensure};
use crate::facts::Facts;
use tributary_domain::forwarding::Conversion;

pub(crate) fn check(account: &Account, conversion: &Conversion) -> Result<(), Unsendable> {
    let facts = Facts(conversion);
    if is_app(account, facts) {
        ensure(
            UserData::of_app(facts).is_enough_in_app(),
            INSUFFICIENT_IDENTITY,
        )?;
        return ensure(AppData::of(facts).is_some(), NO_DEVICE_DATA);
    }
    ensure(
        UserData::of_website(facts).is_enough_on_website(),
        INSUFFICIENT_IDENTITY,
    )?;
    ensure(facts.page_url().is_some(), NO_SOURCE_URL)
}
