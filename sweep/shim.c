/* Makes one file operation of a process fail, or kills the process at it. For tests only.
 *
 * Loaded with LD_PRELOAD on Linux for x86-64. A seccomp filter traps the system calls below, so no
 * call is missed, whatever library makes it; the handler counts it, and executes it or not.
 *
 * Guarantees: only operations on files below SWEEP_ROOT count, and no other call is changed. The
 * counts are in the file SWEEP_RECORD as soon as they change, so a killed process has reported
 * them. Every operation is counted before it is executed.
 *
 *   SWEEP_ROOT    the directory, without a slash at its end
 *   SWEEP_RECORD  a file outside the root, as large as `struct record`
 *   SWEEP_MODE    the name of a mode below
 *   SWEEP_AT      which operation of the mode's class: 1 is the first
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

#ifndef __x86_64__
#error "the shim reads the registers of x86-64"
#endif

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

/* ---- what counts -------------------------------------------------------------------------- */

enum { READ = 1, CHANGE = 2, WRITE = 4, SPACE = 8 };
enum { CLASSES = 4 };

/* Where a call names its file: a descriptor, a path, or a directory and a path, at argument n. */
enum place { FD0, PATH0, AT0, AT1, AT2 };

struct call {
    long number;
    const char *name;
    int classes;
    enum place place;
};

static const struct call CALLS[] = {
    {SYS_open, "open", 0, PATH0}, /* classes follow from the flags */
    {SYS_openat, "openat", 0, AT0},
    {SYS_creat, "creat", CHANGE | SPACE, PATH0},
    {SYS_read, "read", READ, FD0},
    {SYS_pread64, "pread", READ, FD0},
    {SYS_readv, "readv", READ, FD0},
    {SYS_preadv, "preadv", READ, FD0},
    {SYS_write, "write", CHANGE | WRITE | SPACE, FD0},
    {SYS_pwrite64, "pwrite", CHANGE | WRITE | SPACE, FD0},
    {SYS_writev, "writev", CHANGE | WRITE | SPACE, FD0},
    {SYS_pwritev, "pwritev", CHANGE | WRITE | SPACE, FD0},
    {SYS_sendfile, "sendfile", CHANGE | SPACE, FD0},
    {SYS_copy_file_range, "copy_file_range", CHANGE | SPACE, AT2},
    {SYS_fallocate, "fallocate", CHANGE | SPACE, FD0},
    {SYS_truncate, "truncate", CHANGE, PATH0},
    {SYS_ftruncate, "ftruncate", CHANGE, FD0},
    {SYS_fsync, "fsync", CHANGE, FD0},
    {SYS_fdatasync, "fdatasync", CHANGE, FD0},
    {SYS_sync_file_range, "sync_file_range", CHANGE, FD0},
    {SYS_rename, "rename", CHANGE | SPACE, PATH0},
    {SYS_renameat, "renameat", CHANGE | SPACE, AT0},
    {SYS_renameat2, "renameat2", CHANGE | SPACE, AT0},
    {SYS_link, "link", CHANGE | SPACE, PATH0},
    {SYS_linkat, "linkat", CHANGE | SPACE, AT2},
    {SYS_symlink, "symlink", CHANGE | SPACE, PATH0},
    {SYS_symlinkat, "symlinkat", CHANGE | SPACE, AT1},
    {SYS_unlink, "unlink", CHANGE, PATH0},
    {SYS_unlinkat, "unlinkat", CHANGE, AT0},
    {SYS_rmdir, "rmdir", CHANGE, PATH0},
    {SYS_mkdir, "mkdir", CHANGE | SPACE, PATH0},
    {SYS_mkdirat, "mkdirat", CHANGE | SPACE, AT0},
    {SYS_chmod, "chmod", CHANGE, PATH0},
    {SYS_fchmod, "fchmod", CHANGE, FD0},
    {SYS_fchmodat, "fchmodat", CHANGE, AT0},
    {SYS_chown, "chown", CHANGE, PATH0},
    {SYS_fchown, "fchown", CHANGE, FD0},
    {SYS_fchownat, "fchownat", CHANGE, AT0},
};

