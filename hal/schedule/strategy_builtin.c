/* schedule/strategy_builtin.c: implements the library's strategies cpu, single_device and rank_per_device, and the
 * choice for `auto`. */
#include "schedule/strategy.h"

#include "device/for_schedule.h"

#include <stdlib.h>
#include <string.h>

enum { SHARE_PERMILLE = 900 };

typedef struct workers {
    uint32_t count;
    uint32_t device_count;       /* at least 1; worker i uses device i modulo this number */
    gpuhal_strategy_limit limit; /* single_device */
    gpuhal_device *devices[];
} workers;

/* With `of_cpu`, lists only the CPU. Otherwise, lists one interface of each device, except the CPU and devices that
 * must be named. */
static gpuhal_status list_devices(gpuhal *gpu, bool of_cpu, gpuhal_offers *out_offers)
{
    const gpuhal_offers_desc all = {.call = "gpuhal_strategy_create"};
    gpuhal_status status = gpuhal_offers_read(gpu, &all, out_offers);
    uint32_t count = 0;
    for (uint32_t i = 0; i < out_offers->count && !status; i++) {
        const gpuhal_offer *offer = &out_offers->list[i];
        if (of_cpu ? offer->is_cpu : offer->preferred && offer->lack == GPUHAL_LACK_NOTHING) {
            out_offers->devices[count++] = out_offers->devices[i];
        }
    }
    out_offers->count = count;
    return status;
}

static gpuhal_status make(uint32_t count, gpuhal_device *const *devices, uint32_t device_count, void **out_state)
{
    workers *own = calloc(1, sizeof *own + device_count * sizeof *own->devices);
    if (!own) {
        return gpuhal_error_host_memory();
    }
    own->count = count;
    own->device_count = device_count;
    memcpy(own->devices, devices, device_count * sizeof *own->devices);
    *out_state = own;
    return GPUHAL_OK;
}

static uint32_t count_workers(void *state)
{
    return ((const workers *)state)->count;
}

static gpuhal_status find_device(void *state, uint32_t worker, gpuhal_device **out_device)
{
    const workers *own = state;
    *out_device = own->devices[worker % own->device_count];
    return GPUHAL_OK;
}

/* ---- cpu */

static gpuhal_status begin_cpu(void *user, gpuhal *gpu, const gpuhal_strategy_desc *desc, void **out_state)
{
    (void)user;
    gpuhal_offers offers;
    gpuhal_status status = list_devices(gpu, true, &offers);
    if (!status && offers.count == 0) {
        status =
            gpuhal_error_set(GPUHAL_ERROR_NO_DEVICE, "gpuhal_strategy_create: cpu: the plugin cpu lists no device");
    }
    status =
        status ? status : make(desc->workers ? desc->workers : gpuhal_os_processors(), offers.devices, 1, out_state);
    gpuhal_offers_finish(&offers);
    return status;
}

/* ---- single_device */

static gpuhal_status select_device(gpuhal *gpu, const char *selector, gpuhal_device **out_device)
{
    gpuhal_status status = gpuhal_select(gpu, selector, 0, out_device, NULL);
    if (!status && !selector && strcmp((*out_device)->candidate->name, "cpu") == 0) {
        status =
            gpuhal_error_set(GPUHAL_ERROR_NO_DEVICE,
                             "gpuhal_strategy_create: single_device: there is no device but the CPU, which must be "
                             "named");
    }
    return status;
}

/* The caller holds the mutex. Sets the lowest limit of the application and the device's strategies. */
static void set_smallest(gpuhal_strategies *strategies, gpuhal_device *device, uint64_t before_bytes)
{
    uint64_t bytes = before_bytes;
    for (const gpuhal_strategy_limit *at = strategies->limits; at; at = at->next) {
        bytes = at->device == device && (bytes == 0 || at->share_bytes < bytes) ? at->share_bytes : bytes;
    }
    for (gpuhal_strategy_limit *at = strategies->limits; at; at = at->next) {
        if (at->device == device) {
            at->before_bytes = before_bytes;
            at->set_bytes = bytes;
        }
    }
    (void)gpuhal_device_limit_memory(device, bytes);
}

/* If the application has changed the limit in the meantime, the new limit is restored later. */
static void add_limit(gpuhal_strategy_limit *own)
{
    gpuhal_strategies *strategies = gpuhal_strategies_of(own->device->gpu);
    gpuhal_mutex_lock(&strategies->mutex);
    uint64_t before = atomic_load(&own->device->limit_bytes);
    for (const gpuhal_strategy_limit *at = strategies->limits; at; at = at->next) {
        if (at->device == own->device && at->set_bytes == before) {
            before = at->before_bytes;
            break;
        }
    }
    own->next = strategies->limits;
    strategies->limits = own;
    set_smallest(strategies, own->device, before);
    gpuhal_mutex_unlock(&strategies->mutex);
}

