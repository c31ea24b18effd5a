//! The secret key file in the data folder.
//!
//! Losing the key in a power cut would lose every credential encrypted with it, so a key is used
//! only once it is durable: the file is synced, renamed into place, and its folder synced. An
//! existing file's folder is synced too, because its writer may have crashed before doing so.
//!
//! Two processes may start at once (`serve` and `admin key create`). The new file has a fixed
//! temporary name and is locked while it is written; the lock holder first checks whether a key
//! has been created in the meantime. So the rename never replaces a key, and a file left behind by
//! a crash is reused. A no-replace rename or a hard link would be simpler, but not every file
//! system supports them.

use super::{Key, SecretKeyError};
use crate::config::{self, SECRET_KEY_BYTES};
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;
use tributary_domain::vocabulary::digest::hex;

/// Name of the file in the data folder.
pub const SECRET_KEY_FILE: &str = "secret_key";
/// Name of the file with the next key, during a rotation.
pub const NEXT_KEY_FILE: &str = "secret_key.next";
/// Temporary name until the file is complete.
const UNFINISHED_FILE: &str = "secret_key.unfinished";

/// Read and write for the owner only.
const FILE_MODE: u32 = 0o600;
/// Access for the owner only.
const FOLDER_MODE: u32 = 0o700;
/// Mode bits for group and others.
const MODE_OTHERS: u32 = 0o077;
/// The digits, a line break (LF or CRLF), and one byte to detect excess content.
const FILE_BYTES_READ_MAX: u64 = 2 * SECRET_KEY_BYTES as u64 + 3;

/// Creates a folder durably, with its missing parents. Only the owner has access.
pub fn create_data_folder(folder: &Path) -> Result<(), SecretKeyError> {
    let missing: Vec<&Path> = folder
        .ancestors()
        .take_while(|path| !exists(path))
        .collect();
    DirBuilder::new()
        .recursive(true)
        .mode(FOLDER_MODE)
        .create(folder)
        .map_err(io_error("cannot create the folder", folder))?;
    missing
        .into_iter()
        .filter_map(Path::parent)
        .try_for_each(sync_folder)
}

/// Returns the key in this folder; creates one from `random` if there is none.
pub(super) fn load_or_create_in(
    folder: &Path,
    random: impl FnOnce() -> Key,
) -> Result<Key, SecretKeyError> {
    create_data_folder(folder)?;
    let path = folder.join(SECRET_KEY_FILE);
    if !is_name_taken(&path) {
        create(folder, &path, random)?;
    }
    let key = read(&path)?;
    sync_folder(folder)?;
    Ok(key)
}

/// Returns the key in this file of the folder, if there is one. Changes nothing.
pub(super) fn load_existing(folder: &Path, name: &str) -> Result<Option<Key>, SecretKeyError> {
    let path = folder.join(name);
    if is_name_taken(&path) {
        read(&path).map(Some)
    } else {
        Ok(None)
    }
}

/// Stores the next key unless there is one. Returns the one that is in the folder afterwards.
pub(super) fn create_next(
    folder: &Path,
    random: impl FnOnce() -> Key,
) -> Result<Key, SecretKeyError> {
    let path = folder.join(NEXT_KEY_FILE);
    if !is_name_taken(&path) {
        create(folder, &path, random)?;
    }
    let key = read(&path)?;
    sync_folder(folder)?;
    Ok(key)
}

/// Replaces the key in this folder by the next one. The rename is atomic, so one of them is always
/// there.
pub(super) fn replace_by_next(folder: &Path) -> Result<(), SecretKeyError> {
    let (next, path) = (folder.join(NEXT_KEY_FILE), folder.join(SECRET_KEY_FILE));
    fs::rename(&next, &path).map_err(io_error("cannot rename the next key to", &path))?;
    sync_folder(folder)
}

