"""Tensors in the system's shared memory."""

from __future__ import annotations

import json
import os
import sys
import uuid
from typing import Any

import numpy as np
import pytest

from heimdall.serve.peers import Peer
from tests.serve.clients import Refused, X, triton_grpc, twice

shared_memory = pytest.importorskip("tritonclient.utils.shared_memory")
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="shared memory is for Linux")


@pytest.fixture
def memory() -> Any:
    made = []

    def make(size: int) -> tuple[str, Any]:
        key = f"heimdall_test_{uuid.uuid4().hex}"
        made.append(shared_memory.create_shared_memory_region(key, key, size))
        return key, made[-1]

    yield make
    for region in made:
        shared_memory.destroy_shared_memory_region(region)


def test_tensors_lie_in_shared_memory(serve, connect, memory):
    client, module = connect(serve())
    key, region = memory(48)
    shared_memory.set_shared_memory_region(region, [X], offset=16)
    client.register_system_shared_memory("both", key, 48)
    given = module.InferInput("x", X.shape, "FP32")
    given.set_shared_memory("both", 16, offset=16)
    wanted = module.InferRequestedOutput("y")
    wanted.set_shared_memory("both", 16, offset=32)
    client.infer("twice", [given], outputs=[wanted])
    found = shared_memory.get_contents_as_numpy(region, np.float32, X.shape, offset=32)
    np.testing.assert_array_equal(found, 2 * X)
    del found
    as_json = {"as_json": True} if module is triton_grpc else {}
    assert "both" in json.dumps(client.get_system_shared_memory_status(**as_json))
    client.unregister_system_shared_memory("both")
    with pytest.raises(Refused, match="no region 'both'"):
        client.infer("twice", [given], outputs=[wanted])


def test_shared_memory_that_cannot_be_used_is_refused(serve, connect, memory):
    client, module = connect(serve(regions=2))
    key, _ = memory(16)
    for bad in ("../../etc/passwd", "/etc/passwd", "", "no_such_memory", "a/b"):
        with pytest.raises(Refused, match=r"shared memory|opened"):
            client.register_system_shared_memory("it", bad, 16)
    with pytest.raises(Refused, match="has 16 bytes"):
        client.register_system_shared_memory("it", key, 17)
    client.register_system_shared_memory("it", key, 16)
    with pytest.raises(Refused, match="registered already"):
        client.register_system_shared_memory("it", key, 16)
    given = module.InferInput("x", X.shape, "FP32")
    given.set_shared_memory("it", 16, offset=4)
    with pytest.raises(Refused, match="outside"):
        client.infer("twice", [given])
    wanted = module.InferRequestedOutput("y")
    wanted.set_shared_memory("it", 8)
    with pytest.raises(Refused, match="takes 16 bytes"):
        twice(client, module, outputs=[wanted])


@pytest.fixture
def somebody(monkeypatch):
    """``somebody(uid)``: from here on, clients are that user's."""

    def become(uid: int | None) -> None:
        monkeypatch.setattr(Peer, "uid", uid)

    return become


def test_regions_are_their_users_own(serve, connect, memory, somebody):
    client, module = connect(serve(regions=1))
    key, region = memory(16)
    client.register_system_shared_memory("it", key, 16)
    given = module.InferInput("x", X.shape, "FP32")
    given.set_shared_memory("it", 16)
    wanted = module.InferRequestedOutput("y")
    wanted.set_shared_memory("it", 16)
    as_json = {"as_json": True} if module is triton_grpc else {}
    for other in (os.getuid() + 1, None):
        somebody(other)
        assert "it" not in json.dumps(client.get_system_shared_memory_status(**as_json))
        client.unregister_system_shared_memory("it")
        client.unregister_system_shared_memory()
        with pytest.raises(Refused, match="no region 'it'"):
            client.infer("twice", [given])
        with pytest.raises(Refused, match="no region 'it'"):
            twice(client, module, outputs=[wanted])
    somebody(os.getuid())
    shared_memory.set_shared_memory_region(region, [X])
    np.testing.assert_array_equal(client.infer("twice", [given]).as_numpy("y"), 2 * X)


def test_memory_of_another_user_is_refused(serve, connect, memory, somebody):
    client, _ = connect(serve())
    key, region = memory(16)
    shared_memory.set_shared_memory_region(region, [X])
    somebody(os.getuid() + 1)
    with pytest.raises(Refused, match="belongs to another user"):
        client.register_system_shared_memory("it", key, 16)
    somebody(None)
    with pytest.raises(Refused, match="whose user the system knows"):
        client.register_system_shared_memory("it", key, 16)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can be somebody else")
def test_a_server_of_roots_opens_no_memory_of_others_for_its_own_clients(serve, connect, memory):
    client, _ = connect(serve())
    key, _ = memory(16)
    os.chmod(f"/dev/shm/{key}", 0o600)
    os.chown(f"/dev/shm/{key}", 12345, 12345)
    with pytest.raises(Refused, match="belongs to another user"):
        client.register_system_shared_memory("it", key, 16)


def test_a_region_that_its_owner_cuts_short_does_no_harm(serve, connect, memory):
    client, module = connect(serve())
    key, _ = memory(16)
    client.register_system_shared_memory("it", key, 16)
    os.truncate(f"/dev/shm/{key}", 0)
    given = module.InferInput("x", X.shape, "FP32")
    given.set_shared_memory("it", 16)
    with pytest.raises(Refused, match="shorter"):
        client.infer("twice", [given])
    np.testing.assert_array_equal(twice(client, module).as_numpy("y"), 2 * X)


def test_regions_of_owners_that_are_gone_make_room(serve, connect, memory):
    client, _ = connect(serve(regions=1))
    key, _ = memory(16)
    client.register_system_shared_memory("old", key, 16)
    other, _ = memory(16)
    with pytest.raises(Refused, match="unregister one"):
        client.register_system_shared_memory("new", other, 16)
    os.unlink(f"/dev/shm/{key}")
    client.register_system_shared_memory("new", other, 16)
    open(f"/dev/shm/{key}", "wb").close()  # for the fixture to remove
