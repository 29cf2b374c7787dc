"""Make tests/it/databases/exchange_mssql.json: what a SQL Server sends for some statements, and what pymssql reads from it.

No SQL Server could be had for the tests, so the answers are built here from MS-TDS, one for each type, and pymssql
(FreeTDS) reads them over a socket as a second opinion: where both readers agree, the bytes are right. Needs pymssql,
which the tests themselves do not; run it again after a change:

    python tests/servers/tds_exchange.py tests/it/databases/exchange_mssql.json
"""

import datetime
import json
import socket
import struct
import sys
import threading
import uuid

LATIN1 = bytes.fromhex("0904d00034")  # SQL_Latin1_General_CP1_CI_AS
ERROR, INFO, LOGIN_ACK, COLUMNS, ROW, DONE, ENV_CHANGE = 0xAA, 0xAB, 0xAD, 0x81, 0xD1, 0xFD, 0xE3


def utf16(text):
    return text.encode("utf-16-le")


def short_text(text):
    return bytes([len(text)]) + utf16(text)


def done(count=None, error=False):
    status = (0x10 if count is not None else 0) | (0x02 if error else 0)
    return struct.pack("<BHHQ", DONE, status, 0xC1, count or 0)


def message(token, number, state, severity, text):
    body = struct.pack("<IBB", number, state, severity) + struct.pack("<H", len(text)) + utf16(text)
    body += short_text("HARBOUR") + short_text("") + struct.pack("<I", 1)
    return struct.pack("<BH", token, len(body)) + body


def error(number, severity, text):
    return message(ERROR, number, 1, severity, text) + done(error=True)


def columns(described):
    out = struct.pack("<BH", COLUMNS, len(described))
    for name, type_info in described:
        out += struct.pack("<IH", 0, 0x09) + type_info + short_text(name)
    return out


def result(described, rows):
    return columns(described) + b"".join(bytes([ROW]) + b"".join(row) for row in rows) + done(len(rows))


def sized(data):
    return bytes([len(data)]) + data


def sized16(data):
    return struct.pack("<H", len(data)) + data


def chunked(data):
    return struct.pack("<Q", len(data)) + struct.pack("<I", len(data)) + data + struct.pack("<I", 0)


def decimal(text, scale):
    negative = text.startswith("-")
    whole, _, fraction = text.lstrip("-").partition(".")
    number = int(whole + fraction.ljust(scale, "0"))
    return sized(bytes([0 if negative else 1]) + number.to_bytes(16, "little"))


def money(text, size):
    number = round(float(text) * 10000) if len(text) < 16 else int(text.replace(".", ""))
    if size == 4:
        return sized(struct.pack("<i", number))
    return sized(struct.pack("<i", number >> 32) + struct.pack("<I", number & 0xFFFFFFFF))


def days_of(date):
    return date.toordinal() - 1


def date(text):
    return days_of(datetime.date.fromisoformat(text)).to_bytes(3, "little")


def clock(text, scale):
    size = 3 if scale <= 2 else 4 if scale <= 4 else 5
    hours, minutes, seconds = text.split(":")
    seconds, _, fraction = seconds.partition(".")
    number = (int(hours) * 3600 + int(minutes) * 60 + int(seconds)) * 10**scale + int(fraction.ljust(scale, "0") or "0")
    return number.to_bytes(size, "little")


def old_datetime(text):
    day, time = text.split(" ")
    hours, minutes, seconds = time.split(":")
    ticks = (int(hours) * 3600 + int(minutes) * 60) * 300 + round(float(seconds) * 300)
    days = datetime.date.fromisoformat(day).toordinal() - datetime.date(1900, 1, 1).toordinal()
    return sized(struct.pack("<iI", days, ticks))


def small_datetime(text):
    day, time = text.split(" ")
    hours, minutes = time.split(":")
    days = datetime.date.fromisoformat(day).toordinal() - datetime.date(1900, 1, 1).toordinal()
    return sized(struct.pack("<HH", days, int(hours) * 60 + int(minutes)))


def datetime2(text, scale):
    day, time = text.split(" ")
    return sized(clock(time, scale) + date(day))


def datetimeoffset(utc, minutes, scale):
    day, time = utc.split(" ")
    return sized(clock(time, scale) + date(day) + struct.pack("<h", minutes))


NULL8, NULL16, NULL_CHUNKED = b"\x00", b"\xff\xff", b"\xff" * 8


