/* os/os.h: the core's interface to the operating system; one folder per system implements it.
 *
 * Pre-conditions that hold for every function here: pointers are not NULL, paths are absolute unless said otherwise,
 * and the caller has checked sizes. A function that can fail returns errno, 0 for success; the layers above put it into
 * words. Nothing here logs, allocates more than its result, or keeps global state, except the fork page. No type of a
 * system appears here.
 */
#ifndef GPUHAL_OS_H
#define GPUHAL_OS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

/* ---- fork.c */

/* Returns the generation for the function below if the word is 0. `gpuhal_os_fork_word` points to the word. */
uint32_t gpuhal_os_fork_look(void);
extern _Atomic(_Atomic uint32_t *) gpuhal_os_fork_word;
/* Counts forks: 1 in the process that first asked, one more in each generation of children; never 0. It takes two loads
 * on the fast path: the word lies in a page that the kernel wipes in the child (madvise MADV_WIPEONFORK, Linux 4.14;
 * without it, getpid). */
static inline uint32_t gpuhal_os_fork_generation(void)
{
    uint32_t count =
        atomic_load_explicit(atomic_load_explicit(&gpuhal_os_fork_word, memory_order_acquire), memory_order_acquire);
    return __builtin_expect(count != 0, 1) ? count : gpuhal_os_fork_look();
}

/* ---- thread.c */

/* A mutex that a child of a fork finds unlocked: a lock held by a thread that the child lacks is initialised again. */
typedef struct gpuhal_mutex {
    uint64_t system[6];          /* the system's mutex */
    _Atomic uint32_t
        generation; /* fork generation at its initialisation; the top bit is set while it is initialised again */
} gpuhal_mutex;
void gpuhal_mutex_init(gpuhal_mutex *mutex);
void gpuhal_mutex_finish(gpuhal_mutex *mutex);
void gpuhal_mutex_lock(gpuhal_mutex *mutex);
void gpuhal_mutex_unlock(gpuhal_mutex *mutex);
/* For statics: ready without gpuhal_mutex_init, initialised at the first lock. */
#define GPUHAL_MUTEX_INITIALIZER { {0}, 0 }

/* A condition to wait for and to signal with a gpuhal_mutex held. In the child of a fork it has no waiters. */
typedef struct gpuhal_condition {
    uint64_t system[6];  /* the system's condition */
    uint32_t generation; /* fork generation at its initialisation; protected by the mutex */
} gpuhal_condition;
/* For statics: initialised when it is first waited for or signalled. */
#define GPUHAL_CONDITION_INITIALIZER { {0}, 0 }
void gpuhal_condition_init(gpuhal_condition *condition);
void gpuhal_condition_finish(gpuhal_condition *condition);
void gpuhal_condition_wait(gpuhal_condition *condition, gpuhal_mutex *mutex);
/* Waits at the latest until this time of gpuhal_os_monotonic_ns(). */
void gpuhal_condition_wait_until(gpuhal_condition *condition, gpuhal_mutex *mutex, uint64_t deadline_ns);
void gpuhal_condition_signal_all(gpuhal_condition *condition);

/* Keeps others from cancelling the calling thread until the restore, which gets the returned value. A thread that ends
 * in the midst of work that others wait for leaves its locks and promises behind. The waits above do this
 * themselves. */
int gpuhal_os_cancel_defer(void);
void gpuhal_os_cancel_restore(int before);

/* Starts a thread that blocks all signals that others send, so that the host's handlers of those never run on it.
 * Returns 0 or errno. */
typedef struct gpuhal_thread {
    uintptr_t system; /* the system's name for it */
} gpuhal_thread;
int gpuhal_thread_start(gpuhal_thread *out_thread, void *(*run)(void *), void *user);
void gpuhal_thread_join(gpuhal_thread *thread);
/* Starts a thread that is never joined. */
int gpuhal_thread_start_detached(void *(*run)(void *), void *user);
void gpuhal_thread_detach(gpuhal_thread *thread);
bool gpuhal_thread_is_this(const gpuhal_thread *thread);
/* Returns a number for the calling thread that no other living thread has; never 0. */
uint64_t gpuhal_os_thread_id(void);
/* Returns whether a thread of this process has that number; true if the system does not say. */
bool gpuhal_os_thread_is_alive(uint64_t id);
/* Sets the name of the calling thread in debuggers and listings; at most 15 characters. */
void gpuhal_os_thread_name(const char *name);
/* Counts the processors that this process may run on; at least 1. */
uint32_t gpuhal_os_processors(void);
/* A set of processors: bit i % 64 of word i / 64 is processor i. */
enum { GPUHAL_PROCESSORS_MAX = 8192 };
typedef struct gpuhal_processors {
    uint64_t words[GPUHAL_PROCESSORS_MAX / 64];
} gpuhal_processors;
/* Lists the processors that the calling thread may run on. Returns 0 or errno. */
int gpuhal_os_thread_processors(gpuhal_processors *out_processors);
/* Lets the calling thread run only on these from now on, as far as the system allows. Returns 0 or errno: EINVAL if it
 * allows none of them. */