/* ---- the faults --------------------------------------------------------------------------- */

enum action { NOTHING, KILL, TEAR, SHORTEN, FAIL, FAIL_LATE };

static const struct mode {
    const char *name;
    int counted;
    enum action action;
    int error;
    int lasting; /* from this operation on, not once */
} MODES[] = {
    {"count", CHANGE, NOTHING, 0, 0},
    {"kill", CHANGE, KILL, 0, 0},         /* the process dies before the operation */
    {"torn", WRITE, TEAR, 0, 0},          /* half of it is written, then the process dies */
    {"short", WRITE, SHORTEN, 0, 0},      /* half of it is written, which a caller must expect */
    {"eio", CHANGE, FAIL, EIO, 0},        /* it fails and is not done */
    {"late", CHANGE, FAIL_LATE, EIO, 0},  /* it is done and reports that it failed */
    {"dead", CHANGE, FAIL, EIO, 1},       /* from here on no change succeeds */
    {"full", SPACE, FAIL, ENOSPC, 1},     /* from here on nothing that needs space succeeds */
    {"unread", READ, FAIL, EIO, 0},       /* a file cannot be opened or read */
};

/* Shared with the program that started the process. */
struct record {
    uint64_t counts[CLASSES]; /* of each class, in the order of their bits */
    uint64_t hit;             /* number of changed operations */
    uint64_t lost_names;      /* the first was the sync of a directory with new names ... */
    uint64_t synced_later;    /* ... and a later sync of it succeeded */
    uint64_t unsynced_name;   /* a file was renamed, but a directory was not synced after it: 1
                                 the one that it is in now, 2 the one that it was in */
    char what[216];           /* the first operation that was changed */
};

static const struct mode *mode;
static uint64_t at;
static char root[PATH_MAX];
static size_t root_length;
static struct record *record;
static char unsynced[PATH_MAX]; /* the directory whose sync failed */
static char renamed[PATH_MAX];  /* the directory of the last rename */
static char left[PATH_MAX];     /* the directory it was moved from, if another */
static char created[PATH_MAX];  /* the directory of a store or its log, until it is synced */
static char synced[PATH_MAX];   /* that directory after it was synced */

/* The only code whose system calls pass the filter. Returns -errno, as the kernel does. */
long sweep_raw(long number, long a, long b, long c, long d, long e, long f);
extern const char sweep_raw_end[];
__asm__(".text\n"
        ".globl sweep_raw, sweep_raw_end\n"
        ".hidden sweep_raw, sweep_raw_end\n"
        "sweep_raw:\n"
        "  mov %rdi, %rax\n  mov %rsi, %rdi\n  mov %rdx, %rsi\n  mov %rcx, %rdx\n"
        "  mov %r8, %r10\n  mov %r9, %r8\n  mov 8(%rsp), %r9\n"
        "  syscall\n"
        "sweep_raw_end:\n"
        "  ret\n");

