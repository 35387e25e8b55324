import base64
import binascii
import quopri

data = bytes(range(40))
for encode in (base64.b64encode, base64.b32encode, base64.b16encode, base64.a85encode, base64.b85encode):
    print(encode.__name__, encode(data).decode())
print(binascii.crc32(data), binascii.hexlify(data[:4], "-").decode())
print(quopri.encodestring("é=ü".encode()).decode())
