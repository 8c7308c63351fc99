/* os/os.h: the core's interface to the operating system. Each supported system has a folder with an implementation.
 *
 * Preconditions, unless documented otherwise: pointers are not NULL, paths are absolute, and the caller has checked
 * sizes. A function that can fail returns 0 or errno; the layers above format the error message. No function logs. The
 * only global state is the fork generation (fork.c), this library's directory (library.c) and the helper program's
 * crash handler (helper_process.c). This header contains no system-specific types.
 */
#ifndef GPUHAL_OS_H
#define GPUHAL_OS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

/* A flag for atomic_exchange(). The type is not bool, because exchanging one byte on riscv64 requires a call into
 * libatomic. */
typedef _Atomic uint32_t gpuhal_atomic_flag;

/* ---- fork.c */

/* The slow path of gpuhal_os_fork_generation(), called if the word is 0. `gpuhal_os_fork_word` points to the word. */
uint32_t gpuhal_os_fork_look(void);
extern _Atomic(_Atomic uint32_t *) gpuhal_os_fork_word;
/* Returns the fork generation: 1 in the first process that called this function, and one more in each generation of
 * children. Never returns 0. The fast path is two loads. The kernel zeroes the word's page in the child (madvise
 * MADV_WIPEONFORK, Linux 4.14); without that, process ids are compared. */
static inline uint32_t gpuhal_os_fork_generation(void)
{
    uint32_t count =
        atomic_load_explicit(atomic_load_explicit(&gpuhal_os_fork_word, memory_order_acquire), memory_order_acquire);
    return __builtin_expect(count != 0, 1) ? count : gpuhal_os_fork_look();
}

/* ---- thread.c */

/* A mutex that is unlocked in the child of a fork. The first lock in the child reinitialises it, because its owner may
 * not exist there. */
typedef struct gpuhal_mutex {
    uint64_t system[6];
    _Atomic uint32_t
        generation; /* fork generation at its initialisation; the top bit is set during reinitialisation */
} gpuhal_mutex;
void gpuhal_mutex_init(gpuhal_mutex *mutex);
void gpuhal_mutex_finish(gpuhal_mutex *mutex);
void gpuhal_mutex_lock(gpuhal_mutex *mutex);
void gpuhal_mutex_unlock(gpuhal_mutex *mutex);
/* Static mutexes do not need gpuhal_mutex_init. The first lock initialises them. */
#define GPUHAL_MUTEX_INITIALIZER { {0}, 0 }

/* A condition variable. Callers wait for it and signal it with a gpuhal_mutex locked. It has no waiters in the child of
 * a fork. */
typedef struct gpuhal_condition {
    uint64_t system[6];
    uint32_t generation; /* fork generation at its initialisation; protected by the mutex */
} gpuhal_condition;
/* Static conditions are initialised by the first wait or signal. */
#define GPUHAL_CONDITION_INITIALIZER { {0}, 0 }
void gpuhal_condition_init(gpuhal_condition *condition);
void gpuhal_condition_finish(gpuhal_condition *condition);
void gpuhal_condition_wait(gpuhal_condition *condition, gpuhal_mutex *mutex);
/* `deadline_ns` is a time of gpuhal_os_monotonic_ns(). */
void gpuhal_condition_wait_until(gpuhal_condition *condition, gpuhal_mutex *mutex, uint64_t deadline_ns);
void gpuhal_condition_signal_all(gpuhal_condition *condition);

/* Disables cancellation of the calling thread. Pass the returned value to gpuhal_os_cancel_restore(). A thread
 * cancelled in the middle of shared work would leave locks taken and work unfinished. The wait functions above disable
 * cancellation themselves. */
int gpuhal_os_cancel_defer(void);
void gpuhal_os_cancel_restore(int before);

