/* tests/abi/tree: a vendor's header that, like the real ones of ROCm 6 and later, includes another one, named from the
 * folder above, which includes one of libdrm. Beyond that it is our own declarations. */
#ifndef TREE_ROCM_SMI_H
#define TREE_ROCM_SMI_H

#include "rocm_smi/neighbour.h"

#include "../../../../plugins/rocm/rocm_smi_api.h"
#undef GPUHAL_ROCM_SMI_API_H

#define DECLARED(name, parameters) rsmi_status_t name parameters;
GPUHAL_ROCM_SMI_FUNCTIONS(DECLARED, DECLARED)
#undef DECLARED

#endif
