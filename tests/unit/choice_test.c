/* gpuhal_choose(), tested with a table. A row has a machine, a request, the expected order, and the rule that decided
 * each place.
 *
 * A machine is a list of offers. An offer is an id, followed by keywords. Numbers are GiB, permille and counts. Each
 * card is a separate unit unless `of=N` names the card that it shares memory with. `lack` stands for unmet
 * requirements, `avoided` for poor health. */
#include "device/choice.h"
#include "test.h"

enum { MOST = 8, TEXT = 512 };
#define GIB(count) ((uint64_t)(count) << 30)

typedef struct machine {
    gpuhal_offer offers[MOST];
    gpuhal_lack lacks[MOST];
    uint32_t listed[MOST];
    char ids[MOST][16], backends[MOST][16];
    gpuhal_choice_request request;
} machine;

static const char *const rule_names[] = {
    [GPUHAL_BY_LACK] = "lack",         [GPUHAL_BY_CPU] = "cpu",         [GPUHAL_BY_HEALTH] = "health",
    [GPUHAL_BY_SOFTWARE] = "software", [GPUHAL_BY_KEPT] = "kept",       [GPUHAL_BY_LOAD] = "load",
    [GPUHAL_BY_MEASURE] = "measure",   [GPUHAL_BY_ROOM] = "room",       [GPUHAL_BY_UNIT_ROOM] = "unit_room",
    [GPUHAL_BY_LISTED] = "listed",     [GPUHAL_BY_BACKEND] = "backend", [GPUHAL_BY_TYPE] = "type",
    [GPUHAL_BY_TOTAL] = "total",       [GPUHAL_BY_UNITS] = "units",     [GPUHAL_BY_PLACE] = "place"};

static void read_word(const char *word, machine *m, uint32_t at)
{
    gpuhal_offer *offer = &m->offers[at];
    unsigned number = 0;
    if (sscanf(word, "total=%u", &number) == 1) {
        offer->total_bytes = GIB(number);
    } else if (sscanf(word, "free=%u", &number) == 1) {
        offer->free_bytes = offer->unit_free_bytes = GIB(number);
    } else if (sscanf(word, "limit=%u", &number) == 1) { /* limit on the free memory */
        offer->free_bytes = GIB(number);
    } else if (sscanf(word, "units=%u", &number) == 1) {
        offer->compute_units = number;
    } else if (sscanf(word, "busy=%u", &number) == 1) {
        offer->busy_permille = number;
    } else if (sscanf(word, "promised=%u", &number) == 1) {
        offer->promised_bytes = GIB(number);
    } else if (sscanf(word, "of=%u", &number) == 1) {
        offer->unit = number;
    } else if (sscanf(word, "type=%u", &number) == 1) {
        offer->type = (int)number;
    } else if (strcmp(word, "software") == 0) {
        offer->software = true;
    } else if (strcmp(word, "avoided") == 0) {
        offer->avoided = GPUHAL_LACK_HEALTH;
    } else if (strcmp(word, "lack") == 0) {
        m->lacks[at] = GPUHAL_LACK_NAME;
    } else if (strcmp(word, "cpu") == 0) { /* the CPU is used only if it is allowed */
        offer->is_cpu = true;
        offer->lack = GPUHAL_LACK_CPU;
        offer->type = 0;
    } else {
        fail_msg("unknown word \"%s\"", word);
    }
}

static void read_offer(char *text, machine *m)
{
    const uint32_t at = m->request.count++;
    char *words = NULL, *word = strtok_r(text, " ", &words);
    assert_true(at < MOST && strlen(word) < sizeof m->ids[at]);
    strcpy(m->ids[at], word);
    snprintf(m->backends[at], sizeof m->backends[at], "%.*s", (int)strcspn(word, ":"), word);
    m->offers[at] = (gpuhal_offer){.id = m->ids[at],
                                   .backend = m->backends[at],
                                   .unit = at,
                                   .type = 3,
                                   .backend_at = at,
                                   .total_bytes = GPUHAL_UNKNOWN_BYTES,
                                   .free_bytes = GPUHAL_UNKNOWN_BYTES,
                                   .unit_free_bytes = GPUHAL_UNKNOWN_BYTES,
                                   .busy_permille = GPUHAL_UNKNOWN_PERMILLE};
    for (uint32_t i = at; i-- > 0;) {
        m->offers[at].backend_at = strcmp(m->backends[i], m->backends[at]) == 0 ? i : m->offers[at].backend_at;
    }
    m->listed[at] = GPUHAL_NONE;
    while ((word = strtok_r(NULL, " ", &words))) {
        read_word(word, m, at);
    }
}

/* Reads `best`, `most_free` or `least_loaded`, then the optional words `one_each`, `cpu_last` and `kept=N` and the
 * preferred backends. */