/* Starts a thread that blocks all asynchronous signals, so that the host's handlers for them never run on it. */
typedef struct gpuhal_thread {
    uintptr_t system;
} gpuhal_thread;
int gpuhal_thread_start(gpuhal_thread *out_thread, void *(*run)(void *), void *user);
void gpuhal_thread_join(gpuhal_thread *thread);
int gpuhal_thread_start_detached(void *(*run)(void *), void *user);
void gpuhal_thread_detach(gpuhal_thread *thread);
bool gpuhal_thread_is_this(const gpuhal_thread *thread);
/* Returns an id that no other running thread has; never 0. */
uint64_t gpuhal_os_thread_id(void);
/* Returns whether a thread of this process has this id; true if unknown. */
bool gpuhal_os_thread_is_alive(uint64_t id);
/* Sets the calling thread's name, at most 15 characters, for debuggers and process listings. */
void gpuhal_os_thread_name(const char *name);
/* Returns the number of processors that this process may run on; at least 1. */
uint32_t gpuhal_os_processors(void);
/* A set of processors. Bit i % 64 of word i / 64 represents processor i. */
enum { GPUHAL_PROCESSORS_MAX = 8192 };
typedef struct gpuhal_processors {
    uint64_t words[GPUHAL_PROCESSORS_MAX / 64];
} gpuhal_processors;
/* Lists the processors that the calling thread may run on. */
int gpuhal_os_thread_processors(gpuhal_processors *out_processors);
/* Binds the calling thread to these processors, or to as many of them as the system allows. Returns EINVAL if the
 * system allows none of them. */
int gpuhal_os_thread_bind(const gpuhal_processors *processors);

/* ---- clock.c */

uint64_t gpuhal_os_monotonic_ns(void);
uint64_t gpuhal_os_processor_ns(void);
/* Splits a time in seconds since 1970 into its parts, in UTC. Returns false if the year is out of range. */
bool gpuhal_os_utc(uint64_t seconds, struct tm *out_parts);
/* Sleeps for at least `ns`, which must be less than a second. */
void gpuhal_os_sleep(uint64_t ns);

/* ---- notifier.c */

/* Creates a descriptor that is readable between set and clear. The application polls copies of it. */
int gpuhal_os_notifier_create(intptr_t *out_notifier);
void gpuhal_os_notifier_set(intptr_t notifier);
/* Returns whether the notifier was set. */
bool gpuhal_os_notifier_clear(intptr_t notifier);

/* Creates a poller, which waits for any of several descriptors. Descriptors may be added and removed during a wait. */
int gpuhal_os_poller_create(intptr_t *out_poller);
/* Does nothing if the descriptor is -1. */
int gpuhal_os_poller_add(intptr_t poller, intptr_t descriptor);
/* Must be called before a descriptor is closed. Does nothing if the descriptor was not added. */
void gpuhal_os_poller_remove(intptr_t poller, intptr_t descriptor);
/* Returns whether a descriptor is readable; may return false before the timeout. */
bool gpuhal_os_poller_wait(intptr_t poller, uint64_t timeout_ns);

/* ---- uevent.c */

/* Opens the source of the kernel's device events. A container or a system call filter may forbid it. */
int gpuhal_os_hotplug_open(intptr_t *out_source);
/* Returns whether a kernel message is about hardware that a plugin could list. Accepts any bytes. */
bool gpuhal_os_hotplug_concerns(const char *message, size_t bytes);
typedef struct gpuhal_hotplug_sources {
    intptr_t kernel;                /* from gpuhal_os_hotplug_open(), or any message-based socket; -1 if unused */
    intptr_t announced;             /* a notifier that plugins set; -1 if unused */
    struct gpuhal_file_watch *files; /* may be NULL */
} gpuhal_hotplug_sources;
/* Reads pending notifications, without waiting or allocating. Returns a mask; GONE means that the kernel source will
 * report nothing more. */
enum { GPUHAL_HOTPLUG_QUIET = 0, GPUHAL_HOTPLUG_NEWS = 1, GPUHAL_HOTPLUG_GONE = 2 };
unsigned gpuhal_os_hotplug_take(const gpuhal_hotplug_sources *sources);

/* ---- file_watch.c */

/* A set of watched files and folders, which need not exist yet. */
typedef struct gpuhal_file_watch gpuhal_file_watch;
int gpuhal_os_file_watch_create(gpuhal_file_watch **out_watch);
/* NULL does nothing. */
void gpuhal_os_file_watch_destroy(gpuhal_file_watch *watch);
/* Watches a path and, if the path is a folder, the folder's entries. Call it again after each change, since a missing
 * folder may exist by then. Only one thread may add paths at a time; another thread may call
 * gpuhal_os_file_watch_take() concurrently. */
int gpuhal_os_file_watch_add(gpuhal_file_watch *watch, const char *path);
/* Returns the number of watched names in existing folders, which grows if gpuhal_os_file_watch_add() registers a new
 * name. */
