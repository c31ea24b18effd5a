//! The simulated disk: which bytes are durable, which calls fail, and what a power cut leaves.
//!
//! The model is that of `acceptance/tools/powercut.c`. A write is durable once a later sync of its
//! file succeeds. A failed sync loses the bytes that it covered for good: a later sync succeeds
//! without them, as on Linux. Sectors that were never synced may reach the disk anyway, in any
//! order, so a power cut leaves torn writes.
//!
//! Only calls that SQLite makes are modelled. What the adapter does with files itself (it rewrites a
//! leftover WAL, creates its marker and syncs the folder) counts as durable at once: a WAL that
//! the first connection opens has just been rewritten, and the power-cut tests in
//! `acceptance/tests/faults` cover that part.

use crate::rng::Rng;
use crate::world::World;
use rusqlite::ffi;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::c_int;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Name of the database file.
pub(crate) const DATABASE: &str = "tributary.db";
/// Bytes that reach the disk together.
const SECTOR: usize = 512;

/// A file whose bytes are modelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FileKind {
    /// The database file.
    Database,
    /// The WAL file.
    Log,
}

impl FileKind {
    const ALL: [Self; 2] = [Self::Database, Self::Log];

    fn name(self) -> &'static str {
        match self {
            Self::Database => DATABASE,
            Self::Log => "tributary.db-wal",
        }
    }
}

/// A call that may fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DiskCall {
    /// Reads bytes.
    Read,
    /// Writes bytes.
    Write,
    /// Makes earlier writes durable.
    Sync,
    /// Shortens the file.
    Truncate,
}

/// How a call fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiskError {
    /// An I/O error.
    Io,
    /// The disk is full.
    Full,
    /// Half of the bytes are written, and then the disk is full.
    Short,
}

/// Calls that fail: the `nth` call of this kind on this file, counted from 1, and those after it up
/// to `times` calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskFault {
    /// The file.
    pub file: FileKind,
    /// The call.
    pub call: DiskCall,
    /// Number of the first call that fails.
    pub nth: u64,
    /// Number of calls that fail.
    pub times: u64,
    /// The error.
    pub error: DiskError,
}

/// What the disk answers to a call.
pub(crate) enum Permission {
    Granted,
    /// Only half of the bytes may be written.
    Half,
    /// The call fails with this code.
    Denied(c_int),
}

/// Bytes of a file: as the process sees them, and as a power cut would leave them.
#[derive(Debug, Default)]
struct FileState {
    exists: bool,
    handles: usize,
    live: Vec<u8>,
    durable: Vec<u8>,
    /// Sectors written since the last sync.
    dirty: BTreeSet<usize>,
    /// Shortest length since the last sync.
    lowest: Option<usize>,
}

impl FileState {
    fn write(&mut self, at: usize, bytes: &[u8]) {
        let end = at + bytes.len();
        if self.live.len() < end {
            self.live.resize(end, 0);
        }
        self.live[at..end].copy_from_slice(bytes);
        if !bytes.is_empty() {
            self.dirty.extend(at / SECTOR..=(end - 1) / SECTOR);
        }
    }

    fn truncate(&mut self, length: usize) {
        self.live.resize(length, 0);
        let kept = length.div_ceil(SECTOR);
        self.dirty.retain(|sector| *sector < kept);
        self.lowest = Some(self.lowest.map_or(length, |before| before.min(length)));
    }

    /// Copies a sector to the disk.
    fn harden(&mut self, sector: usize) {
        let begin = sector * SECTOR;
        let end = (begin + SECTOR).min(self.live.len());
        if begin >= end {
            return;
        }
        if self.durable.len() < end {
            self.durable.resize(end, 0);
        }
        self.durable[begin..end].copy_from_slice(&self.live[begin..end]);
    }

    fn harden_length(&mut self) {
        if let Some(lowest) = self.lowest.take() {
            self.durable.truncate(lowest);
        }
    }

    fn sync(&mut self) {
        self.harden_length();
        for sector in std::mem::take(&mut self.dirty) {
            self.harden(sector);
        }
        self.durable.resize(self.live.len(), 0);
    }

