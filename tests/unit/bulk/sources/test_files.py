"""Files of rows: which ones are read, what their columns and values are, and what is refused."""

from __future__ import annotations

import bz2
import gzip
import json
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pykstreams import StreamsBuilder
from pykstreams.bulk.application import Application
from pykstreams.bulk.sources import file_formats as formats
from pykstreams.bulk.sources.file_parts import FilePart
from pykstreams.bulk.sources.rows import RowReader
from pykstreams.core.errors import ConfigError
from pykstreams.spark import Files, StoreBootstrap


def read(source: Files) -> list[dict[str, Any]]:
    return [row for part in source.parts() for batch in part.batches() for row in batch.to_pylist()]


def objects(source: Files) -> list[Any]:
    """The rows as values of a store."""
    reader = RowReader(StoreBootstrap("kept", None, key=repr), 0, Application(StreamsBuilder().build()), None)
    found = [parts for part in source.parts() for batch in part.batches() for parts in reader(batch)]
    return [parts if isinstance(parts, Exception) else parts[1] for parts in found]


def read_text(folder: Path, text: str, name: str = "rows.csv", **said: Any) -> list[dict[str, Any]]:
    path = folder / name
    path.write_text(text)
    return read(Files(path, **said))


def test_csv_columns_are_integers_numbers_booleans_or_texts_as_all_of_their_fields_are(tmp_path: Path) -> None:
    text = "n,x,b,t,id,none\n1,1,true,2013-01-01T05:00:00Z,0x1F,\n2,2.5,False,2013-01-02,7,NA\n"

    assert [
        {"n": 1, "x": 1.0, "b": True, "t": "2013-01-01T05:00:00Z", "id": "0x1F", "none": None},
        {"n": 2, "x": 2.5, "b": False, "t": "2013-01-02", "id": "7", "none": None},
    ] == read_text(tmp_path, text)


def test_csv_fields_that_say_nothing_are_null_unless_they_are_in_quotes(tmp_path: Path) -> None:
    text = 'n,t\n2004,a\nNA,NA\n,\n7,"NA"\n8,""\n9,"two\nlines"\n'

    assert [(2004, "a"), (None, None), (None, None), (7, "NA"), (8, ""), (9, "two\nlines")] == [
        (row["n"], row["t"]) for row in read_text(tmp_path, text)
    ]


def test_csv_can_be_told_what_stands_for_nothing_what_is_between_fields_and_what_columns_are(tmp_path: Path) -> None:
    found = read_text(tmp_path, "zip;country;n\n007;NA;-\n", nulls=["-"], delimiter=";", types={"zip": "string"})

    assert [{"zip": "007", "country": "NA", "n": None}] == found


def test_a_column_has_one_type_in_all_csv_files_wherever_its_first_text_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(formats, "_BLOCK_BYTES", 64)
    numbers = "".join(f"{at},{at}\n" for at in range(100))
    (tmp_path / "a.csv").write_text(f"id,n\n{numbers}")
    (tmp_path / "b.csv").write_text(f"id,n\n{numbers}x,1.5\n")
    rows = read(Files(tmp_path))

    assert [*map(str, range(100)), *map(str, range(100)), "x"] == [row["id"] for row in rows]
    assert {float} == {type(row["n"]) for row in rows}


@pytest.mark.parametrize("split", [False, True])
def test_a_csv_column_of_truths_and_of_digits_is_text_wherever_files_are_cut(split: bool, tmp_path: Path) -> None:
    fields = ["true", "1", "0", "False"]
    for at, some in enumerate([fields[:2], fields[2:]] if split else [fields]):
        (tmp_path / f"{at}.csv").write_text("a\n" + "\n".join(some))

    assert fields == [row["a"] for row in read(Files(tmp_path))]


