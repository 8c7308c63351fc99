/* machine.h: the results of a run of gpuhal-probe: the opened gpuhal object, the devices to show, their results and the
 * chosen device. */
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

/* Memory values of an interface, which may have less memory than its physical device. */
enum { PROBE_OWN_AVAILABLE, PROBE_OWN_FREE, PROBE_OWN_USED, PROBE_OWN_VALUES };

struct gpuhal_probe_device {
    gpuhal_device *device;
    uint32_t physical, preferred;
    bool processor; /* an interface of the host's processor */
    bool shown;     /* may have a row, and its links are printed for people; verified with --verify */
    bool row;       /* has a table row; the processor only if there is no usable GPU or it is requested */
    bool in_child;  /* its driver can be started in a child process */
    bool verified;  /* `result` is set */
    gpuhal_probe_result result;
    gpuhal_probe_values *values;             /* NULL if not read */
    const gpuhal_probe_processes *processes; /* NULL if not read */
    gpuhal_probe_logged logged;              /* errors in the kernel log about its hardware */
    unsigned lanes;                          /* PCIe lanes that both the device and the port above it support; 0 if
                                              * unknown */
    uint32_t links;                          /* expected number of links to other GPUs; see nvlinks.h */
    bool is_taken;                           /* only one process may compute on the device, and another process does */
    uint32_t taken_by;                       /* pid of that process; 0 if unknown or in another pid namespace */
    gpuhal_value own[PROBE_OWN_VALUES];      /* memory of the interface itself, not of the whole GPU; `key` is 0 if
                                              * the value of the whole GPU applies */
};

struct gpuhal_probe_machine {
    gpuhal *gpu;
    gpuhal_probe_device *devices;
    uint32_t count;
    gpuhal_view *view; /* view of the whole listing; contains no hardware if finding hardware failed (after a message)
                        * */
    uint64_t view_ns;  /* time of the view */
    gpuhal_hardware_info *hardware; /* all display controllers and accelerators, sorted by address */
    uint32_t hardware_count;
    uint64_t generation;   /* generation of the device list */
    gpuhal_device *chosen; /* NULL if no device was chosen, or if the device cannot be used */
    char *chosen_reason;   /* the reason why this device or no device was chosen */
    uint64_t open_ns;
    uint64_t until_ns;        /* deadline of --timeout on the monotonic clock; 0 without --timeout */
    gpuhal_probe_link *links; /* NULL if not read */
    uint32_t link_count;
    bool verifying;                      /* --verify was given, so unverified devices were omitted on purpose */
    gpuhal_probe_values *values;         /* one entry per device; only the entries of devices that were read are set */
    gpuhal_probe_processes *processes;   /* one entry per device; NULL if not read */
    gpuhal_probe_users *users;           /* users of the processes */
    gpuhal_probe_kernel_log *kernel_log; /* NULL if not read */
};

/* Collects everything, and verifies as the options require. Returns PROBE_GO_ON, or an exit code after a message on
 * standard error. The caller must finish the machine in either case. */
gpuhal_probe_exit gpuhal_probe_machine_open(const gpuhal_probe_options *options, gpuhal_probe_machine *out_machine);
/* Reads again the devices, hardware and values that may have changed. Returns false after a message on standard
 * error. */
bool gpuhal_probe_machine_refresh(const gpuhal_probe_options *options, gpuhal_probe_extent extent,
                                  gpuhal_probe_machine *machine);
/* Reads the values, the kernel log, and other data for judging the devices. If no GPU turns out to be usable, also
 * reads the values of the processor's row. Replaces the chosen device if it is unusable. Returns PROBE_GO_ON, or
 * INTERNAL after a message. */
gpuhal_probe_exit gpuhal_probe_read_values(const gpuhal_probe_options *options, gpuhal_probe_extent extent,
                                           gpuhal_probe_machine *machine);
void gpuhal_probe_machine_finish(gpuhal_probe_machine *machine);

/* Returns the time limit for the next of `things` remaining steps. Without --timeout the limit is `each`. With
 * --timeout a step that hangs uses at most half of the remaining time, so that time is left for the other steps; the
 * last step may use all of it.
 * Returns 0 if time has run out. */
uint64_t gpuhal_probe_time_left(const gpuhal_probe_machine *machine, uint64_t each, uint32_t things);

/* Returns the plugin's name, or its file name if it failed before it reported a name. */
const char *gpuhal_probe_report_name(const gpuhal_plugin_report *report);
/* Returns whether a plugin in this state means that the listing may be incomplete. */
bool gpuhal_probe_report_is_problem(const gpuhal_plugin_report *report);
/* gpuhal_tool_in_options() with this program's options. */
#define GPUHAL_PROBE_TEXT_BYTES 1024u
static inline const char *gpuhal_probe_in_options(const char *sentence, char space[GPUHAL_PROBE_TEXT_BYTES])
{
    return gpuhal_tool_in_options(sentence, "--device", space, GPUHAL_PROBE_TEXT_BYTES);
}
/* Returns a name of the state for people: "timed out". */
const char *gpuhal_probe_state_name(gpuhal_plugin_state state);

#endif
