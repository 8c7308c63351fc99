/* copy_matrix.c: copies between every ordered pair of devices, including each device with itself, at random offsets
 * and with random sizes, and compares every byte of both buffers. Prints one line of JSON per pair:
 *
 *   {"from":"cuda:0","to":"cpu:0","path":"staged","ok":true,"copies":24,"bytes":33554509,"gib_per_s":12.3,"error":null}
 *
 * ok is null, with the reason in error, for a pair that was not tested. gib_per_s is the highest speed of three copies
 * of the whole buffer, and does not affect the result.
 *
 *     copy_matrix [--quick] [--seconds N] [--seed N]
 *
 * Copies from one device to all others (a row) run in child processes. If a driver crashes, only the current pair
 * fails. If a driver hangs, the current pair fails and the rest of the row is not tested. Exit codes: 0 all bytes were
 * right, 1 a pair failed, the library did not open or there is no device, 2 usage. */
#include "json_text.h"

#include <gpuhal/gpuhal.h>

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { COPIES = 24, QUICK_COPIES = 6, TIMED_COPIES = 3 };

/* Additional seconds for a pair that began before the time was up. */
static const double grace_s = 5;

typedef struct matrix {
    gpuhal *gpu;
    uint32_t devices;
    uint64_t bytes; /* of each buffer; odd, so that no end is aligned */
    unsigned copies;
    uint64_t seed;
} matrix;

/* The child's progress in a row, in shared memory. */
typedef struct progress {
    volatile uint32_t reported;
    volatile bool failed;
} progress;

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static unsigned char *random_bytes(uint64_t count, uint64_t *state)
{
    unsigned char *bytes = malloc(count);
    for (uint64_t i = 0; bytes != NULL && i < count; i++) {
        bytes[i] = (unsigned char)(next_random(state) >> 32);
    }
    return bytes;
}

/* A third of the copies are up to 64 bytes, a third up to 64 KiB, and a third up to the whole buffer. */
static uint64_t pick_size(uint64_t whole, uint64_t *state)
{
    static const uint64_t most[] = {64, 64 << 10, UINT64_MAX};
    const uint64_t limit = most[next_random(state) % 3];
    return 1 + next_random(state) % (limit < whole ? limit : whole);
}

static void report_pair(const char *from, const char *to, const char *path, const char *ok, unsigned copies,
                        uint64_t bytes, double gib_per_s, const char *error)
{
    fputs("{\"from\":", stdout);
    print_json_text(from);
    fputs(",\"to\":", stdout);
    print_json_text(to);
    fputs(",\"path\":", stdout);
    print_json_text(path);
    printf(",\"ok\":%s,\"copies\":%u,\"bytes\":%" PRIu64 ",\"gib_per_s\":", ok, copies, bytes);
    if (gib_per_s > 0) {
        printf("%.3f", gib_per_s);
    } else {
        fputs("null", stdout);
    }
    fputs(",\"error\":", stdout);
    print_json_text(error);
    puts("}");
    fflush(stdout);
}

/* ---- one pair */

typedef struct pair {
    gpuhal_buffer *from, *to;
    unsigned char *from_model, *to_model, *got;
    unsigned done;
    gpuhal_path path;
    double gib_per_s;
    char error[640];
} pair;

static bool failed(pair *p, const char *what)
{
    snprintf(p->error, sizeof p->error, "%s: %s", what, gpuhal_last_error()->sentence);
    return false;
}

static bool create(pair *p, const matrix *m, gpuhal_device *from, gpuhal_device *to, uint64_t *state)
{
    const gpuhal_buffer_desc desc = {.size = sizeof desc, .bytes = m->bytes};
    p->from_model = random_bytes(m->bytes, state);
    p->to_model = random_bytes(m->bytes, state);
    p->got = malloc(m->bytes);
    if (p->from_model == NULL || p->to_model == NULL || p->got == NULL) {
        snprintf(p->error, sizeof p->error, "the host's memory is short");
        return false;
    }
    if (gpuhal_buffer_create(from, &desc, &p->from) || gpuhal_buffer_create(to, &desc, &p->to)) {
        return failed(p, "creating a buffer");
    }
    if (gpuhal_write(NULL, p->from, 0, p->from_model, m->bytes) ||
        gpuhal_write(NULL, p->to, 0, p->to_model, m->bytes)) {
        return failed(p, "writing a buffer");
    }
    return true;
}