@pytest.mark.parametrize("row", ["3,4,5", "3"])
def test_a_csv_row_with_a_field_too_many_or_too_few_is_refused(row: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"rows.csv' cannot be read as csv: .*Expected 2 columns, got"):
        read_text(tmp_path, f"a,b\n1,2\n{row}\n")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('id,n\n1,"abc\n2,x\n3,y\n', "the quote that begins a field is never closed: '\"abc"),
        ('id,n\n1,"say \\"hi\\""\n', r"a field goes on behind its closing quote, '\"say .* is written as two"),
        ('id,n\n1,"abc"def\n', "a field goes on behind its closing quote"),
        ('id,n\n1,"x\n2,y\n3,"z"\n', "a field goes on behind its closing quote"),
        ('id,n\n1,"' + "x" * 3000 + '"\n2,y\n', "a row has more than 1000 bytes, or a quote that is never closed"),
        ("id,n\n1," + "x" * 3000 + "\n2,y\n", "a row has more than 1000 bytes, or a quote that is never closed"),
    ],
    ids=["open", "backslashes", "behind", "open-before-another", "long-in-quotes", "long"],
)
@pytest.mark.parametrize("types", [{}, {"id": "int64", "n": "string"}])
def test_quotes_of_csv_that_would_alter_rows_are_refused(
    types: dict[str, str], text: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(formats, "_BLOCK_BYTES", 1000)

    with pytest.raises(ConfigError, match=rf"rows.csv' cannot be read as csv: {said}"):
        read_text(tmp_path, text, types=types)


@pytest.mark.parametrize("block", [1000, 60, 45])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_quotes_of_csv_stand_around_fields_doubled_inside_of_them_or_within_others(
    end: str, block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(formats, "_BLOCK_BYTES", block)
    texts = ['"', '""', 'a "b" c', ',"', '"\n"', "\\", "", 'x,y"\n""z', "'"]
    rows = [f'{at};"{text.replace(chr(34), chr(34) * 2)}";5" pipe' for at, text in enumerate(texts)]

    found = read_text(tmp_path, "\ufeffid;t;u" + end + end.join(rows), delimiter=";")
    assert [(text, '5" pipe') for text in texts] == [(row["t"], row["u"]) for row in found]


def test_a_first_row_of_csv_may_be_wide(tmp_path: Path) -> None:
    assert [{"id": 1, "t": "x" * 200_000}] == read_text(tmp_path, f"id,t\n1,{'x' * 200_000}\n")
    assert [{"id": 1, "t": "x" * 200_000}] == read_text(tmp_path, f'"id","t"\n1,"{"x" * 200_000}"')


@pytest.mark.parametrize("delimiter", ["", ";;", '"', "\n", "é"])
def test_what_cannot_stand_between_fields_is_refused(delimiter: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"delimiter= is .*; expected one character of ASCII"):
        read_text(tmp_path, "a;b\n1;2\n", delimiter=delimiter)


LARGE = 2**53 + 1
"""No number of 64 bits is this integer."""


@pytest.mark.parametrize(
    "fields",
    [
        ["12345678901234567890", "12345678901234567891"],
        [str(LARGE), "1.5"],
        [f"-{LARGE}", "", "1e3"],
        [f"00{LARGE}", "0.5"],
        ["9" * 400, "1.5"],
    ],
)
def test_integers_of_csv_that_no_number_holds_are_texts(fields: list[str], tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(f"id,n\n{fields[0]},1\n")
    (tmp_path / "b.csv").write_text("id,n\n" + "".join(f"{field},2\n" for field in fields[1:]))

    assert [field or None for field in fields] == [row["id"] for row in read(Files(tmp_path))]
    assert [float(fields[0])] == [row["id"] for row in read(Files(tmp_path, types={"id": "double"}))][:1]


def test_large_integers_of_csv_are_integers_or_numbers_where_these_hold_them(tmp_path: Path) -> None:
    text = f"n,x,s\n{LARGE},100000000000000000000,1234567890123456789\n{-(2**63)},1.5,-1\n"

    assert [(LARGE, 1e20, 1234567890123456789), (-(2**63), 1.5, -1)] == [
        (row["n"], row["x"], row["s"]) for row in read_text(tmp_path, text)
    ]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (
            [{"id": 12345678901234567890}, {"id": 12345678901234567891}],
            "column 'id' has the integer 12345678901234567890",
        ),
        ([{"id": LARGE}, {"id": 1.5}], f"column 'id' has the integer {LARGE}"),
        ([{"id": 1.5}, {"id": -LARGE}], f"column 'id' has the integer -{LARGE}"),
        ([{"in": {"a": [{"b": 1}, {"b": 10**19 + 1}]}}], f"column 'in.a.b' has the integer {10**19 + 1}"),
        ([{"in": [[LARGE, 0.5]]}], f"column 'in' has the integer {LARGE}"),
    ],
)
@pytest.mark.parametrize("block", [8 << 20, 20])
def test_integers_of_json_that_no_number_holds_are_refused_with_their_column(
    block: int, rows: list[Any], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(formats, "_BLOCK_BYTES", block)
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))

    with pytest.raises(ConfigError, match=rf"file '{path}' cannot be read as json: {said}"):
        Files(path).parts()


def test_an_integer_of_one_json_file_that_no_number_of_another_one_holds_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps({"id": LARGE}))
    (tmp_path / "b.json").write_text(json.dumps({"id": 0.5}))

    with pytest.raises(ConfigError, match=rf"file '.*a.json' cannot be read as json: column 'id' has .* {LARGE}"):
        Files(tmp_path).parts()
    assert [float(LARGE), 0.5] == [row["id"] for row in read(Files(tmp_path, types={"id": "double"}))]


