import mimetypes

for name in ("a.html", "b.png", "c.tar.gz", "d.json", "e"):
    print(name, mimetypes.guess_type(name))
print(mimetypes.guess_extension("text/css"))
