/* File contents as entries of a store. A file is read once, and again if it was replaced. */
#include "store_support.h"

#include <gpuhal/file.h>

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BYTES = 10000 };

static char path[] = "/tmp/gpuhal-store-path-XXXXXX";

static void write_file(const char *name, unsigned char byte, size_t bytes)
{
    unsigned char contents[BYTES];
    memset(contents, byte, sizeof contents);
    FILE *file = fopen(name, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(contents, 1, bytes, file), bytes);
    assert_int_equal(fclose(file), 0);
}

static store_fixture begin(void)
{
    const int descriptor = mkstemp(path);
    assert_true(descriptor >= 0);
    close(descriptor);
    write_file(path, 0x41, BYTES);
    return store_or_fail((gpuhal_store_desc){0}, 4 * SEGMENT);
}

static void end(store_fixture *f)
{
    unlink(path);
    close_store(f);
}

static gpuhal_status acquire(store_fixture *f, gpuhal_queue *queue, uint64_t offset, uint64_t bytes,
                             gpuhal_item **out_item)
{
    const gpuhal_file file = {.size = sizeof file, .path = path, .offset = offset};
    return gpuhal_store_acquire_file(f->store, queue, &file, bytes, PATIENCE_NS, out_item);
}

static gpuhal_item *acquire_or_fail(store_fixture *f, uint64_t offset, uint64_t bytes, unsigned char byte)
{
    gpuhal_item *item = NULL;
    assert_ok(acquire(f, NULL, offset, bytes, &item));
    expect_bytes(item, NULL, byte);
    return item;
}

TEST(acquires_of_the_same_bytes_share_one_entry)
{
    store_fixture f = begin();
    gpuhal_item *first = acquire_or_fail(&f, 0, GPUHAL_WHOLE_SIZE, 0x41);
    gpuhal_item *second = acquire_or_fail(&f, 0, BYTES, 0x41), *part = acquire_or_fail(&f, 4, 100, 0x41);
    assert_ptr_equal(gpuhal_item_buffer(first, NULL), gpuhal_item_buffer(second, NULL));
    assert_ptr_not_equal(gpuhal_item_buffer(first, NULL), gpuhal_item_buffer(part, NULL));
    assert_int_equal(gpuhal_buffer_bytes(gpuhal_item_buffer(part, NULL)), 100);
    assert_int_equal(counts_of(f.store).loads, 2);
    gpuhal_item_release(first, NULL);
    gpuhal_item_release(second, NULL);
    gpuhal_item_release(part, NULL);
    struct stat state;
    char prefix[64];
    uint64_t dropped = 0;
    assert_int_equal(stat(path, &state), 0);
    snprintf(prefix, sizeof prefix, "file %llx:%llx ", (unsigned long long)state.st_dev,
             (unsigned long long)state.st_ino);
    assert_ok(gpuhal_store_clear(f.store, prefix, strlen(prefix), &dropped));
    assert_int_equal(dropped, 2);
    end(&f);
}

TEST(the_whole_size_from_an_offset_on_is_the_rest_of_the_file)
{
    store_fixture f = begin();
    gpuhal_item *rest = acquire_or_fail(&f, 4, GPUHAL_WHOLE_SIZE, 0x41);
    assert_int_equal(gpuhal_buffer_bytes(gpuhal_item_buffer(rest, NULL)), BYTES - 4);
    gpuhal_item_release(rest, NULL);
    end(&f);
}

TEST(a_file_of_several_names_is_one_entry)
{
    store_fixture f = begin();
    char link_name[sizeof path + 5], hard_link[sizeof path + 5], spelled[sizeof path + 10];
    snprintf(link_name, sizeof link_name, "%s.soft", path);
    snprintf(hard_link, sizeof hard_link, "%s.hard", path);
    snprintf(spelled, sizeof spelled, "/tmp/..//tmp/./%s", strrchr(path, '/') + 1);
    assert_int_equal(symlink(path, link_name), 0);
    assert_int_equal(link(path, hard_link), 0);
    const char *const names[] = {path, spelled, link_name, hard_link};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const gpuhal_file file = {.size = sizeof file, .path = names[i]};
        gpuhal_item *item = NULL;
        assert_ok(gpuhal_store_acquire_file(f.store, NULL, &file, GPUHAL_WHOLE_SIZE, PATIENCE_NS, &item));
        expect_bytes(item, NULL, 0x41);
        gpuhal_item_release(item, NULL);
    }
    assert_int_equal(counts_of(f.store).loads, 1);
    assert_int_equal(counts_of(f.store).entries, 1);
    unlink(link_name);
    unlink(hard_link);
    end(&f);
}

