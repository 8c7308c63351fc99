/* Tests a vendor's plugin with its fake against docs/errors.md: every code on the page must become the status that the
 * page promises. Each code is tested in a separate process. The page's messages are tested in cuda_errors_own_test.c
 * and rocm_errors_own_test.c. */
#include "bench.h"
#include "errors_page.h"

#include <ctype.h>

/* Returns the status that the cell names in capitals, as in "`OUT_OF_MEMORY`", or 1 if the cell names none. */
static gpuhal_status status_named(const char *cell)
{
    static const struct {
        const char *name;
        gpuhal_status status;
    } all[] = {{"`OUT_OF_MEMORY`", GPUHAL_ERROR_OUT_OF_MEMORY},
               {"`TOO_LARGE`", GPUHAL_ERROR_TOO_LARGE},
               {"`BUSY`", GPUHAL_ERROR_BUSY},
               {"`DEVICE_LOST`", GPUHAL_ERROR_DEVICE_LOST},
               {"`NO_DRIVER`", GPUHAL_ERROR_NO_DRIVER},
               {"`NO_DEVICE`", GPUHAL_ERROR_NO_DEVICE},
               {"`NO_PERMISSION`", GPUHAL_ERROR_NO_PERMISSION},
               {"`INCOMPATIBLE`", GPUHAL_ERROR_INCOMPATIBLE},
               {"`NOT_SUPPORTED`", GPUHAL_ERROR_NOT_SUPPORTED},
               {"`INVALID_ARGUMENT`", GPUHAL_ERROR_INVALID_ARGUMENT},
               {"`NOT_FOUND`", GPUHAL_ERROR_NOT_FOUND},
               {"`TIMEOUT`", GPUHAL_ERROR_TIMEOUT},
               {"`DRIVER`", GPUHAL_ERROR_DRIVER}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (strncmp(cell + strspn(cell, " "), all[i].name, strlen(all[i].name)) == 0) {
            return all[i].status;
        }
    }
    return 1;
}

typedef struct promise {
    int code;
    const char *name;
    gpuhal_status status;
} promise;

static void expect_promised(const void *what)
{
    const promise *wanted = what;
    char machine[64];
    snprintf(machine, sizeof machine, "fail " CALLED(MemsetD8Async) " 1 %d", wanted->code);
    bench with = begin_on(machine, 1);
    gpuhal_memory memory = allocate(&with, 0, (gpuhal_alloc){.bytes = 64});
    const gpuhal_status status = with.ops.fill(with.devices[0], NULL, &memory, 0, 64, 0, 1);
    (void)gpuhal_direct_failed(with.plugin, status, "fill");
    remove_reports();
    const gpuhal_error *error = gpuhal_last_error();
    if (status != wanted->status || error->vendor_code != wanted->code || !strstr(error->sentence, wanted->name)) {
        fail_msg("%d: %s: %s", wanted->code, gpuhal_status_name(status), error->sentence);
    }
    const gpuhal_status health = wanted->status == GPUHAL_ERROR_DEVICE_LOST ? GPUHAL_ERROR_DEVICE_LOST : GPUHAL_OK;
    assert_int_equal(with.ops.query_health(with.devices[0]), health);
}

/* Tests the codes of one row: "4 `hipErrorDeinitialized`, 53 …". */
static unsigned try_row(char *cell, gpuhal_status status, unsigned *in_out_codes)
{
    unsigned wrong = 0;
    for (char *at = cell; (at = strstr(at, OF(" `CUDA_ERROR_", " `hipError")));) {
        char *number = at, *name = at + 2;
        while (isdigit((unsigned char)number[-1])) {
            number--;
        }
        at = strchr(name, '`');
        *at++ = '\0';
        (*in_out_codes)++;
        wrong += !passes_in_child(expect_promised, &(promise){(int)strtol(number, NULL, 10), name, status});
    }
    return wrong;
}

TEST(every_code_of_the_driver_becomes_the_status_that_the_page_promises)
{
    char *part = read_part(), *rest = part;
    unsigned codes = 0, wrong = 0;
    for (row one; next_row(&rest, &one);) {
        const gpuhal_status status = one.count > 2 ? status_named(one.cells[0]) : 1;
        wrong += status == 1 ? 0 : try_row(one.cells[1], status, &codes);
    }
    free(part);
#ifdef GPUHAL_CUDA_PLUGIN
    assert_true(codes > 80);
#else
#define COUNTED(name, value) +1
    assert_int_equal(codes, GPUHAL_HIP_RESULTS(COUNTED) - 2); /* all except success and not ready */
#endif
    assert_int_equal(wrong, 0);
}

#include "test_main.h"
