"""Which repositories a configuration names: every location parsed, and several names of one repository united."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from pathlib import Path

from miners.clone import Clone, Place, identify
from schemas.config import Config, SourceConfig
from schemas.errors import ConfigError
from schemas.records import LOCAL, Exclusion, Kept, RepositoryRecord, home_of
from schemas.search import DiscoveredRepository


@dataclass(frozen=True, slots=True)
class Source:
    """One repository to be opened."""

    place: Place
    """Where it is and what it is called."""
    config: SourceConfig
    """The section of the configuration that names it."""
    names: tuple[str, ...] = ()
    """All its other names, sorted: those that the configuration gives, and those under which earlier searches found it,
    which nobody knows who was not there. `place` has the former alone, since they go into the data."""
    former: tuple[str, ...] = ()
    """Its other names that no other repository has: a clone under one of them is its own."""
    found: DiscoveredRepository | None = None
    """What the search on GitHub tells of it; null for one that the configuration names."""

    @property
    def repo(self) -> str:
        """Return owner/name."""
        return self.place.repo


def plan_sources(config: Config, base: Path, found: Sequence[DiscoveredRepository] = ()) -> Kept[Source]:
    """Return every repository that the configuration names or a search found, sorted by name.

    Relative paths start at `base`. A repository that is named and found counts as named, with the id that was found.
    Sources with one numeric id on one host, and those that another's `aliases` name, are one repository: the rest is
    excluded (`repository_repeated`). ConfigError for a location that is wrong (when the source is optional: excluded),
    when two repositories share a name, and when sources of one repository disagree on its branch or numeric id.
    """
    sources: list[Source] = []
    excluded = []
    for section in config.sources:
        for location in (*section.git, *section.fast_import):
            try:
                place = identify(section, location, base)
                sources.append(Source(place, section, place.aliases))
            except ConfigError as error:
                if not section.optional:
                    raise
                excluded.append(Exclusion(section.repo or location, "sources", "source_missing", str(error)))
    searched = [_searched(config, row) for row in found]
    sources += [item for item in searched if isinstance(item, Source)]
    excluded += [item for item in searched if isinstance(item, Exclusion)]
    united = _unite(sources)
    by_name = _check_names(united.rows)
    planned = [
        replace(source, former=tuple(name for name in source.names if name.casefold() not in by_name))
        for source in united.rows
    ]
    return Kept(sorted(planned, key=lambda source: source.repo), [*excluded, *united.excluded])


def _searched(config: Config, row: DiscoveredRepository) -> Source | Exclusion:
    """Return the source of a repository that a search found."""
    section = SourceConfig(
        git=(row.clone_url,),
        web_url=row.web_url,
        repo_id=row.repo_id,
        execute=config.search is None or config.search.execute,
        optional=True,
    )
    try:
        return Source(identify(section, row.clone_url, Path("/")), section, row.aliases, found=row)
    except ConfigError as error:
        return Exclusion(row.repo, "sources", "clone_url_refused", str(error))


def _check_names(sources: Sequence[Source]) -> dict[str, Source]:
    """Return the sources by name, small letters for capitals, which folders of some machines do not tell apart."""
    by_name: dict[str, Source] = {}
    for source in sources:
        other = by_name.setdefault(source.repo.casefold(), source)
        if other is not source:
            names = " and ".join(sorted({other.repo, source.repo}))
            raise ConfigError(
                f"two sources are called {names} ({other.place.url}, {source.place.url}); give one of them another "
                "`repo` in its [[sources]], or both the same repo_id when they are one repository"
            )
    return by_name


def _unite(sources: Sequence[Source]) -> Kept[Source]:
    """Return one source for each repository, in the order of the configuration, and the others as exclusions."""
    kept, excluded = [], []
    for group in _groups(sources):
        listed = {alias for source in group for alias in source.names}
        first = _leading(group, listed)
        place = _newest_place(group, listed, first)
        ids = sorted({source.place.repo_id for source in group if source.place.repo_id is not None})
        branches = {source.place.branch for source in group if source.found is None}
        if len(ids) > 1 or len(branches) > 1:
            what = "numeric ids" if len(ids) > 1 else "branches"
            listing = ", ".join(source.repo for source in group)
            raise ConfigError(f"sources of one repository ({listing}) have different {what}; keep one of them")
        names, given = _other_names(group, place.repo)
        place = replace(place, aliases=given, repo_id=ids[0] if ids else None)
        kept.append(replace(first, place=place, names=names))
        excluded += [
            Exclusion(
                source.repo, "sources", "repository_repeated", f"the repository {place.key}, mined as {place.repo}"
            )
            for source in group
            if source is not first
        ]
    return Kept(kept, excluded)


def _other_names(group: Sequence[Source], repo: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return all names of a group but its own, and those among them that do not come from earlier searches."""
    own = {source.repo for source in group}
    names = own.union(*(source.names for source in group)) - {repo}
    given = own.union(*(source.place.aliases for source in group)) - {repo}
    return tuple(sorted(names)), tuple(sorted(given))


