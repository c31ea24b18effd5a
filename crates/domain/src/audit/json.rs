//! The JSON line of an entry, from which its hash is computed.
//!
//! The line has a fixed form: these fields in this order, no spaces, and only the escapes that JSON
//! requires. So others can compute the hash from an exported line without parsing it.

use super::FieldChange;
use crate::vocabulary::digest::{Digest, hex};
use crate::vocabulary::id::{AppId, AuditId, KeyId, OrganizationId, UserId};
use crate::vocabulary::time::Timestamp;
use std::fmt::Write as _;

/// An entry as it is hashed. Actions and actors are texts, so that a program can also verify the
/// entries of a version that knows more of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HashedEntry {
    /// Organization.
    pub organization: OrganizationId,
    /// Entry id.
    pub id: AuditId,
    /// Time of the change.
    pub at: Timestamp,
    /// Kind of the actor.
    pub actor_kind: String,
    /// Id of the actor, if the kind has ids.
    pub actor: Option<[u8; 16]>,
    /// Audited action.
    pub action: String,
    /// Affected app, if any.
    pub app: Option<AppId>,
    /// Id or name of the affected object.
    pub target: String,
    /// Changed fields.
    pub changes: Vec<FieldChange>,
    /// Environment of the changed data.
    pub environment: String,
    /// Client address.
    pub address: Option<String>,
    /// Request id.
    pub request_id: Option<String>,
}

/// Start of the last field of an exported line. The hash covers the line without this field.
const HASH_FIELD: &str = ",\"hash\":\"";
/// End of an exported line after the hash.
const LINE_END: &str = "\"}";

impl HashedEntry {
    /// Returns the line that is hashed: the entry, its sequence number and the hash of the previous
    /// entry, as one JSON object.
    pub fn hashed_line(&self, sequence: u64, previous: Digest) -> String {
        let mut json = Writer::default();
        json.field("organization", Some(&self.organization.to_string()));
        json.number("sequence", sequence);
        json.field("id", Some(&self.id.to_string()));
        json.field("at", Some(&self.at.rfc3339()));
        json.begin_object("actor");
        json.field("kind", Some(&self.actor_kind));
        let actor = self.actor.map(|id| actor_text(&self.actor_kind, id));
        json.field("id", actor.as_deref());
        json.end('}');
        json.field("action", Some(&self.action));
        let app = self.app.map(|app| app.to_string());
        json.field("appId", app.as_deref());
        json.field("target", Some(&self.target));
        json.begin_array("changes");
        for change in &self.changes {
            json.begin_item();
            json.field("field", Some(&change.field));
            json.field("before", change.before.as_deref());
            json.field("after", change.after.as_deref());
            json.end('}');
        }
        json.end(']');
        json.field("environment", Some(&self.environment));
        json.field("address", self.address.as_deref());
        json.field("requestId", self.request_id.as_deref());
        json.field("previousHash", Some(&hex(previous.as_bytes())));
        json.0.push('}');
        json.0
    }
}

/// Adds the hash to a line, as exports and streams show it. Has no line break at its end.
pub fn with_hash(hashed_line: &str, hash: Digest) -> String {
    let object = hashed_line.strip_suffix('}').unwrap_or(hashed_line);
    let hash = hex(hash.as_bytes());
    format!("{object}{HASH_FIELD}{hash}{LINE_END}")
}

/// Splits an exported line into the line that is hashed and the hash as hex. `None` if the line has
/// another form.
pub fn without_hash(line: &str) -> Option<(String, &str)> {
    let rest = line.strip_suffix(LINE_END)?;
    let (object, hash) = rest.rsplit_once(HASH_FIELD)?;
    Some((format!("{object}}}"), hash))
}

/// Returns the text of an actor's id. An unknown kind gets the bytes as hex.
fn actor_text(kind: &str, id: [u8; 16]) -> String {
    match kind {
        "key" => KeyId::from_bytes(id).to_string(),
        "user" => UserId::from_bytes(id).to_string(),
        _ => hex(&id),
    }
}

/// Writes one JSON object.
struct Writer(String);

