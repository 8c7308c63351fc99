/* device/hardware.h: the hardware of the machine, as a view for gpuhal/hardware.h is built. The steps, in this order:
 * hardware_scan.c (what is on the buses), hardware_nodes.c (which device nodes it has), hardware_names.c (what it is
 * called), hardware_join.c (which devices stand for it, and what the record of the machine knows), hardware_state.c
 * (what prevents its use: in the kernel by hardware_kernel.c, in the plugins' reports by hardware_api.c, in words of
 * hardware_words.c). hardware_machine.c knows the machine around it.
 *
 * Nothing here may open a device node, or a file that wakes a sleeping GPU: of a device on the bus only files of the
 * PCI core are read, which answer from memory, and `config`, which does not, only of one that is awake. All texts are
 * cleaned where they come in. A file that cannot be read leaves its value unknown; `error` keeps what must not go
 * unnoticed: without a descriptor or memory a GPU would be missing.
 */
#ifndef GPUHAL_DEVICE_HARDWARE_H
#define GPUHAL_DEVICE_HARDWARE_H

#include "core/config.h"

#include <gpuhal/hardware.h>

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

#define GPUHAL_VENDOR_AMD    0x1002u
#define GPUHAL_VENDOR_NVIDIA 0x10deu
#define GPUHAL_VENDOR_INTEL  0x8086u

/* More than this the view does not list: the largest machines have 16, with 8 virtual functions each. */
enum { GPUHAL_HARDWARE_MAX = 256, GPUHAL_HARDWARE_PATH_BYTES = 768 };

typedef struct gpuhal_hardware {
    gpuhal_hardware_info info; /* its numbers; the texts are those below */
    char address[24], place[256];
    char vendor[96], name[128];
    char kernel_driver[40], kernel_driver_version[64];
    char drm_card[32], drm_render_node[32], vendor_node[32];
    char local_cpus[256];
    char why[640], fix[320];
    char render_number[24]; /* "226:128": of the render node */
    bool is_off_bus;        /* its configuration space reads as ones */
    bool is_excluded;       /* an option of NVIDIA's driver leaves it out */
    bool is_virtual_function;
    bool is_seen;           /* hardware_join.c: a listed device, maybe a hidden one, is this */
    bool is_hidden;         /* hardware_join.c: a device that GPUHAL_DEVICES or the program hides is this */
    bool is_seen_by_vendor; /* hardware_join.c: CUDA or HIP lists it */
} gpuhal_hardware;

/* Whose packages and tools the machine has. */
typedef enum gpuhal_hardware_system {
    GPUHAL_SYSTEM_UNKNOWN,
    GPUHAL_SYSTEM_DEBIAN,
    GPUHAL_SYSTEM_UBUNTU,
    GPUHAL_SYSTEM_FEDORA,
    GPUHAL_SYSTEM_ARCH,
    GPUHAL_SYSTEM_SUSE
} gpuhal_hardware_system;

typedef struct gpuhal_hardware_machine {
    bool is_read, is_container, secure_boot;
    bool is_usable; /* a device stands for some hardware */
    gpuhal_hardware_system system;
    char release[64]; /* of the kernel; "": unknown */
} gpuhal_hardware_machine;

/* What prevents the use of hardware, and what mends it. The texts are cleaned when they reach the hardware. */
typedef struct gpuhal_hardware_finding {
    gpuhal_hardware_state state;
    gpuhal_hardware_grade grade;
    char why[640], fix[320];
} gpuhal_hardware_finding;

struct gpuhal_hardware_view {
    uint32_t generation; /* fork generation in which it was made */
    uint32_t count, capacity;
    gpuhal_hardware *list;
    char root[GPUHAL_SYSTEM_ROOT_BYTES]; /* stands for `/` */
    bool bus_is_known;   /* the list of PCI devices could be read */
    int error;           /* errno of the first failure that may hide hardware; 0: none */
    int last;            /* errno of the file that was read last; 0: it was there */
    intptr_t folder;     /* open directory that was entered; -1: none */
    char folder_path[GPUHAL_HARDWARE_PATH_BYTES];
    gpuhal_hardware_machine machine; /* by gpuhal_hardware_machine_of() */
};

/* ---- hardware_files.c: small files below the view's root. `format` makes the path from its arguments. */

/* Until another directory is entered, or this one is left, files and links in it are looked up from there, which spares
 * the kernel the long way along the links of /sys. */
void gpuhal_hardware_enter(gpuhal_hardware_view *view, const char *format, ...) __attribute__((format(printf, 2, 3)));
void gpuhal_hardware_leave(gpuhal_hardware_view *view);
/* Reads the first line, without its line end, cut to the space, and cleaned. False, and "", where there is none. Never
 * waits on what is no regular file. */
