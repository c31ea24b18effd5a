//! The editor form. All fields are text, so that invalid input survives a round trip.

use std::collections::BTreeMap;
use tributary_domain::skan::{
    CONDITIONS_PER_VALUE_MAX, Condition, ConversionValue, Document, Draft, DraftCondition,
    DraftLockOn, DraftValue, DraftWindow, LockOn, VALUES_PER_WINDOW_MAX, WINDOWS_MAX, Window,
};
use tributary_domain::vocabulary::currency::Currency;
use tributary_domain::vocabulary::fault::{FaultCode, Faults, Problem};
use tributary_domain::vocabulary::field_input::FieldInput;
use tributary_domain::vocabulary::money::Amount;
use tributary_fields::Form;

/// The editor form for a configuration.
#[derive(Debug, Clone, Default)]
pub(super) struct Editor {
    pub(super) enabled: bool,
    pub(super) currency: String,
    pub(super) accept_test_signals: bool,
    pub(super) windows: Vec<WindowForm>,
}

#[derive(Debug, Clone, Default)]
pub(super) struct WindowForm {
    pub(super) index: usize,
    pub(super) enabled: bool,
    pub(super) lock_kind: String,
    pub(super) lock_value: String,
    pub(super) values: Vec<ValueForm>,
}

#[derive(Debug, Clone, Default)]
pub(super) struct ValueForm {
    pub(super) name: String,
    pub(super) fine: String,
    pub(super) coarse: String,
    pub(super) lock: bool,
    pub(super) conditions: Vec<ConditionForm>,
}

#[derive(Debug, Clone, Default)]
pub(super) struct ConditionForm {
    pub(super) event: String,
    pub(super) min_count: String,
    pub(super) max_count: String,
    pub(super) min_revenue: String,
    pub(super) max_revenue: String,
}

impl ValueForm {
    pub(super) fn is_coarse(&self, word: &str) -> bool {
        self.coarse == word
    }
}

impl WindowForm {
    /// Returns whether this is the first window, the only one with fine values.
    pub(super) const fn is_first(&self) -> bool {
        self.index == 0
    }

    /// Returns the window's title, which includes its days.
    pub(super) const fn span(&self) -> &'static str {
        match self.index {
            0 => "Window 1: the first two days",
            1 => "Window 2: days 3 to 7",
            _ => "Window 3: days 8 to 35",
        }
    }
}

