import string
import textwrap

print(f"{3.14159:>10.2f}|{255:#x}|{1234567:,}|{'mid':^9}|{True!r:>6}|{-3:+d}|{0.5:%}")
print("{0[key]} {1.real} {name!s:>5}".format({"key": 1}, 3 + 4j, name="n"))
print(string.Template("$who owes $$${amount}").safe_substitute(who="tim"))
text = "The quick brown fox jumps over the lazy dog, again and again."
print(textwrap.fill(text, 24, initial_indent="* ", subsequent_indent="  "), textwrap.shorten(text, 20))
print(textwrap.dedent("    a\n      b\n"), string.ascii_letters[:5], "%05.1f|%-5s|%x" % (2.5, "ab", 255))  # noqa: UP031
