//! Reading a body field by field, collecting every fault on the way.
//!
//! A derived deserializer stops at the first fault. Here each field is asked for by name, with the function
//! that reads it; what is wrong is noted with its path, and the reader goes on. [`Fields::finish`] then
//! notes every field that nobody asked for, and says which ones there are.
//!
//! The body of a PATCH is compared with the document that GET answers: a field that carries its current value is
//! read as absent. A client may therefore send back the whole document with some fields changed.

mod current;
mod values;

pub(crate) use current::Current;

pub(crate) use values::{
    amount, choice, flag, integer, integer_in, text, text_as, text_map, wrong_type,
};

use crate::json::Node;
use std::collections::BTreeSet;
use tributary_domain::vocabulary::change::Change;
use tributary_domain::vocabulary::fault::{FaultCode, Faults, Problem};
use tributary_domain::vocabulary::given::Given;

/// An object that is being read.
pub(crate) struct Fields<'a> {
    state: State<'a>,
    path: String,
    known: Vec<&'static str>,
    ignored: Vec<&'static str>,
    /// The object as GET answers it now; nothing outside a PATCH.
    current: Option<&'a Node>,
    faults: &'a mut Faults,
}

/// What stands in the place of the object.
#[derive(Clone, Copy)]
enum State<'a> {
    /// Nothing: every field in it is absent.
    Absent,
    /// `null`: every field in it goes back to its default.
    Null,
    /// The object.
    Members(&'a [(String, Node)]),
}

impl<'a> Fields<'a> {
    /// The body itself.
    pub(crate) fn of_body(body: &'a Node, faults: &'a mut Faults) -> Self {
        let state = object_state(body, "body", faults);
        Self {
            state,
            path: String::new(),
            known: Vec::new(),
            ignored: Vec::new(),
            current: None,
            faults,
        }
    }

    /// The body of a PATCH, compared with the document that it changes.
    pub(crate) fn of_change(body: &'a Node, current: &'a Current, faults: &'a mut Faults) -> Self {
        Self {
            current: current.document(),
            ..Self::of_body(body, faults)
        }
    }

    /// An item of a list, or another object that was found on the way.
    pub(crate) fn of_item(node: &'a Node, path: String, faults: &'a mut Faults) -> Self {
        let state = object_state(node, &path, faults);
        Self {
            state,
            path,
            known: Vec::new(),
            ignored: Vec::new(),
            current: None,
            faults,
        }
    }

    /// The path of a field of this object.
    pub(crate) fn path_of(&self, name: &str) -> String {
        if self.path.is_empty() {
            name.to_owned()
        } else {
            format!("{}.{name}", self.path)
        }
    }

    fn find(&mut self, name: &'static str) -> Found<'a> {
        self.known.push(name);
        match self.state {
            State::Absent => Found::Absent,
            State::Null => Found::Null,
            State::Members(members) => {
                match members
                    .iter()
                    .find(|(member, _)| member == name)
                    .map(|(_, node)| node)
                {
                    None => Found::Absent,
                    Some(node) if self.is_current(name, node) => Found::Absent,
                    Some(Node::Null) => Found::Null,
                    Some(node) => Found::Value(node),
                }
            }
        }
    }

    fn current_value(&self, name: &str) -> Option<&'a Node> {
        self.current?.member(name)
    }

    fn is_current(&self, name: &str, node: &Node) -> bool {
        self.current_value(name)
            .is_some_and(|current| current.same_value(node))
    }

    /// A field that GET answers, that changes by itself and that a PATCH may therefore carry with any value.
    pub(crate) fn ignore(&mut self, name: &'static str) {
        self.ignored.push(name);
    }

    fn note(&mut self, name: &str, problem: Problem) {
        let path = self.path_of(name);
        self.faults.add(path, problem);
    }

