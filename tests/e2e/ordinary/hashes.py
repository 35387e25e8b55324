import hashlib
import hmac
import secrets
import zlib

for name in ("md5", "sha1", "sha256", "sha3_512", "blake2b"):
    print(name, hashlib.new(name, b"data").hexdigest()[:32])
print(hmac.new(b"key", b"message", "sha256").hexdigest(), hmac.compare_digest("a", "a"))
print(hashlib.pbkdf2_hmac("sha256", b"pw", b"salt", 1000).hex(), zlib.adler32(b"abc"))
print(len(secrets.token_hex(16)), secrets.choice([5]))
with open("data/notes.txt", "rb") as file:
    print(hashlib.file_digest(file, "sha256").hexdigest())