    /// Lets some unsynced sectors reach the disk, and forgets the others.
    fn leak(&mut self, percent: u64, random: &mut Rng) {
        if self.lowest.is_some() && random.percent(percent) {
            self.harden_length();
        }
        self.lowest = None;
        for sector in std::mem::take(&mut self.dirty) {
            if random.percent(percent) {
                self.harden(sector);
            }
        }
    }

    /// Takes over the bytes of the real file as durable.
    fn adopt(&mut self, path: &Path) {
        let bytes = std::fs::read(path).unwrap_or_default();
        self.durable.clone_from(&bytes);
        self.live = bytes;
        self.dirty.clear();
        self.lowest = None;
    }
}

#[derive(Debug)]
struct DiskState {
    folder: PathBuf,
    files: BTreeMap<FileKind, FileState>,
    /// Durable bytes of a deleted file whose folder was not synced.
    deleted: BTreeMap<FileKind, Vec<u8>>,
    calls: BTreeMap<(FileKind, DiskCall), u64>,
    random: Rng,
}

/// A disk.
#[derive(Debug)]
pub(crate) struct Disk {
    world: Arc<World>,
    state: Mutex<DiskState>,
}

impl Disk {
    /// Creates a disk for a folder whose files are durable.
    pub(crate) fn new(world: Arc<World>, folder: &Path) -> Self {
        let random = Rng::new(world.scenario.seed, "disk");
        let disk = Self {
            world,
            state: Mutex::new(DiskState {
                folder: PathBuf::new(),
                files: BTreeMap::new(),
                deleted: BTreeMap::new(),
                calls: BTreeMap::new(),
                random,
            }),
        };
        disk.mount(folder);
        disk
    }

    fn lock(&self) -> MutexGuard<'_, DiskState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes over the files of a folder.
    fn mount(&self, folder: &Path) {
        let mut state = self.lock();
        folder.clone_into(&mut state.folder);
        state.deleted.clear();
        for kind in FileKind::ALL {
            let path = folder.join(kind.name());
            let file = state.files.entry(kind).or_default();
            file.adopt(&path);
            file.exists = path.exists();
        }
    }

    /// Returns whether the disk controls this path.
    pub(crate) fn contains(&self, path: &Path) -> bool {
        path.parent() == Some(self.lock().folder.as_path())
    }

    /// Returns whether the machine is down, so that nothing changes on the disk.
    pub(crate) fn is_frozen(&self) -> bool {
        self.world.is_down()
    }

    /// Notes that a file was opened. A WAL that no connection used was rewritten and synced before.
    pub(crate) fn opened(&self, kind: FileKind, path: &Path) {
        let mut state = self.lock();
        let file = state.files.entry(kind).or_default();
        if file.handles == 0 && (kind == FileKind::Log || !file.exists) {
            file.adopt(path);
        }
        file.exists = true;
        file.handles += 1;
    }

    pub(crate) fn closed(&self, kind: FileKind) {
        if let Some(file) = self.lock().files.get_mut(&kind) {
            file.handles = file.handles.saturating_sub(1);
        }
    }

    /// Notes that a file was deleted. Its name may return after a power cut.
    pub(crate) fn deleted(&self, path: &Path) {
        let kind = FileKind::ALL
            .into_iter()
            .find(|kind| path.ends_with(kind.name()));
        let Some(kind) = kind else { return };
        let mut state = self.lock();
        let file = std::mem::take(state.files.entry(kind).or_default());
        state.deleted.insert(kind, file.durable);
    }

    /// Decides about a call.
    pub(crate) fn request(
        &self,
        kind: FileKind,
        call: DiskCall,
        place: (i64, c_int),
    ) -> Permission {
        let name = call_name(kind, call);
        if call == DiskCall::Read {
            self.world.trace(name, place.0);
        } else {
            self.world.reach(name, place.0);
        }
        if self.world.is_down() && call != DiskCall::Read {
            return Permission::Denied(error_code(call, DiskError::Io));
        }
        let number = {
            let mut state = self.lock();
            let count = state.calls.entry((kind, call)).or_default();
            *count += 1;
            *count
        };
        let hits = |fault: &&DiskFault| {
            fault.file == kind
                && fault.call == call
                && (fault.nth..fault.nth + fault.times).contains(&number)
        };
        let Some(fault) = self.world.disk_faults().iter().find(hits).copied() else {
            return Permission::Granted;
        };
        self.world.count_disk_error(name);
        if fault.error == DiskError::Short && call == DiskCall::Write {
            return Permission::Half;
        }
        Permission::Denied(error_code(call, fault.error))
    }

