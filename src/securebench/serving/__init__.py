"""Verification over HTTP, for training loops on other machines: a `Grader` behind a token, with bounds on everything.

Whoever has the token can have any number of candidates judged, and learns of each what a record's coarse fields say:
no hidden value, no output of a test, no message of a checker, unless the operator shows details."""
