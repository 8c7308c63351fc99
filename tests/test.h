/* tests/test.h: declarations for every test program. Write TEST(what_shall_be_true) { … } in a *_test.c file; CMake
 * finds the names, and CTest runs each test in a separate process. The last line of the file is #include
 * "test_main.h". */
#ifndef GPUHAL_TEST_H
#define GPUHAL_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define TEST(name) static void name(__attribute__((unused)) void **unused_state)

/* Expects that a public call succeeds, in files that include gpuhal/error.h. */
#define assert_ok(status)                                                                                              \
    do {                                                                                                               \
        if ((status) != GPUHAL_OK) {                                                                                   \
            fail_msg("%s:%d: %s", __FILE__, __LINE__, gpuhal_last_error()->sentence);                                  \
        }                                                                                                              \
    } while (0)

/* Descriptions for a plugin's queue_create() and event_create(), in files that include gpuhal/plugin.h. */
#define QUEUE_DESC(...) (&(const gpuhal_plugin_queue_desc){.size = sizeof(gpuhal_plugin_queue_desc), __VA_ARGS__})
#define EVENT_DESC(...) (&(const gpuhal_plugin_event_desc){.size = sizeof(gpuhal_plugin_event_desc), __VA_ARGS__})

/* Skips a test that cannot run on this machine. Use it before the test has any effect. CTest reports the sentence. */
#define SKIP_TEST(sentence)                                                                                            \
    do {                                                                                                               \
        printf("skipped: %s\n", sentence);                                                                             \
        exit(77);                                                                                                      \
    } while (0)

#endif
