import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.FileDescriptor;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;

import kafka.consumer.Consumer;
import kafka.consumer.ConsumerConfig;
import kafka.consumer.ConsumerIterator;
import kafka.consumer.KafkaStream;
import kafka.javaapi.consumer.ConsumerConnector;
import kafka.message.MessageAndMetadata;

/**
 * A consumer of the high level, as applications of Kafka 0.8 had one: OldConsumer consumer.properties TOPIC=STREAMS…
 *
 * It prints `consuming` once it has rebalanced, and `record TOPIC PARTITION OFFSET VALUE` for each record before that
 * counts as consumed: a record whose offset it has committed has been printed. Until SIGTERM.
 */
public final class OldConsumer {
    private static final FileOutputStream OUT = new FileOutputStream(FileDescriptor.out);
    private static final Object LOCK = new Object();
    private static boolean isStopping;

    public static void main(String[] arguments) throws Exception {
        Properties properties = new Properties();
        try (FileInputStream file = new FileInputStream(arguments[0])) {
            properties.load(file);
        }
        Map<String, Integer> counts = new HashMap<>();
        for (int number = 1; number < arguments.length; number++) {
            String[] words = arguments[number].split("=");
            counts.put(words[0], Integer.valueOf(words[1]));
        }
        final ConsumerConnector connector = Consumer.createJavaConsumerConnector(new ConsumerConfig(properties));
        Runtime.getRuntime().addShutdownHook(new Thread(() -> stop(connector)));
        for (List<KafkaStream<byte[], byte[]>> streams : connector.createMessageStreams(counts).values()) {
            for (KafkaStream<byte[], byte[]> stream : streams) {
                new Thread(() -> read(stream)).start();
            }
        }
        print("consuming");
    }

    /** Commits what was printed: nothing is consumed between that and the end of the process. */
    private static void stop(ConsumerConnector connector) {
        synchronized (LOCK) {
            isStopping = true;
            connector.shutdown();
        }
    }

    private static void read(KafkaStream<byte[], byte[]> stream) {
        try {
            ConsumerIterator<byte[], byte[]> records = stream.iterator();
            while (records.hasNext()) {
                synchronized (LOCK) {
                    if (isStopping) {
                        return;
                    }
                    MessageAndMetadata<byte[], byte[]> record = records.peek();
                    String value = new String(record.message(), StandardCharsets.UTF_8);
                    print("record " + record.topic() + " " + record.partition() + " " + record.offset() + " " + value);
                    records.next();
                }
            }
        } catch (Throwable failure) {
            failure.printStackTrace();
            Runtime.getRuntime().halt(1);
        }
    }

    /** Writes a whole line at once, and begins it itself: it is not torn by a kill, nor by lines of a log beside it. */
    private static void print(String line) throws IOException {
        OUT.write(("\n" + line + "\n").getBytes(StandardCharsets.UTF_8));
    }
}
