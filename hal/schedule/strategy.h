/* schedule/strategy.h: strategies. strategy.c contains the public functions, and strategy_builtin.c the library's
 * strategy tables. launcher.c reads the variables of launchers, and bind.c binds threads to the processors near a
 * device. */
#ifndef GPUHAL_SCHEDULE_STRATEGY_H
#define GPUHAL_SCHEDULE_STRATEGY_H

#include "schedule/schedule.h"

#include <gpuhal/schedule/strategy.h>

/* The limit that a strategy sets on a device's memory while the strategy exists. */
typedef struct gpuhal_strategy_limit {
    struct gpuhal_strategy_limit *next;
    gpuhal_device *device;
    uint64_t share_bytes;
    uint64_t before_bytes; /* previous limit of the application, or 0 */
    uint64_t set_bytes;    /* effective limit: the smallest of before_bytes and the strategies' limits */
} gpuhal_strategy_limit;

/* The strategies that the application has registered with a gpuhal object, and the limits of existing strategies. */
typedef struct gpuhal_strategies {
    gpuhal_mutex mutex; /* protects the lists; entries are only added */
    struct gpuhal_strategy_entry *first;
    gpuhal_strategy_limit *limits;
} gpuhal_strategies;
/* Returns NULL if out of memory. */
gpuhal_strategies *gpuhal_strategies_create(void);
/* Accepts NULL. */
void gpuhal_strategies_destroy(gpuhal_strategies *strategies);

/* ---- strategy_builtin.c */

/* Returns the library's strategy with this name, or NULL for any other name and for "auto". */
const gpuhal_strategy_table *gpuhal_strategy_builtin(const char *name);
/* Chooses a strategy by the number of devices. */
gpuhal_status gpuhal_strategy_choose(gpuhal *gpu, const char **out_name);

/* ---- launcher.c */

/* Returns the value of a variable, or NULL if it is not set. */
typedef const char *gpuhal_lookup_fn(void *user, const char *name);
/* Does the same as gpuhal_launcher_read(), with variables from any source. *out_variable names the variable with the
 * local rank, or is "" without a launcher. */
gpuhal_status gpuhal_launcher_find(gpuhal_lookup_fn *lookup, void *user, gpuhal_launcher *out_launcher,
                                   const char **out_variable);
/* Calls gpuhal_launcher_find() with the environment variables of this process. */
gpuhal_status gpuhal_launcher_here(gpuhal_launcher *out_launcher, const char **out_variable);

/* Sets *out_bound to whether Slurm assigned separate devices to this rank. It then exposes fewer devices to the rank
 * than the job step has on this machine, and the local rank is not an index into the exposed devices. `listed` is the
 * number of exposed devices to assume if no variable restricts them. */
gpuhal_status gpuhal_launcher_find_bound(gpuhal_lookup_fn *lookup, void *user, const gpuhal_launcher *launcher,
                                         uint32_t listed, bool *out_bound);
gpuhal_status gpuhal_launcher_is_bound(const gpuhal_launcher *launcher, uint32_t listed, bool *out_bound);

/* ---- bind.c */

/* Parses a kernel processor list such as "0-31,64-95". Returns false for any other string and for an empty list. */
bool gpuhal_processors_read(const char *list, gpuhal_processors *out_processors);
/* Binds the calling thread to the allowed processors near the device. */
gpuhal_status gpuhal_bind_near(const gpuhal_device *device, const gpuhal_processors *allowed);

#endif
