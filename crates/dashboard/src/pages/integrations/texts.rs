//! What settings and credentials are called, and where people find them.

use tributary_domain::integration::Network;

/// What a network is, for people.
pub(crate) const fn network_name(network: Network) -> &'static str {
    match network {
        Network::A => "Network A · social",
        Network::B => "Network B · search and display",
        Network::C => "Network C · short video",
        Network::D => "Network D · AI assistant",
    }
}

/// What a network wants to know, in one sentence.
pub(super) const fn setup_guide(network: Network) -> &'static str {
    match network {
        Network::A => {
            "Open the events manager, choose the pixel (data set) of your app, note its id, and make an access token \
             under its settings for the conversions API."
        }
        Network::B => {
            "Note the id of the account that conversions belong to and one conversion action per event. Then either \
             make a service account and paste its key file, or give an OAuth client with a refresh token."
        }
        Network::C => {
            "Open the events manager, choose the pixel, note its code, and make an access token under its settings."
        }
        Network::D => {
            "Open the ads account, note the pixel's id, and make an API key for conversions."
        }
    }
}

/// Label and hint of a setting or credential, by its name.
pub(super) fn field_texts(name: &str) -> (&'static str, &'static str) {
    match name {
        "pixelId" => ("Pixel id", "As the network's events manager shows it."),
        "pixelCode" => ("Pixel code", "As the network's events manager shows it."),
        "apiVersion" => (
            "API version",
            "Leave it, unless the network retires the version.",
        ),
        "sdkEventMode" => (
            "App events are sent as",
            "website: works without the network's own app set-up. The network takes website events only with a user \
             agent. Installs and events whose link opened the installed app are dropped (insufficient_identity) \
             unless the SDK reports one with its userAgent hook.",
        ),
        "testEventCode" => (
            "Test event code",
            "From the network's test page. Needed for Test connection: without it a test event counts.",
        ),
        "limitedDataUse" => (
            "Limited data use",
            "Marks every event so, as some laws ask for.",
        ),
        "operatingAccountId" => (
            "Operating account id",
            "Digits. The account that conversions belong to.",
        ),
        "loginAccountId" => (
            "Login account id",
            "Digits. Only where access goes through a manager account.",
        ),
        "conversionActions" => (
            "Conversion actions",
            "One per line: event = id of the conversion action. Events without one are not sent.",
        ),
        "clientId" => ("OAuth client id", "Not needed with a service account."),
        "userDataEnabled" => (
            "Send hashed user data",
            "Where the account has accepted the customer-data terms.",
        ),
        "landingPageDeviceInfo" => (
            "Send address and user agent of the click",
            "Helps the network to recognise the visit that followed the ad.",
        ),
        "sdkEventSource" => (
            "App events are marked as",
            "APP, unless the account asks for WEB.",
        ),
        "testMode" => (
            "Test mode",
            "The network checks events and keeps none of them.",
        ),
        "maxEventAge" => (
            "Oldest event, in hours",
            "Left empty: as old as the network takes.",
        ),
        "forwardProbabilistic" => (
            "Forward likely matches",
            "Also events of installs that were matched by likeness, not by a click id.",
        ),
        "webEventId" => (
            "Share ids with a browser pixel",
            "Website events are sent under their own eventId, so that the network sees pixel and server as one.",
        ),
        "accessToken" => ("Access token", "Kept encrypted, never shown again."),
        "appSecret" => ("App secret", "Only where the network's app asks for proof."),
        "clientSecret" => ("OAuth client secret", "Kept encrypted, never shown again."),
        "refreshToken" => ("OAuth refresh token", "Kept encrypted, never shown again."),
        "serviceAccountKey" => (
            "Service account key",
            "The whole JSON file. Stands for the three OAuth fields.",
        ),
        "apiKey" => ("API key", "Kept encrypted, never shown again."),
        _ => ("Setting", ""),
    }
}

/// Why conversions were not sent to a network, and what to do, by the recorded reason.
pub(super) fn skipped_advice(reason: &str, network: Network) -> &'static str {
    match (reason, network) {
        ("insufficient_identity", Network::A) => {
            "No user agent is known, or no link or page. Let the SDK report one with its userAgent hook, or send app events \
             as app events (“App events are sent as”)."
        }
        ("insufficient_identity", _) => {
            "The network could not recognise the person. Identify users in the app, and send events with the device's own id."
        }
        ("no_click_id", _) => {
            "No click id of this network is known. Check that its ads lead to your link with their click id; “Send hashed user \
             data” helps for identified users."
        }
        ("no_conversion_action", _) => {
            "Add a conversion action for the event under “Conversion actions”."
        }
        ("integration_disabled", _) => {
            "The integration is off or not complete. Fill in what is missing and switch it on."
        }
        ("fraud", _) => {
            "The install is suspicious. Check the devices, or turn holding suspicious installs off in the app's settings."
        }
        ("probabilistic", _) => {
            "The install was matched by likeness. “Forward likely matches” sends such events."
        }
        ("consent", _) => {
            "The person did not consent. Nothing to do, unless the app reports consent wrongly."
        }
        ("too_old", _) => {
            "The event arrived later than the network accepts. Send events soon after they happen; see “Oldest event”."
        }
        ("amount_not_forwardable", _) => {
            "The amount is missing, negative, over 2,000 USD or in a currency without a rate. Correct what the sender reports."
        }
        ("no_source_url", _) => {
            "The network needs a page or a link, and the event has neither. Use a link for the campaign."
        }
        ("no_device_data", _) => {
            "The device did not say what it runs on. Let the app call configure with osVersion."
        }
        ("invalid_event_name", _) => {
            "The network does not take this event name. Change the row of the event mapping."
        }
        _ => "Look at the deliveries with this reason.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tributary_domain::forwarding::SkipReason;

    #[test]
    fn every_skip_that_loses_a_conversion_says_what_to_do() {
        let lost = SkipReason::ALL
            .iter()
            .filter(|skip| skip.loses_conversion());
        for (skip, network) in lost.flat_map(|skip| Network::ALL.map(|network| (skip, network))) {
            let words = skipped_advice(skip.as_str(), network);
            assert_ne!(words, skipped_advice("anything else", network), "{skip:?}");
        }
    }
}
