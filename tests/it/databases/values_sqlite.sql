SELECT 1, -9223372036854775808, 9223372036854775807, 9223372036854775807 + 1, 1.5, 0.1 + 0.2, 1e16, 1e15, 1e100, 1e-5, -0.0, 123456789012345680.0, 1e400, -1e400, 1e400 - 1e400
SELECT 'a', 'é"\', '', char(9, 10, 0, 97), '日本', x'00ff41', x'', zeroblob(3), CAST('é' AS BLOB), CAST(x'c3a9' AS TEXT)
SELECT NULL, true, false, 1 = 1, 'a' LIKE 'A', date('2020-02-29'), datetime('2020-01-01 10:11:12'), json('{"a":1.0}'), json_array(1, null), typeof(1.0)
SELECT * FROM held
SELECT 1 AS a, 2 AS a, 3 AS "b c", 4 AS "", (SELECT 5), count(*), max(a), total(b), avg(b), group_concat(a) FROM held
SELECT * FROM "Odd Name"
SELECT CAST(x'ff' AS TEXT)
SELECT abs(-9223372036854775808)
SELECT * FROM notes WHERE notes MATCH 'x'
SELECT nope()
SELECT json('{')
SELECT a, FROM held
SELECT 'a' || b FROM held LIMIT 1 OFFSET 1
VALUES (1, 'x'), (2, 'y')
SELECT 1 FROM held WHERE a = ?
SELECT "nope" FROM held
SELECT [a], `b`, "c" FROM held
SELECT like('a', 'b', 'c', 'd')
SELECT * FROM held h1, held h2, held h3
EXPLAIN QUERY PLAN SELECT 1
