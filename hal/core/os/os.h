/* os/os.h: everything that the core asks of the operating system; one folder per system implements it.
 *
 * Pre-conditions that hold for every function here: pointers are not NULL, paths are absolute unless said otherwise,
 * and the caller has checked sizes. A function that can fail returns errno, 0 for success; the layers above put it into
 * words. Nothing here logs, allocates more than its result, or keeps global state, except the fork page. No type of a
 * system's stands here.
 */
#ifndef GPUHAL_OS_H
#define GPUHAL_OS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

/* ---- fork.c */

/* For the function below: what it does where the word is 0, and where that lies. */
uint32_t gpuhal_os_fork_look(void);
extern _Atomic(_Atomic uint32_t *) gpuhal_os_fork_word;
/* Counts forks: 1 in the process that first asked, one more in each generation of children. Two loads on the fast path:
 * the word lies in a page that the kernel wipes in the child (madvise MADV_WIPEONFORK, Linux 4.14; without it, getpid).
 * Never 0. */
static inline uint32_t gpuhal_os_fork_generation(void)
{
    uint32_t count =
        atomic_load_explicit(atomic_load_explicit(&gpuhal_os_fork_word, memory_order_acquire), memory_order_acquire);
    return __builtin_expect(count != 0, 1) ? count : gpuhal_os_fork_look();
}

/* ---- thread.c */

/* A mutex that a child of a fork finds unlocked: a lock held by a thread that the child does not have is made anew. */
typedef struct gpuhal_mutex {
    uint64_t system[6];          /* the system's mutex */
    _Atomic uint32_t
        generation; /* fork generation in which it was initialised; with its top bit set while it is being made anew */
} gpuhal_mutex;
void gpuhal_mutex_init(gpuhal_mutex *mutex);
void gpuhal_mutex_finish(gpuhal_mutex *mutex);
void gpuhal_mutex_lock(gpuhal_mutex *mutex);
void gpuhal_mutex_unlock(gpuhal_mutex *mutex);
/* For statics: ready without gpuhal_mutex_init, made at the first lock. */
#define GPUHAL_MUTEX_INITIALIZER { {0}, 0 }

/* A condition to wait for with a gpuhal_mutex held, and to signal with it held. In the child of a fork it has no
 * waiters. */
typedef struct gpuhal_condition {
    uint64_t system[6];  /* the system's condition */
    uint32_t generation; /* fork generation in which it was initialised; protected by the mutex */
} gpuhal_condition;
/* For statics: made when it is first waited for or signalled. */
#define GPUHAL_CONDITION_INITIALIZER { {0}, 0 }
void gpuhal_condition_init(gpuhal_condition *condition);
void gpuhal_condition_finish(gpuhal_condition *condition);
void gpuhal_condition_wait(gpuhal_condition *condition, gpuhal_mutex *mutex);
/* The same until this time of gpuhal_os_monotonic_ns() at the latest. */
void gpuhal_condition_wait_until(gpuhal_condition *condition, gpuhal_mutex *mutex, uint64_t deadline_ns);
void gpuhal_condition_signal_all(gpuhal_condition *condition);

/* Keeps others from cancelling the calling thread until the restore, which gets what this returns: a thread that ends
 * in the midst of what others wait for leaves its locks and promises behind. The waits above do so by themselves. */
int gpuhal_os_cancel_defer(void);
void gpuhal_os_cancel_restore(int before);

/* Starts a thread with all signals blocked that others send, so that the host's handlers of those never run on it.
 * Returns 0 or errno. */
typedef struct gpuhal_thread {
    uintptr_t system; /* the system's name for it */
} gpuhal_thread;
int gpuhal_thread_start(gpuhal_thread *out_thread, void *(*run)(void *), void *user);
void gpuhal_thread_join(gpuhal_thread *thread);
/* A thread that is never joined. */
int gpuhal_thread_start_detached(void *(*run)(void *), void *user);
void gpuhal_thread_detach(gpuhal_thread *thread);
bool gpuhal_thread_is_this(const gpuhal_thread *thread);
/* A number for the calling thread that no other living thread has; never 0. */
uint64_t gpuhal_os_thread_id(void);
/* Whether a thread of this process has that number; true where the system does not say. */
bool gpuhal_os_thread_is_alive(uint64_t id);
/* The name of the calling thread in debuggers and listings; at most 15 characters. */
void gpuhal_os_thread_name(const char *name);
/* How many processors this process may run on; at least 1. */
uint32_t gpuhal_os_processors(void);
/* A set of processors: bit i % 64 of word i / 64 is processor i. */
enum { GPUHAL_PROCESSORS_MAX = 8192 };
typedef struct gpuhal_processors {
    uint64_t words[GPUHAL_PROCESSORS_MAX / 64];
} gpuhal_processors;
/* Those that the calling thread may run on. Returns 0 or errno. */
int gpuhal_os_thread_processors(gpuhal_processors *out_processors);
/* From now on the calling thread runs on these alone, as far as the system lets it. Returns 0 or errno: EINVAL where it
 * allows none of them. */
