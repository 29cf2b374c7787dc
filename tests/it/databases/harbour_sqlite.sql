CREATE TABLE customers (id INTEGER PRIMARY KEY, name VARCHAR(40) NOT NULL, since DATE, notes TEXT);
CREATE TABLE orders (id BIGINT PRIMARY KEY, customer_id INTEGER REFERENCES customers, total NUMERIC(10, 2), paid BOOLEAN, placed TIMESTAMP);
CREATE VIEW busy AS SELECT customer_id, count(*) AS n FROM orders GROUP BY customer_id;
INSERT INTO customers VALUES (1, 'Ada', '2020-02-29', NULL), (2, 'Belém', '1999-12-31', 'says "hi"'), (3, '日本', NULL, 'two
lines');
INSERT INTO orders WITH RECURSIVE g(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM g WHERE n < 60)
    SELECT n, n % 3 + 1, n * 1.25, n % 2 = 0, datetime('2024-01-01', n * 90 || ' minutes') FROM g;
CREATE TABLE kinds (
 c_int INT, c_integer INTEGER, c_tiny TINYINT, c_small SMALLINT, c_med MEDIUMINT, c_big BIGINT, c_ubig UNSIGNED BIG INT, c_int2 INT2, c_int8 INT8,
 c_char CHARACTER(20), c_vc VARCHAR(255), c_vc0 VARCHAR, c_vary VARYING CHARACTER(255), c_nchar NCHAR(55), c_native NATIVE CHARACTER(70), c_nvc NVARCHAR(100), c_text TEXT, c_text5 TEXT(5), c_clob CLOB,
 c_blob BLOB, c_real REAL, c_double DOUBLE, c_dp DOUBLE PRECISION, c_float FLOAT, c_float5 FLOAT(5), c_num NUMERIC, c_num2 NUMERIC(10, 2), c_num5 NUMERIC(5), c_dec DECIMAL(10,5), c_bool BOOLEAN, c_bool2 BOOL,
 c_date DATE, c_dt DATETIME, c_ts TIMESTAMP, c_time TIME, c_json JSON, c_uuid UUID, c_none, c_odd "WHAT EVER", c_point POINT, c_lower varchar(7), c_any ANY, c_long LONGVARCHAR, c_string STRING, c_date2 DATE_CHAR, c_big_serial BIGSERIAL, c_gen INT GENERATED ALWAYS AS (c_int * 2) STORED, c_virt INT AS (c_int + 1)
);
CREATE TABLE "Odd Name" ("Sel ect" INT, "ü" TEXT, "quo""te" INT);
CREATE VIEW v AS SELECT c_int, c_vc, c_num2, c_int + 1 AS more, 'x' AS text, NULL AS empty FROM kinds;
CREATE VIRTUAL TABLE notes USING fts5 (title, body);
CREATE TABLE keyed (a TEXT, b INT, PRIMARY KEY (a, b)) WITHOUT ROWID;
CREATE TABLE strictly (a INT, b ANY) STRICT;
CREATE TABLE held (a, b, c);
INSERT INTO held VALUES (1, 2.5, x'00ff41'), (NULL, 'é', x''), (9223372036854775807, -0.0, 'text'), (1e400, -1e400, 1e100);
