/*
 * Shifts the wall clock of one program while it runs. The monotonic clock stays as it is, as when a
 * clock is set.
 *
 *     cc -O2 -shared -fPIC -o libclockshift.so clockshift.c
 *     CLOCKSHIFT_FILE=$PWD/shift LD_PRELOAD=$PWD/libclockshift.so tributary serve
 *
 * The file contains the shift in nanoseconds, as a signed number of eight bytes in the order of the
 * machine. It is mapped, so that a write to it takes effect at once. Without the file the program
 * does not start: a test whose clock is not shifted would show nothing.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1000000000LL

static const volatile long long *shift;

__attribute__((constructor)) static void map_shift(void)
{
    const char *path = getenv("CLOCKSHIFT_FILE");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *mapped = file < 0 ? MAP_FAILED : mmap(NULL, sizeof *shift, PROT_READ, MAP_SHARED, file, 0);
    if (mapped == MAP_FAILED) {
        fputs("clockshift: CLOCKSHIFT_FILE is missing\n", stderr);
        _exit(99);
    }
    close(file);
    shift = mapped;
}

int clock_gettime(clockid_t clock, struct timespec *time)
{
    int result = (int)syscall(SYS_clock_gettime, clock, time);
    if (result == 0 && shift && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
        long long now = time->tv_sec * SECOND + time->tv_nsec + *shift;
        time->tv_sec = now / SECOND;
        time->tv_nsec = now % SECOND;
    }
    return result;
}

int gettimeofday(struct timeval *restrict time, void *restrict zone)
{
    struct timespec now;
    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &now) != 0)
        return -1;
    time->tv_sec = now.tv_sec;
    time->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *result)
{
    struct timespec now;
    if (clock_gettime(CLOCK_REALTIME, &now) != 0)
        return (time_t)-1;
    if (result)
        *result = now.tv_sec;
    return now.tv_sec;
}
