//! The disk: room in the folders that the data is kept in, and whether they can be written.

use super::check::Check;
use crate::config::{Config, Database};
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
fn trial_file(folder: &Path) -> PathBuf {
    folder.join(format!(".doctor-{}", std::process::id()))
}

/// Looks at the folders that hold data.
pub(super) fn examine(config: &Config) -> Vec<Check> {
    match config.database() {
        Database::Postgres(_) => {
            vec![Check::ok(
                AREA,
                "not looked at: PostgreSQL keeps the data elsewhere",
            )]
        }
        Database::Sqlite(file) => folders(&config.data_dir, &file)
            .iter()
            .flat_map(|folder| examine_folder(folder))
            .collect(),
    }
}

/// The data folder and, where it is another, that of the database.
fn folders(data_dir: &Path, database: &Path) -> Vec<PathBuf> {
    let mut folders = vec![data_dir.to_owned()];
    let other = database.parent().map(or_here);
    folders.extend(other.filter(|other| other != data_dir));
    folders
}

fn or_here(folder: &Path) -> PathBuf {
    if folder.as_os_str().is_empty() {
        PathBuf::from(".")
    } else {
        folder.to_owned()
    }
}

fn examine_folder(folder: &Path) -> [Check; 2] {
    // Before the first start there is no folder yet; it will be where its nearest ancestor is.
    let existing = folder
        .ancestors()
        .map(or_here)
        .find(|folder| folder.exists());
    let existing = existing.unwrap_or_else(|| PathBuf::from("."));
    let writable = if existing == or_here(folder) {
        try_writing(&existing).map(|()| "is writable")
    } else {
        rustix::fs::access(&existing, Access::WRITE_OK | Access::EXEC_OK)
            .map(|()| "does not exist yet; the first start makes it")
            .map_err(io::Error::from)
    };
    [
        judge_writing(folder, writable),
        judge_room(&existing, free_bytes(&existing)),
    ]
}

/// Makes a file, syncs it and removes it. Asking for permission would not notice a read-only or full disk.
fn try_writing(folder: &Path) -> io::Result<()> {
    let path = trial_file(folder);
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

fn judge_writing(folder: &Path, writable: io::Result<&str>) -> Check {
    let folder = folder.display();
    match writable {
        Ok(how) => Check::ok(AREA, format!("{folder} {how}")),
        Err(error) => Check::failure(
            AREA,
            format!("{folder} cannot be written: {error}"),
            "give the folder to the user of the server, or set data_dir to another",
        ),
    }
}

fn judge_room(folder: &Path, free_bytes: io::Result<u64>) -> Check {
    let folder = folder.display();
    let free_bytes = match free_bytes {
        Ok(free_bytes) => free_bytes,
        Err(error) => {
            return Check::warning(
                AREA,
                format!("the room in {folder} is unknown: {error}"),
                "",
            );
        }
    };
    let message = format!("{} MiB are free in {folder}", free_bytes / MIB);
    if free_bytes < FREE_BYTES_FAILURE {
        Check::failure(
            AREA,
            message,
            "make room now: a full disk refuses every event",
        )
    } else if free_bytes < FREE_BYTES_WARNING {
        Check::warning(
            AREA,
            message,
            "make room, or move data_dir to a larger disk",
        )
    } else {
        Check::ok(AREA, message)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Verdict;
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::plenty(5_000 * MIB, Verdict::Ok)]
    #[case::a_gibibyte(1_024 * MIB, Verdict::Ok)]
    #[case::just_less(1_024 * MIB - 1, Verdict::Warning)]
    #[case::a_hundred(100 * MIB, Verdict::Warning)]
    #[case::hardly_any(100 * MIB - 1, Verdict::Failure)]
    #[case::none(0, Verdict::Failure)]
    fn room(#[case] free_bytes: u64, #[case] expected: Verdict) {
        assert_eq!(
            judge_room(Path::new("/data"), Ok(free_bytes)).verdict,
            expected
        );
    }

    #[test]
    fn room_that_cannot_be_measured_is_doubtful() {
        let unknown = Err(io::Error::other("no idea"));
        assert_eq!(
            judge_room(Path::new("/data"), unknown).verdict,
            Verdict::Warning
        );
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_broken() {
        let refused = Err(io::Error::from(io::ErrorKind::PermissionDenied));
        assert_eq!(
            judge_writing(Path::new("/data"), refused).verdict,
            Verdict::Failure
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
        assert_eq!(examine_folder(&file)[0].verdict, Verdict::Failure);
    }

    #[test]
    fn a_folder_that_is_not_there_yet_is_fine_and_not_made() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("a/data");
        let checks = examine_folder(&folder);
        assert_eq!(checks[0].verdict, Verdict::Ok);
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