int gpuhal_os_thread_bind(const gpuhal_processors *processors);

/* ---- clock.c */

uint64_t gpuhal_os_monotonic_ns(void);
/* How long this thread has had a processor. */
uint64_t gpuhal_os_processor_ns(void);
/* The parts of a time in seconds since 1970, in UTC; false for a time that no calendar has. */
bool gpuhal_os_utc(uint64_t seconds, struct tm *out_parts);
/* Lets at least so much time pass, less than a second. */
void gpuhal_os_sleep(uint64_t ns);

/* ---- notifier.c */

/* A descriptor that is readable between set and clear; others wait for copies of it. Returns 0 or errno. */
int gpuhal_os_notifier_create(intptr_t *out_notifier);
void gpuhal_os_notifier_set(intptr_t notifier);
/* Whether it was set. */
bool gpuhal_os_notifier_clear(intptr_t notifier);

/* Waits for any of several descriptors, which may be added and removed meanwhile. Returns 0 or errno. */
int gpuhal_os_poller_create(intptr_t *out_poller);
/* Adds nothing where the descriptor is -1. */
int gpuhal_os_poller_add(intptr_t poller, intptr_t descriptor);
/* Before a descriptor is closed; does nothing to one that was not added. */
void gpuhal_os_poller_remove(intptr_t poller, intptr_t descriptor);
/* Whether one is readable, after at most so long; false may come earlier, too. */
bool gpuhal_os_poller_wait(intptr_t poller, uint64_t timeout_ns);

/* ---- uevent.c */

/* Where the kernel reports hardware that comes and goes. Returns 0 or errno: containers and filters of system calls may
 * grant none. */
int gpuhal_os_hotplug_open(intptr_t *out_source);
/* Whether a message of the kernel is about hardware that a plugin could list. Any bytes will do. */
bool gpuhal_os_hotplug_concerns(const char *message, size_t bytes);
/* Where news of devices may come from; each may be none. */
typedef struct gpuhal_hotplug_sources {
    intptr_t kernel;                /* of gpuhal_os_hotplug_open(), or any socket of packets; -1: none */
    intptr_t announced;             /* a notifier that plugins set; -1: none */
    struct gpuhal_file_watch *files; /* NULL: none */
} gpuhal_hotplug_sources;
/* Takes what is there, without waiting or allocating. Returns bits; GONE: the kernel's source will report nothing
 * more. */
enum { GPUHAL_HOTPLUG_QUIET = 0, GPUHAL_HOTPLUG_NEWS = 1, GPUHAL_HOTPLUG_GONE = 2 };
unsigned gpuhal_os_hotplug_take(const gpuhal_hotplug_sources *sources);

/* ---- file_watch.c */

/* Files and folders whose changes are news: also those that are not there yet. Returns 0 or errno. */
typedef struct gpuhal_file_watch gpuhal_file_watch;
int gpuhal_os_file_watch_create(gpuhal_file_watch **out_watch);
/* NULL does nothing. */
void gpuhal_os_file_watch_destroy(gpuhal_file_watch *watch);
/* Of a folder what lies in it counts, too. To be done again when something has changed: a folder that was missing may
 * be there. One thread at a time adds; another one may take meanwhile. 0 or errno. */
int gpuhal_os_file_watch_add(gpuhal_file_watch *watch, const char *path);
/* How many names it waits for, in folders that are there: more after something new was added. */
size_t gpuhal_os_file_watch_count(const gpuhal_file_watch *watch);
/* Readable while there is something to take; -1 for NULL. */
intptr_t gpuhal_os_file_watch_descriptor(const gpuhal_file_watch *watch);
/* Takes what happened, without waiting; whether any of it was about a path that is watched. What is left stays
 * readable. */
