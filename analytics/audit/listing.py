"""What lies in a folder, and what the audit says of a name that is no file's.

Readers pass over what they cannot read; the audit tells of it.
"""

import os

from analytics.audit.faults import Kind
from analytics.logs import places
from analytics.logs.places import Entry, Nature


def listed(folder: str) -> list[Entry]:
    """In the order of their names; nothing where the folder has gone meanwhile."""
    try:
        return sorted(places.list_folder(folder), key=lambda entry: entry.name)
    except FileNotFoundError:
        return []


def not_a_file(entry: Entry) -> tuple[Kind, str]:
    """What is wrong where a file should be."""
    if entry.nature is Nature.LEADS_NOWHERE:
        return Kind.MISSING_FILE, f"it is a link to {_target_of(entry)}, which is not there"
    is_folder = entry.nature is Nature.FOLDER
    return Kind.FOREIGN_FILE, "is a folder" if is_folder else "is no regular file"


def _target_of(link: Entry) -> str:
    try:
        return os.readlink(link.location)
    except OSError:
        return "nothing"
