/*
 * powercut: shows what would be on the disk if the power failed now.
 *
 * A preloaded library that maintains a second copy of a data folder. The copy contains only what the
 * program has synced. Run the program on the first folder, kill it at any moment, and open the copy:
 * that is the disk after a power cut. SIGKILL alone does not test durability, because the kernel's page
 * cache still contains everything written before it.
 *
 * 64-bit Linux with glibc, one process, dynamically linked.
 *
 *   gcc -O2 -Wall -Wextra -shared -fPIC -o libpowercut.so powercut.c -ldl -pthread
 *
 *   mkdir -p live; rm -rf disk; cp -a live disk    # both must be equal at the start
 *   POWERCUT_LIVE=$PWD/live POWERCUT_DISK=$PWD/disk LD_PRELOAD=$PWD/libpowercut.so \
 *       tributary serve ... &                      # its data folder is $PWD/live
 *   ...load, and a log of everything that was acknowledged...
 *   kill -9 $!; rm -rf disk/.powercut              # the cut
 *   tributary serve ...                            # on a copy of $PWD/disk: is everything acknowledged there?
 *
 * Every test that uses the library needs a negative control: with POWERCUT_IGNORE=-wal (or
 * `PRAGMA synchronous=NORMAL`) the same run must lose acknowledged rows.
 *
 * Settings (environment)
 *   POWERCUT_LIVE  the folder the program works in. Unset: the library does nothing.
 *   POWERCUT_DISK  the folder for the durable state; on the same file system, outside LIVE.
 *   POWERCUT_AT    n: SIGKILL the process on entering its n-th fsync/fdatasync under LIVE, before that
 *                  sync has any effect. n = 1, 2, 3, ... visits every commit point in turn.
 *   POWERCUT_LEAK  0..100: the probability, in percent, that a 512-byte sector of a write reaches the disk
 *                  without a sync, as with background write-back. Produces torn and reordered writes.
 *   POWERCUT_SEED  seed for LEAK (default 1; scheduling still differs between runs).
 *   POWERCUT_FAST  1: do not call the real fsync. The durable state is the same, because DISK is read after a
 *                  kill, never after a real power cut. Faster, but requests hardly queue up behind a sync, so
 *                  group commit is hardly tested.
 *   POWERCUT_FAIL  errors to inject, separated by commas: CALL:FILE:NTH:HOW, for example
 *                  sync:-wal:7:EIO,write:.db:20:ENOSPC,write:-wal:30:short,sync:/:1:EIO
 *                    CALL  sync (fsync, fdatasync), write (every wrapped way to write) or truncate.
 *                    FILE  suffix of the path; `*` is every file and `/` a folder under LIVE.
 *                    NTH   which such call of the process fails, counted from 1.
 *                    HOW   EIO or ENOSPC; `kill`: SIGKILL the process on entering the call, before it has any
 *                          effect; `full`: this and every later such call fails with ENOSPC; for writes also
 *                          `short`: half is written, and the next write to such a file fails with ENOSPC, as on
 *                          a disk that fills up.
 *                  Each fault except `full` fires once. The library reports the first time on standard error, with
 *                  the path below LIVE (`.` is LIVE): `powercut: injected CALL:FILE:NTH:HOW into PATH`.
 *   POWERCUT_WHILE path of a file outside LIVE. While it exists, calls on files under LIVE fail or wait as its
 *                  content says, so that a disk can break and heal while the program runs:
 *                    full       writes fail with ENOSPC.
 *                    readonly   writes, truncations and new files fail with EROFS.
 *                    broken     writes and syncs fail with EIO.
 *                    slow N     syncs take N milliseconds longer.
 *                  The library reports the first effect of each content as `powercut: injected while:full into PATH`.
 *   POWERCUT_TELL  path suffix: report successful syncs of these files on standard error, if there was anything to
 *                  sync, as `powercut: synced PATH`. With `.db`, each is a checkpoint.
 *   POWERCUT_IGNORE  path suffix: syncs of these files succeed without making anything durable, as if the program
 *                  never synced them. For negative controls.
 *
 * The model
 *   Data     A write is durable once fsync or fdatasync of that file returned 0. The library copies the
 *            state at entry to the call.
 *   Length   As data: truncation and growth become durable with the file's sync.
 *   Names    Creating, renaming and removing become durable with fsync of the parent folder.
 *            A synced file in an unsynced folder is missing after the cut. ext4 does better, but POSIX does
 *            not guarantee more.
 *   Failure  A failed sync loses its data: a later, successful sync does not recover it. Linux behaves like
 *            this, so a failed fsync must never be retried.
 *            To inject one: POWERCUT_FAIL=sync:-wal:7:EIO
 *   -shm     SQLite's shared-memory index is ignored, because SQLite rebuilds it from the WAL.
 *
 * What it does not model
 *   - Writes by calls that are not wrapped below: mmap, io_uring, copy_file_range, sendfile, pwritev2,
 *     stdio, hole punching, raw system calls (static binaries, Go, the rustix crate's default backend).
 *     They count as lost, so the library errs on the strict side: a test may fail that should pass. A
 *     program that relies on them needs another tool. O_SYNC and O_DSYNC count as ordinary writes.
 *   - Other ways to sync: sync, syncfs, msync and sync_file_range make nothing durable here.
 *   - Several processes on the same files: each tracks only its own writes. Not for PostgreSQL, where one
 *     process syncs the writes of another.
 *   - A disk that lies about its flush, bit rot, lost sectors; order inside one fsync beyond LEAK.
 *   - mkdir is durable at once; rmdir, links and renamed folders are not tracked.
 *   - Power loss of the whole machine: open sockets, other processes and the clock continue.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define MAX_FD 65536
#define SECTOR 512

/* The next definition of a libc function, looked up once. */
#define REAL(name)                                                        \
	({                                                                \
		static __typeof__(&name) next;                            \
		if (!next)                                                \
			next = (__typeof__(&name))dlsym(RTLD_NEXT, #name); \
		next;                                                     \
	})

struct range {
	off_t from, to;
};

/* One inode under LIVE. Never freed: descriptors and pending name changes may still point at it. */
struct file {
	dev_t dev;
	ino_t ino;                /* 0 once the inode has lost its last name */
	int is_dir, named;        /* named: the durable bytes have a durable name */
	char path[PATH_MAX];      /* canonical path when it was first opened */
	char stored[PATH_MAX];    /* path of its durable bytes; under .powercut until it has a name */
	struct range *dirty;      /* written since the last sync */
	size_t dirty_len, dirty_cap;
	off_t lowest;             /* shortest length since the last sync, or -1 */
	pthread_mutex_t syncing;  /* one sync of a file at a time, in order */
	struct file *next;
};

/* A name change that is pending until its folder is synced. */
struct change {
	enum { APPEAR, VANISH, MOVE } what;
	char from[PATH_MAX], to[PATH_MAX]; /* paths under LIVE */
	struct file *file;
	struct change *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards everything below */
static char live[PATH_MAX], disk[PATH_MAX];
static size_t live_len;
static long cut_at, syncs, leak, serial, skip_real_sync;
static uint64_t rng = 1;
static char switch_path[PATH_MAX]; /* POWERCUT_WHILE */
static char ignored[64];  /* suffix of paths whose syncs do nothing */
static char reported[64]; /* suffix of paths whose syncs are reported */
static struct file *files, *by_fd[MAX_FD];
static struct change *first_change, **last_change = &first_change;

/* ---- injected errors ------------------------------------------------------------------------------ */

#define MAX_FAULTS 32

/* One entry of POWERCUT_FAIL. */
struct fault {
	char call[16], file[64], how[16], text[128];
	long nth, seen;
	int is_full, is_short, after_short; /* after_short: the next call fails with ENOSPC */
};

static struct fault faults[MAX_FAULTS];
static int fault_count;

static void read_faults(const char *setting)
{
	char copy[1024], *entry, *rest = copy;

	snprintf(copy, sizeof copy, "%s", setting);
	while ((entry = strsep(&rest, ","))) {
		struct fault *f = &faults[fault_count];
		if (!*entry)
			continue;
		snprintf(f->text, sizeof f->text, "%s", entry);
		if (fault_count == MAX_FAULTS ||
		    sscanf(entry, "%15[^:]:%63[^:]:%ld:%15s", f->call, f->file, &f->nth, f->how) != 4 ||
		    (strcmp(f->how, "EIO") && strcmp(f->how, "ENOSPC") && strcmp(f->how, "full") &&
		     strcmp(f->how, "short") && strcmp(f->how, "kill"))) {
			fprintf(stderr, "powercut: invalid entry in POWERCUT_FAIL: %s\n", entry);
			_exit(2);
		}
		f->is_full = !strcmp(f->how, "full");
		f->is_short = !strcmp(f->how, "short");
		fault_count++;
	}
}

static int ends_with(const char *path, const char *end)
{
	size_t n = strlen(path), m = strlen(end);
	return n >= m && !strcmp(path + n - m, end);
}

/* Does this call concern the FILE of a fault? */
static int matches(const char *file, const char *path, int is_dir)
{
	if (is_dir)
		return !strcmp(file, "/");
	return !strcmp(file, "*") || ends_with(path, file);
}

/* Writes the line at once, so that lines of several threads do not mix. Returns whether it was written. */
static int report(const char *what, const char *of, const char *path)
{
	char line[PATH_MAX + 256];
	int n = snprintf(line, sizeof line, "powercut: %s%s%s\n", what, of, path[live_len] ? path + live_len + 1 : ".");
	return REAL(write)(2, line, (size_t)n) == n;
}

/* Applies the content of POWERCUT_WHILE. Returns the error that this call must fail with, or 0. */
static int condition(const char *call, const char *path)
{
	static char last[32];
	char now[32] = "", of[64];
	int file = switch_path[0] ? REAL(open)(switch_path, O_RDONLY | O_CLOEXEC) : -1, error = 0;
	long slow = 0;

	if (file < 0)
		return 0;
	ssize_t n = REAL(read)(file, now, sizeof now - 1);
	REAL(close)(file);
	now[n > 0 ? n : 0] = 0;
	int is_sync = !strcmp(call, "sync");
	if (!strcmp(now, "full"))
		error = strcmp(call, "write") ? 0 : ENOSPC;
	else if (!strcmp(now, "readonly"))
		error = is_sync ? 0 : EROFS;
	else if (!strcmp(now, "broken"))
		error = is_sync || !strcmp(call, "write") ? EIO : 0;
	else if (sscanf(now, "slow %ld", &slow) == 1 && is_sync)
		nanosleep(&(struct timespec){slow / 1000, slow % 1000 * 1000000}, NULL);
	else
		slow = 0;
	if ((error || slow) && strcmp(last, now)) {
		snprintf(of, sizeof of, "while:%s into ", now);
		if (report("injected ", of, path))
			strcpy(last, now);
	}
	return error;
}

/* Returns the error that this call must fail with, or 0. *is_short: write half of it instead. */
static int injected(const char *call, const char *path, int is_dir, int *is_short)
{
	int error = condition(call, path);

	for (int i = 0; i < fault_count; i++) {
		struct fault *f = &faults[i];
		if (strcmp(f->call, call) || !matches(f->file, path, is_dir))
			continue;
		if (__atomic_exchange_n(&f->after_short, 0, __ATOMIC_SEQ_CST)) {
			error = ENOSPC;
			continue;
		}
		long seen = __atomic_add_fetch(&f->seen, 1, __ATOMIC_SEQ_CST);
		if (f->is_full && seen > f->nth)
			error = ENOSPC;
		if (seen != f->nth)
			continue;
		char of[sizeof f->text + 8];
		snprintf(of, sizeof of, "%s into ", f->text);
		report("injected ", of, path);
		if (!strcmp(f->how, "kill"))
			kill(getpid(), SIGKILL);
		if (f->is_short && is_short) {
			*is_short = 1;
			__atomic_store_n(&f->after_short, 1, __ATOMIC_SEQ_CST);
		} else {
			error = strcmp(f->how, "EIO") ? ENOSPC : EIO;
		}
	}
	return error;
}

__attribute__((constructor)) static void start(void)
{
	const char *l = getenv("POWERCUT_LIVE"), *d = getenv("POWERCUT_DISK"), *v;
	char stash[PATH_MAX + 16];

	if (!l || !d)
		return;
	if (!realpath(l, live) || !realpath(d, disk)) {
		fprintf(stderr, "powercut: POWERCUT_LIVE and POWERCUT_DISK must be existing folders\n");
		_exit(2);
	}
	cut_at = (v = getenv("POWERCUT_AT")) ? atol(v) : 0;
	leak = (v = getenv("POWERCUT_LEAK")) ? atol(v) : 0;
	rng = (v = getenv("POWERCUT_SEED")) ? strtoull(v, NULL, 10) * 2 + 1 : 1;
	skip_real_sync = (v = getenv("POWERCUT_FAST")) ? atol(v) : 0;
	if ((v = getenv("POWERCUT_FAIL")))
		read_faults(v);
	if ((v = getenv("POWERCUT_IGNORE")))
		snprintf(ignored, sizeof ignored, "%s", v);
	if ((v = getenv("POWERCUT_WHILE")))
		snprintf(switch_path, sizeof switch_path, "%s", v);
	if ((v = getenv("POWERCUT_TELL")))
		snprintf(reported, sizeof reported, "%s", v);
	snprintf(stash, sizeof stash, "%s/.powercut", disk);
	mkdir(stash, 0755);
	live_len = strlen(live); /* last, because it activates the library */
}

static int under_live(const char *path)
{
	return live_len && !strncmp(path, live, live_len) && (path[live_len] == '/' || !path[live_len]);
}

/* LIVE/x/y -> DISK/x/y */
static void on_disk(const char *path, char *out)
{
	if (snprintf(out, PATH_MAX, "%s%s", disk, path + live_len) >= PATH_MAX)
		out[0] = 0;
}

/* Absolute path with a canonical parent; the last part may not exist. 0 if it is not under LIVE. */
static int resolve(int dirfd, const char *path, char *out)
{
	char joined[PATH_MAX * 2], link[64], base[PATH_MAX] = "", *slash;

	if (!live_len)
		return 0;
	if (path[0] != '/') {
		if (dirfd == AT_FDCWD) {
			if (!getcwd(base, sizeof base))
				return 0;
		} else {
			snprintf(link, sizeof link, "/proc/self/fd/%d", dirfd);
			ssize_t n = readlink(link, base, sizeof base - 1);
			if (n <= 0)
				return 0;
			base[n] = 0;
		}
	}
	snprintf(joined, sizeof joined, "%s/%s", base, path);
	slash = strrchr(joined, '/');
	*slash = 0;
	if (!realpath(joined[0] ? joined : "/", base))
		return 0;
	return snprintf(out, PATH_MAX, "%s/%s", base, slash + 1) < PATH_MAX && under_live(out);
}

static unsigned chance(void) /* 0..99, xorshift64 */
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return (unsigned)(rng % 100);
}

/* ---- names ---------------------------------------------------------------------------------------- */

static void later(int what, const char *from, const char *to, struct file *f)
{
	struct change *c = calloc(1, sizeof *c);

	c->what = what;
	strcpy(c->from, from);
	if (to)
		strcpy(c->to, to);
	c->file = f;
	*last_change = c;
	last_change = &c->next;
}

static int directly_in(const char *path, const char *dir)
{
	size_t n = strlen(dir);
	return !strncmp(path, dir, n) && path[n] == '/' && !strchr(path + n + 1, '/');
}

static void set_aside(struct file *f) /* moves bytes without a durable name to .powercut */
{
	if (snprintf(f->stored, PATH_MAX, "%s/.powercut/%ld", disk, ++serial) >= PATH_MAX)
		abort();
	f->named = 0;
}

/* Frees a name. A file that had it may still be open and synced, so its bytes move to .powercut. */
static void vanish(const char *target)
{
	for (struct file *f = files; f; f = f->next) {
		if (f->named && !f->is_dir && !strcmp(f->stored, target)) {
			set_aside(f);
			REAL(rename)(target, f->stored);
			return;
		}
	}
	REAL(unlink)(target);
}

/* Gives the durable bytes of f the name `path`. There may be none. */
static void appear(struct file *f, const char *path)
{
	char target[PATH_MAX];

	on_disk(path, target);
	if (f->named && !strcmp(f->stored, target))
		return;
	vanish(target);
	if (REAL(rename)(f->stored, target) && errno == ENOENT)
		REAL(close)(REAL(open)(target, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0600));
	strcpy(f->stored, target);
	f->named = 1;
}

/* Is a change of this name pending? */
static int is_pending(const char *path)
{
	for (struct change *c = first_change; c; c = c->next)
		if (!strcmp(c->from, path) || (c->what == MOVE && !strcmp(c->to, path)))
			return 1;
	return 0;
}

/* Applies the pending changes of a synced folder in order. A move belongs to its target folder. */
static void sync_names(const char *dir)
{
	struct change **at = &first_change, *c;
	char path[PATH_MAX];

	while ((c = *at)) {
		if (!directly_in(c->what == MOVE ? c->to : c->from, dir)) {
			at = &c->next;
			continue;
		}
		on_disk(c->from, path);
		if (c->what == VANISH)
			vanish(path);
		else if (c->what == MOVE && c->file)
			appear(c->file, c->to);
		else if (c->what == APPEAR && !c->file->named)
			appear(c->file, c->from);
		*at = c->next;
		free(c);
	}
	last_change = at;
}

/* ---- files ---------------------------------------------------------------------------------------- */

static struct file *find(const struct stat *st)
{
	for (struct file *f = files; f; f = f->next)
		if (f->ino == st->st_ino && f->dev == st->st_dev)
			return f;
	return NULL;
}

static struct file *get(const char *path, const struct stat *st)
{
	struct file *f = find(st);
	struct stat there;

	if (f)
		return f;
	f = calloc(1, sizeof *f);
	f->dev = st->st_dev;
	f->ino = st->st_ino;
	f->lowest = -1;
	f->is_dir = S_ISDIR(st->st_mode);
	pthread_mutex_init(&f->syncing, NULL);
	strcpy(f->path, path);
	on_disk(path, f->stored);
	f->named = !stat(f->stored, &there) && !is_pending(path);
	if (!f->is_dir && !f->named) { /* new: its bytes stay in .powercut until its folder is synced */
		set_aside(f);
		later(APPEAR, path, NULL, f);
	}
	f->next = files;
	return files = f;
}

static void opened(int fd)
{
	char link[64], path[PATH_MAX];
	struct stat st;
	ssize_t n;
	int saved = errno;

	if (!live_len || fd < 0 || fd >= MAX_FD)
		return;
	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof path - 1);
	if (n > 0) {
		path[n] = 0;
		int shm = n > 4 && !strcmp(path + n - 4, "-shm");
		if (under_live(path) && !shm && !fstat(fd, &st) && st.st_nlink &&
		    (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode))) {
			pthread_mutex_lock(&lock);
			by_fd[fd] = get(path, &st);
			pthread_mutex_unlock(&lock);
		}
	}
	errno = saved;
}

