import codecs
import unicodedata

text = "Ångström ﬁ ½ ß"
for form in ("NFC", "NFD", "NFKC", "NFKD"):
    print(form, ascii(unicodedata.normalize(form, text)))
print([unicodedata.name(char, "?") for char in "é✓"], text.casefold(), unicodedata.numeric("½"))
print("straße".upper(), "ǆ".title(), "١٢".isdecimal(), int("١٢"), text.encode("latin-1", "replace"))
print(codecs.encode("hello", "rot13"), "日本".encode("shift-jis").hex(), codecs.lookup("utf8").name)
