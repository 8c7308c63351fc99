/* tests/unit/registry_form_test.c: the text of the registry. Written records can be read again, and damaged records are
 * never accepted. */
#include "registry/checksum.h"
#include "registry_support.h"

/* Makes the text of a registry with every kind of record, and a copy to damage. */
static gpuhal_text sample_text(void)
{
    gpuhal_registry *registry = gpuhal_registry_create(NULL, 0, NULL);
    record_all_kinds(registry);
    gpuhal_snapshot *snapshot = gpuhal_registry_snapshot(registry);
    gpuhal_text text = {0};
    gpuhal_serial_write(&snapshot->database, &text);
    gpuhal_snapshot_release(snapshot);
    gpuhal_registry_destroy(registry);
    assert_false(text.failed);
    return text;
}

static gpuhal_text record_text(gpuhal_database_kind kind, const void *record)
{
    gpuhal_text text = {0};
    gpuhal_record_write(kind, record, &text);
    return text;
}

static bool is_part_of(const gpuhal_database *some, const gpuhal_database *all)
{
    for (gpuhal_database_kind kind = 0; kind < GPUHAL_DATABASE_KINDS; kind++) {
        for (size_t i = 0; i < some->records[kind].count; i++) {
            bool found = false;
            gpuhal_text one = record_text(kind, gpuhal_database_at(some, kind, i));
            for (size_t j = 0; j < all->records[kind].count && !found; j++) {
                gpuhal_text other = record_text(kind, gpuhal_database_at(all, kind, j));
                found = strcmp(one.data, other.data) == 0;
                gpuhal_text_finish(&other);
            }
            gpuhal_text_finish(&one);
            if (!found) {
                return false;
            }
        }
    }
    return true;
}

static size_t record_count(const gpuhal_database *database)
{
    size_t count = 0;
    for (gpuhal_database_kind kind = 0; kind < GPUHAL_DATABASE_KINDS; kind++) {
        count += database->records[kind].count;
    }
    return count;
}

TEST(the_checksum_is_crc_32c)
{
    assert_int_equal(gpuhal_checksum(0, "123456789", 9), 0xe3069283);
    assert_int_equal(gpuhal_checksum(gpuhal_checksum(0, "1234", 4), "56789", 5), 0xe3069283);
    assert_int_equal(gpuhal_checksum(0, "", 0), 0);
}

/* Computes the checksum bit by bit, as it is defined. */
static uint32_t slow_checksum(const unsigned char *bytes, size_t count)
{
    uint32_t sum = UINT32_MAX;
    for (size_t i = 0; i < count; i++) {
        sum ^= bytes[i];
        for (int bit = 0; bit < 8; bit++) {
            sum = sum & 1 ? sum >> 1 ^ 0x82f63b78 : sum >> 1;
        }
    }
    return ~sum;
}

TEST(the_checksum_of_many_bytes_is_that_of_their_pieces)
{
    static unsigned char bytes[200007];
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = (unsigned char)(i * 2654435761u >> 24);
    }
    for (size_t from = 0; from < 9; from++) {
        const size_t count = sizeof bytes - from;
        const uint32_t sum = slow_checksum(bytes + from, count);
        assert_int_equal(gpuhal_checksum(0, bytes + from, count), sum);
        assert_int_equal(gpuhal_checksum(gpuhal_checksum(0, bytes + from, 5000), bytes + from + 5000, count - 5000),
                         sum);
    }
}

TEST(checksums_of_neighbouring_pieces_add_up_in_any_order)
{
    static unsigned char bytes[70000];
    static const size_t ends[] = {0, 1, 8, 4097, 65537, sizeof bytes};
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = (unsigned char)(i * 2246822519u >> 24);
    }
    uint32_t sum = 0;
    for (size_t i = sizeof ends / sizeof *ends - 1; i > 0; i--) {
        const uint32_t own = gpuhal_checksum(0, bytes + ends[i - 1], ends[i] - ends[i - 1]);
        sum ^= gpuhal_checksum_shift(own, sizeof bytes - ends[i]);
    }
    assert_int_equal(sum, slow_checksum(bytes, sizeof bytes));
}