bool gpuhal_hardware_line(gpuhal_hardware_view *view, char *to, size_t bytes, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Reads the whole file, cut to the space, and ends it with a 0; returns the bytes. */
size_t gpuhal_hardware_bytes(gpuhal_hardware_view *view, char *to, size_t bytes, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Reads "0x1f" or "31" as the whole first line. */
bool gpuhal_hardware_number(gpuhal_hardware_view *view, uint32_t *out_number, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Copies the target of a symbolic link; false, and "", for anything else. */
bool gpuhal_hardware_target(gpuhal_hardware_view *view, char *to, size_t bytes, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Whether something has this name, which is not opened. */
bool gpuhal_hardware_is_there(const gpuhal_hardware_view *view, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The names in a folder, to be freed by gpuhal_os_names_free(). False where there is none to read. */
bool gpuhal_hardware_names(gpuhal_hardware_view *view, char ***out_names, size_t *out_count, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Copies the value behind "key" and blanks, a colon or a sign of equality in a text of lines, cleaned; false where
 * there is none. */
bool gpuhal_hardware_value(const char *text, const char *key, char *to, size_t bytes);
/* Writes a text, cut to the space, and cleaned. */
void gpuhal_hardware_text(char *to, size_t bytes, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* The last part of a path. */
const char *gpuhal_hardware_leaf(const char *path);

/* ---- hardware_machine.c */

const gpuhal_hardware_machine *gpuhal_hardware_machine_of(gpuhal_hardware_view *view);
/* Writes the name of a group, else its number. */
void gpuhal_hardware_group(gpuhal_hardware_view *view, uint32_t number, char *to, size_t bytes);
/* Whether a file of any size has this text in it. */
bool gpuhal_hardware_contains(gpuhal_hardware_view *view, const char *word, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Whether a setting keeps the module from being loaded, and which file has it. */
bool gpuhal_hardware_is_blocked(gpuhal_hardware_view *view, const char *module, char *out_file, size_t bytes);

/* ---- hardware_words.c */

/* Sets state, grade and sentence; no command. */
void gpuhal_hardware_found(gpuhal_hardware_finding *out, gpuhal_hardware_state state, gpuhal_hardware_grade grade,
                           const char *format, ...) __attribute__((format(printf, 4, 5)));
/* Writes the day of a time since 1970: "2026-11-24". */
void gpuhal_hardware_day(uint64_t seconds, char *to, size_t bytes);
/* Each writes a command line: what installs the vendor's kernel module, or a user library; what gives a container the
 * device; what shows the kernel's lines about it. */
void gpuhal_hardware_install_driver(gpuhal_hardware_view *view, const gpuhal_hardware *one, char *to, size_t bytes);
void gpuhal_hardware_install_library(gpuhal_hardware_view *view, const gpuhal_hardware *one, char *to, size_t bytes);
void gpuhal_hardware_start_container(gpuhal_hardware_view *view, const gpuhal_hardware *one, char *to, size_t bytes);
void gpuhal_hardware_read_log(const gpuhal_hardware *one, char *to, size_t bytes);

/* ---- hardware_kernel.c */

/* Returns whether the kernel's side prevents the use. `has_library`: the vendor's user library is installed. */
bool gpuhal_hardware_find_kernel(gpuhal_hardware_view *view, const gpuhal_hardware *one, bool has_library,
                                 gpuhal_hardware_finding *out);

/* ---- hardware_api.c */

bool gpuhal_hardware_has_library(const gpuhal *gpu, const gpuhal_hardware *one);
/* For hardware that only hidden devices are. */
void gpuhal_hardware_find_hidden(const gpuhal_settings *settings, gpuhal_hardware_finding *out);
/* For hardware that the kernel's side makes usable, and no device is. */
void gpuhal_hardware_find_api(gpuhal_hardware_view *view, gpuhal *gpu, const gpuhal_hardware *one,
                              gpuhal_hardware_finding *out);
/* For hardware that is ready: sets a sentence where its vendor's API cannot use it. */
void gpuhal_hardware_find_rest(gpuhal_hardware_view *view, gpuhal *gpu, const gpuhal_hardware *one,
                               gpuhal_hardware_finding *out);

/* ---- the steps. */

/* Appends an empty entry, or returns NULL: without memory (`error`), or above the limit. */
gpuhal_hardware *gpuhal_hardware_add(gpuhal_hardware_view *view);
/* Returns the entry on PCI with this address; NULL: there is none. */
gpuhal_hardware *gpuhal_hardware_at_address(const gpuhal_hardware_view *view, const char *address);
void gpuhal_hardware_scan(gpuhal_hardware_view *view);
void gpuhal_hardware_find_nodes(gpuhal_hardware_view *view);
void gpuhal_hardware_name(gpuhal_hardware_view *view);
void gpuhal_hardware_join(gpuhal_hardware_view *view, gpuhal *gpu);
void gpuhal_hardware_judge(gpuhal_hardware_view *view, gpuhal *gpu);

#endif
