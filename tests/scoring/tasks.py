"""Tasks of a small tree, as rows of real_code."""

import hashlib
from collections.abc import Sequence
from typing import Any

from miners.methods import scan
from miners.syntax import parse
from sandbox.splice import split_body
from schemas.execution import Environment, MockKind, MockResult, RealCode, Verdict
from testbeds.task import extend
from tests.builders import make_point


def make_task(
    source: bytes, path: str, fun_name: str, tests: Sequence[str], environment: Environment, **columns: object
) -> RealCode:
    """Return the task of a function in a file of UTF-8."""
    span = next(span for span in scan(source, parse(source), {}) if span.fun_name == fun_name)
    cut = split_body(source, span.start_byte)
    row_id = hashlib.blake2b(f"{path}:{fun_name}".encode(), digest_size=16).hexdigest()
    point = make_point(row_id=row_id, repo="acme/shop", path=path, fun_name=fun_name, code=source.decode())
    mock = MockResult(MockKind.PASS, cut.indent.decode() + "pass", Verdict.CAUGHT, tuple(tests))
    values: dict[str, Any] = {
        "instance_id": f"acme__shop-{row_id}",
        "base_commit": "c" * 40,
        "intent_type": "function",
        "left_context": cut.left.decode(),
        "canonical_solution": cut.body.decode(),
        "right_context": cut.right.decode(),
        "PASS_TO_PASS": tuple(sorted(tests)),
        "FAIL_TO_PASS": tuple(sorted(tests)),
        "mocks": (mock,),
        "environment": environment,
        "test_command": "python -m pytest",
        "runs": 4,
        "flaky_tests": (),
    }
    return extend(point, RealCode, **(values | columns))
