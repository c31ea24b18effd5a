//! What the page shows: no credentials, and of people nothing at all.

use crate::clock;
use crate::faults::Active;
use crate::ledger::{Conversion, Refusal, Totals};
use crate::network::Network;
use crate::world::{State, World};
use askama::Template;

/// Rows of a list.
const ROWS: usize = 12;

#[derive(Template)]
#[template(path = "page.html")]
pub(super) struct Page {
    now: String,
    /// How far the clock is off, when it is.
    shift: Option<String>,
    is_open: bool,
    /// Whether it shall not reload itself.
    is_still: bool,
    has_faults: bool,
    columns: Vec<Column>,
}

struct Column {
    label: &'static str,
    vendor: &'static str,
    totals: Totals,
    conversions: Vec<ConversionRow>,
    refusals: Vec<RefusalRow>,
    faults: Vec<FaultRow>,
}

struct ConversionRow {
    name: String,
    id: String,
    money: String,
    account: String,
    times: u32,
    counted: u32,
    at: String,
}

struct RefusalRow {
    at: String,
    account: String,
    reason: String,
    words: String,
    events: u64,
}

struct FaultRow {
    kind: &'static str,
    account: String,
    remaining: String,
}

impl Page {
    pub(super) fn of(world: &World, is_still: bool) -> Self {
        let state = world.state();
        let ahead = world.clock.ahead();
        Self {
            now: clock::text(world.clock.now()),
            shift: (ahead != 0).then(|| format!("{} s", ahead / clock::SECOND)),
            is_open: world.options.open,
            is_still,
            has_faults: !state.faults.active().is_empty(),
            columns: Network::ALL.map(|network| column(&state, network)).into(),
        }
    }
}

fn column(state: &State, network: Network) -> Column {
    let books = state.books(network);
    let faults = state.faults.active().iter();
    Column {
        label: network.label(),
        vendor: network.vendor(),
        totals: books.totals.clone(),
        conversions: books
            .conversions()
            .take(ROWS)
            .map(|one| conversion(network, one))
            .collect(),
        refusals: books.refusals().take(ROWS).map(refusal).collect(),
        faults: faults
            .filter(|one| one.order.network == network)
            .map(fault)
            .collect(),
    }
}

fn conversion(network: Network, one: &Conversion) -> ConversionRow {
    ConversionRow {
        name: one.name.to_string(),
        id: one.id.as_deref().unwrap_or("no id").to_owned(),
        money: one.money_text(network).unwrap_or_default(),
        account: one.account.to_string(),
        times: one.times,
        counted: one.counted,
        at: clock::text(one.last_received),
    }
}

fn refusal(one: &Refusal) -> RefusalRow {
    RefusalRow {
        at: clock::text(one.received),
        account: one.account.clone().unwrap_or_else(|| "unknown".to_owned()),
        reason: one.reason.clone(),
        words: one.words.clone(),
        events: one.events,
    }
}

fn fault(one: &Active) -> FaultRow {
    let order = &one.order;
    let remaining = order.times.map(|times| format!("{times} more"));
    FaultRow {
        kind: order.fault.kind(),
        account: order
            .account
            .clone()
            .unwrap_or_else(|| "every account".to_owned()),
        remaining: remaining.unwrap_or_else(|| "until cleared".to_owned()),
    }
}
