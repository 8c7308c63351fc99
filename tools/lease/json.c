/* json.c: see json.h. */
#include "json.h"

#include "../common/json.h"
#include "options.h"

#include <gpuhal/schedule.h>

#include <stdio.h>
#include <stdlib.h>

gpuhal_status gpuhal_lease_read_ledger(gpuhal *gpu, char **out_text)
{
    uint64_t needed = 65536;
    *out_text = NULL;
    for (;;) {
        char *text = malloc(needed);
        const gpuhal_status status = text ? gpuhal_lease_json(gpu, text, needed, &needed) : GPUHAL_ERROR_HOST_MEMORY;
        if (status == GPUHAL_OK) {
            *out_text = text;
            return GPUHAL_OK;
        }
        free(text);
        if (status != GPUHAL_ERROR_OUT_OF_RANGE) {
            return status;
        }
        needed += needed / 2; /* the ledger may grow between the two calls */
    }
}

static const char *name_of(int exit_code)
{
    static const struct {
        int exit_code;
        const char *name;
    } names[] = {{LEASE_EXIT_USAGE, "usage"},
                 {LEASE_EXIT_BUSY, "busy"},
                 {LEASE_EXIT_TIMEOUT, "timeout"},
                 {LEASE_EXIT_NOT_EXECUTABLE, "not_executable"},
                 {LEASE_EXIT_NOT_FOUND, "not_found"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (names[i].exit_code == exit_code) {
            return names[i].name;
        }
    }
    return "failed";
}

bool gpuhal_lease_print_error(gpuhal *gpu, int exit_code, gpuhal_status status, const char *sentence)
{
    char *text = NULL;
    json_t *document = gpuhal_json_error("gpuhal.lease/1", "gpuhal-lease", name_of(exit_code), sentence);
    json_t *error = json_object_get(document, "error");
    bool good =
        json_object_set_new(error, "status", status ? json_string(gpuhal_status_name(status)) : json_null()) == 0;
    if (gpu && gpuhal_lease_read_ledger(gpu, &text) == GPUHAL_OK) {
        json_t *ledger = json_loads(text, 0, NULL);
        good = good && json_object_update_missing(document, ledger) == 0;
        json_decref(ledger);
    }
    free(text);
    good = good && json_dumpf(document, stdout, JSON_INDENT(2)) == 0 && putc('\n', stdout) != EOF;
    json_decref(document);
    return good && fflush(stdout) == 0;
}
