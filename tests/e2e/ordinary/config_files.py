import configparser
import io
import tomllib

parser = configparser.ConfigParser()
parser.read_string("[main]\nname = demo\ncount = 3\npath = %(name)s/x\n[other]\nflag = yes\n")
print(parser.sections(), parser["main"]["path"], parser.getint("main", "count"), parser.getboolean("other", "flag"))
buffer = io.StringIO()
parser.write(buffer)
print(buffer.getvalue())
print(tomllib.loads('title = "x"\n[a.b]\nlist = [1, 2]\nwhen = 2024-01-02T03:04:05Z\n'))
