/* svg.c: a page of small panels, one for each curve: size on a logarithmic axis from left to right, GiB/s upwards from 0.
 *
 * Panels of one device share their scale, so that directions can be compared by eye; pairs have little in common and each its
 * own. The baseline is a broad band, ours a thin line upon it: both are seen where they are the same. The two colours are told
 * apart by every kind of colour vision, and besides by the shape of their points. Every line has its name at its end. */
#include "svg.h"
#include "svg_panel.h"
#include "table.h"

#include <math.h>
#include <string.h>
#include <time.h>

enum { COLUMNS = 3, MARGIN = 24, HEAD = 92, FOOT = 28 };
static const double group_head = 34;

static bool same_group(const gpuhal_bench_curve *one, const gpuhal_bench_curve *other)
{
    const bool pairs = *one->peer != '\0' && *other->peer != '\0';
    return pairs || (*one->peer == '\0' && *other->peer == '\0' && strcmp(one->device, other->device) == 0);
}

/* How many curves from @first on are shown together: those of one device, or all between devices. */
static size_t group_size(const gpuhal_bench_curves *curves, size_t first)
{
    size_t count = 1;
    while (first + count < curves->count && same_group(&curves->curves[first], &curves->curves[first + count])) {
        count++;
    }
    return count;
}

static double height_of(const gpuhal_bench_curves *curves)
{
    double height = HEAD + FOOT;
    for (size_t first = 0; first < curves->count;) {
        const size_t count = group_size(curves, first);
        height += group_head + (double)((count + COLUMNS - 1) / COLUMNS * GPUHAL_BENCH_PANEL_HEIGHT);
        first += count;
    }
    return height;
}

static void draw_group(FILE *to, const gpuhal_bench_curve *curves, size_t count, double top)
{
    const gpuhal_bench_scale scale = gpuhal_bench_scale_of(curves, count);
    fprintf(to, "<text class=\"group\" x=\"%d\" y=\"%.0f\">", MARGIN, top + 22);
    gpuhal_bench_svg_text(to, *curves->peer != '\0' ? "between devices" : curves->device);
    fputs("</text>\n", to);
    for (size_t i = 0; i < count; i++) {
        const double x = (double)(MARGIN + i % COLUMNS * GPUHAL_BENCH_PANEL_WIDTH);
        const double y = top + group_head + (double)(i / COLUMNS * GPUHAL_BENCH_PANEL_HEIGHT);
        const gpuhal_bench_scale own = gpuhal_bench_scale_of(&curves[i], 1);
        gpuhal_bench_panel_draw(to, &curves[i], *curves->peer != '\0' ? &own : &scale, x, y);
    }
}

static bool has_baseline(const gpuhal_bench_curves *curves)
{
    for (size_t i = 0; i < curves->count; i++) {
        for (size_t point = 0; point < curves->curves[i].count; point++) {
            if (!isnan(curves->curves[i].points[point].baseline)) {
                return true;
            }
        }
    }
    return false;
}

static bool has_software(const gpuhal_bench_curves *curves)
{
    for (size_t i = 0; i < curves->count; i++) {
        if (strchr(curves->curves[i].device, '*') != NULL || strchr(curves->curves[i].peer, '*') != NULL) {
            return true;
        }
    }
    return false;
}

static void draw_head(FILE *to, const gpuhal_bench_curves *curves, const char *cpu_name)
{
    char date[32] = "";
    const time_t now = time(NULL);
    struct tm parts;
    if (gmtime_r(&now, &parts) != NULL) {
        strftime(date, sizeof date, "%Y-%m-%d", &parts);
    }
    fprintf(to, "<text class=\"title\" x=\"%d\" y=\"32\">Bandwidth over the size of a copy</text>\n", MARGIN);
    fprintf(to, "<text class=\"note\" x=\"%d\" y=\"52\">gpuhal-bench %s, %s, ", MARGIN, gpuhal_version(), date);
    gpuhal_bench_svg_text(to, cpu_name != NULL ? cpu_name : "processor not known");
    if (has_software(curves)) {
        fputs(". * is a software device: its figures describe this processor.", to);
    }
    fputs("</text>\n", to);
    fprintf(to, "<g transform=\"translate(%d 74)\">", MARGIN);
    fputs("<path class=\"ours\" d=\"M0 -4h30\"/><circle class=\"dot\" cx=\"15\" cy=\"-4\" r=\"2.6\"/>"
          "<text class=\"key\" x=\"38\" y=\"0\">libgpuhal</text>",
          to);
    if (has_baseline(curves)) {
        fputs("<path class=\"base\" d=\"M130 -4h30\"/><rect class=\"box\" x=\"142\" y=\"-7\" width=\"6\" height=\"6\"/>"
              "<text class=\"key\" x=\"168\" y=\"0\">baseline: the vendor's own calls or memcpy; between devices the slower half "
              "of "
              "the way</text>",
              to);
    }
    fputs("</g>\n", to);
}

void gpuhal_bench_svg_draw(FILE *to, const gpuhal_bench_curves *curves, const char *cpu_name)
{
    const double width = 2 * MARGIN + COLUMNS * GPUHAL_BENCH_PANEL_WIDTH;
    const double height = height_of(curves);
    double top = HEAD;
    fprintf(to,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\" role=\"img\">\n"
            "<title>gpuhal-bench: bandwidth over the size of a copy</title>\n"
            "<style>\n"
            "text { font-family: 'DejaVu Sans', Verdana, Arial, sans-serif; fill: #222 }\n"
            ".title { font-size: 19px; font-weight: bold } .group { font-size: 15px; font-weight: bold }\n"
            ".panel { font-size: 12px } .note, .key { font-size: 11.5px } .note { fill: #444 }\n"
            ".tick { font-size: 10px; fill: #444 } .unit { font-size: 10px; fill: #444 }\n"
            ".grid { stroke: #e2e2e2; fill: none } .axis { stroke: #666; fill: none }\n"
            ".base { stroke: #f0b26b; stroke-width: 5; fill: none; stroke-linejoin: round }\n"
            ".box { fill: #fff; stroke: #b35900; stroke-width: 1.2 }\n"
            ".ours { stroke: #0072b2; stroke-width: 1.8; fill: none; stroke-linejoin: round }\n"
            ".dot { fill: #0072b2 }\n"
            ".name { font-size: 10.5px; font-weight: bold } .name.o { fill: #005a8c } .name.b { fill: #994c00 }\n"
            "</style>\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
            width, height, width, height);
    draw_head(to, curves, cpu_name);
    for (size_t first = 0; first < curves->count;) {
        const size_t count = group_size(curves, first);
        draw_group(to, &curves->curves[first], count, top);
        top += group_head + (double)((count + COLUMNS - 1) / COLUMNS * GPUHAL_BENCH_PANEL_HEIGHT);
        first += count;
    }
    if (curves->count == 0) {
        fprintf(to, "<text class=\"panel\" x=\"%d\" y=\"%d\">No copies over sizes were measured.</text>\n", MARGIN, HEAD + 16);
    }
    fputs("</svg>\n", to);
}