size_t gpuhal_os_file_watch_count(const gpuhal_file_watch *watch);
/* Returns a descriptor that is readable while events are pending; -1 for NULL. */
intptr_t gpuhal_os_file_watch_descriptor(const gpuhal_file_watch *watch);
/* Reads events without waiting. Returns whether any of them was about a watched path. If more events are pending, the
 * descriptor stays readable. */
bool gpuhal_os_file_watch_take(gpuhal_file_watch *watch);

/* ---- memory.c */

/* Maps whole pages of zeroed memory, without using malloc. Returns NULL if out of memory. */
void *gpuhal_os_pages_map(uint64_t bytes);
/* Like gpuhal_os_pages_map(), but on this NUMA node if the system allows it. Use it only for pageable memory, because a
 * driver chooses the node of memory that it page-locks. */
void *gpuhal_os_pages_map_on(uint64_t bytes, uint32_t node);
void gpuhal_os_pages_unmap(void *pages, uint64_t bytes);
/* Allocates memory that is never freed. `alignment` is a power of two, and `bytes` is a multiple of it. Returns NULL if
 * out of memory. */
void *gpuhal_os_aligned_alloc(size_t alignment, size_t bytes);
/* Returns whether all pages of a range are mapped, and the first and last pages are readable (and writable, if
 * `written` is set). Returns true if unknown. */
bool gpuhal_os_is_accessible(const void *memory, uint64_t bytes, bool written);

/* ---- environment.c */

/* Returns true if the process has more privileges than its user (set-user-id, file capabilities): AT_SECURE. */
bool gpuhal_os_privileged(void);
/* Returns the value of an environment variable; NULL if it is unset or in a privileged process. */
const char *gpuhal_os_environment(const char *name);
/* Like gpuhal_os_environment(), but without the privilege check, to report ignored variables. */
const char *gpuhal_os_environment_raw(const char *name);
/* Calls `each` with every variable as "NAME=value", in any order. Does nothing in a privileged process. */
void gpuhal_os_environment_visit(void (*each)(void *user, const char *entry), void *user);
/* Returns the platform's name in manifests: "linux", "windows", "macos" or "android". */
const char *gpuhal_os_platform(void);

/* ---- path.c: the syntax of paths. '/' separates their components on every system; functions that return paths convert
 * other separators to '/'. */

bool gpuhal_os_path_is_absolute(const char *path);
char gpuhal_os_path_separator(void);
/* Return the file name suffixes of shared libraries (".so") and programs (""). */
const char *gpuhal_os_library_suffix(void);
const char *gpuhal_os_program_suffix(void);

/* ---- limits.c */

/* Returns whether this process, and thus a helper started by the calling thread, is more restricted than usual: a limit
 * on address space, data, stack, processes or open files is below its usual default, system calls are filtered,
 * NoNewPrivs is set, or the last two cannot be read. `out_why` receives the reason, or "" for none. */
bool gpuhal_os_is_limited(char *out_why, size_t bytes);
/* Returns the limit on the total number of threads of this user's processes; UINT64_MAX if unlimited. */
uint64_t gpuhal_os_thread_limit(void);

/* ---- file.c */

typedef struct gpuhal_file_info {
    uint64_t device, inode, bytes;
    uint32_t owner;          /* user id */
    bool regular, directory;
    bool group_writable, world_writable, sticky;
} gpuhal_file_info;

/* Follows symbolic links. */
int gpuhal_os_file_info(const char *path, gpuhal_file_info *out_info);
/* Does not follow a symbolic link in the last component. For a link, *out_target is its malloc'ed target, else NULL. */
int gpuhal_os_link_info(const char *path, gpuhal_file_info *out_info, char **out_target);
/* Returns whether `file` is the standard output or standard error of this process. */
bool gpuhal_os_is_own_output(const gpuhal_file_info *file);
/* Returns the canonical path, malloc'ed; NULL on failure, with *out_errno set. */
char *gpuhal_os_real_path(const char *path, int *out_errno);
/* Reads a regular file of at most `limit` bytes. *out_text is malloc'ed; a 0 byte follows its *out_bytes bytes. Never
 * blocks on a FIFO or a device. Returns EFBIG above the limit, EINVAL if it is not a regular file. */
