/* event_loop_epoll.c [SELECTOR]: an event loop with epoll on Linux. Several copies are in progress at the same time.
 * When a copy ends, a descriptor of the library wakes the loop; all copies use the same descriptor. No thread of the
 * program waits for a device. */
#include <gpuhal/gpuhal.h>

#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { COPIES = 8, BYTES = 1 << 20 };

typedef struct copy {
    gpuhal_buffer *buffer;
    gpuhal_event *event;
    unsigned char in[BYTES], out[BYTES];
    int right;
} copy;

static int start(gpuhal_device *device, gpuhal_queue *queue, gpuhal *gpu, copy *work, unsigned char first)
{
    const gpuhal_buffer_desc desc = {.size = sizeof desc, .bytes = BYTES};
    for (size_t i = 0; i < BYTES; i++) {
        work->in[i] = (unsigned char)(first + i * 7);
    }
    return gpuhal_buffer_create(device, &desc, &work->buffer) || gpuhal_event_create(gpu, 0, &work->event) ||
           gpuhal_write(queue, work->buffer, 0, work->in, BYTES) ||
           gpuhal_read(queue, work->out, work->buffer, 0, BYTES) || gpuhal_event_record(work->event, queue) ||
           gpuhal_event_watch(work->event, work);
}

static int take_all(gpuhal *gpu, unsigned *left)
{
    void *user = NULL;
    gpuhal_status ended = GPUHAL_OK, status = GPUHAL_OK;
    while ((status = gpuhal_next_completion(gpu, &user, &ended)) == GPUHAL_OK) {
        copy *work = user;
        work->right = ended == GPUHAL_OK && memcmp(work->in, work->out, BYTES) == 0;
        (*left)--;
    }
    return status != GPUHAL_NOT_READY;
}

static int run_loop(gpuhal *gpu)
{
    gpuhal_os_handle done = -1;
    unsigned left = COPIES;
    int failed = gpuhal_completion_descriptor(gpu, &done);
    int loop = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event interest = {.events = EPOLLIN}, happened;
    failed = failed || loop < 0 || epoll_ctl(loop, EPOLL_CTL_ADD, (int)done, &interest) != 0;
    while (!failed && left > 0) {
        failed = epoll_wait(loop, &happened, 1, -1) != 1 || take_all(gpu, &left);
    }
    close(loop);
    gpuhal_os_handle_close(done);
    return failed;
}

int main(int argc, char **argv)
{
    const char *selector = argc > 1 ? argv[1] : "auto";
    static copy copies[COPIES];
    gpuhal *gpu = NULL;
    gpuhal_device *device = NULL;
    gpuhal_queue *queue = NULL;
    int failed = gpuhal_open(NULL, &gpu) || gpuhal_select(gpu, selector, 0, &device, NULL) ||
                 gpuhal_queue_create(device, NULL, &queue);
    for (unsigned i = 0; i < COPIES && !failed; i++) {
        failed = start(device, queue, gpu, &copies[i], (unsigned char)i);
    }
    if (failed) {
        fprintf(stderr, "event_loop_epoll: %s\n", gpuhal_last_error()->sentence);
    }
    failed = failed || run_loop(gpu);
    unsigned right = 0;
    for (unsigned i = 0; i < COPIES; i++) {
        right += (unsigned)copies[i].right;
        gpuhal_event_destroy(copies[i].event);
        gpuhal_buffer_release(copies[i].buffer);
    }
    printf("%s: %u of %u copies right\n", device ? gpuhal_device_id(device) : "no device", right, (unsigned)COPIES);
    gpuhal_queue_destroy(queue);
    gpuhal_close(gpu);
    return !failed && right == COPIES ? 0 : 1;
}