int gpuhal_os_thread_bind(const gpuhal_processors *processors);

/* ---- clock.c */

uint64_t gpuhal_os_monotonic_ns(void);
/* Returns how long this thread has had a processor. */
uint64_t gpuhal_os_processor_ns(void);
/* Splits a time in seconds since 1970 into its parts, in UTC. Returns false for a time that no calendar has. */
bool gpuhal_os_utc(uint64_t seconds, struct tm *out_parts);
/* Sleeps for at least `ns`, which is less than a second. */
void gpuhal_os_sleep(uint64_t ns);

/* ---- notifier.c */

/* Creates a descriptor that is readable between set and clear; others wait for copies of it. Returns 0 or errno. */
int gpuhal_os_notifier_create(intptr_t *out_notifier);
void gpuhal_os_notifier_set(intptr_t notifier);
/* Returns whether it was set. */
bool gpuhal_os_notifier_clear(intptr_t notifier);

/* Creates a poller, to wait for any of several descriptors. They may be added and removed meanwhile. Returns 0 or
 * errno. */
int gpuhal_os_poller_create(intptr_t *out_poller);
/* Adds nothing if the descriptor is -1. */
int gpuhal_os_poller_add(intptr_t poller, intptr_t descriptor);
/* Must be called before a descriptor is closed; does nothing to one that was not added. */
void gpuhal_os_poller_remove(intptr_t poller, intptr_t descriptor);
/* Returns whether a descriptor is readable, after at most `timeout_ns`; may return false earlier. */
bool gpuhal_os_poller_wait(intptr_t poller, uint64_t timeout_ns);

/* ---- uevent.c */

/* Opens the kernel's reports about hardware that comes and goes. Returns 0 or errno: containers and filters of system
 * calls may grant none. */
int gpuhal_os_hotplug_open(intptr_t *out_source);
/* Returns whether a message of the kernel is about hardware that a plugin could list. Accepts any bytes. */
bool gpuhal_os_hotplug_concerns(const char *message, size_t bytes);
/* Possible sources of news about devices. */
typedef struct gpuhal_hotplug_sources {
    intptr_t kernel;                /* of gpuhal_os_hotplug_open(), or any socket of packets; -1: none */
    intptr_t announced;             /* a notifier that plugins set; -1: none */
    struct gpuhal_file_watch *files; /* NULL: none */
} gpuhal_hotplug_sources;
/* Takes the pending news, without waiting or allocating. Returns bits; GONE: the kernel's source will report nothing
 * more. */
enum { GPUHAL_HOTPLUG_QUIET = 0, GPUHAL_HOTPLUG_NEWS = 1, GPUHAL_HOTPLUG_GONE = 2 };
unsigned gpuhal_os_hotplug_take(const gpuhal_hotplug_sources *sources);

/* ---- file_watch.c */

/* Files and folders whose changes are news, even if they do not exist yet. Returns 0 or errno. */
typedef struct gpuhal_file_watch gpuhal_file_watch;
int gpuhal_os_file_watch_create(gpuhal_file_watch **out_watch);
/* NULL does nothing. */
void gpuhal_os_file_watch_destroy(gpuhal_file_watch *watch);
/* Watches a path, and in a folder also its entries. Must be repeated after a change: a missing folder may exist by
 * then. One thread at a time adds; another one may take meanwhile. Returns 0 or errno. */
