/* tests/unit/share_support.h: mock devices that share memory in different ways, and checks for tests of sharing. */
#ifndef GPUHAL_TEST_SHARE_SUPPORT_H
#define GPUHAL_TEST_SHARE_SUPPORT_H

#include "support/mock.h"
#include "test.h"

enum {
    PAGE = 4096,
    BYTES = 8 * PAGE,
    POINTER = 1u << GPUHAL_HANDLE_HOST_POINTER,
    OPAQUE = 1u << GPUHAL_HANDLE_OPAQUE_FD
};

/* Opens four devices. mock:0 has host-visible memory. mock:1 imports such memory, and mock:2 imports it into a separate
 * copy. mock:3 has no host-visible memory and cannot import. */
static inline gpuhal *open_four(void)
{
    gpuhal_mock = (gpuhal_mock_state){
        .count = 4,
        .devices = {
            {.name = "plain", .export_kinds = POINTER},
            {.name = "importer", .hidden = 1, .import_kinds = POINTER, .import_alignment = PAGE},
            {.name = "copier", .hidden = 1, .import_kinds = POINTER, .import_alignment = 64, .caches_imports = 1},
            {.name = "loner", .hidden = 1}}};
    return gpuhal_mock_open(NULL, 0);
}

static inline gpuhal_buffer *shareable(gpuhal *gpu, uint32_t index, uint32_t export_kinds, uint64_t bytes)
{
    const gpuhal_buffer_desc desc = {.size = sizeof desc, .bytes = bytes, .export_kinds = export_kinds};
    gpuhal_buffer *buffer = NULL;
    if (gpuhal_buffer_create(gpuhal_device_at(gpu, index), &desc, &buffer)) {
        fail_msg("gpuhal_buffer_create: %s", gpuhal_last_error()->sentence);
    }
    return buffer;
}

static inline gpuhal_buffer *share_with(gpuhal *gpu, gpuhal_buffer *buffer, uint32_t index)
{
    gpuhal_buffer *shared = NULL;
    if (gpuhal_buffer_share(buffer, gpuhal_device_at(gpu, index), &shared)) {
        fail_msg("gpuhal_buffer_share: %s", gpuhal_last_error()->sentence);
    }
    return shared;
}

static inline void expect_bytes(gpuhal_buffer *buffer, uint64_t offset, const char *text)
{
    char got[64] = {0};
    assert_int_equal(gpuhal_read(NULL, got, buffer, offset, strlen(text)), GPUHAL_OK);
    assert_string_equal(got, text);
}

static inline void expect_no_memory(void)
{
    for (uint32_t d = 0; d < gpuhal_mock.count; d++) {
        assert_int_equal(gpuhal_mock.devices[d].allocations, 0);
        assert_int_equal(gpuhal_mock.devices[d].openings, 0);
    }
}

#endif
