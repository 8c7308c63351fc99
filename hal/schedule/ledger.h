/* schedule/ledger.h: what processes have leased of the machine's devices, in a folder that they share:
 *
 *     ledger     who has and who waits for what; two copies, written in turn, so that one of them is always whole
 *     liveness   byte i is locked as long as the lease or the waiting request in place i lives; word i changes when
 *                that request was granted
 *
 * A lock on the first byte of `ledger` makes a critical section between processes. It ends with its holder, and with
 * the children that another thread of the holder forked in the middle of it, until they have closed the file or
 * started another program; where such a holder is killed, others return BUSY as long as such a child lives. Of a
 * process that is killed in the middle, the copy that it was writing fails its checksum, and the other one counts. A
 * lease that is not in the table but whose byte is locked shows that what counts is too old: then nothing is granted
 * until it has ended. The table names the file that its bytes are in: where that was removed or replaced, the bytes
 * of another file say nothing, and nothing is granted while a process lives that has a lease of before. Everything
 * read from a file is copied and checked before it is used.
 *
 * In a process one thread at a time is between gpuhal_ledger_begin() and gpuhal_ledger_end(). No driver, plugin or
 * callback is called there.
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
    GPUHAL_LEDGER_LOOKERS = 4, /* processes, those that wait longest, that look for dead holders often */
    GPUHAL_LEDGER_GATE = 1023, /* the word of `ledger`, between head and copies, where threads wait for its lock */
    GPUHAL_LEDGER_KEY_BYTES = 64,
    GPUHAL_LEDGER_LABEL_BYTES = GPUHAL_LEASE_LABEL_MAX + 1
};
#define GPUHAL_LEDGER_ALL_SLOTS UINT32_MAX
/* No table has a generation or a ticket above this, so that neither ever wraps. */
#define GPUHAL_LEDGER_COUNTER_MAX (UINT64_C(1) << 63)
/* No request asks for more of a device. */
#define GPUHAL_LEDGER_BYTES_MAX (UINT64_C(1) << 62)
/* Waiting for so long raises a request by one priority: one of the lowest is passed by none that comes 3 s later. */
#define GPUHAL_LEDGER_AGING_NS UINT64_C(500000000)

/* A part of a physical device. */
typedef struct gpuhal_ledger_device {
    char key[GPUHAL_LEDGER_KEY_BYTES]; /* UUID, else PCI address, else id; "/" and the number of an AMD partition */
    char address[32];                  /* PCI address; "": unknown, or a partition */
    uint64_t bytes;                    /* 0: unknown, and not limited */
    uint64_t foreign_bytes;            /* used beyond what leases have, as sampled last */
    uint32_t slots;
    uint32_t busy_permille;            /* share of the time in which it works, as sampled last; UINT32_MAX: unknown */
} gpuhal_ledger_device;

enum { GPUHAL_RECORD_WAITS = 1, GPUHAL_RECORD_HELD = 2 };

/* A lease, or a request that waits for one. */
typedef struct gpuhal_ledger_record {
    uint64_t ticket;     /* in the order of requests; never twice */
    uint64_t candidates; /* mask of the devices of which `count`, or those of the items, may be granted now */
    uint64_t ailing;     /* mask of those that are granted after their equals, since something is wrong with them */
    uint64_t lesser;     /* mask of places: the device there is a lesser one than that at the place before */
    uint64_t bytes;      /* of each of those */
    uint64_t since_ns;   /* when it came into its state, by gpuhal_os_boot_ns() */
    uint64_t asked_ns;   /* when it was requested */
    uint64_t expires_ns; /* of a lease: when; of a request: how long it is to last; 0: never */
    uint64_t space, started; /* identify the process besides its number */
    int64_t pid;
    uint32_t place;      /* of its byte and its word */
    uint32_t state;      /* GPUHAL_RECORD_… */
    uint32_t count;      /* 0: its items say what it asks for */
    uint32_t slots;      /* of each device; GPUHAL_LEDGER_ALL_SLOTS */
    uint32_t flags;      /* GPUHAL_LEASE_… */
    uint32_t overtaken;
    uint32_t user;
    int32_t priority;
    char label[GPUHAL_LEDGER_LABEL_BYTES];
    uint8_t places[GPUHAL_LEDGER_DEVICES]; /* of the candidates, in the order in which the requester prefers them */
} gpuhal_ledger_record;

/* What a lease has of one device, or a request for certain devices asks of it. */
typedef struct gpuhal_ledger_item {
    uint64_t ticket, bytes;
    uint32_t device, slots;
} gpuhal_ledger_item;

typedef struct gpuhal_ledger_state {
    uint64_t generation, next_ticket;
    uint32_t device_count, record_count, item_count, reserved;
    uint64_t liveness_inode, liveness_device; /* of the file in which the bytes of these records are */
    gpuhal_ledger_device devices[GPUHAL_LEDGER_DEVICES];
    gpuhal_ledger_record records[GPUHAL_LEDGER_RECORDS];
    gpuhal_ledger_item items[GPUHAL_LEDGER_ITEMS];
} gpuhal_ledger_state;

