/* watch.c: the event loop of the live view. The loop processes keys, frames, signals and timeouts, and updates the
 * screen. While it runs, drivers' output is discarded, because it would corrupt the screen. */
#include "watch.h"

#include "screen.h"
#include "stop.h"
#include "watch_canvas.h"
#include "watch_sampler.h"
#include "watch_view.h"

#include "../common/subprocess.h"

#include <curses.h>
#include <errno.h>
#include <fcntl.h>
#include <langinfo.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define ESCAPE_MS 25

typedef struct watch {
    gpuhal_watch_view view;
    gpuhal_watch_sampler *sampler;
    SCREEN *screen;
    FILE *keys, *out; /* the terminal */
    int said;         /* copy of the original standard error */
    bool colour;
} watch;

/* ---- the terminal */

static bool wants_colour(const gpuhal_probe_options *options)
{
    const char *no_colour = getenv("NO_COLOR");
    return options->color == PROBE_COLOR_ALWAYS || (options->color == PROBE_COLOR_AUTO && !(no_colour && *no_colour));
}

/* Redirects descriptors 1 and 2 to `said`, their original target, or to /dev/null if `said` is -1. */
static void set_streams(int said)
{
    const int null = said < 0 ? open("/dev/null", O_WRONLY | O_CLOEXEC) : said;
    if (null >= 0) {
        dup2(null, STDOUT_FILENO);
        dup2(null, STDERR_FILENO);
        close(null);
    }
}

static bool begin_screen(const gpuhal_probe_options *options, watch *own)
{
    own->keys = isatty(STDIN_FILENO) ? stdin : fopen("/dev/tty", "re");
    own->screen = own->keys ? newterm(NULL, own->out, own->keys) : NULL;
    if (!own->screen) {
        const char *kind = getenv("TERM");
        gpuhal_probe_say("the live view needs a terminal that terminfo knows; TERM is \"%s\"", kind ? kind : "");
        return false;
    }
    own->said = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
    set_streams(-1);
    set_escdelay(ESCAPE_MS);
    cbreak();
    noecho();
    nonl();
    keypad(stdscr, TRUE);
    nodelay(stdscr, TRUE);
    curs_set(0);
    own->colour = wants_colour(options) && has_colors();
    gpuhal_watch_canvas_init(own->colour);
    own->view.utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
    return true;
}

static void end_screen(watch *own)
{
    endwin();
    delscreen(own->screen);
    if (own->said >= 0) {
        set_streams(own->said);
    }
    if (own->keys != stdin) {
        fclose(own->keys);
    }
}

static void resize(const watch *own)
{
    struct winsize size;
    if (ioctl(fileno(own->out), TIOCGWINSZ, &size) == 0 && size.ws_row && size.ws_col) {
        resizeterm(size.ws_row, size.ws_col);
    }
    clearok(stdscr, TRUE);
}

/* Suspends the process with the terminal in its normal mode, and restores the screen when the process continues. */
static void suspend(const watch *own)
{
    endwin();
    raise(SIGSTOP);
    resize(own);
}

/* ---- the loop */

static void take_frame(watch *own)
{
    gpuhal_watch_frame *frame = gpuhal_watch_sampler_take(own->sampler);
    if (frame) {
        gpuhal_watch_view_take(&own->view, frame); /* if out of memory, the previous frame stays and its age is shown */
    }
}

/* Processes the keys. Returns false if a key ends the view. */
static bool read_keys(watch *own)
{
    int key;
    while ((key = getch()) != ERR) {
        const gpuhal_watch_wish wish = gpuhal_watch_view_key(&own->view, key);
        if (wish == WATCH_QUIT) {
            return false;
        }
        if (wish == WATCH_SET_SAMPLER) {
            gpuhal_watch_sampler_set(own->sampler, own->view.period_ns, own->view.paused);
        }
    }
    return true;
}

static bool handle_signals(const watch *own)
{
    int number;
    while ((number = gpuhal_probe_stop_next())) {
        if (number == SIGWINCH) {
            resize(own);
        } else {
            suspend(own);
        }
    }
    return gpuhal_probe_stopped() == 0;
}

static void run(watch *own)
{
    for (bool on = true; on;) {
        own->view.now_ns = gpuhal_tool_now_ns();
        gpuhal_watch_draw(&own->view, own->colour);
        struct pollfd polled[] = {{.fd = fileno(own->keys), .events = POLLIN},
                                  {.fd = gpuhal_watch_sampler_descriptor(own->sampler), .events = POLLIN},
                                  {.fd = gpuhal_probe_stop_descriptor(), .events = POLLIN}};
        /* If a sample is late, the loop wakes up after the timeout to update the displayed age. */
        const int patience = own->view.paused ? -1 : (int)(own->view.period_ns / 1000000u) * 2 + 1000;
        poll(polled, 3, patience);
        if (polled[1].revents & POLLIN) {
            take_frame(own);
        }
        on = handle_signals(own) && !(polled[0].revents & (POLLHUP | POLLERR | POLLNVAL)) && read_keys(own);
    }
}

gpuhal_probe_exit gpuhal_watch_run(const gpuhal_probe_options *options, gpuhal_probe_machine *machine, FILE *out)
{
    watch own = {.out = out, .said = -1, .view.period_ns = options->watch_ns};
    if (!gpuhal_probe_stop_catch(true)) {
        gpuhal_probe_say("signals cannot be caught: %s", strerror(errno));
        return PROBE_INTERNAL;
    }
    if (!begin_screen(options, &own)) {
        return PROBE_INTERNAL;
    }
    own.sampler = gpuhal_watch_sampler_start(machine, options, options->watch_ns);
    if (own.sampler) {
        run(&own);
    }
    end_screen(&own);
    if (own.sampler && !gpuhal_watch_sampler_end(own.sampler)) {
        _exit(PROBE_COMPLETE);
    }
    gpuhal_watch_view_finish(&own.view);
    return own.sampler ? PROBE_COMPLETE : PROBE_INTERNAL;
}
