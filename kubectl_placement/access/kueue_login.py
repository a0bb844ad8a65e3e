"""Log in to a worker with the credentials that Kueue has, with the caller's right to read their Secret."""

from placement_ac.core.api.constants import SECRET
from placement_ac.core.api.decode import kueue_object
from placement_ac.kube.client import Client, Object
from placement_ac.kube.login import Login
from placement_ac.workers.connector import WorkerConnector, source_of


async def kueue_login(hub: Client, cluster: Object, kueue_namespace: str) -> tuple[str, Login]:
    """Return the Secret of a MultiKueueCluster, in words, and the login with it. Raises WorkerError."""
    connector = WorkerConnector(hub, SECRET.at("v1"), kueue_namespace)
    deadline = connector.deadline()
    credential = await connector.get_credential(source_of(kueue_object(cluster)), deadline)
    return credential.described_as, (await connector.login(credential, deadline)).login