int gpuhal_os_file_read(const char *path, size_t limit, char **out_text, size_t *out_bytes);
/* Reads up to `bytes` bytes at `offset` of a regular file. *out_bytes is smaller at the end of the file. */
int gpuhal_os_file_read_at(const char *path, uint64_t offset, void *to, size_t bytes, size_t *out_bytes);
/* Reads up to `bytes` bytes of a kernel file below /proc or /sys. Checks the file's type after opening. Uses a single
 * read(), which returns a whole value; only files with many records (/proc/cpuinfo) may be truncated. A relative path
 * is relative to the open directory `folder`, or -1 for none. Returns the same as gpuhal_os_file_read_at(). */
int gpuhal_os_kernel_file_read(intptr_t folder, const char *path, void *to, size_t bytes, size_t *out_bytes);
/* Copies the target of a symbolic link, truncated to the buffer. Returns EINVAL if it is not a link. */
int gpuhal_os_link_read(intptr_t folder, const char *path, char *to, size_t bytes);
/* Opens a directory as the `folder` of the functions above; returns -1 on failure. */
intptr_t gpuhal_os_directory_open(const char *path);
/* Returns the names in a directory, sorted by strcmp, without "." and "..". The caller frees them with
 * gpuhal_os_names_free(). */
int gpuhal_os_directory_names(const char *path, char ***out_names, size_t *out_count);
void gpuhal_os_names_free(char **names, size_t count);
/* Calls `visit` with the name and the target of each symbolic link in a directory, until `visit` returns false. */
int gpuhal_os_directory_links(const char *path, bool (*visit)(void *user, const char *name, const char *target),
                              void *user);
/* Returns whether the number is an open descriptor or handle of this process. */
bool gpuhal_os_is_descriptor(intptr_t descriptor);
void gpuhal_os_descriptor_close(intptr_t descriptor);
/* Duplicates a descriptor as close-on-exec; returns -1 on failure. */
intptr_t gpuhal_os_descriptor_copy(intptr_t descriptor);
/* Returns the effective user id. */
uint32_t gpuhal_os_user(void);

/* ---- file_io.c */

/* Opens a file for reading or for writing in place; writing creates a missing file. The path may be relative. Never
 * blocks: files without offsets (directories, FIFOs, sockets, terminals) are refused with EISDIR or ESPIPE. */
int gpuhal_os_file_open(const char *path, bool writes, intptr_t *out_file);
/* Duplicates a descriptor of the application. Returns EBADF if the descriptor was not opened for this access, or EINVAL
 * if it was opened for appending and `writes` is set. */
int gpuhal_os_file_adopt(intptr_t descriptor, bool writes, intptr_t *out_file);
/* *out_bytes is UINT64_MAX for a device, which has no known size. */
int gpuhal_os_file_size(intptr_t file, uint64_t *out_bytes);
/* Reads or writes `bytes` bytes, or fewer at the end of the file or after an error. *out_done is the number
 * transferred. */
int gpuhal_os_file_read_piece(intptr_t file, uint64_t offset, void *to, uint64_t bytes, uint64_t *out_done);
int gpuhal_os_file_write_piece(intptr_t file, uint64_t offset, const void *from, uint64_t bytes, uint64_t *out_done);
/* Returns whether the page at `offset` can be read without disk I/O; true if unknown. */
bool gpuhal_os_file_is_cached(intptr_t file, uint64_t offset);
/* A file opened again for direct reads (O_DIRECT). Offsets and sizes must be multiples of offset_mask + 1, addresses of
 * memory_mask + 1. The masks are below 4096. */
typedef struct gpuhal_direct_file {
    intptr_t file; /* -1 if not open */
    uint64_t offset_mask, memory_mask;
} gpuhal_direct_file;
/* Returns 0, or errno if the file system does not support direct reads. */
int gpuhal_os_file_open_direct(intptr_t file, gpuhal_direct_file *out_direct);
/* Creates an unnamed file in a folder, readable and writable only by its owner. The folder's path may be relative. */
int gpuhal_os_file_open_unnamed(const char *folder, intptr_t *out_file);
int gpuhal_os_file_truncate(intptr_t file, uint64_t bytes);
/* Returns whether the errno means that the disk is full or the user's quota is used up. */
bool gpuhal_os_disk_is_full(int error);
/* Returns once the data is on disk. */
int gpuhal_os_file_sync(intptr_t file);

/* ---- state.c */

