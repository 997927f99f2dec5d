# SPDX-License-Identifier: Apache-2.0
"""All cases of the matrix; importing this fills case.CASES, in this order."""
from cases import (files, names, rights, io, randomly, locks, meeting, opens, delegations, copies, space,  # noqa: F401
                   library, referral, reclaim, release, trunking, faults, settings, libnfs, programs, soak)  # noqa: F401
