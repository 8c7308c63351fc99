/* Variables that launchers set to describe a process, and all errors in the variables. */
#include "test.h"

#include "schedule/strategy.h"

/* Variables as "NAME=value NAME=value"; values must not contain spaces. */
typedef struct environment {
    char names[16][32], values[16][64];
    uint32_t count;
} environment;

static environment split(const char *text)
{
    environment all = {0};
    while (*text) {
        const size_t name = strcspn(text, "="), value = strcspn(text + name + 1, " ");
        snprintf(all.names[all.count], 32, "%.*s", (int)name, text);
        snprintf(all.values[all.count++], 64, "%.*s", (int)value, text + name + 1);
        text += name + 1 + value;
        text += strspn(text, " ");
    }
    return all;
}

static const char *find(void *user, const char *name)
{
    const environment *all = user;
    for (uint32_t i = 0; i < all->count; i++) {
        if (strcmp(all->names[i], name) == 0) {
            return all->values[i];
        }
    }
    return NULL;
}

TEST(each_launcher_is_read_and_the_innermost_one_counts)
{
    static const struct {
        const char *variables, *name, *variable;
        uint32_t rank, count, local, local_count;
    } cases[] = {
        {"", "", "", 0, 1, 0, 1},
        {"RANK=5 WORLD_SIZE=8 LOCAL_RANK=1 LOCAL_WORLD_SIZE=4", "torchrun", "LOCAL_RANK", 5, 8, 1, 4},
        {"RANK=0 LOCAL_RANK=0", "torchrun", "LOCAL_RANK", 0, 0, 0, 0},
        {"OMPI_COMM_WORLD_RANK=3 OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_RANK=3 OMPI_COMM_WORLD_LOCAL_SIZE=4 "
         "PMIX_RANK=3",
         "open_mpi", "OMPI_COMM_WORLD_LOCAL_RANK", 3, 4, 3, 4},
        {"PMI_RANK=1 PMI_SIZE=2 MPI_LOCALRANKID=1 MPI_LOCALNRANKS=2", "hydra", "MPI_LOCALRANKID", 1, 2, 1, 2},
        {"SLURM_PROCID=6 SLURM_NTASKS=8 SLURM_LOCALID=2", "slurm", "SLURM_LOCALID", 6, 8, 2, 0},
        {"SLURM_PROCID=1 SLURM_NTASKS=2 SLURM_LOCALID=1 SLURM_NODEID=0 SLURM_STEP_TASKS_PER_NODE=2", "slurm",
         "SLURM_LOCALID", 1, 2, 1, 2},
        {"SLURM_PROCID=6 SLURM_NTASKS=7 SLURM_LOCALID=0 SLURM_NODEID=3 SLURM_STEP_TASKS_PER_NODE=2(x3),1", "slurm",
         "SLURM_LOCALID", 6, 7, 0, 1},
        {"SLURM_PROCID=5 SLURM_NTASKS=7 SLURM_LOCALID=1 SLURM_NODEID=2 SLURM_STEP_TASKS_PER_NODE=2(x3),1", "slurm",
         "SLURM_LOCALID", 5, 7, 1, 2},
        {"SLURM_PROCID=5 SLURM_NTASKS=7 SLURM_LOCALID=1 SLURM_STEP_TASKS_PER_NODE=2(x3),1", "slurm", "SLURM_LOCALID", 5,
         7, 1, 0},
        /* torchrun in one task per machine; mpirun in a batch script; srun with PMI-2 and with PMIx */
        {"SLURM_PROCID=1 SLURM_NTASKS=2 SLURM_LOCALID=0 RANK=6 WORLD_SIZE=8 LOCAL_RANK=2", "torchrun", "LOCAL_RANK", 6,
         8, 2, 0},
        {"SLURM_PROCID=0 SLURM_NTASKS=8 SLURM_LOCALID=0 OMPI_COMM_WORLD_RANK=7 OMPI_COMM_WORLD_LOCAL_RANK=3",
         "open_mpi", "OMPI_COMM_WORLD_LOCAL_RANK", 7, 0, 3, 0},
        {"PMI_RANK=6 PMI_SIZE=8 SLURM_PROCID=6 SLURM_NTASKS=8 SLURM_LOCALID=2", "slurm", "SLURM_LOCALID", 6, 8, 2, 0},
        {"PMIX_RANK=6 SLURM_PROCID=6 SLURM_LOCALID=2", "slurm", "SLURM_LOCALID", 6, 0, 2, 0},
        /* an allocation's shell has a number of tasks, but no rank; a size without a rank is not used */
        {"SLURM_NTASKS=8 WORLD_SIZE=4", "", "", 0, 1, 0, 1},
        /* errors in the variables of other launchers are ignored */
        {"RANK=1 LOCAL_RANK=1 SLURM_PROCID=x SLURM_LOCALID=-3", "torchrun", "LOCAL_RANK", 1, 0, 1, 0},
        {"RANK=4294967294 LOCAL_RANK=0", "torchrun", "LOCAL_RANK", 4294967294u, 0, 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        environment all = split(cases[i].variables);
        gpuhal_launcher own;
        const char *variable = NULL;
        assert_ok(gpuhal_launcher_find(find, &all, &own, &variable));
        if (own.rank != cases[i].rank || own.rank_count != cases[i].count || own.local_rank != cases[i].local ||
            own.local_count != cases[i].local_count || strcmp(own.name, cases[i].name) != 0 ||
            strcmp(variable, cases[i].variable) != 0) {
            fail_msg("%s: %s, rank %u of %u, local rank %u of %u, by %s", cases[i].variables, own.name, own.rank,
                     own.rank_count, own.local_rank, own.local_count, variable);
        }
    }
}

TEST(every_malformed_or_contradictory_variable_is_named_with_its_value)
{
    static const struct {
        const char *variables, *words;
    } cases[] = {
        {"LOCAL_RANK= RANK=0", "LOCAL_RANK is \"\", which is not a number"},
        {"LOCAL_RANK=-1 RANK=0", "LOCAL_RANK is \"-1\""},
        {"LOCAL_RANK=+1 RANK=1", "LOCAL_RANK is \"+1\""},
        {"LOCAL_RANK=0x1 RANK=1", "LOCAL_RANK is \"0x1\""},
        {"LOCAL_RANK=1.5 RANK=2", "LOCAL_RANK is \"1.5\""},
        {"LOCAL_RANK=two RANK=2", "LOCAL_RANK is \"two\""},
        {"LOCAL_RANK=4294967295 RANK=2", "LOCAL_RANK is \"4294967295\""},
        {"LOCAL_RANK=18446744073709551616 RANK=2", "LOCAL_RANK is \"18446744073709551616\""},
        {"LOCAL_RANK=1\t RANK=2", "LOCAL_RANK is \"1 \""},
        {"LOCAL_RANK=\033[31m1 RANK=2", "LOCAL_RANK is \"?[31m1\""},
        {"LOCAL_RANK=99999999999999999999999999999999999999999999999999 RANK=2",
         "LOCAL_RANK is \"9999999999999999999999999999999999999...\""},
        {"LOCAL_RANK=0 RANK=a", "RANK is \"a\""},
        {"LOCAL_RANK=0 RANK=0 WORLD_SIZE=", "WORLD_SIZE is \"\""},
        {"LOCAL_RANK=0 RANK=0 WORLD_SIZE=2 LOCAL_WORLD_SIZE=-2", "LOCAL_WORLD_SIZE is \"-2\""},
        /* contradictory variables */
        {"LOCAL_RANK=0 RANK=8 WORLD_SIZE=8", "RANK is \"8\" and WORLD_SIZE is \"8\": the former must be less"},
        {"LOCAL_RANK=0 RANK=0 WORLD_SIZE=0", "RANK is \"0\" and WORLD_SIZE is \"0\""},
        {"LOCAL_RANK=4 RANK=5 WORLD_SIZE=8 LOCAL_WORLD_SIZE=4", "LOCAL_RANK is \"4\" and LOCAL_WORLD_SIZE is \"4\""},
        {"LOCAL_RANK=0 RANK=0 WORLD_SIZE=2 LOCAL_WORLD_SIZE=4", "LOCAL_WORLD_SIZE is \"4\" and WORLD_SIZE is \"2\""},
        {"LOCAL_RANK=3 RANK=1 WORLD_SIZE=4", "LOCAL_RANK is \"3\" and RANK is \"1\": the former must be at most"},
        {"SLURM_LOCALID=4 SLURM_PROCID=3 SLURM_NTASKS=4", "SLURM_LOCALID is \"4\" and SLURM_NTASKS is \"4\""},
        {"SLURM_LOCALID=2 SLURM_PROCID=3 SLURM_NODEID=0 SLURM_STEP_TASKS_PER_NODE=2",
         "SLURM_LOCALID is \"2\" and SLURM_STEP_TASKS_PER_NODE is \"2\""},
        {"SLURM_LOCALID=0 SLURM_PROCID=3 SLURM_NODEID=x SLURM_STEP_TASKS_PER_NODE=2", "SLURM_NODEID is \"x\""},
        /* incomplete variables */
        {"LOCAL_RANK=1", "LOCAL_RANK is \"1\", but RANK is not set"},
        {"LOCAL_RANK=1 WORLD_SIZE=4", "LOCAL_RANK is \"1\", but RANK is not set"},
        {"RANK=3 WORLD_SIZE=4", "RANK is \"3\", but no variable states the local rank, such as LOCAL_RANK"},
        {"OMPI_COMM_WORLD_RANK=3", "OMPI_COMM_WORLD_RANK is \"3\", but no variable"},
        {"PMI_RANK=3 PMI_SIZE=4", "PMI_RANK is \"3\", but no variable"},
        {"SLURM_PROCID=3", "SLURM_PROCID is \"3\", but no variable"},
        {"PMIX_RANK=3", "PMIX_RANK is \"3\", but no variable states the local rank"},
        {"PMIX_RANK=no", "PMIX_RANK is \"no\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        environment all = split(cases[i].variables);
        gpuhal_launcher own;
        const char *variable = NULL;
        assert_int_equal(gpuhal_launcher_find(find, &all, &own, &variable), GPUHAL_ERROR_INVALID_ARGUMENT);
        if (!strstr(gpuhal_last_error()->sentence, cases[i].words)) {
            fail_msg("%s: %s", cases[i].variables, gpuhal_last_error()->sentence);
        }
    }
}

TEST(a_list_of_slurm_that_is_malformed_or_lacks_this_machine_is_refused)
{
    static const char *const lists[] = {"",
                                        "2(",
                                        "2(x",
                                        "2(x3",
                                        "2(x3)1",
                                        "2(x3),",
                                        ",2",
                                        "2,,2",
                                        "x2",
                                        "2(3)",
                                        "2(x0)",
                                        "2 ",
                                        "-2",
                                        "2(x-3)",
                                        "2(x1),2",
                                        "2(x2,1",
                                        "2(x2)",
                                        "2,2;2,2",
                                        "2(x99999999999)",
                                        "99999999999"};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        environment all = split("SLURM_LOCALID=0 SLURM_PROCID=2 SLURM_NODEID=2 SLURM_STEP_TASKS_PER_NODE=x");
        snprintf(all.values[3], sizeof all.values[3], "%s", lists[i]);
        gpuhal_launcher own;
        const char *variable = NULL;
        if (gpuhal_launcher_find(find, &all, &own, &variable) != GPUHAL_ERROR_INVALID_ARGUMENT ||
            !strstr(gpuhal_last_error()->sentence, "SLURM_STEP_TASKS_PER_NODE is \"")) {
            fail_msg("%s: %u", lists[i], own.local_count);
        }
    }
}

TEST(a_rank_is_bound_if_slurm_shows_it_fewer_gpus_than_the_job_has_here)
{
    static const struct {
        const char *variables;
        uint32_t listed;
        bool bound;
    } cases[] = {
        {"CUDA_VISIBLE_DEVICES=0 SLURM_GPUS_ON_NODE=2", 1, true},
        {"CUDA_VISIBLE_DEVICES=0,1 SLURM_GPUS_ON_NODE=4", 2, true},
        {"CUDA_VISIBLE_DEVICES=0 SLURM_GPUS_ON_NODE=1", 1, false},
        {"CUDA_VISIBLE_DEVICES=0,1 SLURM_GPUS_ON_NODE=2", 1, false}, /* one of the GPUs has failed */
        {"ROCR_VISIBLE_DEVICES=0 SLURM_GPUS_ON_NODE=2", 1, true},
        {"ZE_AFFINITY_MASK=0 SLURM_GPUS_ON_NODE=2", 1, true},
        {"SLURM_GPUS_ON_NODE=2", 1, true},
        {"SLURM_GPUS_ON_NODE=2", 2, false},
        {"CUDA_VISIBLE_DEVICES=0", 1, false},
        {"", 1, false},
    };
    const gpuhal_launcher slurm = {.name = "slurm"}, other = {.name = "torchrun"};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        environment all = split(cases[i].variables);
        bool bound = !cases[i].bound;
        assert_ok(gpuhal_launcher_find_bound(find, &all, &slurm, cases[i].listed, &bound));
        if (bound != cases[i].bound) {
            fail_msg("%s, %u: %d", cases[i].variables, cases[i].listed, bound);
        }
        assert_ok(gpuhal_launcher_find_bound(find, &all, &other, cases[i].listed, &bound));
        assert_false(bound);
    }
    environment wrong = split("SLURM_GPUS_ON_NODE=two");
    bool bound = true;
    assert_int_equal(gpuhal_launcher_find_bound(find, &wrong, &slurm, 1, &bound), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_false(bound);
}

TEST(the_variables_of_the_process_are_read)
{
    gpuhal_launcher own = {.size = sizeof own};
    setenv("RANK", "5", 1);
    setenv("LOCAL_RANK", "2", 1);
    assert_ok(gpuhal_launcher_read(&own));
    assert_int_equal(own.local_rank, 2);
    setenv("LOCAL_RANK", "two", 1);
    assert_int_equal(gpuhal_launcher_read(&own), GPUHAL_ERROR_INVALID_ARGUMENT);
    own.size = 0;
    assert_int_equal(gpuhal_launcher_read(&own), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_launcher_read(NULL), GPUHAL_ERROR_INVALID_ARGUMENT);
}

#include "test_main.h"
