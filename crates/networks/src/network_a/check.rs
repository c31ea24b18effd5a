//! Checks whether a conversion can be sent.

use super::account::MetaAccount;
use super::app_data::AppData;
use super::encode::{UserData, is_app};
use crate::check::{INSUFFICIENT_IDENTITY, NO_DEVICE_DATA, NO_SOURCE_URL, Unsendable, ensure};
use crate::facts::ConversionFacts;
use tributary_domain::forwarding::Conversion;

pub(crate) fn check(account: &MetaAccount, conversion: &Conversion) -> Result<(), Unsendable> {
    let facts = ConversionFacts(conversion);
    if is_app(account, facts) {
        ensure(
            UserData::for_app(facts).is_enough_in_app(),
            INSUFFICIENT_IDENTITY,
        )?;
        return ensure(AppData::of(facts).is_some(), NO_DEVICE_DATA);
    }
    ensure(
        UserData::for_website(facts).is_enough_on_website(),
        INSUFFICIENT_IDENTITY,
    )?;
    ensure(facts.page_url().is_some(), NO_SOURCE_URL)
}