TEST(a_written_database_is_read_again_word_for_word)
{
    gpuhal_text text = sample_text(), again = {0};
    gpuhal_database database;
    gpuhal_serial_report report;
    assert_int_equal(gpuhal_serial_read(text.data, text.length, &database, &report), GPUHAL_READ_OK);
    assert_false(gpuhal_serial_is_damaged(&report));
    assert_int_equal(record_count(&database), 1 + 2 + 3 + 1 + 1);
    size_t count;
    const gpuhal_database_plugin *plugin = gpuhal_database_plugins(&database, &count);
    assert_string_equal(plugin->file, "/lib/a \\ b.so");
    assert_string_equal(plugin->key.list[1], "variable A= two words ");
    assert_string_equal(plugin->output.list[0], "the last line\twith a tab");
    assert_string_equal(plugin->reason, "");
    assert_int_equal(plugin->devices.list[0].index, 3);
    assert_string_equal(gpuhal_facts_text(&plugin->devices.list[0].facts, GPUHAL_FACT_NAME), "G\xc3\xb6\xc3\x9f");
    assert_true(gpuhal_facts_u64(&plugin->devices.list[0].facts, GPUHAL_FACT_MEMORY_TOTAL_BYTES, 0) == UINT64_MAX - 7);
    gpuhal_serial_write(&database, &again);
    assert_string_equal(again.data, text.data);
    gpuhal_text_finish(&again);
    gpuhal_text_finish(&text);
    gpuhal_database_finish(&database);
}

/* Parses the damaged text. Returns whether all records of the text are in the good registry, and the parser detected
 * damage if something is missing. */
static bool is_harmless(const char *text, size_t bytes, const gpuhal_database *good)
{
    gpuhal_database database;
    gpuhal_serial_report report;
    bool read = gpuhal_serial_read(text, bytes, &database, &report) == GPUHAL_READ_OK;
    bool whole = record_count(&database) == record_count(good) && database.next_interface == good->next_interface &&
                 database.next_physical == good->next_physical && database.generation == good->generation;
    bool harmless = read && is_part_of(&database, good) && (whole || gpuhal_serial_is_damaged(&report));
    gpuhal_database_finish(&database);
    return harmless;
}

TEST(a_flipped_bit_is_detected_or_changes_nothing)
{
    gpuhal_text text = sample_text();
    gpuhal_database good;
    gpuhal_serial_report report;
    gpuhal_serial_read(text.data, text.length, &good, &report);
    for (size_t bit = 0; bit < 8 * text.length; bit++) {
        text.data[bit / 8] = (char)(text.data[bit / 8] ^ 1 << bit % 8);
        if (!is_harmless(text.data, text.length, &good)) {
            fail_msg("bit %zu of byte %zu", bit % 8, bit / 8);
        }
        text.data[bit / 8] = (char)(text.data[bit / 8] ^ 1 << bit % 8);
    }
    gpuhal_database_finish(&good);
    gpuhal_text_finish(&text);
}

TEST(a_text_cut_off_anywhere_is_known_for_it)
{
    gpuhal_text text = sample_text();
    gpuhal_database good, database;
    gpuhal_serial_report report;
    gpuhal_serial_read(text.data, text.length, &good, &report);
    for (size_t length = 0; length < text.length; length++) {
        assert_int_equal(gpuhal_serial_read(text.data, length, &database, &report), GPUHAL_READ_OK);
        if (!gpuhal_serial_is_damaged(&report) || !is_part_of(&database, &good)) {
            fail_msg("cut at %zu", length);
        }
        gpuhal_database_finish(&database);
    }
    gpuhal_database_finish(&good);
    gpuhal_text_finish(&text);
}

