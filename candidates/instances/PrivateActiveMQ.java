import java.util.List;
import org.apache.activemq.broker.BrokerService;
import org.apache.activemq.broker.region.policy.PolicyEntry;
import org.apache.activemq.broker.region.policy.PolicyMap;
import org.apache.activemq.util.IntrospectionSupport;

/**
 * An ActiveMQ Classic of any release from 5.1.0 on, until SIGTERM.
 *
 * Each argument is one setting: "connector=URI", "memory=BYTES", or a property of the broker
 * ("broker.persistent=true") or of the policy of all queues ("queues.maxPageSize=4") by its name
 * in the release's own configuration. A property that the release does not have ends the program.
 */
final class PrivateActiveMQ {
    public static void main(String[] settings) throws Exception {
        var broker = new BrokerService();
        var queues = new PolicyEntry();
        queues.setQueue(">");
        for (var setting : settings) {
            var name = setting.substring(0, setting.indexOf('='));
            var value = setting.substring(name.length() + 1);
            if (name.equals("connector")) {
                broker.addConnector(value);
            } else if (name.equals("memory")) {
                broker.getSystemUsage().getMemoryUsage().setLimit(Long.parseLong(value));
            } else if (!set(name.startsWith("broker.") ? broker : queues, name, value)) {
                System.err.println("this release has no property " + name);
                System.exit(2);
            }
        }
        var policy = new PolicyMap();
        policy.setPolicyEntries(List.of(queues));
        broker.setDestinationPolicy(policy);
        broker.start();
        broker.waitUntilStopped();
    }

    private static boolean set(Object bean, String name, String value) {
        return IntrospectionSupport.setProperty(bean, name.substring(name.indexOf('.') + 1), value);
    }
}