def test_large_integers_of_json_are_integers_or_numbers_where_these_hold_them(tmp_path: Path) -> None:
    rows = [{"n": LARGE, "x": 10**20, "t": "12345678901234567891"}, {"n": -(2**63), "x": 1.7e300, "t": ""}]
    found = read_text(tmp_path, "\n".join(map(json.dumps, rows)), "rows.jsonl")

    assert rows == found
    assert [int, float] == [type(found[0][name]) for name in ("n", "x")]


def test_texts_of_json_stay_as_they_are_and_fields_in_their_order(tmp_path: Path) -> None:
    rows = [
        {"z": "2013-01-01T05:00:00Z", "a": 1, "in": {"z": "2013-01-01", "a": ["2013-01-01 00:00:00"]}},
        {"z": "x", "a": 2, "in": None},
    ]
    found = read_text(tmp_path, "\n".join(map(json.dumps, rows)), "rows.jsonl")

    assert rows == found
    assert list(map(json.dumps, rows)) == list(map(json.dumps, found))


def test_a_column_has_one_type_in_all_of_json_wherever_it_is_met_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(formats, "_BLOCK_BYTES", 50)
    monkeypatch.setattr(formats, "_BLOCKS_OF_A_PIECE", 2)
    rows = [{"n": at, "t": None} for at in range(40)] + [{"n": 1.5, "late": "2013-01-01"}]
    text = "\n\n".join(map(json.dumps, rows))
    (tmp_path / "a.json").write_text(text)
    (tmp_path / "b.json.gz").write_bytes(gzip.compress(text.encode()))
    source = Files(tmp_path)
    found = read(source)

    assert len(source.parts()) > 5
    assert [{"late": None, "t": None} | row for row in rows] * 2 == found
    assert {float} == {type(row["n"]) for row in found}
    assert [41, 41] == [
        sum(part.rows or 0 for part in source.parts() if part.file.packed == how) for how in (False, True)
    ]


def test_the_columns_are_those_of_all_files(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1], "n": pa.array([1], pa.int32())}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"late": ["x"], "id": [2], "n": [2.5]}), tmp_path / "b.parquet")

    assert [{"id": 1, "n": 1.0, "late": None}, {"id": 2, "n": 2.5, "late": "x"}] == read(Files(tmp_path))


def test_columns_of_two_types_are_refused_unless_one_is_said(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"id": ["x"]}), tmp_path / "b.parquet")

    with pytest.raises(ConfigError, match=r"column 'id' is int64 in '.*a.parquet' and string in '.*b.parquet'"):
        read(Files(tmp_path))
    assert [{"id": "1"}, {"id": "x"}] == read(Files(tmp_path, types={"id": "string"}))


def test_columns_that_are_alike_do_not_hide_which_file_has_the_other_type(tmp_path: Path) -> None:
    for name, value in (("a", 1), ("b", "x")):
        pq.write_table(pa.table({"id": [1], "n": [value]}), tmp_path / f"{name}.parquet")

    with pytest.raises(ConfigError, match=r"column 'n' is int64 in '.*a.parquet' and string in '.*b.parquet'"):
        read(Files(tmp_path))


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize(
    ("one", "other"),
    [(pa.array([Decimal("12345678901234567890.12")]), pa.array([0.5])), (pa.array(["x"]), pa.array([b"x"]))],
)
def test_decimals_do_not_become_numbers_nor_texts_bytes_for_the_sake_of_another_file(
    one: pa.Array, other: pa.Array, nested: bool, tmp_path: Path
) -> None:
    for at, column in enumerate([one, other, one]):
        inner = pa.StructArray.from_arrays([column], ["x"])
        wrapped = pa.ListArray.from_arrays(pa.array([0, 1], pa.int32()), inner)
        pq.write_table(pa.table({"v": wrapped if nested else column}), tmp_path / f"{at}.parquet")

    with pytest.raises(
        ConfigError, match=r"column 'v' is .* in '.*0.parquet' and .* in '.*1.parquet'; make them alike"
    ):
        Files(tmp_path).parts()
    if not nested:
        assert [str, str, str] == [type(row["v"]) for row in read(Files(tmp_path, types={"v": "string"}))]


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("scale", [0, 2, 20])
@pytest.mark.parametrize(
    ("kind", "integer"),
    [(pa.int8(), -128), (pa.int32(), -(2**31)), (pa.uint32(), 2**32 - 1), (pa.int64(), -(2**63)), (pa.uint64(), 2**63)],
    ids=str,
)
def test_integers_beside_decimals_are_decimals(
    kind: pa.DataType, integer: int, scale: int, nested: bool, tmp_path: Path
) -> None:
    for at, column in enumerate([pa.array([1], pa.decimal128(21, scale)), pa.array([integer], kind)]):
        wrapped = pa.ListArray.from_arrays(pa.array([0, 1], pa.int32()), pa.StructArray.from_arrays([column], ["x"]))
        pq.write_table(pa.table({"v": wrapped if nested else column}), tmp_path / f"{at}.parquet")
    values = [row["v"][0]["x"] if nested else row["v"] for row in read(Files(tmp_path))]

    assert [Decimal(1), Decimal(integer)] == values
    assert [Decimal] * 2 == [type(value) for value in values]