def varchar(size=0x1F40):
    return b"\xa7" + struct.pack("<H", size) + LATIN1


def nvarchar(size=0x1F40):
    return b"\xe7" + struct.pack("<H", size) + LATIN1


# Name, TYPE_INFO, one value a row.
KINDS = [
    ("tinyint", b"\x26\x01", [sized(b"\xff"), NULL8]),
    ("smallint", b"\x26\x02", [sized(struct.pack("<h", -32768)), NULL8]),
    ("int", b"\x26\x04", [sized(struct.pack("<i", -2147483648)), NULL8]),
    ("bigint", b"\x26\x08", [sized(struct.pack("<q", 9223372036854775807)), sized(struct.pack("<q", -(2**63))), NULL8]),
    ("plain_int", b"\x38", [struct.pack("<i", 42)]),
    ("bit", b"\x68\x01", [sized(b"\x01"), sized(b"\x00"), NULL8]),
    ("real", b"\x6d\x04", [sized(struct.pack("<f", 1.1)), NULL8]),
    ("float", b"\x6d\x08", [sized(struct.pack("<d", 0.1)), sized(struct.pack("<d", 1e300)), sized(struct.pack("<d", -0.0)), NULL8]),
    ("decimal", b"\x6a\x11\x26\x0a", [decimal("1.50", 10), decimal("-1234567890123456789012345678.0123456789", 10), decimal("0.0000001", 10), decimal("0", 10), NULL8]),
    ("numeric", b"\x6c\x11\x12\x00", [decimal("18", 0), decimal("-5", 0), NULL8]),
    ("money", b"\x6e\x08", [money("1.5", 8), money("-0.0001", 8), money("1234.5678", 8), money("0", 8), NULL8]),
    ("smallmoney", b"\x6e\x04", [money("-214748.3648", 4), NULL8]),
    ("datetime", b"\x6f\x08", [old_datetime("2020-01-01 10:11:12.007"), old_datetime("1753-01-01 00:00:00"), old_datetime("9999-12-31 23:59:59.997"), old_datetime("2020-01-01 10:11:12.003"), NULL8]),
    ("smalldatetime", b"\x6f\x04", [small_datetime("2020-02-29 23:59"), NULL8]),
    ("date", b"\x28", [sized(date("2020-02-29")), sized(date("0001-01-01")), sized(date("9999-12-31")), NULL8]),
    ("time7", b"\x29\x07", [sized(clock("12:00:00.5", 7)), sized(clock("23:59:59.999999", 7)), NULL8]),
    ("time0", b"\x29\x00", [sized(clock("00:00:01", 0)), NULL8]),
    ("datetime2", b"\x2a\x07", [datetime2("2020-01-01 10:11:12.5", 7), datetime2("0001-01-01 00:00:00", 7), NULL8]),
    ("datetime2_0", b"\x2a\x00", [datetime2("2020-01-01 10:11:12", 0), NULL8]),
    ("datetimeoffset", b"\x2b\x07", [datetimeoffset("2020-01-01 18:30:00.123", 330, 7), datetimeoffset("2020-01-01 03:00:00", -210, 7), datetimeoffset("2020-06-01 00:00:00", 0, 7), NULL8]),
    ("uniqueidentifier", b"\x24\x10", [sized(uuid.UUID("6f1e5c2a-4b7e-4b6e-9a51-0a4d3ee6a1b2").bytes_le), NULL8]),
    ("varchar", varchar(), [sized16("Belém".encode("cp1252")), sized16(b""), NULL16]),
    ("char", b"\xaf\x05\x00" + LATIN1, [sized16(b"ab   "), NULL16]),
    ("nvarchar", nvarchar(), [sized16(utf16("日本 \"q\" 😀")), NULL16]),
    ("nchar", b"\xef\x0a\x00" + LATIN1, [sized16(utf16("ü    ")), NULL16]),
    ("varchar_max", varchar(0xFFFF), [chunked("é".encode("cp1252") * 3), NULL_CHUNKED]),
    ("nvarchar_max", nvarchar(0xFFFF), [chunked(utf16("long é")), NULL_CHUNKED]),
    ("varbinary", b"\xa5\x40\x1f", [sized16(bytes.fromhex("00ff41")), sized16(b""), NULL16]),
    ("binary", b"\xad\x04\x00", [sized16(b"ab\x00\x00"), NULL16]),
    ("varbinary_max", b"\xa5\xff\xff", [chunked(b"bytes"), NULL_CHUNKED]),
    ("xml", b"\xf1\x00", [chunked(utf16("<a b=\"1\">é</a>")), NULL_CHUNKED]),
]


