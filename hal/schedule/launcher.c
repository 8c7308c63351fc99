/* schedule/launcher.c: reads the ranks that process launchers set in the environment. */
#include "schedule/strategy.h"

#include "device/for_schedule.h"

#include <stdio.h>
#include <string.h>

/* Slurm's numbers of tasks on the machines of a job step, such as "2(x3),1", and the index of this machine. */
#define TASKS_PER_NODE "SLURM_STEP_TASKS_PER_NODE"
#define NODE           "SLURM_NODEID"

/* The launchers' variables in order of precedence: if one launcher can start another, the inner launcher comes first.
 * In a batch job, ranks started by mpirun or torchrun inherit Slurm's variables, which describe the job script. */
static const struct rules {
    const char *name, *rank, *rank_count, *local_rank, *local_count;
} launchers[] = {
    {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"},
    {"open_mpi", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {"hydra", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
    {"slurm", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", TASKS_PER_NODE},
};
enum { LAUNCHERS = sizeof launchers / sizeof *launchers };
/* PMIx sets the rank, but no variable about the machine. */
static const char pmix_rank[] = "PMIX_RANK";

typedef struct variable {
    const char *name;
    bool is_set;
    uint32_t number;
    char text[44]; /* the value for messages, truncated if long */
} variable;

static bool read_number(const char *text, uint32_t *out_number)
{
    uint64_t number = 0;
    const bool good = gpuhal_records_u64(text, &number) && number < UINT32_MAX;
    *out_number = good ? (uint32_t)number : 0;
    return good;
}

static const char *find_variable(gpuhal_lookup_fn *lookup, void *user, const char *name, variable *out)
{
    const char *value = lookup(user, name);
    *out = (variable){.name = name, .is_set = value != NULL};
    if (value) {
        snprintf(out->text, sizeof out->text, strlen(value) < 40 ? "%s" : "%.37s...", value);
        gpuhal_records_clean(out->text);
    }
    return value;
}

static gpuhal_status read_variable(gpuhal_lookup_fn *lookup, void *user, const char *name, variable *out)
{
    const char *value = find_variable(lookup, user, name, out);
    if (!value) {
        return GPUHAL_OK;
    }
    return read_number(value, &out->number)
               ? GPUHAL_OK
               : gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                                  "%s is \"%s\", which is not a number from 0 to 4294967294", name, out->text);
}

/* Returns the rest of the string, or NULL if the number is missing, too long or too large. */
static const char *take_number(const char *text, uint64_t *out_number)
{
    char digits[12];
    const size_t length = strspn(text, "0123456789");
    if (length == 0 || length >= sizeof digits) {
        return NULL;
    }
    snprintf(digits, sizeof digits, "%.*s", (int)length, text);
    return gpuhal_records_u64(digits, out_number) && *out_number < UINT32_MAX ? text + length : NULL;
}

/* Reads the number for machine `place` from a list "2(x3),1". Returns false if the string has another form or the list
 * is too short. */
static bool read_list(const char *text, uint32_t place, uint32_t *out_number)
{
    uint64_t before = 0; /* number of machines in the entries already read */
    bool found = false;
    while (text) {
        uint64_t number = 0, machines = 1;
        text = take_number(text, &number);
        if (text && strncmp(text, "(x", 2) == 0) {
            text = take_number(text + 2, &machines);
            text = text && *text == ')' ? text + 1 : NULL;
        }
        if (text && !found && place < before + machines) {
            *out_number = (uint32_t)number;
            found = true;
        }
        before += machines;
        if (text && !*text) {
            return found;
        }
        text = text && *text == ',' ? text + 1 : NULL;
    }
    return false;
}

/* Ignores a list if the machine's index is unknown. */
static gpuhal_status read_local_count(gpuhal_lookup_fn *lookup, void *user, const struct rules *rules, variable *out)
{
    variable node;
    if (strcmp(rules->local_count, TASKS_PER_NODE) != 0) {
        return read_variable(lookup, user, rules->local_count, out);
    }
    const char *list = find_variable(lookup, user, TASKS_PER_NODE, out);
    gpuhal_status status = read_variable(lookup, user, NODE, &node);
    if (status || !list) {
        return status;
    }
    out->is_set = node.is_set;
    return !node.is_set || read_list(list, node.number, &out->number)
               ? GPUHAL_OK
               : gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                                  TASKS_PER_NODE " is \"%s\", which is not a list such as \"2(x3),1\" with machine "
                                                 "number %u, " NODE,
                                  out->text, node.number);
}

/* If both variables are set, checks that `smaller` is less than `larger` (or equal, with `may_equal`). */
static gpuhal_status check_pair(const variable *smaller, bool may_equal, const variable *larger)
{
    const bool good = !smaller->is_set || !larger->is_set || smaller->number < larger->number ||
                      (may_equal && smaller->number == larger->number);
    return good
               ? GPUHAL_OK
               : gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "%s is \"%s\" and %s is \"%s\": the former must be %s",
                                  smaller->name, smaller->text, larger->name, larger->text,
                                  may_equal ? "at most the latter" : "less than the latter");
}

static gpuhal_status read_launcher(gpuhal_lookup_fn *lookup, void *user, const struct rules *rules,
                                   gpuhal_launcher *out)
{
    variable rank, count, local, local_count;
    gpuhal_status status = read_variable(lookup, user, rules->local_rank, &local);
    status = status ? status : read_variable(lookup, user, rules->rank, &rank);
    status = status ? status : read_variable(lookup, user, rules->rank_count, &count);
    status = status ? status : read_local_count(lookup, user, rules, &local_count);
    if (!status && !rank.is_set) {
        status = gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "%s is \"%s\", but %s is not set", local.name,
                                  local.text, rules->rank);
    }
    status = status ? status : check_pair(&rank, false, &count);
    status = status ? status : check_pair(&local, false, &local_count);
    status = status ? status : check_pair(&local_count, true, &count);
    status = status ? status : check_pair(&local, false, &count);
    status = status ? status : check_pair(&local, true, &rank); /* local ranks on a machine follow the order of ranks */
    if (!status) {
        *out = (gpuhal_launcher){.rank = rank.number,
                                 .rank_count = count.number,
                                 .local_rank = local.number,
                                 .local_count = local_count.number,
                                 .name = rules->name};
    }
    return status;
}

