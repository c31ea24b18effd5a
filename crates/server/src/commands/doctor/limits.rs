//! The limits that the system puts on the process.

use super::check::DoctorCheck;
use crate::config::Config;
use crate::descriptors;

const AREA: &str = "limits";

/// Looks at how many files may be open.
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
    let allowed = allowed.map_or_else(|| "any number of".to_owned(), |count| count.to_string());
    // A supervisor may start the server with other limits than a shell starts the doctor with.
    DoctorCheck::ok(
        AREA,
        format!("{allowed} files may be open at a time, as started here; {wanted} are wanted"),
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
    fn open_files(#[case] allowed: Option<u64>, #[case] expected: CheckStatus) {
        assert_eq!(judge(allowed, 100).status, expected);
    }
}