static struct file *tracked(int fd)
{
	struct file *f = fd >= 0 && fd < MAX_FD ? by_fd[fd] : NULL;
	return f && !f->is_dir ? f : NULL;
}

static int open_stored(struct file *f)
{
	return REAL(open)(f->stored, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
}

/* Returns fd, or a second descriptor if fd is write-only. Release it with done_reading. */
static int readable(int fd)
{
	char self[64];

	if ((REAL(fcntl)(fd, F_GETFL) & O_ACCMODE) != O_WRONLY)
		return fd;
	snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
	return REAL(open)(self, O_RDONLY | O_CLOEXEC);
}

static void done_reading(int in, int fd)
{
	if (in != fd)
		REAL(close)(in);
}

/* Called with the lock held, after [from, to) of fd was written. */
static void wrote(struct file *f, int fd, off_t from, off_t to)
{
	char piece[SECTOR];

	if (f->dirty_len && f->dirty[f->dirty_len - 1].to == from) {
		f->dirty[f->dirty_len - 1].to = to;
	} else {
		if (f->dirty_len == f->dirty_cap) {
			f->dirty_cap = f->dirty_cap ? f->dirty_cap * 2 : 64;
			f->dirty = realloc(f->dirty, f->dirty_cap * sizeof *f->dirty);
		}
		f->dirty[f->dirty_len++] = (struct range){from, to};
	}
	if (!leak)
		return;
	int out = open_stored(f), in = readable(fd);
	for (off_t at = from; at < to;) { /* some sectors reach the disk without a sync */
		off_t end = (at / SECTOR + 1) * SECTOR;
		if (end > to)
			end = to;
		if ((long)chance() < leak) {
			ssize_t n = pread(in, piece, (size_t)(end - at), at);
			if (n > 0 && REAL(pwrite)(out, piece, (size_t)n, at) != n)
				abort();
		}
		at = end;
	}
	done_reading(in, fd);
	REAL(close)(out);
}

/* ---- sync ----------------------------------------------------------------------------------------- */

static int sync_file(struct file *f, int fd, int (*real)(int))
{
	struct range *ranges;
	size_t count, total = 0, used = 0;
	char *bytes;
	off_t length, lowest;
	struct stat st;
	int result, saved;

	pthread_mutex_lock(&f->syncing);

	/* Copies the state at entry. Writes during the real sync belong to the next one. */
	pthread_mutex_lock(&lock);
	fstat(fd, &st);
	length = st.st_size;
	lowest = f->lowest;
	ranges = f->dirty;
	count = f->dirty_len;
	f->dirty = NULL;
	f->dirty_len = f->dirty_cap = 0;
	f->lowest = -1;
	for (size_t i = 0; i < count; i++) {
		if (ranges[i].to > length)
			ranges[i].to = length;
		if (ranges[i].from > ranges[i].to)
			ranges[i].from = ranges[i].to;
		total += (size_t)(ranges[i].to - ranges[i].from);
	}
	bytes = malloc(total + 1);
	int in = readable(fd);
	for (size_t i = 0; i < count; i++) {
		size_t n = (size_t)(ranges[i].to - ranges[i].from);
		if (pread(in, bytes + used, n, ranges[i].from) != (ssize_t)n)
			abort();
		used += n;
	}
	done_reading(in, fd);
	pthread_mutex_unlock(&lock);

	int error = injected("sync", f->path, 0, NULL);
	result = error ? -1 : skip_real_sync ? 0 : real(fd);
	saved = error ? error : errno;

	if (result == 0) { /* after a failure the ranges are lost */
		pthread_mutex_lock(&lock);
		int out = open_stored(f);
		int bad = out < 0 || (lowest >= 0 && REAL(ftruncate)(out, lowest));
		used = 0;
		for (size_t i = 0; i < count && !bad; i++) {
			size_t n = (size_t)(ranges[i].to - ranges[i].from);
			bad = REAL(pwrite)(out, bytes + used, n, ranges[i].from) != (ssize_t)n;
			used += n;
		}
		if (bad || REAL(ftruncate)(out, length) || fchmod(out, st.st_mode & 07777))
			abort(); /* the copy is wrong: fail rather than report a false result */
		REAL(close)(out);
		pthread_mutex_unlock(&lock);
		if (reported[0] && count && ends_with(f->path, reported))
			report("synced ", "", f->path);
	}
	free(bytes);
	free(ranges);
	pthread_mutex_unlock(&f->syncing);
	errno = saved;
	return result;
}

static int sync_any(int fd, int (*real)(int))
{
	struct file *f = fd >= 0 && fd < MAX_FD ? by_fd[fd] : NULL;
	int result;

	if (!f)
		return real(fd);
	if (cut_at && __atomic_add_fetch(&syncs, 1, __ATOMIC_SEQ_CST) == cut_at)
		kill(getpid(), SIGKILL);
	if (ignored[0] && !f->is_dir && ends_with(f->path, ignored))
		return 0;
	if (!f->is_dir)
		return sync_file(f, fd, real);
	int error = injected("sync", f->path, 1, NULL);
	if (error) {
		errno = error;
		return -1;
	}
	result = skip_real_sync ? 0 : real(fd);
	if (result == 0) {
		pthread_mutex_lock(&lock);
		sync_names(f->path);
		pthread_mutex_unlock(&lock);
	}
	return result;
}

int fsync(int fd) { return sync_any(fd, REAL(fsync)); }
int fdatasync(int fd) { return sync_any(fd, REAL(fdatasync)); }

/* ---- the calls that change files ------------------------------------------------------------------ */

#define MODE(flags)                                                       \
	mode_t mode = 0;                                                  \
	if ((flags) & (O_CREAT | __O_TMPFILE)) {                          \
		va_list args;                                             \
		va_start(args, flags);                                    \
		mode = (mode_t)va_arg(args, int);                         \
		va_end(args);                                             \
	}

/* O_TRUNC is the same as truncating to zero after opening. */
static int finish_open(int fd, int flags)
{
	opened(fd);
	struct file *f = tracked(fd);
	if (f && (flags & O_TRUNC)) {
		pthread_mutex_lock(&lock);
		f->lowest = 0;
		pthread_mutex_unlock(&lock);
	}
	return fd;
}

/* Returns the error for a new file, or 0. */
static int refused(int dir, const char *path, int flags)
{
	char at[PATH_MAX];
	struct stat st;

	if (!(flags & O_CREAT) || !switch_path[0] || !resolve(dir, path, at) || !lstat(at, &st))
		return 0;
	int error = condition("create", at);
	if (error)
		errno = error;
	return error;
}

#define OPEN(name)                                                        \
	int name(const char *path, int flags, ...)                        \
	{                                                                 \
		MODE(flags)                                               \
		if (refused(AT_FDCWD, path, flags))                       \
			return -1;                                        \
		return finish_open(REAL(name)(path, flags, mode), flags); \
	}
#define OPENAT(name)                                                           \
	int name(int dir, const char *path, int flags, ...)                    \
	{                                                                      \
		MODE(flags)                                                    \
		if (refused(dir, path, flags))                                 \
			return -1;                                             \
		return finish_open(REAL(name)(dir, path, flags, mode), flags); \
	}
OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)

