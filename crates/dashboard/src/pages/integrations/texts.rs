//! Labels, hints and advice for ad networks' forms.

use tributary_domain::integration::Network;

/// Explains how to get a network's credentials.
pub(super) const fn setup_guide(network: Network) -> &'static str {
    match network {
        Network::A => {
            "In Meta Events Manager, open Data sources, select the dataset (pixel) of your app and \
             copy its id. Then open Settings → Conversions API, choose Generate access token, and \
             paste the token below."
        }
        Network::B => {
            "In a Google Cloud project, enable the Data Manager API, create a service account and \
             download a JSON key. In Google Ads, give the service account access under Admin → \
             Access and security, and create one conversion action per event (Import → Track \
             conversions from clicks). Then paste the key file and the ids below. Instead of a \
             service account you can use an OAuth client with a refresh token. Google starts to \
             accept conversions for a new action about six hours after you create it."
        }
        Network::C => {
            "In TikTok Events Manager, select the pixel and copy its id. Then open Settings → \
             Events API, choose Generate access token, and paste the token below. Generating \
             another token revokes this one."
        }
        Network::D => {
            "In OpenAI Ads Manager, open the Conversions tab, copy the pixel id, create a \
             Conversions API key, and paste both below."
        }
    }
}

/// Returns the label and hint for a setting or credential.
pub(super) fn field_texts(network: Network, name: &str) -> (&'static str, &'static str) {
    let texts = match network {
        Network::A => meta_texts(name),
        Network::B => google_texts(name),
        Network::C => tiktok_texts(name),
        Network::D => openai_texts(name),
    };
    texts.unwrap_or_else(|| common_texts(name))
}

