"""Print the accuracy table: ``python -m fieldcorr.verification [--peer] [--mesh NAME]``."""

import argparse
import sys
from collections.abc import Iterator

from fieldcorr.verification.report import Finding, markdown_table
from fieldcorr.verification.suite import all_findings


def _findings(options: argparse.Namespace) -> Iterator[Finding]:
    """Yield the closed forms and, where asked for, the comparison with NGSolve."""
    yield from all_findings()
    if options.peer:
        from fieldcorr.verification.peer import peer_findings

        yield from peer_findings(options.mesh)


def main() -> int:
    """Print the table; return 1 when a target is missed."""
    parser = argparse.ArgumentParser(prog="scripts/verify", description=__doc__)
    parser.add_argument("--peer", action="store_true", help="compare r with NGSolve as well")
    parser.add_argument("--mesh", default="tiny", help="bundled mesh for --peer (default tiny)")
    options = parser.parse_args()
    findings = []
    for finding in _findings(options):
        findings.append(finding)
        if sys.stderr.isatty():
            print(f"  {finding.case}: {finding.quantity} {finding.reached:.2g}", file=sys.stderr)
    print(markdown_table(findings))
    return 0 if all(finding.is_met for finding in findings) else 1


if __name__ == "__main__":
    sys.exit(main())
