"""Configuration: one dataclass per stage, read once from a TOML file; an unknown key is an error."""

import hashlib
import json
import re
import tomllib
import types
import typing
from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields, is_dataclass
from datetime import UTC, date, datetime, time
from enum import StrEnum
from pathlib import Path
from typing import TypeVar, Union, get_args, get_origin, get_type_hints

from schemas.clones import ClonesConfig, check_clones, history_start
from schemas.errors import ConfigError
from schemas.execution import RealCodeConfig, check_real_code
from schemas.licence_names import check_licence_names
from schemas.opt_out import OptOutConfig
from schemas.overrides import override
from schemas.records import Novelty
from schemas.references import Keep, OldCode, ReferenceConfig, check_references
from schemas.search import SearchConfig, check_search

Section = TypeVar("Section")
_MAX_VERSION = 100  # characters; a folder's name, with room for the suffixes of temporary ones
_VERSION = re.compile(rf"(?!\.)[\w.+-]{{1,{_MAX_VERSION}}}")
# Permalinks go into published rows, so credentials and private query strings must not.
_WEB_URL = re.compile(r"https?://[\w.:-]+(?:/[^\s@?#]*)?")
# Owner (for nested groups all of them) and name, each fit for a folder.
_ALIAS = re.compile(r"[\w+~][\w.+~-]*(?:/[\w+~][\w.+~-]*)+")

TESTBEDS = (
    "raw_data",
    "raw_data_docstring",
    "random_cut",
    "with_docstring",
    "from_docstring",
    "commit_gen",
    "summarization_gen",
)
PROVEN_TESTBEDS = ("real_code",)  # need a sandbox, so they are built only when they are named
ALL_TESTBEDS = (*TESTBEDS, *PROVEN_TESTBEDS)


class UnknownLicence(StrEnum):
    """What becomes of code whose licence is not known."""

    KEEP = "keep"
    EXCLUDE = "exclude"


@dataclass(frozen=True, slots=True)
class SourceConfig:
    """Where repositories come from (`[[sources]]`): exactly one of `git`, `fast_import`."""

    git: tuple[str, ...] = ()
    """Local paths, `file://` or `https://` URLs; a relative path starts at the configuration's folder."""
    fast_import: tuple[str, ...] = ()
    """Files with `git fast-import` streams, imported as local repositories."""
    repo: str | None = None
    """owner/name, when the location does not tell it; only for a single location."""
    branch: str | None = None
    """Branch to walk; the default branch (HEAD) when left out."""
    web_url: str | None = None
    """Base of permalinks such as https://github.com/owner/name; derived from https URLs when left out."""
    repo_id: int | None = None
    """The host's numeric id, where known: it identifies the repository through renames, in row ids too."""
    aliases: tuple[str, ...] = ()
    """Other names of the repository, such as earlier ones: owner/name each; only for a single location."""
    execute: bool = True
    """Whether `real_code` may execute it; false leaves it out of that testbed alone."""
    optional: bool = False
    """A location that does not exist or is no usable repository is skipped with a reason, not an error."""


@dataclass(frozen=True, slots=True)
class WindowConfig:
    """Which commits count (`[window]`): author and committer date both in [since, until), UTC."""

    since: datetime
    """The cutoff: first moment that counts."""
    until: datetime | None = None
    """First moment that no longer counts; no upper end but the time of mining when left out."""


@dataclass(frozen=True, slots=True)
class MiningConfig:
    """Limits and marks of the miner (`[mining]`)."""

    max_file_bytes: int = 5_000_000
    """Larger files are excluded (`file_too_large`)."""
    max_files_per_commit: int = 2_000
    """Commits that change more Python files are excluded (`too_many_files`): imports, mass reformatting."""
    vendored_paths: tuple[str, ...] = (
        "vendor", "vendors", "vendored", "_vendor", "_vendored", "third_party", "thirdparty", "3rdparty",
        "extern", "external", "externals", "site-packages", "dist-packages", "node_modules", ".venv", "venv",
        "virtualenv", ".tox", ".eggs", "bundled",
    )  # fmt: skip
    """Folder names that mark vendored code, at any depth."""
    generated_names: tuple[str, ...] = (
        "*_pb2.py",
        "*_pb2_grpc.py",
        "*.min.py",
        "_version.py",
        "versioneer.py",
    )
    """File name patterns that mark generated code."""
    search_history: str = "2y"
    """How long before the window old commits are searched for definitions that come back in it (`restored`): `all`,
    `none`, or years such as `2y`; the versions before their changes and before those of the window count as well."""

    def history_start(self, since: datetime) -> float | None:
        """Return from when on old commits are searched (`schemas.clones.history_start`)."""
        return history_start(self.search_history, since)