int gpuhal_os_file_watch_add(gpuhal_file_watch *watch, const char *path);
/* Counts the names that it waits for in existing folders: more after something new was added. */
size_t gpuhal_os_file_watch_count(const gpuhal_file_watch *watch);
/* Readable while there are events to take; -1 for NULL. */
intptr_t gpuhal_os_file_watch_descriptor(const gpuhal_file_watch *watch);
/* Takes events, without waiting. Returns whether any of them was about a watched path. The remaining ones stay
 * readable. */
bool gpuhal_os_file_watch_take(gpuhal_file_watch *watch);

/* ---- memory.c */

/* Maps whole pages of zeroed memory, outside malloc; NULL without memory. */
void *gpuhal_os_pages_map(uint64_t bytes);
/* Maps pages near a NUMA node, as far as the system can and will do that. Only for plain pages: a driver decides the
 * place of memory that it page-locks. */
void *gpuhal_os_pages_map_on(uint64_t bytes, uint32_t node);
void gpuhal_os_pages_unmap(void *pages, uint64_t bytes);
/* Allocates memory that is never freed, at a multiple of `alignment`. That is a power of two, and `bytes` is a multiple
 * of it. NULL without memory. */
void *gpuhal_os_aligned_alloc(size_t alignment, size_t bytes);
/* Returns whether the pages of a range are mapped, and the first and the last may be read, or with `written` also
 * written; true if the system does not report it. */
bool gpuhal_os_is_accessible(const void *memory, uint64_t bytes, bool written);

/* ---- environment.c */

/* Returns true in a process with more rights than its user (set-user-id, file capabilities): AT_SECURE. */
bool gpuhal_os_privileged(void);
/* Returns the value of an environment variable; NULL if it is unset or in a privileged process. */
const char *gpuhal_os_environment(const char *name);
/* Returns the value without that check, to report ignored variables. */
const char *gpuhal_os_environment_raw(const char *name);
/* Shows all variables, "NAME=value", in no order; none in a privileged process. */
void gpuhal_os_environment_visit(void (*each)(void *user, const char *entry), void *user);
/* Returns "linux", "windows", "macos" or "android": the word for this platform in manifests. */
const char *gpuhal_os_platform(void);

/* ---- path.c: the syntax of paths. '/' separates the parts on every system; if a system has other separators, these
 * functions still return only '/'. */

bool gpuhal_os_path_is_absolute(const char *path);
/* Returns the character between the paths of a list, as in PATH. */
char gpuhal_os_path_separator(void);
/* Returns the suffix of shared libraries (".so"); the next function returns that of programs (""). */
const char *gpuhal_os_library_suffix(void);
const char *gpuhal_os_program_suffix(void);

/* ---- limits.c */

/* Returns whether this process, and a helper that the calling thread starts, may do less than programs usually may: a
 * limit of address space, data, stack, processes or open files is below its usual default, or system calls are
 * filtered. `out_why` gets the words; "" for no. */
bool gpuhal_os_is_limited(char *out_why, size_t bytes);
/* Returns how many threads the processes of this user may have together; UINT64_MAX without a limit. */
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
/* Does not follow the last part of the path. If that is a symbolic link, *out_target is its target, malloc'ed, else
 * NULL. Returns 0 or errno. */
int gpuhal_os_link_info(const char *path, gpuhal_file_info *out_info, char **out_target);
/* Returns whether the standard output or error of this process goes to that file. */
bool gpuhal_os_is_own_output(const gpuhal_file_info *file);
/* Returns the path without symbolic links, "." and "..", malloc'ed; NULL with *out_errno. */
char *gpuhal_os_real_path(const char *path, int *out_errno);
/* Reads a regular file of at most `limit` bytes. The text is malloc'ed and ends with a 0 after *out_bytes. Never waits
 * on a FIFO or a device. Returns 0 or errno: EFBIG above the limit, EINVAL if it is not a regular file. */
int gpuhal_os_file_read(const char *path, size_t limit, char **out_text, size_t *out_bytes);
/* Reads up to `bytes` bytes at `offset` of a regular file. Returns 0 or errno; *out_bytes may be short at the end of
 * the file. */
int gpuhal_os_file_read_at(const char *path, uint64_t offset, void *to, size_t bytes, size_t *out_bytes);
/* Reads up to `bytes` bytes of a file that the kernel makes, below /proc or /sys: its type is checked once it is open.
 * Uses one call: a value comes whole, and only files of many records (/proc/cpuinfo) come in parts. `folder` is the
 * open directory of a relative path, or -1. Returns as gpuhal_os_file_read_at(). */
