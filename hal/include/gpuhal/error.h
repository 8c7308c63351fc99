/** gpuhal/error.h: the details of a failure, with the vendor's own code.
 *
 *  Each thread has one last error. A failing call replaces it; after a successful call it is meaningless.
 */
#ifndef GPUHAL_ERROR_H
#define GPUHAL_ERROR_H

#include <gpuhal/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Detail of a thread's last error. Texts are never NULL; one that does not apply is "". */
typedef struct gpuhal_error {
    uint32_t size;
    gpuhal_status status;
    const char *sentence;     /**< For people: names the object and the reason. */
    const char *backend;      /**< "opencl". */
    const char *device;       /**< "opencl:1". */
    const char *vendor_call;  /**< "clCreateBuffer". */
    const char *vendor_text;  /**< The vendor's text, or the plugin's. */
    int64_t vendor_code;      /**< The vendor's number; 0: none. */
    uint64_t bytes_asked;     /**< Out of memory, too large: the requested size; 0 otherwise. */
    uint64_t bytes_free;      /**< Out of memory: free on the device, UINT64_MAX when unknown. */
    uint64_t bytes_total;     /**< Out of memory, too large: the total or the limit, UINT64_MAX when unknown. */
    uint64_t bytes_pending;   /**< Out of memory: of released buffers, free once queued work has ended; 0: none. */
} gpuhal_error;

/** Returns the detail of the last error on this thread.
 *  @return never NULL; status GPUHAL_OK when there was no error yet
 *  Owner: the library; valid until this thread's next failing call. Threads: any, each has its own. Blocks: no. */
GPUHAL_API const gpuhal_error *gpuhal_last_error(void);

/** Returns the name of a status: "out of memory".
 *  @return never NULL; "unknown status" for an invalid number
 *  Owner: static. Threads: any. Blocks: no. */
GPUHAL_API const char *gpuhal_status_name(gpuhal_status status);

#ifdef __cplusplus
}
#endif
#endif
