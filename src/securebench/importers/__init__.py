"""Other people's formats → packs. One file per format; `registry` names them, `importing` tells the story.

A format sees a `Source` (files, wherever they lie) and gives `PackRow`s, one at a time, or says of a row why it cannot
have one. `PackWriter` checks each row like any row of a pack and writes bytes that depend on nothing but the source."""
