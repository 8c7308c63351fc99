"""The layers of hal/, from the bottom: a file uses its own layer and those before it. hal/gpuhal.c, which lies in none, knows all."""

LAYERS = ("os", "base", "registry", "loader", "device", "telemetry", "memory", "transfer", "queue", "program", "pool", "hotplug", "store", "node", "schedule")


def layer_of(parts):
    """The layer of a path below hal/: those of the core lie in hal/core."""
    return parts[1] if parts[0] == "core" and len(parts) > 2 else parts[0]
