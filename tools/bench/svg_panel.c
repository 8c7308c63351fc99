/* svg_panel.c: coordinates are those of the panel, from its top left corner. */
#include "svg_panel.h"
#include "table.h"

#include <math.h>
#include <string.h>

/* The field of the plot inside the panel, and how near texts may come to each other. */
enum { LEFT = 44, RIGHT = 262, TOP = 34, BOTTOM = 170 };
static const double tick_room = 54;
static const double name_room = 13;

void gpuhal_bench_svg_text(FILE *to, const char *text)
{
    for (; *text != '\0'; text++) {
        switch (*text) {
        case '&':
            fputs("&amp;", to);
            break;
        case '<':
            fputs("&lt;", to);
            break;
        case '>':
            fputs("&gt;", to);
            break;
        default:
            fputc(*text >= ' ' && *text <= '~' ? *text : '?', to);
        }
    }
}

/* 1, 2 or 5 times a power of ten: the least step with at most five lines. */
static double step_for(double most)
{
    const double power = pow(10, floor(log10(most / 5)));
    const double digit = most / 5 / power;
    return power * (digit <= 1 ? 1 : digit <= 2 ? 2 : digit <= 5 ? 5 : 10);
}

gpuhal_bench_scale gpuhal_bench_scale_of(const gpuhal_bench_curve *curves, size_t count)
{
    gpuhal_bench_scale scale = {.low = 64, .high = 0};
    for (size_t i = 0; i < count; i++) {
        for (size_t point = 0; point < curves[i].count; point++) {
            const gpuhal_bench_point *at = &curves[i].points[point];
            const double size = log2((double)at->bytes);
            scale.low = fmin(scale.low, size);
            scale.high = fmax(scale.high, size);
            scale.most = fmax(scale.most, fmax(at->ours, at->baseline)); /* fmax() passes over NAN. */
        }
    }
    if (scale.high - scale.low < 1) {
        scale.low -= 1;
        scale.high += 1;
    }
    scale.most = scale.most > 1e-6 ? scale.most : 1e-6;
    scale.step = step_for(scale.most);
    scale.most = ceil(scale.most / scale.step) * scale.step;
    return scale;
}

static double x_of(const gpuhal_bench_scale *scale, double size)
{
    const double width = RIGHT - LEFT;
    return (double)LEFT + (size - scale->low) / (scale->high - scale->low) * width;
}

static double y_of(const gpuhal_bench_scale *scale, double rate)
{
    const double height = BOTTOM - TOP;
    return (double)BOTTOM - rate / scale->most * height;
}

static double value_of(const gpuhal_bench_point *point, bool baseline)
{
    return baseline ? point->baseline : point->ours;
}

static void draw_axes(FILE *to, const gpuhal_bench_scale *scale)
{
    const int digits = scale->step >= 1 ? 0 : (int)ceil(-log10(scale->step) - 1e-9);
    for (double rate = 0; rate <= scale->most * 1.001; rate += scale->step) {
        fprintf(
            to,
            "<path class=\"%s\" d=\"M%d %.1fH%d\"/><text class=\"tick\" text-anchor=\"end\" x=\"%d\" y=\"%.1f\">%.*f</text>\n",
            rate > 0 ? "grid" : "axis", LEFT, y_of(scale, rate), RIGHT, LEFT - 6, y_of(scale, rate) + 3.5, digits, rate);
    }
    const double pixels = (RIGHT - LEFT) / (scale->high - scale->low);
    const double step = fmax(1, ceil(tick_room / pixels));
    for (double size = ceil(scale->low); size <= scale->high; size += step) {
        char text[GPUHAL_BENCH_WORD];
        gpuhal_bench_size_text(UINT64_C(1) << (unsigned)size, text);
        fprintf(
            to,
            "<path class=\"axis\" d=\"M%.1f %dv4\"/><text class=\"tick\" text-anchor=\"middle\" x=\"%.1f\" y=\"%d\">%s</text>\n",
            x_of(scale, size), BOTTOM, x_of(scale, size), BOTTOM + 16, text);
    }
    fprintf(to, "<text class=\"unit\" text-anchor=\"end\" x=\"%d\" y=\"%d\">GiB/s</text>\n", LEFT - 6, TOP - 10);
    fprintf(to, "<text class=\"unit\" text-anchor=\"middle\" x=\"%d\" y=\"%d\">size of a copy</text>\n", (LEFT + RIGHT) / 2,
            BOTTOM + 31);
}

static void draw_line(FILE *to, const gpuhal_bench_curve *curve, const gpuhal_bench_scale *scale, bool baseline)
{
    char before = 'M';
    fprintf(to, "<path class=\"%s\" d=\"", baseline ? "base" : "ours");
    for (size_t i = 0; i < curve->count; i++) {
        const gpuhal_bench_point *point = &curve->points[i];
        if (!isnan(value_of(point, baseline))) {
            fprintf(to, "%c%.1f %.1f", before, x_of(scale, log2((double)point->bytes)), y_of(scale, value_of(point, baseline)));
            before = 'L';
        }
    }
    fputs("\"/>\n", to);
}