int close(int fd)
{
	if (fd >= 0 && fd < MAX_FD)
		by_fd[fd] = NULL;
	return REAL(close)(fd);
}

static int copied(int from, int to)
{
	if (to >= 0 && to < MAX_FD && from >= 0 && from < MAX_FD && to != from)
		by_fd[to] = by_fd[from];
	return to;
}

int dup(int fd) { return copied(fd, REAL(dup)(fd)); }
int dup2(int fd, int to) { return copied(fd, REAL(dup2)(fd, to)); }
int dup3(int fd, int to, int flags) { return copied(fd, REAL(dup3)(fd, to, flags)); }

#define FCNTL(name)                                                       \
	int name(int fd, int cmd, ...)                                    \
	{                                                                 \
		va_list args;                                             \
		va_start(args, cmd);                                      \
		void *arg = va_arg(args, void *);                         \
		va_end(args);                                             \
		int result = REAL(name)(fd, cmd, arg);                    \
		if (cmd == F_DUPFD || cmd == F_DUPFD_CLOEXEC)             \
			copied(fd, result);                               \
		return result;                                            \
	}
FCNTL(fcntl)
FCNTL(fcntl64)

/* Writes happen under the lock, so that no sync runs between a write and its record. */
#define TRACKED_WRITE(call, shorter, position)                            \
	struct file *f = tracked(fd);                                     \
	if (!f)                                                           \
		return call;                                              \
	int is_short = 0, error = injected("write", f->path, 0, &is_short); \
	if (error) {                                                      \
		errno = error;                                            \
		return -1;                                                \
	}                                                                 \
	pthread_mutex_lock(&lock);                                        \
	ssize_t n = is_short ? shorter : call;                            \
	int saved = errno;                                                \
	if (n > 0) {                                                      \
		off_t end = (position);                                   \
		wrote(f, fd, end - n, end);                               \
	}                                                                 \
	pthread_mutex_unlock(&lock);                                      \
	errno = saved;                                                    \
	return n;