@dataclass(frozen=True, slots=True)
class FeaturesConfig:
    """Which methods become data points (`[features]`)."""

    novelty: tuple[Novelty, ...] = (Novelty.ADDED,)
    """Novelty classes that go on."""
    max_code_bytes: int = 100_000
    """Longer methods are excluded (`code_too_long`)."""


@dataclass(frozen=True, slots=True)
class LicencesConfig:
    """Which licences go on (`[licences]`)."""

    allow: tuple[str, ...] = (
        "0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "EPL-1.0", "EPL-2.0", "MIT", "MPL-2.0", "Unlicense",
    )  # fmt: skip
    """SPDX ids of licences that methods may be under; `["*"]` lets every licence through. The default is MERA's list
    for UnitTests: 11 names of 9 licences, MPL-2.0 and the Unlicense are named twice (docs/adr/0005)."""
    unknown: UnknownLicence = UnknownLicence.KEEP
    """Whether methods without a known licence go on: `keep` or `exclude`."""


@dataclass(frozen=True, slots=True)
class DedupConfig:
    """Removal of duplicates (`[dedup]`)."""

    threshold: float = 0.7
    """Jaccard similarity, inclusive, from which two methods are near-duplicates."""
    min_distinct_tokens: int = 5
    """Methods with fewer distinct BPE tokens are compared for equality only."""
    copied_old: OldCode = OldCode.REPOSITORY
    """A method similar to one of the tree at the cutoff is of class `copied_old`: of its own `repository`'s tree, of
    `all` mined repositories' trees, or `off`."""
    keep: Keep = Keep.OLDEST
    """What stays of each cluster of duplicates: the `oldest` member; `none`; or, as with `oldest`, but rows that an
    earlier release among the references holds stay: `reference`."""
    references: tuple[ReferenceConfig, ...] = ()
    """Known benchmarks and earlier releases; rows similar to one of theirs are excluded."""


@dataclass(frozen=True, slots=True)
class TestbedsConfig:
    """Sampling of the testbeds (`[testbeds]`)."""

    names: tuple[str, ...] = TESTBEDS
    """Testbeds to build; all but `real_code` when left out."""
    size: int = 3_000
    """Rows of each generation testbed at most (Galeras' size)."""
    max_per_repo: int = 200
    """Rows of one repository in a testbed at most (MERA UnitTests' cap)."""
    max_per_commit: int = 1
    """Rows of one commit in commit_gen at most: they share their message, so one prompt would have many answers."""
    seed: int = 20_240_101
    """Seed of sampling and cuts."""


@dataclass(frozen=True, slots=True)
class ReleaseConfig:
    """The release folder (`[release]`)."""

    version: str = ""
    """Name of the folder below releases/; when left out the day's, as 2026.11.30, and only when something changed."""
    name: str = "postquem"
    """Title of the data set card."""
    overwrite: bool = False
    """Replace a release of this version that has other contents; otherwise that is an error."""


