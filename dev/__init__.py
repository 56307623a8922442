"""Tools of the project that are not shipped: servers on this machine, programs that judge, benchmarks and tools."""
