/* telemetry/clients.c: values of one device from the latest walks; see clients.h. */
#include "telemetry/clients.h"

#include "telemetry/rate.h"

#include <string.h>

/* The purpose of an engine, derived from the engine's name in the driver's report. */
typedef enum { CORE, ENCODER, DECODER, VIDEO, OTHER } engine_kind;

static engine_kind kind_of(const char *name)
{
    static const struct {
        const char *name;
        engine_kind kind;
    } kinds[] = {
        {"gfx", CORE},     {"compute", CORE}, {"render", CORE},          {"rcs", CORE},    {"ccs", CORE},
        {"gpu", CORE},     {"bin", CORE},     {"csd", CORE},             {"fragment", CORE}, {"vertex-tiler", CORE},
        {"panthor", CORE}, {"3d", CORE},      {"enc", ENCODER},          {"enc_1", ENCODER}, {"dec", DECODER},
        {"video", VIDEO},  {"vcs", VIDEO},    {"jpeg", DECODER},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(kinds[i].name, name) == 0) {
            return kinds[i].kind;
        }
    }
    return OTHER;
}

static bool serves(engine_kind kind, gpuhal_key key)
{
    switch (key) {
    case GPUHAL_VALUE_UTILIZATION_CORE_PERMILLE:
        return kind == CORE;
    case GPUHAL_VALUE_UTILIZATION_ENCODER_PERMILLE:
        return kind == ENCODER || kind == VIDEO;
    case GPUHAL_VALUE_UTILIZATION_DECODER_PERMILLE:
        return kind == DECODER || kind == VIDEO;
    default:
        return false;
    }
}

bool gpuhal_clients_are_of(const char *driver)
{
    static const char drivers[][12] = {"amdgpu",   "i915",    "xe",  "msm",        "adreno",
                                       "panfrost", "panthor", "v3d", "etnaviv-gpu"};
    for (size_t i = 0; i < sizeof drivers / sizeof drivers[0]; i++) {
        if (strcmp(drivers[i], driver) == 0) {
            return true;
        }
    }
    return false;
}

bool gpuhal_client_is_of(const gpuhal_client *client, const gpuhal_client_match *match)
{
    return match->address[0] ? strcmp(client->place, match->address) == 0
                             : strcmp(client->place, match->nodes[0]) == 0 ||
                                   strcmp(client->place, match->nodes[1]) == 0;
}