int gpuhal_os_kernel_file_read(intptr_t folder, const char *path, void *to, size_t bytes, size_t *out_bytes);
/* Copies the target of a symbolic link, cut to the space. Returns 0 or errno, EINVAL for anything but a link. */
int gpuhal_os_link_read(intptr_t folder, const char *path, char *to, size_t bytes);
/* Opens a directory to look names up in it; -1 if there is none, or no descriptor. */
intptr_t gpuhal_os_directory_open(const char *path);
/* Lists the names in a directory, sorted by strcmp, without "." and "..". Free with gpuhal_os_names_free. Returns 0 or
 * errno. */
int gpuhal_os_directory_names(const char *path, char ***out_names, size_t *out_count);
void gpuhal_os_names_free(char **names, size_t count);
/* Calls `visit` with the name and the target of each symbolic link in a directory, until it returns false. Returns 0 or
 * errno. */
int gpuhal_os_directory_links(const char *path, bool (*visit)(void *user, const char *name, const char *target),
                              void *user);
/* Returns whether the number is an open descriptor (or handle) of this process. */
bool gpuhal_os_is_descriptor(intptr_t descriptor);
void gpuhal_os_descriptor_close(intptr_t descriptor);
/* Copies a descriptor, close-on-exec; returns -1 on failure. */
intptr_t gpuhal_os_descriptor_copy(intptr_t descriptor);
/* Returns the effective user id, whose files are not reported. */
uint32_t gpuhal_os_user(void);

/* ---- file_io.c */

/* Opens for reading, or for writing in place, which creates a missing file. The path may be relative. Never waits:
 * files without offsets (directories, FIFOs, sockets, terminals) are refused with EISDIR or ESPIPE. Returns 0 or
 * errno. */
int gpuhal_os_file_open(const char *path, bool writes, intptr_t *out_file);
/* Duplicates a descriptor of another owner. Returns 0 or errno: EBADF if it was not opened for this access, EINVAL for
 * writing if it only appends. */
int gpuhal_os_file_adopt(intptr_t descriptor, bool writes, intptr_t *out_file);
/* Returns 0 or errno. The size is UINT64_MAX for a device, whose size is not known. */
int gpuhal_os_file_size(intptr_t file, uint64_t *out_bytes);
/* Reads or writes all `bytes`, unless the file ends or an error comes before: *out_done counts them. Returns 0 or
 * errno. */
int gpuhal_os_file_read_piece(intptr_t file, uint64_t offset, void *to, uint64_t bytes, uint64_t *out_done);
int gpuhal_os_file_write_piece(intptr_t file, uint64_t offset, const void *from, uint64_t bytes, uint64_t *out_done);
/* Returns whether the page at `offset` can be read without waiting for a disk. */
bool gpuhal_os_file_is_cached(intptr_t file, uint64_t offset);
/* The same file opened for reading around the page cache. Offsets and sizes, and addresses, must have these bits 0; the
 * masks are below 4096. */
typedef struct gpuhal_direct_file {
    intptr_t file; /* -1: none */
    uint64_t offset_mask, memory_mask;
} gpuhal_direct_file;
/* Returns 0, or errno if the filesystem cannot do it. */
int gpuhal_os_file_open_direct(intptr_t file, gpuhal_direct_file *out_direct);
/* Makes a file without a name in a folder, for its owner alone, to read and write. The folder's path may be relative.
 * Returns 0 or errno. */
int gpuhal_os_file_open_unnamed(const char *folder, intptr_t *out_file);
int gpuhal_os_file_truncate(intptr_t file, uint64_t bytes);
/* Returns whether the errno means that the disk, or the user's share of it, has no room. */
bool gpuhal_os_disk_is_full(int error);
/* Returns once the bytes are on the disk. */
int gpuhal_os_file_sync(intptr_t file);

/* ---- state.c */

/* Returns seconds since 1970. People set this clock, also back: good for showing, not for deciding. */
uint64_t gpuhal_os_wall_clock(void);
/* Identifies a file: whether it is still the same one; for a device, also which one. Opens nothing. */
typedef struct gpuhal_file_state {
    uint64_t device, inode, bytes;
    uint64_t node; /* number of the device, if it is one */
    int64_t modified_ns, changed_ns;
    uint32_t mode, owner, group;
    bool directory;
} gpuhal_file_state;
/* Follows symbolic links. Returns 0, or errno with a state that is all zero. */
int gpuhal_os_file_state(const char *path, gpuhal_file_state *out_state);
/* Finds out, without opening, whether this process could open it for reading and writing. Returns 0 or errno: EPERM if
 * a device cgroup refuses it, and EACCES if its mode does. */
