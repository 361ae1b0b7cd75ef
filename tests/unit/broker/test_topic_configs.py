"""Settings by topic: overrides from ZooKeeper over the broker's own."""

import asyncio
from collections.abc import Mapping

from broker.settings import Settings, TopicSettings, load_settings
from broker.topic_configs import ConfigSource, TopicConfigs, describe


class Store:
    """Overrides that a test sets; reads can be held back."""

    def __init__(self, **overrides: Mapping[str, str]) -> None:
        self.overrides = overrides
        self.held: dict[str, asyncio.Event] = {}

    async def topic_config(self, topic: str) -> Mapping[str, str]:
        found = self.overrides.get(topic, {})
        if topic in self.held:
            await self.held[topic].wait()
        return found


def settings_with(*overrides: str) -> Settings:
    return load_settings(None, overrides, {})


def loaded(configs: TopicConfigs, *topics: str) -> TopicConfigs:
    asyncio.run(configs.load(topics))
    return configs


def test_overrides_hold_and_all_else_follows_the_broker() -> None:
    settings = settings_with("log.segment.bytes=100")
    configs = loaded(TopicConfigs(settings, Store(a={"flush.ms": "5"})), "a", "b")
    assert (configs.log_config("a").flush_ms, configs.log_config("a").segment_bytes) == (5, 100)
    assert configs.log_config("b") == configs.default
    assert configs.log_config("never loaded") == configs.default


def test_a_change_of_the_broker_reaches_topics_that_do_not_override_it() -> None:
    settings = settings_with()
    store = Store(a={"segment.bytes": "50"}, b={"flush.ms": "5"})
    configs = loaded(TopicConfigs(settings, store), "a", "b")
    settings.adopt(settings_with("log.segment.bytes=100"))
    configs.change_defaults()
    assert [configs.log_config(topic).segment_bytes for topic in "abc"] == [50, 100, 100]
    assert configs.log_config("b").flush_ms == 5


def test_a_change_of_a_topic_without_logs_here_is_not_remembered() -> None:
    configs = loaded(TopicConfigs(settings_with(), Store()), "a")
    configs.change("a", {"flush.ms": "5"})
    configs.change("b", {"flush.ms": "5"})
    assert set(configs.all_known()) == {"a"}
    assert configs.log_config("a").flush_ms == 5
    configs.forget("a")
    assert configs.log_config("a") == configs.default


def test_a_change_that_comes_while_a_topic_is_loaded_wins_over_what_was_read_before() -> None:
    async def race() -> int:
        store = Store(a={"flush.ms": "1"})
        store.held["b"] = asyncio.Event()
        configs = TopicConfigs(settings_with(), store)
        loading = asyncio.create_task(configs.load(["a", "b"]))
        await asyncio.sleep(0)
        configs.change("a", {"flush.ms": "2"})
        store.held["b"].set()
        await loading
        return configs.log_config("a").flush_ms

    assert asyncio.run(race()) == 2


def test_what_is_wrong_among_the_overrides_is_left_out() -> None:
    settings = settings_with(
        "inter.broker.protocol.version=0.10.2", "log.message.format.version=0.10.2"
    )
    overrides = {
        "flush.ms": "soon",
        "added.in.kafka.9": "x",
        "message.format.version": "2.5",
        "segment.bytes": "77",
    }
    config = loaded(TopicConfigs(settings, Store(a=overrides)), "a").log_config("a")
    assert (config.segment_bytes, config.message_format_version) == (77, "0.10.2")


def test_a_source_is_that_of_the_setting_behind_not_of_its_synonyms() -> None:
    settings = settings_with("log.retention.hours=1", "log.roll.ms=5")
    topic = TopicSettings(settings, {"flush.ms": "5"})
    found = {one.name: (one.value, one.source) for one in describe(settings, topic)}
    assert found["flush.ms"] == ("5", ConfigSource.TOPIC)
    assert found["segment.ms"] == ("5", ConfigSource.STATIC_BROKER)
    assert found["retention.ms"] == ("3600000", ConfigSource.DEFAULT)
    assert found["cleanup.policy"] == ("delete", ConfigSource.DEFAULT)
