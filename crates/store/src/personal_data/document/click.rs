//! JSON form of a click.

use crate::records::ClickRow;
use serde::Serialize;
use serde_json::value::RawValue;
use tributary_domain::click::StoredClick;
use tributary_domain::click::token::ClickTokens;
use tributary_domain::device::DeviceKey;
use tributary_domain::vocabulary::digest::hex;

/// A click.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PersonClickOut {
    click_id: String,
    link_id: String,
    clicked_at: String,
    /// The device whose install the click is credited with.
    device_id: Option<String>,
    environment: Option<String>,
    network: Option<String>,
    network_by: Option<String>,
    bot: Option<String>,
    platform: String,
    os_version: Option<String>,
    model: Option<String>,
    language: Option<String>,
    timezone: Option<String>,
    screen: Option<String>,
    ip_address: Option<String>,
    ip_address_hash: Option<String>,
    advertising_id_hash: Option<String>,
    country: Option<String>,
    user_agent: Option<String>,
    referer: Option<String>,
    destination_origin: Option<String>,
    /// Parameters of the URL: campaign, click ids, browser ids and all others.
    parameters: Option<Box<RawValue>>,
}

impl PersonClickOut {
    pub(super) fn of(one: &StoredClick, tokens: &ClickTokens) -> Self {
        let click = &one.click;
        let hash = |bytes: Option<Vec<u8>>| bytes.map(|bytes| hex(&bytes));
        // The row lists every column, so a new one does not compile until it is shown.
        let ClickRow {
            app_id: _,
            click_id: _,
            link_id: _,
            clicked_at: _,
            network,
            network_by,
            bot,
            platform,
            os_version,
            model,
            language,
            timezone,
            screen,
            address,
            address_hash,
            advertising_hash,
            country,
            user_agent,
            referer,
            destination_origin,
            captured,
            environment,
        } = ClickRow::write(click);
        Self {
            click_id: tokens.sign(click.app, click.id),
            link_id: click.link.to_string(),
            clicked_at: click.clicked_at.rfc3339(),
            device_id: one.taken_by.clone().map(DeviceKey::into_string),
            environment,
            network,
            network_by,
            bot,
            platform,
            os_version,
            model,
            language,
            timezone,
            screen,
            ip_address: address,
            ip_address_hash: hash(address_hash),
            advertising_id_hash: hash(advertising_hash),
            country,
            user_agent,
            referer,
            destination_origin,
            parameters: RawValue::from_string(captured).ok(),
        }
    }
}
