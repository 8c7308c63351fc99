/** gpuhal/schedule/strategy.h: which worker of a program uses which device.
 *
 *  A worker is a thread or a process that does a share of the work. A strategy defines the number of workers on this
 *  machine, and gives each of them a device:
 *
 *  - `cpu`: only the CPU.
 *  - `single_device`: one device for all workers, with a limit for the device memory that all of them together may use.
 *  - `rank_per_device`: worker i has device i, counting one preferred interface of each physical device, or of each
 *    partition. If a launcher started this process (gpuhal_launcher_read()), its local rank must have a device. If
 *    Slurm shows the process fewer GPUs than the job has on this machine, as with --gpus-per-task, these GPUs belong to
 *    this rank alone, and worker i has device i modulo their number.
 *  - `auto`: cpu if there is no device, single_device for one device, rank_per_device for several. Software drivers,
 *    devices that failed their self-test or are GPUHAL_COMPUTE_PROHIBITED, and the CPU do not count.
 *
 *  An application adds strategies with gpuhal_strategy_register(). Example for a process that a launcher started:
 *
 *      gpuhal_launcher launcher = {.size = sizeof launcher};
 *      gpuhal_strategy_desc desc = {.size = sizeof desc, .name = "rank_per_device"};
 *      gpuhal_strategy *strategy;
 *      gpuhal_device *device;
 *      gpuhal_status status = gpuhal_launcher_read(&launcher);
 *      status = status ? status : gpuhal_strategy_create(gpu, &desc, &strategy);
 *      status = status ? status : gpuhal_strategy_device(strategy, launcher.local_rank, &device);
 *      if (status == GPUHAL_OK) {
 *          (void)gpuhal_strategy_bind(strategy, launcher.local_rank); // if it fails, the thread runs as before
 *      }
 */
#ifndef GPUHAL_STRATEGY_H
#define GPUHAL_STRATEGY_H

#include <gpuhal/device.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The workers of this machine and their devices. */
typedef struct gpuhal_strategy gpuhal_strategy;

/** Flags of strategies. */
enum {
    /** Each worker of single_device is a process with a separate gpuhal object; the limit of this object is the
     *  share of one worker. */
    GPUHAL_STRATEGY_PROCESSES = 1u << 0,
    /** rank_per_device may have more workers than devices: worker i has device i modulo the number of devices. Also
     *  required if a launcher other than Slurm shows each process only one device. */
    GPUHAL_STRATEGY_SHARE_DEVICES = 1u << 1
};

/** The description of a strategy. */
typedef struct gpuhal_strategy_desc {
    uint32_t size;    /**< sizeof(gpuhal_strategy_desc). */
    uint32_t flags;   /**< GPUHAL_STRATEGY_ bits. */
    const char *name; /**< "cpu", "single_device", "rank_per_device", "auto", or a strategy of the application;
                           NULL means "auto". */
    /** Number of workers. With 0, cpu has one worker for each CPU that this process may use, and single_device has one.
     *  rank_per_device has one worker for each device, and with SHARE_DEVICES at least this number. */
    uint32_t workers;
    /** single_device: share of the device's memory for all workers together; 0 means 900. If several strategies exist,
     *  the smallest share applies. */
    uint32_t memory_permille;
    const char *device;       /**< single_device: a selector; NULL is like `auto`, but never selects the CPU. */
} gpuhal_strategy_desc;

/** A strategy of the application. Its functions may call the library. The status that a function returns is passed
 *  to the caller of the strategy, with the detail of the library call that failed; a status that is not an error of
 *  this library becomes INVALID_ARGUMENT. */
typedef struct gpuhal_strategy_table {
    uint32_t size;     /**< sizeof(gpuhal_strategy_table). */
    uint32_t reserved; /**< 0. */
    const char *name; /**< 1 to 63 bytes; different from the names of other strategies. */
    void *user;       /**< For `init`. */
    /** Creates the @p state that is passed to the other functions. May be NULL; the state is `user` in this case. @p
     *  desc is valid during the call. */
    gpuhal_status (*init)(void *user, gpuhal *gpu, const gpuhal_strategy_desc *desc, void **out_state);
    uint32_t (*worker_count)(void *state);
    /** Returns the device of a worker below the count; may be called from several threads at once. */
    gpuhal_status (*device_for_worker)(void *state, uint32_t worker, gpuhal_device **out_device);
    /** Called once for each `init` that returned GPUHAL_OK, so never if `init` is NULL, because `user` belongs to the
     *  application, which may use it for many strategies. May be NULL. */
    void (*cleanup)(void *state);
} gpuhal_strategy_table;

/** Adds a strategy, for gpuhal_strategy_create() with this gpuhal object.
 *  @return GPUHAL_OK; BUSY if the name is taken; FORKED; INVALID_ARGUMENT; HOST_MEMORY
 *  Owner: the table is copied; its functions and `user` must stay valid until gpuhal_close(). Threads: any. Blocks:
 *  no. */
GPUHAL_API gpuhal_status gpuhal_strategy_register(gpuhal *gpu, const gpuhal_strategy_table *table);

