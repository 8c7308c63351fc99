/* tests/support/process.h: the threads, descriptors and mapped files of this process, and a function that runs part of
 * a test in a child process. */
#ifndef GPUHAL_TEST_PROCESS_H
#define GPUHAL_TEST_PROCESS_H

#include "test.h"

#include <dirent.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

static inline size_t count_entries(const char *folder)
{
    size_t count = 0;
    DIR *directory = opendir(folder);
    assert_non_null(directory);
    for (const struct dirent *entry; (entry = readdir(directory));) {
        count += entry->d_name[0] != '.';
    }
    closedir(directory);
    return count;
}

static inline size_t count_descriptors(void)
{
    return count_entries("/proc/self/fd");
}

static inline int count_threads(void)
{
    return (int)count_entries("/proc/self/task");
}

static inline void *end_thread(void *user)
{
    return user;
}

/* Returns the number of threads, with the one that a sanitizer may start beside the program's first new thread. Must be
 * called before the library starts threads. */
static inline int count_threads_first(void)
{
    pthread_t first;
    assert_int_equal(pthread_create(&first, NULL, end_thread, NULL), 0);
    pthread_join(first, NULL);
    for (int i = 0; i < 100 && count_threads() > 1; i++) {
        usleep(1000);
    }
    return count_threads();
}

/* Waits, because the system lists a thread for a short time after it has ended or was joined. */
static inline bool threads_come_down_to(int most)
{
    for (int i = 0; i < 5000 && count_threads() > most; i++) {
        usleep(1000);
    }
    return count_threads() <= most;
}

static inline bool is_mapped(const char *part)
{
    char line[1024];
    bool found = false;
    FILE *maps = fopen("/proc/self/maps", "r");
    assert_non_null(maps);
    while (fgets(line, sizeof line, maps)) {
        found = found || strstr(line, part);
    }
    fclose(maps);
    return found;
}

/* Runs `expect` in a child, because the fakes read their machine's description once per process. Returns true if
 * `expect` returned. */
static inline bool passes_in_child(void (*expect)(const void *what), const void *what)
{
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(30);
        expect(what);
        _exit(0);
    }
    int ended = -1;
    assert_int_equal(waitpid(child, &ended, 0), child);
    return ended == 0;
}

#endif
