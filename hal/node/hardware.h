/* node/hardware.h: the hardware survey behind GPUHAL_RECORD_HARDWARE. Its steps, in order: hardware_scan.c finds the
 * hardware on the buses, hardware_nodes.c finds its device nodes, and hardware_names.c names it. hardware_join.c joins
 * the hardware with the listed devices and with the entries in the machine's record. hardware_state.c finds out why
 * hardware is not usable: it was not given to this process (hardware_given.c), settings or variables hide it
 * (hardware_hidden.c), the kernel prevents its use (hardware_kernel.c), or a plugin reports the reason
 * (hardware_api.c). hardware_words.c composes the text. hardware_machine.c describes the rest of the machine, and
 * hardware_order.c the GPUs that this process was supposed to be given.
 *
 * The survey must not open a device node or a file that wakes a sleeping GPU. From a device's bus folder it reads only
 * files that the kernel core, not the driver, serves from memory. The file `config` accesses the device, so it is read
 * only if the device is awake. Each string is sanitised when it is read. If a file cannot be read, its value stays
 * unknown. `error` records a failure that may hide hardware, e.g. a lack of descriptors or memory, and must be
 * reported.
 */
#ifndef GPUHAL_NODE_HARDWARE_H
#define GPUHAL_NODE_HARDWARE_H

#include "device/for_node.h"

#include <gpuhal/node/hardware.h>

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

#define GPUHAL_VENDOR_AMD    0x1002u
#define GPUHAL_VENDOR_NVIDIA 0x10deu
#define GPUHAL_VENDOR_INTEL  0x8086u

/* GPUHAL_HARDWARE_MAX limits the list. The largest machines have 16 GPUs with 8 virtual functions each. */
enum { GPUHAL_HARDWARE_MAX = 256, GPUHAL_HARDWARE_PATH_BYTES = 768, GPUHAL_HARDWARE_FIX_BYTES = 448 };

typedef struct gpuhal_hardware {
    gpuhal_hardware_info info; /* only the numbers are set; the strings are the members below */
    char address[24], place[256];
    char vendor[96], name[128];
    char kernel_driver[40], kernel_driver_version[64];
    char drm_card[32], drm_render_node[32], vendor_node[32];
    char local_cpus[256];
    char why[640], fix[GPUHAL_HARDWARE_FIX_BYTES];
    char render_number[24]; /* render node's device number, "226:128" */
    char partition[40], partition_numbers[24];
    char unlisted[160]; /* hardware_join.c: why the vendor's API does not list it, as its plugin reports, or "" */
    bool is_off_bus;    /* its configuration space reads as all ones */
    bool is_excluded;   /* an option of NVIDIA's driver excludes it */
    bool is_virtual_function;
    uint32_t functions;     /* for a card: number of vGPUs (virtual functions bound to NVIDIA's driver) */
    bool is_seen;           /* hardware_join.c: matches a listed device, possibly a hidden one */
    bool is_hidden;         /* hardware_join.c: matches a device that GPUHAL_DEVICES or the program hides */
    bool is_seen_by_vendor; /* hardware_join.c: CUDA or HIP lists it */
} gpuhal_hardware;

/* Where this process runs. */
typedef enum gpuhal_hardware_place {
    GPUHAL_PLACE_HOST,
    GPUHAL_PLACE_CONTAINER, /* container of unknown kind */
    GPUHAL_PLACE_DOCKER,
    GPUHAL_PLACE_PODMAN,
    GPUHAL_PLACE_POD, /* in Kubernetes */
    GPUHAL_PLACE_APPTAINER,
    GPUHAL_PLACE_ENROOT
} gpuhal_hardware_place;

/* The distribution, which determines the packages and tools. */
typedef enum gpuhal_hardware_system {
    GPUHAL_SYSTEM_UNKNOWN,
    GPUHAL_SYSTEM_DEBIAN,
    GPUHAL_SYSTEM_UBUNTU,
    GPUHAL_SYSTEM_FEDORA,
    GPUHAL_SYSTEM_ARCH,
    GPUHAL_SYSTEM_SUSE
} gpuhal_hardware_system;

/* A batch system or lease that runs this process. It allocates GPUs to a job and sets the environment variables that
 * make drivers list only these GPUs. */
typedef struct gpuhal_hardware_batch {
    const char *sign, *number; /* names of variables: `sign` is set in every job; `number` contains the job's number, or
                                * is NULL */
    const char *name, *request; /* kind of job, such as "Slurm job"; command or setting that requests a GPU */
    bool counts;                /* gpuhal_hardware_count_of_job() can count the job's GPUs */
} gpuhal_hardware_batch;

