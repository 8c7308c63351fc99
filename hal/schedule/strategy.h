/* schedule/strategy.h: strategies. strategy.c has the public functions, strategy_builtin.c the library's strategy
 * tables, launcher.c the variables of launchers, bind.c the processors near a device. */
#ifndef GPUHAL_SCHEDULE_STRATEGY_H
#define GPUHAL_SCHEDULE_STRATEGY_H

#include "schedule/schedule.h"

#include <gpuhal/schedule/strategy.h>

/* The share of a device's memory that a strategy allows while it exists. */
typedef struct gpuhal_strategy_limit {
    struct gpuhal_strategy_limit *next;
    gpuhal_device *device;
    uint64_t share_bytes;
    uint64_t before_bytes; /* previous limit of the application; 0 if none */
    uint64_t set_bytes;    /* effective limit: the smallest one on the device */
} gpuhal_strategy_limit;

/* The strategies registered by the application with a gpuhal object, and the limits of existing ones. */
typedef struct gpuhal_strategies {
    gpuhal_mutex mutex; /* protects the lists; entries are only added */
    struct gpuhal_strategy_entry *first;
    gpuhal_strategy_limit *limits;
} gpuhal_strategies;
/* Returns NULL if out of memory. */
gpuhal_strategies *gpuhal_strategies_create(void);
/* NULL does nothing. */
void gpuhal_strategies_destroy(gpuhal_strategies *strategies);

/* ---- strategy_builtin.c */

/* Returns a strategy of the library; NULL for other names and for "auto". */
const gpuhal_strategy_table *gpuhal_strategy_builtin(const char *name);
/* Chooses a strategy by the number of devices. */
gpuhal_status gpuhal_strategy_choose(gpuhal *gpu, const char **out_name);

/* ---- launcher.c */

/* Returns the value of a variable; NULL if not set. */
typedef const char *gpuhal_lookup_fn(void *user, const char *name);
/* gpuhal_launcher_read() with variables from any source. *out_variable names the variable of the local rank; "" without
 * a launcher. */
gpuhal_status gpuhal_launcher_find(gpuhal_lookup_fn *lookup, void *user, gpuhal_launcher *out_launcher,
                                   const char **out_variable);
/* Same with the variables of this process. */
gpuhal_status gpuhal_launcher_here(gpuhal_launcher *out_launcher, const char **out_variable);

/* Sets *out_bound if the launcher assigned this rank its own devices: Slurm exposes fewer devices to it than the job
 * step has on this machine. The local rank is then not an index among them. `listed` is the number of devices to assume
 * if no variable restricts them. */
gpuhal_status gpuhal_launcher_find_bound(gpuhal_lookup_fn *lookup, void *user, const gpuhal_launcher *launcher,
                                         uint32_t listed, bool *out_bound);
gpuhal_status gpuhal_launcher_is_bound(const gpuhal_launcher *launcher, uint32_t listed, bool *out_bound);

/* ---- bind.c */

/* Parses a processor list of the kernel, "0-31,64-95". Returns false for any other string and for an empty list. */
bool gpuhal_processors_read(const char *list, gpuhal_processors *out_processors);
/* Binds the calling thread to the allowed processors near the device. */
gpuhal_status gpuhal_bind_near(const gpuhal_device *device, const gpuhal_processors *allowed);

#endif
