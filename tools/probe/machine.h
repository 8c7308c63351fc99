/* machine.h: what one run of gpuhal-probe found: the opened gpuhal object, the devices to show, their results and the
 * choice. */
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

/* Values of the memory that an interface may have less of than the hardware. */
enum { PROBE_OWN_AVAILABLE, PROBE_OWN_FREE, PROBE_OWN_USED, PROBE_OWN_VALUES };

struct gpuhal_probe_device {
    gpuhal_device *device;
    uint32_t physical, preferred;
    bool processor; /* an interface of the host's processor */
    bool shown;     /* for people: it is verified, and has links */
    bool row;       /* in the table; the processor is there for want of a GPU, or when it is asked for */
    bool in_child;  /* its driver can be tried in a child process */
    bool verified;  /* `result` is set */
    gpuhal_probe_result result;
    gpuhal_probe_values *values;             /* NULL: not read */
    const gpuhal_probe_processes *processes; /* NULL: not read */
    gpuhal_probe_logged logged;              /* of its hardware, in the kernel's log */
    unsigned lanes;                          /* that it and the port above it can use; 0: unknown */
    uint32_t links;                          /* to other GPUs, that an equal one has; nvlinks.h */
    bool is_taken;                           /* one process alone may compute on it, and another one does */
    uint32_t taken_by;                       /* its pid; 0: unknown, or of another namespace */
    gpuhal_value own[PROBE_OWN_VALUES];      /* what its own memory makes of those of the whole; without a key: none */
};

struct gpuhal_probe_machine {
    gpuhal *gpu;
    gpuhal_probe_device *devices;
    uint32_t count;
    gpuhal_view *view; /* of all that is listed; without hardware if that could not be looked for, which was said */
    uint64_t view_ns;  /* when it was made */
    gpuhal_hardware_info *hardware; /* every display controller and accelerator, in the order of the addresses */
    uint32_t hardware_count;
    uint64_t generation;          /* of the list of devices */
    gpuhal_device *chosen;        /* NULL: none, or it cannot be used */
    char *chosen_reason;          /* also why there is none */
    uint64_t open_ns;
    uint64_t until_ns;        /* by the monotonic clock: when the time of --timeout is over; 0: it was not given */
    gpuhal_probe_link *links; /* NULL without --links */
    uint32_t link_count;
    bool verifying;                      /* --verify was given: what is not verified has been left out by intention */
    gpuhal_probe_values *values;         /* one for each device; those of the devices that were read are set */
    gpuhal_probe_processes *processes;   /* likewise; NULL before they are read */
    gpuhal_probe_users *users;           /* who they are of */
    gpuhal_probe_kernel_log *kernel_log; /* NULL before it was read */
};

/* Finds everything, and verifies what the options ask for. PROBE_GO_ON, or an exit code after a sentence on standard
 * error. Finish the machine in both cases. */
gpuhal_probe_exit gpuhal_probe_machine_open(const gpuhal_probe_options *options, gpuhal_probe_machine *out_machine);
/* Finds out again what may have changed since: devices, hardware and values. false after a sentence on standard error.
 */
bool gpuhal_probe_machine_refresh(const gpuhal_probe_options *options, gpuhal_probe_extent extent,
                                  gpuhal_probe_machine *machine);
void gpuhal_probe_machine_finish(gpuhal_probe_machine *machine);

/* The time that there is for one of `things` that are still to be done; each may take `each` without --timeout. One
 * that hangs takes half of the time that is left, so that others have their turn. 0: the time is over. */
uint64_t gpuhal_probe_time_left(const gpuhal_probe_machine *machine, uint64_t each, uint32_t things);

/* The plugin's name, or the name of its file when it failed before it stated one. */
const char *gpuhal_probe_report_name(const gpuhal_plugin_report *report);
/* Whether a plugin in this state means that the listing may lack something. */
bool gpuhal_probe_report_is_problem(const gpuhal_plugin_report *report);
/* gpuhal_tool_in_options() of this program. */
#define GPUHAL_PROBE_TEXT_BYTES 1024u
static inline const char *gpuhal_probe_in_options(const char *sentence, char space[GPUHAL_PROBE_TEXT_BYTES])
{
    return gpuhal_tool_in_options(sentence, "--device", space, GPUHAL_PROBE_TEXT_BYTES);
}
/* The state for people: "timed out". */
const char *gpuhal_probe_state_name(gpuhal_plugin_state state);

#endif
