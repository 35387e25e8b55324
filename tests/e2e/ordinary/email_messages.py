import email
from email.message import EmailMessage
from email.policy import default
from email.utils import parseaddr

message = EmailMessage()
message["From"], message["To"], message["Subject"] = "a@example.org", "Bé <b@example.org>", "Grüße"
message.set_content("Hello,\nthis is text.\n")
message.add_attachment(b"\x00\x01", maintype="application", subtype="octet-stream", filename="x.bin")
message.set_boundary("====")
read = email.message_from_bytes(message.as_bytes(), policy=default)
print(read["subject"], parseaddr(str(read["to"])), [part.get_content_type() for part in read.walk()])
print(read.get_body().get_content(), next(read.iter_attachments()).get_content())
