"""`make bench`: run every benchmark, the peers beside us."""

import subprocess
import sys

BENCHMARKS = ("bench.mining", "bench.dedup", "bench.features", "bench.real_code")


def main() -> int:
    """Run the benchmarks one after the other, each in a process of its own; exit 1 when one fails."""
    codes = [subprocess.run([sys.executable, "-m", name], check=False).returncode for name in BENCHMARKS]
    return int(any(codes))


if __name__ == "__main__":
    sys.exit(main())
