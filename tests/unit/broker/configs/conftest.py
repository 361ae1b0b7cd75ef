from tests.support.zookeeper import zookeeper_connect

__all__ = ["zookeeper_connect"]