typedef struct gpuhal_hardware_machine {
    bool is_read, secure_boot;
    bool is_windows;                    /* Linux under Windows (WSL) */
    const gpuhal_hardware_batch *batch; /* the job's batch system, even in a container; NULL if there is no job */
    char who[48];   /* who receives the GPUs: "this pod", "this Slurm job 17", "this user session" */
    bool is_usable; /* a device that is not hidden matches some hardware */
    gpuhal_hardware_place place;
    gpuhal_hardware_system system;
    char release[64]; /* of the kernel; "" if unknown */
} gpuhal_hardware_machine;

/* The reason why hardware is not usable, and the remedy. `why` is sanitised when it is copied to the hardware; each
 * line of `fix` is sanitised when it is appended. */
typedef struct gpuhal_hardware_finding {
    gpuhal_hardware_state state;
    gpuhal_hardware_grade grade;
    char why[640], fix[GPUHAL_HARDWARE_FIX_BYTES];
} gpuhal_hardware_finding;

typedef struct gpuhal_hardware_survey {
    /* These three members are valid only during the survey. */
    const gpuhal_settings *settings;
    const gpuhal_device_snapshot *devices;
    const gpuhal_database *record;
    uint32_t count, capacity;
    gpuhal_hardware *list;
    char root[GPUHAL_SYSTEM_ROOT_BYTES]; /* used in place of `/` */
    bool bus_is_known;                   /* the list of PCI devices was readable */
    int error;                           /* errno of the first failure that may hide hardware, or 0 */
    int last;                            /* errno of the most recent read, or 0 if it succeeded */
    intptr_t folder;                     /* descriptor of the entered directory, or -1 */
    char folder_path[GPUHAL_HARDWARE_PATH_BYTES];
    gpuhal_hardware_machine machine; /* set by gpuhal_hardware_machine_of() */
} gpuhal_hardware_survey;

/* ---- hardware_files.c: reads small files below the survey's root; `format` and its arguments form the path */

/* Opens a directory. Until another directory is entered or this directory is left, its files and links are looked up
 * relative to it. This saves the kernel the long path through the links of /sys. */
