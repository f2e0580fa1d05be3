"""Binary heaps in arrays: the smallest of many instants, without sorting."""

from workbench.jit import kernel


@kernel
def replace_smallest(heap, value):
    """Take the smallest entry of a heap out and put `value` in."""
    place = 0
    while True:
        child = 2 * place + 1
        if child >= heap.size:
            break
        if child + 1 < heap.size and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= value:
            break
        heap[place] = heap[child]
        place = child
    heap[place] = value


@kernel
def push(key, item, size, value, index):
    """Add (value, index) to a heap of `size` entries held in two arrays with room for one more."""
    place = size
    while place > 0:
        parent = (place - 1) // 2
        if key[parent] <= value:
            break
        key[place], item[place] = key[parent], item[parent]
        place = parent
    key[place], item[place] = value, index


@kernel
def pop(key, item, size):
    """Take the entry with the smallest key out of a heap of `size` entries; the last one moves into its place."""
    value, index = key[size - 1], item[size - 1]
    place = 0
    while True:
        child = 2 * place + 1
        if child >= size - 1:
            break
        if child + 1 < size - 1 and key[child + 1] < key[child]:
            child += 1
        if key[child] >= value:
            break
        key[place], item[place] = key[child], item[child]
        place = child
    key[place], item[place] = value, index