#define HERE lseek(fd, 0, SEEK_CUR) /* the end of the last write, also with O_APPEND */

ssize_t write(int fd, const void *b, size_t len)
{
	TRACKED_WRITE(REAL(write)(fd, b, len), REAL(write)(fd, b, (len + 1) / 2), HERE)
}

ssize_t writev(int fd, const struct iovec *v, int len)
{
	TRACKED_WRITE(REAL(writev)(fd, v, len), REAL(writev)(fd, v, (len + 1) / 2), HERE)
}

#define PWRITE(name, buffer, size, offset)                                \
	ssize_t name(int fd, buffer b, size len, offset at)               \
	{                                                                 \
		TRACKED_WRITE(REAL(name)(fd, b, len, at),                 \
			      REAL(name)(fd, b, (len + 1) / 2, at), at + n) \
	}
PWRITE(pwrite, const void *, size_t, off_t)
PWRITE(pwrite64, const void *, size_t, off64_t)
PWRITE(pwritev, const struct iovec *, int, off_t)
PWRITE(pwritev64, const struct iovec *, int, off64_t)

#define TRUNCATE(name, type)                                              \
	int name(int fd, type length)                                     \
	{                                                                 \
		struct file *f = tracked(fd);                             \
		if (!f)                                                   \
			return REAL(name)(fd, length);                    \
		int error = injected("truncate", f->path, 0, NULL);       \
		if (error) {                                              \
			errno = error;                                    \
			return -1;                                        \
		}                                                         \
		pthread_mutex_lock(&lock);                                \
		int result = REAL(name)(fd, length);                      \
		if (!result && (f->lowest < 0 || length < f->lowest))     \
			f->lowest = length;                               \
		pthread_mutex_unlock(&lock);                              \
		return result;                                            \
	}