/* ---- ledger_state.c: the table by itself. */

/* Adds two sizes; UINT64_MAX where that is too much: on a device of unknown memory any number of leases may have any
 * size. */
static inline uint64_t gpuhal_ledger_sum(uint64_t bytes, uint64_t more)
{
    return more > UINT64_MAX - bytes ? UINT64_MAX : bytes + more;
}

/* Returns whether every number in it can be what the library writes: counts, indices, places and tickets that exist
 * once, and no device with more granted than it has. */
bool gpuhal_ledger_is_sound(const gpuhal_ledger_state *state);
/* Finds the device by key or address; GPUHAL_LEDGER_DEVICES when it is not there. Partitions have no address here; of
 * any other device the address decides, since vendors' drivers state different UUIDs of one. An entry without a UUID
 * gets that of the device; one that nothing names becomes what the device is described as. */
uint32_t gpuhal_ledger_find_device(gpuhal_ledger_state *state, const gpuhal_ledger_device *device);
/* Finds the device, or adds it: where the table is full, in the place of one that no record names and that is not in
 * the mask `kept`. GPUHAL_LEDGER_DEVICES when there is no room. */
uint32_t gpuhal_ledger_device_index(gpuhal_ledger_state *state, const gpuhal_ledger_device *device, uint64_t kept);
/* NULL when there is none. */
gpuhal_ledger_record *gpuhal_ledger_find(gpuhal_ledger_state *state, uint64_t ticket);
const gpuhal_ledger_record *gpuhal_ledger_find_const(const gpuhal_ledger_state *state, uint64_t ticket);
/* Removes the record with its items. */
void gpuhal_ledger_remove(gpuhal_ledger_state *state, uint64_t ticket);
/* Adds an item; false without room. */
bool gpuhal_ledger_add_item(gpuhal_ledger_state *state, const gpuhal_ledger_item *item);
/* What leases have of each device. */
typedef struct gpuhal_ledger_use {
    uint64_t slots[GPUHAL_LEDGER_DEVICES], bytes[GPUHAL_LEDGER_DEVICES];
} gpuhal_ledger_use;
/* Sums it up, in a table whose items name devices that there are. */
void gpuhal_ledger_granted(const gpuhal_ledger_state *state, gpuhal_ledger_use *out_use);
/* The record is held by this item's ticket. */
bool gpuhal_ledger_is_held(const gpuhal_ledger_state *state, uint64_t ticket);

/* ---- grant.c: which request comes next. */

/* Returns whether the request could be granted if nothing were leased or used. */
bool gpuhal_grant_is_possible(const gpuhal_ledger_state *state, const gpuhal_ledger_record *record);
/* Returns the priority of a request, of a lease or a work slot, with what waiting has added. */
int64_t gpuhal_grant_priority(int32_t priority, uint64_t asked_ns, uint64_t now_ns);
/* Grants what can be granted, in order: by priority with aging, then as they came. A request that does not fit lets
 * later ones pass, at most GPUHAL_LEDGER_OVERTAKEN_MAX of them; then its devices are kept for it. `is_alive` judges a
 * request before it is granted or others wait for it; one that is dead is removed. Returns how many places
 * `out_places`, with room for GPUHAL_LEDGER_RECORDS, got: those of granted requests. *out_changed is set when anything
 * changed. */
uint32_t gpuhal_grant_settle(gpuhal_ledger_state *state, uint64_t now_ns,
                             bool (*is_alive)(void *user, const gpuhal_ledger_record *record), void *user,
                             uint32_t *out_places, bool *out_changed);

/* ---- ledger_folder.c */

/* Finds the folder: the one that is named; where that is NULL, /run/gpuhal below `root`, which an administrator makes,
 * if this user may write there; else the user's own. The text is malloc'ed; *out_shared: not the user's own. */
gpuhal_status gpuhal_ledger_folder_find(const char *root, const char *named, char **out_folder, bool *out_shared);

/* ---- ledger_file.c: the files. */

typedef struct gpuhal_ledger_files {
    char *folder, *ledger_path, *liveness_path;
    bool shared; /* it was named, or is that of the machine: files may belong to other users */
    intptr_t ledger, liveness; /* -1: not open */
    const void *words, *gate;  /* of `liveness`; of `ledger` */
    uint64_t known;            /* generation of the copy in the state; 0: none */
    uint32_t copy;             /* which copy that is */
    unsigned char *image;      /* a copy on its way to the file or from it */
    intptr_t spare;            /* `liveness`, opened for a lease that has ended; -1: none */
    uint64_t epoch;            /* changes when the files of these names are other ones than before */
    uint64_t inode, device;    /* of `liveness`; 0: none yet, or it was removed */
} gpuhal_ledger_files;

