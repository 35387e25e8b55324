import struct

packed = struct.pack("<BhIq4sd", 1, -2, 3, -4, b"abcd", 0.5)
print(packed.hex(), struct.calcsize("<BhIq4sd"), struct.unpack("<BhIq4sd", packed))
print(list(struct.iter_unpack(">HH", bytes(range(8)))), int.from_bytes(b"\x01\x02", "big"), (258).to_bytes(3, "little"))
buffer = bytearray(8)
struct.pack_into("!I", buffer, 2, 0xDEADBEEF)
print(buffer.hex(" "))
