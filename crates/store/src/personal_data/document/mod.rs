//! A person's data as one JSON document, written part by part.
//!
//! The document explains itself: each section says what it contains, where the data comes from and
//! how long it is kept, and a list at the end says what is not included and why.

mod billing;
mod click;
mod device;
mod event;

use super::{ExportedRows, PERSONAL_TABLES, PersonExport, PersonPart};
use billing::PersonSubscriptionOut;
use click::PersonClickOut;
use device::{PersonDeviceOut, UserLinkOut};
use event::PersonEventOut;
use serde::Serialize;
use tributary_domain::click::token::ClickTokens;
use tributary_domain::device::{DeviceKey, UserKey};
use tributary_domain::personal_data::DataSubject;

/// A section of the document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct DocumentSection {
    /// Name of the section in the document.
    #[serde(skip)]
    pub name: &'static str,
    /// What the section contains.
    pub contents: &'static str,
    /// Where the data comes from.
    pub source: &'static str,
    /// How long it is kept.
    pub retention: &'static str,
}

/// The sections, in the order of the document.
pub const SECTIONS: [DocumentSection; 5] = [
    DocumentSection {
        name: "devices",
        contents: "The person's devices with their properties, consent, hashes of the email address \
                   and phone number, and the decision about which ad led to the install, with its \
                   evidence, the attestation of the app and the review of a suspicious install.",
        source: "The app, through its SDK. The country and the hash of the IP address come from the \
                 first request. The decision is computed.",
        retention: "The device id, platform, country, consent and credit: until the device is erased. \
                    The hash of the IP address: retention.click_address_days. Everything else: \
                    retention.attribution_days after the last activity.",
    },
    DocumentSection {
        name: "userLinks",
        contents: "Which user ids of the app were used on the devices. A claim that is not used has \
                   no effect on payments.",
        source: "The app, through its SDK.",
        retention: "retention.attribution_days after the last activity; as long as the device if it \
                    has payments. The hash of the IP address: retention.click_address_days.",
    },
    DocumentSection {
        name: "clicks",
        contents: "Taps on links that led to the install or to a visit of the website.",
        source: "The browser that followed the link.",
        retention: "The IP address and user agent: retention.click_address_days. Other details: \
                    retention.attribution_days after the last activity of the device.",
    },
    DocumentSection {
        name: "subscriptions",
        contents: "What billing providers reported about the person's payments and subscriptions, and \
                   which device the payments count for. `content` is what was understood, `body` what \
                   was received, without names, addresses and phone numbers.",
        source: "The billing provider.",
        retention: "As long as the events. The received body: retention.notification_days.",
    },
    DocumentSection {
        name: "events",
        contents: "What the person did, with the consent at that time, and which ad networks received \
                   the event when. Networks receive hashes of ids, never the ids.",
        source: "The app, a billing provider or the website's backend, as `source` says.",
        retention: "Until the device is erased. Finished deliveries: retention.delivery_days.",
    },
];

/// What the document does not contain beside the tables that are left out.
const NOT_INCLUDED: [(&str, &str); 6] = [
    (
        "Postbacks of Apple (SKAdNetwork, AdAttributionKit)",
        "They contain no id of a device or user, so they cannot be tied to a person.",
    ),
    ("Figures in reports", "They are sums over all people."),
    (
        "Notifications that name a user only in a part of the body that is not read",
        "They cannot be told from those of other people. Bodies are deleted after \
         retention.notification_days.",
    ),
    (
        "The token that erases the device",
        "Only its hash is stored. The devices say whether one exists.",
    ),
    (
        "Data that ad networks, stores and billing providers keep",
        "Ask them for it. The deliveries say which networks received something.",
    ),
    (
        "Backups and logs of the server",
        "Backups contain the same data. Logs contain no ids of people.",
    ),
];

/// What was left out of one table, or of another source.
#[derive(Serialize)]
struct NotIncludedOut {
    what: &'static str,
    reason: &'static str,
}

/// Head of the document.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SubjectOut<'a> {
    app_id: String,
    environment: &'static str,
    device_id: Option<&'a str>,
    user_id: Option<&'a str>,
    exported_at: String,
    /// Id of the entry in the audit log.
    export_id: String,
    /// Number of devices that claimed the user without proof.
    other_devices: usize,
}

/// A device that is left out. The list is for the operator: the device may be a stranger's.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct LeftOutOut<'a> {
    device_id: &'a str,
    reason: &'static str,
}

/// Writes a document. The bytes of [`Self::begin`], of all parts and of [`Self::finish`] together are
/// the document.
#[derive(Debug)]
pub struct PersonDocument {
    tokens: ClickTokens,
    /// Whether `events` is the open section, not `subscriptions`.
    is_in_events: bool,
    /// Whether the open list has an item.
    has_item: bool,
    events: u64,
}

impl PersonDocument {
    /// Begins a document. `tokens` signs click ids.
    pub const fn new(tokens: ClickTokens) -> Self {
        Self {
            tokens,
            is_in_events: false,
            has_item: false,
            events: 0,
        }
    }