bool gpuhal_os_file_watch_take(gpuhal_file_watch *watch);

/* ---- memory.c */

/* Whole pages of zeroed memory, outside malloc; NULL when there is none. */
void *gpuhal_os_pages_map(uint64_t bytes);
/* The same, near a NUMA node as far as the system can and will do that. Only for plain pages: where memory goes that a
 * driver page-locks is the driver's business. */
void *gpuhal_os_pages_map_on(uint64_t bytes, uint32_t node);
void gpuhal_os_pages_unmap(void *pages, uint64_t bytes);
/* Memory that is never freed, at a multiple of `alignment`, a power of two of which `bytes` is a multiple; NULL without
 * memory. */
void *gpuhal_os_aligned_alloc(size_t alignment, size_t bytes);
/* Whether the pages of a range are mapped, and the first and the last may be read, or with `written` also written; true
 * where the system does not report it. */
bool gpuhal_os_is_accessible(const void *memory, uint64_t bytes, bool written);

/* ---- environment.c */

/* True in a process with more rights than its user (set-user-id, file capabilities): AT_SECURE. */
bool gpuhal_os_privileged(void);
/* The value of an environment variable, NULL when unset or in a privileged process. */
const char *gpuhal_os_environment(const char *name);
/* The same without the check, to say what was ignored. */
const char *gpuhal_os_environment_raw(const char *name);
/* Shows all variables, "NAME=value", in no order; none in a privileged process. */
void gpuhal_os_environment_visit(void (*each)(void *user, const char *entry), void *user);
/* "linux", "windows", "macos", "android": the word for this platform in manifests. */
const char *gpuhal_os_platform(void);

/* ---- path.c: what a path looks like. On every system '/' separates its parts; where the system knows other
 * separators, what these functions give out has '/' alone. */

bool gpuhal_os_path_is_absolute(const char *path);
/* Stands between the paths of a list, as in PATH. */
char gpuhal_os_path_separator(void);
/* What the names of shared libraries, and of programs, end with: ".so" and "". */
const char *gpuhal_os_library_suffix(void);
const char *gpuhal_os_program_suffix(void);

/* ---- limits.c */

/* Whether this process, and a helper that the calling thread starts, may do less than programs usually may: a limit of
 * address space, data, stack, processes or open files is below its usual default, or system calls are filtered.
 * `out_why` gets the words, "" for no. */
bool gpuhal_os_is_limited(char *out_why, size_t bytes);
/* How many threads the processes of this user may have together; UINT64_MAX without a limit. */
uint64_t gpuhal_os_thread_limit(void);

/* ---- file.c */

typedef struct gpuhal_file_info {
    uint64_t device, inode, bytes;
    uint32_t owner;          /* user id */
    bool regular, directory;
    bool group_writable, world_writable, sticky;
} gpuhal_file_info;

/* Follows symbolic links. Returns 0 or errno. */
int gpuhal_os_file_info(const char *path, gpuhal_file_info *out_info);
/* Does not follow the last part of the path. Where it is a symbolic link, *out_target is what it says, malloc'ed, else
 * NULL. Returns 0 or errno. */
int gpuhal_os_link_info(const char *path, gpuhal_file_info *out_info, char **out_target);
/* Whether the standard output or error of this process goes to that file. */
bool gpuhal_os_is_own_output(const gpuhal_file_info *file);
/* The path without symbolic links, "." and ".."; malloc'ed, NULL with *out_errno. */
char *gpuhal_os_real_path(const char *path, int *out_errno);
/* Reads a regular file of at most `limit` bytes; the text is malloc'ed and ends with a 0 behind *out_bytes. Never waits
 * on a FIFO or a device. Returns 0 or errno: EFBIG above the limit, EINVAL for what is no regular file. */
int gpuhal_os_file_read(const char *path, size_t limit, char **out_text, size_t *out_bytes);
/* Reads up to `bytes` bytes at `offset` of a regular file. Returns 0 or errno; *out_bytes may be short at the end of
 * the file. */
