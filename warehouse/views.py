"""The catalogue: a DuckDB file with one view per table over the ledger's list of files.

Never a glob: one half-written file would break every view. Paths in views are absolute, since DuckDB resolves relative
ones from the reader's current folder: after moving a workspace, rebuild its catalogue.
"""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import duckdb
import pyarrow as pa

from schemas import comparisons, execution, history, records, search, tasks
from schemas.arrow import schema_of, to_table
from schemas.errors import PipelineError
from warehouse.ledger import Ledger, Unit
from warehouse.lock import Workspace
from warehouse.tables import write_atomically

TABLES: dict[str, type] = {
    "discoveries": search.Discovery,
    "search_windows": search.SearchWindow,
    "discovered_repositories": search.DiscoveredRepository,
    "repositories": records.RepositoryRecord,
    "commits": records.CommitRecord,
    "changed_files": records.ChangedFile,
    "methods": records.Method,
    "historic_files": history.HistoricFile,
    "indexed_files": history.IndexedFile,
    "vanished_methods": history.VanishedMethod,
    "data_points": records.DataPoint,
    "cutoffs": comparisons.Cutoff,
    "old_methods": comparisons.OldMethod,
    "copied_old": comparisons.OldCopy,
    "reference_sets": comparisons.ReferenceSet,
    "reference_texts": comparisons.ReferenceText,
    "reference_matches": comparisons.ReferenceMatch,
    "earlier_exclusions": records.Exclusion,
    "release_changes": comparisons.ReleaseChange,
    "tokens": comparisons.TextTokens,
    "compared_texts": comparisons.ComparedText,
    "similar_texts": comparisons.SimilarTexts,
    "unique_rows": records.UniqueRow,
    "duplicates": records.DuplicatePair,
    "duplicate_clusters": comparisons.DescribedCluster,
    "testbed_duplicates": comparisons.TestbedDuplicates,
    "exclusions": records.Exclusion,
    "tasks_raw_data": records.DataPoint,
    "tasks_raw_data_docstring": records.DataPoint,
    "tasks_random_cut": tasks.RandomCut,
    "tasks_with_docstring": tasks.WithDocString,
    "tasks_from_docstring": tasks.FromDocString,
    "tasks_commit_gen": tasks.CommitGen,
    "tasks_summarization_gen": tasks.SummarizationGen,
    "proven_functions": execution.RealCode,
    "real_code_runs": execution.RealCodeRun,
    "tasks_real_code": execution.RealCode,
}
"""Row type of every table of the lake; each has a view, also before it has a file."""
_PLACED = """
SELECT e.* REPLACE (
  coalesce(e.repo, m.repo, nullif(regexp_extract(e.row_id, '^([^@]+)@[0-9a-f]{{40,64}}(:|$)', 1), ''),
    nullif(regexp_extract(e.row_id, '^[^/@: ]+/[^/@: ]+$'), '')) AS repo,
  coalesce(e.commit_id, m.commit_id, nullif(regexp_extract(e.row_id, '^[^@]+@([0-9a-f]{{40,64}})(:|$)', 1), ''))
    AS commit_id,
  coalesce(e.path, m.path, nullif(regexp_extract(e.row_id, '^[^@]+@[0-9a-f]{{40,64}}:(.+)$', 1, 's'), '')) AS path,
  coalesce(e.fun_name, m.fun_name) AS fun_name)
FROM ({}) AS e LEFT JOIN
  (SELECT row_id, any_value(repo) AS repo, any_value(commit_id) AS commit_id, any_value(path) AS path,
     any_value(fun_name) AS fun_name FROM methods GROUP BY row_id) AS m
  ON m.row_id = e.row_id AND e.stage <> 'opt_out'
"""
"""Exclusions with the place of each, as a release has them; of what somebody asked to leave out no more is told."""


def rebuild_catalogue(workspace: Workspace, units: Sequence[Unit] | None = None) -> None:
    """Write `postquem.duckdb` anew: a view per table and the table `runs`.

    Covers `units` (default: every current unit of the ledger). Raises PipelineError when it cannot be written.
    """
    ledger = Ledger(workspace.tables)
    chosen = ledger.units() if units is None else list(units)

    def fill(path: Path) -> None:
        path.unlink(missing_ok=True)  # a killed run's file of the same pid would be opened, not replaced
        try:
            with duckdb.connect(path) as connection:
                _create_views(connection, workspace.tables, chosen)
                _create_runs(connection, [report for unit in chosen for report in unit.reports])
        except duckdb.Error as error:
            raise PipelineError(f"cannot write {workspace.catalogue}: {error}; free space and run again") from error
        finally:
            with suppress(OSError):
                path.with_name(f"{path.name}.wal").unlink()

    write_atomically(workspace.catalogue, fill)


def connect(workspace: Workspace, read_only: bool = True) -> duckdb.DuckDBPyConnection:
    """Open the catalogue with UTC as its time zone; raise PipelineError when it is missing, damaged or in use."""
    if not workspace.catalogue.is_file():
        raise PipelineError(f"{workspace.catalogue} does not exist yet; run `postquem build` first")
    try:
        connection = duckdb.connect(workspace.catalogue, read_only=read_only)
        connection.execute("SET TimeZone = 'UTC'")
    except duckdb.Error as error:
        raise PipelineError(
            f"cannot open {workspace.catalogue} ({error}); close other programs that use it, or remove it and run again"
        ) from error
    return connection


def count_rows(pattern: Path) -> int:
    """Return the rows of the Parquet files of a pattern after reading every value; PipelineError when DuckDB cannot."""
    query = "SELECT count(*), bit_xor(hash(rows)) FROM read_parquet(?, hive_partitioning = false) AS rows"
    try:
        with duckdb.connect() as connection:
            [(count, _)] = connection.execute(query, [str(pattern)]).fetchall()
    except duckdb.Error as error:
        raise PipelineError(f"DuckDB cannot read {pattern}: {str(error).splitlines()[0]}") from error
    return int(count)


def _create_views(connection: duckdb.DuckDBPyConnection, root: Path, units: Sequence[Unit]) -> None:
    files: dict[str, list[Path]] = {table: [] for table in TABLES}
    for unit in units:
        for table, entries in unit.files.items():
            files.setdefault(table, []).extend(root / entry.path for entry in entries)
    for table in sorted(files, key=lambda name: (name == "exclusions", name)):
        if files[table]:
            paths = ", ".join(_literal(str(path)) for path in sorted(files[table]))
            query = f"SELECT * FROM read_parquet([{paths}], hive_partitioning = false)"  # noqa: S608 - quoted by _literal
            query = _PLACED.format(query) if table == "exclusions" else query
        else:
            query = _empty_query(connection, schema_of(TABLES[table]).empty_table())
        connection.execute(f"CREATE VIEW {_identifier(table)} AS {query}")


def _create_runs(connection: duckdb.DuckDBPyConnection, reports: Sequence[records.StageReport]) -> None:
    connection.register("arrow_runs", to_table(reports, records.StageReport))
    connection.execute("CREATE TABLE runs AS SELECT * FROM arrow_runs")
    connection.unregister("arrow_runs")


def _empty_query(connection: duckdb.DuckDBPyConnection, table: pa.Table) -> str:
    """Return a query without rows that has the table's columns in DuckDB's types."""
    connection.register("arrow_empty", table)
    columns = connection.execute("DESCRIBE arrow_empty").fetchall()
    connection.unregister("arrow_empty")
    casts = ", ".join(f"CAST(NULL AS {kind}) AS {_identifier(name)}" for name, kind, *_ in columns)
    return f"SELECT {casts} WHERE false"


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
