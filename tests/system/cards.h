/* tests/system/cards.h: a CUDA machine whose cards are inserted and removed while the program runs. Each card is named
 * by a letter. Each card has its own UUID, PCI address and memory, which do not depend on its index in the driver. A
 * helper process sees the machine as it is when the process starts; the driver in this process keeps its first list. */
#ifndef GPUHAL_TEST_CARDS_H
#define GPUHAL_TEST_CARDS_H

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char cards_folder[512], cards_file[600];

/* If `cards` is "BA", the driver lists B first. `more` contains further statements for the script. The file is replaced
 * atomically, so a reader always sees a complete file, even if several threads call this function. */
static inline void put_cards(const char *cards, const char *more)
{
    static _Atomic unsigned written;
    char temporary[640];
    snprintf(temporary, sizeof temporary, "%s.%u", cards_file, atomic_fetch_add(&written, 1));
    FILE *file = fopen(temporary, "w");
    assert_non_null(file);
    fprintf(file, "devices %zu\nstrict 1\n%s\n", strlen(cards), more);
    for (unsigned i = 0; cards[i]; i++) {
        unsigned letter = (unsigned char)cards[i];
        fprintf(file,
                "uuid %u 0000000000000000000000000000%04x\npci %u 0000:%02x:00.0\nmemory %u %uM\nname %u Card %c\n", i,
                letter, i, letter, i, cards[i] == 'A' ? 256 : 64, i, cards[i]);
    }
    assert_int_equal(fclose(file), 0);
    assert_int_equal(rename(temporary, cards_file), 0);
}

/* Returns the path of the script. Must be called first; FAKE_CUDA must be set to the result. */
static inline const char *make_cards(const char *cards)
{
    const char *root = getenv("TMPDIR");
    snprintf(cards_folder, sizeof cards_folder, "%s/gpuhal-cards-XXXXXX", root && *root == '/' ? root : "/tmp");
    assert_non_null(mkdtemp(cards_folder));
    snprintf(cards_file, sizeof cards_file, "%s/machine", cards_folder);
    put_cards(cards, "");
    return cards_file;
}

static inline void remove_cards(void)
{
    unlink(cards_file);
    rmdir(cards_folder);
}

/* Returns the card's newest device that is not lost, or NULL. */
static inline gpuhal_device *find_card(const gpuhal *gpu, char card)
{
    gpuhal_device *found = NULL;
    char name[16];
    snprintf(name, sizeof name, "Card %c", card);
    for (uint32_t i = 0; i < gpuhal_device_count(gpu); i++) {
        gpuhal_device *device = gpuhal_device_at(gpu, i);
        const char *text = NULL;
        if (!gpuhal_device_text(device, GPUHAL_FACT_NAME, &text) && strcmp(text, name) == 0 &&
            !gpuhal_device_status(device)) {
            found = device;
        }
    }
    return found;
}

#endif
