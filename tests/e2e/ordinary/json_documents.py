import json
from datetime import date


class Encoder(json.JSONEncoder):
    def default(self, o):
        return o.isoformat() if isinstance(o, date) else super().default(o)


value = {"list": [1, 2.5, None, True], "text": "ü\u2028", "day": date(2024, 1, 2)}
text = json.dumps(value, cls=Encoder, indent=1, sort_keys=True)
print(text)
print(json.loads(text, object_hook=lambda item: sorted(item)), json.loads("[1e3]", parse_float=str))
with open("value.json", "w") as file:
    json.dump([1, {"a": "b"}], file)
with open("value.json") as file:
    print(json.load(file))
try:
    json.loads('{"a": }')
except json.JSONDecodeError as error:
    print(error)
