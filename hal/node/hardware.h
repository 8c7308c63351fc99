/* node/hardware.h: the machine's hardware: the survey behind GPUHAL_RECORD_HARDWARE. The steps, in order:
 * hardware_scan.c finds the hardware on the buses, hardware_nodes.c its device nodes, and hardware_names.c its names.
 * hardware_join.c joins it with the listed devices and with its entry in the machine's record. hardware_state.c finds
 * the reason that prevents its use: not given (hardware_given.c), in the kernel (hardware_kernel.c), or in the plugins'
 * reports (hardware_api.c); hardware_words.c composes the text. hardware_machine.c describes the rest of the machine,
 * and hardware_order.c the GPUs that this process was supposed to be given.
 *
 * The survey must not open a device node or a file that wakes a sleeping GPU. For a device on the bus it reads only
 * files of the PCI core, which the core serves from memory. The file `config` accesses the device, so it is read only
 * if the device is awake. Each text is sanitised when it is read. If a file cannot be read, its value stays unknown.
 * `error` records the failures that must be reported, because without descriptors or memory a GPU would be missing from
 * the survey.
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

/* Maximum number of entries. The largest machines have 16 GPUs with 8 virtual functions each. */
enum { GPUHAL_HARDWARE_MAX = 256, GPUHAL_HARDWARE_PATH_BYTES = 768, GPUHAL_HARDWARE_FIX_BYTES = 448 };

typedef struct gpuhal_hardware {
    gpuhal_hardware_info info; /* its numbers; the texts are the members below */
    char address[24], place[256];
    char vendor[96], name[128];
    char kernel_driver[40], kernel_driver_version[64];
    char drm_card[32], drm_render_node[32], vendor_node[32];
    char local_cpus[256];
    char why[640], fix[GPUHAL_HARDWARE_FIX_BYTES];
    char render_number[24]; /* "226:128": of the render node */
    char partition[40], partition_numbers[24];
    char unlisted[160]; /* hardware_join.c: why the vendor's API does not list it, according to its plugin; "": no
                         * reason */
    bool is_off_bus;    /* its configuration space reads as all ones */
    bool is_excluded;   /* an option of NVIDIA's driver excludes it */
    bool is_virtual_function;
    uint32_t functions;     /* of a card: virtual functions bound to NVIDIA's driver, for virtual machines */
    bool is_seen;           /* hardware_join.c: matches a listed device, possibly a hidden one */
    bool is_hidden;         /* hardware_join.c: matches a device that GPUHAL_DEVICES or the program hides */
    bool is_seen_by_vendor; /* hardware_join.c: CUDA or HIP lists it */
} gpuhal_hardware;

