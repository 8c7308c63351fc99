/* schedule/ledger.h: the machine's leases, in a folder that processes share:
 *
 *     ledger     leases and waiting requests; two copies, written alternately, so that one copy is always complete
 *     liveness   byte i is locked while the lease or waiting request at place i is alive; word i changes when this
 *                request is granted
 *
 * A lock on the first byte of `ledger` makes a critical section between processes. The kernel releases the lock when
 * the owner ends. If another thread forks a child during the section, the child inherits the lock until it closes the
 * file or executes another program. If the owner is killed, other processes return BUSY as long as such a child exists.
 * If a process is killed while writing, the unfinished copy fails its checksum, and the other copy is valid. Then a
 * locked byte without a lease in the table shows that the valid copy is outdated. Nothing is granted until the lease
 * with this byte has ended. The table identifies the `liveness` file of its bytes. If this file was removed or
 * replaced, the bytes of the new file are meaningless, and nothing is granted while a process with an earlier lease
 * exists. All data read from a file is copied and checked before use.
 *
 * Within a process, only one thread at a time is between gpuhal_ledger_begin() and gpuhal_ledger_end(). This thread
 * must not call drivers, plugins or callbacks there.
 */
#ifndef GPUHAL_SCHEDULE_LEDGER_H
#define GPUHAL_SCHEDULE_LEDGER_H

#include "device/for_schedule.h"

#include <gpuhal/schedule/lease.h>

enum {
    GPUHAL_LEDGER_DEVICES = 64, /* bits of a mask */
    GPUHAL_LEDGER_RECORDS = 2048,
    GPUHAL_LEDGER_ITEMS = 8192,
    GPUHAL_LEDGER_OVERTAKEN_MAX = 8,
    GPUHAL_LEDGER_LOOKERS = 4, /* number of longest waiting processes, which check for dead holders more often */
    GPUHAL_LEDGER_GATE = 1023, /* index of the word in `ledger` that threads wait on for the lock */
    GPUHAL_LEDGER_KEY_BYTES = 64,
    GPUHAL_LEDGER_LABEL_BYTES = GPUHAL_LEASE_LABEL_MAX + 1
};
#define GPUHAL_LEDGER_ALL_SLOTS UINT32_MAX
/* Maximum generation and ticket in a table, so that neither ever wraps. */
#define GPUHAL_LEDGER_COUNTER_MAX (UINT64_C(1) << 63)
/* Maximum bytes of a request on a device. */
#define GPUHAL_LEDGER_BYTES_MAX (UINT64_C(1) << 62)
/* Waiting time that raises a request's priority by one. Even a request of the lowest priority comes before
 * requests that arrive more than 3 s later. */
#define GPUHAL_LEDGER_AGING_NS UINT64_C(500000000)

/* A physical device or partition. */
typedef struct gpuhal_ledger_device {
    char key[GPUHAL_LEDGER_KEY_BYTES]; /* UUID, else PCI address, else id; for an AMD partition, "/" and the partition's
                                        * number are appended */
    char address[32];                  /* PCI address, or "" if unknown or if this is a partition */
    uint64_t bytes;                    /* memory size, or 0 if unknown and therefore unlimited */
    uint64_t foreign_bytes;            /* bytes used beyond leases in the last sample */
    uint32_t slots;
    uint32_t busy_permille; /* share of busy time in the last sample, or UINT32_MAX if unknown */
} gpuhal_ledger_device;

enum { GPUHAL_RECORD_WAITS = 1, GPUHAL_RECORD_HELD = 2 };

