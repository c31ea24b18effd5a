//! The three layers of the configuration: the default file, the operator's file, the environment.
//!
//! The default file says which settings exist and what kind of value each has; the other two only replace
//! values, and each value remembers where it came from, so that a complaint can name the place to change.

use super::nearest::nearest;
use super::problem::ConfigProblem;
use std::path::{Path, PathBuf};
use toml::{Table, Value};

/// What every variable begins with.
pub(super) const VARIABLE_PREFIX: &str = "TRIBUTARY_";

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SettingSource {
    Default,
    File(PathBuf),
    Variable(String),
}

/// One setting, as it is in force.
pub(super) struct Setting {
    /// Its path: `limits.connections`.
    pub path: String,
    pub value: Value,
    pub source: SettingSource,
}

impl Setting {
    /// Where to change it.
    pub(super) fn location(&self) -> String {
        match &self.source {
            SettingSource::Default => format!("`{}` ({})", self.path, variable(&self.path)),
            SettingSource::File(file) => format!("`{}` in {}", self.path, file.display()),
            SettingSource::Variable(name) => name.clone(),
        }
    }
}

/// All settings, in the order of the default file.
pub(super) struct Layers {
    pub settings: Vec<Setting>,
}

impl Layers {
    /// The lowest layer.
    pub(super) fn defaults(defaults: Table) -> Self {
        let mut settings = Vec::new();
        flatten("", defaults, &mut settings);
        Self { settings }
    }

    /// Lays a file over what is there.
    pub(super) fn overlay_file(
        &mut self,
        file: &Path,
        table: Table,
        problems: &mut Vec<ConfigProblem>,
    ) {
        self.overlay_table("", file, table, problems);
    }

    fn overlay_table(
        &mut self,
        prefix: &str,
        file: &Path,
        table: Table,
        problems: &mut Vec<ConfigProblem>,
    ) {
        for (key, value) in table {
            let path = join(prefix, &key);
            let place = || format!("`{path}` in {}", file.display());
            if let Some(setting) = self
                .settings
                .iter_mut()
                .find(|setting| setting.path == path)
            {
                let expected = SettingType::of(&setting.value);
                if expected.fits(&value) {
                    setting.value = value;
                    setting.source = SettingSource::File(file.to_owned());
                } else {
                    problems.push(ConfigProblem::new(place(), expected.expectation()));
                }
            } else if !self.is_section(&path) {
                let known = nearest(&path, self.known_paths()).unwrap_or_default();
                let message = format!("is no setting; the nearest one is `{known}`");
                problems.push(ConfigProblem::new(place(), message));
            } else if let Value::Table(section) = value {
                self.overlay_table(&path, file, section, problems);
            } else {
                let message = format!("is a section; write [{path}] and its settings below it");
                problems.push(ConfigProblem::new(place(), message));
            }
        }
    }

    /// Lays the environment over what is there. Variables of others are none of our business.
    pub(super) fn overlay_environment(
        &mut self,
        environment: impl Iterator<Item = (String, String)>,
        problems: &mut Vec<ConfigProblem>,
    ) {
        for (name, text) in environment {
            if !name.starts_with(VARIABLE_PREFIX) || is_service_link(&name, &text) {
                continue;
            }
            let Some(setting) = self.settings.iter_mut().find(|s| variable(&s.path) == name) else {
                let variables: Vec<String> = self
                    .settings
                    .iter()
                    .map(|setting| variable(&setting.path))
                    .collect();
                let known =
                    nearest(&name, variables.iter().map(String::as_str)).unwrap_or_default();
                let message = format!("stands for no setting; the nearest one is {known}");
                problems.push(ConfigProblem::new(name, message));
                continue;
            };
            let expected = SettingType::of(&setting.value);
            match expected.read(text.trim()) {
                Some(value) => {
                    setting.value = value;
                    setting.source = SettingSource::Variable(name);
                }
                None => problems.push(ConfigProblem::new(name, expected.expectation())),
            }
        }
    }

    /// A setting by its path.
    pub(super) fn setting(&self, path: &str) -> Option<&Setting> {
        self.settings.iter().find(|setting| setting.path == path)
    }

    /// Where to change a setting.
    pub(super) fn location(&self, path: &str) -> String {
        self.setting(path)
            .map_or_else(|| path.to_owned(), Setting::location)
    }

    /// The settings as one nested table.
    pub(super) fn table(&self) -> Table {
        let mut whole = Table::new();
        for setting in &self.settings {
            insert(&mut whole, &setting.path, setting.value.clone());
        }
        whole
    }

