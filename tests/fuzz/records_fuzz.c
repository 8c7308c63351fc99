/* tests/fuzz/records_fuzz.c: arbitrary bytes as records. If parsed records are written and parsed again, the result
 * must be the same. */
#include "base/records.h"
#include "fuzz.h"

#include <string.h>

static void check_pair(const char *key, const gpuhal_text *value)
{
    gpuhal_records_reader again;
    gpuhal_text written = {0};
    gpuhal_records_write(&written, key, gpuhal_text_get(value));
    CHECK(gpuhal_records_is_clean(written.data, written.length - 1));
    gpuhal_records_begin(&again, written.data, written.length);
    CHECK(gpuhal_records_next(&again) == GPUHAL_RECORDS_PAIR);
    CHECK(strcmp(again.name, key) == 0);
    CHECK(strcmp(gpuhal_text_get(&again.value), gpuhal_text_get(value)) == 0);
    CHECK(gpuhal_records_next(&again) == GPUHAL_RECORDS_END);
    gpuhal_records_finish(&again);
    gpuhal_text_finish(&written);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    gpuhal_records_reader reader;
    gpuhal_records_item item;
    /* Copy the input, with a terminating 0, so that a sanitizer detects reads past this 0. */
    char *text = gpuhal_text_copy_range((const char *)bytes, count);
    gpuhal_records_begin(&reader, text, count);
    while ((item = gpuhal_records_next(&reader)) == GPUHAL_RECORDS_KIND || item == GPUHAL_RECORDS_PAIR) {
        CHECK(reader.name[0] && strlen(reader.name) < sizeof reader.name);
        if (item == GPUHAL_RECORDS_PAIR) {
            check_pair(reader.name, &reader.value);
        }
    }
    CHECK((item == GPUHAL_RECORDS_ERROR) == (reader.error[0] != 0));
    CHECK(gpuhal_records_next(&reader) == GPUHAL_RECORDS_END);
    gpuhal_records_finish(&reader);
    free(text);
    return 0;
}