def test_columns_of_more_digits_than_there_are_are_refused(tmp_path: Path) -> None:
    for at, (digits, scale) in enumerate([(76, 0), (76, 76)]):
        pq.write_table(pa.table({"v": pa.array([0], pa.decimal256(digits, scale))}), tmp_path / f"{at}.parquet")

    with pytest.raises(ConfigError, match=r"column 'v' is decimal256\(76, 0\) in '.*0.parquet' and decimal256"):
        Files(tmp_path).parts()


def test_texts_and_bytes_are_alike_whatever_form_their_writer_has_given_them(tmp_path: Path) -> None:
    plain = {"t": pa.string(), "b": pa.binary(), "l": pa.list_(pa.struct([("s", pa.string())])), "j": pa.string()}
    inner = pa.list_(pa.struct([("s", pa.string_view())]))
    views = {"t": pa.string_view(), "b": pa.binary_view(), "l": inner, "j": pa.json_()}
    for at, kinds in enumerate([plain, views]):
        columns = {"t": ["a"], "b": [b"a"], "l": [[{"s": "a"}]], "j": ['{"a":1}']}
        table = pa.table({name: pa.array(values, kinds[name]) for name, values in columns.items()})
        pq.write_table(table, tmp_path / f"{at}.parquet")
    source = Files(tmp_path)

    assert [{"t": "a", "b": b"a", "l": [{"s": "a"}], "j": '{"a":1}'}] * 2 == read(source)
    assert pa.schema(plain).equals(source.parts()[1].schema)


def test_times_have_microseconds_and_are_in_utc_and_codes_are_what_they_stand_for(tmp_path: Path) -> None:
    moment = datetime(2013, 1, 1, 5, 0, 0, 123_456, tzinfo=UTC)
    nanoseconds = int(moment.timestamp()) * 10**9 + 123_456_789
    table = pa.table(
        {
            "at": pa.array([nanoseconds], pa.timestamp("ns", "America/New_York")),
            "naive": pa.array([nanoseconds], pa.timestamp("ns")),
            "inside": pa.array([{"at": nanoseconds}], pa.struct([("at", pa.timestamp("ns", "Asia/Tokyo"))])),
            "code": pa.array(["a"]).dictionary_encode(),
            "large": pa.array(["a"], pa.large_string()),
        }
    )
    pq.write_table(table, tmp_path / "rows.parquet")
    source = Files(tmp_path / "rows.parquet")
    [row] = read(source)

    naive = moment.replace(tzinfo=None)
    assert {"at": moment, "naive": naive, "inside": {"at": moment}, "code": "a", "large": "a"} == row
    assert ["UTC", "UTC"] == [str(row["at"].tzinfo), str(row["inside"]["at"].tzinfo)]
    assert datetime is type(row["at"])
    schema = source.parts()[0].schema
    assert schema is not None
    assert [pa.string()] * 2 == [schema.field(name).type for name in ("code", "large")]


def test_int96_times_far_from_now_stay_what_they_are(tmp_path: Path) -> None:
    times = [datetime(9999, 12, 31), datetime(2026, 1, 1, 0, 0, 0, 123_456), datetime(1, 1, 1), None]
    table = pa.table({"at": pa.array(times, pa.timestamp("us")), "in": pa.array([[time] for time in times])})
    pq.write_table(table, tmp_path / "rows.parquet", use_deprecated_int96_timestamps=True)

    assert [{"at": time, "in": [time]} for time in times] == read(Files(tmp_path / "rows.parquet"))


def test_times_that_microseconds_do_not_hold_are_refused(tmp_path: Path) -> None:
    table = pa.table({"at": pa.array([2**62], pa.timestamp("ms"))})
    pq.write_table(table, tmp_path / "rows.parquet")

    with pytest.raises(ConfigError, match=r"rows.parquet' cannot be read as parquet: .* out of bounds timestamp"):
        read(Files(tmp_path / "rows.parquet"))


def test_values_of_a_frame_are_in_utc_whatever_the_zone_of_the_session_is() -> None:
    times = pa.array([5_250_000], pa.timestamp("us", "Asia/Tokyo"))
    batch = pa.RecordBatch.from_pydict({"id": ["a"], "at": times})
    application = Application(StreamsBuilder().build())
    read = RowReader(StoreBootstrap("kept", None, key="id", timestamp="at"), 0, application, None)
    [row] = read(batch)
    assert not isinstance(row, Exception)
    key, value, timestamp, _, _ = row

    assert ("a", 5250, "1970-01-01 00:00:05.250000+00:00") == (key, timestamp, str(value["at"]))


