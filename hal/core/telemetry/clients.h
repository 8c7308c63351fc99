/* telemetry/clients.h: the clients of all graphics devices, found by walking the processes (fdinfo.h), and the load of
 * the devices' engines between two walks.
 *
 * Only root can read the clients of another user's process. A sum over all clients is therefore valid only if every
 * process could be read. A walk over many processes takes milliseconds, so walks are made at most four times a second,
 * in a job with a deadline. */
#ifndef GPUHAL_TELEMETRY_CLIENTS_H
#define GPUHAL_TELEMETRY_CLIENTS_H

#include "base/job.h"
#include "telemetry/fdinfo.h"
#include "telemetry/value.h"

enum { GPUHAL_CLIENTS_MAX = 4096 };
/* The target of /proc/self/ns/pid outside containers (PROC_PID_INIT_INO in the kernel). */
#define GPUHAL_FIRST_PID_NAMESPACE "pid:[4026531836]"
/* Returns whether this process is in a pid namespace other than the first. In such a namespace, the pids that drivers
 * list do not exist or belong to other processes. */
bool gpuhal_pids_are_contained(const char *root);
#define GPUHAL_WALK_MIN_NS UINT64_C(250000000)

/* The clients found by one walk, sorted by place and id, without duplicates. */
typedef struct gpuhal_clients {
    gpuhal_client *list;
    uint32_t count, capacity;
    uint64_t time_ns;
    bool hidden;  /* some processes of the machine are invisible or unreadable */
    bool partial; /* the walk was cut short by its deadline, the client limit or a lack of memory */
} gpuhal_clients;

/* The two latest walks. Freed with the last reference. The owner and each job hold a reference. */
typedef struct gpuhal_walks {
    _Atomic uint32_t references;
    gpuhal_mutex mutex; /* protects the members below */
    gpuhal_clients before, latest;
    uint32_t abandoned; /* walks that have not returned */
} gpuhal_walks;
gpuhal_walks *gpuhal_walks_create(void);
/* Accepts NULL. */
void gpuhal_walks_release(gpuhal_walks *walks);
bool gpuhal_walks_are_recent(gpuhal_walks *walks);
/* Walks ROOT/proc unless the latest walk is recent. Returns false if no walk finished in time. */
bool gpuhal_walks_update(gpuhal_walks *walks, const char *root, uint64_t *left_ns);

/* Returns whether the kernel driver reports its clients. */
bool gpuhal_clients_are_of(const char *driver);

/* Identifies a device among the clients. */
typedef struct gpuhal_client_match {
    char address[GPUHAL_CLIENT_PLACE_BYTES]; /* PCI address, or "" */
    char nodes[2][GPUHAL_CLIENT_PLACE_BYTES]; /* names of its device nodes, if it has no PCI address */
    bool is_unified; /* its memory is host memory */
} gpuhal_client_match;
bool gpuhal_client_is_of(const gpuhal_client *client, const gpuhal_client_match *match);
/* Returns whether the walks may have the value. */
bool gpuhal_walks_has(gpuhal_key key);
/* Sets the value, or the reason why it is missing, from the latest walks. */
void gpuhal_walks_value(gpuhal_walks *walks, const gpuhal_client_match *match, uint64_t memory_total,
                        gpuhal_value *value);

/* `path` is the process's directory below /proc. Returns 0 or errno. */
int gpuhal_clients_of_process(gpuhal_clients *clients, const char *path, uint32_t pid);
void gpuhal_clients_finish(gpuhal_clients *clients);

/* Calls `visit` for each of the device's clients in the latest walk, with the mutex held. `busy_permille` is the
 * client's share of its busiest engine's time since the previous walk, or UINT32_MAX if unknown. */
typedef void gpuhal_client_fn(void *user, const gpuhal_client *client, uint32_t busy_permille);
void gpuhal_walks_visit(gpuhal_walks *walks, const gpuhal_client_match *match, gpuhal_client_fn *visit, void *user);

#endif
