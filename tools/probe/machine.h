/* machine.h: the findings of one run of gpuhal-probe: the opened gpuhal object, the devices to show, their results and
 * the choice. */
#ifndef PROBE_MACHINE_H
#define PROBE_MACHINE_H

#include "../common/text.h"
#include "kernel_log.h"
#include "options.h"
#include "values.h"
#include "verify.h"

#include <gpuhal/gpuhal.h>
#include <gpuhal/node.h>

typedef struct gpuhal_probe_link gpuhal_probe_link;           /* links.h */
typedef struct gpuhal_probe_processes gpuhal_probe_processes; /* processes.h */
typedef struct gpuhal_probe_users gpuhal_probe_users;

/* Memory values of an interface that may have less memory than its physical device. */
enum { PROBE_OWN_AVAILABLE, PROBE_OWN_FREE, PROBE_OWN_USED, PROBE_OWN_VALUES };

struct gpuhal_probe_device {
    gpuhal_device *device;
    uint32_t physical, preferred;
    bool processor; /* an interface of the host's processor */
    bool shown;     /* for people: it is verified, and has links */
    bool row;       /* in the table; the processor only without a GPU, or on request */
    bool in_child;  /* its driver can be tried in a child process */
    bool verified;  /* `result` is set */
    gpuhal_probe_result result;
    gpuhal_probe_values *values;             /* NULL: not read */
    const gpuhal_probe_processes *processes; /* NULL: not read */
    gpuhal_probe_logged logged;              /* kernel log lines about its hardware */
    unsigned lanes;                          /* PCIe lanes that it and the port above it can use; 0: unknown */
    uint32_t links;                          /* to other GPUs, as an equal GPU has them; nvlinks.h */
    bool is_taken;                           /* only one process may compute on it, and another one does */
    uint32_t taken_by;                       /* pid of that process; 0: unknown, or of another namespace */
    gpuhal_value own[PROBE_OWN_VALUES];      /* values of its own memory, not the whole GPU's; no key: none */
};

struct gpuhal_probe_machine {
    gpuhal *gpu;
    gpuhal_probe_device *devices;
    uint32_t count;
    gpuhal_view *view; /* of the whole listing; without hardware if the search for it failed, which was reported */
    uint64_t view_ns;  /* when it was made */
    gpuhal_hardware_info *hardware; /* every display controller and accelerator, in the order of the addresses */
    uint32_t hardware_count;
    uint64_t generation;   /* of the list of devices */
    gpuhal_device *chosen; /* NULL: none, or it cannot be used */
    char *chosen_reason;   /* also why none is chosen */
    uint64_t open_ns;
    uint64_t until_ns;        /* when the time of --timeout is over, by the monotonic clock; 0: it was not given */
    gpuhal_probe_link *links; /* NULL without --links */
    uint32_t link_count;
    bool verifying;                      /* --verify was given: unverified devices were left out by intention */
    gpuhal_probe_values *values;         /* one for each device; those of the devices that were read are set */
    gpuhal_probe_processes *processes;   /* one for each device; NULL before they are read */
    gpuhal_probe_users *users;           /* the users that the processes belong to */
    gpuhal_probe_kernel_log *kernel_log; /* NULL before it was read */
};

/* Finds everything, and runs the verifications that the options ask for. Returns PROBE_GO_ON, or an exit code after a
 * sentence on standard error. Finish the machine in both cases. */
gpuhal_probe_exit gpuhal_probe_machine_open(const gpuhal_probe_options *options, gpuhal_probe_machine *out_machine);
/* Finds again devices, hardware and values that may have changed since. Returns false after a sentence on standard
 * error. */
bool gpuhal_probe_machine_refresh(const gpuhal_probe_options *options, gpuhal_probe_extent extent,
                                  gpuhal_probe_machine *machine);
void gpuhal_probe_machine_finish(gpuhal_probe_machine *machine);

/* Returns the time for one of `things` that remain; each may take `each` without --timeout. One that hangs takes half
 * of the remaining time, so that others have their turn. 0: the time is over. */
uint64_t gpuhal_probe_time_left(const gpuhal_probe_machine *machine, uint64_t each, uint32_t things);

/* Returns the plugin's name, or the name of its file if it failed before it stated one. */
const char *gpuhal_probe_report_name(const gpuhal_plugin_report *report);
/* Returns whether a plugin in this state means that the listing may be incomplete. */
bool gpuhal_probe_report_is_problem(const gpuhal_plugin_report *report);
/* Is gpuhal_tool_in_options() of this program. */
#define GPUHAL_PROBE_TEXT_BYTES 1024u
static inline const char *gpuhal_probe_in_options(const char *sentence, char space[GPUHAL_PROBE_TEXT_BYTES])
{
    return gpuhal_tool_in_options(sentence, "--device", space, GPUHAL_PROBE_TEXT_BYTES);
}
/* Returns the state for people: "timed out". */
const char *gpuhal_probe_state_name(gpuhal_plugin_state state);

#endif