static void read_request(const char *text, machine *m)
{
    char copy[TEXT], *words = NULL;
    uint32_t place = 0;
    snprintf(copy, sizeof copy, "%s", text);
    const char *order = strtok_r(copy, " ", &words);
    m->request.order = strcmp(order, "best") == 0        ? GPUHAL_CHOOSE_BEST
                       : strcmp(order, "most_free") == 0 ? GPUHAL_CHOOSE_MOST_FREE
                                                         : GPUHAL_CHOOSE_LEAST_LOADED;
    for (const char *word; (word = strtok_r(NULL, " ", &words));) {
        if (strcmp(word, "one_each") == 0) {
            m->request.one_each = true;
        } else if (strcmp(word, "cpu_last") == 0) {
            m->request.cpu_last = true;
        } else if (sscanf(word, "kept=%u", &m->request.kept) != 1) {
            for (uint32_t i = 0; i < m->request.count; i++) {
                m->listed[i] = strcmp(m->backends[i], word) == 0 ? place : m->listed[i];
            }
            m->request.listed = m->listed;
            place++;
        }
    }
}

static void read_machine(const char *text, const char *request, machine *m)
{
    char copy[TEXT], *rest = copy;
    memset(m, 0, sizeof *m);
    m->request =
        (gpuhal_choice_request){.offers = m->offers, .lacks = m->lacks, .kept = GPUHAL_NONE, .margin_permille = 100};
    snprintf(copy, sizeof copy, "%s", text);
    for (char *end; rest; rest = end) {
        end = strchr(rest, ';');
        if (end) {
            *end = 0;
            end += 2;
        }
        read_offer(rest, m);
    }
    read_request(request, m);
}

static void write_order(const machine *m, char to[TEXT])
{
    gpuhal_chosen chosen[MOST];
    const uint32_t count = gpuhal_choose(&m->request, chosen);
    size_t used = 0;
    for (uint32_t i = 0; i < count; i++) {
        used += (size_t)snprintf(to + used, TEXT - used, i == 0 ? "%s" : "; %s by %s", m->ids[chosen[i].index],
                                 rule_names[chosen[i].rule]);
    }
}

