import java.util.BitSet;
import javax.jms.Connection;
import javax.jms.DeliveryMode;
import javax.jms.JMSException;
import javax.jms.MessageConsumer;
import javax.jms.Session;
import org.apache.activemq.ActiveMQConnectionFactory;

/**
 * The producer and the consumers of the users' scenario, on one queue.
 *
 * Arguments: URL, number of messages, bytes of each, prefetch, how many a consumer takes before it
 * leaves (0: it stays), pause after each message in ms, how long an empty round is in ms. Prints the
 * distinct messages that came, inversions (a message before which a later one came at once) and
 * doubles. For ActiveMQ 6 the package javax.jms is replaced by jakarta.jms before this is compiled.
 */
final class Client {
    private static final int EMPTY_ROUNDS = 2;

    public static void main(String[] given) throws Exception {
        var factory = new ActiveMQConnectionFactory(given[0]);
        int messages = Integer.parseInt(given[1]), bytes = Integer.parseInt(given[2]);
        int prefetch = Integer.parseInt(given[3]), taken = Integer.parseInt(given[4]);
        int pauseMs = Integer.parseInt(given[5]), quietMs = Integer.parseInt(given[6]);
        factory.getPrefetchPolicy().setQueuePrefetch(prefetch);
        publish(factory.createConnection(), messages, bytes);
        var came = new BitSet();
        int last = -1, inversions = 0, doubles = 0, empty = 0;
        while (empty < (taken == 0 ? 1 : EMPTY_ROUNDS)) {
            var connection = factory.createConnection();
            var consumer = consumer(connection);
            int round = 0;
            while (taken == 0 || round < taken) {
                var message = consumer.receive(quietMs);
                if (message == null) {
                    break;
                }
                round++;
                int number = message.getIntProperty("number");
                inversions += number < last ? 1 : 0;
                doubles += came.get(number) ? 1 : 0;
                came.set(number);
                last = number;
                if (pauseMs > 0) {
                    Thread.sleep(pauseMs);
                }
            }
            connection.close();
            empty = round == 0 ? empty + 1 : 0;
        }
        System.out.println(came.cardinality() + " " + inversions + " " + doubles);
    }

    private static void publish(Connection connection, int messages, int bytes)
            throws JMSException {
        connection.start();
        var session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        var producer = session.createProducer(session.createQueue("users"));
        producer.setDeliveryMode(DeliveryMode.PERSISTENT);
        for (int number = 0; number < messages; number++) {
            var message = session.createBytesMessage();
            message.writeBytes(new byte[bytes]);
            message.setIntProperty("number", number);
            producer.send(message);
        }
        connection.close();
    }

    private static MessageConsumer consumer(Connection connection) throws JMSException {
        connection.start();
        var session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        return session.createConsumer(session.createQueue("users"));
    }
}
