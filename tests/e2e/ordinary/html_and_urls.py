import html
from html.parser import HTMLParser
from urllib.parse import parse_qs, quote, urlencode, urljoin, urlsplit


class Links(HTMLParser):
    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attrs):
        if tag == "a":
            self.found.append(dict(attrs).get("href"))


links = Links()
links.feed('<p><a href="/x?a=1&amp;b=2">one</a><a href="#y">two</a></p>')
print(links.found, html.escape("<a & 'b'>"), html.unescape("&eacute;&#8364;"))
print(urlsplit("https://u@example.org:8080/p;x?q=1#f"), urljoin("http://a/b/c", "../d"))
print(quote("a b/ü"), urlencode({"x": [1, 2], "y": "ä"}, doseq=True), parse_qs("x=1&x=2"))
