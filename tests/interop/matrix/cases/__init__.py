# SPDX-License-Identifier: Apache-2.0
"""All cases of the matrix; importing this fills case.CASES, in this order."""
from cases import (files, names, rights, io, locks, delegations, copies, faults,  # noqa: F401
                   settings, libnfs, soak)  # noqa: F401
