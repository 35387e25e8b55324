import re

text = "2024-01-02 alice@example.org, 2023-12-31 bob@test.net"
pattern = re.compile(r"(?P<date>\d{4}-\d\d-\d\d)\s+(?P<user>\w+)@(?P<host>[\w.]+)", re.VERBOSE)
for match in pattern.finditer(text):
    print(match.groupdict(), match.span("user"))
print(re.sub(r"(\w+)@", lambda found: found[1].upper() + " at ", text), re.split(r"[,\s]+", text))
print(re.fullmatch(r"(a|b)*?c", "ababc"), re.findall(r"(?<=e)\w(?!l)", "elephant eel"), re.escape("a.b*c"))
try:
    re.compile("(")
except re.error as error:
    print(error)
