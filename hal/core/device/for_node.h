/* device/for_node.h: the headers of the core that the part node needs besides the public functions. They
 * include the registry, because views show its records. Files in hal/node include no other header of the core. */
#ifndef GPUHAL_DEVICE_FOR_NODE_H
#define GPUHAL_DEVICE_FOR_NODE_H

#include "base/config.h"
#include "base/error.h"
#include "base/job.h"
#include "base/log.h"
#include "base/records.h"
#include "device/fault_log.h"
#include "device/identity.h"
#include "device/link.h"
#include "device/snapshot.h"
#include "device/view.h"
#include "loader/loader.h"
#include "os/os.h"
#include "registry/key.h"
#include "registry/registry.h"
#include "registry/serial.h"
#include "registry/store.h"

#endif
