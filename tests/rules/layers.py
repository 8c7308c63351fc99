"""The layers of hal/, lowest first: a file uses its own layer and lower ones. hal/gpuhal.c is not in a layer, and may use all layers."""

LAYERS = ("os", "base", "registry", "loader", "device", "telemetry", "memory", "transfer", "queue", "program", "pool", "hotplug", "store", "node", "schedule")


def layer_of(parts):
    """Returns the layer of a path below hal/. The core's layers are folders in hal/core."""
    return parts[1] if parts[0] == "core" and len(parts) > 2 else parts[0]
