/* node/hardware.h: the hardware of the machine: the survey behind GPUHAL_RECORD_HARDWARE. The steps, in this order:
 * hardware_scan.c (finds the hardware on the buses), hardware_nodes.c (its device nodes), hardware_names.c (its names),
 * hardware_join.c (the devices that stand for it, and its entry in the record of the machine), hardware_state.c (the
 * reason that prevents its use: not given, by hardware_given.c; in the kernel, by hardware_kernel.c; in the plugins'
 * reports, by hardware_api.c; in words of hardware_words.c). hardware_machine.c describes the machine around it,
 * hardware_order.c the GPUs that this process was to be given.
 *
 * Nothing here may open a device node, or a file that wakes a sleeping GPU: the survey reads only files of the PCI core
 * for a device on the bus, since the core answers them from memory. `config` asks the device, so it is read only if the
 * device is awake. Each text is cleaned when it is read. A file that cannot be read leaves its value unknown. `error`
 * keeps the failures that must be reported: without a descriptor or memory a GPU would be missing.
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

/* A survey lists at most this many: the largest machines have 16, with 8 virtual functions each. */
enum { GPUHAL_HARDWARE_MAX = 256, GPUHAL_HARDWARE_PATH_BYTES = 768, GPUHAL_HARDWARE_FIX_BYTES = 448 };

typedef struct gpuhal_hardware {
    gpuhal_hardware_info info; /* its numbers; the texts are those below */
    char address[24], place[256];
    char vendor[96], name[128];
    char kernel_driver[40], kernel_driver_version[64];
    char drm_card[32], drm_render_node[32], vendor_node[32];
    char local_cpus[256];
    char why[640], fix[GPUHAL_HARDWARE_FIX_BYTES];
    char render_number[24]; /* "226:128": of the render node */
    char partition[40], partition_numbers[24];
    char unlisted[160]; /* hardware_join.c: why the vendor's API does not list it, by its plugin; "": no reason */
    bool is_off_bus;    /* its configuration space reads as ones */
    bool is_excluded;   /* an option of NVIDIA's driver leaves it out */
    bool is_virtual_function;
    uint32_t functions;     /* of a card: its virtual functions bound to NVIDIA's driver, for virtual machines */
    bool is_seen;           /* hardware_join.c: a listed device, maybe a hidden one, is this */
    bool is_hidden;         /* hardware_join.c: GPUHAL_DEVICES or the program hides a device that is this */
    bool is_seen_by_vendor; /* hardware_join.c: CUDA or HIP lists it */
} gpuhal_hardware;

/* The environment that starts this process, and so decides which GPUs it is given. */
typedef enum gpuhal_hardware_place {
    GPUHAL_PLACE_HOST,
    GPUHAL_PLACE_CONTAINER, /* of an unknown kind */
    GPUHAL_PLACE_DOCKER,
    GPUHAL_PLACE_PODMAN,
    GPUHAL_PLACE_POD, /* of Kubernetes */
    GPUHAL_PLACE_APPTAINER,
    GPUHAL_PLACE_ENROOT
} gpuhal_hardware_place;

/* The distribution whose packages and tools the machine has. */
typedef enum gpuhal_hardware_system {
    GPUHAL_SYSTEM_UNKNOWN,
    GPUHAL_SYSTEM_DEBIAN,
    GPUHAL_SYSTEM_UBUNTU,
    GPUHAL_SYSTEM_FEDORA,
    GPUHAL_SYSTEM_ARCH,
    GPUHAL_SYSTEM_SUSE
} gpuhal_hardware_system;

/* A batch system that runs this process in a job, or a lease. It gives a job GPUs, and sets the variables that keep
 * drivers from listing others. */
typedef struct gpuhal_hardware_batch {
    const char *sign, *number; /* variables: each job has the first; the second is its number, or NULL */
    const char *name, *request; /* of the job or lease; the command that asks for a GPU */
    bool counts;                /* gpuhal_hardware_count_of_job() knows how many the job was given */
} gpuhal_hardware_batch;

