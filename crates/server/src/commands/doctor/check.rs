//! Result of a check, and the table that `doctor` prints.

use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;

/// Status of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CheckStatus {
    /// Works as expected.
    Ok,
    /// Not an error, but the operator should know about it.
    Warning,
    /// Does not work.
    Error,
}

impl CheckStatus {
    /// Returns the label shown in the table.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Error => "ERROR",
        }
    }
}

/// Result of one check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DoctorCheck {
    /// Part of the installation.
    pub area: &'static str,
    /// Status of the check.
    pub status: CheckStatus,
    /// Observation.
    pub message: String,
    /// What to do; empty if there is nothing to do or the message already says it.
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

/// Returns 0 if there are no errors, 1 otherwise.
pub(super) fn exit_code(checks: &[DoctorCheck]) -> ExitCode {
    ExitCode::from(u8::from(count(checks, CheckStatus::Error) > 0))
}

/// Writes the checks as a table: one line per check, with its advice below it.
pub(super) fn write_table(checks: &[DoctorCheck], out: &mut impl Write) -> io::Result<()> {
    let area_width = checks
        .iter()
        .map(|check| check.area.len())
        .max()
        .unwrap_or(0);
    let status_width = CheckStatus::Warning.as_str().len();
    for DoctorCheck {
        area,
        status,
        message,
        advice,
    } in checks
    {
        let status = status.as_str();
        writeln!(
            out,
            "{status:status_width$}  {area:area_width$}  {}",
            SingleLine(message)
        )?;
        if !advice.is_empty() {
            writeln!(
                out,
                "{:status_width$}  {:area_width$}  → {}",
                "",
                "",
                SingleLine(advice)
            )?;
        }
    }
    let (errors, warnings) = (
        count(checks, CheckStatus::Error),
        count(checks, CheckStatus::Warning),
    );
    writeln!(
        out,
        "\n{} checks: {errors} errors, {warnings} warnings",
        checks.len()
    )
}

fn count(checks: &[DoctorCheck], verdict: CheckStatus) -> usize {
    checks
        .iter()
        .filter(|check| check.status == verdict)
        .count()
}

/// Puts external text, such as a database error, on one line, so that it cannot fake a table row or
/// send control codes to the terminal.
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
    fn prints_aligned_columns_with_advice_below() {
        let checks = [
            DoctorCheck::ok("configuration", "no mistakes"),
            DoctorCheck::error("disk", "it is full", "delete something"),
        ];
        let expected = "\
ok       configuration  no mistakes
ERROR    disk           it is full
                        → delete something

2 checks: 1 errors, 0 warnings
";
        assert_eq!(table(&checks), expected);
    }

    #[test]
    fn external_messages_stay_on_one_line() {
        let text = table(&[DoctorCheck::ok("database", "one\nok  disk\u{1b}[31m  fine")]);
        assert_eq!(text.lines().count(), 3, "{text}");
        assert!(!text.contains('\u{1b}'));
    }

    #[rstest]
    #[case::nothing(&[], ExitCode::SUCCESS)]
    #[case::fine(&[DoctorCheck::ok("a", "b")], ExitCode::SUCCESS)]
    #[case::warning(&[DoctorCheck::warning("a", "b", "c")], ExitCode::SUCCESS)]
    #[case::error(
        &[DoctorCheck::ok("a", "b"), DoctorCheck::error("a", "b", "c")],
        ExitCode::from(1)
    )]
    fn only_errors_change_the_exit_code(
        #[case] checks: &[DoctorCheck],
        #[case] expected: ExitCode,
    ) {
        assert_eq!(exit_code(checks), expected);
    }
}