int gpuhal_os_file_read_at(const char *path, uint64_t offset, void *to, size_t bytes, size_t *out_bytes);
/* Reads up to `bytes` bytes of a file that the kernel makes, below /proc or /sys: its type is checked once it is open.
 * By one call: a value comes whole, and only files of many records (/proc/cpuinfo) are given out in parts. `folder` is
 * an open directory in which a relative path is looked up, or -1. Returns as gpuhal_os_file_read_at(). */
int gpuhal_os_kernel_file_read(intptr_t folder, const char *path, void *to, size_t bytes, size_t *out_bytes);
/* Copies the target of a symbolic link, cut to the space. Returns 0 or errno, EINVAL for anything else than a link. */
int gpuhal_os_link_read(intptr_t folder, const char *path, char *to, size_t bytes);
/* Opens a directory to look names up in it; -1 where there is none, or no descriptor. */
intptr_t gpuhal_os_directory_open(const char *path);
/* Names in a directory, sorted by strcmp, without "." and "..". Free with gpuhal_os_names_free. Returns 0 or errno. */
int gpuhal_os_directory_names(const char *path, char ***out_names, size_t *out_count);
void gpuhal_os_names_free(char **names, size_t count);
/* Calls `visit` with the name and the target of each symbolic link in a directory, until it returns false. Returns 0 or
 * errno. */
int gpuhal_os_directory_links(const char *path, bool (*visit)(void *user, const char *name, const char *target),
                              void *user);
/* Whether the number is an open descriptor (or handle) of this process. */
bool gpuhal_os_is_descriptor(intptr_t descriptor);
void gpuhal_os_descriptor_close(intptr_t descriptor);
/* Another one for the same thing, close-on-exec; -1 when there is none to be had. */
intptr_t gpuhal_os_descriptor_copy(intptr_t descriptor);
/* User id to which files must belong lest they are reported: the effective one. */
uint32_t gpuhal_os_user(void);

/* ---- file_io.c */

/* Opens for reading, or for writing in place: then the file is made when it is missing. The path may be relative. Never
 * waits: what has no offsets (directories, FIFOs, sockets, terminals) is refused with EISDIR or ESPIPE. Returns 0 or
 * errno. */
int gpuhal_os_file_open(const char *path, bool writes, intptr_t *out_file);
/* Another descriptor for what another owner opened. EBADF when it was not opened for that, EINVAL for writing where it
 * only appends. */
int gpuhal_os_file_adopt(intptr_t descriptor, bool writes, intptr_t *out_file);
/* UINT64_MAX for a device, which has no size that is known. Returns 0 or errno. */
int gpuhal_os_file_size(intptr_t file, uint64_t *out_bytes);
/* All `bytes`, unless the file ends or an error comes before: *out_done says how many. Returns 0 or errno. */
int gpuhal_os_file_read_piece(intptr_t file, uint64_t offset, void *to, uint64_t bytes, uint64_t *out_done);
int gpuhal_os_file_write_piece(intptr_t file, uint64_t offset, const void *from, uint64_t bytes, uint64_t *out_done);
/* Whether the page at `offset` can be read without waiting for a disk. */
bool gpuhal_os_file_is_cached(intptr_t file, uint64_t offset);
/* The same file opened for reading around the page cache: with offsets, sizes and addresses of which these bits are 0,
 * below 4096. */
typedef struct gpuhal_direct_file {
    intptr_t file; /* -1: none */
    uint64_t offset_mask, memory_mask;
} gpuhal_direct_file;
/* Returns 0, or errno where the filesystem cannot. */
int gpuhal_os_file_open_direct(intptr_t file, gpuhal_direct_file *out_direct);
/* Makes a file without a name in a folder, whose path may be relative, for its owner alone, to read and write. Returns
 * 0 or errno. */
int gpuhal_os_file_open_unnamed(const char *folder, intptr_t *out_file);
int gpuhal_os_file_truncate(intptr_t file, uint64_t bytes);
/* Whether that errno says that the disk, or the user's share of it, has no room. */
bool gpuhal_os_disk_is_full(int error);
/* Returns once the bytes are on the disk. */
int gpuhal_os_file_sync(intptr_t file);

/* ---- state.c */

