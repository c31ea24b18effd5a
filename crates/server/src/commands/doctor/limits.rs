//! Checks the limits that the system sets for the process.

use super::check::DoctorCheck;
use crate::config::Config;
use crate::descriptors;

const AREA: &str = "limits";

/// Checks the limit on open files.
pub(super) fn examine(config: &Config) -> Vec<DoctorCheck> {
    vec![judge(
        descriptors::hard_limit(),
        descriptors::required(config),
    )]
}

fn judge(allowed: Option<u64>, wanted: u64) -> DoctorCheck {
    if let Some(shortage) = descriptors::shortage(allowed, wanted) {
        return DoctorCheck::warning(AREA, shortage, "");
    }
    let allowed = allowed.map_or_else(|| "unlimited".to_owned(), |count| count.to_string());
    // A supervisor may start the server with different limits from this shell's.
    DoctorCheck::ok(
        AREA,
        format!("open files: {allowed} allowed when started from here, {wanted} required"),
    )
}

#[cfg(test)]
mod tests {
    use super::super::CheckStatus;
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::unlimited(None, CheckStatus::Ok)]
    #[case::enough(Some(100), CheckStatus::Ok)]
    #[case::too_few(Some(99), CheckStatus::Warning)]
    fn warns_about_a_low_limit_on_open_files(
        #[case] allowed: Option<u64>,
        #[case] expected: CheckStatus,
    ) {
        assert_eq!(judge(allowed, 100).status, expected);
    }
}
