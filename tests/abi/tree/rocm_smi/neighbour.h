/* tests/abi/tree: see rocm_smi.h. */
#ifndef TREE_NEIGHBOUR_H
#define TREE_NEIGHBOUR_H

#include <libdrm/drm.h>

struct tree_version {
    __u32 major, minor;
};

#endif