/* Seconds since 1970. People set this clock, back as well: good for showing, not for deciding. */
uint64_t gpuhal_os_wall_clock(void);
/* Identifies a file: whether it is still the same one; of a device, which one it is. Opens nothing. */
typedef struct gpuhal_file_state {
    uint64_t device, inode, bytes;
    uint64_t node; /* number of the device that it is */
    int64_t modified_ns, changed_ns;
    uint32_t mode, owner, group;
    bool directory;
} gpuhal_file_state;
/* Follows symbolic links. Returns 0, or errno with a state that is all zero. */
int gpuhal_os_file_state(const char *path, gpuhal_file_state *out_state);
/* Whether this process could open it for reading and writing, found out without opening: 0 or errno, which is EPERM if
 * a device cgroup refuses it, and EACCES if its mode does. */
int gpuhal_os_may_use(const char *path);
/* Makes the directory and its parents, for their owner alone, where they are missing. Returns 0 or errno. */
int gpuhal_os_directory_make(const char *path);
/* Makes a file for its owner alone that must not be there yet, and returns once the disk has it: 0 or errno, then it is
 * gone again. */
int gpuhal_os_file_write_new(const char *path, const void *bytes, size_t count);
int gpuhal_os_file_rename(const char *from, const char *to);
/* Sets the time of its last change to now. Returns 0 or errno. */
int gpuhal_os_file_touch(const char *path);
/* Another name for the same file. */
int gpuhal_os_file_link(const char *from, const char *to);
int gpuhal_os_file_remove(const char *path);
/* Returns once the disk has the names in it. */
int gpuhal_os_directory_sync(const char *path);
/* A lock between processes, and between threads, that goes with its holder's process. Waits at most so long. Returns 0,
 * ETIMEDOUT or another errno. */
int gpuhal_os_lock_take(const char *path, uint64_t timeout_ns, intptr_t *out_lock);
void gpuhal_os_lock_give(intptr_t lock);

/* ---- shared.c: what processes use together. No call touches memory of a file, which another process may cut off: a
 * word of a file is waited for by the kernel, read and written as bytes of the file. */

/* Nanoseconds since the machine was started, also those in which it was suspended. No one sets this clock. */
uint64_t gpuhal_os_boot_ns(void);
/* Opens a regular file for reading and writing, which is made where it is missing, with these bits of its mode whatever
 * the process masks; with a mode of 0 it must be there. Follows no symbolic link. Returns 0 or errno. */
int gpuhal_os_shared_open(const char *path, uint32_t mode, intptr_t *out_file);
/* About an open file. *out_unlinked: no name leads to it any more. Returns 0 or errno. */
int gpuhal_os_shared_info(intptr_t file, gpuhal_file_info *out_info, bool *out_unlinked);
/* The name of the network's file system that the file lies on ("NFS"); NULL for one of this machine. */
const char *gpuhal_os_network_file_system(intptr_t file);
/* All bytes at an offset, with no more calls of the system than needed. Returns 0 or errno. */
int gpuhal_os_shared_write(intptr_t file, uint64_t offset, const void *bytes, uint64_t count);
/* Makes the file at least so large, with room on the disk for all of it where the file system can promise that. Returns
 * 0 or errno. */
int gpuhal_os_shared_allocate(intptr_t file, uint64_t bytes);
/* A lock on one byte of a file, which need not be there. It belongs to the opened file: it ends with the last
 * descriptor of that, also those that children inherited. Taking it does not wait: returns 0, EAGAIN where another one
 * has it, or errno. */
int gpuhal_os_byte_lock(intptr_t file, uint64_t offset);
/* Returns 0, or errno: then the byte stays locked until the file is closed. */
int gpuhal_os_byte_unlock(intptr_t file, uint64_t offset);
/* Whether another opened file has one of `count` bytes locked. Returns 0 or errno. */
int gpuhal_os_byte_is_locked(intptr_t file, uint64_t offset, uint64_t count, bool *out_locked);
/* Leaves the descriptor open in programs that this process starts. */
int gpuhal_os_descriptor_keep_on_exec(intptr_t descriptor);
/* Words of 32 bits at the beginning of a file, to wait for; NULL without memory. */
const void *gpuhal_os_words_map(intptr_t file, uint32_t count);
void gpuhal_os_words_unmap(const void *words, uint32_t count);
/* Waits until the word is another one than `seen`, or is woken, for so long at most; it may return early. */
void gpuhal_os_word_wait(const void *words, uint32_t index, uint32_t seen, uint64_t timeout_ns);
/* Wakes one thread that waits for the word; the kernel may choose one whose process is being killed. */
void gpuhal_os_word_wake(const void *words, uint32_t index);
/* When a process was started, in a unit of the system's; 0 for one that has ended, UINT64_MAX where that cannot be
 * found out. */
