"""λScale (published as FaaScale): multicast and execute-while-load. One module an experiment."""

from importlib import import_module

for _name in (
    "fig1",
    "fig2",
    "fig3",
    "fig5",
    "fig6",
    "fig7",
    "fig8",
    "fig9",
    "fig10",
    "fig11",
    "keep_alive",
    "block_count",
    "reorder",
    "warm_start",
    "mode_switch",
    "early_serving",
    "slow_link",
    "nccl_honest",
    "paced_multicast",
    "streamed_start",
    "packing",
    "block_size_sweep",
):
    import_module(f"{__name__}.{_name}")
