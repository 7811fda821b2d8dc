"""Guard the size budget and habits of docs/architecture that linters do not know (`make check`)."""

import ast
import sys
from pathlib import Path

import grimp

PACKAGES = (
    "flows", "publishing", "scoring", "testbeds", "dedup", "sandbox", "features", "miners", "warehouse", "schemas",
)  # fmt: skip
# "At most about": the budget of the architecture is 40 and 400; these are the lines nobody may cross.
MAX_FUNCTION_LINES = 44
MAX_FILE_LINES = 400


def function_lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Return the lines of a function without its decorators and docstring."""
    lines = (node.end_lineno or node.lineno) - node.lineno + 1
    first = node.body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
        lines -= (first.end_lineno or first.lineno) - first.lineno + 1
    return lines


def check_file(path: Path) -> list[str]:
    """Return the complaints about one source file."""
    text = path.read_text(encoding="utf-8")
    complaints = []
    if (lines := text.count("\n")) > MAX_FILE_LINES:
        complaints.append(f"{path}: {lines} lines, at most {MAX_FILE_LINES}")
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Assert):
            complaints.append(f"{path}:{node.lineno}: assert is no run-time validation; raise an error")
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and function_lines(node) > MAX_FUNCTION_LINES:
            complaints.append(
                f"{path}:{node.lineno}: {node.name} has {function_lines(node)} lines, at most {MAX_FUNCTION_LINES}"
            )
    return complaints


def check_mutual_imports() -> list[str]:
    """Return the pairs of modules that import each other."""
    graph = grimp.build_graph(*PACKAGES)
    pairs = {
        tuple(sorted((module, imported)))
        for module in graph.modules
        for imported in graph.find_modules_directly_imported_by(module)
        if module in graph.find_modules_directly_imported_by(imported)
    }
    return [f"{first} and {second} import each other" for first, second in sorted(pairs)]


def count_lines(folders: tuple[str, ...]) -> int:
    """Return the lines of all Python files below the folders."""
    return sum(
        path.read_text(encoding="utf-8").count("\n")
        for folder in folders
        for path in sorted(Path(folder).rglob("*.py"))
    )


def main() -> int:
    """Print every complaint; exit 1 when there is one."""
    complaints = [
        text for package in PACKAGES for path in sorted(Path(package).rglob("*.py")) for text in check_file(path)
    ]
    complaints += check_mutual_imports()
    source, tests = count_lines(PACKAGES), count_lines(("tests",))
    if tests < source:
        complaints.append(f"tests have {tests} lines, the source {source}: tests must be at least as long")
    for text in complaints:
        print(text)
    print(f"structure: {len(complaints)} complaints, {source} lines of source, {tests} of tests")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