    fn is_section(&self, path: &str) -> bool {
        self.sections().any(|section| section == path)
    }

    fn known_paths(&self) -> impl Iterator<Item = &str> {
        self.settings
            .iter()
            .map(|setting| setting.path.as_str())
            .chain(self.sections())
    }

    /// `networks.network_a.base_url` stands in `networks.network_a`, and that in `networks`.
    fn sections(&self) -> impl Iterator<Item = &str> {
        self.settings.iter().flat_map(|setting| {
            setting
                .path
                .match_indices('.')
                .map(|(dot, _)| &setting.path[..dot])
        })
    }
}

/// The kinds of values that settings have.
#[derive(Clone, Copy)]
enum SettingType {
    Text,
    WholeNumber,
    Flag,
    List,
}

impl SettingType {
    /// The default of a setting says of which kind it is.
    fn of(default: &Value) -> Self {
        match default {
            Value::Integer(_) => Self::WholeNumber,
            Value::Boolean(_) => Self::Flag,
            Value::Array(_) => Self::List,
            // Dates, floats and tables do not occur among the defaults; a test says so.
            _ => Self::Text,
        }
    }

    fn fits(self, value: &Value) -> bool {
        match (self, value) {
            (Self::Text, Value::String(_))
            | (Self::WholeNumber, Value::Integer(_))
            | (Self::Flag, Value::Boolean(_)) => true,
            (Self::List, Value::Array(items)) => items.iter().all(Value::is_str),
            _ => false,
        }
    }

    /// Reads the text of a variable.
    fn read(self, text: &str) -> Option<Value> {
        match self {
            Self::Text => Some(Value::String(text.to_owned())),
            Self::WholeNumber => text.parse().ok().map(Value::Integer),
            Self::Flag => text.parse().ok().map(Value::Boolean),
            Self::List => {
                let items = text
                    .split(',')
                    .map(str::trim)
                    .filter(|item| !item.is_empty());
                Some(Value::Array(
                    items.map(|item| Value::String(item.to_owned())).collect(),
                ))
            }
        }
    }

    const fn expectation(self) -> &'static str {
        match self {
            Self::Text => "must be a text in quotation marks",
            Self::WholeNumber => "must be a whole number",
            Self::Flag => "must be true or false",
            Self::List => "must be a list of texts, such as [\"10.0.0.5\"]",
        }
    }
}

/// The variable that a setting can be given by.
pub(super) fn variable(path: &str) -> String {
    format!(
        "{VARIABLE_PREFIX}{}",
        path.to_uppercase().replace('.', "__")
    )
}

/// Kubernetes tells every container of the services around it: beside a service called `tributary` there
/// are `TRIBUTARY_SERVICE_HOST`, `TRIBUTARY_PORT` and `TRIBUTARY_PORT_8080_TCP_ADDR`. Nobody wrote these
/// down, so nobody can be told to correct them.
fn is_service_link(name: &str, value: &str) -> bool {
    let is_port_of_a_service = name.split("_PORT_").skip(1).any(|rest| {
        let mut parts = rest.split('_');
        let is_number = parts.next().is_some_and(|port| port.parse::<u16>().is_ok());
        is_number && matches!(parts.next(), Some("TCP" | "UDP" | "SCTP"))
    });
    !name.contains("__")
        && (name.ends_with("_SERVICE_HOST")
            || name.contains("_SERVICE_PORT")
            || is_port_of_a_service
            || (name.ends_with("_PORT") && value.contains("://")))
}

fn join(prefix: &str, key: &str) -> String {
    if prefix.is_empty() {
        key.to_owned()
    } else {
        format!("{prefix}.{key}")
    }
}

fn flatten(prefix: &str, table: Table, settings: &mut Vec<Setting>) {
    for (key, value) in table {
        let path = join(prefix, &key);
        match value {
            Value::Table(section) => flatten(&path, section, settings),
            value => settings.push(Setting {
                path,
                value,
                source: SettingSource::Default,
            }),
        }
    }
}

fn insert(table: &mut Table, path: &str, value: Value) {
    let Some((section, rest)) = path.split_once('.') else {
        table.insert(path.to_owned(), value);
        return;
    };
    let section = table
        .entry(section)
        .or_insert_with(|| Value::Table(Table::new()));
    if let Value::Table(section) = section {
        insert(section, rest, value);
    }
}