/* Returns seconds since 1970. This clock may be set backwards, so use it only for display, not for decisions. */
uint64_t gpuhal_os_wall_clock(void);
/* Identifies a file, and detects whether it has changed. Reading the state does not open the file. */
typedef struct gpuhal_file_state {
    uint64_t device, inode, bytes;
    uint64_t node; /* device number of a device node */
    int64_t modified_ns, changed_ns;
    uint32_t mode, owner, group;
    bool directory;
} gpuhal_file_state;
/* Follows symbolic links. Returns 0, or errno with a zeroed state. */
int gpuhal_os_file_state(const char *path, gpuhal_file_state *out_state);
/* Checks, without opening the file, whether this process may read and write it. Returns EPERM if a device cgroup denies
 * access, EACCES if the file mode denies it. */
int gpuhal_os_may_use(const char *path);
/* Creates the directory and missing parents, accessible only by their owner. */
int gpuhal_os_directory_make(const char *path);
/* Creates a new file, accessible only by its owner; fails if it exists. Returns 0 once the file is on disk. After an
 * error, a partly written file is removed. */
int gpuhal_os_file_write_new(const char *path, const void *bytes, size_t count);
int gpuhal_os_file_rename(const char *from, const char *to);
/* Sets the modification time to now. */
int gpuhal_os_file_touch(const char *path);
int gpuhal_os_file_link(const char *from, const char *to);
int gpuhal_os_file_remove(const char *path);
/* Returns once the directory's entries are on disk. */
int gpuhal_os_directory_sync(const char *path);
/* Acquires a lock that excludes other processes and threads. The kernel releases the lock when the process and its
 * forked children end. Waits at most `timeout_ns`. Returns 0, ETIMEDOUT or another errno. */
int gpuhal_os_lock_take(const char *path, uint64_t timeout_ns, intptr_t *out_lock);
void gpuhal_os_lock_give(intptr_t lock);

/* ---- shared.c: files that processes share. These functions never access mapped file memory, since another process may
 * truncate the file. The kernel waits for a word, and words are accessed with file reads and writes. */

/* Returns nanoseconds since boot, including suspended time. This clock is never set. */
uint64_t gpuhal_os_boot_ns(void);
/* Opens a regular file for reading and writing. Creates a missing file with exactly this mode, regardless of the umask;
 * with a mode of 0 the file must exist. Does not follow symbolic links. */
int gpuhal_os_shared_open(const char *path, uint32_t mode, intptr_t *out_file);
/* Describes an open file. *out_unlinked is true if the file no longer has a name. */
int gpuhal_os_shared_info(intptr_t file, gpuhal_file_info *out_info, bool *out_unlinked);
/* Returns the name of the network file system ("NFS") of the file; NULL if local or unknown. */
const char *gpuhal_os_network_file_system(intptr_t file);
/* Writes all bytes at an offset, with as few system calls as possible. */
int gpuhal_os_shared_write(intptr_t file, uint64_t offset, const void *bytes, uint64_t count);
/* Extends the file to at least `bytes` and reserves disk space for all of it if the file system supports that. */
int gpuhal_os_shared_allocate(intptr_t file, uint64_t bytes);
/* Locks one byte of a file, which may lie beyond its end. The lock belongs to the open file description, so it is
 * released when the last descriptor is closed, including descriptors inherited by children. Does not wait. Returns 0,
 * EAGAIN if another open file description has the lock, or errno. */
int gpuhal_os_byte_lock(intptr_t file, uint64_t offset);
/* After an error the byte stays locked until the file is closed. */
int gpuhal_os_byte_unlock(intptr_t file, uint64_t offset);
/* Sets *out_locked to whether another open file description has locked one of `count` bytes. */
int gpuhal_os_byte_is_locked(intptr_t file, uint64_t offset, uint64_t count, bool *out_locked);
/* Clears close-on-exec. */
int gpuhal_os_descriptor_keep_on_exec(intptr_t descriptor);
/* Maps the first `count` 32-bit words of a file, for waiting; NULL on failure. */
const void *gpuhal_os_words_map(intptr_t file, uint32_t count);
void gpuhal_os_words_unmap(const void *words, uint32_t count);
/* Waits for at most `timeout_ns` until the word differs from `seen` or gpuhal_os_word_wake() is called. Spurious
 * wakeups are possible. */
