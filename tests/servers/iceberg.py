"""Iceberg tables as pyiceberg writes them, and a REST catalog over them.

    iceberg.py FOLDER S3

Writes the tables, one of them to the S3 server at the address S3, serves them, and reads each back with pyiceberg's own REST client into FOLDER/expected.json. Prints
the catalog's address when all that is done, and ends when standard input does.
"""

import datetime as dt
import json
import shutil
import sys
import threading
import warnings
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit
from urllib.request import Request, urlopen

import fastavro
import pyarrow as pa
from pyiceberg.catalog import load_catalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    TimeType,
)

CLIENT = {"client_id": "harbour-client", "client_secret": "not-a-real-secret"}
TOKEN = "made-up-token"
PREFIX = "north/sea"


def write(folder: Path, s3: str) -> SqlCatalog:
    store = {"s3.endpoint": s3, "s3.access-key-id": "AKIAMADEUP", "s3.secret-access-key": "made-up"}
    catalog = SqlCatalog(
        "harbour",
        uri=f"sqlite:///{folder}/catalog.db",
        warehouse=f"file://{folder}/warehouse",
        **store | {"s3.region": "us-east-1"},
    )
    catalog.create_namespace("sea")
    catalog.create_namespace(("sea", "deep"))

    kinds = [
        ("id", LongType(), 1),
        ("name", StringType(), "Zürich"),
        ("price", DecimalType(10, 2), Decimal("1.50")),
        ("day", DateType(), dt.date(2024, 2, 29)),
        ("at", TimestamptzType(), dt.datetime(2024, 7, 1, 12, 30, tzinfo=dt.timezone.utc)),
        ("local", TimestampType(), dt.datetime(2024, 7, 1, 12, 30)),
        ("clock", TimeType(), dt.time(1, 2, 3)),
        ("small", IntegerType(), 3),
        ("single", FloatType(), 0.5),
        ("double", DoubleType(), 1e300),
        ("flag", BooleanType(), True),
        ("raw", BinaryType(), b"ok\x00"),
        ("three", FixedType(3), b"abc"),
        ("tags", ListType(101, StringType(), element_required=False), ["a", None]),
        ("depths", MapType(102, StringType(), 103, LongType(), value_required=False), [("k", 1)]),
        (
            "berth",
            StructType(NestedField(104, "a", LongType()), NestedField(105, "b", StringType())),
            {"a": 1, "b": "x"},
        ),
    ]
    schema = Schema(*(NestedField(n, name, kind) for n, (name, kind, _) in enumerate(kinds, 1)))
    table = catalog.create_table("sea.kinds", schema=schema)
    full = {name: value for name, _, value in kinds}
    empty = dict.fromkeys(full) | {"id": 2}
    table.append(pa.Table.from_pylist([full, empty], schema=table.schema().as_arrow()))

    def append(table, rows) -> None:
        table.append(pa.Table.from_pylist(rows, schema=table.schema().as_arrow()))

    first = Schema(
        NestedField(1, "id", LongType()),
        NestedField(2, "name", StringType()),
        NestedField(3, "n", IntegerType()),
        NestedField(4, "gone", StringType()),
    )
    append(catalog.create_table("sea.evolved", schema=first), [{"id": 1, "name": "first", "n": 1, "gone": "g"}])
    with catalog.load_table("sea.evolved").update_schema() as update:
        update.rename_column("name", "title")
        update.update_column("n", LongType())
        update.delete_column("gone")
    with catalog.load_table("sea.evolved").update_schema() as update:
        update.add_column("name", StringType())
        update.move_first("n")
    append(catalog.load_table("sea.evolved"), [{"id": 2, "title": "second", "n": 2**40, "name": "another column"}])

    by_port = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "port"))
    calls = Schema(NestedField(1, "id", LongType()), NestedField(2, "port", StringType()))
    table = catalog.create_table("sea.calls", schema=calls, partition_spec=by_port)
    append(table, [{"id": n, "port": f"{'ab'[n % 2]} 100%"} for n in range(10)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table.delete("id = 3")
    append(catalog.create_table(("sea", "deep", "calls"), schema=calls), [{"id": 1, "port": "down"}])
    catalog.create_table("sea.empty", schema=first)
    urlopen(Request(f"{s3}/afloat", method="PUT")).close()
    append(
        catalog.create_table("sea.afloat", schema=calls, location="s3://afloat/sea/a b"),
        [{"id": n, "port": "offshore"} for n in range(3)],
    )
    return catalog


def add_deletes(folder: Path, catalog: SqlCatalog) -> None:
    """A copy of a table whose manifest lists a delete file: pyiceberg does not write such ones."""
    table = catalog.load_table("sea.empty"), catalog.load_table("sea.kinds")
    target = folder / "deletes" / "metadata"
    target.mkdir(parents=True)

    def changed(source: str, name: str, change) -> str:
        with open(urlsplit(source).path, "rb") as file:
            reader = fastavro.reader(file)
            rows, schema = list(reader), reader.writer_schema
        for row in rows:
            change(row)
        with open(target / name, "wb") as file:
            fastavro.writer(file, schema, rows, codec="deflate")
        return f"file://{target}/{name}"

    snapshot = table[1].current_snapshot()
    manifest = snapshot.manifests(table[1].io)[0].manifest_path
    deletes = changed(manifest, "deletes.avro", lambda row: row["data_file"].update(content=1))
    listed = changed(
        snapshot.manifest_list, "snap.avro", lambda row: row.update(content=1, manifest_path=deletes)
    )
    metadata = json.loads(Path(urlsplit(table[1].metadata_location).path).read_text())
    metadata["snapshots"][-1]["manifest-list"] = listed
    (target / "v1.metadata.json").write_text(json.dumps(metadata))


class Handler(BaseHTTPRequestHandler):
    catalog: SqlCatalog

    def answer(self, status: int, body: dict) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def refuse(self, status: int, kind: str, message: str) -> None:
        self.answer(status, {"error": {"message": message, "type": kind, "code": status}})

    def do_POST(self) -> None:
        form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        wanted = CLIENT | {"grant_type": "client_credentials", "scope": "catalog"}
        if self.path != "/ws/v1/oauth/tokens" or {name: values[0] for name, values in form.items()} != wanted:
            return self.refuse(401, "NotAuthorizedException", "invalid client")
        self.answer(200, {"access_token": TOKEN, "token_type": "bearer", "expires_in": 3600})

    def do_GET(self) -> None:
        if self.headers["Authorization"] != f"Bearer {TOKEN}":
            return self.refuse(401, "NotAuthorizedException", "no token")
        url = urlsplit(self.path)
        if url.path == "/ws/v1/config":
            return self.answer(200, {"defaults": {}, "overrides": {"prefix": PREFIX}})
        parts = [unquote(part) for part in url.path.removeprefix(f"/ws/v1/{PREFIX}/").split("/")]
        if len(parts) != 4 or parts[0] != "namespaces" or parts[2] != "tables":
            return self.refuse(404, "NoSuchEndpointException", url.path)
        name = (*parts[1].split("\x1f"), parts[3])
        try:
            table = self.catalog.load_table(name)
        except NoSuchTableError:
            return self.refuse(404, "NoSuchTableException", f"Table does not exist: {'.'.join(name)}")
        metadata = json.loads(Path(urlsplit(table.metadata_location).path).read_text())
        location = {"metadata-location": table.metadata_location, "metadata": metadata}
        self.answer(200, location | {"config": {"s3.region": "eu-north-1"}})

    def log_message(self, *args) -> None:
        pass


def text(value):
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def main() -> None:
    folder = Path(sys.argv[1])
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    Handler.catalog = catalog = write(folder, sys.argv[2])
    add_deletes(folder, catalog)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}/ws"
    client = load_catalog("over_http", type="rest", uri=address, credential=":".join(CLIENT.values()))
    expected = {}
    for name in ("sea.kinds", "sea.evolved", "sea.calls", "sea.deep.calls", "sea.empty", "sea.afloat"):
        # The server here reads local metadata only.
        source = catalog if name == "sea.afloat" else client
        found = source.load_table(name).scan().to_arrow().sort_by("id")
        rows = [list(row.values()) for row in found.to_pylist()]
        expected[name] = {"columns": found.column_names, "rows": rows, "row_count": len(rows)}
    (folder / "expected.json").write_text(json.dumps(expected, default=text))
    print(address, flush=True)
    sys.stdin.read()


main()
