/* tests/abi/tree: a vendor header with our own declarations. Like the real headers of ROCm 6 and later, it includes a
 * second header by a path from the parent folder. The second header includes a libdrm header. */
#ifndef TREE_ROCM_SMI_H
#define TREE_ROCM_SMI_H

#include "rocm_smi/neighbour.h"

#include "../../../../plugins/rocm/rocm_smi_api.h"
#undef GPUHAL_ROCM_SMI_API_H

#define DECLARED(name, parameters) rsmi_status_t name parameters;
GPUHAL_ROCM_SMI_FUNCTIONS(DECLARED, DECLARED)
#undef DECLARED

#endif