def test_folders_tell_columns_as_hive_writes_them(tmp_path: Path) -> None:
    for year, where in (("2013", "a%2Fb"), ("2014", "__HIVE_DEFAULT_PARTITION__")):
        folder = tmp_path / f"year={year}" / f"where={where}"
        folder.mkdir(parents=True)
        (folder / "rows.csv").write_text("n\n1\n")

    assert [{"n": 1, "year": 2013, "where": "a/b"}, {"n": 1, "year": 2014, "where": None}] == read(Files(tmp_path))


@pytest.mark.parametrize(
    ("name", "types", "value"),
    [
        ("zip=00123", {}, 123),
        ("zip=00123", {"zip": "string"}, "00123"),
        ("zip=00123", {"zip": "double"}, 123.0),
        ("zip=2026-01-31", {}, "2026-01-31"),
        ("zip=2026-01-31", {"zip": "date32"}, date(2026, 1, 31)),
        (f"zip={2**63}", {}, f"{2**63}"),
        ("zip=-5", {}, -5),
        (f"zip={-(2**63)}", {}, -(2**63)),
        (f"zip={-(2**63) - 1}", {}, f"{-(2**63) - 1}"),
        ("zip=--5", {}, "--5"),
        ("zip=-", {}, "-"),
        (f"zip={'9' * 5000}"[:200], {}, "9" * 196),
        ("zip=__HIVE_DEFAULT_PARTITION__", {"zip": "string"}, None),
    ],
)
def test_types_say_what_the_names_of_folders_mean(
    name: str, types: dict[str, str], value: object, tmp_path: Path
) -> None:
    (tmp_path / name).mkdir()
    (tmp_path / name / "rows.csv").write_text("n\n1\n")

    assert [{"n": 1, "zip": value}] == read(Files(tmp_path, types=types))


def test_a_name_of_a_folder_that_is_not_what_types_say_is_refused(tmp_path: Path) -> None:
    (tmp_path / "zip=x").mkdir()
    (tmp_path / "zip=x" / "rows.csv").write_text("n\n1\n")

    with pytest.raises(ConfigError, match=r"zip=x/rows.csv' cannot be read as csv: .*folder.* 'zip' .* 'x'.* int64"):
        read(Files(tmp_path, types={"zip": "int64"}))


def test_rows_that_say_something_else_than_the_name_of_their_folder_are_refused(tmp_path: Path) -> None:
    folder = tmp_path / "zip=7"
    folder.mkdir()
    table = pa.table({"zip": pa.array([7, 7], pa.int32())})
    pq.write_table(table, folder / "rows.parquet")

    assert [{"zip": 7}] * 2 == read(Files(tmp_path))
    pq.write_table(pa.table({"zip": [7, 8, None]}), folder / "rows.parquet")
    with pytest.raises(ConfigError, match=r"rows.parquet' cannot be read .* 'zip' is 7, and its rows have \[8, None\]"):
        read(Files(tmp_path))
    pq.write_table(pa.table({"zip": ["x"]}), folder / "rows.parquet")
    with pytest.raises(ConfigError, match=r"'zip' is string in '.*/rows.parquet' and int64 in '.*/zip=7'"):
        read(Files(tmp_path))


def test_other_files_of_a_folder_are_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for name in ("README.txt", "_SUCCESS", ".part-1.csv.crc", "_temporary/part-9.csv"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("how the rows came about")
    (tmp_path / "part-1.CSV").write_text("n\n1\n")
    (tmp_path / "part-2.csv.gz").write_bytes(gzip.compress(b"n\n2\n"))
    (tmp_path / "part-3.csv").write_text("")
    (tmp_path / "part-4.csv.gz").write_bytes(gzip.compress(b""))
    (tmp_path / "part-5.csv").write_text("n")

    assert [{"n": 1}, {"n": 2}] == read(Files(tmp_path))
    assert "README.txt" in caplog.text
    assert "_SUCCESS" not in caplog.text


@pytest.mark.parametrize(
    ("log", "kind"),
    [
        ("_delta_log/00000000000000000000.json", "delta"),
        (".hoodie/hoodie.properties", "hudi"),
        ("metadata/00000-7d1f.metadata.json", "iceberg"),
    ],
)
def test_the_folder_of_a_table_that_has_a_log_is_refused(log: str, kind: str, tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1]}), tmp_path / "part-0.parquet")
    (tmp_path / log).parent.mkdir()
    (tmp_path / log).write_text("{}")

    said = rf"is the folder of a table of {kind}, .* replaced or deleted there.* SparkRead\('{kind}', .* its files"
    with pytest.raises(ConfigError, match=said):
        Files(tmp_path, format="parquet").parts()
    assert [{"id": 1}] == read(Files(tmp_path / "part-0.parquet"))


