/* schedule/strategy.h: strategies, their tables and their parts. strategy.c has the functions for applications;
 * strategy_builtin.c the tables of the library, launcher.c the variables of launchers, bind.c the processors near a
 * device. */
#ifndef GPUHAL_SCHEDULE_STRATEGY_H
#define GPUHAL_SCHEDULE_STRATEGY_H

#include "schedule/schedule.h"

#include <gpuhal/schedule/strategy.h>

/* The share of a device's memory that a strategy allows, while it lives. */
typedef struct gpuhal_strategy_limit {
    struct gpuhal_strategy_limit *next;
    gpuhal_device *device;
    uint64_t share_bytes;
    uint64_t before_bytes; /* the application's limit before; 0: none */
    uint64_t set_bytes;    /* the limit that was set: the smallest of all on the device */
} gpuhal_strategy_limit;

/* The strategies that an application has registered with a gpuhal object, and the limits of living ones. */
typedef struct gpuhal_strategies {
    gpuhal_mutex mutex; /* protects the lists; entries are only added */
    struct gpuhal_strategy_entry *first;
    gpuhal_strategy_limit *limits;
} gpuhal_strategies;
/* NULL without memory. */
gpuhal_strategies *gpuhal_strategies_create(void);
/* NULL does nothing. */
void gpuhal_strategies_destroy(gpuhal_strategies *strategies);

/* ---- strategy_builtin.c */

/* Returns a table of the library; NULL for another name, and for "auto". */
const gpuhal_strategy_table *gpuhal_strategy_builtin(const char *name);
/* Chooses by the number of devices. */
gpuhal_status gpuhal_strategy_choose(gpuhal *gpu, const char **out_name);

/* ---- launcher.c */

/* Returns the value of a variable; NULL: not set. */
typedef const char *gpuhal_lookup_fn(void *user, const char *name);
/* gpuhal_launcher_read() with variables from anywhere. *out_variable: that of the local rank, "" without a launcher. */
gpuhal_status gpuhal_launcher_find(gpuhal_lookup_fn *lookup, void *user, gpuhal_launcher *out_launcher,
                                   const char **out_variable);
/* With the variables of this process. */
gpuhal_status gpuhal_launcher_here(gpuhal_launcher *out_launcher, const char **out_variable);

/* Whether the launcher gave this rank separate devices: Slurm shows it fewer than the job's step has on this machine.
 * Its local rank is no index among them. `listed`: how many there are if no variable shows any. */
gpuhal_status gpuhal_launcher_find_bound(gpuhal_lookup_fn *lookup, void *user, const gpuhal_launcher *launcher,
                                         uint32_t listed, bool *out_bound);
gpuhal_status gpuhal_launcher_is_bound(const gpuhal_launcher *launcher, uint32_t listed, bool *out_bound);

/* ---- bind.c */

/* Reads a list as the kernel writes it, "0-31,64-95". False for any other text, and for an empty list. */
bool gpuhal_processors_read(const char *list, gpuhal_processors *out_processors);
/* Binds the calling thread to the allowed processors near the device. */
gpuhal_status gpuhal_bind_near(const gpuhal_device *device, const gpuhal_processors *allowed);

#endif