static bool compare(pair *p, const char *which, gpuhal_buffer *buffer, const unsigned char *model, uint64_t bytes)
{
    memset(p->got, 0xee, bytes);
    if (gpuhal_read(NULL, p->got, buffer, 0, bytes)) {
        return failed(p, "reading a buffer");
    }
    for (uint64_t i = 0; memcmp(p->got, model, bytes) != 0 && i < bytes; i++) {
        if (p->got[i] != model[i]) {
            snprintf(p->error, sizeof p->error,
                     "byte %" PRIu64 " of the %s is 0x%02x in place of 0x%02x after %u copies", i, which, p->got[i],
                     model[i], p->done);
            return false;
        }
    }
    return true;
}

static bool copy_and_compare(pair *p, const matrix *m, uint64_t *state)
{
    for (; p->done < m->copies; p->done++) {
        const uint64_t count = pick_size(m->bytes, state);
        const uint64_t from = next_random(state) % (m->bytes - count + 1),
                       to = next_random(state) % (m->bytes - count + 1);
        if (gpuhal_copy(NULL, p->to, to, p->from, from, count)) {
            return failed(p, "copying");
        }
        memcpy(p->to_model + to, p->from_model + from, count);
    }
    return compare(p, "destination", p->to, p->to_model, m->bytes) &&
           compare(p, "source", p->from, p->from_model, m->bytes);
}

static bool time_copies(pair *p, const matrix *m)
{
    for (unsigned i = 0; i < TIMED_COPIES; i++) {
        const double start = now();
        if (gpuhal_copy(NULL, p->to, 0, p->from, 0, m->bytes)) {
            return failed(p, "copying all of it");
        }
        const double rate = (double)m->bytes / (now() - start) / (double)(1 << 30);
        p->gib_per_s = rate > p->gib_per_s ? rate : p->gib_per_s;
    }
    return compare(p, "destination", p->to, p->from_model, m->bytes);
}

static bool try_pair(const matrix *m, gpuhal_device *from, gpuhal_device *to)
{
    static const char *const paths[] = {NULL, "native", "peer", "shared", "staged"};
    uint64_t state = m->seed * 2654435761u + gpuhal_device_index(from) * 97u + gpuhal_device_index(to) + 1u;
    pair p = {0};
    bool good = create(&p, m, from, to, &state) && copy_and_compare(&p, m, &state) && time_copies(&p, m);
    if (good && gpuhal_copy_path(p.to, p.from, &p.path)) {
        good = failed(&p, "asking for the path");
    }
    report_pair(gpuhal_device_id(from), gpuhal_device_id(to),
                p.path < sizeof paths / sizeof *paths ? paths[p.path] : NULL, good ? "true" : "false", p.done, m->bytes,
                p.gib_per_s, good ? NULL : p.error);
    gpuhal_buffer_release(p.from);
    gpuhal_buffer_release(p.to);
    free(p.from_model);
    free(p.to_model);
    free(p.got);
    return good;
}

/* ---- one row */

__attribute__((noreturn)) static void copy_row(const matrix *m, uint32_t row, double end, progress *seen)
{
    gpuhal *gpu = NULL; /* the child does not use the parent's object */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (gpuhal_open(NULL, &gpu) != GPUHAL_OK || gpuhal_device_count(gpu) != m->devices) {
        fprintf(stderr, "the child lists other devices: %s\n", gpuhal_last_error()->sentence);
        _exit(1);
    }
    while (seen->reported < m->devices && now() < end) {
        const bool good = try_pair(m, gpuhal_device_at(gpu, row), gpuhal_device_at(gpu, seen->reported));
        seen->failed = seen->failed || !good;
        seen->reported++;
    }
    fflush(NULL);
    _exit(0); /* the parent's objects must not be destroyed twice */
}