/* Returns an error for a rank without a local rank, since such a rank must not be treated as a missing rank. */
static gpuhal_status check_lone_rank(gpuhal_lookup_fn *lookup, void *user)
{
    for (size_t i = 0; i <= LAUNCHERS; i++) {
        variable rank;
        const char *name = i < LAUNCHERS ? launchers[i].rank : pmix_rank;
        gpuhal_status status = read_variable(lookup, user, name, &rank);
        if (status || rank.is_set) {
            return status ? status
                          : gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                                             "%s is \"%s\", but no variable states the local rank%s%s", name, rank.text,
                                             i < LAUNCHERS ? ", such as " : "",
                                             i < LAUNCHERS ? launchers[i].local_rank : "");
        }
    }
    return GPUHAL_OK;
}

gpuhal_status gpuhal_launcher_find(gpuhal_lookup_fn *lookup, void *user, gpuhal_launcher *out_launcher,
                                   const char **out_variable)
{
    *out_launcher = (gpuhal_launcher){.rank_count = 1, .local_count = 1, .name = ""};
    *out_variable = "";
    for (size_t i = 0; i < LAUNCHERS; i++) {
        if (lookup(user, launchers[i].local_rank)) {
            *out_variable = launchers[i].local_rank;
            return read_launcher(lookup, user, &launchers[i], out_launcher);
        }
    }
    return check_lone_rank(lookup, user);
}

/* Slurm lists the GPUs of a rank in one of these variables. Returns the number of entries in the first variable that is
 * set, or `otherwise` if none is set. */
static uint32_t count_shown(gpuhal_lookup_fn *lookup, void *user, uint32_t otherwise)
{
    static const char *const names[] = {"CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "ZE_AFFINITY_MASK"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *list = lookup(user, names[i]);
        uint32_t count = list && *list;
        for (; list && *list; list++) {
            count += *list == ',';
        }
        if (list) {
            return count;
        }
    }
    return otherwise;
}

gpuhal_status gpuhal_launcher_find_bound(gpuhal_lookup_fn *lookup, void *user, const gpuhal_launcher *launcher,
                                         uint32_t listed, bool *out_bound)
{
    variable on_node = {0};
    const bool is_slurm = strcmp(launcher->name, "slurm") == 0;
    gpuhal_status status = is_slurm ? read_variable(lookup, user, "SLURM_GPUS_ON_NODE", &on_node) : GPUHAL_OK;
    *out_bound = !status && on_node.is_set && count_shown(lookup, user, listed) < on_node.number;
    return status;
}

static const char *look_up(void *user, const char *name)
{
    (void)user;
    return gpuhal_os_environment(name);
}

gpuhal_status gpuhal_launcher_here(gpuhal_launcher *out_launcher, const char **out_variable)
{
    return gpuhal_launcher_find(look_up, NULL, out_launcher, out_variable);
}

gpuhal_status gpuhal_launcher_is_bound(const gpuhal_launcher *launcher, uint32_t listed, bool *out_bound)
{
    return gpuhal_launcher_find_bound(look_up, NULL, launcher, listed, out_bound);
}

gpuhal_status gpuhal_launcher_read(gpuhal_launcher *out_launcher)
{
    if (!out_launcher || out_launcher->size == 0) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                                "gpuhal_launcher_read: out_launcher is NULL, or its size is 0");
    }
    gpuhal_launcher own;
    const char *of_local_rank = NULL;
    gpuhal_status status = gpuhal_launcher_here(&own, &of_local_rank);
    if (!status) {
        own.size = out_launcher->size;
        memcpy(out_launcher, &own, own.size < sizeof own ? own.size : sizeof own);
    }
    return status;
}
