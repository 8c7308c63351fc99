/* watch_keys.c: handles the live view's keys, and describes them in the help. */
#include "watch_view.h"

#include <curses.h>
#include <string.h>

#define ESCAPE       27
#define PERIOD_LEAST 100000000u
#define PERIOD_MOST  60000000000u
#define PAGE         10u

static const char *const help[] = {
    "up, down, k, j   select a GPU; its curves are shown first",
    "space, p         pause: no driver is called until the next press",
    "+, -             sample more often, less often",
    "s, S             sort processes by the next column, the one before",
    "r                reverse the order of processes",
    "/                filter processes: by command, user, device or pid;",
    "                 Enter keeps the filter, Esc clears it",
    "d                processes of the selected GPU alone, or of all",
    "PgUp, PgDn       scroll the processes; Home: the first",
    "h, ?             this help",
    "q                quit",
    "",
    "A pid with # is that of another pid namespace (a container's).",
    "C computes, G draws.   - is not known.",
};

const char *gpuhal_watch_help(size_t index)
{
    return index < sizeof help / sizeof *help ? help[index] : NULL;
}

const char *gpuhal_watch_keys(const gpuhal_watch_view *view)
{
    if (view->typing) {
        return "Enter keep  Esc clear  filter: ";
    }
    return view->utf8 ? "q quit  h help  ↑↓ select  space pause  s sort  r "
                        "reverse  / filter  d its own"
                      : "q quit  h help  j,k select  space pause  s sort  r "
                        "reverse  / filter  d its own";
}

static void edit_filter(gpuhal_watch_view *view, int key)
{
    const size_t length = strlen(view->filter);
    if (key == '\n' || key == '\r' || key == KEY_ENTER) {
        view->typing = false;
    } else if (key == ESCAPE) {
        view->typing = false;
        view->filter[0] = 0;
    } else if (key == KEY_BACKSPACE || key == 127 || key == '\b') {
        view->filter[length ? length - 1 : 0] = 0;
    } else if (key >= ' ' && key < 127 && length + 1 < WATCH_FILTER_BYTES) {
        view->filter[length] = (char)key;
        view->filter[length + 1] = 0;
    }
    gpuhal_watch_view_sort(view);
}

static void select_row(gpuhal_watch_view *view, bool next)
{
    const uint32_t count = view->frame ? view->frame->row_count : 0;
    if (next ? view->selected + 1 < count : view->selected > 0) {
        view->selected += next ? 1 : UINT32_MAX;
    }
    if (count) {
        memcpy(view->selected_id, view->frame->rows[view->selected].id, sizeof view->selected_id);
    }
    gpuhal_watch_view_sort(view);
}

static void scroll_processes(gpuhal_watch_view *view, bool down)
{
    if (!down) {
        view->first_process = view->first_process > PAGE ? view->first_process - PAGE : 0;
    } else if (view->first_process + PAGE < view->match_count) {
        view->first_process += PAGE;
    }
}

static gpuhal_watch_wish set_period(gpuhal_watch_view *view, bool shorter)
{
    const uint64_t wanted = shorter ? view->period_ns / 2 : view->period_ns * 2;
    if (wanted >= PERIOD_LEAST && wanted <= PERIOD_MOST) {
        view->period_ns = wanted;
    }
    return WATCH_SET_SAMPLER;
}

static void sort_by(gpuhal_watch_view *view, unsigned step)
{
    view->order = (gpuhal_watch_order)(((unsigned)view->order + step) % WATCH_ORDERS);
    gpuhal_watch_view_sort(view);
}

gpuhal_watch_wish gpuhal_watch_view_key(gpuhal_watch_view *view, int key)
{
    if (view->typing) {
        edit_filter(view, key);
        return WATCH_GO_ON;
    }
    if (view->help && key != 'q') { /* any key except q closes the help */
        view->help = false;
        return WATCH_GO_ON;
    }
    switch (key) {
    case 'q':
        return WATCH_QUIT;
    case 'h':
    case '?':
        view->help = true;
        break;
    case KEY_UP:
    case 'k':
        select_row(view, false);
        break;
    case KEY_DOWN:
    case 'j':
        select_row(view, true);
        break;
    case ' ':
    case 'p':
        view->paused = !view->paused;
        return WATCH_SET_SAMPLER;
    case '+':
    case '-':
        return set_period(view, key == '+');
    case 's':
    case 'S':
        sort_by(view, key == 's' ? 1 : WATCH_ORDERS - 1);
        break;
    case 'r':
        view->reversed = !view->reversed;
        gpuhal_watch_view_sort(view);
        break;
    case '/':
        view->typing = true;
        break;
    case ESCAPE:
        view->filter[0] = 0;
        gpuhal_watch_view_sort(view);
        break;
    case 'd':
        view->of_selected = !view->of_selected;
        gpuhal_watch_view_sort(view);
        break;
    case KEY_PPAGE:
    case KEY_NPAGE:
        scroll_processes(view, key == KEY_NPAGE);
        break;
    case KEY_HOME:
        view->first_process = 0;
        break;
    default:
        break;
    }
    return WATCH_GO_ON;
}
