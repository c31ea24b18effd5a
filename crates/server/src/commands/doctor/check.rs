//! A check as data: what was looked at, how it is, what to do. And the table that people read.

use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;

/// How something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CheckStatus {
    /// As it should be.
    Ok,
    /// It works, or may work; somebody should know.
    Warning,
    /// It does not work.
    Error,
}

impl CheckStatus {
    /// As the table shows it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Error => "FAILURE",
        }
    }
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DoctorCheck {
    /// What part of the installation.
    pub area: &'static str,
    /// How it is.
    pub status: CheckStatus,
    /// What was seen.
    pub message: String,
    /// What to do; empty when there is nothing to do, or the message says it.
    pub advice: String,
}

impl DoctorCheck {
    pub(super) fn ok(area: &'static str, message: impl Into<String>) -> Self {
        Self {
            area,
            status: CheckStatus::Ok,
            message: message.into(),
            advice: String::new(),
        }
    }

    pub(super) fn warning(
        area: &'static str,
        message: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        let (message, advice) = (message.into(), advice.into());
        Self {
            area,
            status: CheckStatus::Warning,
            message,
            advice,
        }
    }

    pub(super) fn error(
        area: &'static str,
        message: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        let (message, advice) = (message.into(), advice.into());
        Self {
            area,
            status: CheckStatus::Error,
            message,
            advice,
        }
    }
}

/// 0 when nothing is broken, 1 otherwise.
pub(super) fn exit_code(checks: &[DoctorCheck]) -> ExitCode {
    ExitCode::from(u8::from(count(checks, CheckStatus::Error) > 0))
}

/// Writes the checks as a table, one line each, advice below.
pub(super) fn write_table(checks: &[DoctorCheck], out: &mut impl Write) -> io::Result<()> {
    let area_width = checks
        .iter()
        .map(|check| check.area.len())
        .max()
        .unwrap_or(0);
    let verdict_width = CheckStatus::Error.as_str().len();
    for DoctorCheck {
        area,
        status: verdict,
        message,
        advice,
    } in checks
    {
        let verdict = verdict.as_str();
        writeln!(
            out,
            "{verdict:verdict_width$}  {area:area_width$}  {}",
            SingleLine(message)
        )?;
        if !advice.is_empty() {
            writeln!(
                out,
                "{:verdict_width$}  {:area_width$}  → {}",
                "",
                "",
                SingleLine(advice)
            )?;
        }
    }
    let (failures, warnings) = (
        count(checks, CheckStatus::Error),
        count(checks, CheckStatus::Warning),
    );
    writeln!(
        out,
        "\n{failures} broken, {warnings} doubtful, {} looked at",
        checks.len()
    )
}

fn count(checks: &[DoctorCheck], verdict: CheckStatus) -> usize {
    checks
        .iter()
        .filter(|check| check.status == verdict)
        .count()
}

/// Text of others (a database's, a resolver's) on one line, so that it cannot pass for a line of the table
/// or steer the terminal.
struct SingleLine<'a>(&'a str);

impl fmt::Display for SingleLine<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|c| {
            let shown = if c.is_control() { ' ' } else { c };
            write!(formatter, "{shown}")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn table(checks: &[DoctorCheck]) -> String {
        let mut out = Vec::new();
        write_table(checks, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_table_has_columns_and_advice_below() {
        let checks = [
            DoctorCheck::ok("configuration", "no mistakes"),
            DoctorCheck::error("disk", "it is full", "delete something"),
        ];
        let expected = "\
ok       configuration  no mistakes
FAILURE  disk           it is full
                        → delete something

1 broken, 0 doubtful, 2 looked at
";
        assert_eq!(table(&checks), expected);
    }

    #[test]
    fn messages_of_others_stay_on_their_line() {
        let text = table(&[DoctorCheck::ok("database", "one\nok  disk\u{1b}[31m  fine")]);
        assert_eq!(text.lines().count(), 3, "{text}");
        assert!(!text.contains('\u{1b}'));
    }

    #[rstest]
    #[case::nothing(&[], ExitCode::SUCCESS)]
    #[case::fine(&[DoctorCheck::ok("a", "b")], ExitCode::SUCCESS)]
    #[case::doubtful(&[DoctorCheck::warning("a", "b", "c")], ExitCode::SUCCESS)]
    #[case::broken(&[DoctorCheck::ok("a", "b"), DoctorCheck::error("a", "b", "c")], ExitCode::from(1))]
    fn only_what_is_broken_fails(#[case] checks: &[DoctorCheck], #[case] expected: ExitCode) {
        assert_eq!(exit_code(checks), expected);
    }
}
