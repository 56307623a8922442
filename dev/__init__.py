"""What serves the project and is not shipped: servers on this machine, programs that judge, benchmarks and tools."""
