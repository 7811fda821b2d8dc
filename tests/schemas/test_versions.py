from datetime import date

import pytest

from schemas.versions import calendar_version, is_earlier, parse_calendar_version


@pytest.mark.parametrize(
    ("day", "number", "version"),
    [
        (date(2026, 11, 30), 0, "2026.11.30"),
        (date(2026, 1, 5), 12, "2026.01.05.12"),
        (date(2000, 2, 29), 0, "2000.02.29"),
    ],
)
def test_a_day_is_written_and_read_back(day: date, number: int, version: str) -> None:
    assert calendar_version(day, number) == version
    assert parse_calendar_version(version) == (day, number)


@pytest.mark.parametrize(
    "version", ["quickstart", "1.2.0", "2026.1.5", "2026.02.30", "2026.11.30.0", "2026.11.30.01", "2026.11.30-1"]
)
def test_other_versions_are_no_calendar_versions(version: str) -> None:
    assert parse_calendar_version(version) is None


def test_versions_are_compared_as_numbers() -> None:
    ascending = ["0.1.0", "0.10.0", "2026.01.31", "2026.11.30", "2026.11.30.2", "2026.11.30.10", "2026.12.01"]
    for index, version in enumerate(ascending):
        assert [is_earlier(other, version) for other in ascending] == [place < index for place in range(len(ascending))]
    assert not is_earlier("quickstart", "1.0")
    assert not is_earlier("1.0", "quickstart")
