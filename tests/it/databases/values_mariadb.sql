SELECT true, 1, -9223372036854775808, 9223372036854775807, 18446744073709551615, 1.50, 0.0000001, CAST(0 AS DECIMAL(20,8)), 123456789012345678901234567890.123456789, 0.000001, -1.0, 1/3
SELECT 1.1e0, CAST(1.1 AS FLOAT), 1e100, 1e16, 123456789012345680e0, 1e-5, -0e0, pi(), 0.1e0, 1e15, 1.7976931348623157e308
SELECT 'a', 'é"\\', _latin1 x'e9', 'tab\tnl\n', _binary 'ab', x'00ff41', b'101', 0x4142, '', char(65), concat('a', 1), n'ü', '日本'
SELECT DATE '2020-02-29', DATE '0001-01-01', TIME '12:00:00', TIME '-01:00:00', TIME '838:59:59', CAST('12:00:00.5' AS TIME(6)), CAST('-00:00:00.000001' AS TIME(6)), TIMESTAMP '2020-01-01 10:11:12', CAST('2020-01-01 10:11:12.5' AS DATETIME(6)), CAST('2020-01-01 10:11:12.5' AS DATETIME(3)), CAST('2020-01-01' AS DATETIME)
SELECT JSON_OBJECT('a', 1.0, 'b', JSON_ARRAY(1, null, true, 'é')), JSON_ARRAY(), JSON_QUOTE('s'), JSON_VALUE('{"a": 1}', '$.a')
SELECT CAST('6f1e5c2a-4b7e-4b6e-9a51-0a4d3ee6a1b2' AS UUID), CAST('::1' AS INET6), POINT(1, 2), ST_AsText(POINT(1, 2)), ST_GeomFromText('LINESTRING(0 0,1 1)')
SELECT * FROM held
SELECT y + 0, b8 + 0, e, s + 0, hex(bin), ub + 0, avg(f) OVER (), sum(d) OVER (), max(ts) OVER (), min(u) OVER () FROM held
SELECT null, null + 1, cast(null as char), if(1, 'a', null), 1 AS a, 2 AS a, 3 AS `b c`, 4 AS ``, (SELECT 1), 1 = 1, 'a' LIKE 'b', @@version_comment IS NULL, 1 <=> NULL, count(*)
SELECT group_concat(id ORDER BY id), sum(id), avg(id), min(name), std(id), bit_or(id), variance(id) FROM big WHERE id < 10
SELECT user() = 'x', database() IS NULL, greatest(1, 2.5), coalesce(NULL, 1, 'x'), nullif(1, 1), ifnull(NULL, 1.50), round(2.345, 2), truncate(1.999, 1), sqrt(2), 5 DIV 2, 5 % 3, mod(5.5, 2), format(12345.678, 2), hex('a'), md5('a'), sha1('a'), unhex('ff'), compress('a') IS NULL, uuid() = ''
