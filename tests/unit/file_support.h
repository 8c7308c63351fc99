/* tests/unit/file_support.h: a private file and two devices for a test. */
#ifndef GPUHAL_TEST_FILE_SUPPORT_H
#define GPUHAL_TEST_FILE_SUPPORT_H

#include "transfer_support.h"

#include <fcntl.h>
#include <unistd.h>

enum { LARGE = 9 * 1024 * 1024 + 5 };

static char path[64];

static inline void remove_file(void)
{
    unlink(path);
}

/* Names a private file in the build folder, since /tmp may not be on a disk. */
static inline void name_file(void)
{
    strcpy(path, "gpuhal-file-XXXXXX");
    int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    atexit(remove_file);
}

static inline void put_file(const void *bytes, size_t count)
{
    if (!path[0]) {
        name_file();
    }
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, count, file), count);
    assert_int_equal(fclose(file), 0);
}

static inline void expect_file(const unsigned char *expected, size_t count)
{
    unsigned char *got = malloc(count + 1);
    FILE *file = fopen(path, "rb");
    assert_non_null(got);
    assert_non_null(file);
    assert_int_equal(fread(got, 1, count + 1, file), count);
    assert_memory_equal(got, expected, count);
    fclose(file);
    free(got);
}

static inline gpuhal_file by_path(uint64_t offset)
{
    return (gpuhal_file){.size = sizeof(gpuhal_file), .path = path, .offset = offset};
}

static inline gpuhal_file by_descriptor(int descriptor)
{
    return (gpuhal_file){.size = sizeof(gpuhal_file), .descriptor = descriptor};
}

/* The host can access mock:0; transfers with mock:1 use chunks. */
static inline gpuhal *open_two(void)
{
    gpuhal_mock = (gpuhal_mock_state){
        .count = 2,
        .devices = {{.name = "visible"}, {.name = "hidden", .hidden = 1, .no_read_write = 1, .copy_alignment = 4}}};
    return gpuhal_mock_open(NULL, 0);
}

static inline void expect_failure(gpuhal_status status, gpuhal_status expected, const char *words)
{
    if (status != expected || !strstr(gpuhal_last_error()->sentence, words)) {
        fail_msg("%s, \"%s\"; expected %s, \"%s\"", gpuhal_status_name(status), gpuhal_last_error()->sentence,
                 gpuhal_status_name(expected), words);
    }
}

static inline uint64_t at_most(uint64_t most)
{
    return next_random() % (most + 1);
}

#endif
