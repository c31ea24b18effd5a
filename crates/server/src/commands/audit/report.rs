//! The result of a verification, and the verification of exported files.

use crate::commands::print_line;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::process::ExitCode;
use tributary_domain::audit::chain::{ChainBreak, ChainEnd, ChainVerifier};
use tributary_domain::audit::json::without_hash;
use tributary_domain::vocabulary::digest::{Digest, from_hex, hex};
use tributary_domain::vocabulary::time::{Timestamp, parse_moment};

/// The result for one organization.
#[derive(Debug)]
pub(super) struct Verified {
    pub(super) organization: String,
    pub(super) verified: u64,
    /// Last verified entry.
    pub(super) end: ChainEnd,
    /// Entries up to this number are not there: retention removed them, or the file begins later.
    pub(super) removed_until: u64,
    pub(super) removed_at: Option<Timestamp>,
    pub(super) is_waiting: bool,
    pub(super) broken: Option<(ChainBreak, Option<Timestamp>)>,
}

/// JSON form of [`Verified`].
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct VerifiedJson<'a> {
    organization: &'a str,
    verified: u64,
    last_sequence: u64,
    last_hash: String,
    removed_until: u64,
    removed_at: Option<String>,
    waiting: bool,
    broken: Option<BreakJson>,
}

/// JSON form of a break.
#[derive(Serialize)]
struct BreakJson {
    kind: &'static str,
    sequence: u64,
    at: Option<String>,
    message: String,
}

impl Verified {
    fn json(&self) -> VerifiedJson<'_> {
        let broken = self.broken.map(|(found, at)| BreakJson {
            kind: found.kind(),
            sequence: found.sequence(),
            at: at.map(Timestamp::rfc3339),
            message: found.to_string(),
        });
        VerifiedJson {
            organization: &self.organization,
            verified: self.verified,
            last_sequence: self.end.sequence,
            last_hash: hex(self.end.hash.as_bytes()),
            removed_until: self.removed_until,
            removed_at: self.removed_at.map(Timestamp::rfc3339),
            waiting: self.is_waiting,
            broken,
        }
    }
}

impl fmt::Display for Verified {
    fn fmt(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (organization, verified) = (&self.organization, self.verified);
        write!(text, "{organization}  {verified} entries verified")?;
        if verified > 0 {
            let last = self.end.sequence;
            let first = last.saturating_sub(verified).saturating_add(1);
            write!(text, " ({first} to {last})")?;
        }
        match (self.removed_until, self.removed_at) {
            (0, _) => {}
            (until, Some(at)) => {
                let at = at.rfc3339();
                write!(text, "; retention removed entries up to {until}, last {at}")?;
            }
            (until, None) => write!(text, "; entries up to {until} are not in the file")?,
        }
        if self.is_waiting {
            text.write_str("; entries of an earlier version still wait for their place")?;
        }
        match self.broken {
            None => Ok(()),
            Some((found, None)) => write!(text, "; BROKEN: {found}"),
            Some((found, Some(at))) => write!(text, "; BROKEN: {found} ({})", at.rfc3339()),
        }
    }
}

/// Prints the results. The exit code says whether all verify.
pub(super) fn print(found: &[Verified], is_json: bool) -> ExitCode {
    if is_json {
        let organizations: Vec<_> = found.iter().map(Verified::json).collect();
        let document = serde_json::json!({ "organizations": organizations });
        print_line(document.to_string());
    } else {
        for one in found {
            print_line(one.to_string());
        }
        if found.is_empty() {
            print_line("There are no audit entries.");
        }
    }
    let is_broken = found.iter().any(|one| one.broken.is_some());
    if is_broken {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    }
}

/// The fields of a line that its verification needs.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    organization: String,
    sequence: u64,
    at: String,
    previous_hash: String,
}

/// Verifies exported lines. Entries of several organizations may alternate.
#[derive(Default)]
pub(super) struct FileVerifier(BTreeMap<String, FileChain>);

/// The chain of one organization in a file.
struct FileChain {
    verifier: ChainVerifier,
    begin: u64,
    broken: Option<(ChainBreak, Option<Timestamp>)>,
}

