"""Packages that are added without a file of the repository naming them: by evidence, from a curated list only.

A name that is not on the list is never asked of an index: whatever it served under that name would be anybody's.
"""

import re
from collections.abc import Iterable
from pathlib import Path

from sandbox.tree_files import python_files, read_text

# Import name to package where the two differ.
_RENAMED = {
    "attr": "attrs", "bs4": "beautifulsoup4", "Crypto": "pycryptodome", "cv2": "opencv-python-headless",
    "dateutil": "python-dateutil", "docx": "python-docx", "dotenv": "python-dotenv", "factory": "factory-boy",
    "fitz": "pymupdf", "flask_sqlalchemy": "flask-sqlalchemy", "git": "gitpython", "github": "pygithub",
    "google.protobuf": "protobuf", "jose": "python-jose", "jwt": "pyjwt", "Levenshtein": "levenshtein",
    "markdown": "markdown", "multipart": "python-multipart", "nacl": "pynacl", "OpenSSL": "pyopenssl",
    "PIL": "pillow", "pkg_resources": "setuptools", "psycopg2": "psycopg2-binary", "pylab": "matplotlib",
    "rest_framework": "djangorestframework", "ruamel": "ruamel-yaml", "serial": "pyserial", "setuptools": "setuptools",
    "skimage": "scikit-image", "sklearn": "scikit-learn", "slugify": "python-slugify", "socks": "pysocks",
    "telegram": "python-telegram-bot", "usb": "pyusb", "websocket": "websocket-client", "wx": "wxpython",
    "yaml": "pyyaml", "zmq": "pyzmq", "pytest_lazyfixture": "pytest-lazy-fixture",
}  # fmt: skip
# Packages with wheels that tests commonly import under their own name.
_SAME_TEXT = """
aiofiles aiohttp aioresponses aiosqlite anyio arrow asgiref asyncpg babel black boto3 botocore cachetools
cbor2 cffi chardet charset_normalizer click cloudpickle colorama coverage cryptography cssselect dask
dirty_equals django docutils duckdb email_validator execnet faker fakeredis fastapi filelock flask freezegun
fsspec gevent greenlet gunicorn h11 h2 h5py html5lib httpcore httpx humanize hypothesis idna iniconfig
inflection inline_snapshot ipykernel ipython isodate isort itsdangerous jinja2 joblib jsonpath_ng jsonschema
litestar lmdb loguru lxml lz4 mako marshmallow matplotlib mistune mock moto more_itertools msgpack msgspec
multidict mypy mypy_extensions nbformat nest_asyncio networkx nltk notebook numexpr numpy oauthlib openpyxl
orjson packaging pandas paramiko parameterized passlib pathspec peewee pendulum pexpect platformdirs
playwright pluggy ply polars polyfactory pretend prettytable prometheus_client psutil psycopg pyarrow
pycparser pydantic pydantic_settings pyfakefs pygments pymongo pymysql pyparsing pyperclip pyproj
pytest_asyncio pytest_benchmark pytest_cases pytest_check pytest_cov pytest_django pytest_factoryboy
pytest_flask pytest_freezer pytest_httpserver pytest_httpx pytest_lazy_fixtures pytest_mock pytest_randomly
pytest_regressions pytest_subtests pytest_timeout pytest_twisted pytz rapidfuzz redis referencing regex
requests requests_mock requests_toolbelt respx responses rich scipy seaborn semver shapely simplejson six
snapshottest sortedcontainers sphinx sqlalchemy sqlmodel sqlparse starlette structlog sympy syrupy tabulate
tenacity termcolor testfixtures textual time_machine toml tomli tomli_w tomlkit toolz tornado tqdm trio
trustme twisted typeguard typer types_requests typing_extensions tzdata tzlocal ujson urllib3 uvicorn uvloop
vcrpy virtualenv watchdog watchfiles websockets werkzeug wheel wrapt xarray xmltodict xxhash yarl zstandard
"""
_SAME = frozenset(_SAME_TEXT.split())
# What the text of a test shows about plugins: a marker or the name of a fixture among a test's arguments.
_EVIDENCE = (
    (re.compile(r"@pytest\.mark\.asyncio\b|^(?:import|from) pytest_asyncio", re.MULTILINE), "pytest-asyncio"),
    (re.compile(r"@pytest\.mark\.trio\b"), "pytest-trio"),
    (re.compile(r"\bdef test\w*\([^)]*\bmocker\b|^from pytest_mock", re.MULTILINE), "pytest-mock"),
    (re.compile(r"\bdef test\w*\([^)]*\bhttpx_mock\b|^from pytest_httpx", re.MULTILINE), "pytest-httpx"),
    (re.compile(r"\bdef test\w*\([^)]*\brequests_mock\b"), "requests-mock"),
    (re.compile(r"\bdef test\w*\([^)]*\bhttpserver\b|^from pytest_httpserver", re.MULTILINE), "pytest-httpserver"),
    (re.compile(r"\bdef test\w*\([^)]*\bbenchmark\b"), "pytest-benchmark"),
    (re.compile(r"\bdef test\w*\([^)]*\bsubtests\b"), "pytest-subtests"),
    (re.compile(r"\bdef test\w*\([^)]*\bfreezer\b"), "pytest-freezer"),
    (re.compile(r"\bdef test\w*\([^)]*\b(?:data_regression|file_regression)\b"), "pytest-regressions"),
    (re.compile(r"@pytest\.mark\.timeout\b"), "pytest-timeout"),
    (re.compile(r"@pytest\.mark\.django_db\b"), "pytest-django"),
    (re.compile(r"@pytest\.mark\.anyio\b"), "anyio"),
)  # fmt: skip


def package_of(module: str) -> str | None:
    """Return the package of a module that could not be found; null when the list does not know it."""
    parts = module.split(".")
    for length in range(len(parts), 0, -1):
        name = ".".join(parts[:length])
        if name in _RENAMED:
            return _RENAMED[name]
    return parts[0].lower().replace("_", "-") if parts[0].lower() in _SAME else None


def packages_of(modules: Iterable[str]) -> tuple[str, ...]:
    """Return the packages of several modules, sorted; those that the list does not know are left out."""
    return tuple(sorted({package for module in modules if (package := package_of(module)) is not None}))


def plugins_in_use(root: Path) -> tuple[str, ...]:
    """Return the plugins whose markers or fixtures the tree's tests use, sorted."""
    found = set[str]()
    for path in python_files(root):
        name = path.rpartition("/")[2]
        if name.startswith("test") or name.endswith("_test.py") or name == "conftest.py":
            text = read_text(root, path) or ""
            found.update(package for pattern, package in _EVIDENCE if package not in found and pattern.search(text))
    return tuple(sorted(found))