def text_cell(text):
    return NULL16 if text is None else sized16(utf16(text))


COLLATION = "SQL_Latin1_General_CP1_CI_AS"

# As in sys.columns: type, type below it, length, precision, scale, collation.
DECLARED = [
    ("int", "int", 4, 10, 0, None),
    ("bigint", "bigint", 8, 19, 0, None),
    ("tinyint", "tinyint", 1, 3, 0, None),
    ("bit", "bit", 1, 1, 0, None),
    ("decimal", "decimal", 9, 18, 0, None),
    ("numeric", "numeric", 17, 38, 10, None),
    ("money", "money", 8, 19, 4, None),
    ("float", "float", 8, 53, 0, None),
    ("real", "real", 4, 24, 0, None),
    ("varchar", "varchar", 20, 0, 0, COLLATION),
    ("varchar", "varchar", -1, 0, 0, COLLATION),
    ("nvarchar", "nvarchar", 40, 0, 0, COLLATION),
    ("nvarchar", "nvarchar", -1, 0, 0, COLLATION),
    ("char", "char", 5, 0, 0, COLLATION),
    ("nchar", "nchar", 10, 0, 0, COLLATION),
    ("text", "text", 16, 0, 0, COLLATION),
    ("ntext", "ntext", 16, 0, 0, COLLATION),
    ("sysname", "nvarchar", 256, 0, 0, COLLATION),
    ("phone", "varchar", 24, 0, 0, COLLATION),
    ("binary", "binary", 4, 0, 0, None),
    ("varbinary", "varbinary", -1, 0, 0, None),
    ("image", "image", 16, 0, 0, None),
    ("date", "date", 3, 10, 0, None),
    ("time", "time", 5, 16, 7, None),
    ("datetime", "datetime", 8, 23, 3, None),
    ("smalldatetime", "smalldatetime", 4, 16, 0, None),
    ("datetime2", "datetime2", 8, 27, 7, None),
    ("datetimeoffset", "datetimeoffset", 10, 34, 7, None),
    ("uniqueidentifier", "uniqueidentifier", 16, 0, 0, None),
    ("xml", "xml", -1, 0, 0, None),
    ("sql_variant", "sql_variant", 8016, 0, 0, None),
    ("timestamp", "timestamp", 8, 0, 0, None),
    ("geography", None, -1, 0, 0, None),
    ("hierarchyid", None, 892, 0, 0, None),
]


def reflection():
    """Answers to the questions for tables and columns, with the types that SQLAlchemy prints."""
    from sqlalchemy.dialects.mssql.base import MSDialect

    dialect = MSDialect()
    rows, expected = [], []
    for number, (name, base, length, precision, scale, collation) in enumerate(DECLARED):
        parsed = dialect._parse_column_info(
            name="c", type_=name, base_type=base, nullable=True, maxlen=length, numericprec=precision, numericscale=scale,
            default=None, collation=collation, definition=None, is_persisted=None, is_identity=None, identity_start=None,
            identity_increment=None, comment=None,
        )
        numbers = [sized(struct.pack("<i", value)) for value in (length, precision, scale)]
        rows.append([text_cell(f"c{number}"), text_cell(name), text_cell(base), *numbers, text_cell(collation)])
        expected.append({"name": f"c{number}", "type": str(parsed["type"])})
    described = [("", nvarchar())] * 3 + [("", b"\x26\x04")] * 3 + [("", nvarchar())]
    tables = result([("TABLE_NAME", nvarchar())], [[text_cell("customers")], [text_cell("orders")]])
    return {
        "tables": tables.hex(),
        "columns": result(described, rows).hex(),
        "no_columns": result(described, []).hex(),
        "expected": expected,
    }


