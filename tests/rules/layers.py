"""The layers of hal/, from the bottom: a file uses its own layer and those before it. hal/gpuhal.c, which lies in none, knows all."""

LAYERS = ("os", "core", "registry", "loader", "device", "telemetry", "memory", "transfer", "queue", "program", "pool", "hotplug", "store", "node", "schedule")