fn create(folder: &Path, path: &Path, random: impl FnOnce() -> Key) -> Result<(), SecretKeyError> {
    let unfinished = folder.join(UNFINISHED_FILE);
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false) // the lock holder may be writing
        .mode(FILE_MODE)
        .open(&unfinished)
        .map_err(io_error("cannot create", &unfinished))?;
    file.lock().map_err(io_error("cannot lock", &unfinished))?;
    if is_name_taken(path) {
        // Another process was first. The file opened here is either that process's key file, opened
        // before its rename, or a new empty file. If the removal fails, the next start reuses the
        // empty file.
        drop(fs::remove_file(&unfinished));
        return Ok(());
    }
    let line = hex(&random()) + "\n";
    file.set_len(0)
        .and_then(|()| file.set_permissions(Permissions::from_mode(FILE_MODE)))
        .and_then(|()| file.write_all(line.as_bytes()))
        .and_then(|()| file.sync_all())
        .map_err(io_error("cannot write", &unfinished))?;
    fs::rename(&unfinished, path).map_err(io_error("cannot rename the new key to", path))
}

fn read(path: &Path) -> Result<Key, SecretKeyError> {
    let file = File::open(path).map_err(io_error("cannot open", path))?;
    let metadata = file
        .metadata()
        .map_err(io_error("cannot read the mode of", path))?;
    let mode = metadata.permissions().mode() & 0o777;
    if mode & MODE_OTHERS != 0 {
        return Err(SecretKeyError::ReadableByOthers {
            path: path.to_owned(),
            mode,
        });
    }
    read_digits(file, path)
}

/// Reads a key from a file that the settings name. Its mode is not checked, because container engines
/// mount secrets with their own.
pub(super) fn read_any(path: &Path) -> Result<Key, SecretKeyError> {
    let file = File::open(path).map_err(io_error("cannot open", path))?;
    read_digits(file, path)
}

fn read_digits(file: File, path: &Path) -> Result<Key, SecretKeyError> {
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_READ_MAX)
        .read_to_end(&mut bytes)
        .map_err(io_error("cannot read", path))?;
    parse(&bytes).ok_or_else(|| SecretKeyError::MalformedFile(path.to_owned()))
}

/// Parses digits, with or without a line break.
pub(super) fn parse(bytes: &[u8]) -> Option<Key> {
    let text = std::str::from_utf8(bytes).ok()?;
    config::secret_key(text.trim_end_matches(['\r', '\n'])).ok()
}

fn sync_folder(folder: &Path) -> Result<(), SecretKeyError> {
    // The parent of `data` is the empty path, which means the current folder.
    let folder = if folder.as_os_str().is_empty() {
        Path::new(".")
    } else {
        folder
    };
    File::open(folder)
        .and_then(|opened| opened.sync_all())
        .map_err(io_error("cannot sync the folder", folder))
}

