//! SKAdNetwork and AdAttributionKit postbacks for some of a day's installs, received days later.

use crate::sample_app::{DAY_MILLIS, SampleAction, SampleApp};
use rand::RngExt as _;
use tributary_domain::report::postback::ReceivedPostback;
use tributary_domain::skan::CoarseValue;
use tributary_domain::skan::postback::{
    ConversionType, Interaction, ParsedPostback, Postback, Protocol, Signature,
};
use tributary_domain::vocabulary::id::PostbackId;
use tributary_domain::vocabulary::time::Timestamp;

/// One in this many installs causes postbacks.
const INSTALLS_PER_POSTBACK: u64 = 3;
/// Delay of the postback for each window, in days after the install.
const DAYS_LATER: [i64; 3] = [2, 9, 37];
/// Days from an install to its last postback.
const INSTALL_DAYS_MAX: u32 = 38;
const AD_NETWORKS: [&str; 3] = ["video1", "social2", "search3"];
/// Fine values of the sample conversion values; most people only open the app.
const FINE_VALUES: [u8; 8] = [0, 0, 0, 0, 10, 10, 20, 40];

/// Returns the postbacks for a day's installs, in all three windows.
pub(crate) fn of_day(app: &SampleApp, app_store_id: i64, day: u32) -> Vec<SampleAction> {
    let installs = app.installs_before(day)..app.installs_before(day + 1);
    let reported = installs.filter(|number| number.is_multiple_of(INSTALLS_PER_POSTBACK));
    reported
        .flat_map(|number| of_install(app, app_store_id, day, number))
        .collect()
}

/// Returns the postbacks that arrive on a day, for installs of earlier days.
pub(crate) fn received_on(app: &SampleApp, app_store_id: i64, day: u32) -> Vec<SampleAction> {
    let (from, until) = (app.day_start(day), app.day_start(day + 1));
    let install_days = day.saturating_sub(INSTALL_DAYS_MAX)..=day;
    install_days
        .flat_map(|day| of_day(app, app_store_id, day))
        .filter(|action| (from..until).contains(&action.at()))
        .collect()
}

fn of_install(app: &SampleApp, app_store_id: i64, day: u32, number: u64) -> Vec<SampleAction> {
    let mut random = app.random(number, 4);
    let transaction = format!("{:032x}", random.random::<u128>());
    let source_identifier = format!("{:04}", random.random_range(5_200..5_260));
    let ad_network = AD_NETWORKS[random.random_range(0..AD_NETWORKS.len())];
    let is_adattributionkit = random.random_range(0..4) == 0;
    let has_fine_value = random.random_range(0..5) > 0;
    let fine = FINE_VALUES[random.random_range(0..FINE_VALUES.len())];
    // Second and third postbacks come only from people who still use the app.
    let windows = random.random_range(0..4_u8).clamp(1, 3);
    let first = Postback {
        protocol: if is_adattributionkit {
            Protocol::AdAttributionKit
        } else {
            Protocol::SkAdNetwork
        },
        version: (!is_adattributionkit).then(|| "4.0".to_owned()),
        ad_network_id: if is_adattributionkit {
            format!("{ad_network}.adattributionkit")
        } else {
            format!("{ad_network}.skadnetwork")
        },
        transaction_id: transaction,
        app_store_id,
        source_identifier: Some(source_identifier),
        campaign_id: None,
        fine_value: has_fine_value.then_some(fine),
        coarse_value: None,
        sequence_index: 0,
        did_win: random.random_range(0..12) > 0,
        redownload: (!is_adattributionkit).then_some(false),
        conversion_type: ConversionType::Download,
        interaction: Some(Interaction::Click),
        source_app_id: Some(1_234_567_891),
        source_domain: None,
        country_code: None,
        marketplace_id: is_adattributionkit.then(|| "com.apple.AppStore".to_owned()),
        key_id: is_adattributionkit.then(|| "apple-cas-identifier/0".to_owned()),
    };
    let is_forged = random.random_range(0..40) == 0;
    let within = random.random_range(0..DAY_MILLIS);
    (0..windows)
        .map(|index| {
            let later = DAYS_LATER[usize::from(index)] * DAY_MILLIS + within;
            let at = Timestamp::from_millis(app.day_start(day).as_millis() + later);
            let postback = in_window(&first, index, fine);
            let signature = if is_forged {
                Signature::Invalid
            } else {
                Signature::Valid
            };
            SampleAction::Postback(Box::new(ReceivedPostback {
                id: PostbackId::new(at, random.random()),
                received_at: at,
                body: format!(
                    "{{\"transaction-id\":\"{}\",\"postback-sequence-index\":{index}}}",
                    postback.transaction_id
                ),
                parsed: ParsedPostback {
                    postback,
                    signature,
                },
            }))
        })
        .collect()
}

/// Returns the postback for a window. Later windows have coarse values only.
fn in_window(first: &Postback, index: u8, fine: u8) -> Postback {
    let mut postback = first.clone();
    postback.sequence_index = index;
    if index > 0 {
        postback.fine_value = None;
        postback.coarse_value = Some(match fine {
            40.. => CoarseValue::High,
            20.. => CoarseValue::Medium,
            _ => CoarseValue::Low,
        });
    }
    postback
}
