/* memory/tag.c: short strings that name the purpose of buffers. A device stores each string once, for the device's
 * lifetime. It counts the buffers with each tag, except suballocations, which pool/left.c counts. */
#include "memory/buffer.h"

#include "base/error.h"

#include <stdlib.h>
#include <string.h>

enum { LONGEST = 63 };

static bool is_printable(const char *text)
{
    const char *at = text;
    while ((unsigned char)*at >= ' ' && *at != 0x7f && at - text <= LONGEST) {
        at++;
    }
    return *at == 0 && at - text <= LONGEST;
}

static gpuhal_tag *find(gpuhal_device *device, const char *text)
{
    gpuhal_tag *tag = &device->untagged;
    while (tag && strcmp(tag->text, text) != 0) {
        tag = tag->next;
    }
    return tag;
}

gpuhal_status gpuhal_tag_get(gpuhal_device *device, const char *text, gpuhal_tag **out_tag)
{
    text = text ? text : "";
    if (!is_printable(text)) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                                "a tag has more than %d bytes, or a control character", LONGEST);
    }
    gpuhal_mutex_lock(&device->mutex);
    gpuhal_tag *tag = find(device, text);
    tag = tag ? tag : calloc(1, sizeof *tag);
    if (tag && !*tag->text && *text) {
        memcpy(tag->text, text, strlen(text));
        tag->next = device->untagged.next;
        device->untagged.next = tag;
    }
    gpuhal_mutex_unlock(&device->mutex);
    *out_tag = tag;
    return tag ? GPUHAL_OK : gpuhal_error_host_memory();
}

void gpuhal_tag_count(gpuhal_tag *tag, uint64_t bytes, bool in)
{
    if (tag && in) {
        atomic_fetch_add_explicit(&tag->buffers, 1, memory_order_relaxed);
        atomic_fetch_add_explicit(&tag->bytes, bytes, memory_order_relaxed);
    } else if (tag) {
        atomic_fetch_sub_explicit(&tag->buffers, 1, memory_order_relaxed);
        atomic_fetch_sub_explicit(&tag->bytes, bytes, memory_order_relaxed);
    }
}

gpuhal_status gpuhal_buffer_set_tag(gpuhal_buffer *buffer, const char *text)
{
    if (!buffer) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_buffer_set_tag: buffer is NULL");
    }
    gpuhal_tag *tag = NULL;
    gpuhal_status status = gpuhal_check(buffer->device->gpu);
    status = status ? status : gpuhal_tag_get(buffer->device, text, &tag);
    if (status) {
        return status;
    }
    gpuhal_tag *old = atomic_exchange(&buffer->tag, tag);
    if (!buffer->is_part) {
        gpuhal_tag_count(tag, buffer->bytes, true);
        gpuhal_tag_count(old, buffer->bytes, false);
    }
    return GPUHAL_OK;
}
