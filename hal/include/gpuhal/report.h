/** gpuhal/report.h: the state of a plugin, and the reason; the environment variables that count.
 *
 *  Every plugin that was found has one report, also the rejected ones: GPUHAL_RECORD_PLUGIN in a view (gpuhal/view.h).
 */
#ifndef GPUHAL_REPORT_H
#define GPUHAL_REPORT_H

#include <gpuhal/instance.h>
#include <gpuhal/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The state of a plugin. */
typedef uint32_t gpuhal_plugin_state;
enum {
    GPUHAL_PLUGIN_OK = 0,            /**< It lists devices. */
    GPUHAL_PLUGIN_NO_DRIVER = 1,     /**< The vendor's library is not installed. */
    GPUHAL_PLUGIN_NO_DEVICE = 2,     /**< The driver is there and lists no device. */
    GPUHAL_PLUGIN_NO_PERMISSION = 3, /**< The driver may not be used by this user. */
    GPUHAL_PLUGIN_FAILED = 4,        /**< It crashed, exited, returned an error, or broke the rules. */
    GPUHAL_PLUGIN_TIMED_OUT = 5,     /**< It exceeded its deadline. */
    GPUHAL_PLUGIN_INCOMPATIBLE = 6,  /**< Another ABI, or another platform. */
    GPUHAL_PLUGIN_REJECTED = 7,      /**< File or manifest were rejected before anything was loaded. */
    GPUHAL_PLUGIN_DUPLICATE = 8,     /**< A plugin of this name or file came earlier. */
    GPUHAL_PLUGIN_EXCLUDED = 9,      /**< Excluded by configuration or GPUHAL_BACKENDS. */
    GPUHAL_PLUGIN_NOT_PROBED = 10,   /**< It was not probed. */
    GPUHAL_PLUGIN_QUARANTINED = 11,  /**< It failed before and has not changed since. */
    GPUHAL_PLUGIN_FORKED = 12        /**< A parent of this process started its driver before the fork. */
};

/** The last step of probing a plugin. */
typedef uint32_t gpuhal_plugin_stage;
enum {
    GPUHAL_STAGE_SEARCH = 0,    /**< Looking for manifests. */
    GPUHAL_STAGE_MANIFEST = 1,  /**< Reading the manifest. */
    GPUHAL_STAGE_SELECT = 2,    /**< Platform, duplicates, GPUHAL_BACKENDS. */
    GPUHAL_STAGE_FILE = 3,      /**< Checks of the file, nothing loaded yet. */
    GPUHAL_STAGE_SPAWN = 4,     /**< Starting the helper process. */
    GPUHAL_STAGE_LOAD = 5,      /**< dlopen: the plugin's constructors, and those of its libraries, run here. */
    GPUHAL_STAGE_HANDSHAKE = 6, /**< gpuhal_plugin_query: negotiating the ABI. */
    GPUHAL_STAGE_START = 7,     /**< Opening the vendor's library. */
    GPUHAL_STAGE_ENUMERATE = 8, /**< Listing devices. */
    GPUHAL_STAGE_DONE = 9
};

/** One plugin's report. Texts are never NULL; "" means unknown. */
typedef struct gpuhal_plugin_report {
    uint32_t size;
    gpuhal_plugin_state state;
    gpuhal_plugin_stage stage; /**< The last stage entered. */
    int32_t priority;
    const char *name;     /**< Name of the backend. */
    const char *version;  /**< Of the plugin, once it was loaded. */
    const char *file;     /**< The shared library, or the manifest if it was not accepted; "built in". */
    const char *reason;   /**< A sentence that does not name the plugin; "" for OK without a note. */
    const char *driver;   /**< Path of the vendor's library that was opened. */
    uint64_t time_ns;     /**< From the start of its probe to the result; 0: it was not probed. */
    uint32_t device_count;
    uint32_t isolated;    /**< 1: probed in a helper process, 0: in this process or not at all. */
    uint32_t cached;      /**< 1: the result of an earlier probe: none of its dependencies has changed. */
    /** The cause that ended its helper process, by the system's number: a signal, on Windows an NTSTATUS; 0: none. */
    uint32_t signal;
    const char *output;   /**< The last lines that it printed in its helper process, separated by line feeds. */
    uint64_t probed_at;   /**< When it was probed in a helper process, in seconds since 1970; 0: it was not. */
    const char *note;     /**< How long the result stays valid; "": by the usual rule. */
    uint32_t ambiguous;   /**< 1: DUPLICATE, and only the file names of two manifests in one folder decided it. */
} gpuhal_plugin_report;

/** Returns the name of a state, as in JSON: "no_driver".
 *  @return never NULL; "unknown" for an invalid number
 *  Owner: static. Threads: any. Blocks: no. */
GPUHAL_API const char *gpuhal_plugin_state_name(gpuhal_plugin_state state);

/** Returns the name of a stage, as in JSON: "handshake".
 *  @return never NULL; "unknown" for an invalid number
 *  Owner: static. Threads: any. Blocks: no. */
GPUHAL_API const char *gpuhal_plugin_stage_name(gpuhal_plugin_stage stage);

/** One environment variable of the library, and whether it was read. */
typedef struct gpuhal_environment_entry {
    uint32_t size;
    const char *name;    /**< "GPUHAL_BACKENDS". */
    const char *value;   /**< NULL: not set. */
    const char *meaning; /**< Its effect, in a few words. */
    uint32_t ignored;    /**< 1: set, and not read, because the process is privileged or the configuration says so. */
} gpuhal_environment_entry;

/** Returns variable number @p index that the library reads, in alphabetical order. Set @p out_entry->size first.
 *  @p gpu may be NULL.
 *  @return GPUHAL_OK, FORKED, INVALID_ARGUMENT, NOT_FOUND past the last
 *  Owner: value is valid until the environment changes, other texts are static. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_environment_at(const gpuhal *gpu, uint32_t index, gpuhal_environment_entry *out_entry);

#ifdef __cplusplus
}
#endif
#endif
