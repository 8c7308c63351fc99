/** gpuhal/schedule/strategy.h: which worker of a program uses which device.
 *
 *  A worker is a thread or a process that does a share of the work. A strategy says how many there are on this machine
 *  and gives each of them a device:
 *
 *  - `cpu`: the processor only.
 *  - `single_device`: one device for all workers, with a limit of the memory that they may have there together.
 *  - `rank_per_device`: worker i has device i, counted over one preferred interface of each physical device, or of each
 *    part of a divided one. If a launcher started this process (gpuhal_launcher_read()), its local rank must have a
 *    device. If Slurm shows it fewer GPUs than the job has on this machine, as with --gpus-per-task, these are of this
 *    rank alone: worker i has device i modulo their number.
 *  - `auto`: cpu without a device, single_device with one, rank_per_device with several. Software drivers, devices that
 *    failed their self-test or are GPUHAL_COMPUTE_PROHIBITED, and the CPU do not count.
 *
 *  An application adds strategies by gpuhal_strategy_register(). A process that a launcher started:
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
    /** Each worker of single_device is a process with a separate gpuhal object: the limit of this object is the part of
     *  one worker. */
    GPUHAL_STRATEGY_PROCESSES = 1u << 0,
    /** rank_per_device may have more workers than devices: worker i has device i modulo their number. Also needed if a
     *  launcher other than Slurm shows each process one device only. */
    GPUHAL_STRATEGY_SHARE_DEVICES = 1u << 1
};

/** The description of a strategy. */
typedef struct gpuhal_strategy_desc {
    uint32_t size;    /**< sizeof(gpuhal_strategy_desc). */
    uint32_t flags;   /**< GPUHAL_STRATEGY_ bits. */
    const char *name; /**< "cpu", "single_device", "rank_per_device", "auto", or one of the application's own;
                           NULL: "auto". */
    /** 0: for cpu as many as there are processors for this process, for single_device one. rank_per_device has one for
     *  each device, and with SHARE_DEVICES at least as many as stated. */
    uint32_t workers;
    /** single_device: share of the device's memory for all workers together; 0: 900. Of several strategies that live,
     *  the smallest share counts. */
    uint32_t memory_permille;
    const char *device;       /**< single_device: a selector; NULL: as `auto`, but never the CPU. */
} gpuhal_strategy_desc;

/** A strategy of the application. Its functions may call the library. The caller of the strategy gets the status that a
 *  function returns, with the detail of the library's call that failed, and INVALID_ARGUMENT in place of a status that
 *  is no error of this library. */
typedef struct gpuhal_strategy_table {
    uint32_t size;     /**< sizeof(gpuhal_strategy_table). */
    uint32_t reserved; /**< 0. */
    const char *name; /**< 1 to 63 bytes; unlike the names of other strategies. */
    void *user;       /**< For `init`. */
    /** Makes the @p state of the other functions; may be NULL: then that is `user`. @p desc is valid during the
     *  call. */
    gpuhal_status (*init)(void *user, gpuhal *gpu, const gpuhal_strategy_desc *desc, void **out_state);
    uint32_t (*worker_count)(void *state);
    /** Returns the device of a worker below the count; may be called from several threads at once. */
    gpuhal_status (*device_for_worker)(void *state, uint32_t worker, gpuhal_device **out_device);
    /** Called once for each `init` that returned GPUHAL_OK, so never if that is NULL: `user` belongs to the
     *  application, which may use it for many strategies. May be NULL. */
    void (*cleanup)(void *state);
} gpuhal_strategy_table;

/** Adds a strategy, for gpuhal_strategy_create() with this gpuhal object.
 *  @return GPUHAL_OK; BUSY if the name is taken; FORKED; INVALID_ARGUMENT; HOST_MEMORY
 *  Owner: the table is copied; its functions and `user` must stay until gpuhal_close(). Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_strategy_register(gpuhal *gpu, const gpuhal_strategy_table *table);

/** Creates a strategy over the devices that are there now. single_device limits the memory of its device at once
 *  (gpuhal_device_limit_memory()); a limit that is lower already stays. @p desc may be NULL.
 *  @return GPUHAL_OK; NOT_FOUND for an unknown name, and as gpuhal_select(); NO_DEVICE; NOT_SUPPORTED if the memory to
 *  share is unknown; OUT_OF_RANGE when there is no device for the local rank of this process; as
 *  gpuhal_launcher_read(); the failures of `init`; FORKED; INVALID_ARGUMENT; HOST_MEMORY
 *  Owner: caller, gpuhal_strategy_destroy(), before gpuhal_close(). Threads: any. Blocks: as `init` does. */
