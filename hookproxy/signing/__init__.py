"""Ed25519 keys and the signatures that they make, in OpenSSH's forms: `ssh-keygen` makes and checks the same.

`keys` reads keys, and `ssh_signature` signs and verifies; both import `cryptography` only when they compute. The room
promises that what it accepts was signed with one of the keys that it was given, for the purpose that it was given. What
is signed, and who chooses the keys, is the callers' subject.
"""