TEST(a_file_that_was_replaced_or_written_to_is_read_again)
{
    store_fixture f = begin();
    gpuhal_item *old = acquire_or_fail(&f, 0, GPUHAL_WHOLE_SIZE, 0x41);
    char other[sizeof path + 4];
    snprintf(other, sizeof other, "%s.new", path);
    write_file(other, 0x42, BYTES);
    assert_int_equal(rename(other, path), 0);
    gpuhal_item *replaced = acquire_or_fail(&f, 0, GPUHAL_WHOLE_SIZE, 0x42);
    const struct timespec times[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
    write_file(path, 0x43, BYTES);
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
    gpuhal_item *written = acquire_or_fail(&f, 0, GPUHAL_WHOLE_SIZE, 0x43);
    expect_bytes(old, NULL, 0x41);
    gpuhal_item_release(old, NULL);
    gpuhal_item_release(replaced, NULL);
    gpuhal_item_release(written, NULL);
    end(&f);
}

typedef struct asker {
    pthread_t thread;
    store_fixture *f;
    gpuhal_item *item;
    gpuhal_status status;
} asker;

static void *ask(void *user)
{
    asker *own = user;
    own->status = acquire(own->f, own->f->queue, 0, GPUHAL_WHOLE_SIZE, &own->item);
    return NULL;
}

TEST(eight_threads_read_a_file_once)
{
    store_fixture f = begin();
    asker askers[8];
    for (int i = 0; i < 8; i++) {
        askers[i] = (asker){.f = &f};
        assert_int_equal(pthread_create(&askers[i].thread, NULL, ask, &askers[i]), 0);
    }
    for (int i = 0; i < 8; i++) {
        pthread_join(askers[i].thread, NULL);
        assert_int_equal(askers[i].status, GPUHAL_OK);
    }
    assert_ok(gpuhal_queue_synchronize(f.queue, PATIENCE_NS));
    for (int i = 0; i < 8; i++) {
        expect_bytes(askers[i].item, NULL, 0x41);
        gpuhal_item_release(askers[i].item, NULL);
    }
    assert_int_equal(counts_of(f.store).loads, 1);
    end(&f);
}

TEST(an_entry_that_made_room_is_read_again)
{
    store_fixture f = begin();
    gpuhal_item_release(acquire_or_fail(&f, 0, GPUHAL_WHOLE_SIZE, 0x41), NULL);
    filler other = {.byte = 1};
    for (int i = 0; i < 4; i++) {
        char key[12];
        snprintf(key, sizeof key, "%d", i);
        gpuhal_item_release(load_or_fail(&f, key, SEGMENT, &other), NULL);
    }
    gpuhal_item_release(acquire_or_fail(&f, 0, GPUHAL_WHOLE_SIZE, 0x41), NULL);
    assert_int_equal(counts_of(f.store).loads, 4 + 2);
    end(&f);
}

TEST(an_unreadable_file_is_refused_with_its_path_and_not_kept)
{
    store_fixture f = begin();
    gpuhal_item *item = NULL;
    const gpuhal_file none = {.size = sizeof none, .path = "/nowhere/at/all"}, bare = {.size = sizeof bare},
                      folder = {.size = sizeof folder, .path = "/tmp"};
    assert_int_equal(acquire(&f, NULL, BYTES, GPUHAL_WHOLE_SIZE, &item), GPUHAL_ERROR_OUT_OF_RANGE);
    assert_int_equal(acquire(&f, NULL, 1, BYTES, &item), GPUHAL_ERROR_OUT_OF_RANGE);
    assert_int_equal(acquire(&f, NULL, 0, 0, &item), GPUHAL_ERROR_OUT_OF_RANGE);
    assert_int_equal(acquire(&f, NULL, UINT64_MAX, 2, &item), GPUHAL_ERROR_OUT_OF_RANGE);
    assert_non_null(strstr(gpuhal_last_error()->sentence, path));
    assert_int_equal(gpuhal_store_acquire_file(f.store, NULL, &none, 1, 0, &item), GPUHAL_ERROR_NOT_FOUND);
    assert_non_null(strstr(gpuhal_last_error()->sentence, "/nowhere/at/all"));
    assert_string_equal(gpuhal_last_error()->vendor_call, "stat");
    assert_int_equal(gpuhal_store_acquire_file(f.store, NULL, &bare, 1, 0, &item), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_store_acquire_file(f.store, NULL, NULL, 1, 0, &item), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_store_acquire_file(f.store, NULL, &folder, 1, 0, &item), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(acquire(&f, NULL, 0, 1, NULL), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_null(item);
    assert_int_equal(counts_of(f.store).entries, 0);
    end(&f);
}

/* Imitates a program that rewrites a file while it is being read. */
static int32_t write_meanwhile(void *user, uint64_t done, uint64_t total)
{
    (void)user, (void)total;
    if (done > 0) {
        write_file(path, 0x44, BYTES / 2);
    }
    return 0;
}

TEST(a_file_that_changes_while_it_is_read_is_no_entry)
{
    store_fixture f = begin();
    gpuhal_item *item = NULL;
    const gpuhal_file file = {.size = sizeof file, .path = path, .progress = write_meanwhile};
    assert_int_equal(gpuhal_store_acquire_file(f.store, NULL, &file, GPUHAL_WHOLE_SIZE, PATIENCE_NS, &item),
                     GPUHAL_ERROR_FILE);
    assert_non_null(strstr(gpuhal_last_error()->sentence, "has changed while it was read"));
    gpuhal_item_release(acquire_or_fail(&f, 0, GPUHAL_WHOLE_SIZE, 0x44), NULL);
    end(&f);
}

#include "test_main.h"