TRUNCATE(ftruncate, off_t)
TRUNCATE(ftruncate64, off64_t)

/* ---- the calls that change names ------------------------------------------------------------------ */

static void lost_name(const char *path)
{
	struct stat st;
	struct file *f = lstat(path, &st) ? NULL : find(&st);
	if (f && st.st_nlink == 1)
		f->ino = 0; /* the inode number may be reused */
}

static int removed(int dir, const char *path, int flags)
{
	char at[PATH_MAX];

	if ((flags & AT_REMOVEDIR) || !resolve(dir, path, at))
		return REAL(unlinkat)(dir, path, flags);
	pthread_mutex_lock(&lock);
	lost_name(at);
	int result = REAL(unlinkat)(dir, path, flags), saved = errno;
	if (!result)
		later(VANISH, at, NULL, NULL);
	pthread_mutex_unlock(&lock);
	errno = saved;
	return result;
}

int unlink(const char *path) { return removed(AT_FDCWD, path, 0); }
int unlinkat(int dir, const char *path, int flags) { return removed(dir, path, flags); }

static int moved(int a, const char *from, int b, const char *to)
{
	char source[PATH_MAX], target[PATH_MAX];
	struct stat st;

	if (!resolve(a, from, source) || !resolve(b, to, target))
		return REAL(renameat)(a, from, b, to);
	pthread_mutex_lock(&lock);
	struct file *f = lstat(source, &st) || !S_ISREG(st.st_mode) ? NULL : get(source, &st);
	lost_name(target);
	int result = REAL(renameat)(a, from, b, to), saved = errno;
	if (!result)
		later(MOVE, source, target, f);
	pthread_mutex_unlock(&lock);
	errno = saved;
	return result;
}

int rename(const char *from, const char *to) { return moved(AT_FDCWD, from, AT_FDCWD, to); }
int renameat(int a, const char *from, int b, const char *to) { return moved(a, from, b, to); }

int mkdir(const char *path, mode_t mode)
{
	char at[PATH_MAX], there[PATH_MAX];
	int result = REAL(mkdir)(path, mode), saved = errno;

	if (!result && resolve(AT_FDCWD, path, at)) {
		on_disk(at, there);
		REAL(mkdir)(there, mode);
	}
	errno = saved;
	return result;
}
