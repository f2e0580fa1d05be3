"""Transfer by simulation (SimPy): flows on shared resources, max-min fair, with traffic beside them and failures."""

from workbench.transfer.simulated.disturbance import Background, Death
from workbench.transfer.simulated.fabric import Fabric, Flow
from workbench.transfer.simulated.ledger import Ledger
from workbench.transfer.simulated.run import TransferRun, simulate

__all__ = ["Background", "Death", "Fabric", "Flow", "Ledger", "TransferRun", "simulate"]
