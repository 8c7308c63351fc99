/* tests/support/idle.h: waits until a process may fork under a sanitizer.
 *
 * A starting thread takes locks of the address sanitizer's allocator. If a lock is held during a fork, it stays locked
 * in the child, and the child's next allocation hangs (GCC 12). */
#ifndef GPUHAL_TEST_IDLE_H
#define GPUHAL_TEST_IDLE_H

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A thread that has ended in the meantime counts as sleeping. */
static inline bool thread_sleeps(const char *thread)
{
    char path[64], line[256] = "";
    snprintf(path, sizeof path, "/proc/self/task/%.20s/stat", thread);
    FILE *file = fopen(path, "r");
    const bool read = file && fgets(line, sizeof line, file);
    if (file) {
        fclose(file);
    }
    const char *state = strrchr(line, ')');
    return !read || !state || state[2] == 'S';
}

/* If all other threads sleep, none of them is in the middle of an allocation. */
static inline bool other_threads_sleep(void)
{
    bool sleep = true;
    DIR *tasks = opendir("/proc/self/task");
    for (const struct dirent *entry = tasks ? readdir(tasks) : NULL; entry; entry = readdir(tasks)) {
        const bool other = entry->d_name[0] != '.' && atoi(entry->d_name) != getpid();
        sleep = sleep && (!other || thread_sleeps(entry->d_name));
    }
    if (tasks) {
        closedir(tasks);
    }
    return sleep;
}

/* Called by the main thread before a fork. */
static inline void wait_until_other_threads_sleep(void)
{
    for (int i = 0; i < 10000 && !other_threads_sleep(); i++) {
        usleep(1000);
    }
}

#endif
