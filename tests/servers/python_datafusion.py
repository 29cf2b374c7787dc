"""Ask the Python provider's DataFusionToolset: the answers that Updraft's are compared with.

    python_datafusion.py make FOLDER    writes the files that the tests ask about
    python_datafusion.py ask            answers

`ask` reads a JSON list from standard input, an object for each toolset: {"sources": [keyword arguments of
DataSourceConfig], "toolset": keyword arguments, "calls": [[tool, arguments], ...]}. It prints, for each toolset, a list
with an object for each call: {"value": text}, {"retry": text} or {"fatal": text}.
"""

import asyncio
import datetime as dt
import sys
from decimal import Decimal
from pathlib import Path

from quiet_airflow import converse, outcome


def kinds():
    """A column for each type of Arrow's that Python has values for; the second row is empty."""
    import pyarrow as pa

    noon = dt.datetime(2024, 7, 1, 12, 30, 15)
    shop = pa.struct([("name", pa.string()), ("since", pa.date32())])
    columns = {
        "i8": ([-3], pa.int8()),
        "u64": ([2**64 - 1], pa.uint64()),
        "half": ([0.1], pa.float16()),
        "single": ([0.1], pa.float32()),
        "double": ([1e300], pa.float64()),
        "not_a_number": ([float("nan")], pa.float64()),
        "infinite": ([float("-inf")], pa.float64()),
        "flag": ([True], pa.bool_()),
        "text": (["Zürich 日本 \"quoted\" \u0007"], pa.string()),
        "large_text": (["x"], pa.large_string()),
        "bytes": ([b"ok\xff\x00"], pa.binary()),
        "four_bytes": ([b"abcd"], pa.binary(4)),
        "price": ([Decimal("1.50")], pa.decimal128(10, 2)),
        "tiny": ([Decimal("0.00000001")], pa.decimal128(20, 8)),
        "huge": ([Decimal("12345678901234567890123456789012345678901.5")], pa.decimal256(50, 1)),
        "day": ([dt.date(2024, 2, 29)], pa.date32()),
        "day_in_ms": ([dt.date(2024, 2, 29)], pa.date64()),
        "seconds": ([noon], pa.timestamp("s")),
        "millis": ([noon.replace(microsecond=4000)], pa.timestamp("ms")),
        "micros": ([noon.replace(microsecond=456)], pa.timestamp("us")),
        "nanos": ([noon], pa.timestamp("ns")),
        "berlin": ([noon], pa.timestamp("us", "Europe/Berlin")),
        "utc": ([noon], pa.timestamp("ms", "UTC")),
        "fixed": ([noon], pa.timestamp("us", "-03:30")),
        "paris_of_old": ([dt.datetime(1905, 1, 1)], pa.timestamp("us", "Europe/Paris")),
        "clock": ([dt.time(1, 2, 3, 5)], pa.time64("us")),
        "clock_in_s": ([dt.time(1, 2, 3)], pa.time32("s")),
        "took": ([dt.timedelta(days=1, seconds=2)], pa.duration("us")),
        "before": ([dt.timedelta(seconds=-1)], pa.duration("s")),
        "numbers": ([[1, None, 3]], pa.list_(pa.int64())),
        "none_of_them": ([[]], pa.list_(pa.int64())),
        "nested": ([[[1], [], None]], pa.list_(pa.list_(pa.int64()))),
        "pair": ([[1, 2]], pa.list_(pa.int32(), 2)),
        "shop": ([{"name": "Aldine", "since": dt.date(1999, 12, 31)}], shop),
        "shops": ([[{"name": None, "since": None}]], pa.list_(shop)),
        "tags": ([[("a", 1), ("b", None)]], pa.map_(pa.string(), pa.int64())),
        "choice": (["x"], pa.dictionary(pa.int32(), pa.string())),
        "nothing": ([None], pa.null()),
    }
    return pa.table({name: pa.array(values + [None], kind) for name, (values, kind) in columns.items()})


