//! Sample clicks and their times.

use crate::attribution::Candidate;
use crate::click::Click;
use crate::click::agent::{Agent, BotReason};
use crate::click::params::TrackingParams;
use crate::device::{Platform, Screen};
use crate::forwarding::plan::samples::click;
use crate::integration::Network;
use crate::vocabulary::id::{ClickId, LinkId};
use crate::vocabulary::time::Timestamp;
use std::collections::BTreeMap;

pub(super) const MINUTE: i64 = 60;
pub(super) const HOUR: i64 = 60 * MINUTE;
pub(super) const DAY: i64 = 24 * HOUR;

/// Time of the first open in every scene.
const OPEN_SECONDS: i64 = 1_700_000_000;

/// Returns the time this many seconds before the first open.
pub(super) const fn before_open(seconds: i64) -> Timestamp {
    Timestamp::from_millis((OPEN_SECONDS - seconds) * 1_000)
}

pub(super) fn click_id(number: u8) -> ClickId {
    ClickId::from_bytes([number; 16])
}

pub(super) fn link_id(number: u8) -> LinkId {
    LinkId::from_bytes([number; 16])
}

pub(super) fn screen(width: u32) -> Option<Screen> {
    Screen::new(width, 800, 200)
}

/// A person's click on a Meta link, an hour before the first open, from a phone like the scene's.
#[derive(Debug, Clone)]
pub(super) struct Tap(pub(super) Candidate);

pub(super) fn tap(number: u8) -> Tap {
    let click = Click {
        id: click_id(number),
        link: link_id(number),
        clicked_at: before_open(HOUR),
        agent: Agent {
            platform: Platform::Android,
            os_version: Some("14".to_owned()),
            model: None,
        },
        language: Some("en".to_owned()),
        captured: TrackingParams::default(),
        ..click()
    };
    Tap(Candidate {
        click,
        deep_link: None,
        custom_data: BTreeMap::new(),
        is_taken: false,
    })
}

impl Tap {
    pub(super) fn with(mut self, change: impl FnOnce(&mut Click)) -> Self {
        change(&mut self.0.click);
        self
    }

    pub(super) fn before(self, seconds: i64) -> Self {
        self.with(|click| click.clicked_at = before_open(seconds))
    }

    pub(super) fn bot(self) -> Self {
        self.with(|click| click.bot = Some(BotReason::KnownAgent))
    }

    pub(super) fn on_test_link(self) -> Self {
        self.with(|click| click.bot = Some(BotReason::TestLink))
    }

    pub(super) fn network(self, network: Option<Network>) -> Self {
        self.with(|click| click.network = network)
    }

    pub(super) fn platform(self, platform: Platform) -> Self {
        self.with(|click| click.agent.platform = platform)
    }

    pub(super) fn os(self, version: &str) -> Self {
        self.with(|click| click.agent.os_version = text(version))
    }

    pub(super) fn model(self, model: &str) -> Self {
        self.with(|click| click.agent.model = text(model))
    }

    pub(super) fn language(self, language: &str) -> Self {
        self.with(|click| click.language = text(language))
    }

    pub(super) fn timezone(self, timezone: &str) -> Self {
        self.with(|click| click.timezone = text(timezone))
    }

    pub(super) fn screen(self, width: u32) -> Self {
        self.with(|click| click.screen = screen(width))
    }

    pub(super) fn taken(mut self) -> Self {
        self.0.is_taken = true;
        self
    }

    pub(super) fn candidate(self) -> Candidate {
        self.0
    }
}

pub(super) fn text(value: &str) -> Option<String> {
    (!value.is_empty()).then(|| value.to_owned())
}

/// Returns this many clicks from one address: one matches, and the others have another OS version.
pub(super) fn crowd(size: usize) -> Vec<Tap> {
    let numbers = 1..=u8::try_from(size).expect("a small crowd");
    numbers
        .map(|number| {
            if number == 1 {
                tap(1)
            } else {
                tap(number).os("13")
            }
        })
        .collect()
}