int gpuhal_os_may_use(const char *path);
/* Makes the directory and its parents, for their owner alone, if they are missing. Returns 0 or errno. */
int gpuhal_os_directory_make(const char *path);
/* Makes a file for its owner alone, which must not exist yet. Returns 0 once the disk has it, or errno; then it is gone
 * again. */
int gpuhal_os_file_write_new(const char *path, const void *bytes, size_t count);
int gpuhal_os_file_rename(const char *from, const char *to);
/* Sets the time of its last change to now. Returns 0 or errno. */
int gpuhal_os_file_touch(const char *path);
/* Gives the same file another name. */
int gpuhal_os_file_link(const char *from, const char *to);
int gpuhal_os_file_remove(const char *path);
/* Returns once the disk has the names in it. */
int gpuhal_os_directory_sync(const char *path);
/* Takes a lock between processes, and between threads, that ends with its holder's process. Waits at most `timeout_ns`.
 * Returns 0, ETIMEDOUT or another errno. */
int gpuhal_os_lock_take(const char *path, uint64_t timeout_ns, intptr_t *out_lock);
void gpuhal_os_lock_give(intptr_t lock);

/* ---- shared.c: objects that processes share. No call touches memory of a file, since another process may cut the file
 * off: the kernel waits for a word of a file, and the word is read and written as bytes of the file. */

/* Returns nanoseconds since the machine was started, including suspended time. No one sets this clock. */
uint64_t gpuhal_os_boot_ns(void);
/* Opens a regular file for reading and writing. A missing file is made with exactly these bits of its mode, despite the
 * mask of the process; with a mode of 0 it must exist. Follows no symbolic link. Returns 0 or errno. */
int gpuhal_os_shared_open(const char *path, uint32_t mode, intptr_t *out_file);
/* Describes an open file. *out_unlinked: it has no name any more. Returns 0 or errno. */
int gpuhal_os_shared_info(intptr_t file, gpuhal_file_info *out_info, bool *out_unlinked);
/* Returns the name of the file's network file system ("NFS"); NULL for one of this machine. */
const char *gpuhal_os_network_file_system(intptr_t file);
/* Writes all bytes at an offset, with no more system calls than needed. Returns 0 or errno. */
int gpuhal_os_shared_write(intptr_t file, uint64_t offset, const void *bytes, uint64_t count);
/* Makes the file at least `bytes` large, with room on the disk for all of it if the file system can promise that.
 * Returns 0 or errno. */
int gpuhal_os_shared_allocate(intptr_t file, uint64_t bytes);
/* Locks one byte of a file, which need not exist. The lock belongs to the opened file: it ends with the last descriptor
 * of that file, including those inherited by children. Does not wait: returns 0, EAGAIN if another opened file has the
 * lock, or errno. */
int gpuhal_os_byte_lock(intptr_t file, uint64_t offset);
/* Returns 0, or errno: then the byte stays locked until the file is closed. */
int gpuhal_os_byte_unlock(intptr_t file, uint64_t offset);
/* Returns whether another opened file has one of `count` bytes locked: 0 or errno. */
int gpuhal_os_byte_is_locked(intptr_t file, uint64_t offset, uint64_t count, bool *out_locked);
/* Leaves the descriptor open in programs that this process starts. */
int gpuhal_os_descriptor_keep_on_exec(intptr_t descriptor);
/* Maps words of 32 bits at the beginning of a file, to wait for; NULL without memory. */
const void *gpuhal_os_words_map(intptr_t file, uint32_t count);
void gpuhal_os_words_unmap(const void *words, uint32_t count);
/* Waits until the word differs from `seen`, or is woken, for at most `timeout_ns`; may return early. */
void gpuhal_os_word_wait(const void *words, uint32_t index, uint32_t seen, uint64_t timeout_ns);
/* Wakes one thread that waits for the word; the kernel may choose one whose process is being killed. */
void gpuhal_os_word_wake(const void *words, uint32_t index);
/* Returns when a process was started, in a unit of the system; 0 if it has ended, UINT64_MAX if that is unknown. */
uint64_t gpuhal_os_process_started(int64_t pid);
/* Returns the parent of a process: the one that started it, or has taken its place; 0: unknown, or none. */
int64_t gpuhal_os_process_parent(int64_t pid);
/* Identifies the processes that share numbers with this process (its namespace); 0: unknown. */
uint64_t gpuhal_os_process_space(void);
/* Finds a folder of the user for files that need not survive a restart, without the name of the program. Returns false
 * if there is none. *out_own: the folder is the user's alone; else names in it must say whose they are. */
