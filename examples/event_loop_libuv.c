/* event_loop_libuv.c [SELECTOR]: uses the library in a program with a libuv loop. A poll handle watches the descriptor
 * of an event, and a timer of the same loop keeps running while the device works. */
#include <gpuhal/gpuhal.h>

#include <stdio.h>
#include <string.h>
#include <uv.h>

enum { BYTES = 16 << 20, ROUNDS = 5 };

typedef struct program {
    gpuhal *gpu;
    gpuhal_queue *queue;
    gpuhal_buffer *buffer;
    gpuhal_event *event;
    gpuhal_os_handle descriptor;
    uv_poll_t poll;
    uv_timer_t timer;
    unsigned rounds, ticks;
    int failed;
} program;

static unsigned char in[BYTES], out[BYTES];

/* Copies to the device and back. After the copies, the event's descriptor becomes readable. */
static int start_round(program *own)
{
    memset(in, (int)own->rounds + 1, BYTES);
    return gpuhal_write(own->queue, own->buffer, 0, in, BYTES) || gpuhal_read(own->queue, out, own->buffer, 0, BYTES) ||
           gpuhal_event_record(own->event, own->queue);
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    program *own = poll->data;
    (void)events;
    own->failed =
        own->failed || status < 0 || gpuhal_event_poll(own->event) != GPUHAL_OK || memcmp(in, out, BYTES) != 0;
    own->rounds++;
    if (own->failed || own->rounds == ROUNDS || start_round(own)) {
        uv_poll_stop(poll);
        uv_timer_stop(&own->timer);
    }
}

static void on_tick(uv_timer_t *timer)
{
    program *own = timer->data;
    own->ticks++;
}

static int run_loop(program *own)
{
    uv_loop_t loop;
    if (uv_loop_init(&loop) != 0) {
        return 1;
    }
    own->poll.data = own->timer.data = own;
    int failed = uv_poll_init(&loop, &own->poll, (int)own->descriptor) != 0 || uv_timer_init(&loop, &own->timer) != 0 ||
                 uv_poll_start(&own->poll, UV_READABLE, on_readable) != 0 ||
                 uv_timer_start(&own->timer, on_tick, 0, 1) != 0;
    if (!failed) {
        uv_run(&loop, UV_RUN_DEFAULT);
        uv_close((uv_handle_t *)&own->poll, NULL);
        uv_close((uv_handle_t *)&own->timer, NULL);
        uv_run(&loop, UV_RUN_DEFAULT);
    }
    uv_loop_close(&loop);
    return failed;
}

int main(int argc, char **argv)
{
    const char *selector = argc > 1 ? argv[1] : "auto";
    program own = {.descriptor = -1};
    gpuhal_device *device = NULL;
    const gpuhal_buffer_desc desc = {.size = sizeof desc, .bytes = BYTES};
    own.failed = gpuhal_open(NULL, &own.gpu) || gpuhal_select(own.gpu, selector, 0, &device, NULL) ||
                 gpuhal_queue_create(device, NULL, &own.queue) || gpuhal_buffer_create(device, &desc, &own.buffer) ||
                 gpuhal_event_create(own.gpu, 0, &own.event) || gpuhal_event_descriptor(own.event, &own.descriptor) ||
                 start_round(&own);
    if (own.failed) {
        fprintf(stderr, "event_loop_libuv: %s\n", gpuhal_last_error()->sentence);
    } else {
        own.failed = run_loop(&own) || own.failed || own.rounds != ROUNDS || own.ticks == 0;
        printf("%s: %u rounds, %u ticks of a timer meanwhile, %s\n", gpuhal_device_id(device), own.rounds, own.ticks,
               own.failed ? "WRONG" : "right");
    }
    gpuhal_os_handle_close(own.descriptor);
    gpuhal_event_destroy(own.event);
    gpuhal_buffer_release(own.buffer);
    gpuhal_queue_destroy(own.queue);
    gpuhal_close(own.gpu);
    return own.failed ? 1 : 0;
}
