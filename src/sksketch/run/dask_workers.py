"""Whether anybody is left to do the work: a cluster that has lost all workers is given up."""

from __future__ import annotations

import time
import warnings
from typing import Any

# Seconds that all workers may be gone, unless dask's setting says otherwise.
NO_WORKERS = 300.0
SETTING = "distributed.scheduler.no-workers-timeout"


class Workers:
    """Whether a cluster has any left; one that has lost all would be waited for without end.

    Parameters
    ----------
    client : distributed.Client
    patience : float
        Seconds without a worker.
    """

    def __init__(self, client: Any, patience: float) -> None:
        self._client, self._patience = client, patience
        self._looked = self._alone_since = time.monotonic()
        self._seen = self._told = False

    def check(self) -> None:
        """Raise if all workers have been gone for too long; say once if none has come yet."""
        now = time.monotonic()
        if now - self._looked < min(1.0, self._patience / 4):
            return
        self._looked = now
        if self._client.nthreads():
            self._seen, self._alone_since = True, now
        elif now - self._alone_since > self._patience:
            gone = f"the cluster has had no worker for {self._patience:g} seconds"
            if self._seen:
                raise RuntimeError(
                    f"{gone}, and those that it had are lost; start workers and run it again, or "
                    f"be more patient with dask's setting {SETTING}"
                )
            if not self._told:
                # One that is still waiting for its machines.
                warnings.warn(f"{gone}; waiting for the first one", RuntimeWarning, stacklevel=2)
                self._told = True


def patience(dask: Any) -> float:
    """Return the seconds that a run goes without a worker."""
    given = dask.config.get(SETTING, None)
    return NO_WORKERS if given is None else float(dask.utils.parse_timedelta(given))
