"""MinHash LSH by datasketch: the approximate candidate search that the exact join is measured against.

The pipeline does not use it (docs/adr/0002): it misses pairs near the threshold. Tests and `bench/dedup.py` do.
"""

from collections.abc import Sequence

from datasketch import MinHash, MinHashLSH

from dedup.jaccard import TokenSets

NUM_PERM = 128  # datasketch's default
SEED = 1  # datasketch's default


def minhash_candidates(sets: TokenSets, threshold: float, num_perm: int = NUM_PERM) -> list[tuple[int, int]]:
    """Return the pairs of positions (smaller first, sorted) that MinHash LSH proposes for a Jaccard threshold.

    Written as datasketch's users do: one signature per set, insert all, query all (Broder 1997; Indyk and Motwani
    1998 for the banding). Pairs are candidates: neither complete nor all at or above the threshold.
    """
    index = MinHashLSH(threshold=threshold, num_perm=num_perm)
    signatures = []
    for position in range(len(sets.sizes)):
        signature = MinHash(num_perm=num_perm, seed=SEED)
        signature.update_batch(_as_bytes(sets.ids[sets.offsets[position] : sets.offsets[position + 1]].tolist()))
        index.insert(position, signature)
        signatures.append(signature)
    found: set[tuple[int, int]] = set()
    for position, signature in enumerate(signatures):
        found.update((other, position) for other in index.query(signature) if other < position)
    return sorted(found)


def _as_bytes(ids: Sequence[int]) -> list[bytes]:
    """Return token ids in the form that MinHash hashes."""
    return [str(token).encode("ascii") for token in ids]
