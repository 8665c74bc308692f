"""Whether two processes of one account judge by the same configuration: a digest of what each has read.

It says nothing of the scripts that hooks start: these are what they are when they run. (`policy_digest` knows more, and
takes longer.)
"""

from __future__ import annotations

from hashlib import sha256

from .load import Loaded


def digest_of(loaded: Loaded) -> str:
    """The digest of a configuration. Empty where the administrator has a policy: that is the same as no other.

    For what it requires is never judged elsewhere alone, where the account could pretend anything.
    """
    if loaded.managed is not None:
        return ""
    settings = loaded.settings
    words = [str(settings.fail_closed), loaded.project, loaded.path, settings.audit_file, *loaded.by_option.values()]
    for path, snapshot in sorted(loaded.files_read.items()):
        words += (path, sha256(snapshot.data).hexdigest())
    total = sha256()
    for word in words:
        total.update(sha256(word.encode("utf-8", "surrogateescape")).digest())
    return total.hexdigest()
