/* Lets one call of the system fail, or kill the process, as the environment says:
   SKSKETCH_FAULT=call:number:errno, where errno 0 is SIGKILL. Only calls about files below
   SKSKETCH_FAULT_FOLDER count. Loaded by LD_PRELOAD. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

static int seen;

static int below(const char *path) {
    const char *folder = getenv("SKSKETCH_FAULT_FOLDER");
    return folder && path && strncmp(path, folder, strlen(folder)) == 0;
}

static int strikes(const char *call, const char *path) {
    const char *plan = getenv("SKSKETCH_FAULT");
    char name[32];
    int number, code;
    if (!plan || !below(path) || sscanf(plan, "%31[^:]:%d:%d", name, &number, &code) != 3)
        return 0;
    if (strcmp(name, call) || ++seen != number)
        return 0;
    if (!code)
        kill(getpid(), SIGKILL);
    errno = code;
    return 1;
}

static int strikes_file(const char *call, int file) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t n = readlink(link, path, sizeof path - 1);
    if (n < 0)
        return 0;
    path[n] = 0;
    return strikes(call, path);
}

#define REAL(name) static __typeof__(&name) real; if (!real) real = dlsym(RTLD_NEXT, #name)

ssize_t write(int file, const void *data, size_t n) {
    REAL(write);
    return strikes_file("write", file) ? -1 : real(file, data, n);
}

int fsync(int file) {
    REAL(fsync);
    return strikes_file("fsync", file) ? -1 : real(file);
}

int rename(const char *from, const char *to) {
    REAL(rename);
    return strikes("rename", to) ? -1 : real(from, to);
}

int renameat(int a, const char *from, int b, const char *to) {
    REAL(renameat);
    return strikes("rename", to) ? -1 : real(a, from, b, to);
}

int chmod(const char *path, mode_t mode) {
    REAL(chmod);
    return strikes("chmod", path) ? -1 : real(path, mode);
}

int fchmodat(int folder, const char *path, mode_t mode, int flags) {
    REAL(fchmodat);
    return strikes("chmod", path) ? -1 : real(folder, path, mode, flags);
}

int unlink(const char *path) {
    REAL(unlink);
    return strikes("unlink", path) ? -1 : real(path);
}

static int opened(const char *call, const char *path, int flags) {
    return (flags & O_CREAT) && strikes(call, path);
}

int open64(const char *path, int flags, ...) {
    REAL(open64);
    va_list more;
    va_start(more, flags);
    mode_t mode = va_arg(more, mode_t);
    va_end(more);
    return opened("open", path, flags) ? -1 : real(path, flags, mode);
}

int open(const char *path, int flags, ...) {
    REAL(open);
    va_list more;
    va_start(more, flags);
    mode_t mode = va_arg(more, mode_t);
    va_end(more);
    return opened("open", path, flags) ? -1 : real(path, flags, mode);
}