/* Each point tells its figures to who points at it. */
static void draw_points(FILE *to, const gpuhal_bench_curve *curve, const gpuhal_bench_scale *scale, bool baseline)
{
    for (size_t i = 0; i < curve->count; i++) {
        const gpuhal_bench_point *point = &curve->points[i];
        const double value = value_of(point, baseline);
        const double x = x_of(scale, log2((double)point->bytes));
        char size[GPUHAL_BENCH_WORD];
        if (isnan(value)) {
            continue;
        }
        gpuhal_bench_size_text(point->bytes, size);
        if (baseline) {
            fprintf(to, "<rect class=\"box\" x=\"%.1f\" y=\"%.1f\" width=\"6\" height=\"6\">", x - 3, y_of(scale, value) - 3);
        } else {
            fprintf(to, "<circle class=\"dot\" cx=\"%.1f\" cy=\"%.1f\" r=\"2.6\">", x, y_of(scale, value));
        }
        fprintf(to, "<title>%s: %.3g GiB/s</title></%s>\n", size, value, baseline ? "rect" : "circle");
    }
}

static const gpuhal_bench_point *last_point(const gpuhal_bench_curve *curve, bool baseline)
{
    for (size_t i = curve->count; i > 0; i--) {
        if (!isnan(value_of(&curve->points[i - 1], baseline))) {
            return &curve->points[i - 1];
        }
    }
    return NULL;
}

/* At the ends of the lines; pushed apart where they would touch, and kept inside the field. */
static void draw_names(FILE *to, const gpuhal_bench_curve *curve, const gpuhal_bench_scale *scale)
{
    const gpuhal_bench_point *ours = last_point(curve, false);
    const gpuhal_bench_point *baseline = last_point(curve, true);
    double y = y_of(scale, ours->ours);
    const double x = x_of(scale, log2((double)ours->bytes)) + 9;
    if (baseline != NULL) {
        double other = y_of(scale, baseline->baseline);
        const double missing = name_room - fabs(y - other);
        if (missing > 0) {
            const double sign = y <= other ? -1 : 1;
            y += sign * missing / 2;
            other -= sign * missing / 2;
        }
        const double shift = fmin(0, (double)BOTTOM - fmax(y, other)) + fmax(0, (double)TOP - fmin(y, other));
        y += shift;
        fprintf(to, "<text class=\"name b\" x=\"%.1f\" y=\"%.1f\">%s</text>\n", x_of(scale, log2((double)baseline->bytes)) + 9,
                other + shift + 3.5, curve->half ? "slower half" : "baseline");
    }
    fprintf(to, "<text class=\"name o\" x=\"%.1f\" y=\"%.1f\">libgpuhal</text>\n", x, y + 3.5);
}

static void draw_title(FILE *to, const gpuhal_bench_curve *curve)
{
    static const struct {
        const char *test;
        const char *words;
    } titles[] = {
        {"write", "write: host memory to the device"},
        {"read", "read: the device to host memory"},
        {"copy", "copy: within the device"},
        {"upload", "upload: page-locked buffer to the device"},
        {"readback", "readback: the device to a page-locked buffer"},
        {"locked_write", "write: page-locked address to the device"},
        {"locked_read", "read: the device to a page-locked address"},
    };
    const char *words = curve->test;
    for (size_t i = 0; i < sizeof titles / sizeof *titles; i++) {
        words = strcmp(curve->test, titles[i].test) == 0 ? titles[i].words : words;
    }
    fprintf(to, "<text class=\"panel\" x=\"%d\" y=\"12\">", LEFT);
    if (*curve->peer != '\0') {
        gpuhal_bench_svg_text(to, curve->device);
        fputs(" to ", to);
        gpuhal_bench_svg_text(to, curve->peer);
        fputs(*curve->path != '\0' ? ", " : "", to);
        gpuhal_bench_svg_text(to, curve->path);
    } else {
        gpuhal_bench_svg_text(to, words);
    }
    fputs("</text>\n", to);
}

void gpuhal_bench_panel_draw(FILE *to, const gpuhal_bench_curve *curve, const gpuhal_bench_scale *scale, double x, double y)
{
    fprintf(to, "<g transform=\"translate(%.0f %.0f)\">\n", x, y);
    draw_title(to, curve);
    draw_axes(to, scale);
    if (last_point(curve, true) != NULL) {
        draw_line(to, curve, scale, true);
        draw_points(to, curve, scale, true);
    }
    draw_line(to, curve, scale, false);
    draw_points(to, curve, scale, false);
    draw_names(to, curve, scale);
    fputs("</g>\n", to);
}