    pub(crate) fn wrote(&self, kind: FileKind, offset: i64, bytes: &[u8]) {
        let at = usize::try_from(offset).unwrap_or(0);
        self.change(kind, |file| file.write(at, bytes));
    }

    pub(crate) fn truncated(&self, kind: FileKind, size: i64) {
        let length = usize::try_from(size).unwrap_or(0);
        self.change(kind, |file| file.truncate(length));
    }

    pub(crate) fn synced(&self, kind: FileKind) {
        if self.world.weakening().ignores_log_syncs() && kind == FileKind::Log {
            return;
        }
        self.change(kind, FileState::sync);
    }

    /// Loses the bytes that the failed sync covered, unless the machine is down: then the power cut
    /// decides.
    pub(crate) fn sync_failed(&self, kind: FileKind) {
        if self.world.is_down() {
            return;
        }
        let percent = self.world.scenario.leak_percent;
        let mut state = self.lock();
        let DiskState { files, random, .. } = &mut *state;
        if let Some(file) = files.get_mut(&kind) {
            file.leak(percent, random);
        }
    }

    fn change(&self, kind: FileKind, work: impl FnOnce(&mut FileState)) {
        if let Some(file) = self.lock().files.get_mut(&kind) {
            work(file);
        }
    }

    /// Cuts the power: moves what is durable to a fresh folder and continues there.
    pub(crate) fn cut_power(&self, fresh: &Path) -> std::io::Result<()> {
        let percent = self.world.scenario.leak_percent;
        {
            let mut state = self.lock();
            let DiskState {
                folder,
                files,
                deleted,
                random,
                ..
            } = &mut *state;
            copy_other_files(folder, fresh)?;
            for (kind, file) in files.iter_mut().filter(|(_, file)| file.exists) {
                file.leak(percent, random);
                std::fs::write(fresh.join(kind.name()), &file.durable)?;
                deleted.remove(kind);
            }
            for (kind, bytes) in std::mem::take(deleted) {
                if random.percent(percent) {
                    std::fs::write(fresh.join(kind.name()), bytes)?;
                }
            }
        }
        self.mount(fresh);
        Ok(())
    }

    /// Returns the folder of the files.
    pub(crate) fn folder(&self) -> PathBuf {
        self.lock().folder.clone()
    }
}

/// Copies the files that the model does not cover, except the WAL index, which SQLite rebuilds.
fn copy_other_files(from: &Path, to: &Path) -> std::io::Result<()> {
    for entry in std::fs::read_dir(from)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        let is_modelled = |name: &str| FileKind::ALL.iter().any(|kind| kind.name() == name);
        if let Some(name) = name
            && !is_modelled(name)
            && !name.ends_with("-shm")
        {
            std::fs::copy(&path, to.join(name))?;
        }
    }
    Ok(())
}

const fn call_name(kind: FileKind, call: DiskCall) -> &'static str {
    match (kind, call) {
        (FileKind::Database, DiskCall::Read) => "read .db",
        (FileKind::Database, DiskCall::Write) => "write .db",
        (FileKind::Database, DiskCall::Sync) => "sync .db",
        (FileKind::Database, DiskCall::Truncate) => "truncate .db",
        (FileKind::Log, DiskCall::Read) => "read -wal",
        (FileKind::Log, DiskCall::Write) => "write -wal",
        (FileKind::Log, DiskCall::Sync) => "sync -wal",
        (FileKind::Log, DiskCall::Truncate) => "truncate -wal",
    }
}

/// Returns the code that SQLite's "unix" layer returns for this error.
const fn error_code(call: DiskCall, error: DiskError) -> c_int {
    match (call, error) {
        (DiskCall::Read, _) => ffi::SQLITE_IOERR_READ,
        (DiskCall::Write, DiskError::Full | DiskError::Short) => ffi::SQLITE_FULL,
        (DiskCall::Write, DiskError::Io) => ffi::SQLITE_IOERR_WRITE,
        (DiskCall::Sync, _) => ffi::SQLITE_IOERR_FSYNC,
        (DiskCall::Truncate, _) => ffi::SQLITE_IOERR_TRUNCATE,
    }
}