/* Keeps a limit that the application has set in the meantime. */
static void remove_limit(gpuhal_strategy_limit *own)
{
    gpuhal_strategies *strategies = gpuhal_strategies_of(own->device->gpu);
    gpuhal_mutex_lock(&strategies->mutex);
    gpuhal_strategy_limit **link = &strategies->limits;
    while (*link && *link != own) {
        link = &(*link)->next;
    }
    *link = own->next;
    if (atomic_load(&own->device->limit_bytes) == own->set_bytes) {
        set_smallest(strategies, own->device, own->before_bytes);
    }
    gpuhal_mutex_unlock(&strategies->mutex);
}

static gpuhal_status limit(gpuhal_device *device, const gpuhal_strategy_desc *desc, workers *own)
{
    const uint64_t permille = desc->memory_permille ? desc->memory_permille : SHARE_PERMILLE;
    uint64_t total = 0;
    gpuhal_status status = gpuhal_device_u64(device, GPUHAL_FACT_MEMORY_TOTAL_BYTES, &total);
    if (status) {
        return status;
    }
    uint64_t share = total / 1000 * permille + total % 1000 * permille / 1000;
    share = desc->flags & GPUHAL_STRATEGY_PROCESSES ? share / own->count : share;
    own->limit = (gpuhal_strategy_limit){.device = device, .share_bytes = share ? share : 1};
    add_limit(&own->limit);
    return GPUHAL_OK;
}

static gpuhal_status begin_single(void *user, gpuhal *gpu, const gpuhal_strategy_desc *desc, void **out_state)
{
    (void)user;
    gpuhal_device *device = NULL;
    gpuhal_status status = select_device(gpu, desc->device, &device);
    status = status ? status : make(desc->workers ? desc->workers : 1, &device, 1, out_state);
    if (!status) {
        status = limit(device, desc, *out_state);
        if (status) {
            free(*out_state);
            *out_state = NULL;
        }
    }
    return status;
}

static void end_single(void *state)
{
    workers *own = state;
    remove_limit(&own->limit);
    free(own);
}

/* ---- rank_per_device */

static gpuhal_status begin_ranks(void *user, gpuhal *gpu, const gpuhal_strategy_desc *desc, void **out_state)
{
    (void)user;
    gpuhal_offers offers;
    gpuhal_launcher launcher;
    const char *variable = NULL;
    gpuhal_status status = gpuhal_launcher_here(&launcher, &variable);
    if (status) {
        return status;
    }
    status = list_devices(gpu, false, &offers);
    bool is_bound = false; /* not checked if the program or GPUHAL_DEVICES restricts the devices, because this affects
                            * every rank alike */
    if (!status && !gpu->settings.devices && !gpu->settings.environment_devices) {
        status = gpuhal_launcher_is_bound(&launcher, offers.count, &is_bound);
    }
    const bool shares = is_bound || (desc->flags & GPUHAL_STRATEGY_SHARE_DEVICES) != 0;
    if (!status && offers.count == 0) {
        status =
            gpuhal_error_set(GPUHAL_ERROR_NO_DEVICE,
                             "gpuhal_strategy_create: rank_per_device: there is no device but the CPU and software "
                             "drivers");
    }
    if (!status && !shares && launcher.local_rank >= offers.count) {
        status = gpuhal_error_set(GPUHAL_ERROR_OUT_OF_RANGE,
                                  "gpuhal_strategy_create: rank_per_device: %s is \"%u\", and this process sees %u "
                                  "device%s; GPUHAL_STRATEGY_SHARE_DEVICES allows several ranks for one",
                                  variable, launcher.local_rank, offers.count, offers.count == 1 ? "" : "s");
    }
    uint32_t count = offers.count;
    if (shares) {
        count = desc->workers > count ? desc->workers : count;
        count = launcher.local_count > count ? launcher.local_count : count;
        count = launcher.local_rank >= count ? launcher.local_rank + 1 : count;
    }
    status = status ? status : make(count, offers.devices, offers.count, out_state);
    gpuhal_offers_finish(&offers);
    return status;
}

/* ---- the choice */

const gpuhal_strategy_table *gpuhal_strategy_builtin(const char *name)
{
    static const gpuhal_strategy_table tables[] = {
        {.size = sizeof *tables,
         .name = "cpu",
         .init = begin_cpu,
         .worker_count = count_workers,
         .device_for_worker = find_device,
         .cleanup = free},
        {.size = sizeof *tables,
         .name = "single_device",
         .init = begin_single,
         .worker_count = count_workers,
         .device_for_worker = find_device,
         .cleanup = end_single},
        {.size = sizeof *tables,
         .name = "rank_per_device",
         .init = begin_ranks,
         .worker_count = count_workers,
         .device_for_worker = find_device,
         .cleanup = free},
    };
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        if (strcmp(tables[i].name, name) == 0) {
            return &tables[i];
        }
    }
    return NULL;
}

gpuhal_status gpuhal_strategy_choose(gpuhal *gpu, const char **out_name)
{
    gpuhal_offers offers;
    gpuhal_status status = list_devices(gpu, false, &offers);
    *out_name = offers.count == 0 ? "cpu" : offers.count == 1 ? "single_device" : "rank_per_device";
    gpuhal_offers_finish(&offers);
    return status;
}
