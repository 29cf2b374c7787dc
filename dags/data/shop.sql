-- A small mail-order shop. shop.db beside this file is made from it:
--   rm -f shop.db && python3 -c 'import sqlite3; sqlite3.connect("shop.db").executescript(open("shop.sql").read())'

CREATE TABLE customers (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    region TEXT NOT NULL,
    customer_since DATE NOT NULL
);

CREATE TABLE products (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    category TEXT NOT NULL,
    price REAL NOT NULL
);

CREATE TABLE orders (
    id INTEGER PRIMARY KEY,
    customer_id INTEGER NOT NULL REFERENCES customers (id),
    product_id INTEGER NOT NULL REFERENCES products (id),
    quantity INTEGER NOT NULL,
    ordered_on DATE NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('delivered', 'returned', 'open'))
);

-- The example Dags do not list this table in allowed_tables: an agent can neither see nor read it.
CREATE TABLE staff_salaries (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    monthly_salary REAL NOT NULL
);

INSERT INTO customers (id, name, region, customer_since) VALUES
    (1, 'Aldine Books', 'North', '2023-07-16'),
    (2, 'Bramble & Co', 'South', '2024-02-21'),
    (3, 'Cedar Press', 'East', '2025-05-19'),
    (4, 'Dorne Library', 'West', '2023-08-12'),
    (5, 'Elm Street School', 'Coast', '2023-07-15'),
    (6, 'Fable House', 'Highlands', '2023-11-07'),
    (7, 'Grove Reading Club', 'Islands', '2024-04-17'),
    (8, 'Harbour Papers', 'Capital', '2022-01-24'),
    (9, 'Inkwell Supplies', 'North', '2022-01-14'),
    (10, 'Juniper Arts', 'South', '2023-11-15'),
    (11, 'Kestrel College', 'East', '2023-09-02'),
    (12, 'Larch Studio', 'West', '2024-07-13'),
    (13, 'Meadow Nursery', 'Coast', '2024-06-11'),
    (14, 'Northgate Museum', 'Highlands', '2022-01-17'),
    (15, 'Orchard Cafe', 'Islands', '2021-07-12'),
    (16, 'Pinewood Hostel', 'Capital', '2023-07-04');

INSERT INTO products (id, name, category, price) VALUES
    (1, 'Atlas of Rivers', 'books', 48.00),
    (2, 'Field Guide to Mosses', 'books', 26.50),
    (3, 'Pocket Notebook', 'paper', 6.00),
    (4, 'Watercolour Pad', 'paper', 18.00),
    (5, 'Fountain Pen', 'pens', 64.00),
    (6, 'Ink, Sepia', 'pens', 12.50),
    (7, 'Desk Lamp', 'furniture', 89.00),
    (8, 'Reading Chair', 'furniture', 240.00);

