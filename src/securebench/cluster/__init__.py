"""Attempts carried out by other machines: the head keeps plan, keys, lanes and records, nodes produce and verify.

A node is a process of ours behind a byte stream. It is told what one attempt needs and nothing else: who only produces
never receives a private byte. What it answers is signed with a key that the run has enrolled."""