TEST(each_machine_and_request_has_the_order_and_the_reasons_of_the_table)
{
    static const struct {
        const char *machine, *request, *order;
    } table[] = {
        /* the rule of `auto` */
        {"cuda:0 total=8; cuda:1 total=80", "best", "cuda:1; cuda:0 by total"},
        {"cuda:0 total=80 units=10; cuda:1 total=80 units=20", "best", "cuda:1; cuda:0 by units"},
        {"cuda:0 total=80; cuda:1 total=80", "best", "cuda:0; cuda:1 by place"},
        {"cuda:0 total=8; vulkan:0 total=80", "best", "cuda:0; vulkan:0 by backend"},
        {"vulkan:0 type=2 total=96; vulkan:1 total=8; vulkan:2 type=1 total=99", "best",
         "vulkan:1; vulkan:0 by type; vulkan:2 by type"},
        {"vulkan:0 software; cuda:0", "best", "cuda:0; vulkan:0 by software"},
        {"cuda:0 avoided total=80; cuda:1 total=8; vulkan:0 software", "best",
         "cuda:1; vulkan:0 by software; cuda:0 by health"},
        {"cuda:0; cuda:1 total=1", "best", "cuda:1; cuda:0 by total"}, /* an unknown size counts as 0 */
        /* an offer that lacks something comes last, even after the CPU */
        {"cuda:0 lack total=80; cuda:1 total=8", "best", "cuda:1; cuda:0 by lack"},
        {"cpu:0 cpu; cuda:0 total=8", "best", "cpu:0; cuda:0 by backend"},
        {"cpu:0 cpu; cuda:0 total=8", "best cpu_last", "cuda:0; cpu:0 by cpu"},
        {"cpu:0 cpu; cuda:0 lack; cuda:1 avoided", "best cpu_last", "cuda:1; cpu:0 by cpu; cuda:0 by lack"},
        /* the caller's preference */
        {"cuda:0; vulkan:0", "best vulkan cuda", "vulkan:0; cuda:0 by listed"},
        {"cuda:0; cpu:0 cpu", "best cpu_last cpu cuda", "cpu:0; cuda:0 by listed"},
        {"cuda:0; rocm:0; vulkan:0", "best vulkan", "vulkan:0; cuda:0 by listed; rocm:0 by backend"},
        {"vulkan:0 avoided; cuda:0", "best vulkan cuda", "cuda:0; vulkan:0 by health"},
        /* one interface per unit */
        {"cuda:0; vulkan:0 of=0; cuda:1", "best one_each", "cuda:0; cuda:1 by place"},
        {"cuda:0; vulkan:0 of=0; cuda:1", "best one_each vulkan", "vulkan:0; cuda:1 by listed"},
        {"cuda:0 lack; vulkan:0 of=0; cuda:1", "best one_each", "cuda:1; vulkan:0 by backend"},
        /* free memory */
        {"cuda:0 total=16 free=4; cuda:1 total=16 free=12", "most_free", "cuda:1; cuda:0 by room"},
        {"cuda:0 total=80; cuda:1 total=16 free=1", "most_free", "cuda:1; cuda:0 by measure"},
        {"cuda:0 total=80; cuda:1 total=90", "most_free", "cuda:1; cuda:0 by room"}, /* total if not measured */
        {"cuda:0 free=9 limit=2; cuda:1 free=12 limit=2", "most_free", "cuda:1; cuda:0 by unit_room"},
        {"cuda:0 free=9 promised=8; cuda:1 free=4", "most_free", "cuda:1; cuda:0 by room"},
        {"cuda:0 free=4 promised=8; cuda:1 free=0 promised=1", "most_free", "cuda:0; cuda:1 by unit_room"},
        {"cuda:0 free=4 total=8; vulkan:0 free=4 total=9", "most_free", "cuda:0; vulkan:0 by backend"},
        {"vulkan:0 software free=99; cuda:0 free=1", "most_free", "cuda:0; vulkan:0 by software"},
        {"cuda:0 avoided free=99; vulkan:0 software free=1", "most_free", "vulkan:0; cuda:0 by health"},
        {"cuda:0 free=99; vulkan:0 free=1", "most_free vulkan", "cuda:0; vulkan:0 by room"},
        /* the load is the mean of memory use and work */
        {"cuda:0 busy=800; cuda:1 busy=200", "least_loaded", "cuda:1; cuda:0 by load"},
        {"cuda:0; cuda:1 busy=1000", "least_loaded", "cuda:1; cuda:0 by load"}, /* an unknown load comes last */
        {"cuda:0 total=8 free=8 busy=500; cuda:1 total=8 free=2 busy=0", "least_loaded", "cuda:0; cuda:1 by load"},
        {"cuda:0 total=8 free=4; cuda:1 total=16 free=8", "least_loaded", "cuda:1; cuda:0 by total"},
        {"cuda:0 total=8 free=8 limit=1 busy=0; cuda:1 total=8 free=6 busy=0", "least_loaded",
         "cuda:0; cuda:1 by load"},
        {"cuda:0 busy=200; cuda:1 busy=150", "least_loaded kept=0", "cuda:0; cuda:1 by kept"},
        {"cuda:0 busy=251; cuda:1 busy=150", "least_loaded kept=0", "cuda:1; cuda:0 by load"}, /* exceeds the margin */
        {"cuda:0; cuda:1 busy=900", "least_loaded kept=0", "cuda:1; cuda:0 by load"},
        {"cpu:0 cpu busy=0; cuda:0 busy=200; cuda:1 busy=150", "least_loaded cpu_last kept=1",
         "cuda:0; cuda:1 by kept; cpu:0 by cpu"}, /* the CPU's load does not change the choice of a GPU */
        {"cuda:0 busy=200; cuda:1 busy=150; cuda:2 avoided busy=0; vulkan:0 software busy=0", "least_loaded kept=0",
         "cuda:0; cuda:1 by kept; vulkan:0 by software; cuda:2 by health"}, /* the last offers' load has no effect */
        {"cuda:0 avoided busy=200; cuda:1 avoided busy=150", "least_loaded kept=0", "cuda:0; cuda:1 by kept"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        machine m;
        char order[TEXT] = "";
        read_machine(table[i].machine, table[i].request, &m);
        write_order(&m, order);
        if (strcmp(order, table[i].order) != 0) {
            fail_msg("%s, of %s: %s", table[i].request, table[i].machine, order);
        }
    }
}

TEST(as_many_are_alike_as_are_equal_by_each_rule_so_far)
{
    machine m;
    read_machine("cuda:0 total=8; cuda:1 total=80; cuda:2 total=80; vulkan:0 total=80; cuda:3 lack total=80", "best",
                 &m);
    assert_int_equal(gpuhal_choice_alike(&m.request, 1, GPUHAL_BY_LACK), 4);
    assert_int_equal(gpuhal_choice_alike(&m.request, 1, GPUHAL_BY_BACKEND), 3);
    assert_int_equal(gpuhal_choice_alike(&m.request, 1, GPUHAL_BY_TOTAL), 2);
    assert_int_equal(gpuhal_choice_alike(&m.request, 1, GPUHAL_BY_PLACE), 1);
    assert_int_equal(gpuhal_choice_rivals(&m.request, 1, GPUHAL_BY_TOTAL), 3);
}

#include "test_main.h"
