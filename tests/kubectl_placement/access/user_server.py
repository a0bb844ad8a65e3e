"""A stand-in for the user server of OCM's cluster-proxy: /CLUSTER/…, with a token of the hub."""

from typing import Any

import aiohttp
from aiohttp import web
from aiohttp.web_request import BaseRequest

from placement_lab.hub import Hub
from placement_lab.hub.http_server import HttpServer
from placement_lab.standins.fleet import WorkerFleet
from tests.support.rights import TOKEN_REVIEW

KEPT = ("Accept", "Content-Type", "Impersonate-User", "Impersonate-Group")


class UserServer(HttpServer):
    """Forwards requests to workers as the hub's user, by the rights of that user there."""

    def __init__(self, hub: Hub, fleet: WorkerFleet) -> None:
        super().__init__("127.0.0.1", 0)
        self.token = ""
        self._hub, self._fleet = hub, fleet
        self.users: list[str] = []
        """The users of all requests."""

    def _handler(self) -> web.Server:
        return web.Server(self._forward, access_log=None)

    async def _forward(self, request: BaseRequest) -> web.StreamResponse:
        _, cluster, path = request.rel_url.raw_path_qs.split("/", 2)
        async with aiohttp.ClientSession() as session:
            user = await self._user(session, request.headers.get("Authorization", ""))
            if user is None:
                return web.json_response(
                    {"kind": "Status", "message": "Unauthorized", "code": 401}, status=401
                )
            self.users.append(user)
            worker = self._fleet.hubs[cluster]
            headers = {name: request.headers[name] for name in KEPT if name in request.headers}
            headers |= {"Authorization": f"Bearer {worker.token}", "Impersonate-User": user}
            async with session.request(request.method, f"{worker.url}/{path}", headers=headers) as answer:
                response = web.StreamResponse(status=answer.status)
                response.content_type = answer.content_type
                await response.prepare(request)
                async for part in answer.content.iter_any():
                    await response.write(part)
                return response

    async def _user(self, session: aiohttp.ClientSession, authorization: str) -> str | None:
        """Return the hub's user of a token (TokenReview)."""
        body = {"spec": {"token": authorization.removeprefix("Bearer ")}}
        headers = {"Authorization": f"Bearer {self._hub.token}"}
        async with session.post(self._hub.url + TOKEN_REVIEW, json=body, headers=headers) as answer:
            status: dict[str, Any] = (await answer.json())["status"]
        return str(status["user"]["username"]) if status.get("authenticated") else None