void gpuhal_os_word_wait(const void *words, uint32_t index, uint32_t seen, uint64_t timeout_ns);
/* Wakes one thread that waits for the word. The kernel may choose a thread of a process that is being killed. */
void gpuhal_os_word_wake(const void *words, uint32_t index);
/* Returns the start time of a process in a system-specific unit; 0 if it has ended, UINT64_MAX if unknown. */
uint64_t gpuhal_os_process_started(int64_t pid);
/* Returns the pid of a process's parent, which changes if the process is reparented; 0 if unknown or none. */
int64_t gpuhal_os_process_parent(int64_t pid);
/* Returns an identifier of this process's pid namespace; 0 if unknown. */
uint64_t gpuhal_os_process_space(void);
/* Finds a folder for the user's files that need not survive a restart. The caller appends the program's name. Returns
 * false if there is none. *out_own is true if the folder belongs to this user; else file names must include the
 * user. */
bool gpuhal_os_runtime_folder(char *out_path, size_t bytes, bool *out_own);

/* ---- uring.c */

/* An io_uring for one thread, with up to `reads` concurrent reads. Create returns 0, or errno if the system does not
 * support io_uring. */
typedef struct gpuhal_uring gpuhal_uring;
int gpuhal_os_uring_create(uint32_t reads, gpuhal_uring **out_ring);
/* NULL does nothing. No reads may be in progress. */
void gpuhal_os_uring_destroy(gpuhal_uring *ring);
int gpuhal_os_uring_read(gpuhal_uring *ring, intptr_t file, uint64_t offset, void *to, uint32_t bytes, uint64_t tag);
/* Waits until one read completes. *out_tag is its tag, *out_result the number of bytes read, or -errno. */
int gpuhal_os_uring_wait(gpuhal_uring *ring, uint64_t *out_tag, int64_t *out_result);

/* ---- library.c */

/* Calls dlopen with RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE; libraries are never closed. `name` is an absolute path or a
 * bare soname of a vendor runtime. Returns NULL on failure and copies the dynamic loader's message to `reason`. */
void *gpuhal_os_library_open(const char *name, char *reason, size_t reason_bytes);
void *gpuhal_os_library_symbol(void *library, const char *name);
/* Returns true if `address` lies in a non-executable segment of a library or program, so it cannot be a function. */
bool gpuhal_os_library_is_data(const void *address);
/* Returns the absolute path of an open library, malloc'ed; NULL if unknown. */
char *gpuhal_os_library_file(void *library);
/* Returns the absolute path of the library or program that contains `address`, malloc'ed; NULL if unknown. */
char *gpuhal_os_library_path(const void *address);
typedef struct gpuhal_loaded_library {
    const char *path;    /* from the dynamic loader; may be relative to an earlier current directory */
    const char *name;    /* its soname; may be NULL */
    /* names of the libraries that it is linked to, each null-terminated; an empty string ends the list */
    const char *needs;
    const void *section; /* an address in the library */
    char *mapped;        /* NULL if unknown or not requested */
} gpuhal_loaded_library;
/* Returns how many libraries this process has loaded so far, including libraries unloaded since. */
uint64_t gpuhal_os_libraries_loads(void);
/* Lists all loaded libraries; with musl also the program. */
int gpuhal_os_libraries_list(gpuhal_loaded_library **out_libraries, size_t *out_count);
/* Sets `mapped` to the path that the kernel reports for the mapped file. If the file was removed or replaced, this path
 * does not exist. */
void gpuhal_os_libraries_find_mapped(gpuhal_loaded_library *libraries, size_t count);
void gpuhal_os_libraries_free(gpuhal_loaded_library *libraries, size_t count);
/* Returns the directory of libgpuhal (if linked statically, of the program), malloc'ed; NULL if unknown. */
char *gpuhal_os_own_directory(void);

/* ---- image.c */

/* GOOD means complete and built for this machine. BAD means damaged, or not a library or program. FOREIGN means built
 * for another machine. */
typedef enum { GPUHAL_IMAGE_GOOD = 0, GPUHAL_IMAGE_BAD, GPUHAL_IMAGE_FOREIGN, GPUHAL_IMAGE_UNREADABLE } gpuhal_image;
/* Checks whether a file of `bytes` bytes is a shared library (with `program`, a program), without executing or mapping
 * it. `why` receives the fault, worded to follow the file's name. For UNREADABLE, *out_error is set instead. */
gpuhal_image gpuhal_os_image_check(const char *path, uint64_t bytes, bool program, char *why, size_t why_bytes,
                                   int *out_error);

/* ---- process.c */