def test_files_come_in_the_order_in_which_they_are_named_and_those_of_a_folder_by_name(tmp_path: Path) -> None:
    for name in ("b/2", "b/1", "a/9"):
        path = tmp_path / f"{name}.csv"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f'n\n"{name}"\n')

    assert ["b/1", "b/2", "a/9"] == [row["n"] for row in read(Files([tmp_path / "b", tmp_path / "a" / "9.csv"]))]


def test_files_that_are_named_twice_are_refused(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.csv").write_text("n\n1\n")

    with pytest.raises(ConfigError, match=r"files are named twice: \['.*/b.csv'\].*name each of them once"):
        Files([tmp_path, tmp_path / "b.csv"]).parts()


def test_links_by_which_rows_would_be_left_out_or_read_again_are_refused(tmp_path: Path) -> None:
    (tmp_path / "rows").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "b.csv").write_text("n\n2\n")
    (tmp_path / "rows" / "a.csv").write_text("n\n1\n")
    (tmp_path / "rows" / "linked").symlink_to(tmp_path / "elsewhere")
    assert [{"n": 1}, {"n": 2}] == read(Files(tmp_path / "rows"))

    link = tmp_path / "elsewhere" / "c.csv"
    link.symlink_to("gone.csv")
    with pytest.raises(ConfigError, match=r"c.csv' is a link to 'gone.csv', where nothing is; take it away"):
        Files(tmp_path / "elsewhere").parts()
    link.unlink()
    link.symlink_to(tmp_path)
    with pytest.raises(ConfigError, match=r"c.csv' is a link to a folder that it is in, whose rows would be read aga"):
        Files(tmp_path / "elsewhere").parts()


@pytest.mark.parametrize("column", [pa.array([1_672_531_200_000_000_000]), pa.array([0, 1_672_531_200_000_000])])
def test_times_that_are_no_milliseconds_are_refused(column: pa.Array, tmp_path: Path) -> None:
    pq.write_table(pa.table({"n": column, "at": column}), tmp_path / "rows.parquet")
    spec = StoreBootstrap("kept", None, key="n", value="n", timestamp="at")
    reader = RowReader(spec, 0, Application(StreamsBuilder().build()), None)

    with pytest.raises(ConfigError, match=r"column 'at' has the time 1672531200000000\d*, which in milliseconds is a"):
        [list(reader(batch)) for part in Files(tmp_path).parts() for batch in part.batches()]


def test_json_that_is_one_list_is_refused_with_the_way_out(tmp_path: Path) -> None:
    for text in ('[{"id": 1}]', '\ufeff\n [\n{"id": 1},\n{"id": 2}\n]\n'):
        with pytest.raises(ConfigError, match=r"rows.json' cannot be read as json: it is a list; expected an object a"):
            read_text(tmp_path, text, "rows.json")


def test_a_file_that_is_named_is_read_whatever_its_name_is(tmp_path: Path) -> None:
    assert [{"n": 1}] == read_text(tmp_path, "n\n1\n", "rows.txt", format="csv")


def test_avro_files_have_the_columns_of_all(tmp_path: Path) -> None:
    for name, row in (("a", {"id": 1}), ("b", {"id": 2, "n": 0.5})):
        fields = [{"name": key, "type": "long" if key == "id" else "double"} for key in row]
        with (tmp_path / f"{name}.avro").open("wb") as file:
            fastavro.writer(file, {"type": "record", "name": "Row", "fields": fields}, [row])

    assert [{"id": 1, "n": None}, {"id": 2, "n": 0.5}] == read(Files(tmp_path))
    with pytest.raises(ConfigError, match="Avro files say it themselves"):
        read(Files(tmp_path, types={"id": "string"}))


def avro(path: Path, rows: list[dict[str, Any]], **types: Any) -> Files:
    fields = [{"name": name, "type": kind} for name, kind in types.items()]
    with path.open("wb") as file:
        fastavro.writer(file, {"type": "record", "name": "Row", "fields": fields}, rows)
    return Files(path)


