/** gpuhal/report.h: the state of a plugin and the reason for it, and the environment variables of the library.
 *
 *  Every plugin that was found has one report, even a rejected plugin: GPUHAL_RECORD_PLUGIN in a view (gpuhal/view.h).
 *
 *      gpuhal_environment_entry entry = {.size = sizeof entry};
 *      for (uint32_t i = 0; gpuhal_environment_at(gpu, i, &entry) == GPUHAL_OK; i++)
 *          printf("%s=%s: %s\n", entry.name, entry.value, entry.meaning);
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
    GPUHAL_PLUGIN_OK = 0,            /**< The plugin lists devices. */
    GPUHAL_PLUGIN_NO_DRIVER = 1,     /**< No vendor's library is installed, or it is a loader that finds no driver. */
    GPUHAL_PLUGIN_NO_DEVICE = 2,     /**< The driver is installed, but lists no device. */
    GPUHAL_PLUGIN_NO_PERMISSION = 3, /**< This user may not use the driver. */
    GPUHAL_PLUGIN_FAILED = 4,        /**< The plugin crashed, exited, returned an error, or violated a rule. */
    GPUHAL_PLUGIN_TIMED_OUT = 5,     /**< The plugin exceeded its deadline. */
    GPUHAL_PLUGIN_INCOMPATIBLE = 6,  /**< The plugin has another ABI, or is for another platform. */
    GPUHAL_PLUGIN_REJECTED = 7,      /**< The file or manifest was rejected before anything was loaded. */
    GPUHAL_PLUGIN_DUPLICATE = 8,     /**< A plugin with this name or file was found earlier. */
    GPUHAL_PLUGIN_EXCLUDED = 9,      /**< Excluded by configuration or GPUHAL_BACKENDS. */
    GPUHAL_PLUGIN_NOT_PROBED = 10,   /**< The plugin was not probed. */
    GPUHAL_PLUGIN_QUARANTINED = 11,  /**< The plugin failed before and has not changed since. */
    GPUHAL_PLUGIN_FORKED = 12        /**< A parent of this process started the plugin's driver before the fork. */
};

/** The last step of probing a plugin. */
typedef uint32_t gpuhal_plugin_stage;
enum {
    GPUHAL_STAGE_SEARCH = 0,    /**< Searching for manifests. */
    GPUHAL_STAGE_MANIFEST = 1,  /**< Reading the manifest. */
    GPUHAL_STAGE_SELECT = 2,    /**< Checking the platform, duplicates and GPUHAL_BACKENDS. */
    GPUHAL_STAGE_FILE = 3,      /**< Checking the file, before anything is loaded. */
    GPUHAL_STAGE_SPAWN = 4,     /**< Starting the helper process. */
    GPUHAL_STAGE_LOAD = 5,      /**< dlopen(), which runs the constructors of the plugin and of its libraries. */
    GPUHAL_STAGE_HANDSHAKE = 6, /**< Negotiating the ABI with gpuhal_plugin_query(). */
    GPUHAL_STAGE_START = 7,     /**< Opening the vendor's library. */
    GPUHAL_STAGE_ENUMERATE = 8, /**< Listing devices. */
    GPUHAL_STAGE_DONE = 9
};

/** One plugin's report. Strings are never NULL; "" means unknown. */
typedef struct gpuhal_plugin_report {
    uint32_t size;
    gpuhal_plugin_state state;
    gpuhal_plugin_stage stage; /**< The last stage entered. */
    int32_t priority;
    const char *name;     /**< Name of the backend. */
    const char *version;  /**< Version of the plugin, once it was loaded. */
    const char *file;     /**< The shared library, the manifest if it was not accepted, or "built in". */
    const char *reason;   /**< A sentence that does not name the plugin; "" for OK without a note. */
    const char *driver;   /**< Path of the vendor's library that was opened. */
    uint64_t time_ns;     /**< Duration of the probe, or 0 if the plugin was not probed. */
    uint32_t device_count;
    uint32_t isolated;    /**< 1 if probed in a helper process; 0 if probed in this process or not at all. */
    /** 1 if the result comes from an earlier probe, since none of the result's dependencies has changed. */
    uint32_t cached;
    /** Number of the signal (on Windows the NTSTATUS) that terminated the helper process, or 0. */
    uint32_t signal;
    const char *output;   /**< Last lines that the plugin printed in the helper process, separated by line feeds. */
    uint64_t probed_at;   /**< Time of the probe in a helper process, in seconds since 1970, or 0. */
    const char *note;     /**< How long the result stays valid, or "" if the usual rule applies. */
    /** 1 if the state is DUPLICATE and was decided only by the file names of two manifests in one folder. */
    uint32_t ambiguous;
} gpuhal_plugin_report;

/** Returns the JSON name of a state, such as "no_driver".
 *  @return never NULL; "unknown" for an invalid number
 *  Owner: static. Threads: any. Blocks: no. */
GPUHAL_API const char *gpuhal_plugin_state_name(gpuhal_plugin_state state);

/** Returns the JSON name of a stage, such as "handshake".
 *  @return never NULL; "unknown" for an invalid number
 *  Owner: static. Threads: any. Blocks: no. */
GPUHAL_API const char *gpuhal_plugin_stage_name(gpuhal_plugin_stage stage);

/** One environment variable of the library, and whether it was read. */
typedef struct gpuhal_environment_entry {
    uint32_t size;
    const char *name;    /**< Name of the variable, such as "GPUHAL_BACKENDS". */
    const char *value;   /**< NULL if not set. */
    const char *meaning; /**< The variable's effect, in a few words. */
    /** 1 if the variable is set but was not read, because the process is privileged or the configuration ignores it. */
    uint32_t ignored;
} gpuhal_environment_entry;

/** Returns one of the environment variables that the library reads, by its position @p index in alphabetical order. Set
 *  @p out_entry->size first. @p gpu may be NULL.
 *  @return GPUHAL_OK, FORKED, INVALID_ARGUMENT, NOT_FOUND past the last
 *  Owner: value is valid until the environment changes, other strings are static. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_environment_at(const gpuhal *gpu, uint32_t index, gpuhal_environment_entry *out_entry);

#ifdef __cplusplus
}
#endif
#endif
