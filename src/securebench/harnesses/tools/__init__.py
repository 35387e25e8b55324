"""Agent programs, described by data files, fetched by the ordinary npm client, kept by content.

`description` reads what a tool is, `npm` asks its registry, `tarball` unpacks what came, `cache` keeps it.
`harnesses.overlays` puts them together."""
