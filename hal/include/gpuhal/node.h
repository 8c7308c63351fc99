/** gpuhal/node.h: data about a machine for operators: all its hardware, whether an API can use it or not, the record
 *  of its devices and faults, and values over time. Includes gpuhal/gpuhal.h; requires a library that was built with
 *  GPUHAL_NODE. */
#ifndef GPUHAL_NODE_H
#define GPUHAL_NODE_H

#include <gpuhal/gpuhal.h>
#include <gpuhal/node/hardware.h>
#include <gpuhal/node/registry.h>
#include <gpuhal/node/sampler.h>

#endif