uint64_t gpuhal_os_process_started(int64_t pid);
/* The process that started this one, or has taken its place; 0: unknown, and none. */
int64_t gpuhal_os_process_parent(int64_t pid);
/* Identifies the processes that share numbers with this one (its namespace); 0: unknown. */
uint64_t gpuhal_os_process_space(void);
/* A folder of the user for files that need not survive a restart, without the name of the program; false when there is
 * none. *out_own: the folder is the user's alone, else names in it have to say whose they are. */
bool gpuhal_os_runtime_folder(char *out_path, size_t bytes, bool *out_own);

/* ---- uring.c */

/* Up to `reads` reads under way at once, of one thread. Returns 0, or errno where the system offers nothing like it. */
typedef struct gpuhal_uring gpuhal_uring;
int gpuhal_os_uring_create(uint32_t reads, gpuhal_uring **out_ring);
/* NULL does nothing. Nothing is under way. */
void gpuhal_os_uring_destroy(gpuhal_uring *ring);
/* Begins a read. Returns 0 or errno; then nothing was begun. */
int gpuhal_os_uring_read(gpuhal_uring *ring, intptr_t file, uint64_t offset, void *to, uint32_t bytes, uint64_t tag);
/* Waits for one of those begun: its tag, and the bytes read or -errno. Returns 0 or errno. */
int gpuhal_os_uring_wait(gpuhal_uring *ring, uint64_t *out_tag, int64_t *out_result);

/* ---- library.c */

/* dlopen with RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE; never closed. `name` is an absolute path, or a bare soname of a
 * vendor's runtime. NULL on failure, with the loader's text copied to `reason`. */
void *gpuhal_os_library_open(const char *name, char *reason, size_t reason_bytes);
void *gpuhal_os_library_symbol(void *library, const char *name);
/* True when `address` lies in memory of a library or program that is not executable, so that no function can be
 * there. */
bool gpuhal_os_library_is_data(const void *address);
/* The absolute path of the file that an open library came from, malloc'ed; NULL when unknown. */
char *gpuhal_os_library_file(void *library);
/* The absolute path of the file that holds `address`, malloc'ed; NULL when unknown. */
char *gpuhal_os_library_path(const void *address);
/* A library that the dynamic loader has mapped. */
typedef struct gpuhal_loaded_library {
    const char *path;    /* as the dynamic loader has it: may be relative to an earlier current directory */
    const char *name;    /* by which others need it; NULL: it has none */
    const char *needs;   /* the names of what it is linked to, each with its zero; behind the last an empty one */
    const void *section; /* an address in it */
    char *mapped;        /* NULL: not known, or not asked for */
} gpuhal_loaded_library;
/* How many libraries this process has loaded so far, with those that it has unloaded. */
uint64_t gpuhal_os_libraries_loads(void);
/* Lists all of them but the program. Returns 0 or errno. */
int gpuhal_os_libraries_list(gpuhal_loaded_library **out_libraries, size_t *out_count);
/* Sets `mapped` to the path at which the file that is mapped is now, which is no file's path if that was removed or
 * replaced. */
void gpuhal_os_libraries_find_mapped(gpuhal_loaded_library *libraries, size_t count);
void gpuhal_os_libraries_free(gpuhal_loaded_library *libraries, size_t count);
/* The directory that libgpuhal itself (or, linked statically, the program) lies in; malloc'ed; NULL when unknown. */
char *gpuhal_os_own_directory(void);

/* ---- image.c */

/* What a file is to the dynamic loader and the kernel: whole and for this machine; no library or program at all, or
 * damaged; for another machine; or not to be read. */
typedef enum { GPUHAL_IMAGE_GOOD = 0, GPUHAL_IMAGE_BAD, GPUHAL_IMAGE_FOREIGN, GPUHAL_IMAGE_UNREADABLE } gpuhal_image;
/* Judges a file of `bytes` bytes as a shared library, or as a `program`, without executing or mapping it. `why` gets
 * what is wrong, to be put behind the file's name; with UNREADABLE *out_error gets the errno instead. */