def logical(kind: Any, name: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "logicalType": name, **more}


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("boolean", True),
        ("int", 7),
        ("long", LARGE),
        (["null", "long"], LARGE),
        (["int", "null", "long"], LARGE),
        ("float", 0.1875),
        ("double", 1.0),
        ("bytes", b"x"),
        ("null", None),
        ({"type": "fixed", "name": "Four", "size": 4}, b"abcd"),
        ({"type": "enum", "name": "Colour", "symbols": ["RED"]}, "RED"),
        ({"type": "array", "items": ["null", {"type": "map", "values": "double"}]}, [None, {"a": 1.0}, {"b": 2.0}, {}]),
        ({"type": "map", "values": {"type": "map", "values": "long"}}, {"a": {"b": LARGE}}),
        (logical("bytes", "decimal", precision=6, scale=2), Decimal("12.50")),
        (logical("bytes", "decimal", precision=60, scale=2), Decimal("1" * 50 + ".50")),
        (logical("long", "timestamp-millis"), datetime(2013, 1, 1, 5, 0, 0, 123_000, tzinfo=UTC)),
        (logical("long", "timestamp-micros"), datetime(2013, 1, 1, 5, 0, 0, 123_456, tzinfo=UTC)),
        (logical("long", "local-timestamp-micros"), datetime(2013, 1, 1, 5, 0, 0, 123_456)),
        (logical("int", "date"), date(2013, 1, 1)),
        (logical("int", "time-millis"), time(5, 0, 0, 123_000)),
        (logical("long", "time-micros"), time(5, 0, 0, 123_456)),
        (logical("string", "uuid"), UUID(int=7)),
        (logical("string", "of-its-own"), "x"),
    ],
)
def test_values_of_avro_are_what_their_schema_says_whatever_stands_beside_them(
    kind: Any, value: object, tmp_path: Path
) -> None:
    source = avro(tmp_path / "rows.avro", [{"v": value}], v=kind)

    assert [{"v": value}] == objects(source)
    assert [type(value)] == [type(row["v"]) for row in objects(source)]


def test_maps_of_avro_have_the_keys_of_their_row_alone(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"m": {"x": 1}, "in": {"m": {"a": "b"}, "again": None}},
        {"m": {"y": 2}, "in": {"m": {}, "again": None}},
        {"m": None, "in": None},
    ]
    inner = {
        "type": "record",
        "name": "In",
        "fields": [
            {"name": "m", "type": {"type": "map", "values": {"type": "enum", "name": "E", "symbols": ["b"]}}},
            {"name": "again", "type": ["null", "E"]},
        ],
    }
    source = avro(
        tmp_path / "rows.avro", rows, m=["null", {"type": "map", "values": "long"}], **{"in": ["null", inner]}
    )

    assert rows == objects(source)


def test_values_of_avro_are_the_same_in_every_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formats, "BATCH_ROWS", 1)
    rows: list[dict[str, Any]] = [{"n": None}, {"n": LARGE}, {"n": 1}]
    source = avro(tmp_path / "rows.avro", rows, n=["null", "long"])

    assert rows == objects(source)
    assert source.parts()[0].schema == pa.schema([("n", pa.int64())])


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (["null", "long", "double"], r"field 'v' is of one of several types \('long', 'double'\)"),
        (
            {"type": "array", "items": ["string", "bytes"]},
            r"field 'v' is of one of several types \('string', 'bytes'\)",
        ),
        (
            {"type": "record", "name": "Node", "fields": [{"name": "next", "type": ["null", "Node"]}]},
            "field 'v.next' has records of type 'Node' inside of themselves",
        ),
        (
            {"type": "array", "items": logical("string", "uuid")},
            "field 'v' has UUIDs inside, which columns do not take",
        ),
        (
            logical("bytes", "decimal", precision=77, scale=2),
            "field 'v' has decimals of 77 digits; expected 76 at most",
        ),
    ],
)
def test_fields_of_avro_that_no_column_holds_are_refused_by_name(kind: Any, said: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=rf"rows.avro' cannot be read as avro: {said}"):
        avro(tmp_path / "rows.avro", [], v=kind).parts()


def test_folders_of_avro_files_tell_columns_too(tmp_path: Path) -> None:
    (tmp_path / "year=2013").mkdir()
    avro(tmp_path / "year=2013" / "rows.avro", [{"v": 1}], v="long")

    assert [{"v": 1, "year": 2013}] == read(Files(tmp_path))


def test_maps_of_parquet_are_dicts(tmp_path: Path) -> None:
    maps = pa.map_(pa.string(), pa.list_(pa.map_(pa.int64(), pa.string())))
    table = pa.table({"m": pa.array([[("a", [[(1, "x")], None])], None], maps), "n": [1, 2]})
    pq.write_table(table, tmp_path / "rows.parquet")

    assert [{"m": {"a": [{1: "x"}, None]}, "n": 1}, {"m": None, "n": 2}] == objects(Files(tmp_path / "rows.parquet"))


