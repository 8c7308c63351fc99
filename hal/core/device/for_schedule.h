/* device/for_schedule.h: the headers of the core that the part schedule needs besides the public functions. Files in
 * hal/schedule include no other header of the core. */
#ifndef GPUHAL_DEVICE_FOR_SCHEDULE_H
#define GPUHAL_DEVICE_FOR_SCHEDULE_H

#include "base/error.h"
#include "base/log.h"
#include "base/records.h"
#include "base/text.h"
#include "device/choice.h"
#include "device/selector.h"
#include "device/snapshot.h"
#include "os/os.h"

#endif
