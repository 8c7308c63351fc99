"""The layers of hal/, lowest first: a file uses its own layer and lower ones. hal/gpuhal.c is in no layer, and may use all of them."""

LAYERS = ("os", "base", "registry", "loader", "device", "telemetry", "memory", "transfer", "queue", "program", "pool", "hotplug", "store", "node", "schedule")


def layer_of(parts):
    """The layer of a path below hal/; the core's layers are in hal/core."""
    return parts[1] if parts[0] == "core" and len(parts) > 2 else parts[0]
