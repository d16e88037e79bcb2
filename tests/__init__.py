from . import kernel_cache

kernel_cache.use()  # before anything loads Numba