void gpuhal_hardware_enter(gpuhal_hardware_survey *survey, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void gpuhal_hardware_leave(gpuhal_hardware_survey *survey);
/* Reads the first line without its newline, truncated to `bytes` and sanitised. Returns false and writes "" if the line
 * cannot be read or is empty. Never blocks, even if the file is a pipe or a device. */
bool gpuhal_hardware_line(gpuhal_hardware_survey *survey, char *to, size_t bytes, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Reads the file with one read() (see gpuhal_os_kernel_file_read()), truncated to `bytes` including the appended null
 * byte. Returns the number of bytes read, or 0 on failure. */
size_t gpuhal_hardware_bytes(gpuhal_hardware_survey *survey, char *to, size_t bytes, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Reads "0x1f" or "31"; the number must be the whole first line. */
bool gpuhal_hardware_number(gpuhal_hardware_survey *survey, uint32_t *out_number, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Copies the target of a symbolic link. Returns false and writes "" if the path is not a symbolic link. */
bool gpuhal_hardware_target(gpuhal_hardware_survey *survey, char *to, size_t bytes, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Does not open the file. */
bool gpuhal_hardware_is_there(const gpuhal_hardware_survey *survey, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Lists the names in a folder; free them with gpuhal_os_names_free(). Returns false if the folder cannot be read. */
bool gpuhal_hardware_names(gpuhal_hardware_survey *survey, char ***out_names, size_t *out_count, const char *format,
                           ...) __attribute__((format(printf, 4, 5)));
/* Copies and sanitises the value that follows `key` and its separator (blanks, a colon or an equals sign). Returns
 * false and writes "" if no line begins with the key or the value is empty. */
bool gpuhal_hardware_value(const char *text, const char *key, char *to, size_t bytes);
/* Formats a string, sanitises it, and truncates it to `bytes`. */
void gpuhal_hardware_text(char *to, size_t bytes, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Appends a sanitised line of at most 67 columns to a command: another command, or a comment after "# ". */
void gpuhal_hardware_add_line(char *to, size_t bytes, const char *format, ...) __attribute__((format(printf, 3, 4)));
const char *gpuhal_hardware_leaf(const char *path);

/* ---- hardware_machine.c */

const gpuhal_hardware_machine *gpuhal_hardware_machine_of(gpuhal_hardware_survey *survey);
/* Writes the group's name, or its number if the name is unknown. */
void gpuhal_hardware_group(gpuhal_hardware_survey *survey, uint32_t number, char *to, size_t bytes);
/* The file may have any size. */
bool gpuhal_hardware_contains(gpuhal_hardware_survey *survey, const char *word, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* A setting that prevents a module from being loaded: the file or kernel command line that contains the setting, and
 * the commands that undo its effect. */
typedef struct gpuhal_hardware_block {
    char where[128], fix[GPUHAL_HARDWARE_FIX_BYTES];
} gpuhal_hardware_block;
bool gpuhal_hardware_is_blocked(gpuhal_hardware_survey *survey, const char *module, gpuhal_hardware_block *out);

/* ---- hardware_place.c */

gpuhal_hardware_place gpuhal_hardware_place_of(gpuhal_hardware_survey *survey, bool is_windows);
/* Sets machine->batch and machine->who. */
void gpuhal_hardware_find_who(gpuhal_hardware_survey *survey, gpuhal_hardware_machine *machine);
/* Returns machine->who without "this ": "container", "pod", "Slurm job 17". */
const char *gpuhal_hardware_place_name(const gpuhal_hardware_machine *machine);

/* ---- hardware_order.c */

/* Counts the devices in a driver's list, such as "0,2-3,GPU-3fa0…". Like the drivers, stops at an impossible entry
 * ("-1", "NoDevFiles"). Counts the partitions of one device ("0.0,0.1") once. */
uint32_t gpuhal_hardware_count_named(const char *value);
/* Returns how many GPUs Slurm gave this job, step or task on this machine, or UINT32_MAX if unknown. */
uint32_t gpuhal_hardware_count_of_job(void);
/* The GPUs that the vendor's container runtime was supposed to give this container. */
typedef struct gpuhal_hardware_order {
    const char *name, *value; /* valid until the environment changes */
    uint32_t count;           /* minimum number of GPUs */
    bool is_all;              /* all GPUs, the default in images */
    bool names_it;            /* includes the GPU `one` */
} gpuhal_hardware_order;
/* Returns whether a variable specifies these GPUs. */
bool gpuhal_hardware_find_order(gpuhal_hardware_survey *survey, const gpuhal_hardware *one, gpuhal_hardware_order *out);

/* ---- hardware_given.c */

/* Returns whether this process was not given the hardware: a device cgroup refuses a node, or a container lacks it.
 * This is a fault only if the process was supposed to be given the hardware. `has_library`: see
 * gpuhal_hardware_find_kernel(). */
bool gpuhal_hardware_find_given(gpuhal_hardware_survey *survey, const gpuhal_hardware *one, bool has_library,
                                gpuhal_hardware_finding *out);

/* ---- hardware_words.c */

/* Sets the state, the grade and the reason, without a command. */
void gpuhal_hardware_found(gpuhal_hardware_finding *out, gpuhal_hardware_state state, gpuhal_hardware_grade grade,
                           const char *format, ...) __attribute__((format(printf, 4, 5)));
/* Converts seconds since 1970 to a date such as "2026-11-24". */
void gpuhal_hardware_day(uint64_t seconds, char *to, size_t bytes);
/* Appends the warning and the command for a restart of the machine. */
void gpuhal_hardware_add_restart(char *to, size_t bytes);
/* Each function writes commands that install the vendor's kernel module or a user library, give the device to this
 * container, pod or job ("" if unknown), or show the kernel's messages about the device. */
void gpuhal_hardware_install_driver(gpuhal_hardware_survey *survey, const gpuhal_hardware *one, char *to, size_t bytes);
void gpuhal_hardware_install_library(gpuhal_hardware_survey *survey, const gpuhal_hardware *one, char *to,
                                     size_t bytes);
void gpuhal_hardware_give(gpuhal_hardware_survey *survey, const gpuhal_hardware *one, char *to, size_t bytes);
/* `answers` is a list of comment lines ("# …") that explain messages of NVIDIA's driver, or "". */
void gpuhal_hardware_read_log(const gpuhal_hardware *one, const char *answers, char *to, size_t bytes);
#define GPUHAL_HARDWARE_LOST_ANSWERS   "# Xid 79: turn power off and on; if it recurs: slot, power, card"
#define GPUHAL_HARDWARE_UNUSED_ANSWERS "# \"RmInitAdapter failed\", Xid 79: power the machine off and on"
/* Writes the commands that restart this container ("" if unknown). */
void gpuhal_hardware_restart(gpuhal_hardware_survey *survey, char *to, size_t bytes);
/* keep_nouveau_out writes the commands that replace nouveau with NVIDIA's module. enrol_key writes the commands that
 * make Secure Boot trust modules built on this machine. */
void gpuhal_hardware_keep_nouveau_out(gpuhal_hardware_survey *survey, char *to, size_t bytes);
void gpuhal_hardware_enrol_key(gpuhal_hardware_survey *survey, char *to, size_t bytes);

/* ---- hardware_kernel.c */

/* Returns whether the kernel or the device nodes prevent the use of the hardware, or no API supports the model.
 * `has_library`: the vendor's user library is installed. */
bool gpuhal_hardware_find_kernel(gpuhal_hardware_survey *survey, const gpuhal_hardware *one, bool has_library,
                                 gpuhal_hardware_finding *out);

/* ---- hardware_hidden.c */

enum { GPUHAL_HARDWARE_APIS = 3 };
/* Lists the vendor's API, if any, and then the vendor-neutral APIs. NULL ends the list. */
void gpuhal_hardware_list_apis(const gpuhal_hardware *one, const char *out_apis[GPUHAL_HARDWARE_APIS + 1]);
const gpuhal_candidate *gpuhal_hardware_candidate_of(const gpuhal_candidates *candidates, const char *backend);
const char *gpuhal_hardware_api_name(const char *backend);
bool gpuhal_hardware_find_variable(gpuhal_hardware_survey *survey, const gpuhal_hardware *one,
                                   const gpuhal_candidate *candidate, gpuhal_hardware_finding *out);
/* Describes a backend that the program or GPUHAL_BACKENDS excludes. */
void gpuhal_hardware_find_excluded(const gpuhal_settings *settings, const gpuhal_candidate *candidate,
                                   gpuhal_hardware_finding *out);
/* Returns whether environment variables give this job or container other GPUs, all of which the driver lists. */
bool gpuhal_hardware_find_others(gpuhal_hardware_survey *survey, const gpuhal_hardware *one,
                                 gpuhal_hardware_finding *out);
void gpuhal_hardware_find_hidden(gpuhal_hardware_survey *survey, const gpuhal_hardware *one,
                                 gpuhal_hardware_finding *out);

/* ---- hardware_api.c */

bool gpuhal_hardware_has_library(const gpuhal_hardware_survey *survey, const gpuhal_hardware *one);
/* Describes hardware whose absence from the API's list is explained by a plugin. */
void gpuhal_hardware_find_stated(const gpuhal_hardware *one, gpuhal_hardware_finding *out);
/* Describes hardware that the kernel supports but that matches no listed device. */
void gpuhal_hardware_find_api(gpuhal_hardware_survey *survey, const gpuhal_hardware *one, gpuhal_hardware_finding *out);
/* Describes hardware that is ready: sets a reason if the vendor's API cannot use the hardware. */
void gpuhal_hardware_find_rest(gpuhal_hardware_survey *survey, const gpuhal_hardware *one,
                               gpuhal_hardware_finding *out);

/* ---- the steps */

/* Appends an empty entry. Returns NULL if memory is short (see `error`) or the limit is reached. */
gpuhal_hardware *gpuhal_hardware_add(gpuhal_hardware_survey *survey);
/* Returns NULL if no entry has this PCI address. */
gpuhal_hardware *gpuhal_hardware_at_address(const gpuhal_hardware_survey *survey, const char *address);
void gpuhal_hardware_scan(gpuhal_hardware_survey *survey);
void gpuhal_hardware_find_nodes(gpuhal_hardware_survey *survey);
void gpuhal_hardware_name(gpuhal_hardware_survey *survey);
/* Names the vendor by its number alone. */
void gpuhal_hardware_name_vendor(gpuhal_hardware *one);
void gpuhal_hardware_join(gpuhal_hardware_survey *survey);
void gpuhal_hardware_judge(gpuhal_hardware_survey *survey);

/* ---- hardware.c */

/* Runs the steps and adds the result to the view as a source. Has the same contract as gpuhal_view_of() with
 * GPUHAL_VIEW_HARDWARE. */
gpuhal_status gpuhal_hardware_add_source(const gpuhal_settings *settings, const gpuhal_device_snapshot *devices,
                                         const gpuhal_database *record, gpuhal_view *view);

#endif