impl FileVerifier {
    /// Checks a line. `None` if it is not an exported entry.
    pub(super) fn check(&mut self, text: &str) -> Option<()> {
        let (hashed, hash) = without_hash(text)?;
        let line: Line = serde_json::from_str(text).ok()?;
        let previous = digest(&line.previous_hash)?;
        let place = ChainEnd {
            sequence: line.sequence,
            hash: digest(hash)?,
        };
        let begin = line.sequence.checked_sub(1)?;
        // The file does not say what came before its first entry.
        let chain = self
            .0
            .entry(line.organization)
            .or_insert_with(|| FileChain {
                verifier: ChainVerifier::new(ChainEnd {
                    sequence: begin,
                    hash: previous,
                }),
                begin,
                broken: None,
            });
        if chain.broken.is_some() {
            return Some(());
        }
        let before = chain.verifier.end();
        let checked = chain.verifier.check(place, &hashed);
        let checked = checked.and_then(|()| {
            let is_next = previous == before.hash;
            let broken = ChainBreak::Changed(place.sequence);
            is_next.then_some(()).ok_or(broken)
        });
        if let Err(found) = checked {
            chain.broken = Some((found, parse_moment(&line.at).ok()));
        }
        Some(())
    }

    /// Returns the results.
    pub(super) fn finish(self) -> Vec<Verified> {
        let verified = |(organization, chain): (String, FileChain)| Verified {
            organization,
            verified: chain.verifier.verified(),
            end: chain.verifier.end(),
            removed_until: chain.begin,
            removed_at: None,
            is_waiting: false,
            broken: chain.broken,
        };
        self.0.into_iter().map(verified).collect()
    }
}

fn digest(text: &str) -> Option<Digest> {
    let bytes: [u8; 32] = from_hex(text)?.try_into().ok()?;
    Some(Digest::from_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tributary_domain::audit::json::{HashedEntry, with_hash};
    use tributary_domain::vocabulary::id::{AuditId, OrganizationId};

    /// Returns the lines of a chain with this many entries.
    fn lines(count: i64) -> Vec<String> {
        let mut end = ChainEnd::START;
        let line = |number| {
            let entry = HashedEntry {
                organization: OrganizationId::from_bytes([1; 16]),
                id: AuditId::from_bytes([2; 16]),
                at: Timestamp::from_millis(1_700_000_000_000 + number),
                actor_kind: "operator".to_owned(),
                actor: None,
                action: "app.updated".to_owned(),
                app: None,
                target: format!("target \"{number}\""),
                changes: Vec::new(),
                environment: "live".to_owned(),
                address: None,
                request_id: None,
            };
            let line = entry.hashed_line(end.sequence + 1, end.hash);
            end = end.after(&entry);
            with_hash(&line, end.hash)
        };
        (1..=count).map(line).collect()
    }

    fn verify(lines: &[String]) -> Vec<Verified> {
        let mut verifier = FileVerifier::default();
        for line in lines {
            verifier.check(line).expect("an entry");
        }
        verifier.finish()
    }

    fn broken(lines: &[String]) -> Option<ChainBreak> {
        verify(lines)[0].broken.map(|(found, _)| found)
    }

    #[test]
    fn a_file_verifies_from_any_begin() {
        let lines = lines(5);
        for begin in 0..5 {
            let found = &verify(&lines[begin..])[0];
            assert!(found.broken.is_none(), "{found:?}");
            assert_eq!(found.verified, 5 - begin as u64);
            assert_eq!(found.removed_until, begin as u64);
        }
    }

    #[test]
    fn other_lines_are_no_entries() {
        for line in ["", "{}", "{\"sequence\":1}", "text"] {
            assert!(FileVerifier::default().check(line).is_none(), "{line}");
        }
    }

    #[test]
    fn a_changed_removed_or_swapped_line_is_named() {
        let changed = |from: &str, to: &str| {
            let mut lines = lines(5);
            lines[2] = lines[2].replace(from, to);
            broken(&lines)
        };
        assert_eq!(
            changed("app.updated", "app.created"),
            Some(ChainBreak::Changed(3))
        );
        let mut missing = lines(5);
        missing.remove(2);
        assert_eq!(broken(&missing), Some(ChainBreak::Missing(3, 3)));
        let mut swapped = lines(5);
        swapped.swap(2, 3);
        assert_eq!(broken(&swapped), Some(ChainBreak::Missing(3, 3)));
        let mut repeated = lines(5);
        repeated.insert(2, repeated[1].clone());
        assert_eq!(broken(&repeated), Some(ChainBreak::Misplaced(2)));
    }
}