TEST(a_damaged_record_costs_itself)
{
    gpuhal_text text = sample_text();
    gpuhal_database database;
    gpuhal_serial_report report;
    char *detail = strstr(text.data, "no answer");
    assert_non_null(detail);
    detail[0] = 'N';
    assert_int_equal(gpuhal_serial_read(text.data, text.length, &database, &report), GPUHAL_READ_OK);
    assert_int_equal(report.damaged, 1);
    assert_int_equal(record_count(&database), 1 + 2 + 3 + 1);
    assert_int_equal(database.records[GPUHAL_DATABASE_FAULT].count, 0);
    gpuhal_database_finish(&database);
    gpuhal_text_finish(&text);
}

/* Parses a registry with only the given record and a correct checksum. */
static gpuhal_serial_report read_with(const char *record, gpuhal_database *out_content)
{
    static const char *const head = "[registry]\nversion = 1\ngeneration = 9\nnext_physical = 5\nnext_interface = 5\n";
    static const char *const tail = "[end]\nrecords = 1\n";
    const char *const partitions[] = {head, record, tail};
    gpuhal_text text = {0};
    gpuhal_serial_report report;
    for (size_t i = 0; i < 3; i++) {
        gpuhal_text_printf(&text, "%scrc = %08x\n", partitions[i],
                           gpuhal_checksum(0, partitions[i], strlen(partitions[i])));
    }
    assert_int_equal(gpuhal_serial_read(text.data, text.length, out_content, &report), GPUHAL_READ_OK);
    gpuhal_text_finish(&text);
    return report;
}

TEST(a_record_that_makes_no_sense_is_left_out_though_its_checksum_is_right)
{
    static const char *const bad[] = {
        "[physical]\ngeneration = 1\n",             /* the number is missing */
        "[physical]\ngeneration = 1\nnumber = 5\n", /* the number was never assigned */
        "[physical]\ngeneration = 1\nnumber = 0\n",
        "[physical]\ngeneration = 1\nnumber = 1\nnumber = 1\n", /* duplicate key */
        "[physical]\ngeneration = 1\nnumber = 1\nhost = 2\n",   /* out of range */
        "[physical]\ngeneration = -1\nnumber = 1\n",
        "[physical]\ngeneration = 1\nnumber = 1\ncolour = red\n", /* unknown key */
        "[plugin]\ngeneration = 1\nidentity = a\nname = b\nstate = 12\nstage = 1\n",
        "[plugin]\ngeneration = 1\nidentity = a\nname = b\nstate = 0\nstage = 9\ndevice = x\n",
        "[plugin]\ngeneration = 1\nidentity = a\nname = b\nstate = 0\nstage = 9\ndevice = 0\nu64.name = 7x\n",
        "[fault]\ngeneration = 1\nkind = 5\ncount = 1\n",
        "[interface]\ngeneration = 1\nnumber = 1\nphysical = 1\nbackend = a\ndriver = 1\n",
    };
    gpuhal_database database;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        gpuhal_serial_report report = read_with(bad[i], &database);
        assert_int_equal(record_count(&database), 0);
        assert_int_equal(report.damaged, 1);
        gpuhal_database_finish(&database);
    }
    gpuhal_serial_report report = read_with("[physical]\ngeneration = 1\nnumber = 4\n", &database);
    assert_false(gpuhal_serial_is_damaged(&report));
    assert_int_equal(record_count(&database), 1);
    gpuhal_database_finish(&database);
}

/* Earlier versions, which compared paths of large writes, recorded this kind. */
TEST(a_record_of_a_kind_of_another_version_is_left_out_and_is_no_damage)
{
    gpuhal_database database;
    gpuhal_serial_report report =
        read_with("[write]\ngeneration = 3\ninterface = 1\nstaged = 1\nmeasured = 1700000000\n", &database);
    assert_false(gpuhal_serial_is_damaged(&report));
    assert_int_equal(record_count(&database), 0);
    assert_int_equal(database.generation, 9);
    gpuhal_database_finish(&database);
}

