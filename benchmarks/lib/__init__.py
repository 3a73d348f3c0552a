"""What benchmarks share: one thread, the clock, memory, and runs in processes of their own."""
