/* support/stack.h: measures a function's stack use. Fills the stack with a pattern before the call, and counts the
 * remaining bytes of the pattern after the call. The function runs in a thread, so it must not use cmocka's checks. */
#ifndef TESTS_SUPPORT_STACK_H
#define TESTS_SUPPORT_STACK_H

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
enum { STACK_IS_REPORTED = 0 }; /* sanitizers make frames larger */
#else
enum { STACK_IS_REPORTED = 1 };
#endif

static inline void *stack_do_nothing(__attribute__((unused)) void *unused)
{
    return NULL;
}

/* Returns the number of bytes, excluding those that the thread itself uses. @p run returns NULL on success. */
static inline size_t stack_taken_by(void *(*run)(void *user))
{
    enum { BYTES = 256 << 10, PAINT = 0x5a };
    void *(*const runs[])(void *user) = {stack_do_nothing, run};
    size_t used[2] = {0};
    unsigned char *stack = aligned_alloc(4096, BYTES);
    assert_non_null(stack);
    for (int i = 0; i < 2; i++) {
        pthread_attr_t attributes;
        pthread_t thread;
        void *failed = NULL;
        memset(stack, PAINT, BYTES);
        pthread_attr_init(&attributes);
        assert_int_equal(pthread_attr_setstack(&attributes, stack, BYTES), 0);
        assert_int_equal(pthread_create(&thread, &attributes, runs[i], NULL), 0);
        pthread_join(thread, &failed);
        assert_null(failed);
        pthread_attr_destroy(&attributes);
        size_t left = 0;
        while (left < BYTES && stack[left] == PAINT) {
            left++;
        }
        used[i] = BYTES - left;
    }
    free(stack);
    printf("# %zu bytes, of which the thread itself %zu\n", used[1], used[0]);
    return used[1] - used[0];
}

#endif