fn text<T: ToString>(value: Option<T>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

impl From<&Condition> for ConditionForm {
    fn from(condition: &Condition) -> Self {
        Self {
            event: condition.event.clone(),
            min_count: text(condition.min_count),
            max_count: text(condition.max_count),
            min_revenue: text(condition.min_revenue),
            max_revenue: text(condition.max_revenue),
        }
    }
}

impl From<&ConversionValue> for ValueForm {
    fn from(value: &ConversionValue) -> Self {
        Self {
            name: value.name.clone(),
            fine: text(value.fine_value),
            coarse: value.coarse_value.as_str().to_owned(),
            lock: value.lock,
            conditions: value.conditions.iter().map(ConditionForm::from).collect(),
        }
    }
}

impl From<&Window> for WindowForm {
    fn from(window: &Window) -> Self {
        let (lock_kind, lock_value) = match &window.lock_on {
            None => ("", String::new()),
            Some(LockOn::FineValue(fine)) => ("fineValue", fine.to_string()),
            Some(LockOn::CoarseValue(coarse)) => ("coarseValue", coarse.as_str().to_owned()),
            Some(LockOn::Event(event)) => ("event", event.clone()),
        };
        Self {
            index: usize::from(window.index),
            enabled: window.enabled,
            lock_kind: lock_kind.to_owned(),
            lock_value,
            values: window.values.iter().map(ValueForm::from).collect(),
        }
    }
}

impl Editor {
    /// Builds the form for a document.
    pub(super) fn of(document: &Document) -> Self {
        let window = |index: usize| {
            let found = document
                .windows
                .iter()
                .find(|one| usize::from(one.index) == index);
            found.map_or_else(
                || WindowForm {
                    index,
                    ..WindowForm::default()
                },
                WindowForm::from,
            )
        };
        Self {
            enabled: document.enabled,
            currency: document.currency.as_str().to_owned(),
            accept_test_signals: document.accept_test_signals,
            windows: (0..WINDOWS_MAX).map(window).collect(),
        }
    }

    /// Reads a submitted form. Empty rows are dropped.
    pub(super) fn from_form(form: &Form) -> Self {
        let fields: BTreeMap<&str, &str> = form.fields().rev().collect();
        let field = |name: String| fields.get(name.as_str()).map(|text| text.trim().to_owned());
        let text = |name: String| field(name).unwrap_or_default();
        let condition = |path: &str, index: usize| {
            let path = format!("{path}.conditions[{index}]");
            field(format!("{path}.event"))?;
            Some(ConditionForm {
                event: text(format!("{path}.event")),
                min_count: text(format!("{path}.minCount")),
                max_count: text(format!("{path}.maxCount")),
                min_revenue: text(format!("{path}.minRevenue")),
                max_revenue: text(format!("{path}.maxRevenue")),
            })
        };
        let value = |window: usize, index: usize| {
            let path = format!("windows[{window}].values[{index}]");
            field(format!("{path}.name"))?;
            let conditions = (0..=CONDITIONS_PER_VALUE_MAX).filter_map(|one| condition(&path, one));
            let conditions = conditions.filter(|one| !one.is_empty());
            Some(ValueForm {
                name: text(format!("{path}.name")),
                fine: text(format!("{path}.fineValue")),
                coarse: text(format!("{path}.coarseValue")),
                lock: field(format!("{path}.lock")).is_some(),
                conditions: conditions.collect(),
            })
        };
        let window = |index: usize| WindowForm {
            index,
            enabled: field(format!("windows[{index}].enabled")).is_some(),
            lock_kind: text(format!("windows[{index}].lockOn.kind")),
            lock_value: text(format!("windows[{index}].lockOn.value")),
            values: (0..=VALUES_PER_WINDOW_MAX)
                .filter_map(|one| value(index, one))
                .filter(|value| !value.is_empty())
                .collect(),
        };
        Self {
            enabled: field("enabled".to_owned()).is_some(),
            currency: text("currency".to_owned()),
            accept_test_signals: field("acceptTestSignals".to_owned()).is_some(),
            windows: (0..WINDOWS_MAX).map(window).collect(),
        }
    }

    /// Adds an empty value, or an empty condition to a value.
    pub(super) fn add(&mut self, window: usize, value: Option<usize>) {
        let Some(window) = self.windows.get_mut(window) else {
            return;
        };
        match value.and_then(|value| window.values.get_mut(value)) {
            Some(value) => value.conditions.push(ConditionForm::default()),
            None => window.values.push(ValueForm {
                conditions: vec![ConditionForm::default()],
                ..ValueForm::default()
            }),
        }
        window.enabled = true;
    }

    /// Removes a value.
    pub(super) fn remove(&mut self, window: usize, value: usize) {
        if let Some(window) = self.windows.get_mut(window)
            && value < window.values.len()
        {
            window.values.remove(value);
        }
    }

    /// Moves a value up. The first value whose conditions hold wins.
    pub(super) fn move_up(&mut self, window: usize, value: usize) {
        if let Some(window) = self.windows.get_mut(window)
            && (1..window.values.len()).contains(&value)
        {
            window.values.swap(value - 1, value);
        }
    }

    /// Converts the form into a draft for validation.
    pub(super) fn draft(&self, faults: &mut Faults) -> Draft {
        let currency = faults.check("currency", Currency::parse(&self.currency));
        Draft {
            enabled: FieldInput::Value(self.enabled),
            currency: currency.map_or(FieldInput::Invalid, FieldInput::Value),
            accept_test_signals: FieldInput::Value(self.accept_test_signals),
            windows: FieldInput::Value(
                self.windows
                    .iter()
                    .enumerate()
                    .map(|(index, one)| FieldInput::Value(one.draft(index, faults)))
                    .collect(),
            ),
        }
    }
}

impl ConditionForm {
    fn is_empty(&self) -> bool {
        let texts = [
            &self.event,
            &self.min_count,
            &self.max_count,
            &self.min_revenue,
            &self.max_revenue,
        ];
        texts.iter().all(|text| text.is_empty())
    }

    fn draft(&self, path: &str, faults: &mut Faults) -> DraftCondition {
        DraftCondition {
            event: given(&self.event),
            min_count: number(&self.min_count, format!("{path}.minCount"), faults),
            max_count: number(&self.max_count, format!("{path}.maxCount"), faults),
            min_revenue: amount(&self.min_revenue, format!("{path}.minRevenue"), faults),
            max_revenue: amount(&self.max_revenue, format!("{path}.maxRevenue"), faults),
        }
    }
}

impl ValueForm {
    fn is_empty(&self) -> bool {
        self.name.is_empty() && self.fine.is_empty() && self.conditions.is_empty()
    }

    fn draft(&self, path: &str, faults: &mut Faults) -> DraftValue {
        let conditions = self.conditions.iter().enumerate().map(|(index, one)| {
            let path = format!("{path}.conditions[{index}]");
            FieldInput::Value(one.draft(&path, faults))
        });
        let conditions = conditions.collect();
        DraftValue {
            name: given(&self.name),
            fine_value: number(&self.fine, format!("{path}.fineValue"), faults),
            coarse_value: given(&self.coarse),
            lock: FieldInput::Value(self.lock),
            conditions: FieldInput::Value(conditions),
        }
    }
}

impl WindowForm {
    fn draft(&self, index: usize, faults: &mut Faults) -> DraftWindow {
        let path = format!("windows[{index}]");
        let lock_on = match self.lock_kind.as_str() {
            "fineValue" => FieldInput::Value(DraftLockOn {
                fine_value: number(&self.lock_value, format!("{path}.lockOn.fineValue"), faults),
                ..DraftLockOn::default()
            }),
            "coarseValue" => FieldInput::Value(DraftLockOn {
                coarse_value: given(&self.lock_value),
                ..DraftLockOn::default()
            }),
            "event" => FieldInput::Value(DraftLockOn {
                event: given(&self.lock_value),
                ..DraftLockOn::default()
            }),
            _ => FieldInput::Absent,
        };
        let values = self.values.iter().enumerate().map(|(index, value)| {
            let path = format!("{path}.values[{index}]");
            FieldInput::Value(value.draft(&path, faults))
        });
        let values = values.collect();
        DraftWindow {
            index: FieldInput::Value(i64::try_from(index).unwrap_or(i64::MAX)),
            enabled: FieldInput::Value(self.enabled),
            lock_on,
            values: FieldInput::Value(values),
        }
    }
}

fn given(text: &str) -> FieldInput<String> {
    if text.is_empty() {
        FieldInput::Absent
    } else {
        FieldInput::Value(text.to_owned())
    }
}

fn number(text: &str, path: String, faults: &mut Faults) -> FieldInput<i64> {
    match text.parse() {
        _ if text.is_empty() => FieldInput::Absent,
        Ok(number) => FieldInput::Value(number),
        Err(_) => {
            faults.add(
                path,
                Problem::new(FaultCode::WrongType, "Must be a whole number."),
            );
            FieldInput::Invalid
        }
    }
}

fn amount(text: &str, path: String, faults: &mut Faults) -> FieldInput<Amount> {
    match Amount::parse_text(text) {
        _ if text.is_empty() => FieldInput::Absent,
        Ok(amount) => FieldInput::Value(amount),
        Err(problem) => {
            faults.add(path, problem);
            FieldInput::Invalid
        }
    }
}
