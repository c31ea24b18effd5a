//! A layer between SQLite and its file system that the simulated disk controls.
//!
//! Every file is a real file, opened by SQLite's own "unix" layer, so locks and shared memory work
//! as in production. This layer asks the [disk](crate::disk) before each call and tells it what was
//! written. Each thread has its own disk, because a run uses one thread and tests run in parallel.

#![expect(
    unsafe_code,
    reason = "implements an interface of SQLite, which is written in C"
)]

use crate::disk::{Disk, DiskCall, FileKind, Permission};
use rusqlite::ffi;
use std::cell::RefCell;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::path::Path;
use std::ptr;
use std::sync::{Arc, Once};

thread_local! {
    static CURRENT: RefCell<Option<Arc<Disk>>> = const { RefCell::new(None) };
}

/// Selects the disk for files that this thread opens from now on.
pub(crate) fn set_disk(disk: Option<Arc<Disk>>) {
    CURRENT.with(|current| *current.borrow_mut() = disk);
}

/// A file as SQLite sees it. The "unix" layer's own data follows it in memory.
#[repr(C)]
struct SimulatedFile {
    base: ffi::sqlite3_file,
    /// The disk that controls the file; null for other files. Owned.
    handle: *mut Handle,
}

/// An open file of a simulated disk.
struct Handle {
    disk: Arc<Disk>,
    kind: FileKind,
}

/// Registers the layer as the default for the whole process.
pub(crate) fn register() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the name is a valid C string, and the result is checked.
        let unix = unsafe { ffi::sqlite3_vfs_find(c"unix".as_ptr()) };
        assert!(!unix.is_null(), "SQLite has the layer \"unix\"");
        // SAFETY: a registered layer lives as long as the process.
        let base = unsafe { &*unix };
        let size = c_int::try_from(size_of::<SimulatedFile>()).expect("a small struct");
        let layer = ffi::sqlite3_vfs {
            iVersion: 2,
            szOsFile: base.szOsFile + size,
            mxPathname: base.mxPathname,
            pNext: ptr::null_mut(),
            zName: c"tributary-simulation".as_ptr(),
            pAppData: unix.cast(),
            xOpen: Some(open),
            xDelete: Some(delete),
            xAccess: Some(access),
            xFullPathname: Some(full_pathname),
            xDlOpen: None,
            xDlError: None,
            xDlSym: None,
            xDlClose: None,
            xRandomness: Some(randomness),
            xSleep: Some(sleep),
            xCurrentTime: None,
            xGetLastError: Some(last_error),
            xCurrentTimeInt64: Some(current_time),
            xSetSystemCall: None,
            xGetSystemCall: None,
            xNextSystemCall: None,
        };
        // SAFETY: the layer is leaked, so it lives as long as the process.
        let code = unsafe { ffi::sqlite3_vfs_register(Box::leak(Box::new(layer)), 1) };
        assert_eq!(code, ffi::SQLITE_OK, "register the layer");
    });
}

static METHODS: ffi::sqlite3_io_methods = ffi::sqlite3_io_methods {
    iVersion: 2,
    xClose: Some(close),
    xRead: Some(read),
    xWrite: Some(write),
    xTruncate: Some(truncate),
    xSync: Some(sync),
    xFileSize: Some(file_size),
    xLock: Some(lock),
    xUnlock: Some(unlock),
    xCheckReservedLock: Some(check_reserved_lock),
    xFileControl: Some(file_control),
    xSectorSize: Some(sector_size),
    xDeviceCharacteristics: Some(device_characteristics),
    xShmMap: Some(shm_map),
    xShmLock: Some(shm_lock),
    xShmBarrier: Some(shm_barrier),
    xShmUnmap: Some(shm_unmap),
    xFetch: None,
    xUnfetch: None,
};

/// Calls a method of the "unix" layer on a file, or returns an error if the layer lacks it.
macro_rules! inner {
    ($file:expr, $method:ident $(, $argument:expr)*) => {{
        let inner = inner_file($file);
        // SAFETY: `open` let the "unix" layer open the inner file, which set its methods, and the
        // arguments are SQLite's own.
        unsafe {
            match (*(*inner).pMethods).$method {
                Some(method) => method(inner $(, $argument)*),
                None => ffi::SQLITE_IOERR,
            }
        }
    }};
}

/// Calls a method of the "unix" layer, or returns an error if the layer lacks it.
macro_rules! base {
    ($layer:expr, $method:ident $(, $argument:expr)*) => {{
        // SAFETY: `register` stored the "unix" layer, which lives as long as the process, and the
        // arguments are SQLite's own.
        unsafe {
            let base = (*$layer).pAppData.cast::<ffi::sqlite3_vfs>();
            match (*base).$method {
                Some(method) => method(base $(, $argument)*),
                None => ffi::SQLITE_IOERR,
            }
        }
    }};
}

/// Returns the "unix" layer's part of a file.
fn inner_file(file: *mut ffi::sqlite3_file) -> *mut ffi::sqlite3_file {
    // SAFETY: `szOsFile` makes SQLite allocate both parts in one block.
    unsafe { file.cast::<SimulatedFile>().add(1).cast() }
}