/* `root` and `folder` as for gpuhal_ledger_folder_find(). Creates no file. */
gpuhal_status gpuhal_ledger_files_init(gpuhal_ledger_files *files, const char *root, const char *folder);
void gpuhal_ledger_files_finish(gpuhal_ledger_files *files);
/* Opens the files unless they are open, with the folder and its owner checked. FILE, with a sentence. */
gpuhal_status gpuhal_ledger_files_open(gpuhal_ledger_files *files);
void gpuhal_ledger_files_close(gpuhal_ledger_files *files);
/* Closes the files, since one of them was removed or replaced: what is opened next is of another epoch. */
void gpuhal_ledger_files_lose(gpuhal_ledger_files *files);
/* Returns whether the records of the state have their bytes in the `liveness` that is open. */
bool gpuhal_ledger_files_are_paired(const gpuhal_ledger_files *files, const gpuhal_ledger_state *state);
/* With the lock on `ledger`. Reads the newest whole copy, unless it is the one in `state` already. A new ledger is
 * begun, and a damaged one begun anew when no byte is locked; else FILE, with a sentence that says what to do. A file
 * that is neither empty nor a ledger is left as it is: FILE. */
gpuhal_status gpuhal_ledger_files_load(gpuhal_ledger_files *files, gpuhal_ledger_state *state);
/* With the lock. Writes the other copy. When that fails, what was there before counts. */
gpuhal_status gpuhal_ledger_files_store(gpuhal_ledger_files *files, gpuhal_ledger_state *state);
/* Opens `liveness` once more, for the byte of one lease. Only a descriptor shows that a lease that is to be inherited
 * lives, so it has one that no child of before can have. Returns 0 or errno. */
int gpuhal_ledger_files_open_liveness(gpuhal_ledger_files *files, bool inherited, intptr_t *out_file);
/* Unlocks the byte and closes the file, or keeps it for the next lease where it is of this epoch and no other process
 * can have it. */
void gpuhal_ledger_files_close_liveness(gpuhal_ledger_files *files, intptr_t file, uint32_t place, bool reusable);
/* Returns GPUHAL_ERROR_FILE, with "PATH: cannot be WHAT: error (number)" and what to do about it. */
gpuhal_status gpuhal_ledger_files_failed(const char *path, const char *what, int error);

/* ---- ledger.c: the critical section. */

typedef struct gpuhal_ledger {
    gpuhal_mutex mutex; /* held from begin to end; protects all of this */
    gpuhal_ledger_files files;
    gpuhal_ledger_state *state;
    uint32_t *places;    /* GPUHAL_LEDGER_RECORDS: of granted requests, to be woken at the end */
    uint32_t place_count;
    bool changed;
    uint64_t locked_ns;  /* since when others had the lock at every try; 0: not the last time */
    uint64_t gave_up_ns; /* when a thread had waited for the lock in vain; 0: not since the last success */
    uint64_t sweeps;
    uint64_t space, started; /* of this process */
    int64_t pid;
    uint32_t user;
    uint64_t fresh;      /* ticket of a request that this thread has just entered: it lives; 0: none */
    intptr_t fresh_file; /* in which that request's byte is locked */
    uint32_t fresh_place;
} gpuhal_ledger;

gpuhal_status gpuhal_ledger_init(gpuhal_ledger *ledger, const char *root, const char *folder);
void gpuhal_ledger_finish(gpuhal_ledger *ledger);
/* Enters the critical section: the state is there, without expired leases. BUSY when it is not free by `until_ns`, or
 * for two seconds; FILE, also where `liveness` was removed or replaced while leases are held. */
gpuhal_status gpuhal_ledger_begin(gpuhal_ledger *ledger, uint64_t until_ns);
/* The same for one that takes a record of its own out, which it may do where `liveness` was replaced, too. */
gpuhal_status gpuhal_ledger_begin_leave(gpuhal_ledger *ledger);
/* Grants what can be granted; with `reap`, leases of processes that have ended are removed before. */
void gpuhal_ledger_settle(gpuhal_ledger *ledger, bool reap);
/* Whether a request for all devices might find no room. */
static inline bool gpuhal_ledger_is_full(const gpuhal_ledger_state *state)
{
    return state->record_count == GPUHAL_LEDGER_RECORDS ||
           state->item_count > GPUHAL_LEDGER_ITEMS - GPUHAL_LEDGER_DEVICES;
}
/* Removes requests of dead processes: those among the lookers, some of the others, and all where the table is full.
 * Returns how many lookers have a lower ticket, or, when all have, how many requests. */
uint32_t gpuhal_ledger_sweep(gpuhal_ledger *ledger, uint64_t ticket);
/* Leaves it. What was changed is written, and granted requests are woken; when it cannot be written, nothing was
 * changed, and the byte of a fresh request is unlocked: others must not take it for that of a lease. */
gpuhal_status gpuhal_ledger_end(gpuhal_ledger *ledger);
/* Reads the word of a place, from any descriptor of `liveness`. In the critical section or not. */
uint32_t gpuhal_ledger_word(intptr_t liveness, uint32_t place);

#endif