static long carry_out(long number, const long *a)
{
    return sweep_raw(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* ---- which file --------------------------------------------------------------------------- */

/* The path behind a descriptor; empty if it has none. */
static void path_of(long fd, char *path)
{
    char link[32];
    snprintf(link, sizeof link, "/proc/self/fd/%ld", fd);
    ssize_t length = readlink(link, path, PATH_MAX - 1);
    path[length < 0 ? 0 : length] = 0;
}

/* Where a path leads from a directory. Links and dots stay as they are. */
static void path_from(long directory, const char *name, char *path)
{
    if (name[0] == '/') {
        snprintf(path, PATH_MAX, "%s", name);
        return;
    }
    if ((int)directory != AT_FDCWD)
        path_of(directory, path);
    else if (!getcwd(path, PATH_MAX))
        path[0] = 0;
    size_t length = strlen(path);
    snprintf(path + length, PATH_MAX - length, "/%s", name);
}

static void find_path(const struct call *call, const long *a, char *path)
{
    switch (call->place) {
    case FD0: path_of(a[0], path); break;
    case PATH0: path_from(AT_FDCWD, (const char *)a[0], path); break;
    case AT0: path_from(a[0], (const char *)a[1], path); break;
    case AT1: path_from(a[1], (const char *)a[2], path); break;
    case AT2:
        if (call->number == SYS_copy_file_range)
            path_of(a[2], path);
        else
            path_from(a[2], (const char *)a[3], path);
    }
}

static int is_below_root(const char *path)
{
    return strncmp(path, root, root_length) == 0
        && (path[root_length] == '/' || path[root_length] == 0);
}

/* ---- one call ----------------------------------------------------------------------------- */

static int classes_of(const struct call *call, const long *a, const char *path)
{
    if (call->number == SYS_open || call->number == SYS_openat) {
        long flags = call->number == SYS_open ? a[1] : a[2];
        if ((flags & O_TMPFILE) == O_TMPFILE)
            return CHANGE | SPACE;
        if (!(flags & (O_CREAT | O_TRUNC)))
            return READ;
        return flags & O_CREAT && access(path, F_OK) != 0 ? CHANGE | SPACE : CHANGE;
    }
    /* Half of one byte is zero bytes, which no file system writes. */
    int divisible = call->number == SYS_writev || call->number == SYS_pwritev || a[2] > 1;
    return call->classes & WRITE && !divisible ? call->classes & ~WRITE : call->classes;
}

static long write_half(long number, const long *a)
{
    long half[6];
    memcpy(half, a, sizeof half);
    if (number == SYS_writev || number == SYS_pwritev)
        half[2] = (a[2] + 1) / 2;
    else
        half[2] = a[2] / 2;
    return carry_out(number, half);
}

static int is_sync(const struct call *call)
{
    return call->number == SYS_fsync || call->number == SYS_fdatasync;
}

static long changed(const struct call *call, const long *a, const char *path)
{
    if (__atomic_fetch_add(&record->hit, 1, __ATOMIC_SEQ_CST) == 0) {
        snprintf(record->what, sizeof record->what, "%s %s", call->name, path + root_length);
        int renames = (record->unsynced_name & 1 && strcmp(path, renamed) == 0)
                      || (record->unsynced_name & 2 && strcmp(path, left) == 0);
        if (is_sync(call) && (renames || strcmp(path, created) == 0)) {
            record->lost_names = 1;
            snprintf(unsynced, sizeof unsynced, "%s", path);
        }
    }
    switch (mode->action) {
    case TEAR:
        write_half(call->number, a);
        /* fall through */
    case KILL:
        kill(getpid(), SIGKILL);
        for (;;)
            pause();
    case SHORTEN:
        return write_half(call->number, a);
    case FAIL_LATE: {
        long result = carry_out(call->number, a);
        if (result >= 0 && (call->number == SYS_open || call->number == SYS_openat))
            close((int)result);
        return -mode->error;
    }
    default:
        return -mode->error;
    }
}

static int ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), tail = strlen(end);
    return length >= tail && strcmp(text + length - tail, end) == 0;
}

static void keep_directory(char *directory, const char *path)
{
    snprintf(directory, PATH_MAX, "%s", path);
    *strrchr(directory, '/') = 0;
}

/* Tracks the names that a power failure would undo. */
static void done(const struct call *call, const long *a, const char *path, int classes)
{
    int opens = call->number == SYS_open || call->number == SYS_openat;
    if (is_sync(call)) {
        if (strcmp(path, unsynced) == 0)
            record->synced_later = 1;
        if (strcmp(path, renamed) == 0)
            record->unsynced_name &= ~(uint64_t)1;
        if (strcmp(path, left) == 0)
            record->unsynced_name &= ~(uint64_t)2;
        if (strcmp(path, created) == 0) {
            strcpy(synced, created);
            created[0] = 0;
        }
    } else if (opens && classes & CHANGE && (ends_with(path, "-wal") || ends_with(path, ".db"))) {
        /* An existing file may come from a process that did not sync its name. */
        char directory[PATH_MAX];
        keep_directory(directory, path);
        if (classes & SPACE || strcmp(directory, synced) != 0)
            strcpy(created, directory);
    } else if (call->number == SYS_rename || call->number == SYS_renameat
               || call->number == SYS_renameat2) {
        char target[PATH_MAX];
        int plain = call->number == SYS_rename;
        path_from(plain ? AT_FDCWD : a[2], (const char *)(plain ? a[1] : a[3]), target);
        keep_directory(renamed, target);
        keep_directory(left, path);
        record->unsynced_name = strcmp(left, renamed) == 0 ? 1 : 3;
    }
}