/* A lease or a waiting request. */
typedef struct gpuhal_ledger_record {
    uint64_t ticket;     /* increases with each request; unique */
    uint64_t candidates; /* mask of devices that may be granted now, any `count` of them or the devices of the items */
    uint64_t ailing;     /* mask of devices with warnings, which are granted after devices of equal rank */
    uint64_t lesser;     /* mask of places whose device ranks below the device at the previous place */
    uint64_t bytes;      /* bytes on each device */
    uint64_t since_ns;   /* gpuhal_os_boot_ns() when the record entered its state */
    uint64_t asked_ns;
    uint64_t expires_ns;     /* expiry time of a lease, duration of a request; 0 for never */
    uint64_t space, started; /* identify the process together with `pid` */
    int64_t pid;
    uint32_t place; /* index of the record's byte and word */
    uint32_t state; /* GPUHAL_RECORD_… */
    uint32_t count; /* number of devices, or 0 if items name the devices */
    uint32_t slots; /* slots on each device, or GPUHAL_LEDGER_ALL_SLOTS */
    uint32_t flags; /* GPUHAL_LEASE_… */
    uint32_t overtaken;
    uint32_t user;
    int32_t priority;
    char label[GPUHAL_LEDGER_LABEL_BYTES];
    uint8_t places[GPUHAL_LEDGER_DEVICES]; /* rank of each candidate in the requester's order of preference */
} gpuhal_ledger_record;

/* One device of a lease, or of a request for particular devices. */
typedef struct gpuhal_ledger_item {
    uint64_t ticket, bytes;
    uint32_t device, slots;
} gpuhal_ledger_item;

typedef struct gpuhal_ledger_state {
    uint64_t generation, next_ticket;
    uint32_t device_count, record_count, item_count, reserved;
    uint64_t liveness_inode, liveness_device; /* identify the file that contains the bytes of these records */
    gpuhal_ledger_device devices[GPUHAL_LEDGER_DEVICES];
    gpuhal_ledger_record records[GPUHAL_LEDGER_RECORDS];
    gpuhal_ledger_item items[GPUHAL_LEDGER_ITEMS];
} gpuhal_ledger_state;

/* ---- ledger_state.c */

/* Adds two sizes. The sum saturates at UINT64_MAX, since leases may have any size on a device whose memory size is
 * unknown. */
static inline uint64_t gpuhal_ledger_sum(uint64_t bytes, uint64_t more)
{
    return more > UINT64_MAX - bytes ? UINT64_MAX : bytes + more;
}

/* Returns whether the table is consistent: counts and indices are valid, places and tickets are unique, and no device
 * has more leases than its bytes and slots allow. */
bool gpuhal_ledger_is_sound(const gpuhal_ledger_state *state);
/* Finds the device by key or address. Returns GPUHAL_LEDGER_DEVICES if it has no entry. Partitions have no address in
 * the table. Other devices are found by address if known, since different drivers report different UUIDs for the same
 * device. If the entry has no UUID, adds the device's UUID. If the entry has another UUID and no record refers to it,
 * replaces the entry with the device's description. */
uint32_t gpuhal_ledger_find_device(gpuhal_ledger_state *state, const gpuhal_ledger_device *device);
/* Finds the device or adds it. If the table is full, replaces a device that is neither used by a record nor in the mask
 * `kept`. Returns GPUHAL_LEDGER_DEVICES if there is no room. */
uint32_t gpuhal_ledger_device_index(gpuhal_ledger_state *state, const gpuhal_ledger_device *device, uint64_t kept);
gpuhal_ledger_record *gpuhal_ledger_find(gpuhal_ledger_state *state, uint64_t ticket);
const gpuhal_ledger_record *gpuhal_ledger_find_const(const gpuhal_ledger_state *state, uint64_t ticket);
/* Removes the record and its items. */
void gpuhal_ledger_remove(gpuhal_ledger_state *state, uint64_t ticket);
/* Returns false if the table is full. */
bool gpuhal_ledger_add_item(gpuhal_ledger_state *state, const gpuhal_ledger_item *item);
typedef struct gpuhal_ledger_use {
    uint64_t slots[GPUHAL_LEDGER_DEVICES], bytes[GPUHAL_LEDGER_DEVICES];
} gpuhal_ledger_use;
/* Sums up the slots and bytes of the held leases on each device. The items must name existing devices. */
void gpuhal_ledger_granted(const gpuhal_ledger_state *state, gpuhal_ledger_use *out_use);
bool gpuhal_ledger_is_held(const gpuhal_ledger_state *state, uint64_t ticket);

/* ---- grant.c: the next request to grant. */

