/* tests/system/cuda_fake.h: shared by the tests of the CUDA plugin with the fake driver.
 *
 * The fake reads its machine once per process. So CTest runs every test in a separate process, and each test selects
 * its machine first. */
#ifndef GPUHAL_TEST_CUDA_FAKE_H
#define GPUHAL_TEST_CUDA_FAKE_H

#define BACKEND "cuda"
#include "../fakes/cuda/vendor_names.h"
#include "machine.h"

/* Selects the libraries of CUDA and NVML in this folder, which is "" or "old/". */
static inline void use_libraries(const char *folder)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%slibcuda.so.1", GPUHAL_FAKE_CUDA_DIRECTORY, folder);
    setenv("GPUHAL_CUDA_LIBRARY", path, 1);
    snprintf(path, sizeof path, "%s/%slibnvidia-ml.so.1", GPUHAL_FAKE_CUDA_DIRECTORY, folder);
    setenv("GPUHAL_NVML_LIBRARY", path, 1);
}

/* Sets the machine for this process and its helper processes. The library sees no files of the real machine. */
static inline void use_machine(const char *script)
{
    set_machine(GPUHAL_FAKE_CUDA_DIRECTORY, script);
    unsetenv("CUDA_VISIBLE_DEVICES");
    unsetenv("CUDA_DEVICE_ORDER");
    setenv("GPUHAL_SYSTEM_ROOT", "/nowhere", 1);
    use_libraries("");
}

/* Expects that every object has been released and no rule was broken. Must be called last in a test. */
static inline void expect_clean(void)
{
    expect_no_violation();
    assert_int_equal(alive(), 0);
    assert_int_equal(fake_report_get()->left_behind, 0);
    assert_int_equal(fake_report_get()->contexts_alive, 0);
    assert_int_equal(fake_report_get()->primary_retains, 0);
    remove_reports();
}

static inline void close_clean(gpuhal *gpu)
{
    gpuhal_close(gpu);
    expect_clean();
}

/* The kernels that the fake knows, in PTX that the real compiler also accepts. */
static inline gpuhal_code kernels_code(void)
{
    static _Thread_local char text[1 << 14];
    FILE *file = fopen(GPUHAL_SOURCE_DIRECTORY "/tests/system/kernels/kernels.ptx", "r");
    assert_non_null(file);
    const size_t length = fread(text, 1, sizeof text - 1, file);
    assert_true(feof(file));
    fclose(file);
    text[length] = '\0';
    return (gpuhal_code){
        .size = sizeof(gpuhal_code), .format = "ptx", .target = "sm_50", .code = text, .bytes = length};
}

static inline vendor_api load_api(void)
{
    vendor_api api = load_functions("GPUHAL_CUDA_LIBRARY");
    assert_int_equal(api.cuInit(0), CUDA_SUCCESS);
    return api;
}

#endif