gpuhal_image gpuhal_os_image_check(const char *path, uint64_t bytes, bool program, char *why, size_t why_bytes,
                                   int *out_error);

/* ---- process.c */

/* A helper process in a process group of its own: stdin is /dev/null, stdout and stderr go to the parent together,
 * descriptor 3 is the stream that the parent reads, everything else is closed. */
typedef struct gpuhal_child {
    int64_t pid;
    int stream; /* read end, non-blocking, close-on-exec; -1 when closed */
    int output; /* likewise, of what it prints */
    int pidfd;  /* -1 where the kernel has none */
} gpuhal_child;
/* `arguments` ends with NULL; arguments[0] is the absolute path of the program. Returns 0 or errno. */
int gpuhal_os_process_start(const char *const *arguments, gpuhal_child *out_process);
/* Waits until one of at most GPUHAL_PROCESSES_MAX streams has data or has ended, one has printed something, a process
 * has ended, or `timeout_ns` has passed; sets ready[i]. Of a process whose stream is closed only the end is waited for.
 * Returns 0 or errno. */
#define GPUHAL_PROCESSES_MAX 64
int gpuhal_os_process_wait(gpuhal_child *const *processes, size_t count, uint64_t timeout_ns, bool *ready);
/* Reads what is there. Returns bytes; 0 when nothing more comes: the stream or the process has ended; -1 with nothing
 * there now; -2 for an error. A grandchild that holds the stream open does not keep the end back. */
int64_t gpuhal_os_process_read(gpuhal_child *process, void *to, size_t bytes);
/* Reads what it has printed. Returns bytes; 0 when nothing is there now, or ever will be. */
size_t gpuhal_os_process_read_output(gpuhal_child *process, void *to, size_t bytes);
/* How long it was ready to run and had no processor, since it was started; 0 where the system does not report it. */
uint64_t gpuhal_os_process_starved_ns(const gpuhal_child *process);
/* Closes the stream before the process has ended. */
void gpuhal_os_process_close_stream(gpuhal_child *process);
/* How it ended, when that can still be learned: hosts that ignore SIGCHLD or reap everything take the answer away. */
typedef enum {
    GPUHAL_ENDED_UNKNOWN = 0,
    GPUHAL_ENDED_EXIT = 1,
    GPUHAL_ENDED_SIGNAL = 2,
    GPUHAL_ENDED_NOT = 3
} gpuhal_ended;
/* Gives the process `grace_ns` to end by itself, then `term_ns` to end by SIGTERM, then kills it, and in any case what
 * is left of its group; closes the stream and reaps the process where that has not happened. *out_value: exit code or
 * signal number of a process that ended by itself. ENDED_NOT: it is stuck in the kernel, and is left behind; that is
 * known after two seconds more. */
gpuhal_ended gpuhal_os_process_finish(gpuhal_child *process, uint64_t grace_ns, uint64_t term_ns, int *out_value);
/* "Segmentation fault". */
const char *gpuhal_os_signal_name(int signal_number);
/* Signals by which others end a process: an administrator, a service manager, or the kernel when memory or a limit is
 * used up. */
bool gpuhal_os_signal_is_from_outside(int signal_number);
/* This process's number, for gpuhal_os_helper_prepare. */
int64_t gpuhal_os_process_own(void);
/* Set in helper processes, and so in whatever a driver starts from there. */
#define GPUHAL_WITHIN_HELPER "GPUHAL_WITHIN_HELPER"
/* Called by the helper program first of all: closes descriptors from 4 on, no core dump, the first to go when the
 * machine runs out of memory, dies with its parent, which is `parent`: ends at once where that is gone already. */
void gpuhal_os_helper_prepare(int64_t parent);
/* Called by the helper program: sends all bytes to the parent. False when the parent no longer reads them.
 * Async-signal-safe. */
bool gpuhal_os_helper_send(const char *bytes, size_t count);
/* Ends the helper program without exit handlers, the driver's among them. */
_Noreturn void gpuhal_os_helper_exit(int code);
/* Called by the helper program: on a deadly signal, `describe` (async-signal-safe) is called with its number, then the
 * process ends. `describe` returns whether it was heard; else the process dies of the signal, so that its exit status
 * says so. */
void gpuhal_os_helper_on_crash(bool (*describe)(int signal_number));

#endif
