"""An ActiveMQ Artemis of our own, from its own archive, with a journal on disk.

The configuration is the least that the broker starts with. `artemis create` would write one too,
and would start Java a second time for it.
"""

from __future__ import annotations

from pathlib import Path
from xml.sax.saxutils import escape

from brokerproof.candidates.instances.java import server_command
from brokerproof.candidates.instances.server import Launch, PrivateServer

FILES = {
    "broker.xml": """\
<configuration xmlns="urn:activemq"><core xmlns="urn:activemq:core">
  <name>private</name>
  <security-enabled>false</security-enabled>
  <journal-type>NIO</journal-type>
  <journal-file-size>1M</journal-file-size>
  <journal-directory>{folder}/data/journal</journal-directory>
  <bindings-directory>{folder}/data/bindings</bindings-directory>
  <paging-directory>{folder}/data/paging</paging-directory>
  <large-messages-directory>{folder}/data/large-messages</large-messages-directory>
  <max-disk-usage>-1</max-disk-usage>
  <acceptors>
    <acceptor name="all">tcp://127.0.0.1:{port}?protocols=AMQP,STOMP;tcpNoDelay=true</acceptor>
  </acceptors>
  <address-settings>
    <address-setting match="#">
      <default-queue-routing-type>ANYCAST</default-queue-routing-type>
      <default-address-routing-type>ANYCAST</default-address-routing-type>
      <max-delivery-attempts>-1</max-delivery-attempts>
      <auto-delete-queues>false</auto-delete-queues>
      <auto-delete-addresses>false</auto-delete-addresses>
    </address-setting>
  </address-settings>
</core></configuration>
""",
    "bootstrap.xml": """\
<broker xmlns="http://activemq.apache.org/schema">
  <jaas-security domain="activemq"/>
  <server configuration="file:{folder}/broker.xml"/>
</broker>
""",
    "management.xml": '<management-context xmlns="http://activemq.apache.org/schema"/>\n',
    "log4j2.properties": """\
rootLogger.level = warn
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %p %m%n
""",
}


class PrivateArtemis(PrivateServer):
    """One Artemis, whose one port speaks AMQP 1.0 and STOMP; any user may do anything."""

    def furnish(self, folder: Path, ports: list[int]) -> Launch:
        """Write the configuration."""
        for name, text in FILES.items():
            filled = text.format(folder=escape(str(folder)), port=ports[0])
            (folder / name).write_text(filled, encoding="utf-8")
        home = self.choice.files.folder / f"apache-artemis-{self.choice.version}"
        return Launch(
            [
                *server_command(self.choice.java, folder, 512),
                f"-Dartemis.home={home}",
                f"-Dartemis.instance={folder}",
                f"-Dartemis.instance.etc={folder}",
                f"-Ddata.dir={folder}/data",
                f"-Dlog4j2.configurationFile={folder}/log4j2.properties",
                *("-cp", f"{home}/lib/artemis-boot.jar"),
                *("org.apache.activemq.artemis.boot.Artemis", "run"),
            ]
        )