/* Returns the same client in another walk, or NULL. */
static const gpuhal_client *find(const gpuhal_clients *clients, const gpuhal_client *wanted)
{
    uint32_t low = 0, high = clients->count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        const gpuhal_client *client = &clients->list[middle];
        const int place = strcmp(client->place, wanted->place);
        if (place == 0 && client->id == wanted->id) {
            return client;
        }
        if (place < 0 || (place == 0 && client->id < wanted->id)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return NULL;
}

/* Returns the client's share of an engine's time between two walks, in permille of the time of all engines with this
 * name. `then` is NULL for a new client, whose entire time counts. A counter that decreased is treated as a new
 * client's counter. */
static double share_of(const gpuhal_client *then, const gpuhal_engine *now, uint64_t passed_ns)
{
    const gpuhal_engine *before = NULL;
    for (uint32_t i = 0; then && i < then->engine_count; i++) {
        before = strcmp(then->engines[i].name, now->name) == 0 ? &then->engines[i] : before;
    }
    if (before && before->busy > now->busy) {
        before = NULL;
    }
    const double busy = (double)(now->busy - (before ? before->busy : 0));
    double passed = (double)passed_ns;
    if (now->passed > 0) { /* counters in cycles; the share is unknown without an earlier reading */
        passed = before && now->passed > before->passed ? (double)(now->passed - before->passed) : 0;
    }
    const double share = passed > 0 ? busy * 1000 / passed / now->capacity : 0;
    return !before && share > 1000 ? 0 : share;
}

/* An engine of a device, with the sum of all clients' shares. */
typedef struct engine_sum {
    const char *name;
    double share;
} engine_sum;

/* Returns the busy time of the busiest engine that serves the key, in permille. Engines run in parallel, so a sum would
 * count the same time twice. */
static double busiest(const gpuhal_walks *walks, const gpuhal_client_match *match, gpuhal_key key)
{
    engine_sum sums[GPUHAL_CLIENT_ENGINES] = {0};
    const uint64_t passed_ns = walks->latest.time_ns - walks->before.time_ns;
    double most = 0;
    for (uint32_t c = 0; c < walks->latest.count; c++) {
        const gpuhal_client *client = &walks->latest.list[c];
        if (!gpuhal_client_is_of(client, match)) {
            continue;
        }
        const gpuhal_client *then = find(&walks->before, client);
        for (uint32_t e = 0; e < client->engine_count; e++) {
            const gpuhal_engine *engine = &client->engines[e];
            uint32_t s = 0;
            while (s < GPUHAL_CLIENT_ENGINES && sums[s].name && strcmp(sums[s].name, engine->name) != 0) {
                s++;
            }
            if (s < GPUHAL_CLIENT_ENGINES && serves(kind_of(engine->name), key)) {
                sums[s].name = engine->name;
                sums[s].share += share_of(then, engine, passed_ns);
                most = sums[s].share > most ? sums[s].share : most;
            }
        }
    }
    return most;
}

bool gpuhal_walks_has(gpuhal_key key)
{
    return serves(CORE, key) || serves(VIDEO, key) || key == GPUHAL_VALUE_MEMORY_USED_BYTES ||
           key == GPUHAL_VALUE_MEMORY_FREE_BYTES;
}

/* Returns whether the two walks can be compared. If the earlier walk missed a client, the client's entire time would
 * count. */
static bool are_two(const gpuhal_walks *walks)
{
    return walks->before.time_ns != 0 && !walks->before.partial &&
           walks->latest.time_ns - walks->before.time_ns <= GPUHAL_RATE_MAX_NS;
}

static void set_busy(const gpuhal_walks *walks, const gpuhal_client_match *match, gpuhal_value *value)
{
    if (!are_two(walks)) {
        gpuhal_value_miss(value, GPUHAL_MISSING_NOT_READ, "it needs two readings of the engines' time");
        return;
    }
    const double share = busiest(walks, match, value->key);
    /* The counters are read one after the other, so the sum may be slightly above 1000. */
    if (share > 1100) {
        gpuhal_value_miss(value, GPUHAL_MISSING_FAILED, "the engines' counters add up to more than 100 percent");
    } else {
        gpuhal_value_set(value, share > 1000 ? 1000 : (uint64_t)(share + 0.5), "fdinfo");
    }
}

static void set_memory(const gpuhal_walks *walks, const gpuhal_client_match *match, uint64_t total,
                       gpuhal_value *value)
{
    uint64_t used = 0;
    for (uint32_t c = 0; c < walks->latest.count; c++) {
        const gpuhal_client *client = &walks->latest.list[c];
        used += gpuhal_client_is_of(client, match) ? client->device_memory : 0;
    }
    /* If a device shares the host's memory, other programs also use that memory. */
    if (match->is_unified || total == 0 || used > total) {
        gpuhal_value_miss(value, GPUHAL_MISSING_NOT_SUPPORTED, "the system counts no memory of the device's own");
    } else {
        gpuhal_value_set(value, value->key == GPUHAL_VALUE_MEMORY_USED_BYTES ? used : total - used, "fdinfo");
    }
}

void gpuhal_walks_value(gpuhal_walks *walks, const gpuhal_client_match *match, uint64_t memory_total,
                        gpuhal_value *value)
{
    gpuhal_mutex_lock(&walks->mutex);
    if (walks->latest.partial) {
        gpuhal_value_miss(value, GPUHAL_MISSING_TIMED_OUT, "not all processes could be read in time");
    } else if (walks->latest.hidden) {
        gpuhal_value_miss(value, GPUHAL_MISSING_NO_PERMISSION,
                          "only root, outside of containers, sees all processes on the device");
    } else if (value->key == GPUHAL_VALUE_MEMORY_USED_BYTES || value->key == GPUHAL_VALUE_MEMORY_FREE_BYTES) {
        set_memory(walks, match, memory_total, value);
    } else {
        set_busy(walks, match, value);
    }
    gpuhal_mutex_unlock(&walks->mutex);
}

void gpuhal_walks_visit(gpuhal_walks *walks, const gpuhal_client_match *match, gpuhal_client_fn *visit, void *user)
{
    gpuhal_mutex_lock(&walks->mutex);
    const uint64_t passed_ns = walks->latest.time_ns - walks->before.time_ns;
    for (uint32_t c = 0; c < walks->latest.count; c++) {
        const gpuhal_client *client = &walks->latest.list[c];
        double most = 0;
        for (uint32_t e = 0; gpuhal_client_is_of(client, match) && are_two(walks) && e < client->engine_count; e++) {
            const double share = share_of(find(&walks->before, client), &client->engines[e], passed_ns);
            most = share > most ? share : most;
        }
        if (gpuhal_client_is_of(client, match)) {
            const bool known = are_two(walks) && client->engine_count > 0 && most <= 1100;
            visit(user, client, !known ? UINT32_MAX : most > 1000 ? 1000 : (uint32_t)(most + 0.5));
        }
    }
    gpuhal_mutex_unlock(&walks->mutex);
}