/// Returns the label for one choice in a setting with fixed choices.
pub(super) fn choice_label(value: &'static str) -> &'static str {
    match value {
        "website" => "Website events",
        "app" => "App events",
        "APP" => "App",
        "WEB" => "Website",
        _ => value,
    }
}

fn meta_texts(name: &str) -> Option<(&'static str, &'static str)> {
    Some(match name {
        "accessToken" => (
            "Access token",
            "From Events Manager → your dataset → Settings → Conversions API → Generate access \
             token. A system user's token works as well. Stored encrypted and never shown again.",
        ),
        "appSecret" => (
            "App secret",
            "Optional. Needed if your Meta app requires an app secret proof: Meta for Developers → \
             your app → App settings → Basic. Stored encrypted and never shown again.",
        ),
        "pixelId" => (
            "Pixel id (dataset id)",
            "Digits. From Events Manager → Data sources, below the dataset's name.",
        ),
        "apiVersion" => (
            "Graph API version",
            "Change it only when Meta retires this version.",
        ),
        "sdkEventMode" => (
            "Send app events as",
            "Website events work with every dataset, but Meta requires a user agent for them: \
             installs, and events from links that opened the installed app, are skipped \
             (insufficient_identity) unless the SDK has a userAgent provider. App events need a \
             dataset that is linked to the app.",
        ),
        "testEventCode" => (
            "Test event code",
            "From Events Manager → your dataset → Test events, such as TEST12345. Required for \
             “Test connection” and test mode. Meta shows these events there but still counts them.",
        ),
        "limitedDataUse" => (
            "Limited Data Use",
            "Marks every event with LDU, for US state privacy laws.",
        ),
        "testMode" => (
            "Test mode",
            "Sends every event with the test event code. Meta still counts these events.",
        ),
        _ => return None,
    })
}

fn google_texts(name: &str) -> Option<(&'static str, &'static str)> {
    Some(match name {
        "operatingAccountId" => (
            "Google Ads customer id",
            "The account that owns the conversion actions, such as 123-456-7890. It is shown at \
             the top of Google Ads.",
        ),
        "loginAccountId" => (
            "Manager account id",
            "Only if your credentials have access through a manager account. Sign in to that \
             account; its id is shown at the top of Google Ads, such as 123-456-7890.",
        ),
        "conversionActions" => (
            "Conversion actions",
            "One per line: event = conversion action id. In Google Ads, open Goals → Conversions, \
             select the action, and copy the number after ctId= in the page's address. Events \
             without an action are not sent.",
        ),
        "clientId" => (
            "OAuth client id",
            "From Google Cloud console → APIs & Services → Credentials. Not needed with a service \
             account.",
        ),
        "clientSecret" => (
            "OAuth client secret",
            "From the same page as the client id. Stored encrypted and never shown again.",
        ),
        "refreshToken" => (
            "OAuth refresh token",
            "Create one in Google's OAuth 2.0 Playground: in its settings, enter your own client \
             id and secret; authorize the scope https://www.googleapis.com/auth/datamanager as a \
             user with access to the Google Ads account; then exchange the code for tokens. The \
             client must allow the redirect URI https://developers.google.com/oauthplayground. \
             While the OAuth app is in testing, the token expires after 7 days. Stored encrypted \
             and never shown again.",
        ),
        "serviceAccountKey" => (
            "Service account key",
            "The whole JSON file, from Google Cloud console → IAM & Admin → Service accounts → \
             Keys → Add key. Replaces the three OAuth fields. Stored encrypted and never shown \
             again.",
        ),
        "userDataEnabled" => (
            "Send hashed user data",
            "Enable it after you have accepted the customer data terms in Google Ads.",
        ),
        "landingPageDeviceInfo" => (
            "Send the click's IP address and user agent",
            "Helps Google match the conversion with the visit.",
        ),
        "sdkEventSource" => (
            "Event source for app events",
            "Keep App unless your account requires Website.",
        ),
        _ => return None,
    })
}

fn tiktok_texts(name: &str) -> Option<(&'static str, &'static str)> {
    Some(match name {
        "accessToken" => (
            "Access token",
            "From Events Manager → your pixel → Settings → Events API → Generate access token. \
             Stored encrypted and never shown again.",
        ),
        "pixelCode" => (
            "Pixel id (pixel code)",
            "From Events Manager, below the pixel's name.",
        ),
        "testEventCode" => (
            "Test event code",
            "From Events Manager → your pixel → Test events. Required for “Test connection” and \
             test mode.",
        ),
        "testMode" => ("Test mode", "Sends every event with the test event code."),
        _ => return None,
    })
}

fn openai_texts(name: &str) -> Option<(&'static str, &'static str)> {
    Some(match name {
        "apiKey" => (
            "Conversions API key",
            "From Ads Manager → Conversions. The Advertiser API key does not work. Stored \
             encrypted and never shown again.",
        ),
        "pixelId" => ("Pixel id", "From Ads Manager → Conversions."),
        _ => return None,
    })
}

fn common_texts(name: &str) -> (&'static str, &'static str) {
    match name {
        "testMode" => (
            "Test mode",
            "The network validates events and does not record them.",
        ),
        "maxEventAge" => (
            "Maximum event age, in hours",
            "Older events are not sent. Leave empty for the network's own limit.",
        ),
        "forwardProbabilistic" => (
            "Forward probabilistic matches",
            "Also sends events from installs matched by similarity instead of a click id.",
        ),
        "webEventId" => (
            "Use your own ids for web events",
            "Sends a web event's eventId unchanged, so that the network can deduplicate it \
             against the browser pixel event with the same id.",
        ),
        _ => ("Setting", ""),
    }
}

/// Explains why conversions were not sent to a network, and what to do about it.
pub(super) fn skipped_advice(reason: &str, network: Network) -> &'static str {
    match (reason, network) {
        ("insufficient_identity", Network::A) => {
            "The user agent is unknown, or neither a link nor a page is known. Add a userAgent \
             provider to the SDK, or set “Send app events as” to “App events”."
        }
        ("insufficient_identity", _) => {
            "The network could not match the user. Identify users in the app, and send events with \
             the SDK's device id."
        }
        ("no_click_id", _) => {
            "No click id from this network is known. Check that its ads use your link and pass \
             their click id. For identified users, “Send hashed user data” helps."
        }
        ("no_conversion_action", _) => {
            "Add a conversion action for the event under “Conversion actions”."
        }
        ("integration_disabled", _) => {
            "They arrived while the integration was off or incomplete, and are not sent later. Only \
             events that arrive while it is on are forwarded."
        }
        ("fraud", _) => {
            "The installs are flagged. Release or reject them on the page “Held installs”."
        }
        ("attestation", _) => {
            "The device did not prove that it runs the genuine app. Check the reason on the \
             device's page, or change “Proof of a genuine app” in the app's settings."
        }
        ("probabilistic", _) => {
            "The install is a probabilistic match. Enable “Forward probabilistic matches” to send \
             such events."
        }
        ("consent", _) => {
            "The user did not consent. Nothing to do, unless the app reports consent incorrectly."
        }
        ("too_old", _) => {
            "The event arrived later than the network accepts. Send events soon after they happen, \
             and check “Maximum event age”."
        }
        ("amount_not_forwardable", _) => {
            "The amount is missing, negative, over 2,000 USD, or in a currency without an exchange \
             rate. Correct it where the event is sent."
        }
        ("no_source_url", _) => {
            "The network requires a page or link, and the event has neither. Use a link in the \
             campaign's ads."
        }
        ("no_device_data", _) => {
            "The device did not report its OS version. Call configure with osVersion."
        }
        ("invalid_event_name", _) => {
            "The network does not accept this event name. Change it in the event mapping."
        }
        _ => "See the deliveries with this reason.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tributary_domain::forwarding::SkipReason;
    use tributary_domain::integration::{SettingKind, credentials_of, settings_of};

    #[test]
    fn every_lost_conversion_has_advice() {
        let lost = SkipReason::ALL
            .iter()
            .filter(|skip| skip.loses_conversion());
        for (skip, network) in lost.flat_map(|skip| Network::ALL.map(|network| (skip, network))) {
            let advice = skipped_advice(skip.as_str(), network);
            assert_ne!(advice, skipped_advice("anything else", network), "{skip:?}");
        }
    }

    #[test]
    fn every_choice_has_a_label() {
        for spec in Network::ALL.into_iter().flat_map(settings_of) {
            if let SettingKind::Choice(choices) = spec.kind {
                for choice in choices.iter().copied() {
                    assert_ne!(choice_label(choice), choice);
                }
            }
        }
    }

    #[test]
    fn every_field_has_a_label() {
        for network in Network::ALL {
            let settings = settings_of(network).map(|spec| spec.name);
            let credentials = credentials_of(network).iter().map(|spec| spec.name);
            for name in settings.chain(credentials) {
                assert_ne!(field_texts(network, name).0, "Setting", "{name}");
            }
        }
    }
}
