/* schedule/ledger.h: the leases that processes have on the machine's devices, in a folder that they share:
 *
 *     ledger     leases and waiting requests; two copies, written in turn, so that one of them is always whole
 *     liveness   byte i is locked as long as the lease or the waiting request in place i lives; word i changes when
 *                that request was granted
 *
 * A lock on the first byte of `ledger` makes a critical section between processes. It ends with its holder. Children
 * that another thread of the holder forked in the middle of it also have the lock, until they have closed the file or
 * started another program; if such a holder is killed, others return BUSY as long as such a child lives. If a process
 * is killed in the middle, the copy that it was writing fails its checksum, and the other copy counts. A locked byte
 * without a lease in the table shows that the copy that counts is too old: then nothing is granted until that lease has
 * ended. The table names the file with its bytes. If that file was removed or replaced, the bytes of another file say
 * nothing, and nothing is granted while a process with an earlier lease lives. Everything read from a file is copied
 * and checked before it is used.
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
    GPUHAL_LEDGER_LOOKERS = 4, /* the processes that wait longest: they look for dead holders often */
    GPUHAL_LEDGER_GATE = 1023, /* the word of `ledger`, between head and copies, for threads that wait for its lock */
    GPUHAL_LEDGER_KEY_BYTES = 64,
    GPUHAL_LEDGER_LABEL_BYTES = GPUHAL_LEASE_LABEL_MAX + 1
};
#define GPUHAL_LEDGER_ALL_SLOTS UINT32_MAX
/* No table has a generation or a ticket above this, so that neither ever wraps. */
#define GPUHAL_LEDGER_COUNTER_MAX (UINT64_C(1) << 63)
/* No request asks for more bytes of a device. */
#define GPUHAL_LEDGER_BYTES_MAX (UINT64_C(1) << 62)
/* Waiting for this time raises a request by one priority: none that comes 3 s later passes one of the lowest. */
#define GPUHAL_LEDGER_AGING_NS UINT64_C(500000000)

/* A part of a physical device. */
typedef struct gpuhal_ledger_device {
    char key[GPUHAL_LEDGER_KEY_BYTES]; /* UUID, else PCI address, else id; "/" and the number of an AMD partition */
    char address[32];                  /* PCI address; "": unknown, or a partition */
    uint64_t bytes;                    /* 0: unknown, and not limited */
    uint64_t foreign_bytes;            /* used beyond leases, as sampled last */
    uint32_t slots;
    uint32_t busy_permille;            /* share of the time that it works, as sampled last; UINT32_MAX: unknown */
} gpuhal_ledger_device;

enum { GPUHAL_RECORD_WAITS = 1, GPUHAL_RECORD_HELD = 2 };

/* A lease, or a request that waits for one. */
typedef struct gpuhal_ledger_record {
    uint64_t ticket;     /* in the order of requests; never twice */
    uint64_t candidates; /* mask of devices that may be granted now: any `count` of them, or those of the items */
    uint64_t ailing;     /* mask of devices that are granted after their equals, since something is wrong with them */
    uint64_t lesser;     /* mask of places: the device there is lesser than that at the place before */
    uint64_t bytes;      /* of each device */
    uint64_t since_ns;   /* when it came into its state, by gpuhal_os_boot_ns() */
    uint64_t asked_ns;   /* when it was requested */
    uint64_t expires_ns; /* of a lease: when; of a request: how long it is to last; 0: never */
    uint64_t space, started; /* identify the process besides its number */
    int64_t pid;
    uint32_t place;      /* of its byte and its word */
    uint32_t state;      /* GPUHAL_RECORD_… */
    uint32_t count;      /* 0: it asks for its items */
    uint32_t slots;      /* of each device; GPUHAL_LEDGER_ALL_SLOTS */
    uint32_t flags;      /* GPUHAL_LEASE_… */
    uint32_t overtaken;
    uint32_t user;
    int32_t priority;
    char label[GPUHAL_LEDGER_LABEL_BYTES];
    uint8_t places[GPUHAL_LEDGER_DEVICES]; /* of the candidates, in the requester's order of preference */
} gpuhal_ledger_record;

/* A lease's part of one device, or that of a request for certain devices. */
typedef struct gpuhal_ledger_item {
    uint64_t ticket, bytes;
    uint32_t device, slots;
} gpuhal_ledger_item;