/* The environment that started this process, and therefore decides which GPUs the process is given. */
typedef enum gpuhal_hardware_place {
    GPUHAL_PLACE_HOST,
    GPUHAL_PLACE_CONTAINER, /* of unknown kind */
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

/* A batch system or lease that runs this process. It gives GPUs to a job, and sets the variables that prevent drivers
 * from listing other GPUs. */
typedef struct gpuhal_hardware_batch {
    const char *sign, *number; /* variables: every job has the first; the second is the job's number, or NULL */
    const char *name, *request; /* of the job or lease; the command that requests a GPU */
    bool counts;                /* gpuhal_hardware_count_of_job() knows how many GPUs the job has */
} gpuhal_hardware_batch;

typedef struct gpuhal_hardware_machine {
    bool is_read, secure_boot;
    bool is_windows; /* Linux under Windows (WSL) */
    const gpuhal_hardware_batch *batch; /* the job's batch system, also in a container; NULL: no job */
    char who[48];    /* who receives the GPUs: "this pod", "this Slurm job 17", "this user session" */
    bool is_usable;  /* a device matches some hardware */
    gpuhal_hardware_place place;
    gpuhal_hardware_system system;
    char release[64]; /* of the kernel; "": unknown */
} gpuhal_hardware_machine;

/* The reason that prevents the use of hardware, and the remedy. `why` is sanitised when it is copied to the hardware,
 * `fix` line by line as it is written. */
typedef struct gpuhal_hardware_finding {
    gpuhal_hardware_state state;
    gpuhal_hardware_grade grade;
    char why[640], fix[GPUHAL_HARDWARE_FIX_BYTES];
} gpuhal_hardware_finding;

typedef struct gpuhal_hardware_survey {
    /* only during the survey: the listed devices, and the machine's record */
    const gpuhal_settings *settings;
    const gpuhal_device_snapshot *devices;
    const gpuhal_database *record;
    uint32_t count, capacity;
    gpuhal_hardware *list;
    char root[GPUHAL_SYSTEM_ROOT_BYTES]; /* replaces `/` */
    bool bus_is_known;                   /* the list of PCI devices was readable */
    int error;                           /* errno of the first failure that may hide hardware; 0: none */
    int last;                            /* errno of the most recent read; 0: success */
    intptr_t folder;                     /* the entered directory, open; -1: none */
    char folder_path[GPUHAL_HARDWARE_PATH_BYTES];
    gpuhal_hardware_machine machine; /* set by gpuhal_hardware_machine_of() */
} gpuhal_hardware_survey;

/* ---- hardware_files.c: small files below the survey's root; `format` and its arguments form the path */

/* Opens a directory. Until another directory is entered or this one is left, files and links in it are looked up
 * relative to it. This saves the kernel from walking the long path through the links of /sys. */
void gpuhal_hardware_enter(gpuhal_hardware_survey *survey, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void gpuhal_hardware_leave(gpuhal_hardware_survey *survey);
/* Reads the first line without its newline, truncated to `bytes` and sanitised. Returns false, and "", if there is
 * none. Never blocks on a file that is not a regular file. */
bool gpuhal_hardware_line(gpuhal_hardware_survey *survey, char *to, size_t bytes, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Reads the whole file, truncated to `bytes`, and appends a 0. Returns the number of bytes. */
size_t gpuhal_hardware_bytes(gpuhal_hardware_survey *survey, char *to, size_t bytes, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Reads "0x1f" or "31"; the number must be the whole first line. */
bool gpuhal_hardware_number(gpuhal_hardware_survey *survey, uint32_t *out_number, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Copies the target of a symbolic link. Returns false, and "", for anything else. */
bool gpuhal_hardware_target(gpuhal_hardware_survey *survey, char *to, size_t bytes, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Returns whether the file exists, without opening it. */
bool gpuhal_hardware_is_there(const gpuhal_hardware_survey *survey, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Lists the names in a folder; free them with gpuhal_os_names_free(). Returns false if the folder cannot be read. */
bool gpuhal_hardware_names(gpuhal_hardware_survey *survey, char ***out_names, size_t *out_count, const char *format,
                           ...)
    __attribute__((format(printf, 4, 5)));
/* Copies the sanitised value after "key" and blanks, a colon or an equals sign. Returns false if no line has the
 * key. */
bool gpuhal_hardware_value(const char *text, const char *key, char *to, size_t bytes);
/* Writes a text, truncated to `bytes` and sanitised. */
void gpuhal_hardware_text(char *to, size_t bytes, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Appends a sanitised line of at most 67 columns to a command: another command, or a comment after "# ". */
void gpuhal_hardware_add_line(char *to, size_t bytes, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Returns the last component of a path. */
const char *gpuhal_hardware_leaf(const char *path);

/* ---- hardware_machine.c */

const gpuhal_hardware_machine *gpuhal_hardware_machine_of(gpuhal_hardware_survey *survey);
/* Writes the group's name, or its number if the name is unknown. */
void gpuhal_hardware_group(gpuhal_hardware_survey *survey, uint32_t number, char *to, size_t bytes);
/* Returns whether a file of any size contains this word. */
bool gpuhal_hardware_contains(gpuhal_hardware_survey *survey, const char *word, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* A setting that prevents the module from being loaded: the file or command line with the setting, and the command that
 * undoes it. */
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

/* Counts the devices in a driver's list, such as "0,2-3,GPU-3fa0…". Like the drivers, it ignores entries after an
 * invalid entry. Parts of one device ("0.0,0.1") count once. */
uint32_t gpuhal_hardware_count_named(const char *value);
/* Returns how many GPUs Slurm gave this job, step or task on this machine; UINT32_MAX: unknown. */
uint32_t gpuhal_hardware_count_of_job(void);
/* The GPUs that the vendor's container runtime was supposed to give this container. */
typedef struct gpuhal_hardware_order {
    const char *name, *value; /* the variable's; valid until the environment changes */
    uint32_t count;           /* minimum number of GPUs */
    bool is_all;              /* all GPUs, the default in images */
    bool names_it;            /* includes the GPU `one` */
} gpuhal_hardware_order;
/* Returns whether a variable specifies these GPUs. */
bool gpuhal_hardware_find_order(gpuhal_hardware_survey *survey, const gpuhal_hardware *one, gpuhal_hardware_order *out);

/* ---- hardware_given.c */

/* Returns whether this process was not given the hardware (no fault), or lacks hardware that it was supposed to be
 * given (a fault). `has_library`: see gpuhal_hardware_find_kernel(). */
bool gpuhal_hardware_find_given(gpuhal_hardware_survey *survey, const gpuhal_hardware *one, bool has_library,
                                gpuhal_hardware_finding *out);

/* ---- hardware_words.c */

/* Sets the state, the grade and the sentence, without a command. */
void gpuhal_hardware_found(gpuhal_hardware_finding *out, gpuhal_hardware_state state, gpuhal_hardware_grade grade,
                           const char *format, ...) __attribute__((format(printf, 4, 5)));
/* Writes the date for a time since 1970, such as "2026-11-24". */
void gpuhal_hardware_day(uint64_t seconds, char *to, size_t bytes);
/* Appends the warning and the command for restarting the machine. */
void gpuhal_hardware_add_restart(char *to, size_t bytes);
/* Each writes command lines that do the following: install the vendor's kernel module or a user library; give the
 * device to this container, pod or job ("" if unknown); show the kernel's messages about the device. */
void gpuhal_hardware_install_driver(gpuhal_hardware_survey *survey, const gpuhal_hardware *one, char *to, size_t bytes);
void gpuhal_hardware_install_library(gpuhal_hardware_survey *survey, const gpuhal_hardware *one, char *to,
                                     size_t bytes);
void gpuhal_hardware_give(gpuhal_hardware_survey *survey, const gpuhal_hardware *one, char *to, size_t bytes);
/* `answers` explains messages of NVIDIA's driver in comments after "# "; "": none. */
void gpuhal_hardware_read_log(const gpuhal_hardware *one, const char *answers, char *to, size_t bytes);
#define GPUHAL_HARDWARE_LOST_ANSWERS   "# Xid 79: turn power off and on; if it recurs: slot, power, card"
#define GPUHAL_HARDWARE_UNUSED_ANSWERS "# \"RmInitAdapter failed\", Xid 79: power the machine off and on"
/* Writes the commands that restart this container ("" if unknown). */
void gpuhal_hardware_restart(gpuhal_hardware_survey *survey, char *to, size_t bytes);
/* The first writes the commands that replace nouveau with NVIDIA's module. The second writes the commands that make
 * Secure Boot trust modules that were built on this machine. */
void gpuhal_hardware_keep_nouveau_out(gpuhal_hardware_survey *survey, char *to, size_t bytes);
void gpuhal_hardware_enrol_key(gpuhal_hardware_survey *survey, char *to, size_t bytes);

/* ---- hardware_kernel.c */

/* Returns whether the kernel or its nodes prevent the use. `has_library`: the vendor's user library is installed. */
bool gpuhal_hardware_find_kernel(gpuhal_hardware_survey *survey, const gpuhal_hardware *one, bool has_library,
                                 gpuhal_hardware_finding *out);

/* ---- hardware_hidden.c */

enum { GPUHAL_HARDWARE_APIS = 3 };
/* Lists the vendor's API, if any, and then the others; terminated by NULL. */
void gpuhal_hardware_list_apis(const gpuhal_hardware *one, const char *out_apis[GPUHAL_HARDWARE_APIS + 1]);
/* Returns the report of the backend's plugin, or NULL. */
const gpuhal_candidate *gpuhal_hardware_candidate_of(const gpuhal_candidates *candidates, const char *backend);
const char *gpuhal_hardware_api_name(const char *backend);
/* Returns whether a driver variable hides the hardware. */
bool gpuhal_hardware_find_variable(gpuhal_hardware_survey *survey, const gpuhal_hardware *one,
                                   const gpuhal_candidate *candidate, gpuhal_hardware_finding *out);
/* For a backend that the program or GPUHAL_BACKENDS excludes. */
void gpuhal_hardware_find_excluded(const gpuhal_settings *settings, const gpuhal_candidate *candidate,
                                   gpuhal_hardware_finding *out);
/* Returns whether the hardware belongs to other jobs: variables give this job or container different GPUs, and the
 * driver lists all of those. */
bool gpuhal_hardware_find_others(gpuhal_hardware_survey *survey, const gpuhal_hardware *one,
                                 gpuhal_hardware_finding *out);
/* For hardware whose devices are all hidden. */
void gpuhal_hardware_find_hidden(gpuhal_hardware_survey *survey, const gpuhal_hardware *one,
                                 gpuhal_hardware_finding *out);

/* ---- hardware_api.c */

bool gpuhal_hardware_has_library(const gpuhal_hardware_survey *survey, const gpuhal_hardware *one);
/* For hardware whose plugin reports why its API does not list it. */
void gpuhal_hardware_find_stated(const gpuhal_hardware *one, gpuhal_hardware_finding *out);
/* For hardware that is usable in the kernel but matches no device. */
void gpuhal_hardware_find_api(gpuhal_hardware_survey *survey, const gpuhal_hardware *one,
                              gpuhal_hardware_finding *out);
/* For hardware that is ready: sets a sentence if the vendor's API cannot use it. */
void gpuhal_hardware_find_rest(gpuhal_hardware_survey *survey, const gpuhal_hardware *one,
                               gpuhal_hardware_finding *out);

/* ---- the steps */

/* Appends an empty entry. Returns NULL if memory is short (see `error`) or the limit is reached. */
gpuhal_hardware *gpuhal_hardware_add(gpuhal_hardware_survey *survey);
/* Returns the entry with this PCI address, or NULL. */
gpuhal_hardware *gpuhal_hardware_at_address(const gpuhal_hardware_survey *survey, const char *address);
void gpuhal_hardware_scan(gpuhal_hardware_survey *survey);
void gpuhal_hardware_find_nodes(gpuhal_hardware_survey *survey);
void gpuhal_hardware_name(gpuhal_hardware_survey *survey);
/* Names the vendor by its number alone. */
void gpuhal_hardware_name_vendor(gpuhal_hardware *one);
void gpuhal_hardware_join(gpuhal_hardware_survey *survey);
void gpuhal_hardware_judge(gpuhal_hardware_survey *survey);

/* ---- hardware.c */

/* Surveys the machine, joins its hardware with the devices and the record, and adds the result to the view as a source.
 * Same contract as gpuhal_view_of() with GPUHAL_VIEW_HARDWARE. */
gpuhal_status gpuhal_hardware_add_source(const gpuhal_settings *settings, const gpuhal_device_snapshot *devices,
                                         const gpuhal_database *record, gpuhal_view *view);

#endif