/// Returns the disk's handle of a file.
fn handle<'a>(file: *mut ffi::sqlite3_file) -> Option<&'a Handle> {
    // SAFETY: `open` initialised the struct; the handle is null or lives until `close`.
    unsafe { (*file.cast::<SimulatedFile>()).handle.as_ref() }
}

fn file_kind(flags: c_int) -> Option<FileKind> {
    if flags & ffi::SQLITE_OPEN_MAIN_DB != 0 {
        Some(FileKind::Database)
    } else if flags & ffi::SQLITE_OPEN_WAL != 0 {
        Some(FileKind::Log)
    } else {
        None
    }
}

/// Returns the path that SQLite passed.
fn path_of<'a>(name: *const c_char) -> Option<&'a Path> {
    if name.is_null() {
        return None;
    }
    // SAFETY: SQLite passes C strings that live for the duration of the call.
    let name = unsafe { CStr::from_ptr(name) };
    name.to_str().ok().map(Path::new)
}

unsafe extern "C" fn open(
    layer: *mut ffi::sqlite3_vfs,
    name: ffi::sqlite3_filename,
    file: *mut ffi::sqlite3_file,
    flags: c_int,
    out_flags: *mut c_int,
) -> c_int {
    // SAFETY: SQLite allocated `szOsFile` bytes for the file.
    unsafe {
        (*file).pMethods = ptr::null();
        (*file.cast::<SimulatedFile>()).handle = ptr::null_mut();
        (*inner_file(file)).pMethods = ptr::null();
    }
    let disk = CURRENT.with(|current| current.borrow().clone());
    let kind = file_kind(flags);
    let controlled = match (disk, kind, path_of(name)) {
        (Some(disk), Some(kind), Some(path)) if disk.contains(path) => Some((disk, kind, path)),
        _ => None,
    };
    if let Some((disk, ..)) = &controlled
        && disk.is_frozen()
    {
        return ffi::SQLITE_CANTOPEN;
    }
    let code = base!(layer, xOpen, name, inner_file(file), flags, out_flags);
    // SAFETY: as above.
    let is_open = unsafe { !(*inner_file(file)).pMethods.is_null() };
    if !is_open {
        return code;
    }
    // SAFETY: as above. With methods, SQLite calls `close` even after an error.
    unsafe { (*file).pMethods = &raw const METHODS };
    if let Some((disk, kind, path)) = controlled
        && code == ffi::SQLITE_OK
    {
        disk.opened(kind, path);
        // SAFETY: as above.
        unsafe {
            (*file.cast::<SimulatedFile>()).handle = Box::into_raw(Box::new(Handle { disk, kind }));
        }
    }
    code
}

unsafe extern "C" fn delete(
    layer: *mut ffi::sqlite3_vfs,
    name: *const c_char,
    sync_folder: c_int,
) -> c_int {
    let disk = CURRENT.with(|current| current.borrow().clone());
    let controlled = disk.zip(path_of(name));
    let controlled = controlled.filter(|(disk, path)| disk.contains(path));
    if let Some((disk, _)) = &controlled
        && disk.is_frozen()
    {
        return ffi::SQLITE_IOERR_DELETE;
    }
    let code = base!(layer, xDelete, name, sync_folder);
    if let Some((disk, path)) = controlled
        && code == ffi::SQLITE_OK
    {
        disk.deleted(path);
    }
    code
}

unsafe extern "C" fn access(
    layer: *mut ffi::sqlite3_vfs,
    name: *const c_char,
    flags: c_int,
    out: *mut c_int,
) -> c_int {
    base!(layer, xAccess, name, flags, out)
}

unsafe extern "C" fn full_pathname(
    layer: *mut ffi::sqlite3_vfs,
    name: *const c_char,
    length: c_int,
    out: *mut c_char,
) -> c_int {
    base!(layer, xFullPathname, name, length, out)
}

unsafe extern "C" fn randomness(
    layer: *mut ffi::sqlite3_vfs,
    length: c_int,
    out: *mut c_char,
) -> c_int {
    base!(layer, xRandomness, length, out)
}

/// Returns at once: a busy connection of this thread is never released while it waits.
unsafe extern "C" fn sleep(_layer: *mut ffi::sqlite3_vfs, microseconds: c_int) -> c_int {
    microseconds
}

unsafe extern "C" fn last_error(
    layer: *mut ffi::sqlite3_vfs,
    length: c_int,
    out: *mut c_char,
) -> c_int {
    base!(layer, xGetLastError, length, out)
}

unsafe extern "C" fn current_time(layer: *mut ffi::sqlite3_vfs, out: *mut i64) -> c_int {
    base!(layer, xCurrentTimeInt64, out)
}