    /// A field that must be there.
    pub(crate) fn required<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(&Node) -> Result<T, Problem>,
    ) -> Option<T> {
        let read = match self.find(name) {
            Found::Value(node) => read(node),
            Found::Null | Found::Absent => Err(required()),
        };
        read.map_err(|problem| self.note(name, problem)).ok()
    }

    /// A field that can be set and not be reset: it has no default to go back to.
    pub(crate) fn settable<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(&Node) -> Result<T, Problem>,
    ) -> Option<T> {
        match self.find(name) {
            Found::Absent => None,
            Found::Null => {
                let message = "Has no default to go back to, so it cannot be null.";
                self.note(name, Problem::new(FaultCode::Required, message));
                None
            }
            Found::Value(node) => read(node).map_err(|problem| self.note(name, problem)).ok(),
        }
    }

    /// A field that may be absent, null or given.
    pub(crate) fn change<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(&Node) -> Result<T, Problem>,
    ) -> Change<T> {
        match self.find(name) {
            Found::Absent => Change::Keep,
            Found::Null => Change::Reset,
            Found::Value(node) => match read(node) {
                Ok(value) => Change::Set(value),
                Err(problem) => {
                    self.note(name, problem);
                    Change::Keep
                }
            },
        }
    }

    /// A field whose further rules the domain checks itself.
    pub(crate) fn given<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(&Node) -> Result<T, Problem>,
    ) -> Given<T> {
        match self.find(name) {
            Found::Absent | Found::Null => Given::Absent,
            Found::Value(node) => match read(node) {
                Ok(value) => Given::Value(value),
                Err(problem) => {
                    self.note(name, problem);
                    Given::Faulty
                }
            },
        }
    }

    /// A list whose items are read one by one, each with its path.
    pub(crate) fn items<T>(
        &mut self,
        name: &'static str,
        mut read: impl FnMut(&Node, String, &mut Faults) -> T,
    ) -> Given<Vec<T>> {
        let node = match self.find(name) {
            Found::Absent | Found::Null => return Given::Absent,
            Found::Value(node) => node,
        };
        let Node::List(items) = node else {
            self.note(name, wrong_type("a list"));
            return Given::Faulty;
        };
        let path = self.path_of(name);
        let read = |(index, node)| read(node, format!("{path}[{index}]"), self.faults);
        Given::Value(items.iter().enumerate().map(read).collect())
    }

    /// An object whose fields the domain checks together.
    pub(crate) fn object<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(&mut Fields<'_>) -> T,
    ) -> Given<T> {
        let path = self.path_of(name);
        match self.find(name) {
            Found::Absent | Found::Null => Given::Absent,
            Found::Value(node @ Node::Object(_)) => {
                let mut fields = Fields::of_item(node, path, self.faults);
                let value = read(&mut fields);
                fields.finish();
                Given::Value(value)
            }
            Found::Value(_) => {
                self.note(name, wrong_type("an object"));
                Given::Faulty
            }
        }
    }

    /// Whether a field is there and null.
    pub(crate) fn is_null(&mut self, name: &'static str) -> bool {
        let is_null = matches!(self.find(name), Found::Null);
        self.known.pop();
        is_null
    }

    /// Lets a rule of the domain note faults of its own.
    pub(crate) fn check<T>(&mut self, rule: impl FnOnce(&mut Faults) -> T) -> T {
        rule(self.faults)
    }

    /// An object inside this one. Absent or null, all its fields are.
    pub(crate) fn section(&mut self, name: &'static str) -> Fields<'_> {
        let path = self.path_of(name);
        let state = match self.find(name) {
            Found::Absent => State::Absent,
            Found::Null => State::Null,
            Found::Value(node) => object_state(node, &path, self.faults),
        };
        Fields {
            state,
            path,
            known: Vec::new(),
            ignored: Vec::new(),
            current: self.current_value(name),
            faults: self.faults,
        }
    }

    /// Notes the fields that do not exist, those that cannot be changed, and those that stand twice.
    pub(crate) fn finish(self) {
        let State::Members(members) = self.state else {
            return;
        };
        let mut seen = BTreeSet::new();
        for (name, node) in members {
            let is_known = self.known.contains(&name.as_str());
            let is_ignored = self.ignored.contains(&name.as_str()) || self.is_current(name, node);
            let problem = if !is_known && is_ignored {
                continue;
            } else if !is_known && self.current_value(name).is_some() {
                let message =
                    "PATCH cannot change this field. Leave it out, or send its current value.";
                Problem::new(FaultCode::NotAllowed, message)
            } else if !is_known {
                let message = if self.known.is_empty() {
                    "No such field; this object takes none.".to_owned()
                } else {
                    format!(
                        "No such field. This object takes: {}.",
                        self.known.join(", ")
                    )
                };
                Problem::new(FaultCode::UnknownField, message)
            } else if !seen.insert(name) {
                let message = "Stands here twice; send it once.";
                Problem::new(FaultCode::DuplicateField, message)
            } else {
                continue;
            };
            if self.faults.is_full() {
                break;
            }
            self.faults.add(self.path_of(name), problem);
        }
    }
}