/** Creates a strategy for the devices that exist now. single_device limits the memory of its device immediately
 *  (gpuhal_device_limit_memory()); an existing lower limit is kept. @p desc may be NULL.
 *  @return GPUHAL_OK; NOT_FOUND for an unknown name, and as gpuhal_select(); NO_DEVICE; NOT_SUPPORTED if the memory to
 *  share is unknown; OUT_OF_RANGE when there is no device for the local rank of this process; as
 *  gpuhal_launcher_read(); the failures of `init`; FORKED; INVALID_ARGUMENT; HOST_MEMORY
 *  Owner: caller, gpuhal_strategy_destroy(), before gpuhal_close(). Threads: any. Blocks: as `init` does. */
GPUHAL_API gpuhal_status gpuhal_strategy_create(gpuhal *gpu, const gpuhal_strategy_desc *desc,
                                                gpuhal_strategy **out_strategy);

/** Destroys the strategy. The limit that single_device set is restored to its earlier value, unless it was changed in
 *  the meantime. NULL does nothing.
 *  Owner: @p strategy is invalid afterwards. Threads: any, with no other call on @p strategy in progress. Blocks: as
 *  `cleanup` does. */
GPUHAL_API void gpuhal_strategy_destroy(gpuhal_strategy *strategy);

/** Returns the name of the strategy; for `auto`, the name of the chosen strategy.
 *  @return never NULL; "" for NULL
 *  Owner: @p strategy. Threads: any. Blocks: no. */
GPUHAL_API const char *gpuhal_strategy_name(const gpuhal_strategy *strategy);

/** Returns the number of workers on this machine.
 *  @return the count; 0 for NULL
 *  Owner: nothing. Threads: any. Blocks: no. */
GPUHAL_API uint32_t gpuhal_strategy_worker_count(const gpuhal_strategy *strategy);

/** Returns the device of worker number @p worker, counted from 0.
 *  @return GPUHAL_OK; OUT_OF_RANGE past the last worker; DEVICE_LOST when the device vanished or was lost: then create
 *  a new strategy; the failures of `device_for_worker`; FORKED; INVALID_ARGUMENT
 *  Owner: the device belongs to the gpuhal object. Threads: any. Blocks: as `device_for_worker` does. */
GPUHAL_API gpuhal_status gpuhal_strategy_device(const gpuhal_strategy *strategy, uint32_t worker,
                                                gpuhal_device **out_device);

/** Binds the calling thread to the CPUs near the worker's device, limited to the CPUs allowed for the creating thread
 *  when it created the strategy. Threads that the calling thread starts inherit the binding. For the CPU device and
 *  software drivers, all of these CPUs are near.
 *  @return GPUHAL_OK; NOT_SUPPORTED, with the reason, when the near CPUs are unknown, or none of them may be used; as
 *  gpuhal_strategy_device(); DRIVER when the system refuses; HOST_MEMORY; FILE
 *  Owner: nothing. Threads: any; only the calling one is changed. Blocks: yes, reading files of the kernel. */
GPUHAL_API gpuhal_status gpuhal_strategy_bind(const gpuhal_strategy *strategy, uint32_t worker);

/** The information that a process launcher provides about this process. */
typedef struct gpuhal_launcher {
    uint32_t size;        /**< sizeof(gpuhal_launcher). */
    uint32_t rank;        /**< Rank among all processes. */
    uint32_t rank_count;  /**< 0 if unknown. */
    uint32_t local_rank;  /**< Rank among the processes on this machine. */
    uint32_t local_count; /**< 0 if unknown. */
    uint32_t reserved;
    /** "torchrun", "open_mpi", "hydra" or "slurm"; "" if there is no launcher, and this is rank 0 of 1. */
    const char *name;
} gpuhal_launcher;

/** Reads the environment variables of launchers. The first of these launchers whose local rank is set applies, so that
 *  a launcher that was started inside another one takes precedence: torchrun (RANK, WORLD_SIZE, LOCAL_RANK,
 *  LOCAL_WORLD_SIZE), Open MPI (OMPI_COMM_WORLD_RANK, …_SIZE, …_LOCAL_RANK, …_LOCAL_SIZE), Hydra of MPICH and Intel MPI
 *  (PMI_RANK, PMI_SIZE, MPI_LOCALRANKID, MPI_LOCALNRANKS), Slurm (SLURM_PROCID, SLURM_NTASKS, SLURM_LOCALID,
 *  SLURM_STEP_TASKS_PER_NODE with SLURM_NODEID). A rank without a local rank, including PMIX_RANK, is an error, since
 *  it does not identify a process on this machine. In a privileged process all variables count as not set. Set @p
 *  out_launcher->size first.
 *  @return GPUHAL_OK; INVALID_ARGUMENT for a rank without a local rank or the reverse, for a value that is not a
 *  number, and for variables that contradict each other: the detail names them with their values
 *  Owner: static strings. Threads: any, while no other thread changes the environment. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_launcher_read(gpuhal_launcher *out_launcher);

#ifdef __cplusplus
}
#endif
#endif