@dataclass(frozen=True, slots=True)
class Config:
    """The whole configuration of a run."""

    sources: tuple[SourceConfig, ...]
    """Where repositories come from."""
    window: WindowConfig
    """Which commits count."""
    search: SearchConfig | None = None
    """A search for repositories on GitHub, null without one."""
    clones: ClonesConfig = field(default_factory=ClonesConfig)
    """Limits of clones."""
    mining: MiningConfig = field(default_factory=MiningConfig)
    """Limits and marks of the miner."""
    features: FeaturesConfig = field(default_factory=FeaturesConfig)
    """Which methods become data points."""
    licences: LicencesConfig = field(default_factory=LicencesConfig)
    """Which licences go on."""
    dedup: DedupConfig = field(default_factory=DedupConfig)
    """Removal of duplicates."""
    testbeds: TestbedsConfig = field(default_factory=TestbedsConfig)
    """Sampling of the testbeds."""
    real_code: RealCodeConfig = field(default_factory=RealCodeConfig)
    """Proof by execution."""
    optout: OptOutConfig = field(default_factory=OptOutConfig)
    """Who does not want to be in a release."""
    release: ReleaseConfig = field(default_factory=ReleaseConfig)
    """The release folder."""

    def digest(self) -> str:
        """Return the sha256 of the resolved configuration."""
        return digest_of(self)


def digest_of(*parts: object) -> str:
    """Return the sha256 of configuration sections, strings and numbers, independent of hash seed and key order."""
    plain = [asdict(part) if is_dataclass(part) and not isinstance(part, type) else part for part in parts]
    return hashlib.sha256(json.dumps(plain, sort_keys=True, default=str).encode()).hexdigest()


def load_config(path: Path, overrides: Mapping[str, object] | None = None) -> Config:
    """Read a TOML file and put `overrides` (values by dotted key) in the place of its values.

    Raises ConfigError with what to do when it is missing, malformed or has unknown keys.
    """
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"no configuration file {path}; name one with --config, as configs/quickstart.toml") from None
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror or error}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is no valid TOML: {error}") from error
    if "search" in data:
        data.setdefault("sources", [])
    try:
        config = _read(Config, override(data, overrides or {}), where="")
        _check(config)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None
    return config


def read_section(section: type[Section], data: object, where: str) -> Section:
    """Return a section from plain values, such as those of a manifest; ConfigError as `load_config`."""
    return _read(section, data, where)


def _read(section: type[Section], data: object, where: str) -> Section:
    """Build a dataclass from a TOML table, checking keys and types."""
    if not isinstance(data, Mapping):
        raise ConfigError(f"{where or 'the file'} must be a table")
    hints = get_type_hints(section)
    known = {item.name: item for item in fields(typing.cast(type, section))}
    unknown = sorted(set(data) - set(known))
    if unknown:
        place = f"[{where}]" if where else "the top level"
        raise ConfigError(f"unknown key {', '.join(unknown)} in {place}; known keys: {', '.join(known)}")
    values = {key: _value(hints[key], item, f"{where}.{key}" if where else key) for key, item in data.items()}
    try:
        return section(**values)
    except TypeError:
        missing = [name for name in known if name not in values and name in _required(section)]
        raise ConfigError(f"missing key {', '.join(missing)} in {where or 'the file'}") from None


def _required(section: type) -> set[str]:
    """Return the names of fields without a default."""
    return {f.name for f in fields(section) if f.default is MISSING and f.default_factory is MISSING}


def _value(annotation: object, value: object, where: str) -> object:
    """Check one TOML value against a field's annotation and convert it."""
    origin, args = get_origin(annotation), get_args(annotation)
    if origin in (Union, types.UnionType):
        return _value(next(arg for arg in args if arg is not type(None)), value, where)
    if origin is tuple:
        if not isinstance(value, list):
            raise ConfigError(f"{where} must be a list, not {value!r}")
        return tuple(_value(args[0], item, f"{where}[{index}]") for index, item in enumerate(value))
    if is_dataclass(annotation) and isinstance(annotation, type):
        return _read(annotation, value, where)
    if annotation is datetime:
        return _moment(value, where)
    if isinstance(annotation, type) and issubclass(annotation, StrEnum):
        return _choice(annotation, value, where)
    if annotation is float and type(value) is int:
        return float(value)
    if isinstance(annotation, type) and type(value) is annotation:
        return value
    name = annotation.__name__ if isinstance(annotation, type) else str(annotation)
    raise ConfigError(f"{where} must be of type {name}, not {value!r}")


def _choice(choices: type[StrEnum], value: object, where: str) -> StrEnum:
    try:
        return choices(str(value))
    except ValueError:
        raise ConfigError(f"{where} must be one of {', '.join(choices)}, not {value!r}") from None