bool gpuhal_os_runtime_folder(char *out_path, size_t bytes, bool *out_own);

/* ---- uring.c */

/* Up to `reads` reads in progress at once, of one thread. Returns 0, or errno if the system offers no such thing. */
typedef struct gpuhal_uring gpuhal_uring;
int gpuhal_os_uring_create(uint32_t reads, gpuhal_uring **out_ring);
/* NULL does nothing. No read may be in progress. */
void gpuhal_os_uring_destroy(gpuhal_uring *ring);
/* Begins a read. Returns 0, or errno if nothing was begun. */
int gpuhal_os_uring_read(gpuhal_uring *ring, intptr_t file, uint64_t offset, void *to, uint32_t bytes, uint64_t tag);
/* Waits for the end of one read: its tag, and the bytes read or -errno. Returns 0 or errno. */
int gpuhal_os_uring_wait(gpuhal_uring *ring, uint64_t *out_tag, int64_t *out_result);

/* ---- library.c */

/* Calls dlopen with RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE; nothing is ever closed. `name` is an absolute path, or a
 * bare soname of a vendor's runtime. NULL on failure, with the loader's text copied to `reason`. */
void *gpuhal_os_library_open(const char *name, char *reason, size_t reason_bytes);
void *gpuhal_os_library_symbol(void *library, const char *name);
/* Returns true if `address` lies in memory of a library or program that is not executable, so that no function can be
 * there. */
bool gpuhal_os_library_is_data(const void *address);
/* Returns the absolute path of an open library's file, malloc'ed; NULL if unknown. */
char *gpuhal_os_library_file(void *library);
/* Returns the absolute path of the file that holds `address`, malloc'ed; NULL if unknown. */
char *gpuhal_os_library_path(const void *address);
/* A library that the dynamic loader has mapped. */
typedef struct gpuhal_loaded_library {
    const char *path;    /* as the dynamic loader has it: may be relative to an earlier current directory */
    const char *name;    /* the name that others need; NULL: it has none */
    /* the names of the libraries that it is linked to, each with its zero; after the last an empty one */
    const char *needs;
    const void *section; /* an address in it */
    char *mapped;        /* NULL: not known, or not asked for */
} gpuhal_loaded_library;
/* Counts the libraries that this process has loaded so far, unloaded ones included. */
uint64_t gpuhal_os_libraries_loads(void);
/* Lists all of them but the program. Returns 0 or errno. */
int gpuhal_os_libraries_list(gpuhal_loaded_library **out_libraries, size_t *out_count);
/* Sets `mapped` to the present path of the mapped file. If that was removed or replaced, the path is no file's. */
void gpuhal_os_libraries_find_mapped(gpuhal_loaded_library *libraries, size_t count);
void gpuhal_os_libraries_free(gpuhal_loaded_library *libraries, size_t count);
/* Returns the directory of libgpuhal itself (or, linked statically, of the program); malloc'ed; NULL if unknown. */
char *gpuhal_os_own_directory(void);

/* ---- image.c */

/* Classes of files for the dynamic loader and the kernel: whole and for this machine; no library or program at all, or
 * damaged; for another machine; or unreadable. */
typedef enum { GPUHAL_IMAGE_GOOD = 0, GPUHAL_IMAGE_BAD, GPUHAL_IMAGE_FOREIGN, GPUHAL_IMAGE_UNREADABLE } gpuhal_image;
/* Judges a file of `bytes` bytes as a shared library, or as a `program`, without executing or mapping it. `why` gets
 * the fault, to be put after the file's name; with UNREADABLE *out_error gets the errno instead. */
