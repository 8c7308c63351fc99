/* schedule/strategy.c: creates strategies by name, including the application's own, and asks them for devices. */
#include "schedule/strategy.h"

#include "device/for_schedule.h"

#include <stdlib.h>
#include <string.h>

enum { NAME_BYTES = 64 };

typedef struct gpuhal_strategy_entry {
    struct gpuhal_strategy_entry *next;
    gpuhal_strategy_table table;
    char name[NAME_BYTES];
} entry;

struct gpuhal_strategy {
    gpuhal *gpu;
    const gpuhal_strategy_table *table; /* table of the library or of an entry */
    void *state;
    uint32_t worker_count;
    gpuhal_processors allowed; /* processors of the creating thread; empty if the system does not report them */
};

gpuhal_strategies *gpuhal_strategies_create(void)
{
    gpuhal_strategies *strategies = calloc(1, sizeof *strategies);
    if (strategies) {
        gpuhal_mutex_init(&strategies->mutex);
    }
    return strategies;
}

void gpuhal_strategies_destroy(gpuhal_strategies *strategies)
{
    if (!strategies) {
        return;
    }
    for (entry *at = strategies->first, *next = NULL; at; at = next) {
        next = at->next;
        free(at);
    }
    gpuhal_mutex_finish(&strategies->mutex);
    free(strategies);
}

static bool is_builtin(const char *name)
{
    return strcmp(name, "auto") == 0 || gpuhal_strategy_builtin(name);
}

/* The caller holds the mutex. */
static entry *find_entry(const gpuhal_strategies *strategies, const char *name)
{
    entry *at = strategies->first;
    while (at && strcmp(at->name, name) != 0) {
        at = at->next;
    }
    return at;
}

gpuhal_status gpuhal_strategy_register(gpuhal *gpu, const gpuhal_strategy_table *table)
{
    gpuhal_strategy_table own = {0};
    if (gpu && table) {
        memcpy(&own, table, table->size < sizeof own ? table->size : sizeof own);
    }
    if (!own.name || !own.worker_count || !own.device_for_worker || own.name[0] == 0 ||
        strnlen(own.name, NAME_BYTES) == NAME_BYTES || own.reserved != 0) {
        return gpuhal_error_set(
            GPUHAL_ERROR_INVALID_ARGUMENT,
            "gpuhal_strategy_register: gpu or table is NULL, its size is 0, its name is not of 1 to "
            "63 bytes, worker_count or device_for_worker is missing, or reserved is not 0");
    }
    gpuhal_status status = gpuhal_check(gpu);
    entry *added = status ? NULL : calloc(1, sizeof *added);
    if (!added) {
        return status ? status : gpuhal_error_host_memory();
    }
    added->table = own;
    memcpy(added->name, own.name, strlen(own.name) + 1);
    added->table.name = added->name;
    gpuhal_strategies *strategies = gpuhal_strategies_of(gpu);
    gpuhal_mutex_lock(&strategies->mutex);
    const bool is_taken = is_builtin(added->name) || find_entry(strategies, added->name);
    if (!is_taken) {
        added->next = strategies->first;
        strategies->first = added;
    }
    gpuhal_mutex_unlock(&strategies->mutex);
    if (is_taken) {
        status = gpuhal_error_set(GPUHAL_ERROR_BUSY, "gpuhal_strategy_register: there is a strategy \"%s\" already",
                                  added->name);
        free(added);
    }
    return status;
}

/* The message lists all strategies. */
static gpuhal_status refuse_name(const gpuhal_strategies *strategies, const char *name)
{
    gpuhal_text names = {0};
    for (const entry *at = strategies->first; at; at = at->next) {
        gpuhal_text_printf(&names, ", %s", at->name);
    }
    gpuhal_status status = gpuhal_error_set(
        GPUHAL_ERROR_NOT_FOUND,
        "gpuhal_strategy_create: there is no strategy \"%.64s\"; there are auto, cpu, single_device, rank_per_device%s",
        name, gpuhal_text_get(&names));
    gpuhal_text_finish(&names);
    return status;
}

static gpuhal_status find_table(gpuhal *gpu, const char *name, const gpuhal_strategy_table **out_table)
{
    gpuhal_status status = strcmp(name, "auto") == 0 ? gpuhal_strategy_choose(gpu, &name) : GPUHAL_OK;
    if (status) {
        return status;
    }
    gpuhal_strategies *strategies = gpuhal_strategies_of(gpu);
    gpuhal_mutex_lock(&strategies->mutex);
    const entry *own = find_entry(strategies, name);
    *out_table = own ? &own->table : gpuhal_strategy_builtin(name);
    status = *out_table ? GPUHAL_OK : refuse_name(strategies, name);
    gpuhal_mutex_unlock(&strategies->mutex);
    return status;
}

