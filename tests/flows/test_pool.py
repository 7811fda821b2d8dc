import pyarrow as pa

from flows.pool import WorkerPool


def pool_of_arrow() -> str:
    return str(pa.default_memory_pool().backend_name)


def test_workers_take_the_memory_of_tables_from_malloc() -> None:
    pool = WorkerPool(1)
    try:
        assert pool.run(pool_of_arrow) == "system"
    finally:
        pool.close()