gpuhal_image gpuhal_os_image_check(const char *path, uint64_t bytes, bool program, char *why, size_t why_bytes,
                                   int *out_error);

/* ---- process.c */

/* A helper process in a process group of its own: stdin is /dev/null, stdout and stderr go to the parent together,
 * descriptor 3 is the stream that the parent reads. All other descriptors are closed. */
typedef struct gpuhal_child {
    int64_t pid;
    int stream; /* read end, non-blocking, close-on-exec; -1 when closed */
    int output; /* the same, of its printed output */
    int pidfd;  /* -1 if the kernel has none */
} gpuhal_child;
/* `arguments` ends with NULL; arguments[0] is the absolute path of the program. Returns 0 or errno. */
int gpuhal_os_process_start(const char *const *arguments, gpuhal_child *out_process);
/* Waits until one of at most GPUHAL_PROCESSES_MAX streams has data or has ended, a process has printed something or has
 * ended, or `timeout_ns` has passed; sets ready[i]. A process whose stream is closed is waited for only until its end.
 * Returns 0 or errno. */
#define GPUHAL_PROCESSES_MAX 64
int gpuhal_os_process_wait(gpuhal_child *const *processes, size_t count, uint64_t timeout_ns, bool *ready);
/* Reads the available bytes. Returns their number; 0 if nothing more comes, since the stream or the process has ended;
 * -1 if nothing is there now; -2 for an error. A grandchild that holds the stream open does not delay the end. */
int64_t gpuhal_os_process_read(gpuhal_child *process, void *to, size_t bytes);
/* Reads printed output. Returns the number of bytes; 0 if nothing is there now, or ever will be. */
size_t gpuhal_os_process_read_output(gpuhal_child *process, void *to, size_t bytes);
/* Returns the time that it was ready to run without a processor since its start; 0 if the system does not report it. */
uint64_t gpuhal_os_process_starved_ns(const gpuhal_child *process);
/* Closes the stream before the process has ended. */
void gpuhal_os_process_close_stream(gpuhal_child *process);
/* How it ended, if that can still be learned: hosts that ignore SIGCHLD or reap every child prevent that. */
typedef enum {
    GPUHAL_ENDED_UNKNOWN = 0,
    GPUHAL_ENDED_EXIT = 1,
    GPUHAL_ENDED_SIGNAL = 2,
    GPUHAL_ENDED_NOT = 3
} gpuhal_ended;
/* Gives the process `grace_ns` to end by itself, then `term_ns` to end by SIGTERM, then kills it, and in any case the
 * rest of its group. Closes the stream, and reaps the process unless that has happened. *out_value: exit code or signal
 * number of a process that ended by itself. ENDED_NOT: it is stuck in the kernel and is left behind; that is known
 * after two more seconds. */
gpuhal_ended gpuhal_os_process_finish(gpuhal_child *process, uint64_t grace_ns, uint64_t term_ns, int *out_value);
/* Returns a name such as "Segmentation fault". */
const char *gpuhal_os_signal_name(int signal_number);
/* Returns whether others end processes by this signal: an administrator, a service manager, or the kernel when memory
 * or a limit is used up. */
bool gpuhal_os_signal_is_from_outside(int signal_number);
/* Returns this process's number, for gpuhal_os_helper_prepare. */
int64_t gpuhal_os_process_own(void);
/* Set in helper processes, and so in all programs that a driver starts from there. */
#define GPUHAL_WITHIN_HELPER "GPUHAL_WITHIN_HELPER"
/* Called by the helper program first of all. Closes descriptors from 4 on, turns core dumps off, makes it the first to
 * go when the machine runs out of memory, and lets it die with its parent. Ends it at once if `parent` is gone
 * already. */
void gpuhal_os_helper_prepare(int64_t parent);
/* Called by the helper program: sends all bytes to the parent. Returns false if the parent no longer reads them.
 * Async-signal-safe. */
bool gpuhal_os_helper_send(const char *bytes, size_t count);
/* Ends the helper program without exit handlers, including the driver's. */
_Noreturn void gpuhal_os_helper_exit(int code);
/* Called by the helper program. On a deadly signal, `describe` (async-signal-safe) is called with its number, then the
 * process ends. `describe` returns whether the parent heard it; if not, the process dies of the signal, so that its
 * exit status shows it. */
void gpuhal_os_helper_on_crash(bool (*describe)(int signal_number));

#endif
