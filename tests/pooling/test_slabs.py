"""The slab pool under random use: blocks never overlap or straddle, nothing is lost, empty slabs change their shape."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.errors import InputError, UserError
from workbench.pooling.policy import BumpAllocator, SlabPool

SHAPES = (3, 4, 7, 10)
KINDS = ("allocate", "free", "move", "done", "reclaim")
ACTIONS = st.lists(
    st.tuples(st.sampled_from(KINDS), st.sampled_from(SHAPES), st.integers(1, 9)),
    max_size=60,
)


@given(ACTIONS, st.integers(10, 40), st.integers(1, 12))
def test_blocks_neither_overlap_nor_straddle_nor_vanish(actions, slab_bytes, slabs):
    pool = SlabPool(slab_bytes, slabs)
    held: list[tuple[int, list[int]]] = []
    moving: list[tuple[int, int, list[int]]] = []
    transfer = 0
    for action, size, count in actions:
        if action == "allocate":
            blocks = pool.allocate(size, count)
            if blocks is not None:
                assert len(set(blocks)) == count
                held.append((size, blocks))
        elif action in ("free", "move") and held:
            size, blocks = held.pop(count % len(held))
            if action == "free":
                pool.free(size, blocks)
            else:
                transfer += 1
                pool.move(size, blocks, transfer)
                moving.append((transfer, size, blocks))
        elif action == "done" and moving:
            last = moving[min(count, len(moving)) - 1][0]
            pool.done(last)
            moving = [entry for entry in moving if entry[0] > last]
        elif action == "reclaim":
            pool.reclaim()
        taken: dict[int, int] = {}
        for size, blocks in [*held, *((size, blocks) for _, size, blocks in moving)]:
            for block in blocks:
                begin = block * size
                assert begin // slab_bytes == (begin + size - 1) // slab_bytes, "straddles"
                assert 0 <= begin < slabs * slab_bytes
                for byte in range(begin, begin + size):
                    assert taken.setdefault(byte, block) == block, "overlaps"
                    taken[byte] = block
        used = sum(used for used, _ in pool.held_bytes().values())
        assert used == sum(size * len(blocks) for size, blocks in held) + sum(s * len(b) for _, s, b in moving)
        for in_use, whole in pool.held_bytes().values():
            assert in_use <= whole
        assert sum(whole for _, whole in pool.held_bytes().values()) <= slabs * slab_bytes


def test_an_empty_slab_can_be_another_shapes():
    pool = SlabPool(12, 2)
    blocks = pool.allocate(3, 8)
    assert pool.allocate(4, 1) is None
    pool.free(3, blocks)
    assert pool.allocate(4, 6) is not None  # both slabs are empty, so both are given away
    assert pool.allocate(3, 1) is None


def test_blocks_on_the_move_list_are_free_only_when_their_transfer_is_done():
    pool = SlabPool(12, 1)
    blocks = pool.allocate(12, 1)
    pool.move(12, blocks, transfer=7)
    assert pool.allocate(12, 1) is None
    pool.done(6)
    assert pool.allocate(12, 1) is None
    pool.done(7)
    assert pool.allocate(12, 1) == [0]


def test_tokens_of_a_slab_of_1_gib():
    """16 x floor(2^30 / block) tokens: blocks of 16 tokens of 57,344 bytes each, 917,504 bytes (notes §4).

    That is the first slab; the second holds one block less, because a block that begins in the first straddles."""
    pool = SlabPool(2**30, 1)
    assert len(SlabPool(2**30, 2).allocate(917_504, 1170 + 1169)) == 1170 + 1169
    assert SlabPool(2**30, 2).allocate(917_504, 1170 + 1170) is None
    assert len(pool.allocate(917_504, 2**30 // 917_504)) == 1170
    assert pool.held_bytes()[917_504][1] == 2**30


def test_what_was_not_handed_out_is_refused():
    pool = SlabPool(12, 1)
    with pytest.raises(InputError, match="not in use"):
        pool.free(3, [0])
    with pytest.raises(InputError, match="make slabs as large as the largest block"):
        pool.allocate(13, 1)


@given(st.lists(st.integers(0, 50), max_size=20), st.sampled_from([1, 8, 16]))
def test_bump_allocations_are_aligned_and_do_not_overlap(sizes, alignment):
    buffer = BumpAllocator(400, alignment)
    end = 0
    for size in sizes:
        try:
            begin = buffer.allocate(size)
        except UserError:
            assert -(-end // alignment) * alignment + size > 400
            break
        assert begin % alignment == 0
        assert begin >= end
        end = begin + size
    buffer.reset()
    assert buffer.allocate(400) == 0