INSERT INTO orders (id, customer_id, product_id, quantity, ordered_on, status) VALUES
    (1, 4, 8, 1, '2026-01-05', 'delivered'),
    (2, 16, 8, 1, '2026-01-07', 'delivered'),
    (3, 7, 7, 10, '2026-01-12', 'delivered'),
    (4, 13, 7, 1, '2026-01-12', 'delivered'),
    (5, 7, 5, 1, '2026-01-13', 'delivered'),
    (6, 1, 7, 1, '2026-01-20', 'delivered'),
    (7, 4, 4, 1, '2026-01-20', 'delivered'),
    (8, 15, 6, 2, '2026-01-23', 'delivered'),
    (9, 10, 2, 3, '2026-01-26', 'delivered'),
    (10, 3, 1, 1, '2026-01-31', 'delivered'),
    (11, 12, 3, 2, '2026-02-04', 'returned'),
    (12, 16, 7, 5, '2026-02-06', 'delivered'),
    (13, 6, 5, 10, '2026-02-08', 'delivered'),
    (14, 8, 4, 5, '2026-02-09', 'delivered'),
    (15, 6, 7, 10, '2026-02-11', 'delivered'),
    (16, 16, 7, 5, '2026-02-16', 'delivered'),
    (17, 2, 1, 1, '2026-02-17', 'delivered'),
    (18, 9, 5, 1, '2026-02-18', 'delivered'),
    (19, 14, 5, 5, '2026-02-20', 'returned'),
    (20, 6, 3, 10, '2026-03-01', 'delivered'),
    (21, 8, 5, 3, '2026-03-01', 'delivered'),
    (22, 7, 2, 1, '2026-03-06', 'delivered'),
    (23, 9, 4, 3, '2026-03-14', 'returned'),
    (24, 2, 5, 1, '2026-03-18', 'delivered'),
    (25, 12, 2, 5, '2026-03-26', 'delivered'),
    (26, 12, 6, 1, '2026-04-12', 'returned'),
    (27, 5, 1, 5, '2026-04-15', 'delivered'),
    (28, 16, 1, 2, '2026-04-16', 'delivered'),
    (29, 1, 8, 5, '2026-04-22', 'delivered'),
    (30, 3, 6, 10, '2026-04-24', 'delivered'),
    (31, 5, 8, 1, '2026-05-02', 'delivered'),
    (32, 12, 3, 10, '2026-05-04', 'delivered'),
    (33, 11, 8, 2, '2026-05-08', 'delivered'),
    (34, 3, 8, 3, '2026-05-11', 'delivered'),
    (35, 1, 7, 5, '2026-05-15', 'delivered'),
    (36, 1, 2, 5, '2026-05-23', 'delivered'),
    (37, 3, 5, 10, '2026-05-27', 'delivered'),
    (38, 14, 7, 10, '2026-06-01', 'delivered'),
    (39, 15, 2, 3, '2026-06-02', 'returned'),
    (40, 1, 8, 2, '2026-06-04', 'delivered'),
    (41, 1, 8, 1, '2026-06-09', 'delivered'),
    (42, 16, 6, 2, '2026-06-13', 'delivered'),
    (43, 10, 3, 1, '2026-06-15', 'delivered'),
    (44, 11, 8, 10, '2026-06-21', 'returned'),
    (45, 8, 5, 2, '2026-06-24', 'delivered'),
    (46, 7, 4, 10, '2026-06-26', 'delivered'),
    (47, 7, 6, 3, '2026-07-16', 'delivered'),
    (48, 7, 8, 1, '2026-07-21', 'delivered'),
    (49, 12, 5, 1, '2026-07-26', 'delivered'),
    (50, 6, 8, 1, '2026-07-27', 'returned'),
    (51, 9, 7, 1, '2026-07-29', 'delivered'),
    (52, 16, 8, 10, '2026-08-01', 'delivered'),
    (53, 11, 5, 1, '2026-08-02', 'delivered'),
    (54, 2, 6, 10, '2026-08-07', 'delivered'),
    (55, 10, 3, 10, '2026-08-18', 'delivered'),
    (56, 13, 1, 3, '2026-08-24', 'delivered'),
    (57, 9, 1, 1, '2026-08-27', 'delivered'),
    (58, 5, 6, 3, '2026-08-30', 'delivered'),
    (59, 3, 4, 10, '2026-09-02', 'delivered'),
    (60, 16, 1, 2, '2026-09-17', 'delivered'),
    (61, 16, 3, 5, '2026-09-24', 'delivered'),
    (62, 8, 3, 2, '2026-09-27', 'delivered'),
    (63, 13, 2, 10, '2026-10-02', 'delivered'),
    (64, 14, 3, 10, '2026-10-07', 'delivered'),
    (65, 15, 1, 3, '2026-10-14', 'delivered'),
    (66, 13, 8, 5, '2026-10-20', 'delivered'),
    (67, 11, 2, 10, '2026-10-21', 'delivered'),
    (68, 5, 7, 1, '2026-11-03', 'delivered'),
    (69, 3, 5, 2, '2026-11-05', 'delivered'),
    (70, 1, 1, 2, '2026-11-08', 'delivered'),
    (71, 15, 7, 2, '2026-11-16', 'open'),
    (72, 9, 1, 3, '2026-11-20', 'open');

INSERT INTO staff_salaries (id, name, monthly_salary) VALUES
    (1, 'Ada Quill', 4100.00),
    (2, 'Bo Marsh', 3650.00);