typedef struct gpuhal_hardware_machine {
    bool is_read, secure_boot;
    bool is_windows; /* Linux below Windows (WSL) */
    const gpuhal_hardware_batch *batch; /* whose job this is, also in a container; NULL: no job */
    char who[48];    /* the receiver of the GPUs: "this pod", "this Slurm job 17", "this user session" */
    bool is_usable;  /* a device stands for some hardware */
    gpuhal_hardware_place place;
    gpuhal_hardware_system system;
    char release[64]; /* of the kernel; "": unknown */
} gpuhal_hardware_machine;

/* The reason that prevents the use of hardware, and its remedy. `why` is cleaned when it is copied to the hardware,
 * `fix` line by line as it is written. */
typedef struct gpuhal_hardware_finding {
    gpuhal_hardware_state state;
    gpuhal_hardware_grade grade;
    char why[640], fix[GPUHAL_HARDWARE_FIX_BYTES];
} gpuhal_hardware_finding;

typedef struct gpuhal_hardware_survey {
    /* only while it is made: the listed devices, and the record of the machine */
    const gpuhal_settings *settings;
    const gpuhal_device_snapshot *devices;
    const gpuhal_database *record;
    uint32_t count, capacity;
    gpuhal_hardware *list;
    char root[GPUHAL_SYSTEM_ROOT_BYTES]; /* stands for `/` */
    bool bus_is_known;                   /* the list of PCI devices could be read */
    int error;                           /* errno of the first failure that may hide hardware; 0: none */
    int last;                            /* errno of the file that was read last; 0: it was there */
    intptr_t folder;                     /* open directory that was entered; -1: none */
    char folder_path[GPUHAL_HARDWARE_PATH_BYTES];
    gpuhal_hardware_machine machine; /* by gpuhal_hardware_machine_of() */
} gpuhal_hardware_survey;

/* ---- hardware_files.c: small files below the survey's root. `format` makes the path from its arguments. */

/* Opens a directory. Until another one is entered, or this one is left, files and links in it are looked up from there.
 * This spares the kernel the long path along the links of /sys. */
