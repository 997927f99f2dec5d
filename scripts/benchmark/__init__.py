# SPDX-License-Identifier: Apache-2.0
"""The parts of scripts/bench: servers, loads, groups of measurements, results."""
