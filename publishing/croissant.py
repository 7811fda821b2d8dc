"""`croissant.json`: the release in the Croissant format (MLCommons, version 1.1), made from files and schemas.

Format: https://docs.mlcommons.org/croissant/docs/croissant-spec-1.1.html
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from publishing.card_tables import PURPOSES
from publishing.citation import bibtex_entry
from publishing.columns import column_docs
from publishing.facts import UNKNOWN_LICENSE, ConfigFacts, ReleaseFacts
from publishing.manifest import Manifest
from schemas.versions import parse_calendar_version
from warehouse.tables import FileEntry

CROISSANT_NAME = "croissant.json"
_CONFORMS_TO = "http://mlcommons.org/croissant/1.1"
_PARQUET = "application/x-parquet"  # another type validates, but nothing reads it (design notes, "Hub")
# The context that the specification asks for, section "Namespaces".
_CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "arrayShape": "cr:arrayShape",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "containedIn": "cr:containedIn",
    "cr": "http://mlcommons.org/croissant/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "description": {"@container": "@language"},
    "equivalentProperty": "cr:equivalentProperty",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileObject": "cr:fileObject",
    "fileProperty": "cr:fileProperty",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isArray": "cr:isArray",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "name": {"@container": "@language"},
    "parentField": "cr:parentField",
    "path": "cr:path",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "samplingRate": "cr:samplingRate",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}
_SPDX_ID = re.compile(r"[A-Za-z0-9.+-]+")
_SEMANTIC_VERSION = re.compile(r"(?:0|[1-9]\d*)(?:\.(?:0|[1-9]\d*)){2}")  # semver.org, without its suffixes

Json = dict[str, Any]


def render_croissant(facts: ReleaseFacts, manifest: Manifest) -> str:
    """Return the file's text; `manifest` lists the Parquet files, `facts` come from them. Configs without rows too."""
    shards = {config.name: _shards(config.name, manifest.files) for config in facts.configs}
    values: Json = {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "name": manifest.name,
        "description": _description(facts, manifest),
        "conformsTo": _CONFORMS_TO,
        "keywords": ["code", *facts.by_language, "benchmark", "code generation", "data contamination"],
        "license": _licenses(facts.by_license),
        **_version(manifest.version),
        "citeAs": bibtex_entry(facts, manifest),
        "isLiveDataset": False,
        "rai:dataCollection": "Mined from the git histories of the repositories that manifest.json names, by program.",
        "rai:dataUseCases": [f"{name}: {PURPOSES[name]}" for name in shards if name in PURPOSES],
        "rai:dataLimitations": "See the section Limits of README.md.",
        "rai:personalSensitiveInformation": (
            "Commit messages stand as they were written, names and e-mail addresses in trailers included: "
            f"{facts.shares.has_email} rows have a message with an address."
        ),
        "distribution": [*_file_objects(shards), *map(_file_set, shards)],
        "recordSet": [_record_set(config) for config in facts.configs],
    }
    return json.dumps(values, indent=2, ensure_ascii=False) + "\n"


def _description(facts: ReleaseFacts, manifest: Manifest) -> str:
    return (
        f"Benchmarks for code models, made of {facts.rows} Python functions and methods that commits dated at or after "
        f"{manifest.config['window']['since']} brought to {len(facts.by_repo)} repositories."
    )


def _licenses(by_license: Mapping[str, int]) -> list[str]:
    """Return the licences of the rows: the address of a single SPDX licence, else the expression."""
    known = [name for name in by_license if name != UNKNOWN_LICENSE]
    single = [
        f"https://spdx.org/licenses/{name}" if _SPDX_ID.fullmatch(name) and not name.startswith("LicenseRef-") else name
        for name in known
    ]
    return single or ["https://choosealicense.com/no-permission/"]


def _version(version: str) -> Json:
    """Return the version as a semantic one, which Croissant asks for, and the day of a calendar version."""
    calendar = parse_calendar_version(version)
    if calendar is not None:
        day, number = calendar
        build = f"+{number}" if number else ""
        return {"version": f"{day.year}.{day.month}.{day.day}{build}", "datePublished": day.isoformat()}
    return {"version": version} if _SEMANTIC_VERSION.fullmatch(version) else {}


def _shards(name: str, files: Sequence[FileEntry]) -> list[FileEntry]:
    return [entry for entry in files if entry.path.startswith(f"{name}/") and entry.path.endswith(".parquet")]


def _file_objects(shards: Mapping[str, Sequence[FileEntry]]) -> list[Json]:
    return [
        {
            "@type": "cr:FileObject",
            "@id": entry.path,
            "name": entry.path,
            "contentUrl": entry.path,
            "contentSize": f"{entry.bytes} B",
            "encodingFormat": _PARQUET,
            "sha256": entry.sha256,
        }
        for files in shards.values()
        for entry in files
    ]


def _file_set(name: str) -> Json:
    """Return a config's files as one table, found beside `croissant.json`.

    Without `containedIn`: mlcroissant 1.1 does not read a set that is contained in the file objects of its shards.
    """
    return {
        "@type": "cr:FileSet",
        "@id": f"files-{name}",
        "name": f"files-{name}",
        "description": f"Parquet files of the config {name}.",
        "encodingFormat": _PARQUET,
        "includes": f"{name}/*.parquet",
    }


def _record_set(config: ConfigFacts) -> Json:
    docs = column_docs(str((config.schema.metadata or {}).get(b"postquem.table", b"").decode()))
    return {
        "@type": "cr:RecordSet",
        "@id": config.name,
        "name": config.name,
        "description": PURPOSES.get(config.name, config.name),
        **({} if config.name == "exclusions" else {"key": {"@id": f"{config.name}/row_id"}}),
        "field": [_field(config.name, column, docs.get(column.name, "")) for column in config.schema],
    }


def _field(config: str, column: pa.Field, text: str) -> Json:
    """Return a column; a struct or list of structs becomes a field with sub-fields, each cut out by a JSON path."""
    name = f"{config}/{column.name}"
    source = {"fileSet": {"@id": f"files-{config}"}, "extract": {"column": column.name}}
    base: Json = {"@type": "cr:Field", "@id": name, "name": column.name, "description": text or column.name}
    kind, array = _element(column.type)
    if not pa.types.is_struct(kind):
        return base | {"dataType": _data_type(kind), **array, "source": source}
    parts = []
    for part in kind:
        inner, inner_array = _element(part.type)
        cut = source | {"transform": {"jsonPath": part.name}}
        parts.append({
            "@type": "cr:Field", "@id": f"{name}/{part.name}", "name": part.name, "dataType": _data_type(inner),
            **inner_array, "source": cut,
        })  # fmt: skip
    return base | array | {"subField": parts}


def _element(kind: pa.DataType) -> tuple[pa.DataType, Json]:
    """Return the type of a column's values, of a list's the type of its elements, and what says that it is a list."""
    if pa.types.is_list(kind):
        return kind.value_type, {"isArray": True, "arrayShape": "-1"}
    return kind, {}


def _data_type(kind: pa.DataType) -> str:
    if pa.types.is_boolean(kind):
        return "sc:Boolean"
    if pa.types.is_integer(kind):
        return "sc:Integer"
    if pa.types.is_floating(kind):
        return "sc:Float"
    return "sc:DateTime" if pa.types.is_timestamp(kind) else "sc:Text"
