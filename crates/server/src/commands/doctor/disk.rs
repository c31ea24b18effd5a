//! Checks the disk: free space in the data folders, and whether they are writable.

use super::check::DoctorCheck;
use crate::config::{Config, DatabaseConfig};
use rustix::fs::Access;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

const AREA: &str = "disk";
const MIB: u64 = 1024 * 1024;
/// With less free space than this, the check warns.
const FREE_BYTES_WARNING: u64 = 1024 * MIB;
/// With less free space than this, the check fails: a busy hour may fill the disk, and with a full
/// disk the server rejects every event.
const FREE_BYTES_FAILURE: u64 = 100 * MIB;
const _: () = assert!(FREE_BYTES_FAILURE < FREE_BYTES_WARNING);

/// Returns the path of the file used to test writing; the process id keeps concurrent runs apart.
fn probe_file(folder: &Path) -> PathBuf {
    folder.join(format!(".doctor-{}", std::process::id()))
}

/// Checks the data folders.
pub(super) fn examine(config: &Config) -> Vec<DoctorCheck> {
    match config.database() {
        DatabaseConfig::Postgres(_) => {
            vec![DoctorCheck::ok(
                AREA,
                "not checked: the data is in PostgreSQL",
            )]
        }
        DatabaseConfig::Sqlite(file) => folders(&config.data_dir, &file)
            .iter()
            .flat_map(|folder| examine_folder(folder))
            .collect(),
    }
}

/// Returns the data folder and, if it is different, the database's folder.
fn folders(data_dir: &Path, database: &Path) -> Vec<PathBuf> {
    let mut folders = vec![data_dir.to_owned()];
    let other = database.parent().map(or_current_dir);
    folders.extend(other.filter(|other| other != data_dir));
    folders
}

fn or_current_dir(folder: &Path) -> PathBuf {
    if folder.as_os_str().is_empty() {
        PathBuf::from(".")
    } else {
        folder.to_owned()
    }
}

fn examine_folder(folder: &Path) -> [DoctorCheck; 2] {
    // Before the first start the folder does not exist, so check its nearest existing ancestor.
    let existing = folder
        .ancestors()
        .map(or_current_dir)
        .find(|folder| folder.exists());
    let existing = existing.unwrap_or_else(|| PathBuf::from("."));
    let writable = if existing == or_current_dir(folder) {
        try_write(&existing).map(|()| "is writable")
    } else {
        rustix::fs::access(&existing, Access::WRITE_OK | Access::EXEC_OK)
            .map(|()| "does not exist yet; the first start creates it")
            .map_err(io::Error::from)
    };
    [
        judge_writable(folder, writable),
        judge_free_space(&existing, free_bytes(&existing)),
    ]
}

/// Creates, syncs and removes a file. Checking permissions alone would miss a read-only or full
/// disk.
fn try_write(folder: &Path) -> io::Result<()> {
    let path = probe_file(folder);
    let written = File::create_new(&path)
        .and_then(|mut file| file.write_all(b"doctor\n").and_then(|()| file.sync_all()));
    let removed = fs::remove_file(&path);
    written.and(removed)
}

/// Returns the bytes that an unprivileged user may still write.
fn free_bytes(folder: &Path) -> io::Result<u64> {
    let room = rustix::fs::statvfs(folder)?;
    Ok(room.f_bavail.saturating_mul(room.f_frsize))
}

fn judge_writable(folder: &Path, writable: io::Result<&str>) -> DoctorCheck {
    let folder = folder.display();
    match writable {
        Ok(how) => DoctorCheck::ok(AREA, format!("{folder} {how}")),
        Err(error) => DoctorCheck::error(
            AREA,
            format!("{folder} is not writable: {error}"),
            "make the folder writable by the server's user, or set data_dir to another folder",
        ),
    }
}

fn judge_free_space(folder: &Path, free_bytes: io::Result<u64>) -> DoctorCheck {
    let folder = folder.display();
    let free_bytes = match free_bytes {
        Ok(free_bytes) => free_bytes,
        Err(error) => {
            return DoctorCheck::warning(
                AREA,
                format!("cannot determine the free space in {folder}: {error}"),
                "",
            );
        }
    };
    let message = format!("{} MiB free in {folder}", free_bytes / MIB);
    if free_bytes < FREE_BYTES_FAILURE {
        DoctorCheck::error(
            AREA,
            message,
            "free up space now: with a full disk, the server rejects every event",
        )
    } else if free_bytes < FREE_BYTES_WARNING {
        DoctorCheck::warning(
            AREA,
            message,
            "free up space, or move data_dir to a larger disk",
        )
    } else {
        DoctorCheck::ok(AREA, message)
    }
}

#[cfg(test)]
mod tests {
    use super::super::CheckStatus;
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::plenty(5_000 * MIB, CheckStatus::Ok)]
    #[case::a_gibibyte(1_024 * MIB, CheckStatus::Ok)]
    #[case::just_less(1_024 * MIB - 1, CheckStatus::Warning)]
    #[case::a_hundred(100 * MIB, CheckStatus::Warning)]
    #[case::hardly_any(100 * MIB - 1, CheckStatus::Error)]
    #[case::none(0, CheckStatus::Error)]
    fn checks_free_space(#[case] free_bytes: u64, #[case] expected: CheckStatus) {
        assert_eq!(
            judge_free_space(Path::new("/data"), Ok(free_bytes)).status,
            expected
        );
    }

    #[test]
    fn unknown_free_space_is_a_warning() {
        let unknown = Err(io::Error::other("no idea"));
        assert_eq!(
            judge_free_space(Path::new("/data"), unknown).status,
            CheckStatus::Warning
        );
    }

    #[test]
    fn an_unwritable_folder_is_an_error() {
        let refused = Err(io::Error::from(io::ErrorKind::PermissionDenied));
        assert_eq!(
            judge_writable(Path::new("/data"), refused).status,
            CheckStatus::Error
        );
    }

    #[test]
    fn the_write_test_leaves_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let checks = examine_folder(folder.path());
        assert!(checks[0].message.ends_with("is writable"), "{checks:?}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_file_in_place_of_the_folder_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("data");
        fs::write(&file, "").unwrap();
        assert_eq!(examine_folder(&file)[0].status, CheckStatus::Error);
    }

    #[test]
    fn a_missing_folder_is_ok_and_not_created() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("a/data");
        let checks = examine_folder(&folder);
        assert_eq!(checks[0].status, CheckStatus::Ok);
        assert!(
            checks[0].message.contains("the first start creates it"),
            "{checks:?}"
        );
        assert!(!folder.exists());
    }

    #[rstest]
    #[case::inside("./data", "./data/tributary.db", &["./data"])]
    #[case::elsewhere("./data", "/srv/t.db", &["./data", "/srv"])]
    #[case::here("./data", "t.db", &["./data", "."])]
    fn lists_the_data_folders(
        #[case] data_dir: &str,
        #[case] database: &str,
        #[case] expected: &[&str],
    ) {
        let found = folders(Path::new(data_dir), Path::new(database));
        assert_eq!(
            found,
            expected.iter().map(PathBuf::from).collect::<Vec<_>>()
        );
    }
}