@pytest.mark.parametrize("kind", ["parquet", "csv", "json", "avro"])
def test_rows_of_no_files_are_none(kind: str, tmp_path: Path) -> None:
    path = tmp_path / f"rows.{kind}"
    if kind == "parquet":
        pq.write_table(pa.table({"id": pa.array([], pa.int64())}), path)
    elif kind == "avro":
        with path.open("wb") as file:
            fastavro.writer(file, {"type": "record", "name": "Row", "fields": []}, [])
    else:
        path.write_text("id,n\n" if kind == "csv" else "\n")

    assert [] == read(Files(path))
    if kind in ("csv", "json"):
        path.write_text("")
        assert [] == read(Files(path))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("rows.parquet", b"PAR1 and no more"),
        ("rows.parquet", b""),
        ("rows.csv", b"id,id\n1,2\n"),
        ("rows.csv", b"id\n\xff\xfe\n"),
        ("rows.csv.gz", b"id\n1\n"),
        ("rows.json", b'[{"id": 1}]'),
        ("rows.json", b'{"id": 1}\n{"id": '),
        ("rows.json", b'{"id": 1}\n{"id": "x"}\n'),
        ("rows.json", '{"id": "é"}\n'.encode("latin-1")),
        ("rows.avro", b"Obj\x01 and no more"),
    ],
)
def test_a_file_that_is_foreign_or_cut_off_is_named_in_one_line(name: str, content: bytes, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(content)

    with pytest.raises(
        ConfigError, match=rf"^file '{path}' cannot be read as [a-z]+: .*Correct it, leave it out"
    ) as said:
        read(Files(path))
    assert "\n" not in str(said.value)


def test_a_file_that_is_cut_off_behind_its_header_is_named_when_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "rows.avro"
    with path.open("wb") as file:
        schema = {"type": "record", "name": "Row", "fields": [{"name": "id", "type": "string"}]}
        fastavro.writer(file, schema, [{"id": "a" * 100}])
    path.write_bytes(path.read_bytes()[:-40])

    with pytest.raises(ConfigError, match=rf"file '{path}' cannot be read as avro"):
        read(Files(path))


@pytest.mark.parametrize(
    ("names", "said", "message"),
    [
        ((), {}, "there are no files in"),
        (("a.csv", "b.json"), {}, r"files of several formats in .* \(csv, json\); say which"),
        (("a.txt",), {}, "is not told by the names; say format="),
        (("a.csv",), {"format": "json"}, "there are no json files in"),
        (("a.csv",), {"types": {"id": "number"}}, "types= says 'number' of column 'id'"),
        (("a.csv",), {"types": {"id": "int64"}}, r"types= names the columns \['id'\], and .* has \['n'\]"),
        (("a.csv",), {"types": {"n": "int64"}}, r"column 'n' is not all int64: Failed to parse string: 'x'"),
    ],
)
def test_what_cannot_be_read_is_said(
    names: tuple[str, ...], said: dict[str, Any], message: str, tmp_path: Path
) -> None:
    for name in names:
        (tmp_path / name).write_text("n\nx\n")

    with pytest.raises(ConfigError, match=message):
        read(Files(tmp_path, **said))


def test_an_avro_file_whose_packed_rows_are_damaged_is_named(tmp_path: Path) -> None:
    path = tmp_path / "rows.avro"
    with path.open("wb") as file:
        schema = {"type": "record", "name": "Row", "fields": [{"name": "id", "type": "string"}]}
        fastavro.writer(file, schema, [{"id": f"{at:09}"} for at in range(100)], codec="deflate")
    whole = path.read_bytes()
    mark = whole[-16:]  # of the end of the header, and of each block: lengths, and packed rows
    head, block, _ = whole.split(mark)
    path.write_bytes(mark.join([head, block[:4] + b"\xff" * (len(block) - 4), b""]))

    with pytest.raises(ConfigError, match=rf"file '{path}' cannot be read as avro: Error .* while decompressing"):
        read(Files(path))


@pytest.mark.parametrize("end", ["gz", "GZ", "Bz2", "bz2"])
@pytest.mark.parametrize("kind", ["csv", "json"])
def test_packed_files_are_unpacked_however_their_names_are_written(kind: str, end: str, tmp_path: Path) -> None:
    path = tmp_path / f"rows.{kind}.{end}"
    pack = gzip.compress if end.lower() == "gz" else bz2.compress
    path.write_bytes(pack(b"n\n1\n" if kind == "csv" else b'{"n": 1}\n'))

    assert [{"n": 1}] == read(Files(path)) == read(Files(tmp_path))


def test_a_part_can_be_read_again_and_in_another_process(tmp_path: Path) -> None:
    import pickle

    (tmp_path / "a.csv").write_text("n\n1\n")
    [part] = Files(tmp_path).parts()
    again: FilePart = pickle.loads(pickle.dumps(part))

    assert [[{"n": 1}]] == [batch.to_pylist() for batch in part.batches()]
    assert [[{"n": 1}]] == [batch.to_pylist() for batch in again.batches()]