/* Returns whether the request could be granted if nothing were leased or in use. */
bool gpuhal_grant_is_possible(const gpuhal_ledger_state *state, const gpuhal_ledger_record *record);
/* Returns the priority of a request for a lease or a work slot, raised by its waiting time. */
int64_t gpuhal_grant_priority(int32_t priority, uint64_t asked_ns, uint64_t now_ns);
/* Grants the requests that can be granted, by priority with aging, then in order of arrival. At most
 * GPUHAL_LEDGER_OVERTAKEN_MAX later requests may overtake a request that does not fit. After that, the devices of the
 * overtaken request are reserved. Calls `is_alive` for each request that fits, the first that does not fit, and those
 * overtaken too often before. Removes dead requests. Writes the places of granted requests to `out_places`
 * (GPUHAL_LEDGER_RECORDS entries) and returns their number. Sets *out_changed if anything has changed. */
uint32_t gpuhal_grant_settle(gpuhal_ledger_state *state, uint64_t now_ns,
                             bool (*is_alive)(void *user, const gpuhal_ledger_record *record), void *user,
                             uint32_t *out_places, bool *out_changed);

/* ---- ledger_folder.c */

/* Uses `named` if it is not NULL, else /run/gpuhal below `root` if an administrator has created it and this user may
 * write to it, else a folder of the user. The caller frees *out_folder. *out_shared is false for a folder of the
 * user. */
gpuhal_status gpuhal_ledger_folder_find(const char *root, const char *named, char **out_folder, bool *out_shared);

/* ---- ledger_file.c: the files. */

typedef struct gpuhal_ledger_files {
    char *folder, *ledger_path, *liveness_path;
    bool shared;               /* the folder is named or machine-wide, so files may belong to other users */
    intptr_t ledger, liveness; /* -1 if not open */
    const void *words, *gate;  /* `words` is mapped from `liveness`, `gate` from `ledger` */
    uint64_t known;            /* checksum of the copy in the state, or 0 */
    uint32_t copy;             /* index of the copy in the state */
    unsigned char *image;      /* buffer for reading and writing copies */
    intptr_t spare;            /* descriptor of `liveness` from an ended lease, for reuse, or -1 */
    uint64_t epoch;            /* changes when the files are replaced */
    uint64_t inode, device;    /* identify `liveness`; 0 before the first open, and after its removal */
} gpuhal_ledger_files;

/* Passes `root` and `folder` to gpuhal_ledger_folder_find(). Creates no files. */
gpuhal_status gpuhal_ledger_files_init(gpuhal_ledger_files *files, const char *root, const char *folder);
void gpuhal_ledger_files_finish(gpuhal_ledger_files *files);
/* Opens the files unless they are already open. First checks the folder and its owner. Returns FILE with a message. */
gpuhal_status gpuhal_ledger_files_open(gpuhal_ledger_files *files);
void gpuhal_ledger_files_close(gpuhal_ledger_files *files);
/* Closes the files after one of them was removed or replaced. Reopening the files starts a new epoch. */
void gpuhal_ledger_files_lose(gpuhal_ledger_files *files);
/* Returns whether the open `liveness` file contains the bytes of the state's records. */
bool gpuhal_ledger_files_are_paired(const gpuhal_ledger_files *files, const gpuhal_ledger_state *state);
/* The caller holds the lock on `ledger`. Reads the newest complete copy, unless `state` is up to date. Starts a new
 * ledger if the file is empty, or its head or both copies are damaged. If it is empty or damaged and a byte without a
 * record is locked, returns FILE with instructions. If it is neither empty nor a ledger of this version, leaves it
 * unchanged and returns FILE. */
gpuhal_status gpuhal_ledger_files_load(gpuhal_ledger_files *files, gpuhal_ledger_state *state);
/* The caller holds the lock. Overwrites the copy that is not in the state. If the write fails, the other copy stays
 * valid. */
gpuhal_status gpuhal_ledger_files_store(gpuhal_ledger_files *files, gpuhal_ledger_state *state);
/* Opens `liveness` again, for the byte of one lease. An inherited lease is alive as long as a descriptor is open, so it
 * never reuses a descriptor, which an earlier child may have inherited. Returns 0 or errno. */