def _leading(group: Sequence[Source], listed: AbstractSet[str]) -> Source:
    """Return the source that stands for its group: one that the configuration names before one that a search found."""
    return min(group, key=lambda source: (source.found is not None, *_rank_of_name(source, listed)))


def _newest_place(group: Sequence[Source], listed: AbstractSet[str], first: Source) -> Place:
    """Return where a group's repository is: under the name that a search found, unless the user gives it another."""
    newest = min(group, key=lambda source: (*_rank_of_name(source, listed), source.found is None))
    if newest.found is None or first.place.kind != "https" or first.config.repo is not None:
        return first.place
    return replace(newest.place, branch=first.place.branch)


def _rank_of_name(source: Source, listed: AbstractSet[str]) -> tuple[bool, bool]:
    """Return what puts the newest name first: no other section calls it an alias, then its section knows of aliases."""
    return source.repo in listed, not source.names


def _groups(sources: Sequence[Source]) -> list[list[Source]]:
    """Return the sources of each repository: linked by numeric id, or by one's aliases where ids do not contradict.

    What a search found is linked by its own name too, capitals apart, as GitHub has it.
    """
    group_of = [[index] for index in range(len(sources))]

    def link(one: int, other: int) -> None:
        if group_of[one] is not group_of[other]:
            group_of[one] += group_of[other]
            for index in group_of[other]:
                group_of[index] = group_of[one]

    by_key: dict[str, int] = {}
    by_name: dict[str, list[int]] = {}
    by_folded: dict[str, list[int]] = {}
    for index, source in enumerate(sources):
        by_name.setdefault(source.repo, []).append(index)
        by_folded.setdefault(source.repo.casefold(), []).append(index)
        if source.place.repo_id is not None:
            link(by_key.setdefault(source.place.key, index), index)
    for index, source in enumerate(sources):
        for alias in source.names:
            for other in by_name.get(alias, ()):
                if _may_be_one(source.place, sources[other].place):
                    link(index, other)
        for other in by_folded[source.repo.casefold()] if source.found is not None else ():
            if _may_be_one(source.place, sources[other].place):
                link(index, other)
    groups = {id(group): sorted(group) for group in group_of}
    return [[sources[index] for index in group] for group in sorted(groups.values())]


def _may_be_one(place: Place, other: Place) -> bool:
    """Say whether neither ids nor hosts contradict; a local path without web address may be of any host."""
    ids = {place.repo_id, other.repo_id} - {None}
    homes = {home_of(item.host, item.web_url) for item in (place, other)} - {LOCAL}
    return len(ids) < 2 and len(homes) < 2


def drop_repeated(clones: Sequence[Clone]) -> Kept[Clone]:
    """Return the clones, and an exclusion (`repository_repeated`) for each whose newest commit another one has.

    The same newest commit is the same history. Of two the longer one is kept (the other is shallow), then one with a
    numeric id, then one that is not local, then the first by name.
    """
    best: dict[str, Clone] = {}
    for clone in sorted(clones, key=lambda item: _rank(item.record)):
        best.setdefault(clone.record.head, clone)
    kept, excluded = [], []
    for clone in clones:
        record, keeper = clone.record, best[clone.record.head].record
        if record is keeper:
            kept.append(clone)
        else:
            detail = f"its newest commit, {record.head}, is that of {keeper.repo}, which is mined"
            excluded.append(Exclusion(record.repo, "sources", "repository_repeated", detail))
    return Kept(kept, excluded)


def _rank(record: RepositoryRecord) -> tuple[int, bool, bool, str]:
    return -record.n_commits, record.repo_id is None, record.host == LOCAL, record.repo
