"""Two layers over the settings of the start, and the parts that follow them."""

import asyncio
from collections.abc import Mapping

import pytest

from broker.configs.dynamic_settings import DynamicSettings
from broker.settings import Settings, SettingsError, load_settings

SECRET = "listener.name.external.ssl.key.password"


class Part:
    """Follows one setting, and refuses one value of it."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.applied: list[tuple[object, object]] = []
        self.fails = False

    def concerns(self, name: str) -> bool:
        return name == self._name

    def check(self, _now: Settings, wanted: Settings) -> None:
        if wanted[self._name] == 13:
            raise SettingsError(self._name, "13", "nobody wants that")

    async def apply(self, before: Settings, now: Settings) -> None:
        self.applied.append((before[self._name], now[self._name]))
        if self.fails:
            raise ValueError("out of order")


def dynamic(*overrides: str) -> DynamicSettings:
    return DynamicSettings(load_settings(None, overrides, {}))


def take(settings: DynamicSettings, stored: Mapping[str, str], *, per_broker: bool = True) -> None:
    asyncio.run(settings.take_stored(stored, per_broker=per_broker))


def test_parts_hear_of_what_concerns_them_and_of_nothing_else() -> None:
    settings = dynamic("num.io.threads=4")
    workers, processors = Part("num.io.threads"), Part("num.network.threads")
    settings.add(workers)
    settings.add(processors)
    take(settings, {"num.io.threads": "5"}, per_broker=False)
    take(settings, {"num.io.threads": "6"})
    take(settings, {"num.io.threads": "6"})
    take(settings, {})
    assert workers.applied == [(4, 5), (5, 6), (6, 5)]
    assert processors.applied == []
    assert settings.settings.num_io_threads == 5


def test_a_change_that_a_part_refuses_is_not_made() -> None:
    settings = dynamic()
    part = Part("num.io.threads")
    settings.add(part)
    with pytest.raises(SettingsError, match="nobody wants that"):
        settings.check({"num.io.threads": "13"}, per_broker=True)
    take(settings, {"num.io.threads": "13"})
    assert (settings.settings.num_io_threads, settings.own, part.applied) == (8, {}, [])


def test_a_part_that_fails_does_not_keep_the_others_from_their_change() -> None:
    settings = dynamic()
    broken, sound = Part("num.io.threads"), Part("num.io.threads")
    broken.fails = True
    settings.add(broken)
    settings.add(sound)
    take(settings, {"num.io.threads": "9"})
    assert sound.applied == [(8, 9)]


def test_what_is_wrong_in_zookeeper_is_left_out_and_the_rest_holds() -> None:
    settings = dynamic()
    stored = {
        "num.io.threads": "many",
        "num.partitions": "3",
        "ssl.keystore.location": "/x",
        SECRET: "never encoded",
        "num.network.threads": "4",
    }
    take(settings, stored)
    assert settings.own == {"num.network.threads": "4"}
    take(settings, {"listeners": "PLAINTEXT://h:1", "num.io.threads": "9"}, per_broker=False)
    assert settings.defaults == {"num.io.threads": "9"}


def test_values_that_do_not_fit_together_are_refused() -> None:
    settings = dynamic()
    with pytest.raises(SettingsError, match="listener OTHER has no security protocol"):
        settings.check({"advertised.listeners": "OTHER://h:1"}, per_broker=True)


def test_passwords_are_stored_encrypted_and_need_a_secret() -> None:
    pytest.importorskip("cryptography")
    settings = dynamic("password.encoder.secret=s")
    stored = settings.to_stored({SECRET: "hush", "num.io.threads": "9"})
    assert stored["num.io.threads"] == "9"
    assert "hush" not in stored[SECRET]
    assert settings.from_stored(stored, per_broker=True)[SECRET] == "hush"
    with pytest.raises(SettingsError, match=r"encoder\.secret is not set") as caught:
        dynamic().to_stored({SECRET: "hush"})
    assert "hush" not in str(caught.value)


def test_passwords_move_from_the_old_secret_to_the_new_one() -> None:
    pytest.importorskip("cryptography")
    stored = dynamic("password.encoder.secret=old").to_stored({SECRET: "hush"})
    renewed = dynamic("password.encoder.secret=new", "password.encoder.old.secret=old")
    moved = renewed.re_encode(stored)
    assert moved is not None
    assert renewed.from_stored(moved, per_broker=True) == {SECRET: "hush"}
    assert renewed.from_stored(stored, per_broker=True) == {}
    # A second start with both secrets finds nothing under the old one any more.
    again = renewed.re_encode(moved)
    assert again == moved
    assert dynamic("password.encoder.secret=new").re_encode(moved) is None
    assert renewed.re_encode({"num.io.threads": "9"}) is None
