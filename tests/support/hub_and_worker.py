"""An admin of a hub and of a worker, for tests of stand-ins that need both."""

from typing import Self

from placement_lab.hub import Hub
from placement_lab.standins.fleet import WorkerFleet
from tests.support.admin import Admin, login_to


class HubAndWorker(Admin):
    """An admin of the hub; `worker` is an admin of the fleet's first worker."""

    def __init__(self, hub: Hub, fleet: WorkerFleet) -> None:
        super().__init__(login_to(hub))
        self.fleet = fleet
        self.worker = Admin(fleet.login(fleet.names[0]))

    def __enter__(self) -> Self:
        self.worker.__enter__()
        return super().__enter__()

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        self.worker.__exit__()
