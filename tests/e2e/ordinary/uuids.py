import uuid

print(uuid.uuid5(uuid.NAMESPACE_DNS, "example.org"), uuid.uuid3(uuid.NAMESPACE_URL, "x"))
print(uuid.UUID("12345678123456781234567812345678").fields, uuid.uuid4().version, len(str(uuid.uuid4())))
