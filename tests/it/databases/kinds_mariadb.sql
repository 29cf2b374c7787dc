CREATE TABLE kinds (
 c_tiny tinyint, c_tiny1 tinyint(1), c_bool boolean, c_utiny tinyint unsigned, c_small smallint, c_med mediumint, c_int int, c_int11 int(11), c_uint int unsigned, c_zf int(6) unsigned zerofill, c_big bigint, c_ubig bigint unsigned,
 c_dec decimal, c_dec2 decimal(10,2), c_udec decimal(8,3) unsigned, c_num numeric(5), c_float float, c_float2 float(7,3), c_double double, c_double2 double(9,2), c_real real, c_bit bit, c_bit8 bit(8),
 c_date date, c_time time, c_time3 time(3), c_dt datetime, c_dt6 datetime(6), c_ts timestamp NULL, c_ts3 timestamp(3) NULL, c_year year,
 c_char char, c_char5 char(5), c_vc varchar(20), c_vcb varchar(20) character set latin1 collate latin1_bin, c_bin binary(4), c_vbin varbinary(9), c_tt tinytext, c_text text, c_mt mediumtext, c_lt longtext, c_tb tinyblob, c_blob blob, c_mb mediumblob, c_lb longblob,
 c_enum enum('a','bé','it''s'), c_set set('x','y'), c_json json, c_geom geometry, c_point point, c_poly polygon, c_gen int as (c_int * 2) stored, c_inet6 inet6, c_uuid uuid, c_nchar nchar(3), c_nvc nvarchar(7), c_serial serial, c_multip multipoint, c_text5 text(5), c_blob5 blob(5), c_col varchar(9) collate utf8mb4_bin,
 c_def varchar(19) NOT NULL DEFAULT 'x COLLATE y' COMMENT 'COLLATE `z`', c_enum2 enum('a)b','`c`,','d\\e') character set latin1, c_check int CHECK (c_check > 0), c_inv int invisible, c_inet4 inet4,
 KEY by_int (c_int), UNIQUE KEY `by big` (c_big), CONSTRAINT positive CHECK (c_tiny > 0)
) COMMENT 'with ` in it';
CREATE VIEW v AS SELECT 1 AS one, now() AS n, NULL AS nothing, c_dec2, sum(c_dec2) s, c_vcb, c_enum FROM kinds;
CREATE TABLE `Odd Name` (`Sel ect` int, `ü` text, `t``ick` int, `per%cent` int);
CREATE TABLE big (id int primary key, name varchar(20));
INSERT INTO big SELECT seq, concat('row ', seq) FROM seq_1_to_2000;
CREATE SEQUENCE sq;
CREATE TABLE parted (id int, d date) PARTITION BY HASH (id) PARTITIONS 3;
CREATE TABLE versioned (id int) WITH SYSTEM VERSIONING;
CREATE TABLE held (y year, b1 bit, b8 bit(12), e enum('a','bé'), s set('x','y'), j json, bin binary(4), vbin varbinary(9), bl blob, t text, l varchar(9) character set latin1, u uuid, i6 inet6, g point, z int(6) zerofill, ts timestamp(3) NULL, ub bigint unsigned, f float, d double, dec20 decimal(30,10));
INSERT INTO held VALUES (2155, 1, 2730, 'bé', 'x,y', '{"b": 1.10, "a": [1, null, true, "é"]}', 'ab', x'00ff41', 'bytes', 'text', 'é', '6f1e5c2a-4b7e-4b6e-9a51-0a4d3ee6a1b2', '2001:db8::1', point(1, 2), 42, '2020-06-01 10:11:12.5', 18446744073709551615, 1.1, 0.1, 12345678901234567890.0123456789),
 (0, 0, 0, NULL, '', NULL, '', '', '', '', '', NULL, '::', NULL, 0, NULL, 0, -1e30, 1e300, -0.5);
