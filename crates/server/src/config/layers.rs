//! Layers of the configuration: default file, operator's file, environment.
//!
//! The default file defines which settings exist, and their types; the other layers only replace
//! values. Each value remembers its source, so that an error can name the place to change.

use super::nearest::nearest;
use super::problem::ConfigProblem;
use std::path::{Path, PathBuf};
use toml::{Table, Value};
use tributary_domain::node_role::NodeRoles;

/// Prefix of every environment variable.
pub(super) const VARIABLE_PREFIX: &str = "TRIBUTARY_";

/// Source of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SettingSource {
    Default,
    File(PathBuf),
    Variable(String),
    Argument(&'static str),
}

/// One effective setting.
pub(super) struct Setting {
    /// Path, such as `limits.connections`.
    pub path: String,
    pub value: Value,
    pub source: SettingSource,
}

impl Setting {
    /// Returns where to change the setting.
    pub(super) fn location(&self) -> String {
        match &self.source {
            SettingSource::Default => format!("`{}` ({})", self.path, variable(&self.path)),
            SettingSource::File(file) => format!("`{}` in {}", self.path, file.display()),
            SettingSource::Variable(name) => name.clone(),
            SettingSource::Argument(name) => (*name).to_owned(),
        }
    }
}

/// All settings, in the order of the default file.
pub(super) struct Layers {
    pub settings: Vec<Setting>,
}

impl Layers {
    /// Creates the lowest layer.
    pub(super) fn defaults(defaults: Table) -> Self {
        let mut settings = Vec::new();
        flatten("", defaults, &mut settings);
        Self { settings }
    }

    /// Overlays a settings file.
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
            let location = || format!("`{path}` in {}", file.display());
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
                    problems.push(ConfigProblem::new(location(), expected.expectation()));
                }
            } else if !self.is_section(&path) {
                let known = nearest(&path, self.known_paths()).unwrap_or_default();
                let message = format!("is not a known setting; did you mean `{known}`?");
                problems.push(ConfigProblem::new(location(), message));
            } else if let Value::Table(section) = value {
                self.overlay_table(&path, file, section, problems);
            } else {
                let message = format!("is a section; write [{path}] and its settings below it");
                problems.push(ConfigProblem::new(location(), message));
            }
        }
    }

    /// Overlays environment variables. Variables without the prefix are ignored.
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
                let message = format!("is not a known setting; did you mean {known}?");
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

    /// Overlays the roles from the command line.
    pub(super) fn overlay_roles(&mut self, roles: NodeRoles) {
        let names = roles.present().map(|role| Value::from(role.as_str()));
        let value = Value::Array(names.collect());
        let settings = self.settings.iter_mut();
        for setting in settings.filter(|setting| setting.path == "roles") {
            setting.value = value.clone();
            setting.source = SettingSource::Argument("--roles");
        }
    }

    /// Returns a setting by its path.
    pub(super) fn setting(&self, path: &str) -> Option<&Setting> {
        self.settings.iter().find(|setting| setting.path == path)
    }

    /// Returns where to change a setting.
    pub(super) fn location(&self, path: &str) -> String {
        self.setting(path)
            .map_or_else(|| path.to_owned(), Setting::location)
    }

    /// Returns the settings as one nested table.
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

    /// Returns all section paths: `networks.network_a.base_url` is in `networks.network_a`, which
    /// is in `networks`.
    fn sections(&self) -> impl Iterator<Item = &str> {
        self.settings.iter().flat_map(|setting| {
            setting
                .path
                .match_indices('.')
                .map(|(dot, _)| &setting.path[..dot])
        })
    }
}

/// Value types of settings.
#[derive(Clone, Copy)]
enum SettingType {
    Text,
    WholeNumber,
    Flag,
    List,
}

impl SettingType {
    /// Derives the type from the default value.
    fn of(default: &Value) -> Self {
        match default {
            Value::Integer(_) => Self::WholeNumber,
            Value::Boolean(_) => Self::Flag,
            Value::Array(_) => Self::List,
            // Dates, floats and tables do not occur among the defaults; a test checks this.
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

    /// Parses a variable's text.
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
            Self::Text => "must be a string in quotes",
            Self::WholeNumber => "must be an integer",
            Self::Flag => "must be true or false",
            Self::List => "must be a list of strings, such as [\"10.0.0.5\"]",
        }
    }
}

/// Returns the environment variable for a setting.
pub(super) fn variable(path: &str) -> String {
    format!(
        "{VARIABLE_PREFIX}{}",
        path.to_uppercase().replace('.', "__")
    )
}

/// Detects Kubernetes service links. Next to a service named `tributary`, containers get
/// `TRIBUTARY_SERVICE_HOST`, `TRIBUTARY_PORT` and `TRIBUTARY_PORT_8080_TCP_ADDR`. The operator did
/// not set these, so they are not errors.
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