TEST(a_newer_version_is_known_by_its_first_line_alone)
{
    static const char *const head = "[registry]\nversion = 2\nshape = round\n";
    gpuhal_text text = {0};
    gpuhal_database database;
    gpuhal_serial_report report;
    gpuhal_text_printf(&text, "%scrc = %08x\nanything\n", head, gpuhal_checksum(0, head, strlen(head)));
    assert_int_equal(gpuhal_serial_read(text.data, text.length, &database, &report), GPUHAL_READ_OK);
    assert_true(report.newer);
    assert_false(gpuhal_serial_is_damaged(&report));
    assert_int_equal(record_count(&database), 0);
    gpuhal_database_finish(&database);
    gpuhal_text_finish(&text);
}

TEST(the_record_stays_small_and_the_oldest_goes_first)
{
    gpuhal_registry *registry = gpuhal_registry_create(NULL, 0, NULL);
    for (unsigned number = 1; number <= 100; number++) {
        record_plugin(registry, number);
    }
    gpuhal_snapshot *snapshot = gpuhal_registry_snapshot(registry);
    assert_int_equal(snapshot->database.records[GPUHAL_DATABASE_PLUGIN].count,
                     gpuhal_database_limit(GPUHAL_DATABASE_PLUGIN));
    assert_true(knows_plugin(&snapshot->database, 100));
    assert_true(knows_plugin(&snapshot->database, 37));
    assert_false(knows_plugin(&snapshot->database, 36));
    gpuhal_snapshot_release(snapshot);
    gpuhal_registry_destroy(registry);
}

TEST(large_records_drive_out_old_ones_and_too_large_ones_are_left_out)
{
    gpuhal_registry *registry = gpuhal_registry_create(NULL, 0, NULL);
    char *large = calloc(1, 300000);
    for (unsigned number = 1; number <= 7; number++) {
        gpuhal_database_plugin plugin = plugin_number(number);
        memset(large, 'x', number == 7 ? 299999 : 200000);
        free(plugin.reason);
        plugin.reason = strdup(large);
        gpuhal_changes changes = {.plugins = &plugin, .plugin_count = 1};
        gpuhal_registry_update(registry, &changes);
        assert_int_equal(changes.left_out, number == 7);
        gpuhal_record_finish(GPUHAL_DATABASE_PLUGIN, &plugin);
    }
    gpuhal_snapshot *snapshot = gpuhal_registry_snapshot(registry);
    assert_true(knows_plugin(&snapshot->database, 6));
    assert_true(knows_plugin(&snapshot->database, 2));
    assert_false(knows_plugin(&snapshot->database, 1));
    assert_false(knows_plugin(&snapshot->database, 7));
    gpuhal_snapshot_release(snapshot);
    gpuhal_registry_destroy(registry);
    free(large);
}

TEST(one_plugin_with_many_cache_keys_does_not_evict_others)
{
    gpuhal_registry *registry = gpuhal_registry_create(NULL, 0, NULL);
    record_plugin(registry, 1);
    for (unsigned i = 0; i < 100; i++) {
        gpuhal_database_plugin plugin = plugin_number(2);
        char line[32];
        snprintf(line, sizeof line, "mounts %u", i);
        gpuhal_texts_add(&plugin.key, line);
        gpuhal_changes changes = {.plugins = &plugin, .plugin_count = 1};
        gpuhal_registry_update(registry, &changes);
        gpuhal_record_finish(GPUHAL_DATABASE_PLUGIN, &plugin);
    }
    gpuhal_snapshot *snapshot = gpuhal_registry_snapshot(registry);
    assert_int_equal(snapshot->database.records[GPUHAL_DATABASE_PLUGIN].count, 9);
    assert_true(knows_plugin(&snapshot->database, 1));
    gpuhal_snapshot_release(snapshot);
    gpuhal_registry_destroy(registry);
}

#include "test_main.h"