GPUHAL_API gpuhal_status gpuhal_strategy_create(gpuhal *gpu, const gpuhal_strategy_desc *desc,
                                                gpuhal_strategy **out_strategy);

/** Destroys the strategy. The limit that single_device set goes back to its earlier value, unless it was changed
 *  meanwhile. NULL does nothing.
 *  Owner: @p strategy is invalid afterwards. Threads: any, with no other call on @p strategy in progress. Blocks: as
 *  `cleanup` does. */
GPUHAL_API void gpuhal_strategy_destroy(gpuhal_strategy *strategy);

/** Returns the name of the strategy, for `auto` that of the chosen one.
 *  @return never NULL; "" for NULL
 *  Owner: @p strategy. Threads: any. Blocks: no. */
GPUHAL_API const char *gpuhal_strategy_name(const gpuhal_strategy *strategy);

/** Returns how many workers there are on this machine.
 *  @return the count; 0 for NULL
 *  Owner: nothing. Threads: any. Blocks: no. */
GPUHAL_API uint32_t gpuhal_strategy_worker_count(const gpuhal_strategy *strategy);

/** Returns the device of worker number @p worker, counted from 0.
 *  @return GPUHAL_OK; OUT_OF_RANGE past the last worker; DEVICE_LOST when it vanished or was lost, then create a new
 *  strategy; the failures of `device_for_worker`; FORKED; INVALID_ARGUMENT
 *  Owner: device of the gpuhal object. Threads: any. Blocks: as `device_for_worker` does. */
GPUHAL_API gpuhal_status gpuhal_strategy_device(const gpuhal_strategy *strategy, uint32_t worker,
                                                gpuhal_device **out_device);

/** Binds the calling thread to the processors near the worker's device, as far as the thread that created the strategy
 *  might run there then. Threads that it starts inherit that. For the CPU and for software drivers on it all of these
 *  are near.
 *  @return GPUHAL_OK; NOT_SUPPORTED, with the reason, when it is unknown which are near, or none of them may be used;
 *  as gpuhal_strategy_device(); DRIVER when the system refuses; HOST_MEMORY; FILE
 *  Owner: nothing. Threads: any; only the calling one is changed. Blocks: yes, reading files of the kernel. */
GPUHAL_API gpuhal_status gpuhal_strategy_bind(const gpuhal_strategy *strategy, uint32_t worker);

/** What a launcher of processes states about this process. */
typedef struct gpuhal_launcher {
    uint32_t size;        /**< sizeof(gpuhal_launcher). */
    uint32_t rank;        /**< Among all processes. */
    uint32_t rank_count;  /**< 0: unknown. */
    uint32_t local_rank;  /**< Among those on this machine. */
    uint32_t local_count; /**< 0: unknown. */
    uint32_t reserved;
    const char *name; /**< "torchrun", "open_mpi", "hydra", "slurm"; "": none, and this is rank 0 of 1. */
} gpuhal_launcher;

/** Reads the variables of launchers. The first of these whose local rank is set counts, so that a launcher that was
 *  started inside another one does: torchrun (RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE), Open MPI
 *  (OMPI_COMM_WORLD_RANK, …_SIZE, …_LOCAL_RANK, …_LOCAL_SIZE), Hydra of MPICH and Intel MPI (PMI_RANK, PMI_SIZE,
 *  MPI_LOCALRANKID, MPI_LOCALNRANKS), Slurm (SLURM_PROCID, SLURM_NTASKS, SLURM_LOCALID, SLURM_STEP_TASKS_PER_NODE with
 *  SLURM_NODEID). A rank alone, PMIX_RANK too, is an error, since it says nothing about this machine. A privileged
 *  process has no variables. Set @p out_launcher->size first.
 *  @return GPUHAL_OK; INVALID_ARGUMENT for a value that is no number, and for variables that contradict each other: the
 *  detail names them with their values
 *  Owner: static texts. Threads: any, while no other changes the environment. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_launcher_read(gpuhal_launcher *out_launcher);

#ifdef __cplusplus
}
#endif
#endif
