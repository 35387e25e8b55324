import xml.etree.ElementTree as ET
from xml.dom import minidom
from xml.sax.saxutils import escape

root = ET.fromstring("<shelf><book id='1'><title>A &amp; B</title></book><book id='2'/></shelf>")
print([book.get("id") for book in root.iter("book")], root.findtext("book/title"), root.find(".//book[@id='2']").tag)
ET.SubElement(root, "book", {"id": "3"}).text = "new"
ET.indent(root)
print(ET.tostring(root, encoding="unicode"))
print(minidom.parseString("<a><b/></a>").toprettyxml(indent=" "), escape("<&>"))
try:
    ET.fromstring("<a>")
except ET.ParseError as error:
    print(error)