/* Returns the status of an application's function, or INVALID_ARGUMENT if the status is neither OK nor a known error.
 * Adds an error detail if the function set no detail, or a detail with another status. */
static gpuhal_status result_of(const gpuhal_strategy_table *table, const char *function, gpuhal_status status)
{
    if (status == GPUHAL_OK || (status < 0 && gpuhal_last_error()->status == status)) {
        return status;
    }
    const bool is_error = status < 0 && strcmp(gpuhal_status_name(status), "unknown status") != 0;
    return gpuhal_error_set(is_error ? status : GPUHAL_ERROR_INVALID_ARGUMENT, "strategy %s: %s returned %s (%d)",
                            table->name, function, gpuhal_status_name(status), status);
}

static gpuhal_status begin(gpuhal_strategy *own, const gpuhal_strategy_desc *desc)
{
    const gpuhal_strategy_table *table = own->table;
    own->state = table->user;
    gpuhal_status status = GPUHAL_OK;
    if (table->init) {
        gpuhal_error_clear();
        status = result_of(table, "init", table->init(table->user, own->gpu, desc, &own->state));
    }
    own->worker_count = status ? 0 : table->worker_count(own->state);
    if (!status && gpuhal_os_thread_processors(&own->allowed) != 0) {
        memset(&own->allowed, 0, sizeof own->allowed);
    }
    return status;
}

gpuhal_status gpuhal_strategy_create(gpuhal *gpu, const gpuhal_strategy_desc *desc, gpuhal_strategy **out_strategy)
{
    if (out_strategy) {
        *out_strategy = NULL;
    }
    gpuhal_strategy_desc from = {.size = sizeof from};
    if (desc) {
        memcpy(&from, desc, desc->size < sizeof from ? desc->size : sizeof from);
    }
    if (!gpu || !out_strategy || (desc && desc->size == 0) || from.memory_permille > 1000 ||
        (from.flags & ~(uint32_t)(GPUHAL_STRATEGY_PROCESSES | GPUHAL_STRATEGY_SHARE_DEVICES))) {
        return gpuhal_error_set(
            GPUHAL_ERROR_INVALID_ARGUMENT,
            "gpuhal_strategy_create: gpu or out_strategy is NULL, the size is 0, memory_permille is "
            "above 1000, or a flag is unknown");
    }
    gpuhal_status status = gpuhal_check(gpu);
    gpuhal_strategy *own = status ? NULL : calloc(1, sizeof *own);
    if (!own) {
        return status ? status : gpuhal_error_host_memory();
    }
    own->gpu = gpu;
    status = find_table(gpu, from.name ? from.name : "auto", &own->table);
    status = status ? status : begin(own, &from);
    if (status) {
        free(own);
        return status;
    }
    *out_strategy = own;
    return GPUHAL_OK;
}

void gpuhal_strategy_destroy(gpuhal_strategy *strategy)
{
    if (strategy && !gpuhal_is_inherited(strategy->gpu)) {
        if (strategy->table->init && strategy->table->cleanup) {
            strategy->table->cleanup(strategy->state);
        }
        free(strategy);
    }
}

const char *gpuhal_strategy_name(const gpuhal_strategy *strategy)
{
    return strategy ? strategy->table->name : "";
}

uint32_t gpuhal_strategy_worker_count(const gpuhal_strategy *strategy)
{
    return strategy ? strategy->worker_count : 0;
}

gpuhal_status gpuhal_strategy_device(const gpuhal_strategy *strategy, uint32_t worker, gpuhal_device **out_device)
{
    if (out_device) {
        *out_device = NULL;
    }
    if (!strategy || !out_device) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_strategy_device: an argument is NULL");
    }
    gpuhal_status status = gpuhal_check(strategy->gpu);
    if (!status && worker >= strategy->worker_count) {
        status = gpuhal_error_set(GPUHAL_ERROR_OUT_OF_RANGE, "strategy %s: there is no worker %u of %u",
                                  strategy->table->name, worker, strategy->worker_count);
    }
    gpuhal_device *device = NULL;
    if (!status) {
        gpuhal_error_clear();
        status = result_of(strategy->table, "device_for_worker",
                           strategy->table->device_for_worker(strategy->state, worker, &device));
    }
    if (!status && (!device || device->gpu != strategy->gpu)) {
        status = gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                                  "strategy %s: device_for_worker gave worker %u no device of its gpuhal object",
                                  strategy->table->name, worker);
    }
    status = status ? status : gpuhal_device_check(device);
    *out_device = status ? NULL : device;
    return status;
}

gpuhal_status gpuhal_strategy_bind(const gpuhal_strategy *strategy, uint32_t worker)
{
    if (!strategy) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_strategy_bind: strategy is NULL");
    }
    gpuhal_device *device = NULL;
    gpuhal_status status = gpuhal_strategy_device(strategy, worker, &device);
    return status ? status : gpuhal_bind_near(device, &strategy->allowed);
}
