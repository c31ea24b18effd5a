//! The disk: room in the folders that the data is kept in, and whether they can be written.

use super::check::DoctorCheck;
use crate::config::{Config, DatabaseConfig};
use rustix::fs::Access;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

const AREA: &str = "disk";
const MIB: u64 = 1024 * 1024;
/// Below this it is time to think about it.
const FREE_BYTES_WARNING: u64 = 1024 * MIB;
/// Below this a busy hour fills it, and a full disk refuses every event.
const FREE_BYTES_FAILURE: u64 = 100 * MIB;
const _: () = assert!(FREE_BYTES_FAILURE < FREE_BYTES_WARNING);

/// The file by which writing is tried; the number of the process keeps two doctors apart.
fn probe_file(folder: &Path) -> PathBuf {
    folder.join(format!(".doctor-{}", std::process::id()))
}

/// Looks at the folders that hold data.
pub(super) fn examine(config: &Config) -> Vec<DoctorCheck> {
    match config.database() {
        DatabaseConfig::Postgres(_) => {
            vec![DoctorCheck::ok(
                AREA,
                "not looked at: PostgreSQL keeps the data elsewhere",
            )]
        }
        DatabaseConfig::Sqlite(file) => folders(&config.data_dir, &file)
            .iter()
            .flat_map(|folder| examine_folder(folder))
            .collect(),
    }
}

/// The data folder and, where it is another, that of the database.
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
    // Before the first start there is no folder yet; it will be where its nearest ancestor is.
    let existing = folder
        .ancestors()
        .map(or_current_dir)
        .find(|folder| folder.exists());
    let existing = existing.unwrap_or_else(|| PathBuf::from("."));
    let writable = if existing == or_current_dir(folder) {
        try_write(&existing).map(|()| "is writable")
    } else {
        rustix::fs::access(&existing, Access::WRITE_OK | Access::EXEC_OK)
            .map(|()| "does not exist yet; the first start makes it")
            .map_err(io::Error::from)
    };
    [
        judge_writable(folder, writable),
        judge_free_space(&existing, free_bytes(&existing)),
    ]
}

/// Makes a file, syncs it and removes it. Asking for permission would not notice a read-only or full disk.
fn try_write(folder: &Path) -> io::Result<()> {
    let path = probe_file(folder);
    let written = File::create_new(&path)
        .and_then(|mut file| file.write_all(b"doctor\n").and_then(|()| file.sync_all()));
    let removed = fs::remove_file(&path);
    written.and(removed)
}

/// Bytes that an ordinary user may still write.
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
            format!("{folder} cannot be written: {error}"),
            "give the folder to the user of the server, or set data_dir to another",
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
                format!("the room in {folder} is unknown: {error}"),
                "",
            );
        }
    };
    let message = format!("{} MiB are free in {folder}", free_bytes / MIB);
    if free_bytes < FREE_BYTES_FAILURE {
        DoctorCheck::error(
            AREA,
            message,
            "make room now: a full disk refuses every event",
        )
    } else if free_bytes < FREE_BYTES_WARNING {
        DoctorCheck::warning(
            AREA,
            message,
            "make room, or move data_dir to a larger disk",
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
    fn room(#[case] free_bytes: u64, #[case] expected: CheckStatus) {
        assert_eq!(
            judge_free_space(Path::new("/data"), Ok(free_bytes)).status,
            expected
        );
    }

    #[test]
    fn room_that_cannot_be_measured_is_doubtful() {
        let unknown = Err(io::Error::other("no idea"));
        assert_eq!(
            judge_free_space(Path::new("/data"), unknown).status,
            CheckStatus::Warning
        );
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_broken() {
        let refused = Err(io::Error::from(io::ErrorKind::PermissionDenied));
        assert_eq!(
            judge_writable(Path::new("/data"), refused).status,
            CheckStatus::Error
        );
    }

    #[test]
    fn trying_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        let checks = examine_folder(folder.path());
        assert!(checks[0].message.ends_with("is writable"), "{checks:?}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_folder_that_is_a_file_is_broken() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("data");
        fs::write(&file, "").unwrap();
        assert_eq!(examine_folder(&file)[0].status, CheckStatus::Error);
    }

    #[test]
    fn a_folder_that_is_not_there_yet_is_fine_and_not_made() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("a/data");
        let checks = examine_folder(&folder);
        assert_eq!(checks[0].status, CheckStatus::Ok);
        assert!(
            checks[0].message.contains("the first start makes it"),
            "{checks:?}"
        );
        assert!(!folder.exists());
    }

    #[rstest]
    #[case::inside("./data", "./data/tributary.db", &["./data"])]
    #[case::elsewhere("./data", "/srv/t.db", &["./data", "/srv"])]
    #[case::here("./data", "t.db", &["./data", "."])]
    fn folders_that_hold_data(
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
