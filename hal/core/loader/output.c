/* loader/output.c: see output.h. */
#include "loader/output.h"

#include "base/records.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

void gpuhal_output_add(gpuhal_output *output, const char *bytes, size_t count)
{
    size_t room = sizeof output->tail;
    if (count >= room) {
        memcpy(output->tail, bytes + (count - room), room);
        output->used = room;
        return;
    }
    size_t kept = output->used < room - count ? output->used : room - count;
    memmove(output->tail, output->tail + (output->used - kept), kept);
    memcpy(output->tail + kept, bytes, count);
    output->used = kept + count;
}

static char *clean(const char *line, size_t length)
{
    char *copy = gpuhal_text_copy_range(line, length);
    if (!copy || gpuhal_records_is_clean(copy, length)) {
        return copy;
    }
    for (size_t i = 0; i < length; i++) {
        copy[i] = copy[i] >= ' ' && copy[i] < 127 ? copy[i] : copy[i] == '\t' ? ' ' : '?';
    }
    return copy;
}

void gpuhal_output_lines(const gpuhal_output *output, gpuhal_texts *out_lines)
{
    size_t begins[GPUHAL_OUTPUT_LINES], lengths[GPUHAL_OUTPUT_LINES], count = 0;
    *out_lines = (gpuhal_texts){0};
    for (size_t end = output->used; end > 0 && count < GPUHAL_OUTPUT_LINES;) {
        size_t begin = end;
        while (begin > 0 && output->tail[begin - 1] != '\n' && output->tail[begin - 1] != '\r') {
            begin--;
        }
        if (end > begin) {
            begins[count] = begin;
            lengths[count++] = end - begin;
        }
        end = begin > 0 ? begin - 1 : 0;
    }
    while (count > 0) {
        count--;
        gpuhal_texts_give(out_lines, clean(output->tail + begins[count], lengths[count]));
    }
}