/// Returns whether the name is taken, even by a dangling symbolic link, which a rename would
/// replace.
fn is_name_taken(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

fn exists(path: &Path) -> bool {
    path.as_os_str().is_empty() || path.exists()
}

fn io_error<'a>(
    doing: &'static str,
    path: &'a Path,
) -> impl FnOnce(io::Error) -> SecretKeyError + 'a {
    move |source| SecretKeyError::Io {
        action: doing,
        path: path.to_owned(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use std::sync::atomic::{AtomicU8, Ordering};

    const KEY: Key = [0xab; SECRET_KEY_BYTES];

    const SEVENS: Key = [7; SECRET_KEY_BYTES];

    fn never() -> Key {
        panic!("a key already exists")
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    fn write(path: &Path, text: &[u8], mode: u32) {
        fs::write(path, text).unwrap();
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn the_first_start_creates_a_key_and_the_second_reads_it() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("a/data");
        assert_eq!(load_or_create_in(&folder, || SEVENS).unwrap(), SEVENS);
        assert_eq!(load_or_create_in(&folder, never).unwrap(), SEVENS);
        assert_eq!(
            (mode(&folder), mode(&folder.join(SECRET_KEY_FILE))),
            (0o700, 0o600)
        );
        let text = fs::read_to_string(folder.join(SECRET_KEY_FILE)).unwrap();
        assert_eq!(text, "07".repeat(SECRET_KEY_BYTES) + "\n");
        assert_eq!(
            fs::read_dir(&folder).unwrap().count(),
            1,
            "no other file is left"
        );
    }

    #[test]
    fn reuses_a_file_left_behind_by_a_crash() {
        let folder = tempfile::tempdir().unwrap();
        write(&folder.path().join(UNFINISHED_FILE), &[b'f'; 100], 0o644);
        assert_eq!(
            load_or_create_in(folder.path(), || SEVENS).unwrap(),
            [7; SECRET_KEY_BYTES]
        );
        assert_eq!(mode(&folder.path().join(SECRET_KEY_FILE)), 0o600);
    }

    #[test]
    fn does_not_replace_a_key_created_by_another_process() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(SECRET_KEY_FILE);
        write(&path, hex(&KEY).as_bytes(), 0o600);
        create(folder.path(), &path, never).unwrap();
        assert_eq!(read(&path).unwrap(), KEY);
        assert!(!folder.path().join(UNFINISHED_FILE).exists());
    }

    #[test]
    fn concurrent_starts_get_the_same_key() {
        for _ in 0..20 {
            let folder = tempfile::tempdir().unwrap();
            let next = AtomicU8::new(0);
            let keys: Vec<Key> = std::thread::scope(|scope| {
                let start = || {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    load_or_create_in(folder.path(), || [number; SECRET_KEY_BYTES]).unwrap()
                };
                let starts: Vec<_> = (0..8).map(|_| scope.spawn(start)).collect();
                starts
                    .into_iter()
                    .map(|start| start.join().unwrap())
                    .collect()
            });
            assert!(keys.windows(2).all(|pair| pair[0] == pair[1]), "{keys:?}");
        }
    }

    #[rstest]
    #[case::plain(&"ab".repeat(32), true)]
    #[case::line_break(&("ab".repeat(32) + "\n"), true)]
    #[case::line_break_of_windows(&("AB".repeat(32) + "\r\n"), true)]
    #[case::empty("", false)]
    #[case::short(&"ab".repeat(31), false)]
    #[case::two_lines(&("ab".repeat(32) + "\nab"), false)]
    #[case::much_longer(&"ab".repeat(1_000), false)]
    #[case::no_hex(&"xy".repeat(32), false)]
    fn parses_key_files(#[case] text: &str, #[case] accepted: bool) {
        let folder = tempfile::tempdir().unwrap();
        write(&folder.path().join(SECRET_KEY_FILE), text.as_bytes(), 0o600);
        match load_or_create_in(folder.path(), never) {
            Ok(key) => assert!(accepted && key == KEY),
            Err(error) => {
                assert!(
                    !accepted && matches!(error, SecretKeyError::MalformedFile(_)),
                    "{error}"
                );
            }
        }
    }

    #[rstest]
    #[case::own(0o600, true)]
    #[case::read_only(0o400, true)]
    #[case::group(0o640, false)]
    #[case::others(0o604, false)]
    #[case::writable(0o620, false)]
    fn rejects_a_key_that_other_users_can_read(#[case] mode: u32, #[case] accepted: bool) {
        let folder = tempfile::tempdir().unwrap();
        write(
            &folder.path().join(SECRET_KEY_FILE),
            hex(&KEY).as_bytes(),
            mode,
        );
        let result = load_or_create_in(folder.path(), never);
        assert_eq!(result.is_ok(), accepted);
        if let Err(error) = result {
            assert!(error.to_string().contains("chmod 600"), "{error}");
            assert!(
                !error.to_string().contains("abab"),
                "the key is not in the message"
            );
        }
    }

    #[test]
    fn names_a_folder_that_cannot_be_created() {
        let parent = tempfile::tempdir().unwrap();
        let file = parent.path().join("file");
        write(&file, b"", 0o600);
        let error = load_or_create_in(&file.join("data"), never)
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("cannot create the folder") && error.contains("file/data"),
            "{error}"
        );
    }
}