int gpuhal_ledger_files_open_liveness(gpuhal_ledger_files *files, bool inherited, intptr_t *out_file);
/* Unlocks the byte and closes the file. If `reusable` (the file belongs to this epoch, and no other process can have
 * its descriptor), keeps the file open for the next lease, unless one is already kept or unlocking failed. */
void gpuhal_ledger_files_close_liveness(gpuhal_ledger_files *files, intptr_t file, uint32_t place, bool reusable);
/* Returns GPUHAL_ERROR_FILE with the message "PATH: cannot be WHAT: error (number)" and a remedy. */
gpuhal_status gpuhal_ledger_files_failed(const char *path, const char *what, int error);

/* ---- ledger.c: the critical section. */

typedef struct gpuhal_ledger {
    gpuhal_mutex mutex; /* locked from begin to end; protects all members */
    gpuhal_ledger_files files;
    gpuhal_ledger_state *state;
    uint32_t *places; /* places of granted requests to be woken at the end; GPUHAL_LEDGER_RECORDS entries */
    uint32_t place_count;
    bool changed;
    uint64_t locked_ns;  /* time of the first unsuccessful try to lock, or 0 if the last try succeeded */
    uint64_t gave_up_ns; /* when a thread last waited two seconds for the lock in vain, or 0 if none did since the last
                          * success */
    uint64_t sweeps;
    uint64_t space, started; /* identify this process */
    int64_t pid;
    uint32_t user;
    uint64_t fresh;      /* ticket of the live request that this thread has just entered, or 0 */
    intptr_t fresh_file; /* file with the lock on the byte of this request */
    uint32_t fresh_place;
} gpuhal_ledger;

gpuhal_status gpuhal_ledger_init(gpuhal_ledger *ledger, const char *root, const char *folder);
void gpuhal_ledger_finish(gpuhal_ledger *ledger);
/* Enters the critical section, loads the state, and removes expired leases. Returns BUSY if the lock is not acquired
 * before `until_ns` or within two seconds. Returns FILE if a file cannot be used, or if `liveness` was removed or
 * replaced while leases are held. */
gpuhal_status gpuhal_ledger_begin(gpuhal_ledger *ledger, uint64_t until_ns);
/* Enters the section to remove a record of the caller, even if `liveness` was replaced. Keeps expired leases. */
gpuhal_status gpuhal_ledger_begin_leave(gpuhal_ledger *ledger);
/* Grants the requests that can be granted. With `reap`, first removes leases of ended processes. */
void gpuhal_ledger_settle(gpuhal_ledger *ledger, bool reap);
/* Returns whether the table may have too little room for a request for all devices. */
static inline bool gpuhal_ledger_is_full(const gpuhal_ledger_state *state)
{
    return state->record_count == GPUHAL_LEDGER_RECORDS ||
           state->item_count > GPUHAL_LEDGER_ITEMS - GPUHAL_LEDGER_DEVICES;
}
/* Removes the record and returns true if its processes are dead. */
bool gpuhal_ledger_drop_dead(gpuhal_ledger *ledger, const gpuhal_ledger_record *record);
/* Removes requests of dead processes among the lookers and a few other requests, or among all requests if the table is
 * full. Returns the number of lookers with a lower ticket, or, if there are GPUHAL_LEDGER_LOOKERS of them, the number
 * of requests with a lower ticket. */
uint32_t gpuhal_ledger_sweep(gpuhal_ledger *ledger, uint64_t ticket);
/* Writes changes, leaves the section, and wakes granted requests. If writing fails, the ledger stays unchanged, and the
 * byte of a fresh request is unlocked so that it is not mistaken for the byte of a lease. */
gpuhal_status gpuhal_ledger_end(gpuhal_ledger *ledger);
/* Reads the word of a place from any descriptor of `liveness`. May be called outside the critical section. */
uint32_t gpuhal_ledger_word(intptr_t liveness, uint32_t place);

#endif
