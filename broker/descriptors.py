"""Open files and connections: as many as the system lets this process have."""

import logging
import resource

logger = logging.getLogger(__name__)


def raise_descriptor_limit() -> None:
    """Ask for all that the hard limit allows, as Java does: the soft one is meant for shells."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == hard:
        return
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (OSError, ValueError) as error:
        logger.info("The limit of %d open files stays: %s", soft, error)
