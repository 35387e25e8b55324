import csv
import io
import statistics

with open("data/table.csv", newline="") as file:
    rows = list(csv.DictReader(file))
print(rows[0], statistics.mean(float(row["score"]) for row in rows))
out = io.StringIO()
writer = csv.writer(out, dialect="excel-tab", quoting=csv.QUOTE_NONNUMERIC)
writer.writerows([["a\tb", 1], ['say "x"', 2.5]])
print(repr(out.getvalue()), csv.Sniffer().sniff("a;b;c\n1;2;3\n").delimiter)