static long answer(long number, const long *a)
{
    const struct call *call = CALLS;
    while (call->number != number)
        call++;
    char path[PATH_MAX];
    find_path(call, a, path);
    if (!is_below_root(path))
        return carry_out(number, a);
    int classes = classes_of(call, a, path);
    uint64_t count = 0; /* stays so if the operation is not of the mode's class */
    for (int bit = 0; bit < CLASSES; bit++)
        if (classes & 1 << bit) {
            uint64_t now = __atomic_add_fetch(&record->counts[bit], 1, __ATOMIC_SEQ_CST);
            if (mode->counted == 1 << bit)
                count = now;
        }
    if (mode->action != NOTHING && (count == at || (mode->lasting && count > at)))
        return changed(call, a, path);
    long result = carry_out(number, a);
    if (result >= 0)
        done(call, a, path, classes);
    return result;
}

static void trapped(int signal, siginfo_t *info, void *context)
{
    (void)signal;
    int saved = errno;
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    long arguments[] = {registers[REG_RDI], registers[REG_RSI], registers[REG_RDX],
                        registers[REG_R10], registers[REG_R8], registers[REG_R9]};
    registers[REG_RAX] = answer(info->si_syscall, arguments);
    errno = saved;
}

/* ---- start -------------------------------------------------------------------------------- */

static void give_up(const char *why)
{
    fprintf(stderr, "sweep shim: %s: %s\n", why, strerror(errno));
    _exit(99);
}

static const char *setting(const char *name)
{
    const char *value = getenv(name);
    if (!value)
        give_up(name);
    return value;
}

static void filter(void)
{
    struct sock_filter code[8 + LENGTH(CALLS)];
    uint64_t here = (uint64_t)(uintptr_t)sweep_raw_end;
    unsigned pointer = offsetof(struct seccomp_data, instruction_pointer);
    unsigned n = 0, calls = LENGTH(CALLS);
#define LOAD(place) (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, place)
#define JUMP_IF(value, then, otherwise) \
    (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(value), then, otherwise)
    code[n++] = LOAD(pointer);
    code[n++] = JUMP_IF(here, 0, 2);
    code[n++] = LOAD(pointer + 4);
    code[n++] = JUMP_IF(here >> 32, (uint8_t)(calls + 1), 0);
    code[n++] = LOAD(offsetof(struct seccomp_data, nr));
    for (unsigned i = 0; i < calls; i++)
        code[n++] = JUMP_IF(CALLS[i].number, (uint8_t)(calls - i), 0);
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP);
    struct sock_fprog program = {(unsigned short)n, code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        give_up("no_new_privs");
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        give_up("seccomp");
}

__attribute__((constructor)) static void start(void)
{
    const char *name = setting("SWEEP_MODE");
    for (size_t i = 0; i < LENGTH(MODES); i++)
        if (strcmp(MODES[i].name, name) == 0)
            mode = &MODES[i];
    if (!mode)
        give_up("SWEEP_MODE is unknown");
    at = strtoull(setting("SWEEP_AT"), NULL, 10);
    root_length = (size_t)snprintf(root, sizeof root, "%s", setting("SWEEP_ROOT"));
    int file = open(setting("SWEEP_RECORD"), O_RDWR);
    if (file < 0)
        give_up("SWEEP_RECORD");
    record = mmap(NULL, sizeof *record, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (record == MAP_FAILED)
        give_up("SWEEP_RECORD");
    close(file);
    struct sigaction action = {.sa_sigaction = trapped, .sa_flags = SA_SIGINFO | SA_NODEFER};
    if (sigaction(SIGSYS, &action, NULL) != 0)
        give_up("SIGSYS");
    filter();
}