def _moment(value: object, where: str) -> datetime:
    """Return a TOML date or date-time as UTC; one without a zone is UTC."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            value = None
    if isinstance(value, datetime):
        try:
            return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
        except OverflowError:
            raise ConfigError(f"{where}, {value}, is no date in UTC") from None
    if isinstance(value, date):
        return datetime.combine(value, time(), UTC)
    raise ConfigError(f"{where} must be a date such as 2024-01-01 or 2024-01-01T00:00:00Z")


def _check(config: Config) -> None:
    """Refuse values that no run could use."""
    if not config.sources and config.search is None:
        raise ConfigError("no [[sources]]; name at least one repository, or search GitHub with [search]")
    if config.search is not None:
        check_search(config.search)
    for index, source in enumerate(config.sources):
        _check_source(source, f"sources[{index}]")
    if config.window.until is not None and config.window.until <= config.window.since:
        raise ConfigError("window.until must be later than window.since")
    _check_limits(config)
    check_licence_names(config.licences.allow)
    check_clones(config.clones)
    config.mining.history_start(config.window.since)
    if not 0.0 < config.dedup.threshold <= 1.0:
        raise ConfigError("dedup.threshold must be above 0 and at most 1")
    if config.features.novelty == (Novelty.COPIED_OLD,) and config.dedup.copied_old is OldCode.OFF:
        raise ConfigError('features.novelty asks for copied_old alone, which dedup.copied_old = "off" never finds')
    check_references(config.dedup.references)
    unknown = sorted(set(config.testbeds.names) - set(ALL_TESTBEDS))
    if unknown:
        raise ConfigError(f"unknown testbed {', '.join(unknown)}; known testbeds: {', '.join(ALL_TESTBEDS)}")
    check_real_code(config.real_code)
    if min(config.testbeds.size, config.testbeds.max_per_repo, config.testbeds.max_per_commit) < 1:
        raise ConfigError("testbeds.size, testbeds.max_per_repo and testbeds.max_per_commit must be at least 1")
    if config.release.version and not _VERSION.fullmatch(config.release.version):
        allowed = f"at most {_MAX_VERSION} letters, digits, '.', '-', '_' and '+'"
        raise ConfigError(f"release.version {config.release.version!r} must be {allowed}")


def _check_limits(config: Config) -> None:
    """Refuse limits and lists that leave nothing to do."""
    for name, value in (
        ("mining.max_file_bytes", config.mining.max_file_bytes),
        ("mining.max_files_per_commit", config.mining.max_files_per_commit),
        ("features.max_code_bytes", config.features.max_code_bytes),
    ):
        if value < 1:
            raise ConfigError(f"{name} must be at least 1")
    for listed, values in (
        ("testbeds.names", config.testbeds.names),
        ("features.novelty", config.features.novelty),
        ("licences.allow", config.licences.allow),
    ):
        if not values or len(set(values)) != len(values):
            raise ConfigError(f"{listed} must name at least one and none twice")


def _check_source(source: SourceConfig, where: str) -> None:
    if bool(source.git) == bool(source.fast_import):
        raise ConfigError(f"{where} must have either git or fast_import, a list of locations")
    single = (source.repo, source.web_url, source.repo_id, source.aliases or None)
    if len(source.git) + len(source.fast_import) > 1 and single != (None, None, None, None):
        raise ConfigError(f"{where}: repo, web_url, repo_id and aliases belong to a single location; split the list")
    if source.web_url is not None and not _WEB_URL.fullmatch(source.web_url):
        raise ConfigError(f"{where}.web_url must be a plain https:// or http:// address without user, query, fragment")
    if source.repo is not None and source.repo.count("/") != 1:
        raise ConfigError(f"{where}.repo must be owner/name, not {source.repo!r}")
    if source.repo_id is not None and source.repo_id < 1:
        raise ConfigError(f"{where}.repo_id must be the host's positive number, not {source.repo_id}")
    for alias in source.aliases:
        if not _ALIAS.fullmatch(alias):
            raise ConfigError(f"{where}.aliases must be names such as owner/name, not {alias!r}")
