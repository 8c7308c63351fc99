/* telemetry/clients.h: the clients of all graphics devices, found by a walk over the processes (fdinfo.h), and how busy
 * the engines were between two walks.
 *
 * A process of another user shows its clients to root alone. So a sum over all clients is a value only if every process
 * could be read. A walk over many processes takes milliseconds: it is made at most four times a second, on a job, and
 * ends at a deadline. */
#ifndef GPUHAL_TELEMETRY_CLIENTS_H
#define GPUHAL_TELEMETRY_CLIENTS_H

#include "base/job.h"
#include "telemetry/fdinfo.h"
#include "telemetry/value.h"

enum { GPUHAL_CLIENTS_MAX = 4096 };
/* The target of /proc/self/ns/pid outside of containers (PROC_PID_INIT_INO of the kernel). */
#define GPUHAL_FIRST_PID_NAMESPACE "pid:[4026531836]"
/* Returns whether this process is in another one: drivers then list pids that mean other processes here, or none. */
bool gpuhal_pids_are_contained(const char *root);
#define GPUHAL_WALK_MIN_NS UINT64_C(250000000)

/* The clients of one walk, sorted by place and id, each once. */
typedef struct gpuhal_clients {
    gpuhal_client *list;
    uint32_t count, capacity;
    uint64_t time_ns;
    bool hidden;  /* some processes of the machine are not visible, or may not be read */
    bool partial; /* the walk was ended by its deadline, by the limit of clients, or without memory */
} gpuhal_clients;

/* The two latest walks. Freed with the last reference: one is the owner's, others are those of jobs. */
typedef struct gpuhal_walks {
    _Atomic uint32_t references;
    gpuhal_mutex mutex; /* protects the members below */
    gpuhal_clients before, latest;
    uint32_t abandoned; /* walks that have not returned */
} gpuhal_walks;
gpuhal_walks *gpuhal_walks_create(void);
/* NULL does nothing. */
void gpuhal_walks_release(gpuhal_walks *walks);
/* Returns whether the latest walk need not be made again. */
bool gpuhal_walks_are_recent(gpuhal_walks *walks);
/* Makes a walk over ROOT/proc unless the latest is recent. Returns false if none could be made in time. */
bool gpuhal_walks_update(gpuhal_walks *walks, const char *root, uint64_t *left_ns);

/* Returns whether a kernel driver reports its clients. */
bool gpuhal_clients_are_of(const char *driver);

/* A device among the clients. */
typedef struct gpuhal_client_match {
    char address[GPUHAL_CLIENT_PLACE_BYTES]; /* PCI address, or "" */
    char nodes[2][GPUHAL_CLIENT_PLACE_BYTES]; /* names of its nodes, if it has no address */
    bool is_unified; /* its memory is the host's */
} gpuhal_client_match;
bool gpuhal_client_is_of(const gpuhal_client *client, const gpuhal_client_match *match);
/* Returns whether the walks may have the value, and sets it. */
bool gpuhal_walks_has(gpuhal_key key);
void gpuhal_walks_value(gpuhal_walks *walks, const gpuhal_client_match *match, uint64_t memory_total,
                        gpuhal_value *value);

/* Adds the clients of one process: PATH is its directory below /proc. Returns 0 or errno. */
int gpuhal_clients_of_process(gpuhal_clients *clients, const char *path, uint32_t pid);
/* Frees the list. */
void gpuhal_clients_finish(gpuhal_clients *clients);

/* Calls `visit` for each client of the device in the latest walk, with its share of the busiest engine's time since the
 * walk before, in permille; UINT32_MAX: unknown. With the mutex held. */
typedef void gpuhal_client_fn(void *user, const gpuhal_client *client, uint32_t busy_permille);
void gpuhal_walks_visit(gpuhal_walks *walks, const gpuhal_client_match *match, gpuhal_client_fn *visit, void *user);

#endif