def make(folder: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    def parquet(path: str, table) -> None:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, folder / path)

    def text(path: str, content: str) -> None:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(content)

    parquet("kinds.parquet", kinds())
    parquet("finer.parquet", pa.table({"moment": pa.array([1], pa.timestamp("ns")), "n": [1]}))
    ships = {"id": range(1, 101), "Name": [f"ship {n}" for n in range(1, 101)], "port": [n % 4 for n in range(100)]}
    parquet("ships.parquet", pa.table({name: list(values) for name, values in ships.items()}))
    text("ports.csv", "id,name,opened,fee,berth\n0,Bergen,2001-05-06,1.5,\n1,Oslo,1999-01-02,,3\n2,Ålesund,,2,4\n")
    text("semicolons.csv", "1;a\n2;b\n")
    for year, values in ((2023, [1, 2]), (2024, [3])):
        parquet(f"by_year/year={year}/part.parquet", pa.table({"v": values}))
    parquet("wide.parquet", pa.table({f"col_{n:03}": [n] for n in range(150)}))
    parquet("notes/one.parquet", pa.table({"v": [1, 2]}))
    text("notes/_SUCCESS", "")
    text("notes/readme.txt", "no table")

    # What only Updraft is asked about.
    parquet("mixed/a.parquet", pa.table({"v": [1, 2]}))
    parquet("mixed/b.parquet", pa.table({"v": ["x"]}))
    parquet("grown/a.parquet", pa.table({"v": [1]}, pa.schema([pa.field("v", pa.int64(), nullable=False)])))
    parquet("grown/b.parquet", pa.table({"w": ["x"]}))
    parquet("stray/a.parquet", pa.table({"v": [1]}))
    text("stray/b.parquet", "no parquet")
    text("late.csv", "id,amount\n" + "".join(f"{n},{n}\n" for n in range(2000)) + "2000,N/A\n")
    text("other_late.csv", "id,amount\n" + "".join(f"{n},{n}\n" for n in range(2000)) + "2000,none\n")
    text("empty_at_first.csv", "id,note\n" + "".join(f"{n},\n" for n in range(2000)) + "2000,here\n")
    text("guesses/a.csv", "id,v\n1,2\n")
    text("guesses/b.csv", "id,v\n2,x\n")
    text("swapped/a.csv", "id,v\n1,2\n")
    text("swapped/b.csv", "v,id\n2,1\n")
    text("ragged/a.csv", "id,v\n1,2\n")
    text("ragged/b.csv", "id,v\n" + "".join(f"{n},{n}\n" for n in range(2000)) + "1,2,3\n")
    text("quoted.csv", 'id,v\n1,"two\nlines"\n')
    text("lines.jsonl", '{"id": 1, "tags": ["a"], "at": {"x": 1.5}}\n{"id": 2, "late": true}\n')
    text("odd #1 100%/a b.csv", "id\n1\n")
    import fastavro

    schema = {
        "type": "record",
        "name": "berth",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "name", "type": ["null", "string"]},
            {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}},
            {"name": "since", "type": {"type": "long", "logicalType": "timestamp-micros"}},
            {"name": "tags", "type": {"type": "array", "items": "string"}},
        ],
    }
    since = dt.datetime(2024, 7, 1, 12, 30, tzinfo=dt.timezone.utc)
    berths = [
        {"id": 1, "name": "A", "price": Decimal("12.50"), "since": since, "tags": ["deep"]},
        {"id": 2, "name": None, "price": Decimal("0.00"), "since": since, "tags": []},
    ]
    with open(folder / "berths.avro", "wb") as out:
        fastavro.writer(out, schema, berths, codec="deflate")


def answers(requests: list) -> list:
    from airflow.providers.common.ai.toolsets.datafusion import DataFusionToolset
    from airflow.providers.common.sql.config import DataSourceConfig

    def answer(toolset, tool: str, arguments: dict) -> dict:
        try:
            return outcome(lambda: asyncio.run(toolset.execute_tool(tool, arguments, ctx=None, tool=None)))
        except Exception as error:
            return {"fatal": str(error)}

    given = []
    for request in requests:
        toolset = DataFusionToolset([DataSourceConfig(**source) for source in request["sources"]], **request["toolset"])
        given.append([answer(toolset, tool, arguments) for tool, arguments in request["calls"]])
    return given


if sys.argv[1] == "make":
    make(Path(sys.argv[2]))
else:
    converse(answers)