impl Default for Writer {
    fn default() -> Self {
        Self("{".to_owned())
    }
}

impl Writer {
    fn name(&mut self, name: &str) {
        if !self.0.ends_with(['{', '[']) {
            self.0.push(',');
        }
        self.text(name);
        self.0.push(':');
    }

    fn field(&mut self, name: &str, value: Option<&str>) {
        self.name(name);
        match value {
            Some(value) => self.text(value),
            None => self.0.push_str("null"),
        }
    }

    fn number(&mut self, name: &str, value: u64) {
        self.name(name);
        // Writing to a String cannot fail.
        let _infallible = write!(self.0, "{value}");
    }

    fn begin_object(&mut self, name: &str) {
        self.name(name);
        self.0.push('{');
    }

    fn begin_array(&mut self, name: &str) {
        self.name(name);
        self.0.push('[');
    }

    fn begin_item(&mut self) {
        if !self.0.ends_with('[') {
            self.0.push(',');
        }
        self.0.push('{');
    }

    fn end(&mut self, bracket: char) {
        self.0.push(bracket);
    }

    fn text(&mut self, text: &str) {
        self.0.push('"');
        for character in text.chars() {
            match character {
                '"' => self.0.push_str("\\\""),
                '\\' => self.0.push_str("\\\\"),
                '\n' => self.0.push_str("\\n"),
                '\r' => self.0.push_str("\\r"),
                '\t' => self.0.push_str("\\t"),
                '\u{8}' => self.0.push_str("\\b"),
                '\u{c}' => self.0.push_str("\\f"),
                control if control < ' ' => {
                    // Writing to a String cannot fail.
                    let _infallible = write!(self.0, "\\u{:04x}", u32::from(control));
                }
                other => self.0.push(other),
            }
        }
        self.0.push('"');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn entry(target: &str) -> HashedEntry {
        HashedEntry {
            organization: OrganizationId::from_bytes([1; 16]),
            id: AuditId::from_bytes([2; 16]),
            at: Timestamp::from_millis(1_700_000_000_123),
            actor_kind: "user".to_owned(),
            actor: Some([3; 16]),
            action: "app.updated".to_owned(),
            app: Some(AppId::from_bytes([4; 16])),
            target: target.to_owned(),
            changes: vec![
                FieldChange {
                    field: "name".to_owned(),
                    before: None,
                    after: Some("a \"b\"\n".to_owned()),
                },
                FieldChange {
                    field: "archived".to_owned(),
                    before: Some("false".to_owned()),
                    after: None,
                },
            ],
            environment: "live".to_owned(),
            address: Some("192.0.2.7".to_owned()),
            request_id: None,
        }
    }

    const ZEROS: Digest = Digest::from_bytes([0; 32]);

    #[test]
    fn the_line_has_a_fixed_form() {
        insta::assert_snapshot!(entry("a").hashed_line(1, ZEROS));
    }

    proptest! {
        #[test]
        fn any_text_is_json_that_others_write_the_same(target in any::<String>()) {
            let line = entry(&target).hashed_line(1, ZEROS);
            let read: serde_json::Value = serde_json::from_str(&line).expect("JSON");
            prop_assert_eq!(read["target"].as_str(), Some(target.as_str()));
            let written = serde_json::to_string(&target).expect("JSON");
            let field = format!("\"target\":{written},");
            prop_assert!(line.contains(&field));
        }

        #[test]
        fn a_line_splits_into_what_was_joined(target in any::<String>(), hash: [u8; 32]) {
            let hashed = entry(&target).hashed_line(1, ZEROS);
            let line = with_hash(&hashed, Digest::from_bytes(hash));
            prop_assert!(!line.contains('\n'));
            let (object, found) = without_hash(&line).expect("an exported line");
            prop_assert_eq!((object, found.to_owned()), (hashed, hex(&hash)));
        }
    }

    #[test]
    fn other_lines_have_no_hash() {
        for line in ["", "{}", "{\"hash\":1}", "\"}"] {
            assert_eq!(without_hash(line), None);
        }
    }
}