/* A helper process in its own process group. Its stdin is /dev/null. Its stdout and stderr are one pipe to the parent.
 * Its descriptor 3 is the stream that the parent reads. All other descriptors are closed. */
typedef struct gpuhal_child {
    int64_t pid;
    int stream; /* read end, non-blocking, close-on-exec; -1 when closed */
    int output; /* like `stream`, for stdout and stderr */
    int pidfd;  /* -1 if not supported by the kernel */
} gpuhal_child;
/* `arguments` is NULL-terminated; arguments[0] is the absolute path of the program. */
int gpuhal_os_process_start(const char *const *arguments, gpuhal_child *out_process);
/* Waits until a stream has data or has ended, a process has printed output or has ended, or `timeout_ns` has passed;
 * sets ready[i]. `count` is at most GPUHAL_PROCESSES_MAX. For a process whose stream is closed, only its end counts. */
#define GPUHAL_PROCESSES_MAX 64
int gpuhal_os_process_wait(gpuhal_child *const *processes, size_t count, uint64_t timeout_ns, bool *ready);
/* Reads the available bytes. Returns their number, 0 after the end of the stream or of the process, -1 if no bytes are
 * available yet, or -2 on an error. A grandchild that keeps the stream open does not delay the end. */
int64_t gpuhal_os_process_read(gpuhal_child *process, void *to, size_t bytes);
/* Reads printed output. Returns the number of bytes, or 0 if none are available or the output has ended. */
size_t gpuhal_os_process_read_output(gpuhal_child *process, void *to, size_t bytes);
/* Returns how long the process's main thread has waited in the run queue since its start; 0 if the system does not
 * report it. */
uint64_t gpuhal_os_process_starved_ns(const gpuhal_child *process);
/* Closes the stream while the process may still run. */
void gpuhal_os_process_close_stream(gpuhal_child *process);
/* How a process ended; UNKNOWN if it was ended here, or if the host ignores SIGCHLD or reaps every child. */
typedef enum {
    GPUHAL_ENDED_UNKNOWN = 0,
    GPUHAL_ENDED_EXIT = 1,
    GPUHAL_ENDED_SIGNAL = 2,
    GPUHAL_ENDED_NOT = 3
} gpuhal_ended;
/* Waits `grace_ns` for the process to exit, then sends SIGTERM and waits `term_ns` (0 skips this), then kills the
 * process. Always kills the rest of its process group. Closes the stream and reaps the process, unless the host has
 * reaped it. *out_value is the exit code or the signal number of a process that ended within `grace_ns`. ENDED_NOT
 * means that the process is stuck in the kernel and was abandoned after two more seconds. */
gpuhal_ended gpuhal_os_process_finish(gpuhal_child *process, uint64_t grace_ns, uint64_t term_ns, int *out_value);
const char *gpuhal_os_signal_name(int signal_number);
/* Returns whether this signal usually comes from an administrator, a service manager, or the kernel when memory or a
 * limit is exhausted. */
bool gpuhal_os_signal_is_from_outside(int signal_number);
/* Returns this process's id, for gpuhal_os_helper_prepare. */
int64_t gpuhal_os_process_own(void);
/* An environment variable set in helper processes and inherited by all programs that a driver starts there. */
#define GPUHAL_WITHIN_HELPER "GPUHAL_WITHIN_HELPER"
/* The helper program calls this first. Closes descriptors from 4 on, disables core dumps, makes this process the first
 * victim of the OOM killer, and kills it when the parent's thread that started it ends. Exits immediately if `parent`
 * has already ended. */
void gpuhal_os_helper_prepare(int64_t parent);
/* Sets a variable of the helper program, unless it is set already. Must be called before there are threads. */
void gpuhal_os_helper_set_variable(const char *name, const char *value);
/* Sends all bytes to the parent. Returns false if the parent no longer reads them. Async-signal-safe. */
bool gpuhal_os_helper_send(const char *bytes, size_t count);
/* Exits the helper program without running any exit handlers, not even the driver's. */
_Noreturn void gpuhal_os_helper_exit(int code);
/* Installs a handler for fatal signals. It calls `describe`, which must be async-signal-safe, with the signal's number,
 * then ends the process. `describe` returns whether the parent received the report. If not, the signal terminates the
 * process, so that the exit status contains it. */
void gpuhal_os_helper_on_crash(bool (*describe)(int signal_number));

#endif