enum Found<'a> {
    Absent,
    Null,
    Value(&'a Node),
}

fn object_state<'a>(node: &'a Node, path: &str, faults: &mut Faults) -> State<'a> {
    if let Node::Object(members) = node {
        State::Members(members)
    } else {
        faults.add(path, wrong_type("an object"));
        State::Absent
    }
}

fn required() -> Problem {
    Problem::new(FaultCode::Required, "Must be given.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::parse;
    use rstest::rstest;

    fn faults(body: &str) -> Vec<(String, &'static str)> {
        let body = parse(body).unwrap();
        let mut faults = Faults::new();
        let mut fields = Fields::of_body(&body, &mut faults);
        fields.required("name", text);
        fields.change("hours", integer_in(1..=24));
        let mut section = fields.section("sdk");
        section.change("enabled", flag);
        section.finish();
        fields.finish();
        faults
            .iter()
            .map(|fault| (fault.field.clone(), fault.code.as_str()))
            .collect()
    }

    #[rstest]
    #[case::nothing_wrong(r#"{"name": "x", "hours": 3, "sdk": {"enabled": true}}"#, &[])]
    #[case::null_is_a_change(r#"{"name": "x", "hours": null, "sdk": null}"#, &[])]
    #[case::not_an_object("[]", &[("body", "wrong_type"), ("name", "required")])]
    #[case::missing("{}", &[("name", "required")])]
    #[case::every_fault_at_once(
        r#"{"name": 5, "hours": 25, "sdk": {"enabled": "yes", "enbaled": true}, "nmae": "x"}"#,
        &[
            ("name", "wrong_type"),
            ("hours", "out_of_range"),
            ("sdk.enabled", "wrong_type"),
            ("sdk.enbaled", "unknown_field"),
            ("nmae", "unknown_field"),
        ]
    )]
    #[case::twice(r#"{"name": "x", "name": "y"}"#, &[("name", "duplicate_field")])]
    #[case::fraction(r#"{"name": "x", "hours": 1.5}"#, &[("hours", "wrong_type")])]
    #[case::absurd_number(
        r#"{"name": "x", "hours": 99999999999999999999}"#, &[("hours", "out_of_range")]
    )]
    #[case::list_for_object(r#"{"name": "x", "sdk": []}"#, &[("sdk", "wrong_type")])]
    fn bodies(#[case] body: &str, #[case] expected: &[(&str, &str)]) {
        let found = faults(body);
        let found: Vec<(&str, &str)> = found
            .iter()
            .map(|(field, code)| (field.as_str(), *code))
            .collect();
        assert_eq!(found, expected);
    }

    #[rstest]
    #[case::number("49.99", Some("49.99"))]
    #[case::float_noise("0.30000000000000004", Some("0.3"))]
    #[case::exponent("1e2", Some("100"))]
    #[case::string(r#""0.3""#, Some("0.3"))]
    #[case::a_string_is_exact(r#""0.30000000000000004""#, None)]
    #[case::exponent_in_a_string(r#""1e2""#, None)]
    #[case::leading_zeros_in_a_string(r#""0009.90""#, Some("9.9"))]
    #[case::too_large("1000000000000", None)]
    #[case::another_type("true", None)]
    fn amounts(#[case] json: &str, #[case] expected: Option<&str>) {
        let found = amount(&parse(json).unwrap()).ok();
        assert_eq!(found.map(|it| it.to_string()).as_deref(), expected);
    }

    /// What a PATCH of this document is read as: the new values of `name` and `sdk.enabled`, and the faults.
    fn changed(body: &str) -> (Change<String>, Change<bool>, Vec<(String, &'static str)>) {
        let document = serde_json::json!({
            "id": "app_1", "name": "x", "key": {"set": false}, "updatedAt": null, "pending": 5,
            "sdk": {"enabled": true, "liveKey": "pk_live_1"},
        });
        let current = Current::of(Ok(()), |()| document).unwrap();
        let body = parse(body).unwrap();
        let mut faults = Faults::new();
        let mut fields = Fields::of_change(&body, &current, &mut faults);
        let name = fields.change("name", text);
        fields.change("key", text);
        fields.ignore("pending");
        let mut section = fields.section("sdk");
        let enabled = section.change("enabled", flag);
        section.finish();
        fields.finish();
        let faults = faults
            .iter()
            .map(|fault| (fault.field.clone(), fault.code.as_str()));
        (name, enabled, faults.collect())
    }

    #[rstest]
    #[case::the_whole_document(
        r#"{"id": "app_1", "name": "x", "key": {"set": false}, "updatedAt": null, "pending": 6,
            "sdk": {"liveKey": "pk_live_1", "enabled": true}}"#,
        Change::Keep, Change::Keep, &[]
    )]
    #[case::with_changes(
        r#"{"id": "app_1", "name": "y", "key": {"set": false},
            "sdk": {"enabled": false, "liveKey": "pk_live_1"}}"#,
        Change::Set("y".to_owned()), Change::Set(false), &[]
    )]
    #[case::fields_that_cannot_be_changed(
        r#"{"id": "app_2", "updatedAt": "now", "key": {"set": true}, "sdk": {"liveKey": null}}"#,
        Change::Keep, Change::Keep,
        &[
            ("key", "wrong_type"),
            ("sdk.liveKey", "not_allowed"),
            ("id", "not_allowed"),
            ("updatedAt", "not_allowed"),
        ]
    )]
    #[case::fields_that_do_not_exist(
        r#"{"nmae": "x"}"#, Change::Keep, Change::Keep, &[("nmae", "unknown_field")]
    )]
    fn a_document_is_sent_back(
        #[case] body: &str,
        #[case] name: Change<String>,
        #[case] enabled: Change<bool>,
        #[case] expected: &[(&str, &str)],
    ) {
        let found = changed(body);
        assert_eq!((found.0, found.1), (name, enabled));
        let faults: Vec<(&str, &str)> = found
            .2
            .iter()
            .map(|(field, code)| (field.as_str(), *code))
            .collect();
        assert_eq!(faults, expected);
    }

    #[test]
    fn an_unknown_field_learns_which_ones_there_are() {
        let body = parse(r#"{"nmae": "x"}"#).unwrap();
        let mut faults = Faults::new();
        let mut fields = Fields::of_body(&body, &mut faults);
        fields.change("name", text);
        fields.change("id", text);
        fields.finish();
        let message = &faults.iter().next().unwrap().message;
        assert_eq!(message, "No such field. This object takes: name, id.");
    }

    #[test]
    fn a_fault_never_repeats_the_value() {
        let body = parse(r#"{"name": {"secret": "hush"}, "sdk": {"enabled": "hush"}}"#).unwrap();
        let mut faults = Faults::new();
        let mut fields = Fields::of_body(&body, &mut faults);
        fields.required("name", text);
        fields.section("sdk").change("enabled", flag);
        fields.finish();
        assert!(!faults.to_string().contains("hush"));
    }
}
