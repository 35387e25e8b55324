import sqlite3

with sqlite3.connect("people.db") as database:
    database.execute("CREATE TABLE people (name TEXT PRIMARY KEY, born INTEGER)")
    database.executemany("INSERT INTO people VALUES (?, ?)", [("ada", 1815), ("alan", 1912), ("grace", 1906)])
    database.create_function("century", 1, lambda year: year // 100 + 1)
    print(database.execute("SELECT name, century(born) FROM people ORDER BY born DESC").fetchall())
    try:
        database.execute("INSERT INTO people VALUES ('ada', 1)")
    except sqlite3.IntegrityError as error:
        print(type(error).__name__)
database.close()
memory = sqlite3.connect(":memory:")
memory.row_factory = sqlite3.Row
print(dict(memory.execute("SELECT 1 AS one, upper('x') AS two").fetchone()))
memory.close()
