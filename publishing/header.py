"""The YAML header of the data set card, and the check of a card against the files beside it.

Keys and values follow the Hub's data set card specification (docs: hub/datasets-cards, datasets/repository_structure).
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import yaml

from publishing.facts import UNKNOWN_LICENSE, ConfigFacts, ReleaseFacts, read_configs
from publishing.shards import shard_pattern
from schemas.errors import PipelineError

CARD_NAME = "README.md"
SPLIT = "test"
_FENCE = "---\n"
# Upper ends of the Hub's size categories that end in a power of ten.
_SIZE_CATEGORIES = (
    (10**3, "n<1K"),
    (10**4, "1K<n<10K"),
    (10**5, "10K<n<100K"),
    (10**6, "100K<n<1M"),
    (10**7, "1M<n<10M"),
    (10**8, "10M<n<100M"),
)
_LARGEST_CATEGORY = "100M<n<1B"
# SPDX ids whose lower-case form is one of the Hub's licence ids (docs: hub/repositories-licenses).
_HUB_LICENSES = frozenset(
    {
        "AFL-3.0", "Apache-2.0", "Artistic-2.0", "BSD-2-Clause", "BSD-3-Clause", "BSL-1.0", "CC0-1.0", "ECL-2.0",
        "EPL-1.0", "EPL-2.0", "EUPL-1.1", "EUPL-1.2", "ISC", "MIT", "MPL-2.0", "MS-PL", "NCSA", "OFL-1.1",
        "PostgreSQL", "Unlicense", "WTFPL", "Zlib",
    }
)  # fmt: skip
# The language identifier errs on short docstrings: a language is named from this share of the docstrings on.
_MIN_LANGUAGE_SHARE = 0.01
# libyaml's loader reads the same ten times faster, where PyYAML was built with it.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_DTYPES = {pa.float64(): "float64"}


def header(facts: ReleaseFacts, title: str) -> str:
    """Return the card's YAML block with its fences."""
    loadable = [config for config in facts.configs if config.rows]
    values = {
        "pretty_name": title,
        **_license(facts.by_license),
        "language": ["code", *_doc_languages(facts.by_doc_language)],
        "task_categories": _task_categories(loadable),
        "size_categories": [_size_category(facts.rows)],
        "tags": ["code", *facts.by_language, "benchmark", "code-generation", "code-completion", "data-contamination"],
        "configs": [_config(config, default=index == 0) for index, config in enumerate(loadable)],
        "dataset_info": [_dataset_info(config) for config in loadable],
    }
    return _FENCE + yaml.safe_dump(values, sort_keys=False, allow_unicode=True, width=1_000) + _FENCE


def check_card(folder: Path) -> None:
    """Compare a card's configs, features, row counts and sizes with the Parquet files beside it.

    Raises PipelineError that names the first difference, a folder that the card leaves out included.
    """
    values = read_header(folder)
    facts = {config.name: config for config in read_configs(folder) if config.rows}
    infos = {info["config_name"]: info for info in values.get("dataset_info") or []}
    configs = {config["config_name"]: config for config in values.get("configs") or []}
    for described in (configs, infos):
        if set(described) != set(facts):
            raise _mismatch(folder, "configs", sorted(described), sorted(facts))
    for name, config in facts.items():
        if configs[name]["data_files"] != _data_files(name):
            raise _mismatch(folder, f"data_files of {name}", configs[name]["data_files"], _data_files(name))
        expected = _dataset_info(config)
        for key in expected:
            if infos[name].get(key) != expected[key]:
                raise _mismatch(folder, f"{key} of {name}", infos[name].get(key), expected[key])


def read_header(folder: Path) -> dict[str, Any]:
    """Return the YAML values of a folder's card; raise PipelineError when there are none."""
    try:
        text = (folder / CARD_NAME).read_text(encoding="utf-8")
        start, block, _ = text.split(_FENCE, 2)
        values = yaml.load(block, Loader=_LOADER)  # noqa: S506 - both are safe loaders
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise PipelineError(f"{folder / CARD_NAME} has no readable YAML header: {error}") from error
    if start or not isinstance(values, dict):
        raise PipelineError(f"{folder / CARD_NAME} does not begin with a YAML header")
    return values


def features(schema: pa.Schema) -> list[dict[str, Any]]:
    """Return a schema in the card's notation (`datasets.Features` as YAML)."""
    return [_feature(column) for column in schema]


def _feature(column: pa.Field) -> dict[str, Any]:
    kind, name = column.type, column.name
    if pa.types.is_struct(kind):
        return {"name": name, "struct": [_feature(item) for item in kind]}
    if pa.types.is_list(kind):
        inner = kind.value_type
        if pa.types.is_struct(inner):
            return {"name": name, "list": [_feature(item) for item in inner]}
        return {"name": name, "list": _dtype(inner, name)}
    return {"name": name, "dtype": _dtype(kind, name)}


def _dtype(kind: pa.DataType, name: str) -> str:
    if pa.types.is_nested(kind):
        raise PipelineError(f"column {name} has the type {kind}, which the card cannot describe yet")
    return _DTYPES.get(kind, str(kind))


def _dataset_info(config: ConfigFacts) -> dict[str, Any]:
    split = {"name": SPLIT, "num_bytes": config.num_bytes, "num_examples": config.rows}
    return {
        "config_name": config.name,
        "features": features(config.schema),
        "splits": [split],
        "download_size": config.download_size,
        "dataset_size": config.num_bytes,
    }


def _config(config: ConfigFacts, default: bool) -> dict[str, Any]:
    values: dict[str, Any] = {"config_name": config.name, "data_files": _data_files(config.name)}
    return {**values, "default": True} if default else values


def _data_files(name: str) -> list[dict[str, str]]:
    return [{"split": SPLIT, "path": shard_pattern(name)}]


def _license(by_license: Mapping[str, int]) -> dict[str, str]:
    """Return the Hub's id when every row has the same known licence, else `other` and a name."""
    if len(by_license) == 1 and (only := next(iter(by_license))) in _HUB_LICENSES:
        return {"license": only.lower()}
    if len(by_license) == 1 and UNKNOWN_LICENSE not in by_license:
        return {"license": "other", "license_name": next(iter(by_license)).lower().replace(" ", "-")}
    return {"license": "other", "license_name": "each-row-names-its-own"}


def _doc_languages(by_language: Mapping[str, int]) -> list[str]:
    total = sum(by_language.values())
    return [name for name, rows in by_language.items() if rows >= _MIN_LANGUAGE_SHARE * total]


def _task_categories(configs: Sequence[ConfigFacts]) -> list[str]:
    summarises = any(config.name == "summarization_gen" for config in configs)
    return ["text-generation", "summarization"] if summarises else ["text-generation"]


def _size_category(rows: int) -> str:
    return next((name for end, name in _SIZE_CATEGORIES if rows < end), _LARGEST_CATEGORY)


def _mismatch(folder: Path, what: str, stated: object, found: object) -> PipelineError:
    return PipelineError(
        f"{folder / CARD_NAME} is wrong about the {what}: it says {stated!r}, the Parquet files say {found!r}; "
        "remove the release folder and run again"
    )
