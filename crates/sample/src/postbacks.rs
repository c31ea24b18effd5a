//! Postbacks of SKAdNetwork and AdAttributionKit: some of the installs of a day, told a day or more later.

use crate::sample_app::{DAY_MILLIS, SampleAction, SampleApp};
use rand::RngExt as _;
use tributary_domain::report::postback::ReceivedPostback;
use tributary_domain::skan::CoarseValue;
use tributary_domain::skan::postback::{
    ConversionType, Interaction, ParsedPostback, Postback, Protocol, Signature,
};
use tributary_domain::vocabulary::id::PostbackId;
use tributary_domain::vocabulary::time::Timestamp;

/// One of so many installs is one that Apple tells an ad network of.
const INSTALLS_PER_POSTBACK: u64 = 3;
/// When the postback of each window comes, in days after the install.
const DAYS_LATER: [i64; 3] = [2, 9, 37];
const AD_NETWORKS: [&str; 3] = ["video1", "social2", "search3"];
/// The fine values that the conversion values give out; most people only open the app.
const FINE_VALUES: [u8; 8] = [0, 0, 0, 0, 10, 10, 20, 40];

/// The postbacks of a day's installs, of all three windows.
pub(crate) fn of_day(month: &SampleApp, app_store_id: i64, day: u32) -> Vec<SampleAction> {
    let installs = month.installs_before(day)..month.installs_before(day + 1);
    let told = installs.filter(|number| number.is_multiple_of(INSTALLS_PER_POSTBACK));
    told.flat_map(|number| of_install(month, app_store_id, day, number))
        .collect()
}

fn of_install(month: &SampleApp, app_store_id: i64, day: u32, number: u64) -> Vec<SampleAction> {
    let mut random = month.random(number, 4);
    let transaction = format!("{:032x}", random.random::<u128>());
    let source_identifier = format!("{:04}", random.random_range(5_200..5_260));
    let ad_network = AD_NETWORKS[random.random_range(0..AD_NETWORKS.len())];
    let newer = random.random_range(0..4) == 0;
    let crowded = random.random_range(0..5) > 0;
    let fine = FINE_VALUES[random.random_range(0..FINE_VALUES.len())];
    // A second and a third come only from people who are still there.
    let windows = random.random_range(0..4_u8).clamp(1, 3);
    let first = Postback {
        protocol: if newer {
            Protocol::AdAttributionKit
        } else {
            Protocol::SkAdNetwork
        },
        version: (!newer).then(|| "4.0".to_owned()),
        ad_network_id: if newer {
            format!("{ad_network}.adattributionkit")
        } else {
            format!("{ad_network}.skadnetwork")
        },
        transaction_id: transaction,
        app_store_id,
        source_identifier: Some(source_identifier),
        campaign_id: None,
        fine_value: crowded.then_some(fine),
        coarse_value: None,
        sequence_index: 0,
        did_win: random.random_range(0..12) > 0,
        redownload: (!newer).then_some(false),
        conversion_type: ConversionType::Download,
        interaction: Some(Interaction::Click),
        source_app_id: Some(1_234_567_891),
        source_domain: None,
        country_code: None,
        marketplace_id: newer.then(|| "com.apple.AppStore".to_owned()),
        key_id: newer.then(|| "apple-cas-identifier/0".to_owned()),
    };
    let forged = random.random_range(0..40) == 0;
    let within = random.random_range(0..DAY_MILLIS);
    (0..windows)
        .map(|index| {
            let later = DAYS_LATER[usize::from(index)] * DAY_MILLIS + within;
            let at = Timestamp::from_millis(month.day_start(day).as_millis() + later);
            let postback = in_window(&first, index, fine);
            let signature = if forged {
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

/// The later windows know coarse values only.
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