def exchange():
    """Statements and their answers."""
    answers = {f"SELECT c_{name} FROM kinds": result([(f"c_{name}", info)], [[value] for value in values]) for name, info, values in KINDS}
    answers["SELECT id FROM orders"] = result([("id", b"\x38")], [[struct.pack("<i", n)] for n in range(1, 61)])
    answers["SELECT a, a, b + 1 FROM pair"] = result(
        [("a", b"\x38"), ("a", b"\x38"), ("", b"\x38")], [[struct.pack("<i", n) for n in (1, 2, 3)]]
    )
    answers["SELECT * FROM nobody"] = result([("id", b"\x26\x04"), ("name", nvarchar())], [])
    answers["SELECT * FROM nope"] = error(208, 16, "Invalid object name 'nope'.")
    answers["SELECT revenue FROM orders"] = error(207, 16, "Invalid column name 'revenue'.")
    answers["SELECT 1/0 FROM orders"] = columns([("", b"\x38")]) + error(8134, 16, "Divide by zero error encountered.")
    answers["SELECT warned FROM orders"] = (
        columns([("warned", b"\x38")])
        + bytes([ROW])
        + struct.pack("<i", 7)
        + message(INFO, 8153, 1, 0, "Warning: Null value is eliminated by an aggregate or other SET operation.")
        + done(1)
    )
    return answers


def packets(kind, body):
    """The body in packets of 4 KiB at most."""
    parts = [body[at : at + 4088] for at in range(0, len(body), 4088)] or [b""]
    out = b""
    for number, part in enumerate(parts):
        last = 1 if number == len(parts) - 1 else 0
        out += struct.pack(">BBHHBB", kind, last, len(part) + 8, 0, number + 1 & 255, 0) + part
    return out


def read_exactly(connection, size):
    data = b""
    while len(data) < size:
        more = connection.recv(size - len(data))
        if not more:
            raise EOFError
        data += more
    return data


def read_message(connection):
    body = b""
    while True:
        kind, status, length = struct.unpack(">BBH", read_exactly(connection, 8)[:4])
        body += read_exactly(connection, length - 8)
        if status & 1:
            return kind, body


def prelogin():
    options = [(0, struct.pack(">IH", 0x10000FA0, 0)), (1, b"\x02"), (2, b"\x00"), (3, b""), (4, b"\x00")]
    offset = 5 * len(options) + 1
    table, data = b"", b""
    for token, value in options:
        table += struct.pack(">BHH", token, offset + len(data), len(value))
        data += value
    return table + b"\xff" + data


def logged_in():
    program = "Microsoft SQL Server"
    body = struct.pack(">BI", 1, 0x74000004) + short_text(program) + struct.pack(">I", 0x10000FA0)
    change = b"\x01" + short_text("ships") + short_text("master")
    packet_size = b"\x04" + short_text("4096") + short_text("4096")
    return (
        b"".join(struct.pack("<BH", ENV_CHANGE, len(part)) + part for part in (change, packet_size))
        + struct.pack("<BH", LOGIN_ACK, len(body))
        + body
        + done()
    )


def serve(listener, answers):
    while True:
        connection, _ = listener.accept()
        try:
            while True:
                kind, body = read_message(connection)
                if kind == 0x12:
                    connection.sendall(packets(4, prelogin()))
                elif kind == 0x10:
                    connection.sendall(packets(4, logged_in()))
                elif kind == 0x01:
                    headers = struct.unpack("<I", body[:4])[0]
                    sql = body[headers if headers < len(body) else 0 :].decode("utf-16-le")
                    connection.sendall(packets(4, answers.get(sql, done())))
                else:
                    connection.sendall(packets(4, done()))
        except (EOFError, OSError):
            connection.close()


def in_json(value):
    """As the toolset writes a value."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, bytes):
        return value.decode("utf-8", errors="replace")
    return str(value)


def main():
    import pymssql

    answers = exchange()
    listener = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=serve, args=(listener, answers), daemon=True).start()
    recorded = []
    for sql, answer in answers.items():
        connection = pymssql.connect(
            server="127.0.0.1", port=str(listener.getsockname()[1]), user="updraft", password="made-up", database="ships", encryption="off"
        )
        cursor = connection.cursor()
        entry = {"sql": sql, "answer": answer.hex()}
        try:
            cursor.execute(sql)
            entry["columns"] = [column[0] for column in cursor.description]
            entry["rows"] = [[in_json(cell) for cell in row] for row in cursor.fetchall()]
        except pymssql.Error as failure:
            entry["error"] = str(failure)
        recorded.append(entry)
        connection.close()
    fixed = {"prelogin": prelogin().hex(), "login": logged_in().hex(), "done": done().hex()}
    with open(sys.argv[1], "w") as out:
        json.dump({"fixed": fixed, "reflection": reflection(), "answers": recorded}, out, indent=1, ensure_ascii=False)
        out.write("\n")


main()
