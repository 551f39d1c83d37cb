"""How long a collective takes: a model of steps over links, every number of which is a guess.

A collective of n ranks moves so many bytes out of each rank in so many steps. What AWS documents: 1 to 2 us
a hop of a ring; one step each way (a mesh) under 1 MB; halving and doubling from 1 to 56 MB; rings above;
and NeuronLink's bandwidth a chip, of which a core has its share. The guess takes 1.5 us a step and that
share. The low bound takes 1 us, the fewest steps and all a core's DMA engines move; the high bound takes
2 us, the ring's steps and half the share, should AWS's figure count both directions.
"""

LINKS = {2: (384.0, 2), 3: (1024.0, 8), 4: (2560.0, 8)}  # generation: NeuronLink bytes/ns of a chip, its cores
HOP_NS = (1000.0, 1500.0, 2000.0)
MESH_BELOW, RING_ABOVE = 1 << 20, 56 << 20

# rounds: how often all ranks hear from all others; 0 is one hop
ROUNDS = {"all_reduce": 2, "all_gather": 1, "reduce_scatter": 1, "all_to_all": 1}


def traffic(name, ranks, source_bytes):
    """Bytes that leave one rank."""
    if name == "all_gather":
        return (ranks - 1) * source_bytes
    if name in ROUNDS:
        return ROUNDS[name] * (ranks - 1) * source_bytes / ranks
    return source_bytes


def steps(name, ranks, moved):
    """(fewest, likely, most)."""
    rounds = ROUNDS.get(name, 0)
    if not rounds or ranks == 1:
        return 1, 1, 1
    ring = rounds * (ranks - 1)
    halving = rounds * (ranks - 1).bit_length()
    likely = rounds if moved < MESH_BELOW else halving if moved < RING_ABOVE else ring
    return rounds, likely, ring


def cost(name, ranks, source_bytes, machine):
    """(low, guess, high) in ns."""
    chip, cores = LINKS[machine["generation"]]
    share = chip / cores
    engines = machine["dma_bytes_per_ns"] * machine["dma_engines"]
    rates = (max(engines, share), share, share / 2)
    moved = traffic(name, ranks, source_bytes) if ranks > 1 else 0
    return tuple(n * hop + moved / rate for n, hop, rate in zip(steps(name, ranks, moved), HOP_NS, rates))
