import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.Future;

import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Transactions of the Java client, of any version since 0.11; what changed since is looked up at run time.
 *
 *     Transactions transact BOOTSTRAP TOPIC ID    each line on standard input: commit|abort GROUP|- OFFSET VALUE…
 *     Transactions read BOOTSTRAP TOPIC ISOLATION
 */
public final class Transactions {
    private static final int TIMEOUT_MS = 30_000;

    public static void main(String[] arguments) throws Exception {
        if (arguments[0].equals("transact")) {
            transact(arguments[1], arguments[2], arguments[3]);
        } else {
            read(arguments[1], arguments[2], arguments[3]);
        }
    }

    private static void transact(String bootstrap, String topic, String id) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("transactional.id", id);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        try (KafkaProducer<String, String> producer =
                new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
            producer.initTransactions();
            String line;
            while ((line = lines.readLine()) != null) {
                String[] words = line.trim().split(" ");
                producer.beginTransaction();
                List<Future<RecordMetadata>> sent = new ArrayList<>();
                for (int i = 3; i < words.length; i++) {
                    sent.add(producer.send(new ProducerRecord<>(topic, 0, null, words[i])));
                }
                for (Future<RecordMetadata> one : sent) {
                    one.get();
                }
                if (!words[1].equals("-")) {
                    sendOffset(producer, new TopicPartition(topic, 0), Long.parseLong(words[2]), words[1]);
                }
                if (words[0].equals("commit")) {
                    producer.commitTransaction();
                } else {
                    producer.abortTransaction();
                }
            }
        }
    }

    /** By group id until 2.4, and since by what the consumer knows of its group. */
    private static void sendOffset(KafkaProducer<String, String> producer, TopicPartition partition, long offset,
            String group) throws Exception {
        Map<TopicPartition, OffsetAndMetadata> offsets =
                Collections.singletonMap(partition, new OffsetAndMetadata(offset));
        try {
            Class<?> metadata = Class.forName("org.apache.kafka.clients.consumer.ConsumerGroupMetadata");
            Method send = KafkaProducer.class.getMethod("sendOffsetsToTransaction", Map.class, metadata);
            send.invoke(producer, offsets, metadata.getConstructor(String.class).newInstance(group));
        } catch (ClassNotFoundException | NoSuchMethodException old) {
            Method send = KafkaProducer.class.getMethod("sendOffsetsToTransaction", Map.class, String.class);
            send.invoke(producer, offsets, group);
        }
    }

    private static void read(String bootstrap, String topic, String isolation) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("group.id", "unused");
        settings.put("isolation.level", isolation);
        settings.put("enable.auto.commit", "false");
        TopicPartition partition = new TopicPartition(topic, 0);
        try (KafkaConsumer<String, String> consumer =
                new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer())) {
            consumer.assign(Collections.singletonList(partition));
            long end = consumer.endOffsets(Collections.singletonList(partition)).get(partition);
            consumer.seek(partition, 0);
            long deadline = System.currentTimeMillis() + TIMEOUT_MS;
            while (consumer.position(partition) < end && System.currentTimeMillis() < deadline) {
                for (ConsumerRecord<String, String> record : poll(consumer)) {
                    System.out.println(record.value());
                }
            }
        }
    }

    @SuppressWarnings("unchecked")
    private static ConsumerRecords<String, String> poll(KafkaConsumer<String, String> consumer) throws Exception {
        try {
            Class<?> duration = Class.forName("java.time.Duration");
            Method poll = KafkaConsumer.class.getMethod("poll", duration);
            return (ConsumerRecords<String, String>) poll.invoke(consumer,
                    duration.getMethod("ofMillis", long.class).invoke(null, 100L));
        } catch (NoSuchMethodException old) {
            return (ConsumerRecords<String, String>) KafkaConsumer.class.getMethod("poll", long.class)
                    .invoke(consumer, 100L);
        }
    }
}