typedef struct gpuhal_ledger_state {
    uint64_t generation, next_ticket;
    uint32_t device_count, record_count, item_count, reserved;
    uint64_t liveness_inode, liveness_device; /* of the file with the bytes of these records */
    gpuhal_ledger_device devices[GPUHAL_LEDGER_DEVICES];
    gpuhal_ledger_record records[GPUHAL_LEDGER_RECORDS];
    gpuhal_ledger_item items[GPUHAL_LEDGER_ITEMS];
} gpuhal_ledger_state;

/* ---- ledger_state.c: the table by itself. */

/* Adds two sizes; UINT64_MAX if that is too much: on a device of unknown memory any number of leases may have any
 * size. */
static inline uint64_t gpuhal_ledger_sum(uint64_t bytes, uint64_t more)
{
    return more > UINT64_MAX - bytes ? UINT64_MAX : bytes + more;
}

/* Returns whether the library can have written every number in it: counts, indices, places and tickets that exist once,
 * and no device with more granted than it has. */
bool gpuhal_ledger_is_sound(const gpuhal_ledger_state *state);
/* Finds the device by key or address; GPUHAL_LEDGER_DEVICES: it is not there. Partitions have no address here; for
 * other devices the address decides, since vendors' drivers state different UUIDs of one device. An entry without a
 * UUID gets that of the device; an entry that has one, and that no record names, takes over the device's
 * description. */
uint32_t gpuhal_ledger_find_device(gpuhal_ledger_state *state, const gpuhal_ledger_device *device);
/* Finds the device, or adds it: in a full table in the place of a device that no record names and the mask `kept`
 * lacks. GPUHAL_LEDGER_DEVICES: there is no room. */
uint32_t gpuhal_ledger_device_index(gpuhal_ledger_state *state, const gpuhal_ledger_device *device, uint64_t kept);
/* Finds the record; NULL: there is none. */
gpuhal_ledger_record *gpuhal_ledger_find(gpuhal_ledger_state *state, uint64_t ticket);
const gpuhal_ledger_record *gpuhal_ledger_find_const(const gpuhal_ledger_state *state, uint64_t ticket);
/* Removes the record with its items. */
void gpuhal_ledger_remove(gpuhal_ledger_state *state, uint64_t ticket);
/* Adds an item; false without room. */
bool gpuhal_ledger_add_item(gpuhal_ledger_state *state, const gpuhal_ledger_item *item);
/* The slots and bytes of each device that leases have. */
typedef struct gpuhal_ledger_use {
    uint64_t slots[GPUHAL_LEDGER_DEVICES], bytes[GPUHAL_LEDGER_DEVICES];
} gpuhal_ledger_use;
/* Sums them up, in a table whose items name existing devices. */
void gpuhal_ledger_granted(const gpuhal_ledger_state *state, gpuhal_ledger_use *out_use);
/* Returns whether the record with this ticket is a held lease. */
bool gpuhal_ledger_is_held(const gpuhal_ledger_state *state, uint64_t ticket);

/* ---- grant.c: which request comes next. */

/* Returns whether the request could be granted if nothing were leased or used. */
bool gpuhal_grant_is_possible(const gpuhal_ledger_state *state, const gpuhal_ledger_record *record);
/* Returns the priority of a request, of a lease or a work slot, with the rise by its waiting. */
int64_t gpuhal_grant_priority(int32_t priority, uint64_t asked_ns, uint64_t now_ns);
/* Grants the requests that can be granted, in order: by priority with aging, then as they came. A request that does not
 * fit lets later ones pass, at most GPUHAL_LEDGER_OVERTAKEN_MAX of them; then its devices are kept for it. `is_alive`
 * judges a request before it is granted or others wait for it; a dead one is removed. Writes the places of granted
 * requests to `out_places`, with room for GPUHAL_LEDGER_RECORDS, and returns how many. Sets *out_changed if anything
 * changed. */
uint32_t gpuhal_grant_settle(gpuhal_ledger_state *state, uint64_t now_ns,
                             bool (*is_alive)(void *user, const gpuhal_ledger_record *record), void *user,
                             uint32_t *out_places, bool *out_changed);

/* ---- ledger_folder.c */