void gpuhal_hardware_enter(gpuhal_hardware_survey *survey, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void gpuhal_hardware_leave(gpuhal_hardware_survey *survey);
/* Reads the first line, without its line end, cut to the space, and cleaned. False, and "", if there is none. Never
 * waits for a file that is not regular. */
bool gpuhal_hardware_line(gpuhal_hardware_survey *survey, char *to, size_t bytes, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Reads the whole file, cut to the space, and ends it with a 0; returns the bytes. */
size_t gpuhal_hardware_bytes(gpuhal_hardware_survey *survey, char *to, size_t bytes, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Reads "0x1f" or "31" as the whole first line. */
bool gpuhal_hardware_number(gpuhal_hardware_survey *survey, uint32_t *out_number, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Copies the target of a symbolic link; false, and "", for anything else. */
bool gpuhal_hardware_target(gpuhal_hardware_survey *survey, char *to, size_t bytes, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Returns whether a file has this name, without opening it. */
bool gpuhal_hardware_is_there(const gpuhal_hardware_survey *survey, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Lists the names in a folder, to be freed by gpuhal_os_names_free(). False if it cannot be read. */
bool gpuhal_hardware_names(gpuhal_hardware_survey *survey, char ***out_names, size_t *out_count, const char *format,
                           ...)
    __attribute__((format(printf, 4, 5)));
/* Copies the value after "key" and blanks, a colon or an equals sign in a text of lines, cleaned; false if there is
 * none. */
bool gpuhal_hardware_value(const char *text, const char *key, char *to, size_t bytes);
/* Writes a text, cut to the space, and cleaned. */
void gpuhal_hardware_text(char *to, size_t bytes, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Appends a line to a command: one more command, or words after "# ", of at most 67 columns. Cleaned. */
void gpuhal_hardware_add_line(char *to, size_t bytes, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Returns the last part of a path. */
const char *gpuhal_hardware_leaf(const char *path);

/* ---- hardware_machine.c */

const gpuhal_hardware_machine *gpuhal_hardware_machine_of(gpuhal_hardware_survey *survey);
/* Writes the name of a group, else its number. */
void gpuhal_hardware_group(gpuhal_hardware_survey *survey, uint32_t number, char *to, size_t bytes);
/* Returns whether a file of any size contains this text. */
bool gpuhal_hardware_contains(gpuhal_hardware_survey *survey, const char *word, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* A setting that keeps the module from being loaded: the file or command line with the setting, and the command that
 * undoes it. */
typedef struct gpuhal_hardware_block {
    char where[128], fix[GPUHAL_HARDWARE_FIX_BYTES];
} gpuhal_hardware_block;
bool gpuhal_hardware_is_blocked(gpuhal_hardware_survey *survey, const char *module, gpuhal_hardware_block *out);

/* ---- hardware_place.c */

gpuhal_hardware_place gpuhal_hardware_place_of(gpuhal_hardware_survey *survey, bool is_windows);
/* Finds machine->batch, and writes machine->who. */
void gpuhal_hardware_find_who(gpuhal_hardware_survey *survey, gpuhal_hardware_machine *machine);
/* Returns machine->who without "this ": "container", "pod", "Slurm job 17". */
const char *gpuhal_hardware_place_name(const gpuhal_hardware_machine *machine);

/* ---- hardware_order.c */

/* Counts the devices that a list for a driver names, as "0,2-3,GPU-3fa0…". As in the drivers, entries after an
 * impossible one do not count. Parts of a device ("0.0,0.1") count once. */
uint32_t gpuhal_hardware_count_named(const char *value);
/* Returns how many GPUs Slurm gave this job, step or task on this machine; UINT32_MAX: unknown. */
uint32_t gpuhal_hardware_count_of_job(void);
/* The GPUs that the vendor's runtime was to give this container. */
typedef struct gpuhal_hardware_order {
    const char *name, *value; /* of the variable; valid until the environment changes */
    uint32_t count;           /* GPUs, at least */
    bool is_all;              /* all GPUs, as images ask by default */
    bool names_it;            /* the GPU `one` */
} gpuhal_hardware_order;
/* Returns whether a variable names those GPUs. */
bool gpuhal_hardware_find_order(gpuhal_hardware_survey *survey, const gpuhal_hardware *one, gpuhal_hardware_order *out);

/* ---- hardware_given.c */

/* Returns whether this process was not given the hardware (no fault), or lacks hardware that it was to be given (a
 * fault). `has_library`: as below. */
bool gpuhal_hardware_find_given(gpuhal_hardware_survey *survey, const gpuhal_hardware *one, bool has_library,
                                gpuhal_hardware_finding *out);

/* ---- hardware_words.c */

/* Sets state, grade and sentence; no command. */
void gpuhal_hardware_found(gpuhal_hardware_finding *out, gpuhal_hardware_state state, gpuhal_hardware_grade grade,
                           const char *format, ...) __attribute__((format(printf, 4, 5)));
/* Writes the day of a time since 1970: "2026-11-24". */
void gpuhal_hardware_day(uint64_t seconds, char *to, size_t bytes);
/* Appends the warning and the command of a restart of the machine. */
void gpuhal_hardware_add_restart(char *to, size_t bytes);
/* Each writes command lines: to install the vendor's kernel module, or a user library; to give this container, pod or
 * job the device ("": not known); to show the kernel's lines about it. */
void gpuhal_hardware_install_driver(gpuhal_hardware_survey *survey, const gpuhal_hardware *one, char *to, size_t bytes);
void gpuhal_hardware_install_library(gpuhal_hardware_survey *survey, const gpuhal_hardware *one, char *to,
                                     size_t bytes);
void gpuhal_hardware_give(gpuhal_hardware_survey *survey, const gpuhal_hardware *one, char *to, size_t bytes);
/* `answers`: the meaning of lines of NVIDIA's driver, in words after "# "; "": none. */
void gpuhal_hardware_read_log(const gpuhal_hardware *one, const char *answers, char *to, size_t bytes);
#define GPUHAL_HARDWARE_LOST_ANSWERS   "# Xid 79: power the machine off and on; if again: slot, power, card"
#define GPUHAL_HARDWARE_UNUSED_ANSWERS "# \"RmInitAdapter failed\", Xid 79: power the machine off and on"
/* Writes the commands that restart this container ("": not known). */
void gpuhal_hardware_restart(gpuhal_hardware_survey *survey, char *to, size_t bytes);
/* The first writes the commands that replace nouveau by NVIDIA's module. The second writes the commands that make
 * Secure Boot trust the modules that were built on this machine. */
void gpuhal_hardware_keep_nouveau_out(gpuhal_hardware_survey *survey, char *to, size_t bytes);
void gpuhal_hardware_enrol_key(gpuhal_hardware_survey *survey, char *to, size_t bytes);

/* ---- hardware_kernel.c */

/* Returns whether the kernel's side prevents the use. `has_library`: the vendor's user library is installed. */
bool gpuhal_hardware_find_kernel(gpuhal_hardware_survey *survey, const gpuhal_hardware *one, bool has_library,
                                 gpuhal_hardware_finding *out);

/* ---- hardware_hidden.c */

enum { GPUHAL_HARDWARE_APIS = 3 };
/* Lists the vendor's API if there is one, then the others; ends with NULL. */
void gpuhal_hardware_list_apis(const gpuhal_hardware *one, const char *out_apis[GPUHAL_HARDWARE_APIS + 1]);
/* Returns the report of the backend's plugin; NULL: there is none. */
const gpuhal_candidate *gpuhal_hardware_candidate_of(const gpuhal_candidates *candidates, const char *backend);
const char *gpuhal_hardware_api_name(const char *backend);
/* Returns whether a variable of the driver keeps the hardware from being listed. */
bool gpuhal_hardware_find_variable(gpuhal_hardware_survey *survey, const gpuhal_hardware *one,
                                   const gpuhal_candidate *candidate, gpuhal_hardware_finding *out);
/* For a backend that the program, or GPUHAL_BACKENDS, leaves out. */
void gpuhal_hardware_find_excluded(const gpuhal_settings *settings, const gpuhal_candidate *candidate,
                                   gpuhal_hardware_finding *out);
/* Returns whether the hardware belongs to others: variables give this job or container other GPUs, and the driver lists
 * all of those. */
bool gpuhal_hardware_find_others(gpuhal_hardware_survey *survey, const gpuhal_hardware *one,
                                 gpuhal_hardware_finding *out);
/* For hardware whose only devices are hidden. */
void gpuhal_hardware_find_hidden(gpuhal_hardware_survey *survey, const gpuhal_hardware *one,
                                 gpuhal_hardware_finding *out);

/* ---- hardware_api.c */

bool gpuhal_hardware_has_library(const gpuhal_hardware_survey *survey, const gpuhal_hardware *one);
/* For hardware whose plugin states why its API does not list it. */
void gpuhal_hardware_find_stated(const gpuhal_hardware *one, gpuhal_hardware_finding *out);
/* For hardware that is usable in the kernel, but has no device. */
void gpuhal_hardware_find_api(gpuhal_hardware_survey *survey, const gpuhal_hardware *one,
                              gpuhal_hardware_finding *out);
/* For hardware that is ready: sets a sentence if its vendor's API cannot use it. */
void gpuhal_hardware_find_rest(gpuhal_hardware_survey *survey, const gpuhal_hardware *one,
                               gpuhal_hardware_finding *out);

/* ---- the steps. */

/* Appends an empty entry. NULL: no memory (`error`), or the limit is reached. */
gpuhal_hardware *gpuhal_hardware_add(gpuhal_hardware_survey *survey);
/* Returns the entry on PCI with this address; NULL: there is none. */
gpuhal_hardware *gpuhal_hardware_at_address(const gpuhal_hardware_survey *survey, const char *address);
void gpuhal_hardware_scan(gpuhal_hardware_survey *survey);
void gpuhal_hardware_find_nodes(gpuhal_hardware_survey *survey);
void gpuhal_hardware_name(gpuhal_hardware_survey *survey);
void gpuhal_hardware_join(gpuhal_hardware_survey *survey);
void gpuhal_hardware_judge(gpuhal_hardware_survey *survey);

/* ---- hardware.c */

/* Surveys the machine, joins its hardware with the devices and the record, and makes that a source of the view. As
 * gpuhal_view_of() for GPUHAL_VIEW_HARDWARE. */
gpuhal_status gpuhal_hardware_add_source(const gpuhal_settings *settings, const gpuhal_device_snapshot *devices,
                                         const gpuhal_database *record, gpuhal_view *view);

#endif