static bool await_child(pid_t child, double end, int *out_status)
{
    const struct timespec moment = {.tv_nsec = 2000000};
    while (waitpid(child, out_status, WNOHANG) == 0) {
        if (now() > end) {
            kill(child, SIGKILL);
            waitpid(child, out_status, 0);
            return false;
        }
        nanosleep(&moment, NULL);
    }
    return true;
}

static void report_without_copy(const matrix *m, uint32_t row, uint32_t column, const char *ok, const char *error)
{
    report_pair(gpuhal_device_id(gpuhal_device_at(m->gpu, row)), gpuhal_device_id(gpuhal_device_at(m->gpu, column)),
                NULL, ok, 0, m->bytes, 0, error);
}

/* Runs one child of a row. If the child crashes or hangs at a pair, prints the pair with the reason and returns
 * false. */
static bool run_child(const matrix *m, uint32_t row, double end, progress *seen)
{
    char error[128] = "no child process can be made";
    int status = 0;
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        copy_row(m, row, end, seen);
    }
    if (child > 0 && !await_child(child, end + grace_s, &status)) {
        snprintf(error, sizeof error, "it did not end in time");
    } else if (child > 0 && WIFSIGNALED(status)) {
        snprintf(error, sizeof error, "the process was ended by signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    } else if (child > 0 && WEXITSTATUS(status) != 0) {
        snprintf(error, sizeof error, "the driver ended the process with exit code %d", WEXITSTATUS(status));
    } else if (child > 0) {
        return true;
    }
    seen->failed = true;
    report_without_copy(m, row, seen->reported++, "false", error);
    return false;
}

/* Copies from one device to all others. No pair begins after @end. After a crash a new child continues with the next
 * pair. */
static bool run_row(const matrix *m, uint32_t row, double end)
{
    progress *seen = mmap(NULL, sizeof *seen, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (seen == MAP_FAILED) {
        fprintf(stderr, "no memory to share with a child process\n");
        return false;
    }
    while (seen->reported < m->devices && now() < end && !run_child(m, row, end, seen)) {
    }
    for (uint32_t column = seen->reported; column < m->devices; column++) {
        report_without_copy(m, row, column, "null", "not tried: the time had run out");
    }
    const bool good = !seen->failed;
    munmap(seen, sizeof *seen);
    return good;
}

/* ---- */

static bool read_number(const char *text, uint64_t *out_number)
{
    char *rest;
    if (text == NULL || *text < '0' || *text > '9') {
        return false;
    }
    errno = 0;
    *out_number = strtoull(text, &rest, 10);
    return *rest == '\0' && errno == 0 && *out_number > 0 && *out_number <= INT_MAX;
}

int main(int argc, char **argv)
{
    matrix m = {.bytes = (32 << 20) + 77, .copies = COPIES, .seed = 20260101};
    uint64_t seconds = 120;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--quick") == 0) {
            m.bytes = (1 << 20) + 77;
            m.copies = QUICK_COPIES;
        } else if (strcmp(argv[i], "--seconds") == 0 && read_number(argv[i + 1], &seconds)) {
            i++;
        } else if (strcmp(argv[i], "--seed") == 0 && read_number(argv[i + 1], &m.seed)) {
            i++;
        } else {
            fprintf(stderr, "usage: copy_matrix [--quick] [--seconds N] [--seed N]\n");
            return 2;
        }
    }
    const double end = now() + (double)seconds;
    if (gpuhal_open(NULL, &m.gpu) != GPUHAL_OK) {
        fprintf(stderr, "%s\n", gpuhal_last_error()->sentence);
        return 1;
    }
    m.devices = gpuhal_device_count(m.gpu);
    bool good = m.devices > 0;
    for (uint32_t row = 0; row < m.devices; row++) {
        /* All remaining rows get an equal share of the remaining time, so a hung row does not reduce the time of the
         * other rows. */
        const double start = now();
        good = run_row(&m, row, start + (end - start) / (m.devices - row)) && good;
    }
    gpuhal_close(m.gpu);
    return good ? 0 : 1;
}