unsafe extern "C" fn close(file: *mut ffi::sqlite3_file) -> c_int {
    // SAFETY: `open` initialised the struct, and SQLite closes a file once.
    let owned = unsafe {
        let simulated = file.cast::<SimulatedFile>();
        let handle = (*simulated).handle;
        (*simulated).handle = ptr::null_mut();
        (!handle.is_null()).then(|| Box::from_raw(handle))
    };
    if let Some(handle) = owned {
        handle.disk.closed(handle.kind);
    }
    inner!(file, xClose)
}

unsafe extern "C" fn read(
    file: *mut ffi::sqlite3_file,
    buffer: *mut c_void,
    length: c_int,
    offset: i64,
) -> c_int {
    if let Some(handle) = handle(file)
        && let Permission::Denied(code) =
            handle
                .disk
                .request(handle.kind, DiskCall::Read, (offset, length))
    {
        return code;
    }
    inner!(file, xRead, buffer, length, offset)
}

unsafe extern "C" fn write(
    file: *mut ffi::sqlite3_file,
    buffer: *const c_void,
    length: c_int,
    offset: i64,
) -> c_int {
    let Some(handle) = handle(file) else {
        return inner!(file, xWrite, buffer, length, offset);
    };
    let (written, after) = match handle
        .disk
        .request(handle.kind, DiskCall::Write, (offset, length))
    {
        Permission::Denied(code) => return code,
        Permission::Granted => (length, ffi::SQLITE_OK),
        Permission::Half => (length / 2, ffi::SQLITE_FULL),
    };
    let code = inner!(file, xWrite, buffer, written, offset);
    if code != ffi::SQLITE_OK {
        return code;
    }
    let count = usize::try_from(written).unwrap_or(0);
    // SAFETY: SQLite passes `length` readable bytes, and `written` is at most `length`.
    let bytes = unsafe { std::slice::from_raw_parts(buffer.cast::<u8>(), count) };
    handle.disk.wrote(handle.kind, offset, bytes);
    after
}

unsafe extern "C" fn truncate(file: *mut ffi::sqlite3_file, size: i64) -> c_int {
    let Some(handle) = handle(file) else {
        return inner!(file, xTruncate, size);
    };
    let asked = handle
        .disk
        .request(handle.kind, DiskCall::Truncate, (size, 0));
    if let Permission::Denied(code) = asked {
        return code;
    }
    let code = inner!(file, xTruncate, size);
    if code == ffi::SQLITE_OK {
        handle.disk.truncated(handle.kind, size);
    }
    code
}

/// The bytes are not really synced: only the disk's model of what is durable counts.
unsafe extern "C" fn sync(file: *mut ffi::sqlite3_file, flags: c_int) -> c_int {
    let Some(handle) = handle(file) else {
        return inner!(file, xSync, flags);
    };
    match handle.disk.request(handle.kind, DiskCall::Sync, (0, 0)) {
        Permission::Denied(code) => {
            handle.disk.sync_failed(handle.kind);
            code
        }
        Permission::Granted | Permission::Half => {
            handle.disk.synced(handle.kind);
            ffi::SQLITE_OK
        }
    }
}

unsafe extern "C" fn file_size(file: *mut ffi::sqlite3_file, out: *mut i64) -> c_int {
    inner!(file, xFileSize, out)
}

unsafe extern "C" fn lock(file: *mut ffi::sqlite3_file, level: c_int) -> c_int {
    inner!(file, xLock, level)
}

unsafe extern "C" fn unlock(file: *mut ffi::sqlite3_file, level: c_int) -> c_int {
    inner!(file, xUnlock, level)
}

unsafe extern "C" fn check_reserved_lock(file: *mut ffi::sqlite3_file, out: *mut c_int) -> c_int {
    inner!(file, xCheckReservedLock, out)
}

unsafe extern "C" fn file_control(
    file: *mut ffi::sqlite3_file,
    operation: c_int,
    argument: *mut c_void,
) -> c_int {
    inner!(file, xFileControl, operation, argument)
}

unsafe extern "C" fn sector_size(file: *mut ffi::sqlite3_file) -> c_int {
    inner!(file, xSectorSize)
}

unsafe extern "C" fn device_characteristics(file: *mut ffi::sqlite3_file) -> c_int {
    inner!(file, xDeviceCharacteristics)
}

unsafe extern "C" fn shm_map(
    file: *mut ffi::sqlite3_file,
    region: c_int,
    size: c_int,
    extend: c_int,
    out: *mut *mut c_void,
) -> c_int {
    inner!(file, xShmMap, region, size, extend, out)
}

unsafe extern "C" fn shm_lock(
    file: *mut ffi::sqlite3_file,
    offset: c_int,
    count: c_int,
    flags: c_int,
) -> c_int {
    inner!(file, xShmLock, offset, count, flags)
}

unsafe extern "C" fn shm_barrier(file: *mut ffi::sqlite3_file) {
    let inner = inner_file(file);
    // SAFETY: as in `inner!`.
    unsafe {
        if let Some(barrier) = (*(*inner).pMethods).xShmBarrier {
            barrier(inner);
        }
    }
}

unsafe extern "C" fn shm_unmap(file: *mut ffi::sqlite3_file, delete: c_int) -> c_int {
    inner!(file, xShmUnmap, delete)
}