/* Finds the folder: `named`; if that is NULL, /run/gpuhal below `root`, which an administrator makes, if this user may
 * write there; else the user's own. The text is malloc'ed; *out_shared: not the user's own. */
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
    uint64_t epoch;            /* changes when other files than before have these names */
    uint64_t inode, device;    /* of `liveness`; 0: none yet, or it was removed */
} gpuhal_ledger_files;

/* `root` and `folder` as for gpuhal_ledger_folder_find(). Creates no file. */
gpuhal_status gpuhal_ledger_files_init(gpuhal_ledger_files *files, const char *root, const char *folder);
void gpuhal_ledger_files_finish(gpuhal_ledger_files *files);
/* Opens the files unless they are open, after a check of the folder and its owner. FILE, with a sentence. */
gpuhal_status gpuhal_ledger_files_open(gpuhal_ledger_files *files);
void gpuhal_ledger_files_close(gpuhal_ledger_files *files);
/* Closes the files, since one of them was removed or replaced: the next ones are of another epoch. */
void gpuhal_ledger_files_lose(gpuhal_ledger_files *files);
/* Returns whether the records of the state have their bytes in the `liveness` that is open. */
bool gpuhal_ledger_files_are_paired(const gpuhal_ledger_files *files, const gpuhal_ledger_state *state);
/* With the lock on `ledger`. Reads the newest whole copy, unless `state` has it already. Begins a new ledger, also in
 * place of a damaged one if no byte is locked; else FILE, with a sentence that says what to do. A file that is neither
 * empty nor a ledger is left as it is: FILE. */
gpuhal_status gpuhal_ledger_files_load(gpuhal_ledger_files *files, gpuhal_ledger_state *state);
/* With the lock. Writes the other copy. If that fails, the one before counts. */
gpuhal_status gpuhal_ledger_files_store(gpuhal_ledger_files *files, gpuhal_ledger_state *state);
/* Opens `liveness` once more, for the byte of one lease. Only its descriptor shows that an inherited lease lives, so it
 * gets one that no earlier child can have. Returns 0 or errno. */
int gpuhal_ledger_files_open_liveness(gpuhal_ledger_files *files, bool inherited, intptr_t *out_file);
/* Unlocks the byte and closes the file, or keeps it for the next lease if it is `reusable`: of this epoch, and no other
 * process can have it. */
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
    intptr_t fresh_file; /* with the lock on that request's byte */
    uint32_t fresh_place;
} gpuhal_ledger;

gpuhal_status gpuhal_ledger_init(gpuhal_ledger *ledger, const char *root, const char *folder);
void gpuhal_ledger_finish(gpuhal_ledger *ledger);
/* Enters the critical section: the state is there, without expired leases. BUSY if it is not free by `until_ns`, or for
 * two seconds; FILE, also if `liveness` was removed or replaced while leases are held. */
gpuhal_status gpuhal_ledger_begin(gpuhal_ledger *ledger, uint64_t until_ns);
/* Enters the section to take a record of the caller out, also if `liveness` was replaced. Expired leases stay. */
gpuhal_status gpuhal_ledger_begin_leave(gpuhal_ledger *ledger);
/* Grants the requests that can be granted; with `reap`, leases of processes that have ended are removed before. */
void gpuhal_ledger_settle(gpuhal_ledger *ledger, bool reap);
/* Whether a request for all devices might find no room. */
static inline bool gpuhal_ledger_is_full(const gpuhal_ledger_state *state)
{
    return state->record_count == GPUHAL_LEDGER_RECORDS ||
           state->item_count > GPUHAL_LEDGER_ITEMS - GPUHAL_LEDGER_DEVICES;
}
/* Removes requests of dead processes: those among the lookers, some of the others, and all if the table is full.
 * Returns how many lookers have a lower ticket, or, if all have, how many requests. */
uint32_t gpuhal_ledger_sweep(gpuhal_ledger *ledger, uint64_t ticket);
/* Leaves the section: writes changes, and wakes granted requests. If they cannot be written, nothing was changed, and
 * the byte of a fresh request is unlocked: others must not take it for that of a lease. */
gpuhal_status gpuhal_ledger_end(gpuhal_ledger *ledger);
/* Reads the word of a place, from any descriptor of `liveness`. In the critical section or not. */
uint32_t gpuhal_ledger_word(intptr_t liveness, uint32_t place);

#endif
