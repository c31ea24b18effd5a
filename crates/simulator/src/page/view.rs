//! The page's data, without credentials or personal data.

use crate::clock;
use crate::faults::ActiveFault;
use crate::ledger::{RecordedConversion, RefusalRecord, Totals};
use crate::network::SimulatedNetwork;
use crate::state::{SimulatorState, State};
use askama::Template;

/// Maximum number of rows per list.
const ROWS: usize = 12;

#[derive(Template)]
#[template(path = "page.html")]
pub(super) struct SimulatorPage {
    now: String,
    /// Clock offset, if any.
    shift: Option<String>,
    is_open: bool,
    /// Whether automatic reload is off.
    is_still: bool,
    has_faults: bool,
    columns: Vec<NetworkColumn>,
}

struct NetworkColumn {
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
    message: String,
    events: u64,
}

struct FaultRow {
    kind: &'static str,
    account: String,
    remaining: String,
}

impl SimulatorPage {
    pub(super) fn of(world: &SimulatorState, is_still: bool) -> Self {
        let state = world.state();
        let ahead = world.clock.ahead();
        Self {
            now: clock::format_time(world.clock.now()),
            shift: (ahead != 0).then(|| format!("{} s", ahead / clock::SECOND)),
            is_open: world.options.open,
            is_still,
            has_faults: !state.faults.active().is_empty(),
            columns: SimulatedNetwork::ALL
                .map(|network| column(&state, network))
                .into(),
        }
    }
}

fn column(state: &State, network: SimulatedNetwork) -> NetworkColumn {
    let ledger = state.read_ledger(network);
    let faults = state.faults.active().iter();
    NetworkColumn {
        label: network.label(),
        vendor: network.vendor(),
        totals: ledger.totals.clone(),
        conversions: ledger
            .conversions()
            .take(ROWS)
            .map(|one| conversion(network, one))
            .collect(),
        refusals: ledger.refusals().take(ROWS).map(refusal).collect(),
        faults: faults
            .filter(|one| one.injection.network == network)
            .map(fault)
            .collect(),
    }
}

fn conversion(network: SimulatedNetwork, one: &RecordedConversion) -> ConversionRow {
    ConversionRow {
        name: one.name.to_string(),
        id: one.id.as_deref().unwrap_or("no id").to_owned(),
        money: one.money_text(network).unwrap_or_default(),
        account: one.account.to_string(),
        times: one.times,
        counted: one.counted,
        at: clock::format_time(one.last_received),
    }
}

fn refusal(one: &RefusalRecord) -> RefusalRow {
    RefusalRow {
        at: clock::format_time(one.received),
        account: one.account.clone().unwrap_or_else(|| "unknown".to_owned()),
        reason: one.reason.clone(),
        message: one.message.clone(),
        events: one.events,
    }
}

fn fault(one: &ActiveFault) -> FaultRow {
    let injection = &one.injection;
    let remaining = injection.times.map(|times| format!("{times} more"));
    FaultRow {
        kind: injection.fault.kind(),
        account: injection
            .account
            .clone()
            .unwrap_or_else(|| "every account".to_owned()),
        remaining: remaining.unwrap_or_else(|| "until cleared".to_owned()),
    }
}