    /// Writes everything except subscriptions and events.
    pub fn begin(&mut self, export: &PersonExport) -> Vec<u8> {
        let records = export.records();
        let (device, user) = match export.subject() {
            DataSubject::Device(device) => (Some(device), None),
            DataSubject::User(user) => (None, Some(user)),
        };
        let subject = SubjectOut {
            app_id: export.app().to_string(),
            environment: export.environment().as_str(),
            device_id: device.map(DeviceKey::as_str),
            user_id: user.map(UserKey::as_str),
            exported_at: export.at().rfc3339(),
            export_id: export.id().to_string(),
            other_devices: records.left_out.len(),
        };
        let mut text = b"{\"data\":{\"subject\":".to_vec();
        write(&mut text, &subject);
        let [devices, links, clicks, subscriptions, _] = &SECTIONS;
        let app = export.app();
        section(&mut text, devices, |text| {
            let device = |one| PersonDeviceOut::of(one, app, &self.tokens);
            list(text, records.devices.iter().map(device));
        });
        section(&mut text, links, |text| {
            list(text, records.links.iter().map(UserLinkOut::from));
        });
        section(&mut text, clicks, |text| {
            let click = |one| PersonClickOut::of(one, &self.tokens);
            list(text, records.clicks.iter().map(click));
        });
        open(&mut text, subscriptions);
        text
    }

    /// Writes a part. Subscriptions come before events.
    pub fn part(&mut self, part: PersonPart) -> Vec<u8> {
        let mut text = Vec::new();
        match part {
            PersonPart::Subscription(one) => {
                self.item(&mut text, &PersonSubscriptionOut::from(one));
            }
            PersonPart::Events(events) => {
                self.open_events(&mut text);
                for (event, deliveries) in events {
                    self.events += 1;
                    let out = PersonEventOut::of(event, deliveries, &self.tokens);
                    self.item(&mut text, &out);
                }
            }
        }
        text
    }

    /// Writes the end. `with_left_out` adds the devices that were left out, for the operator.
    pub fn finish(mut self, export: &PersonExport, with_left_out: bool) -> Vec<u8> {
        let mut text = Vec::new();
        self.open_events(&mut text);
        text.extend_from_slice(b"]},\"notIncluded\":");
        let tables = PERSONAL_TABLES
            .iter()
            .filter_map(|table| match table.exported {
                ExportedRows::LeftOut(reason) => Some((table.name, reason)),
                ExportedRows::In(_) => None,
            });
        let left_out = NOT_INCLUDED.into_iter().chain(tables);
        list(
            &mut text,
            left_out.map(|(what, reason)| NotIncludedOut { what, reason }),
        );
        text.extend_from_slice(b",\"complete\":");
        write(&mut text, &!export.records().is_cut);
        text.extend_from_slice(b",\"eventCount\":");
        write(&mut text, &self.events);
        text.push(b'}');
        if with_left_out {
            text.extend_from_slice(b",\"meta\":{\"otherDevices\":");
            let devices = export.records().left_out.iter();
            list(
                &mut text,
                devices.map(|one| LeftOutOut {
                    device_id: one.device.as_str(),
                    reason: one.reason.as_str(),
                }),
            );
            text.push(b'}');
        }
        text.extend_from_slice(b"}\n");
        text
    }

    fn open_events(&mut self, text: &mut Vec<u8>) {
        if !self.is_in_events {
            text.extend_from_slice(b"]}");
            let [.., events] = &SECTIONS;
            open(text, events);
            (self.is_in_events, self.has_item) = (true, false);
        }
    }

    fn item(&mut self, text: &mut Vec<u8>, value: &impl Serialize) {
        if self.has_item {
            text.push(b',');
        }
        self.has_item = true;
        write(text, value);
    }
}

/// Serialises a value. Its fields are plain values, so this cannot fail.
fn write(text: &mut Vec<u8>, value: &impl Serialize) {
    serde_json::to_writer(text, value).expect("shapes have string keys and plain values");
}

/// Writes a list.
fn list<T: Serialize>(text: &mut Vec<u8>, items: impl Iterator<Item = T>) {
    text.push(b'[');
    for (position, item) in items.enumerate() {
        if position > 0 {
            text.push(b',');
        }
        write(text, &item);
    }
    text.push(b']');
}

/// Writes a section with its items.
fn section(text: &mut Vec<u8>, section: &DocumentSection, items: impl FnOnce(&mut Vec<u8>)) {
    head(text, section);
    items(text);
    text.push(b'}');
}

/// Writes the begin of a section whose items follow.
fn open(text: &mut Vec<u8>, section: &DocumentSection) {
    head(text, section);
    text.push(b'[');
}

fn head(text: &mut Vec<u8>, section: &DocumentSection) {
    text.push(b',');
    write(text, &section.name);
    text.extend_from_slice(b":{\"about\":");
    write(text, section);
    text.extend_from_slice(b",\"items\":");
}
